"""The sources of a probe build for FSM coverage, in a form in which Verilator sees more state machines.

Verilator's FSM detection looks for `always @(posedge ...) if (reset) ... else ...` where the condition is one variable;
with an active-low reset (`if (!rst_n)`) it finds nothing at all, neither states nor transitions. So the probe gives the
negated reset a name of its own. Lines stay what they are; columns behind the change shift.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyslang import ast, syntax

from sim.design import Design
from sim.slang import Elaboration, elaborate

_NEGATIONS = {"!": "!{}", "~": "|(~{})"}  # `if (~vector)` holds when any bit of it is 0
_HOMES = (syntax.ModuleDeclarationSyntax, syntax.GenerateBlockSyntax)  # where a declaration may stand


def with_named_resets(design: Design) -> Design:
    """The design with a wire for the condition of every clocked block that begins with `if (!name)` or `if (~name)`."""
    finder = _Resets(elaborate(design))
    sources = []
    for source in design.sources:
        content = source.text.encode()
        for start, end, new in sorted(finder.edits.get(source.path, ()), reverse=True):
            content = content[:start] + new.encode() + content[end:]
        sources.append(replace(source, content=content))
    return replace(design, sources=tuple(sources))


class _Resets:
    """The edits of each file: (first byte, byte behind the last, new text)."""

    def __init__(self, elaboration: Elaboration) -> None:
        self.edits: dict[str, list[tuple[int, int, str]]] = {}
        self._elaboration = elaboration
        self._found = 0
        elaboration.tree.root.visit(self._visit)

    def _visit(self, node: Any) -> ast.VisitAction:
        if isinstance(node, syntax.ProceduralBlockSyntax) and isinstance(node.parent, _HOMES):
            self._block(node)
            return ast.VisitAction.Skip
        return ast.VisitAction.Advance

    def _block(self, node: Any) -> None:
        if not isinstance(node.statement, syntax.TimingControlStatementSyntax) or "edge" not in str(
            node.statement.timingControl
        ):
            return
        statement = node.statement.statement
        while isinstance(statement, syntax.BlockStatementSyntax) and len(statement.items) == 1:
            statement = statement.items[0]
        if not isinstance(statement, syntax.ConditionalStatementSyntax):
            return
        conditions = statement.predicate.conditions
        condition = conditions[0].expr if len(conditions) == 1 else None
        while isinstance(condition, syntax.ParenthesizedExpressionSyntax):
            condition = condition.expression
        if not isinstance(condition, syntax.PrefixUnaryExpressionSyntax):
            return
        form = _NEGATIONS.get(condition.operatorToken.valueText)
        operand = condition.operand
        if form is None or not isinstance(operand, syntax.IdentifierNameSyntax):
            return
        block, span = node.sourceRange, condition.sourceRange
        manager = self._elaboration.manager
        if any(manager.isMacroLoc(place) for place in (block.start, span.start, span.end)):
            return
        self._found += 1
        wire = f"llm4cov_reset_{self._found}"
        edits = self.edits.setdefault(manager.getFileName(block.start), [])
        declared = form.format(operand.identifier.rawText.strip() + " ")
        edits.append((block.start.offset, block.start.offset, f"wire {wire} = {declared}; "))
        edits.append((span.start.offset, span.end.offset, wire))
