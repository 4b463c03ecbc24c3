"""Word-level expressions of a design after elaboration: unsigned, two-valued, hash-consed, folded when built.

Every value has a width in bits. Logic operators are one bit wide; `ne`, `<=`, `!` and the like are written with
`not`, `eq`, `ult` and `slt`. Unknown source values (x, z) count as 0, as the simulator is told to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(eq=False, repr=False)
class Signal:
    """One variable or net of one instance (one element, if it is an unpacked array).

    kind: `input` (top-level input), `register` (changes on a clock edge, `driver` is the next value), `wire`
    (`driver` is the value), `unknown` (the analysis does not follow it; `reason` says why).
    """

    name: str
    width: int
    kind: str = "unknown"
    driver: Expression | None = None
    reason: str = "nothing drives it"
    clock: str = ""
    initial: int = 0

    def __repr__(self) -> str:
        return f"{self.kind} {self.name}[{self.width}]"


@dataclass(eq=False, repr=False)
class Expression:
    """A node. Two nodes of one `Expressions` are equal exactly if they are the same object.

    op and its operands: `const` (value), `signal` (signal), `slice` (a; high, low), `concat` (first is highest),
    `ite` (condition, then, else), `not and or xor` (bitwise), `eq ult slt`, `redand redor redxor`, `add sub mul udiv
    umod sdiv smod`, `shl lshr ashr`, `sext` (a), `unknown`.
    """

    op: str
    width: int
    args: tuple[Expression, ...] = ()
    value: int = 0
    high: int = 0
    low: int = 0
    signal: Signal | None = None
    number: int = field(default=0)

    @property
    def is_const(self) -> bool:
        return self.op == "const"

    def __repr__(self) -> str:
        # one level: operands are shared, so a whole expression may be exponentially long
        return f"{self.op}#{self.number}({self.signal or self.value or [a.number for a in self.args]})"


def mask(width: int) -> int:
    return (1 << width) - 1


def signed(value: int, width: int) -> int:
    """The value of `width` bits read as two's complement."""
    return value - (1 << width) if width and value >> (width - 1) & 1 else value


class Expressions:
    """Builds expressions; folds constants and the shapes that elaboration leaves behind."""

    def __init__(self) -> None:
        self._table: dict[tuple[object, ...], Expression] = {}
        self._slices: dict[tuple[int, int, int], Expression] = {}

    def _make(
        self,
        op: str,
        width: int,
        args: tuple[Expression, ...] = (),
        value: int = 0,
        high: int = 0,
        low: int = 0,
        signal: Signal | None = None,
    ) -> Expression:
        key = (op, width, tuple([a.number for a in args]), value, high, low, id(signal) if signal else 0)
        found = self._table.get(key)
        if found is None:
            found = Expression(op, width, args, value, high, low, signal, len(self._table))
            self._table[key] = found
        return found

    def const(self, value: int, width: int) -> Expression:
        return self._make("const", width, value=value & mask(width))

    def signal(self, signal: Signal) -> Expression:
        return self._make("signal", signal.width, signal=signal)

    def unknown(self, width: int) -> Expression:
        return self._make("unknown", width, value=len(self._table))

    def slice(self, a: Expression, high: int, low: int) -> Expression:
        """Bits high..low of `a`; bits outside it are 0."""
        if low < 0:
            return (
                self.concat([self.slice(a, high, 0), self.const(0, -low)])
                if high >= 0
                else self.const(0, high - low + 1)
            )
        if low >= a.width:
            return self.const(0, high - low + 1)
        if high >= a.width:
            return self.zext(self.slice(a, a.width - 1, low), high - low + 1)
        if low == 0 and high == a.width - 1:
            return a
        width = high - low + 1
        if a.op == "const":
            return self.const(a.value >> low, width)
        if a.op == "slice":
            return self.slice(a.args[0], a.low + high, a.low + low)
        # operands are shared: without a memory, slicing what was built of slices would take exponential time
        key = (a.number, high, low)
        found = self._slices.get(key)
        if found is None:
            found = self._slices[key] = self._slice(a, high, low)
        return found

    def _slice(self, a: Expression, high: int, low: int) -> Expression:
        """The same, pushed into the operands of `a` where that is exact."""
        if a.op == "concat":
            parts: list[Expression] = []
            base = a.width
            for part in a.args:
                base -= part.width
                if base + part.width - 1 < low or base > high:
                    continue
                parts.append(self.slice(part, min(high - base, part.width - 1), max(low - base, 0)))
            return self.concat(parts)
        if a.op == "ite":
            return self.ite(a.args[0], self.slice(a.args[1], high, low), self.slice(a.args[2], high, low))
        if a.op in ("not", "and", "or", "xor"):
            return self._bitwise(a.op, [self.slice(x, high, low) for x in a.args])
        if a.op in ("add", "sub", "mul") and low == 0:
            x, y = (self.slice(b, high, 0) for b in a.args)
            return self.arithmetic(a.op, x, y)
        if a.op == "sext" and high < a.args[0].width:
            return self.slice(a.args[0], high, low)
        return self._make("slice", high - low + 1, (a,), high=high, low=low)

    def concat(self, parts: Iterable[Expression]) -> Expression:
        flat: list[Expression] = []
        for part in parts:
            for piece in part.args if part.op == "concat" else (part,):
                if piece.width == 0:
                    continue
                last = flat[-1] if flat else None
                if last is not None and last.op == "const" and piece.op == "const":
                    flat[-1] = self.const(last.value << piece.width | piece.value, last.width + piece.width)
                elif last is not None and last.op == "slice" and piece.op == "slice" and (
                    last.args[0] is piece.args[0] and last.low == piece.high + 1
                ):  # fmt: skip
                    flat[-1] = self.slice(last.args[0], last.high, piece.low)
                else:
                    flat.append(piece)
        if len(flat) == 1:
            return flat[0]
        return self._make("concat", sum(p.width for p in flat), tuple(flat))

    def zext(self, a: Expression, width: int) -> Expression:
        if width <= a.width:
            return self.slice(a, width - 1, 0)
        return self.concat([self.const(0, width - a.width), a])

    def sext(self, a: Expression, width: int) -> Expression:
        if width <= a.width:
            return self.slice(a, width - 1, 0)
        if a.op == "const":
            return self.const(signed(a.value, a.width), width)
        if a.op == "concat" and a.args[0].op == "const" and a.args[0].value >> (a.args[0].width - 1) == 0:
            return self.zext(a, width)
        return self._make("sext", width, (a,))

    def ite(self, c: Expression, a: Expression, b: Expression) -> Expression:
        if c.op == "const":
            return a if c.value else b
        if a is b:
            return a
        if c.op == "not":
            return self.ite(c.args[0], b, a)
        if b.op == "ite" and b.args[0] is c:
            b = b.args[2]
        if a.op == "ite" and a.args[0] is c:
            a = a.args[1]
        if a is b:
            return a
        if a.width == 1:
            if a.op == "const" and b.op == "const":
                return c if a.value else self.not_(c)
            if a.op == "const":
                return self.or_(c, b) if a.value else self.and_(self.not_(c), b)
            if b.op == "const":
                return self.or_(self.not_(c), a) if b.value else self.and_(c, a)
        return self._make("ite", a.width, (c, a, b))

    def not_(self, a: Expression) -> Expression:
        if a.op == "const":
            return self.const(~a.value, a.width)
        if a.op == "not":
            return a.args[0]
        return self._make("not", a.width, (a,))

    def and_(self, a: Expression, b: Expression) -> Expression:
        return self._bitwise("and", [a, b])

    def or_(self, a: Expression, b: Expression) -> Expression:
        return self._bitwise("or", [a, b])

    def xor(self, a: Expression, b: Expression) -> Expression:
        return self._bitwise("xor", [a, b])

    def _bitwise(self, op: str, args: list[Expression]) -> Expression:
        if op == "not":
            return self.not_(args[0])
        a, b = args
        if a.op == "const":
            a, b = b, a
        ones = mask(a.width)
        if a.op == "const":
            value = {"and": a.value & b.value, "or": a.value | b.value, "xor": a.value ^ b.value}[op]
            return self.const(value, a.width)
        if a is b:
            return a if op != "xor" else self.const(0, a.width)
        if b.op == "const":
            if op == "and" and b.value in (0, ones):
                return a if b.value else b
            if op == "or" and b.value in (0, ones):
                return b if b.value else a
            if op == "xor" and b.value in (0, ones):
                return self.not_(a) if b.value else a
        if (a.op == "not" and a.args[0] is b) or (b.op == "not" and b.args[0] is a):
            return self.const(0 if op == "and" else ones, a.width)
        return self._make(op, a.width, (a, b))

    def eq(self, a: Expression, b: Expression) -> Expression:
        if a.op == "const":
            a, b = b, a
        if a.op == "const":
            return self.const(int(a.value == b.value), 1)
        if a is b:
            return self.const(1, 1)
        if b.op == "const":
            if a.width == 1:
                return a if b.value else self.not_(a)
            if a.op == "concat" and a.args[0].op == "const":
                head = a.args[0]
                rest = a.width - head.width
                if b.value >> rest != head.value:
                    return self.const(0, 1)
                return self.eq(self.slice(a, rest - 1, 0), self.slice(b, rest - 1, 0))
        return self._make("eq", 1, (a, b))

    def ne(self, a: Expression, b: Expression) -> Expression:
        return self.not_(self.eq(a, b))

    def less(self, a: Expression, b: Expression, is_signed: bool) -> Expression:
        if a.op == "const" and b.op == "const":
            x, y = (signed(e.value, e.width) if is_signed else e.value for e in (a, b))
            return self.const(int(x < y), 1)
        if a is b or (not is_signed and b.op == "const" and b.value == 0):
            return self.const(0, 1)
        return self._make("slt" if is_signed else "ult", 1, (a, b))

    def truth(self, a: Expression) -> Expression:
        """`a != 0` in one bit."""
        return self.reduce("redor", a)

    def reduce(self, op: str, a: Expression) -> Expression:
        if a.width == 1:
            return a
        if a.op == "const":
            value = {"redor": a.value != 0, "redand": a.value == mask(a.width), "redxor": a.value.bit_count() % 2}[op]
            return self.const(int(value), 1)
        if op == "redor" and a.op == "concat" and any(p.op == "const" for p in a.args):
            if any(p.op == "const" and p.value for p in a.args):
                return self.const(1, 1)
            return self.reduce(op, self.concat([p for p in a.args if p.op != "const"]))
        return self._make(op, 1, (a,))

    def arithmetic(self, op: str, a: Expression, b: Expression) -> Expression:
        """`add sub mul udiv umod sdiv smod shl lshr ashr`, in the width of `a`. Division by zero gives 0."""
        if a.op == "const" and b.op == "const":
            return self.const(compute(op, a.value, b.value, a.width, b.width), a.width)
        if op == "sub" and b.op == "const":
            op, b = "add", self.const(-b.value, b.width)
        if op in ("add", "mul") and a.op == "const":
            a, b = b, a
        if b.op == "const":
            if b.value == 0 and op in ("add", "shl", "lshr", "ashr"):
                return a
            if op in ("mul", "udiv") and b.value == 1:
                return a
            if op == "mul" and b.value == 0:
                return b
            if op == "add" and a.op == "add" and a.args[1].op == "const":
                return self.arithmetic("add", a.args[0], self.const(a.args[1].value + b.value, a.width))
            if op == "mul" and b.value.bit_count() == 1:
                op, b = "shl", self.const(b.value.bit_length() - 1, b.width)
            if op == "udiv" and b.value.bit_count() == 1:
                op, b = "lshr", self.const(b.value.bit_length() - 1, b.width)
            if op == "umod" and b.value.bit_count() == 1:
                return (
                    self.zext(self.slice(a, b.value.bit_length() - 2, 0), a.width)
                    if b.value > 1
                    else self.const(0, a.width)
                )
            if op == "shl":
                shift = min(b.value, a.width)
                return (
                    self.concat([self.slice(a, a.width - 1 - shift, 0), self.const(0, shift)])
                    if shift < a.width
                    else self.const(0, a.width)
                )
            if op == "lshr":
                return (
                    self.zext(self.slice(a, a.width - 1, b.value), a.width)
                    if b.value < a.width
                    else self.const(0, a.width)
                )
            if op == "ashr":
                return self.sext(self.slice(a, a.width - 1, min(b.value, a.width - 1)), a.width)
        return self._make(op, a.width, (a, b))

    def replace_bits(self, a: Expression, high: int, low: int, value: Expression) -> Expression:
        """`a` with its bits high..low replaced by `value` (bits outside `a` are dropped)."""
        if high >= a.width:
            value = self.slice(value, value.width - 1 - (high - a.width + 1), 0) if low < a.width else value
            high = a.width - 1
        if low >= a.width or high < low:
            return a
        parts = [value]
        if high < a.width - 1:
            parts.insert(0, self.slice(a, a.width - 1, high + 1))
        if low > 0:
            parts.append(self.slice(a, low - 1, 0))
        return self.concat(parts)

    def substitute(self, root: Expression, known: dict[Signal, Expression], memo: dict[int, Expression]) -> Expression:
        """`root` with signals replaced, rebuilt and folded; `memo` may be kept between calls with the same `known`."""
        stack = [root]
        while stack:
            node = stack[-1]
            if node.number in memo:
                stack.pop()
                continue
            missing = [a for a in node.args if a.number not in memo]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            memo[node.number] = self._rebuild(node, [memo[a.number] for a in node.args], known)
        return memo[root.number]

    def _rebuild(self, node: Expression, args: list[Expression], known: dict[Signal, Expression]) -> Expression:
        if node.op == "signal":
            return known.get(node.signal, node) if node.signal else node
        if all(a is b for a, b in zip(args, node.args, strict=True)):
            return node
        match node.op:
            case "slice":
                return self.slice(args[0], node.high, node.low)
            case "concat":
                return self.concat(args)
            case "sext":
                return self.sext(args[0], node.width)
            case "ite":
                return self.ite(*args)
            case "not" | "and" | "or" | "xor":
                return self._bitwise(node.op, args)
            case "eq":
                return self.eq(*args)
            case "ult" | "slt":
                return self.less(args[0], args[1], node.op == "slt")
            case "redand" | "redor" | "redxor":
                return self.reduce(node.op, args[0])
            case _:
                return self.arithmetic(node.op, *args)


def compute(op: str, a: int, b: int, width: int, b_width: int) -> int:
    """The value of an arithmetic operator on constants, cut to `width` bits. Division by zero gives 0."""
    match op:
        case "add":
            result = a + b
        case "sub":
            result = a - b
        case "mul":
            result = a * b
        case "udiv":
            result = a // b if b else 0
        case "umod":
            result = a % b if b else 0
        case "sdiv" | "smod":
            x, y = signed(a, width), signed(b, b_width)
            quotient = 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            result = quotient if op == "sdiv" else (x - quotient * y if y else 0)
        case "shl":
            result = a << b if b < width else 0
        case "lshr":
            result = a >> b
        case _:
            result = signed(a, width) >> b
    return result & mask(width)
