"""Follows processes symbolically: what they leave in variables, and the conditions of every branch on the way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pyslang import ast, syntax

from sim.expressions import Expression, Signal
from sim.frames import Condition, Frame, Memory, UnsupportedError
from sim.slang import Elaboration
from sim.targets import Targets

MAX_STATEMENTS = 50_000
MAX_UNROLL = 1024
MAX_ALTERNATIVES = 16
MAX_CALL_DEPTH = 8


@dataclass(eq=False)
class BranchPoint:
    """A place where the simulator counts. `paths` are alternative conjunctions: loop passes, generate blocks, calls.

    `clock` names the clock signal of the process, empty for combinational ones. A point that never counts has no
    paths, only `never`, the conditions one of which is false, and a reason.
    """

    file: str
    line: int
    column: int
    what: str
    instance: str
    paths: list[tuple[Condition, ...]] = field(default_factory=lambda: [])
    clock: str = ""
    reason: str = ""
    never: tuple[Condition, ...] = ()


@dataclass(eq=False)
class ConstantBranch:
    """An `if` of a clocked process whose branch only assigns constants: a possible synchronous reset."""

    expression: Expression
    wanted: bool
    first: bool
    registers: int


class Processes(Targets):
    """Follows statements. One object per design; `points` collects the branches of all instances."""

    def __init__(self, elaboration: Elaboration) -> None:
        super().__init__(elaboration)
        self.points: dict[tuple[object, ...], BranchPoint] = {}
        self.constant_branches: list[ConstantBranch] = []
        self.instance = ""
        self.clock = ""
        self.first_test: Expression | None = None
        self._statements = 0
        self._returned = Signal("$return", 1)
        self._broken = Signal("$break", 1)
        self._continued = Signal("$continue", 1)
        self._execute: dict[type, Any] = {
            ast.BlockStatement: lambda s, f: self.execute(s.body, f),
            ast.StatementList: self._list,
            ast.ExpressionStatement: self._expression,
            ast.ConditionalStatement: self._if,
            ast.CaseStatement: self._case,
            ast.ForLoopStatement: self._for,
            ast.RepeatLoopStatement: self._repeat,
            ast.WhileLoopStatement: self._while,
            ast.VariableDeclStatement: self._declaration,
            ast.ReturnStatement: self._return,
            ast.BreakStatement: lambda s, f: self._leave(f, self._broken),
            ast.ContinueStatement: lambda s, f: self._leave(f, self._continued),
            ast.EmptyStatement: lambda s, f: None,
            ast.ImmediateAssertionStatement: lambda s, f: None,
            ast.ConcurrentAssertionStatement: lambda s, f: None,
        }
        self._results: list[Signal | None] = []

    # branch points

    def record(self, node: Any, kind: str, frame: Frame, extra: Condition) -> None:
        """Note that `node`'s branch `kind` is taken under the frame's path and `extra`."""
        place = node.syntax
        while isinstance(place, syntax.ParenthesizedExpressionSyntax):
            place = place.expression
        if isinstance(place, syntax.ConditionalExpressionSyntax):
            place = place.left
        self._note(place.sourceRange.start, kind, frame, extra)

    def note_block(self, node: Any, frame: Frame) -> None:
        """Note a block that the simulator counts as a line: an always or initial block, a loop body, a function."""
        if node.syntax is not None:
            self._note(node.syntax.sourceRange.start, "block", frame, None)

    def _note(self, location: Any, kind: str, frame: Frame, extra: Condition | None) -> None:
        manager = self.elaboration.manager
        location = manager.getFullyExpandedLoc(location)
        key = (self.instance, location.buffer, location.offset, kind)
        point = self.points.get(key)
        if point is None:
            file, line = self.elaboration.file_line(location)
            column = manager.getColumnNumber(location)
            point = self.points[key] = BranchPoint(file, line, column, kind, self.instance, clock=self.clock)
        path = frame.path if extra is None else (*frame.path, extra)
        false = next((c for c in path if c.expression.is_const and bool(c.expression.value) != c.wanted), None)
        if false is not None:
            point.reason = point.reason or f"`{false.text}` never holds with these parameters"
            point.never = path
            return
        if len(point.paths) < MAX_ALTERNATIVES:
            point.paths.append(path)

    # statements

    def execute(self, node: Any, frame: Frame) -> None:
        """Follow one statement. What is not followed leaves unknown values behind."""
        self._statements += 1
        run = self._execute.get(type(node))
        if run is None or self._statements > MAX_STATEMENTS:
            self._forget(node, frame)
            return
        try:
            run(node, frame)
        except UnsupportedError as error:
            self._forget(node, frame, str(error))

    def _forget(self, node: Any, frame: Frame, reason: str = "") -> None:
        """Everything that `node` may assign becomes unknown."""
        reason = reason or f"{type(node).__name__.removesuffix('Statement')} statements are not followed"

        def visit(item: Any) -> ast.VisitAction:
            if isinstance(item, ast.AssignmentExpression):
                for signal in self._assigned(item.left):
                    signal.reason = reason
                    unknown = self.x.unknown(signal.width)
                    (frame.following if item.isNonBlocking else frame.values)[signal] = unknown
                    frame.written[signal] = (1 << signal.width) - 1
            return ast.VisitAction.Advance

        node.visit(visit)

    def _assigned(self, target: Any) -> Iterable[Signal]:
        while not isinstance(target, ast.ValueExpressionBase):
            if isinstance(target, ast.ConcatenationExpression):
                for part in target.operands:
                    yield from self._assigned(part)
                return
            target = getattr(target, "value", None) or getattr(target, "operand", None)
            if target is None:
                return
        if isinstance(target.symbol, ast.VariableSymbol | ast.NetSymbol):
            found = self.lookup(target.symbol)
            yield from found.elements if isinstance(found, Memory) else (found,)

    def _list(self, node: ast.StatementList, frame: Frame) -> None:
        for statement in node.list:
            left = frame.left
            if left is None or left is self.false:
                self.execute(statement, frame)
            elif left is not self.true:
                stay = frame.copy()
                stay.path = (*frame.path, Condition(left, False, ""))
                self.execute(statement, stay)
                self._merge(frame, left, frame.copy(), stay)

    def _expression(self, node: ast.ExpressionStatement, frame: Frame) -> None:
        expression = node.expr
        if isinstance(expression, ast.CallExpression) and expression.isSystemCall:
            return  # $display and the like change nothing that is followed
        self.lower(expression, frame)

    def _if(self, node: ast.ConditionalStatement, frame: Frame) -> None:
        if len(node.conditions) != 1 or node.conditions[0].pattern is not None:
            raise UnsupportedError("pattern conditions are not followed")
        test = node.conditions[0].expr
        condition = self.condition(test, frame)
        if self.first_test is None and not frame.path:
            self.first_test = condition
        text = self.elaboration.source(test)
        chain = isinstance(node.ifFalse, ast.ConditionalStatement)
        holds = Condition(condition, True, text)
        fails = Condition(condition, False, f"!({text})")
        self.record(node, "elsif" if chain else "if", frame, holds)
        if not chain:
            self.record(node, "else", frame, fails)
        then, other = frame.copy(), frame.copy()
        then.path, other.path = (*frame.path, holds), (*frame.path, fails)
        self._branch(node.ifTrue, then, dead=condition is self.false)
        if self.clock and condition is not self.false:
            self._note_constants(condition, frame, then)
        if node.ifFalse is not None:
            self._branch(node.ifFalse, other, dead=condition is self.true)
        self._merge(frame, condition, then, other)

    def _branch(self, node: Any, frame: Frame, dead: bool) -> None:
        """Follow a branch. One that parameters rule out is followed for its points alone: the simulator counts them."""
        if dead:
            frame = frame.copy()
            frame.written = {}
        self.execute(node, frame)

    def _note_constants(self, condition: Expression, before: Frame, after: Frame) -> None:
        if before.path:
            return
        changed = [
            value
            for old, new in ((before.values, after.values), (before.following, after.following))
            for signal, value in new.items()
            if old.get(signal) is not value
        ]
        if changed and all(value.is_const for value in changed):
            first = not before.values and not before.following
            self.constant_branches.append(ConstantBranch(condition, True, first, len(changed)))

    def _case(self, node: ast.CaseStatement, frame: Frame) -> None:
        wild = {
            ast.CaseStatementCondition.Normal: "",
            ast.CaseStatementCondition.WildcardJustZ: "z",
            ast.CaseStatementCondition.WildcardXOrZ: "xz",
            ast.CaseStatementCondition.Inside: "xz",
        }[node.condition]
        selector = self.lower(node.expr, frame)
        if node.condition == ast.CaseStatementCondition.Inside:
            raise UnsupportedError("case inside is not followed")
        selector_text = self.elaboration.source(node.expr)
        items = node.syntax.items  # type: ignore[attr-defined]
        arms = [s for s in items if isinstance(s, syntax.StandardCaseItemSyntax)]
        default = next((s for s in items if isinstance(s, syntax.DefaultCaseItemSyntax)), None)
        earlier: list[Condition] = []
        branches: list[tuple[Expression, Frame]] = []
        disjoint = True
        for item, arm in zip(node.items, arms, strict=True):
            tests = [self.matches(selector, e, wild, frame) for e in item.expressions]
            texts = [self.elaboration.text(e) for e in arm.expressions if isinstance(e, syntax.SyntaxNode)]
            chosen = self.false
            for test in tests:
                chosen = self.x.or_(chosen, test)
            if selector.is_const and selector.width == 1:  # case (1'b1): the arms are the conditions
                text = " || ".join(texts)
            else:
                text = f"{selector_text} == {' | '.join(texts)}"
            # arms that compare with different constants exclude each other: earlier ones need not be mentioned
            disjoint = disjoint and all(_is_constant_test(t, selector) for t in tests)
            before = () if disjoint else tuple(earlier)
            holds = Condition(chosen, True, text)
            inner = frame.copy()
            inner.path = (*frame.path, *before, holds)
            outer = frame.path
            frame.path = (*outer, *before)
            self._note(arm.colon.location, "case", frame, holds)
            frame.path = outer
            earlier.append(Condition(chosen, False, f"!({text})"))
            self._branch(item.stmt, inner, dead=chosen is self.false)
            branches.append((chosen, inner))
        rest = frame.copy()
        rest.path = (*frame.path, *earlier)
        if default is not None:
            rest.path = (*rest.path, Condition(self.true, True, f"{selector_text}: default"))
            self._note(default.defaultKeyword.location, "case", rest, None)
            self.execute(node.defaultCase, rest)
        for chosen, inner in reversed(branches):
            self._merge(rest, chosen, inner, rest.copy())
        frame.values, frame.following, frame.left = rest.values, rest.following, rest.left

    def _merge(self, into: Frame, condition: Expression, then: Frame, other: Frame) -> None:
        """Leave in `into` what `then` has where the condition holds and what `other` has where it does not."""
        for name in ("values", "following"):
            a, b = getattr(then, name), getattr(other, name)
            merged: dict[Signal, Expression] = {}
            for signal in {**a, **b}:
                x, y = a.get(signal), b.get(signal)
                old = self.x.signal(signal) if x is None or y is None else None
                merged[signal] = self.x.ite(condition, x or old, y or old)  # type: ignore[arg-type]
            setattr(into, name, merged)
        a, b = then.left or self.false, other.left or self.false
        left = self.x.ite(condition, a, b)
        into.left = None if left is self.false else left

    # loops and calls

    def _for(self, node: ast.ForLoopStatement, frame: Frame) -> None:
        for variable in node.loopVars:
            self._initialise(variable, frame)
        for expression in node.initializers:
            self.lower(expression, frame)
        for _ in range(MAX_UNROLL):
            if node.stopExpr is not None:
                condition = self.condition(node.stopExpr, frame)
                if not condition.is_const:
                    raise UnsupportedError("a loop whose length depends on signals is not followed")
                if not condition.value:
                    return self._after_loop(frame)
            self._pass(node, frame)
            for step in node.steps:
                self.lower(step, frame)
            if frame.left is self.true:
                return self._after_loop(frame)
        raise UnsupportedError(f"a loop of more than {MAX_UNROLL} passes is not followed")

    def _pass(self, node: Any, frame: Frame) -> None:
        self.note_block(node, frame)
        self.execute(node.body, frame)
        if frame.left is not None and self._continued in frame.values:
            del frame.values[self._continued]
            self._update_left(frame)

    def _after_loop(self, frame: Frame) -> None:
        if frame.left is not None:
            frame.values.pop(self._broken, None)
            self._update_left(frame)

    def _repeat(self, node: ast.RepeatLoopStatement, frame: Frame) -> None:
        count = self.lower(node.count, frame)
        if not count.is_const or count.value > MAX_UNROLL:
            raise UnsupportedError("a loop whose length depends on signals is not followed")
        for _ in range(count.value):
            self._pass(node, frame)
        self._after_loop(frame)

    def _while(self, node: ast.WhileLoopStatement, frame: Frame) -> None:
        for _ in range(MAX_UNROLL):
            condition = self.condition(node.cond, frame)
            if not condition.is_const:
                raise UnsupportedError("a loop whose length depends on signals is not followed")
            if not condition.value:
                return self._after_loop(frame)
            self._pass(node, frame)
        raise UnsupportedError(f"a loop of more than {MAX_UNROLL} passes is not followed")

    def _declaration(self, node: ast.VariableDeclStatement, frame: Frame) -> None:
        self._initialise(node.symbol, frame)

    def _initialise(self, symbol: ast.VariableSymbol, frame: Frame) -> None:
        found = self.lookup(symbol)
        if isinstance(found, Signal) and symbol.initializer is not None:
            frame.values[found] = self.lower(symbol.initializer, frame)

    def _leave(self, frame: Frame, flag: Signal) -> None:
        frame.values[flag] = self.true
        frame.left = self.true

    def _update_left(self, frame: Frame) -> None:
        left = self.false
        for flag in (self._returned, self._broken, self._continued):
            found = frame.values.get(flag)
            if found is not None:
                left = self.x.or_(left, self.x.substitute(found, {flag: self.false}, {}))
        frame.left = None if left is self.false else left

    def _return(self, node: ast.ReturnStatement, frame: Frame) -> None:
        result = self._results[-1] if self._results else None
        if node.expr is not None and result is not None:
            frame.values[result] = self.lower(node.expr, frame)
        self._leave(frame, self._returned)

    def call(self, node: ast.CallExpression, frame: Frame) -> Expression:
        """Follow a function or task with the arguments bound to its formals."""
        routine = node.subroutine
        if not isinstance(routine, ast.SubroutineSymbol) or len(self._results) >= MAX_CALL_DEPTH:
            raise UnsupportedError(f"the call of {node.subroutineName} is not followed")
        formals = list(routine.arguments)
        outputs: list[tuple[Any, Signal]] = []
        bound: dict[Signal, Expression] = {}
        for formal, actual in zip(formals, node.arguments, strict=True):
            signal = self.lookup(formal)
            if isinstance(signal, Memory):
                raise UnsupportedError("unpacked arrays as arguments are not followed")
            if isinstance(actual, ast.AssignmentExpression):
                outputs.append((actual.left, signal))
                if formal.direction == ast.ArgumentDirection.InOut:
                    bound[signal] = self.x.zext(self.lower(actual.left, frame), signal.width)
            else:
                bound[signal] = self.lower(actual, frame)
        frame.values.update(bound)
        result_symbol = routine.returnValVar
        result = self.lookup(result_symbol) if result_symbol is not None else None
        if isinstance(result, Memory):
            raise UnsupportedError("functions that return unpacked arrays are not followed")
        saved_left = frame.left
        saved_returned = frame.values.pop(self._returned, None)
        frame.left = None
        if result is not None:
            frame.values[result] = self.x.const(0, result.width)
        self._results.append(result)
        try:
            self.note_block(routine, frame)
            self.execute(routine.body, frame)
        finally:
            self._results.pop()
            frame.values.pop(self._returned, None)
            if saved_returned is not None:
                frame.values[self._returned] = saved_returned
            frame.left = saved_left
        value = self.read(result, frame) if result is not None else self.false
        for target, signal in outputs:
            self.assign(target, self.read(signal, frame), frame, nonblocking=False)
        for signal in (*bound, *(signal for _, signal in outputs), *((result,) if result else ())):
            frame.values.pop(signal, None)
            frame.written.pop(signal, None)
        return value


def _is_constant_test(test: Expression, selector: Expression) -> bool:
    """Whether the test is `selector == constant` (or one bit of it), so that two different ones exclude each other."""
    if selector.is_const:
        return False
    if test.op == "eq":
        return test.args[1].is_const and test.args[0] is _strip(selector)
    return test.is_const or (selector.width == 1 and test.op in ("signal", "not", "slice"))


def _strip(selector: Expression) -> Expression:
    if selector.op == "concat" and selector.args[0].is_const and len(selector.args) == 2:
        return selector.args[1]
    return selector
