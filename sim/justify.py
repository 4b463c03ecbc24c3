"""From wanted values of expressions to wanted values of inputs and registers in the same cycle.

A literal is (expression, domain): the expression's value lies in the domain. `Solver.solve` turns a conjunction of
literals into cubes (signal: domain) that imply it, whatever the other signals are. It is sound and incomplete: what
needs a choice of values is tried with a few boundary values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sim.domains import FALSE, TRUE, Domain, between, bits, build, exactly, other_than, shifted
from sim.evaluation import DriverOf, Evaluator
from sim.expressions import Expression, Expressions, Signal, mask, signed

Literal = tuple[Expression, Domain]
Cube = dict[Signal, Domain]
MAX_CHOICES = 4


class BudgetError(Exception):
    """The search has used up its share of work."""


class Solver:
    """`work` counts the steps taken; `limit` is where BudgetError is raised. `likely` gives a register's value after
    reset, which is tried first where a value must be chosen."""

    def __init__(self, x: Expressions, driver_of: DriverOf, likely: Mapping[Signal, Domain]) -> None:
        self.x = x
        self.driver_of = driver_of
        self.likely = likely
        self.work = 0
        self.limit = 0
        self.reason = ""

    def solve(self, literals: Sequence[Literal], given: Mapping[Signal, Domain]) -> Iterator[Cube]:
        """Cubes over inputs and registers (wires left out) that imply all literals together with `given`."""
        for cube in self._search(list(literals), dict(given)):
            yield {s: d for s, d in cube.items() if s.kind in ("input", "register") and not d.is_full}

    def follow(self, literals: Sequence[Literal], actual: Mapping[Signal, Domain]) -> Cube | None:
        """A cube that implies all literals and contains `actual`, the value of every register and input, in which
        they hold. Where there are alternatives it takes one that is true there, so nothing is searched."""
        values = Evaluator(actual, self.driver_of)
        cube: Cube = {}
        evaluator = Evaluator(cube, self.driver_of)
        todo = list(literals)
        while todo:
            node, domain = todo.pop()
            self._spend(1)
            if node.signal is not None:
                changed = self._restrict(node.signal, domain, cube, todo)
                if changed is None:
                    return None
                if changed:
                    self.work += evaluator.work
                    evaluator = Evaluator(cube, self.driver_of)
                continue
            best: list[Literal] | None = None
            for alternative in self._expand(node, domain, evaluator):
                if all((v := values.of(e).single) is not None and d.has(v) for e, d in alternative) and (
                    best is None or _cost(alternative) < _cost(best)
                ):
                    best = alternative
            if best is None:
                if not node.args:
                    return None
                singles = [(a, values.of(a).single) for a in node.args]
                best = [(a, exactly(a.width, v)) for a, v in singles if v is not None]
                if len(best) < len(singles):
                    return None
            todo += reversed(best)
        self._spend(evaluator.work + values.work)
        return {s: d for s, d in cube.items() if s.kind in ("input", "register") and not d.is_full}

    def _search(self, todo: list[Literal], cube: Cube) -> Iterator[Cube]:
        waiting: list[Literal] = []
        evaluator = Evaluator(cube, self.driver_of)
        while True:
            while todo:
                node, domain = todo.pop()
                self._spend(1)
                if node.signal is not None:
                    changed = self._restrict(node.signal, domain, cube, todo)
                    if changed is None:
                        return
                    if changed:
                        self.work += evaluator.work
                        evaluator = Evaluator(cube, self.driver_of)
                    continue
                alternatives = self._expand(node, domain, evaluator)
                if not alternatives:
                    return
                if len(alternatives) == 1:
                    todo += reversed(alternatives[0])
                else:
                    waiting.append((node, domain))
            self._spend(evaluator.work)
            evaluator.work = 0
            if not waiting:
                yield cube
                return
            # the others may have been decided in the meantime; branch where there is least to choose from
            best: tuple[int, list[list[Literal]]] | None = None
            for i, (node, domain) in enumerate(waiting):
                alternatives = self._expand(node, domain, evaluator)
                if not alternatives:
                    return
                if best is None or len(alternatives) < len(best[1]):
                    best = i, alternatives
                if len(alternatives) == 1:
                    break
            assert best is not None
            del waiting[best[0]]
            if len(best[1]) == 1:
                todo += reversed(best[1][0])
                continue
            for alternative in best[1]:
                yield from self._search([*waiting, *reversed(alternative)], dict(cube))
            return

    def _spend(self, amount: int) -> None:
        self.work += amount
        if self.work > self.limit:
            raise BudgetError

    def _restrict(self, signal: Signal, domain: Domain, cube: Cube, todo: list[Literal]) -> bool | None:
        """Narrow a signal in `cube`. None: contradiction; False: nothing new."""
        old = cube.get(signal)
        new = domain if old is None else old.meet(domain)
        if new is None:
            return None
        if new == old:
            return False
        cube[signal] = new
        if signal.kind == "wire":
            driver = self.driver_of(signal)
            if driver is not None:
                todo.append((driver, new))
        return True

    def _expand(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        """Alternatives, each a conjunction of literals that implies `node` in `domain`. Empty: impossible."""
        found = known.of(node)
        wanted = found.meet(domain)
        if wanted is None:
            return []
        if found.within(domain):
            return [[]]
        expand = _RULES.get(node.op)
        if expand is None:
            if node.op == "unknown":
                self.reason = "it depends on something that is not followed"
                return []
            return self._choose_operand(node, wanted, known)
        return expand(self, node, domain if domain.only_bits else wanted, known)

    # one rule for each operator

    def _signal(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        return [[(node, domain)]]

    def _slice(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        inner, low = node.args[0], node.low
        if domain.only_bits:
            found = bits(inner.width, domain.fixed << low, domain.value << low)
            return [[(inner, found)]] if found else []
        if node.high == inner.width - 1 and not domain.excluded and not domain.fixed:
            found = between(inner.width, domain.low << low, domain.high << low | mask(low))
            return [[(inner, found)]] if found else []
        return [[(node, exactly(node.width, v))] for v in self._values(node, domain, known)]

    def _concat(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        if domain.only_bits:
            literals: list[Literal] = []
            base = node.width
            for part in node.args:
                base -= part.width
                fixed = domain.fixed >> base & mask(part.width)
                if fixed:
                    found = bits(part.width, fixed, domain.value >> base & mask(part.width))
                    assert found is not None
                    literals.append((part, found))
            return [literals]
        head = node.args[0]
        rest = self.x.concat(node.args[1:])
        if domain.fixed:
            return [[(node, exactly(node.width, v))] for v in self._values(node, domain, known)]
        result: list[list[Literal]] = []
        low_head, high_head = domain.low >> rest.width, domain.high >> rest.width
        low_rest, high_rest = domain.low & mask(rest.width), domain.high & mask(rest.width)
        regions = [(low_head, high_head, low_rest, high_rest)] if low_head == high_head else []
        if not regions:
            regions = [(low_head, low_head, low_rest, mask(rest.width)), (high_head, high_head, 0, high_rest)]
            if high_head - low_head > 1:
                regions.insert(0, (low_head + 1, high_head - 1, 0, mask(rest.width)))
            if low_rest == 0 and high_rest == mask(rest.width):
                regions = [(low_head, high_head, 0, mask(rest.width))]
        for a, b, c, d in regions:
            excluded = [v for v in domain.excluded if a <= v >> rest.width <= b and c <= v & mask(rest.width) <= d]
            head_domain, rest_domain = between(head.width, a, b), between(rest.width, c, d)
            if head_domain is None or rest_domain is None:
                continue
            if not excluded:
                result.append([(head, head_domain), (rest, rest_domain)])
                continue
            heads = frozenset(v >> rest.width for v in excluded)
            without = build(head.width, a, b, 0, 0, heads)
            if without is not None:
                result.append([(head, without), (rest, rest_domain)])
            if len(heads) == 1:
                rests = frozenset(v & mask(rest.width) for v in excluded)
                without = build(rest.width, c, d, 0, 0, rests)
                if without is not None:
                    result.append([(head, head_domain), (rest, without)])
        return [[literal for literal in r if not literal[1].is_full] for r in result]

    def _ite(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        condition, then, other = node.args
        result: list[list[Literal]] = []
        for branch, wanted in ((then, TRUE), (other, FALSE)):
            if known.of(condition).meet(wanted) is None:
                continue
            found = known.of(branch)
            if found.meet(domain) is None:
                continue
            literals: list[Literal] = [] if known.of(condition).within(wanted) else [(condition, wanted)]
            if not found.within(domain):
                literals.append((branch, domain))
            result.append(literals)
        # where one branch needs nothing further it is the shorter way
        return sorted(result, key=len)

    def _not(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        return [[(node.args[0], domain.inverted())]]

    def _and(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        a, b = node.args
        if node.width == 1:
            if domain.low:
                return [[(a, TRUE), (b, TRUE)]]
            return [[(e, FALSE)] for e in (a, b) if known.of(e).has(0)]
        if not domain.only_bits:
            return [[(node, exactly(node.width, v))] for v in self._values(node, domain, known)]
        ones, zeros = domain.value, domain.fixed & ~domain.value
        known_a, known_b = known.of(a), known.of(b)
        zeros &= ~(known_a.fixed & ~known_a.value) & ~(known_b.fixed & ~known_b.value)
        both: list[Literal] = []
        if ones:
            both = [(e, found) for e in (a, b) if (found := bits(e.width, ones, ones)) is not None]
        # bits that must be 0: where one side is known to be 1 the other has to be 0, for the rest there is a choice
        forced_a, forced_b = zeros & known_b.value, zeros & known_a.value
        free = zeros & ~forced_a & ~forced_b
        result: list[list[Literal]] = []
        for to_a, to_b in ((free, 0), (0, free)) if free else ((0, 0),):
            literals = list(both)
            for e, wanted in ((a, forced_a | to_a), (b, forced_b | to_b)):
                if wanted:
                    found = bits(e.width, wanted, 0)
                    assert found is not None
                    literals.append((e, found))
            result.append(literals)
        return result

    def _or(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        a, b = node.args
        if node.width == 1:
            if not domain.low:
                return [[(a, FALSE), (b, FALSE)]]
            return [[(e, TRUE)] for e in (a, b) if known.of(e).has(1)]
        return [[(self.x.and_(self.x.not_(a), self.x.not_(b)), domain.inverted())]]

    def _xor(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        a, b = node.args
        if known.of(b).single is None:
            a, b = b, a
        value = known.of(b).single
        if value is not None and domain.only_bits:
            found = bits(a.width, domain.fixed, domain.value ^ value)
            return [[(a, found)]] if found else []
        result: list[list[Literal]] = []
        for v in self._values(node, domain, known):
            for w in self._values(b, known.of(b), known):
                result.append([(b, exactly(b.width, w)), (a, exactly(a.width, v ^ w))])
        return result[: 2 * MAX_CHOICES]

    def _eq(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        a, b = node.args
        known_a, known_b = known.of(a), known.of(b)
        if known_b.single is None:
            a, b, known_a, known_b = b, a, known_b, known_a
        single = known_b.single
        if domain.low:
            if single is not None:
                return [[(a, exactly(a.width, single))]]
            common = known_a.meet(known_b)
            if common is None:
                return []
            values = dict.fromkeys([*self._values(a, common, known), *self._values(b, common, known)])
            return [[(a, exactly(a.width, v)), (b, exactly(b.width, v))] for v in list(values)[:MAX_CHOICES]]
        if single is not None:
            other = other_than(a.width, single)
            return [[(a, other)]] if other else []
        result: list[list[Literal]] = []
        for p, q in ((a, b), (b, a)):
            for v in self._values(p, known.of(p), known)[:2]:
                other = other_than(q.width, v)
                if other:
                    result.append([(p, exactly(p.width, v)), (q, other)])
        return result

    def _less(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        a, b = node.args
        is_signed = node.op == "slt"
        low_a, high_a = _bounds(known.of(a), is_signed)
        low_b, high_b = _bounds(known.of(b), is_signed)
        width = a.width
        least, most = (-(1 << width - 1), (1 << width - 1) - 1) if is_signed else (0, mask(width))
        # a < b exactly if there is k with a <= k < b; a >= b exactly if there is k with b <= k <= a
        if domain.low:
            limits = dict.fromkeys((max(low_a, low_b - 1), min(high_b - 1, high_a), (low_a + high_b) // 2))
            pairs = [((a, least, k), (b, k + 1, most)) for k in limits if low_a <= k < high_b]
        else:
            limits = dict.fromkeys((max(low_b, low_a), min(high_a, high_b), (low_b + high_a) // 2))
            pairs = [((b, least, k), (a, k, most)) for k in limits if low_b <= k <= high_a]
        result: list[list[Literal]] = []
        for first, second in pairs:
            options: list[list[Literal]] = [[]]
            for e, low, high in (first, second):
                ranges = _unsigned_ranges(low, high, width) if is_signed else [(low, high)]
                found = [d for r in ranges if (d := between(width, *r)) is not None]
                found = [d for d in found if known.of(e).meet(d) is not None]
                options = [[*o, (e, d)] for o in options for d in found]
            result += options
        unique = {tuple((e.number, d) for e, d in r if not known.of(e).within(d)): r for r in result}
        return list(unique.values())[:MAX_CHOICES]

    def _redor(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        inner = node.args[0]
        found = other_than(inner.width, 0) if domain.low else exactly(inner.width, 0)
        return [[(inner, found)]] if found else []

    def _redand(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        inner = node.args[0]
        ones = mask(inner.width)
        found = exactly(inner.width, ones) if domain.low else other_than(inner.width, ones)
        return [[(inner, found)]] if found else []

    def _redxor(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        inner = node.args[0]
        inside = known.of(inner)
        values = [v for v in (*inside.samples(), inside.low ^ 1) if inside.has(v) and v.bit_count() & 1 == domain.low]
        return [[(inner, exactly(inner.width, v))] for v in dict.fromkeys(values)][:MAX_CHOICES]

    def _sext(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        inner = node.args[0]
        offset = (1 << node.width) - (1 << inner.width)
        top = 1 << inner.width - 1
        if domain.fixed and domain.single is None:
            values = self._values(node, domain, known)
            return [[(inner, exactly(inner.width, v & mask(inner.width)))] for v in values]
        result: list[list[Literal]] = []
        for low, high, shift in ((0, top - 1, 0), (offset + top, mask(node.width), offset)):
            part = build(node.width, max(low, domain.low), min(high, domain.high), 0, 0, domain.excluded)
            if part is not None:
                excluded = frozenset(v - shift for v in part.excluded)
                found = build(inner.width, part.low - shift, part.high - shift, 0, 0, excluded)
                if found is not None:
                    result.append([(inner, found)])
        return result

    def _add(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        a, b = node.args
        if node.op == "add" and known.of(b).single is None and known.of(a).single is not None:
            a, b = b, a
        single = known.of(b).single
        if single is not None:
            offset = -single if node.op == "add" else single
            return [[(a, d)] for d in shifted(domain, offset) if known.of(a).meet(d) is not None]
        if node.op == "sub" and known.of(a).single is not None:
            # a - b = v exactly if b = a - v = ~v + a + 1
            return [[(b, d)] for d in shifted(domain.inverted(), known.of(a).low + 1)]
        result: list[list[Literal]] = []
        for fixed, other in ((b, a), (a, b)):
            for v in self._values(fixed, known.of(fixed), known)[:2]:
                if node.op == "add" or fixed is b:
                    parts = shifted(domain, -v if node.op == "add" else v)
                else:
                    parts = shifted(domain.inverted(), v + 1)
                result += [[(fixed, exactly(fixed.width, v)), (other, d)] for d in parts]
        return result

    def _mul(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        a, b = node.args
        if known.of(b).single is None:
            a, b = b, a
        factor = known.of(b).single
        if factor is None:
            return self._choose_operand(node, domain, known)
        found: dict[int, None] = {}
        for v in (*domain.samples(), -(-domain.low // factor) * factor if factor else 0):
            if factor and domain.has(v) and v % factor == 0:
                found[v // factor] = None
        return [[(a, exactly(a.width, v))] for v in found if known.of(a).has(v)]

    def _udiv(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        a, b = node.args
        divisor = known.of(b).single
        if divisor is None or divisor == 0:
            return self._choose_operand(node, domain, known)
        if node.op == "udiv":
            values = [domain] if (not domain.excluded and not domain.fixed) or domain.single is not None else []
            ranges = [(d.low * divisor, d.high * divisor + divisor - 1) for d in values]
            ranges = ranges or [(v * divisor, v * divisor + divisor - 1) for v in domain.samples()]
        else:
            ranges = [(v + k * divisor, v + k * divisor) for v in domain.samples() if v < divisor for k in (0, 1)]
        return [[(a, d)] for r in ranges if (d := between(a.width, *r)) is not None and known.of(a).meet(d) is not None]

    def _choose_operand(self, node: Expression, domain: Domain, known: Evaluator) -> list[list[Literal]]:
        """Any other operator on two operands: fix one of them and see what the operator becomes."""
        a, b = node.args
        result: list[list[Literal]] = []
        for i, operand in ((1, b), (0, a)):
            inside = known.of(operand)
            if inside.single is not None:
                if operand.is_const:
                    continue
                values = [inside.low]
            else:
                values = self._values(operand, inside, known)
            for v in values:
                constant = self.x.const(v, operand.width)
                rest = self.x.arithmetic(node.op, *((a, constant) if i else (constant, b)))
                if rest.is_const and not domain.has(rest.value):
                    continue
                result.append([(operand, exactly(operand.width, v)), (rest, domain)])
            if result:
                return result
        return result

    def _values(self, node: Expression, domain: Domain, known: Evaluator) -> list[int]:
        """A few values of `domain` to try for `node`, the likeliest first."""
        found: dict[int, None] = {}
        inside = known.of(node)
        if not node.is_const and inside.single is None:
            found.update(dict.fromkeys(self._likely(node, known).samples()))
        found.update(dict.fromkeys(domain.samples()))
        return [v for v in found if domain.has(v) and inside.has(v)][:MAX_CHOICES]

    def _likely(self, node: Expression, known: Evaluator) -> Domain:
        """What is known of `node` if registers without a domain have the values after reset."""
        if node.signal is not None and node.signal.kind != "wire":
            return self.likely.get(node.signal) or known.of(node)
        evaluator = Evaluator({**self.likely, **known.domains}, self.driver_of)
        found = evaluator.of(node)
        self.work += evaluator.work
        return found


def _cost(literals: Sequence[Literal]) -> int:
    """Fewer literals first, and registers before inputs: what holds anyway needs no stimulus."""
    return sum(2 if e.signal is None or e.signal.kind == "input" else 1 for e, _ in literals)


def _bounds(domain: Domain, is_signed: bool) -> tuple[int, int]:
    if not is_signed:
        return domain.low, domain.high
    low, high = signed(domain.low, domain.width), signed(domain.high, domain.width)
    if low <= high and (domain.low ^ domain.high) >> (domain.width - 1) == 0:
        return low, high
    return -(1 << domain.width - 1), (1 << domain.width - 1) - 1


def _unsigned_ranges(low: int, high: int, width: int) -> list[tuple[int, int]]:
    """The unsigned ranges of the signed range low..high, the part that is not negative first."""
    size = 1 << width
    ranges = [(max(low, 0), high)] if high >= 0 else []
    if low < 0:
        ranges.append((low + size, min(high, -1) + size))
    return ranges


_RULES = {
    "signal": Solver._signal, "slice": Solver._slice, "concat": Solver._concat, "ite": Solver._ite,
    "not": Solver._not, "and": Solver._and, "or": Solver._or, "xor": Solver._xor, "eq": Solver._eq,
    "ult": Solver._less, "slt": Solver._less, "redor": Solver._redor, "redand": Solver._redand,
    "redxor": Solver._redxor, "sext": Solver._sext, "add": Solver._add, "sub": Solver._add, "mul": Solver._mul,
    "udiv": Solver._udiv, "umod": Solver._udiv,
}  # fmt: skip
"""Operators without a rule are tried with a fixed operand."""
