"""Runs a netlist cycle by cycle: its expressions compiled to one Python function, about 10 us a cycle for 60 lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sim.expressions import Expression, Signal, compute, mask

DriverOf = Callable[[Signal], "Expression | None"]
Values = tuple[int, ...]
MAX_INLINE = 400
"""Characters of source that a nested expression may have."""


class Interpreter:
    """`step(state, inputs)` gives the next state and the set of conditions (bit i for condition i) that hold now.

    States are values of `registers`, inputs of `inputs`, in their order. Values that the analysis does not follow are
    0; a combinational loop reads 0 where it closes.
    """

    def __init__(
        self,
        registers: Sequence[Signal],
        inputs: Sequence[Signal],
        conditions: Sequence[Sequence[tuple[Expression, bool]]],
        driver_of: DriverOf,
    ) -> None:
        self.registers = list(registers)
        self.inputs = list(inputs)
        self._driver_of = driver_of
        self._names: dict[int, str] = {}
        self._lines: list[str] = []
        self._open: set[int] = set()
        self._leaf = {s: f"r{i}" for i, s in enumerate(self.registers)}
        self._leaf |= {s: f"i{i}" for i, s in enumerate(self.inputs)}
        nexts = [d for s in self.registers if (d := driver_of(s)) is not None]
        self._uses: dict[int, int] = {}
        wanted = [e for path in conditions for e, _ in path]
        self._count([*nexts, *wanted])
        results = ", ".join(self._code(d) for d in nexts)
        tests: list[str] = []
        for i, path in enumerate(conditions):
            parts = [self._code(e) if holds else f"not {self._code(e)}" for e, holds in path]
            tests.append(f" if {' and '.join(parts) or '1'}: hits |= {1 << i}")
        head = [f" {', '.join(f'r{i}' for i in range(len(self.registers)))}, = state"] if self.registers else []
        head += [f" {', '.join(f'i{i}' for i in range(len(self.inputs)))}, = inputs"] if self.inputs else []
        body = [*head, *self._lines, " hits = 0", *tests, f" return ({results}{',' if results else ''}), hits"]
        scope: dict[str, object] = {"compute": compute}
        exec(compile("def step(state, inputs):\n" + "\n".join(body), "<netlist>", "exec"), scope)
        self.step: Callable[[Values, Values], tuple[Values, int]] = scope["step"]  # type: ignore[assignment]
        self.size = len(self._uses)

    def _children(self, node: Expression) -> tuple[Expression, ...]:
        if node.signal is not None and node.signal not in self._leaf:
            driver = self._driver_of(node.signal)
            return (driver,) if driver is not None else ()
        return node.args

    def _count(self, roots: Sequence[Expression]) -> None:
        stack = list(roots)
        while stack:
            node = stack.pop()
            seen = self._uses.get(node.number, 0)
            self._uses[node.number] = seen + 1
            if not seen:
                stack += self._children(node)

    def _code(self, root: Expression) -> str:
        """The name or source of a node; what is used more than once gets a line of its own."""
        stack = [root]
        while stack:
            node = stack[-1]
            if node.number in self._names:
                stack.pop()
                continue
            self._open.add(node.number)
            missing = [c for c in self._children(node) if c.number not in self._names and c.number not in self._open]
            if missing:
                stack += missing
                continue
            stack.pop()
            self._open.discard(node.number)
            source = self._source(node)
            if (self._uses.get(node.number, 2) > 1 and not source.isalnum()) or len(source) > MAX_INLINE:
                name = f"t{node.number}"
                self._lines.append(f" {name} = {source}")
                source = name
            self._names[node.number] = source
        return self._names[root.number]

    def _source(self, node: Expression) -> str:
        if node.signal is not None and node.signal in self._leaf:
            return self._leaf[node.signal]
        a = [self._names.get(c.number, "0") for c in self._children(node)]
        ones = mask(node.width)
        match node.op:
            case "const":
                return str(node.value)
            case "signal":
                return a[0] if a else "0"
            case "slice":
                shifted = f"{a[0]} >> {node.low}" if node.low else a[0]
                return f"({shifted} & {ones})" if node.high < node.args[0].width - 1 else f"({shifted})"
            case "concat":
                parts: list[str] = []
                low = node.width
                for child, code in zip(node.args, a, strict=True):
                    low -= child.width
                    if code != "0":
                        parts.append(f"{code} << {low}" if low else code)
                return f"({' | '.join(parts)})" if parts else "0"
            case "ite":
                return f"({a[1]} if {a[0]} else {a[2]})"
            case "not":
                return f"({a[0]} ^ {ones})"
            case "and" | "or" | "xor":
                return f"({a[0]} {_SYMBOLS[node.op]} {a[1]})"
            case "eq":
                return f"(1 if {a[0]} == {a[1]} else 0)"
            case "ult":
                return f"(1 if {a[0]} < {a[1]} else 0)"
            case "slt":
                top = 1 << node.args[0].width - 1
                return f"(1 if {a[0]} ^ {top} < {a[1]} ^ {top} else 0)"
            case "redor":
                return f"(1 if {a[0]} else 0)"
            case "redand":
                return f"(1 if {a[0]} == {mask(node.args[0].width)} else 0)"
            case "redxor":
                return f"({a[0]}.bit_count() & 1)" if not a[0].isdigit() else f"(({a[0]}).bit_count() & 1)"
            case "sext":
                top = 1 << node.args[0].width - 1
                return f"((({a[0]} ^ {top}) - {top}) & {ones})"
            case "add" | "sub" | "mul":
                return f"(({a[0]} {_SYMBOLS[node.op]} {a[1]}) & {ones})"
            case "unknown":
                return "0"
            case _:
                return f"compute({node.op!r}, {a[0]}, {a[1]}, {node.width}, {node.args[1].width})"


_SYMBOLS = {"and": "&", "or": "|", "xor": "^", "add": "+", "sub": "-", "mul": "*"}
