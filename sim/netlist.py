"""A design flattened into signals with drivers: inputs, registers with next values, wires with values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyslang import ast

from sim.expressions import Expression, Expressions, Signal, mask
from sim.frames import Condition, Frame, Memory, UnsupportedError
from sim.processes import BranchPoint, ConstantBranch, Processes
from sim.slang import Elaboration


@dataclass(eq=False)
class ClockedProcess:
    """A process with edges in its sensitivity list. `events` are (is rising, expression); `first_tests` the
    expressions that its first `if` depends on; `registers` is how many signals it assigns."""

    events: list[tuple[bool, Expression]]
    tests: Expression | None
    registers: list[Signal]
    points: list[BranchPoint]


@dataclass(eq=False)
class Netlist:
    """The flattened design. `ports` are the top's ports in order, with the signals inside."""

    x: Expressions
    top: str
    ports: list[tuple[ast.PortSymbol, Signal | Memory]]
    signals: list[Signal]
    processes: list[ClockedProcess]
    points: list[BranchPoint]
    constant_branches: list[ConstantBranch]
    hierarchy: list[tuple[str, str]]
    names: dict[str, Signal | Memory] = field(default_factory=lambda: {})
    lowest: dict[str, int] = field(default_factory=lambda: {})
    """Index of the lowest bit of variables whose range does not start at 0."""


class _Builder(Processes):
    def __init__(self, elaboration: Elaboration) -> None:
        super().__init__(elaboration)
        self.clocked: list[ClockedProcess] = []
        self.hierarchy: list[tuple[str, str]] = []
        self.parts: dict[Signal, list[tuple[int, Expression]]] = {}

    # structure

    def instance_of(self, symbol: ast.InstanceSymbol) -> None:
        """Add one instance and everything below it."""
        path = symbol.hierarchicalPath
        if not symbol.isModule:
            return
        self.hierarchy.append((path, symbol.definition.name))
        self.members(symbol.body, path)

    def members(self, scope: Any, path: str) -> None:
        for member in scope:
            self.instance = path
            match member:
                case ast.InstanceSymbol():
                    self.connections(member)
                    self.instance_of(member)
                case ast.InstanceArraySymbol():
                    self.members(member, path)
                case ast.GenerateBlockSymbol():
                    if not member.isUninstantiated:
                        self.members(member, path)
                case ast.GenerateBlockArraySymbol():
                    for entry in member.entries:
                        self.members(entry, path)
                case ast.ContinuousAssignSymbol():
                    self.continuous(member.assignment)
                case ast.ProceduralBlockSymbol():
                    self.process(member)
                case ast.NetSymbol() | ast.VariableSymbol():
                    self.declaration(member)
                case ast.PrimitiveInstanceSymbol():
                    self.primitive(member)
                case _:
                    pass

    def declaration(self, symbol: Any) -> None:
        found = self.lookup(symbol)
        initializer = symbol.initializer
        if initializer is None:
            return
        frame = Frame()
        try:
            value = self.lower(initializer, frame)
        except UnsupportedError as error:
            self.unknown(found, str(error))
            return
        if isinstance(symbol, ast.NetSymbol) and isinstance(found, Signal):
            self.drive(found, mask(found.width), value)
        elif isinstance(found, Signal) and value.is_const:
            found.initial = value.value

    def unknown(self, found: Signal | Memory, reason: str) -> None:
        for signal in found.elements if isinstance(found, Memory) else (found,):
            signal.reason = reason
            self.drive(signal, mask(signal.width), self.x.unknown(signal.width))

    def connections(self, instance: ast.InstanceSymbol) -> None:
        """Inputs of an instance are wires driven by the parent's expression, outputs drive the parent's targets."""
        for connection in instance.portConnections:
            port, expression = connection.port, connection.expression
            if not isinstance(port, ast.PortSymbol) or port.internalSymbol is None:
                continue
            inner = self.lookup(port.internalSymbol)
            frame = Frame()
            try:
                if port.direction == ast.ArgumentDirection.In:
                    if expression is not None:
                        self.assign_symbol(inner, self.lower(expression, frame), frame)
                    elif port.initializer is not None:
                        self.assign_symbol(inner, self.lower(port.initializer, frame), frame)
                elif expression is not None and port.direction == ast.ArgumentDirection.Out:
                    target = expression.left if isinstance(expression, ast.AssignmentExpression) else expression
                    value = self.value_of(inner)
                    self.assign(target, self.x.zext(value, target.type.bitWidth), frame, nonblocking=False)
                elif port.direction == ast.ArgumentDirection.InOut:
                    self.unknown(inner, f"{port.name} is inout")
            except UnsupportedError as error:
                if port.direction == ast.ArgumentDirection.In:
                    self.unknown(inner, str(error))
                continue
            self.flush(frame)

    def value_of(self, found: Signal | Memory) -> Expression:
        if isinstance(found, Memory):
            return self.x.concat([self.x.signal(s) for s in found.elements])
        return self.x.signal(found)

    def assign_symbol(self, found: Signal | Memory, value: Expression, frame: Frame) -> None:
        high = value.width
        for signal in found.elements if isinstance(found, Memory) else (found,):
            width = min(signal.width, high)
            frame.values[signal] = self.x.zext(self.x.slice(value, high - 1, high - width), signal.width)
            frame.written[signal] = mask(signal.width)
            high -= width

    def continuous(self, assignment: Any) -> None:
        if not isinstance(assignment, ast.AssignmentExpression):
            return  # pyslang could not make sense of it: what it drives stays unknown
        frame = Frame()
        self.clock = ""
        self.execute_expression(assignment, frame)
        self.flush(frame)

    def execute_expression(self, assignment: Any, frame: Frame) -> None:
        try:
            self.lower(assignment, frame)
        except UnsupportedError as error:
            for signal in self._assigned(assignment.left):
                signal.reason = str(error)
                frame.values[signal] = self.x.unknown(signal.width)
                frame.written[signal] = mask(signal.width)

    def primitive(self, symbol: ast.PrimitiveInstanceSymbol) -> None:
        """Gates: and, or, xor and their negations, buf, not; anything else is unknown."""
        ports = list(symbol.portConnections)
        if not ports:
            return
        frame = Frame()
        output = ports[0].left if isinstance(ports[0], ast.AssignmentExpression) else ports[0]
        name = symbol.primitiveType.name
        try:
            combine = {"and": self.x.and_, "nand": self.x.and_, "or": self.x.or_, "nor": self.x.or_,
                       "xor": self.x.xor, "xnor": self.x.xor, "buf": None, "not": None}  # fmt: skip
            if name not in combine:
                raise UnsupportedError(f"the primitive {name} is not followed")
            inputs = [self.lower(p, frame) for p in ports[1:]]
            value = inputs[0]
            for other in inputs[1:]:
                value = combine[name](value, other)  # type: ignore[misc]
            if name in ("nand", "nor", "xnor", "not"):
                value = self.x.not_(value)
            self.assign(output, value, frame, nonblocking=False)
        except UnsupportedError as error:
            for signal in self._assigned(output):
                signal.reason = str(error)
                frame.values[signal] = self.x.unknown(signal.width)
                frame.written[signal] = mask(signal.width)
        self.flush(frame)

    # processes

    def process(self, symbol: ast.ProceduralBlockSymbol) -> None:
        frame = Frame()
        kind = ast.ProceduralBlockKind
        body = symbol.body
        if symbol.procedureKind in (kind.Initial, kind.Final):
            self.clock = ""
            self.note_block(symbol, frame)
            self.execute(body, frame)
            for signal, value in {**frame.values, **frame.following}.items():
                if value.is_const:
                    signal.initial = value.value
            return
        events: list[tuple[bool, Expression]] = []
        if isinstance(body, ast.TimedStatement):
            events = self.edges(body.timing, frame)
            body = body.stmt
        before = set(self.points)
        self.first_test = None
        self.clock = "?" if events else ""
        self.note_block(symbol, frame)
        self.execute(body, frame)
        self.clock = ""
        if not events:
            self.latches(frame)
            self.flush(frame)
            return
        added = [p for key, p in self.points.items() if key not in before]
        registers: list[Signal] = []
        for signal, bits in frame.written.items():
            following = frame.following.get(signal, frame.values.get(signal))
            if following is not None:
                signal.kind = "register"
                registers.append(signal)
                self.drive(signal, bits, following)
        self.clocked.append(ClockedProcess(events, self.first_test, registers, added))

    def edges(self, timing: Any, frame: Frame) -> list[tuple[bool, Expression]]:
        controls = timing.events if isinstance(timing, ast.EventListControl) else [timing]
        found: list[tuple[bool, Expression]] = []
        for control in controls:
            if isinstance(control, ast.SignalEventControl) and control.edge != ast.EdgeKind.None_:  # type: ignore[attr-defined]
                expression = self.x.slice(self.lower(control.expr, frame), 0, 0)
                found.append((control.edge != ast.EdgeKind.NegEdge, expression))
        return found

    def latches(self, frame: Frame) -> None:
        """A combinational process that keeps old values makes a latch, which is not followed."""
        for signal, value in frame.values.items():
            if signal in frame.written and _mentions(value, signal, frame.written[signal]):
                signal.reason = f"{signal.name} is a latch or a combinational loop"
                frame.values[signal] = self.x.unknown(signal.width)

    # drivers

    def flush(self, frame: Frame) -> None:
        for values in (frame.values, frame.following):
            for signal, value in values.items():
                if signal in frame.written:
                    self.drive(signal, frame.written[signal], value)

    def drive(self, signal: Signal, bits: int, value: Expression) -> None:
        self.parts.setdefault(signal, []).append((bits, value))

    def finish(self) -> None:
        """Put the parts of every driver together; what nothing drives keeps its initial value."""
        for signal, parts in self.parts.items():
            hold = self.x.signal(signal) if signal.kind == "register" else self.x.const(0, signal.width)
            if signal.kind != "register":
                signal.kind = "wire"
            everything = mask(signal.width)
            value = hold
            for bits, part in parts:
                value = part if bits == everything else self._overlay(value, part, bits)
            signal.driver = value
        for signal in self.signals:
            if signal not in self.parts and signal.kind == "unknown":
                signal.kind = "wire"
                signal.driver = signal.driver or self.x.const(signal.initial, signal.width)

    def _overlay(self, base: Expression, part: Expression, bits: int) -> Expression:
        low = 0
        while bits >> low:
            while not bits >> low & 1:
                low += 1
            high = low
            while bits >> (high + 1) & 1:
                high += 1
            base = self.x.replace_bits(base, high, low, self.x.slice(part, high, low))
            low = high + 1
        return base


def _mentions(root: Expression, signal: Signal, bits: int) -> bool:
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if node.number in seen:
            continue
        seen.add(node.number)
        if node.op == "slice" and node.args[0].signal is signal:
            if mask(node.width) << node.low & bits:
                return True
            continue
        if node.signal is signal:
            return bits == mask(signal.width)
        stack += node.args
    return False


def flatten(elaboration: Elaboration) -> Netlist:
    """Flatten the elaborated design below its top instance."""
    top = elaboration.compilation.getRoot().topInstances[0]
    builder = _Builder(elaboration)
    ports: list[tuple[ast.PortSymbol, Signal | Memory]] = []
    for port in top.body.portList:
        if not isinstance(port, ast.PortSymbol) or port.internalSymbol is None:
            continue
        found = builder.lookup(port.internalSymbol)
        ports.append((port, found))
        for signal in found.elements if isinstance(found, Memory) else (found,):
            if port.direction == ast.ArgumentDirection.In:
                signal.kind = "input"
            elif port.direction != ast.ArgumentDirection.Out:
                builder.unknown(signal, f"{port.name} is {port.direction.name.lower()}")
    builder.instance_of(top)
    for signal in [s for s in builder.parts if s.kind == "input"]:
        del builder.parts[signal]
    builder.finish()
    return Netlist(
        builder.x, top.name, ports, builder.signals, builder.clocked, list(builder.points.values()),
        builder.constant_branches, builder.hierarchy, builder.names, builder.lowest,
    )  # fmt: skip


def path_texts(path: tuple[Condition, ...]) -> tuple[str, ...]:
    """The source texts of a path, outermost first."""
    return tuple(c.text for c in path if c.text)
