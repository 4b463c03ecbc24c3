"""What is known of an expression's value when the signals below it are only partly known."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sim.domains import FALSE, TRUE, Domain, bits, build, exactly, full
from sim.expressions import Expression, Signal, compute, mask, signed

UNKNOWN_BIT = full(1)
DriverOf = Callable[[Signal], "Expression | None"]


class Evaluator:
    """Evaluates expressions over `domains` (signal: what is known). Sound: the value is always in the answer.

    Wires without a domain are looked up through `driver_of`. Make a new one when `domains` change.
    """

    def __init__(self, domains: Mapping[Signal, Domain], driver_of: DriverOf) -> None:
        self.domains = domains
        self.driver_of = driver_of
        self.memo: dict[int, Domain] = {}
        self.work = 0

    def of(self, node: Expression) -> Domain:
        """What is known of `node`."""
        found = self.memo.get(node.number)
        if found is None:
            self.memo[node.number] = full(node.width)  # a combinational loop ends here
            self.work += 1
            found = self.memo[node.number] = self._evaluate(node)
        return found

    def _evaluate(self, node: Expression) -> Domain:
        match node.op:
            case "const":
                return exactly(node.width, node.value)
            case "signal":
                return self._signal(node)
            case "slice":
                return _slice(self.of(node.args[0]), node.high, node.low)
            case "concat":
                return self._concat(node)
            case "ite":
                condition = self.of(node.args[0])
                if condition.low:
                    return self.of(node.args[1])
                if not condition.high:
                    return self.of(node.args[2])
                return join(self.of(node.args[1]), self.of(node.args[2]))
            case "not":
                return self.of(node.args[0]).inverted()
            case "and" | "or" | "xor":
                return self._bitwise(node)
            case "eq":
                a, b = self.of(node.args[0]), self.of(node.args[1])
                if a.low == a.high and b.low == b.high:
                    return TRUE if a.low == b.low else FALSE
                return UNKNOWN_BIT if a.meet(b) is not None else FALSE
            case "ult":
                return _less(self.of(node.args[0]), self.of(node.args[1]))
            case "slt":
                a, b = self.of(node.args[0]), self.of(node.args[1])
                x, y = _flip_sign(a), _flip_sign(b)
                return _less(x, y) if x is not None and y is not None else UNKNOWN_BIT
            case "redor":
                a = self.of(node.args[0])
                return FALSE if a.high == 0 else UNKNOWN_BIT if a.has(0) else TRUE
            case "redand":
                a = self.of(node.args[0])
                ones = mask(a.width)
                return TRUE if a.low == ones else UNKNOWN_BIT if a.has(ones) else FALSE
            case "redxor":
                single = self.of(node.args[0]).single
                return UNKNOWN_BIT if single is None else exactly(1, single.bit_count() & 1)
            case "sext":
                return _sext(self.of(node.args[0]), node.width)
            case "unknown":
                return full(node.width)
            case _:
                return self._arithmetic(node)

    def _signal(self, node: Expression) -> Domain:
        signal = node.signal
        assert signal is not None
        found = self.domains.get(signal)
        if signal.kind != "wire":
            return found or full(node.width)
        driver = self.driver_of(signal)
        value = self.of(driver) if driver is not None else full(node.width)
        # a contradiction is found by whoever meets the two
        return value if found is None else found.meet(value) or found

    def _concat(self, node: Expression) -> Domain:
        low = high = fixed = value = 0
        for part in node.args:
            found = self.of(part)
            width = part.width
            low, high = low << width | found.low, high << width | found.high
            fixed, value = fixed << width | found.fixed, value << width | found.value
        return build(node.width, low, high, fixed, value, frozenset()) or full(node.width)

    def _bitwise(self, node: Expression) -> Domain:
        a, b = self.of(node.args[0]), self.of(node.args[1])
        one_a, one_b, zero_a, zero_b = a.value, b.value, a.fixed & ~a.value, b.fixed & ~b.value
        if node.op == "and":
            one, zero = one_a & one_b, zero_a | zero_b
        elif node.op == "or":
            one, zero = one_a | one_b, zero_a & zero_b
        else:
            one, zero = one_a & zero_b | zero_a & one_b, one_a & one_b | zero_a & zero_b
        return bits(node.width, one | zero, one) or full(node.width)

    def _arithmetic(self, node: Expression) -> Domain:
        a, b = self.of(node.args[0]), self.of(node.args[1])
        width = node.width
        if a.low == a.high and b.low == b.high:
            return exactly(width, compute(node.op, a.low, b.low, a.width, b.width))
        if node.op in ("add", "sub"):
            low, high = (a.low + b.low, a.high + b.high) if node.op == "add" else (a.low - b.high, a.high - b.low)
            size = 1 << width
            if low // size == high // size:
                return build(width, low % size, high % size, 0, 0, frozenset()) or full(width)
        elif node.op == "mul" and a.high * b.high <= mask(width):
            return build(width, a.low * b.low, a.high * b.high, 0, 0, frozenset()) or full(width)
        elif node.op == "umod" and b.high:
            return build(width, 0, b.high - 1, 0, 0, frozenset()) or full(width)
        elif node.op in ("udiv", "lshr"):
            return build(width, 0, a.high, 0, 0, frozenset()) or full(width)
        return full(width)


def join(a: Domain, b: Domain) -> Domain:
    """The smallest domain that this module makes around both."""
    if a == b:
        return a
    fixed = a.fixed & b.fixed & ~(a.value ^ b.value)
    excluded = frozenset(v for v in a.excluded | b.excluded if not a.has(v) and not b.has(v))
    return build(a.width, min(a.low, b.low), max(a.high, b.high), fixed, a.value & fixed, excluded) or full(a.width)


def _slice(a: Domain, high: int, low: int) -> Domain:
    width = high - low + 1
    if a.low == a.high:
        return exactly(width, a.low >> low & mask(width))
    fixed, value = a.fixed >> low & mask(width), a.value >> low & mask(width)
    if a.low >> (high + 1) == a.high >> (high + 1):
        bounds = a.low >> low & mask(width), a.high >> low & mask(width)
        excluded = a.excluded if low == 0 and high == a.width - 1 else frozenset[int]()
        return build(width, *bounds, fixed, value, excluded) or full(width)
    return bits(width, fixed, value) or full(width)


def _sext(a: Domain, width: int) -> Domain:
    if a.low == a.high:
        return exactly(width, signed(a.low, a.width) & mask(width))
    top = 1 << (a.width - 1)
    if a.high < top:
        return build(width, a.low, a.high, 0, 0, frozenset()) or full(width)
    if a.low >= top:
        offset = (1 << width) - (1 << a.width)
        return build(width, a.low + offset, a.high + offset, 0, 0, frozenset()) or full(width)
    return full(width)


def _less(a: Domain, b: Domain) -> Domain:
    if a.high < b.low:
        return TRUE
    return FALSE if a.low >= b.high else UNKNOWN_BIT


def _flip_sign(a: Domain) -> Domain | None:
    """The interval with the sign bit inverted, so that unsigned comparison is signed comparison."""
    top = 1 << (a.width - 1)
    if (a.low ^ a.high) & top:
        return None
    return Domain(a.width, a.low ^ top, a.high ^ top)
