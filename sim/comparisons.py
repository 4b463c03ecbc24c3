"""Constants that a design compares its signals with: in conditions, case items, selections and ranges."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyslang
from pyslang import ast

from sim.slang import Elaboration

MOST_OF_A_MODULE = 1_000
"""Distinct comparisons kept of one module: tables of constants written as `case` have thousands, all alike."""

_OPERATORS = {
    ast.BinaryOperator.Equality: ("==", "=="),
    ast.BinaryOperator.CaseEquality: ("==", "=="),
    ast.BinaryOperator.WildcardEquality: ("==", "=="),
    ast.BinaryOperator.Inequality: ("!=", "!="),
    ast.BinaryOperator.CaseInequality: ("!=", "!="),
    ast.BinaryOperator.WildcardInequality: ("!=", "!="),
    ast.BinaryOperator.LessThan: ("<", ">"),
    ast.BinaryOperator.LessThanEqual: ("<=", ">="),
    ast.BinaryOperator.GreaterThan: (">", "<"),
    ast.BinaryOperator.GreaterThanEqual: (">=", "<="),
}
"""As written, and with the sides exchanged."""


@dataclass(frozen=True)
class Comparison:
    """`subject operator literal`, as the module `module` has it at `file:line`.

    `subject` is the source text of what is compared, `width` bits wide. `literal` is how the source writes the
    constant (a number, a parameter, a member of an enum), `value` its unsigned value in `width` bits (in as many as it
    needs, if the subject is narrower); None when it has bits that match anything. `kind` is comparison, case or
    range (both ends of a range are given, with `>=` and `<=`).
    """

    module: str
    subject: str
    operator: str
    literal: str
    value: int | None
    width: int
    kind: str
    file: str
    line: int


def comparisons(elaboration: Elaboration, most: int = MOST_OF_A_MODULE) -> tuple[tuple[Comparison, ...], int]:
    """Comparisons of signals with constants below the top instance, each once per module, in source order of the
    modules as they are met; and how many more there are beyond `most` of a module.

    Conditions that parameters decide, and those of loop variables, are no comparisons of the design.
    """
    found = _Comparisons(elaboration, most)
    top = elaboration.compilation.getRoot().topInstances[0]
    top.visit(found.visit)
    return tuple(found.kept), found.dropped


class _Comparisons:
    def __init__(self, elaboration: Elaboration, most: int) -> None:
        self.elaboration = elaboration
        self.most = most
        self.kept: list[Comparison] = []
        self.dropped = 0
        self._context = ast.EvalContext(elaboration.compilation.getRoot())
        self._seen: set[tuple[object, ...]] = set()
        self._bodies: set[tuple[object, ...]] = set()
        self._counts: dict[str, int] = {}
        self._module = ""
        self._loop_variables: frozenset[str] = frozenset()

    def visit(self, node: Any) -> ast.VisitAction:
        """One node of the elaborated tree; see pyslang's visitors."""
        match node:
            case ast.InstanceSymbol():
                return self._instance(node)
            case ast.GenerateBlockSymbol():
                return ast.VisitAction.Skip if node.isUninstantiated else ast.VisitAction.Advance
            case ast.ParameterSymbol() | ast.ImmediateAssertionStatement() | ast.ConcurrentAssertionStatement():
                return ast.VisitAction.Skip
            case ast.ForLoopStatement():
                # the loop's own condition tells nothing about the design
                outside = self._loop_variables
                self._loop_variables = outside | {v.name for v in node.loopVars}
                node.body.visit(self.visit)
                self._loop_variables = outside
                return ast.VisitAction.Skip
            case ast.BinaryExpression() if node.op in _OPERATORS:
                self._binary(node)
            case ast.InsideExpression():
                for item in node.rangeList:
                    self._item(node.left, item, "range" if isinstance(item, ast.ValueRangeExpression) else "comparison")
            case ast.CaseStatement():
                for group in node.items:
                    for item in group.expressions:
                        self._item(node.expr, item, "case")
            case _:
                pass
        return ast.VisitAction.Advance

    def _instance(self, node: ast.InstanceSymbol) -> ast.VisitAction:
        """Follow one instance of every module and set of parameters; connections belong to the module around it."""
        if not node.isModule:
            return ast.VisitAction.Skip
        outer, self._module = self._module, node.definition.name
        key = (self._module, *parameter_values(node))
        if key not in self._bodies:
            self._bodies.add(key)
            node.body.visit(self.visit)
        self._module = outer
        for connection in node.portConnections:
            if self._module and connection.expression is not None:
                connection.expression.visit(self.visit)
        return ast.VisitAction.Skip

    def _binary(self, node: ast.BinaryExpression) -> None:
        operator, exchanged = _OPERATORS[node.op]
        right = self._constant(node.right)
        left = self._constant(node.left)
        if right is not None and left is None:
            self._add(node.left, operator, node.right, right, "comparison")
        elif left is not None and right is None:
            self._add(node.right, exchanged, node.left, left, "comparison")

    def _item(self, subject: Any, item: Any, kind: str) -> None:
        if isinstance(item, ast.ValueRangeExpression):
            for side, operator in ((item.left, ">="), (item.right, "<=")):
                value = self._constant(side)
                if value is not None and self._constant(subject) is None:
                    self._add(subject, operator, side, value, "range")
            return
        value, selector = self._constant(item), self._constant(subject)
        if value is not None and selector is None:
            self._add(subject, "==", item, value, kind)

    def _constant(self, node: Any) -> pyslang.SVInt | None:
        """The value of a constant integer expression, None for anything else."""
        constant = node.constant or _named_constant(node)
        if constant is None and not any(True for _ in _variables(node)):
            constant = node.eval(self._context)
        value = getattr(constant, "value", None)
        return value if isinstance(value, pyslang.SVInt) else None

    def _add(self, subject: Any, operator: str, side: Any, value: pyslang.SVInt, kind: str) -> None:
        subject = _bare(subject)
        names = set(_variables(subject))
        if not names or names <= self._loop_variables:
            return
        width = subject.type.bitWidth
        number = None if value.hasUnknown else _unsigned(value, width)
        text = self.elaboration.source(subject)
        while text.startswith("(") and text.endswith(")") and _closes_last(text):
            text = text[1:-1].strip()
        key = (self._module, text, operator, number if number is not None else str(value))
        if key in self._seen:
            return
        self._seen.add(key)
        self._counts[self._module] = self._counts.get(self._module, 0) + 1
        if self._counts[self._module] > self.most:
            self.dropped += 1
            return
        file, line = self.elaboration.file_line(side.sourceRange.start)
        literal = self.elaboration.source(side)
        self.kept.append(Comparison(self._module, text, operator, literal, number, width, kind, file, line))


def parameter_values(instance: ast.InstanceSymbol) -> Iterator[str]:
    """The values of an instance's parameters as text: bodies with the same ones are the same."""
    for parameter in instance.body.parameters:
        value = parameter.value if isinstance(parameter, ast.ParameterSymbol) else parameter.targetType.type
        yield str(value)


def _named_constant(node: Any) -> Any:
    node = _bare(node)
    symbol = node.symbol if isinstance(node, ast.ValueExpressionBase) else None
    return symbol.value if isinstance(symbol, ast.ParameterSymbol | ast.EnumValueSymbol) else node.constant


def _bare(node: Any) -> Any:
    """An expression without the conversions that elaboration put around it."""
    while isinstance(node, ast.ConversionExpression) and node.isImplicit:
        node = node.operand
    return node


def _variables(node: Any) -> Iterator[str]:
    """Names of the variables and nets that an expression reads; calls count as reading something."""
    names: list[str] = []

    def visit(item: Any) -> ast.VisitAction:
        if isinstance(item, ast.ValueExpressionBase):
            if not isinstance(item.symbol, ast.ParameterSymbol | ast.EnumValueSymbol):
                names.append(item.symbol.name)
        elif isinstance(item, ast.CallExpression) and not item.isSystemCall:
            names.append(item.subroutineName)
        return ast.VisitAction.Advance

    node.visit(visit)
    return iter(names)


def _unsigned(value: pyslang.SVInt, width: int) -> int:
    """Negative constants as the bits that the subject has when it equals them."""
    number = int(value)
    return number & ((1 << max(width, 1)) - 1) if number < 0 else number


def _closes_last(text: str) -> bool:
    """Whether the parenthesis that opens the text is closed by its last character."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return i == len(text) - 1
    return False
