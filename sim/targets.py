"""Assignments to variables, and to the bits, fields and elements that a target names."""

from __future__ import annotations

from typing import Any

from pyslang import ast

from sim.expressions import Expression, Signal, mask
from sim.frames import Frame, Memory, UnsupportedError
from sim.lowering import MAX_ELEMENTS, Lowering, positions_of

Target = tuple[Expression | None, Signal, int, int]
"""Condition (None: always), signal, lowest bit, width."""


class Targets(Lowering):
    """Adds assignments to the lowering of expressions."""

    def assign(self, target: Any, value: Expression, frame: Frame, nonblocking: bool) -> None:
        """Assign `value` to the source expression `target`."""
        while isinstance(target, ast.ConversionExpression):
            target = target.operand
        if isinstance(target, ast.ConcatenationExpression):
            high = value.width
            for part in target.operands:
                width = part.type.bitWidth
                self.assign(part, self.x.slice(value, high - 1, high - width), frame, nonblocking)
                high -= width
            return
        if isinstance(target, ast.ValueExpressionBase):
            found = self.lookup(target.symbol)
            if isinstance(found, Memory):
                high = value.width
                for signal in found.elements:
                    high -= signal.width
                    part = self.x.slice(value, high + signal.width - 1, high)
                    self._write((None, signal, 0, signal.width), part, frame, nonblocking)
                return
        for place in self.targets(target, frame):
            self._write(place, value, frame, nonblocking)

    def targets(self, node: Any, frame: Frame) -> list[Target]:
        """The bits that an assignment to `node` may change."""
        width = node.type.bitWidth
        if isinstance(node, ast.ValueExpressionBase):
            found = self.lookup(node.symbol)
            if isinstance(found, Memory):
                raise UnsupportedError("a select over several elements of an array is not followed")
            return [(None, found, 0, found.width)]
        if not isinstance(node, ast.ElementSelectExpression | ast.RangeSelectExpression | ast.MemberAccessExpression):
            raise UnsupportedError("this assignment target is not followed")
        base = node.value
        if isinstance(node, ast.ElementSelectExpression) and isinstance(base, ast.ValueExpressionBase):
            found = self.lookup(base.symbol)
            if isinstance(found, Memory):
                return self._element_targets(found, self.lower(node.selector, frame))
        start = self._offset(node, frame)
        result: list[Target] = []
        for condition, signal, low, base_width in self.targets(base, frame):
            if isinstance(start, int):
                if 0 <= start < base_width:
                    result.append((condition, signal, low + start, min(width, base_width - start)))
                continue
            positions = list(positions_of(start, base_width, width))
            if len(positions) > MAX_ELEMENTS:
                raise UnsupportedError(f"a write to one of {len(positions)} places is not followed")
            for position in positions:
                here = self.x.eq(start, self.x.const(position, start.width))
                both = here if condition is None else self.x.and_(condition, here)
                result.append((both, signal, low + position, width))
        return result

    def _element_targets(self, memory: Memory, index: Expression) -> list[Target]:
        result: list[Target] = []
        for number, signal in zip(memory.indices, memory.elements, strict=True):
            if 0 <= number <= mask(index.width):
                here = self.x.eq(index, self.x.const(number, index.width))
                if not (here.is_const and here.value == 0):
                    result.append((None if here.is_const else here, signal, 0, signal.width))
        return result

    def _write(self, place: Target, value: Expression, frame: Frame, nonblocking: bool) -> None:
        condition, signal, low, width = place
        values = frame.following if nonblocking else frame.values
        old = values.get(signal)
        if old is None:
            old = self.x.signal(signal)
        new = self.x.replace_bits(old, low + width - 1, low, self.x.zext(value, width))
        values[signal] = new if condition is None else self.x.ite(condition, new, old)
        frame.written[signal] = frame.written.get(signal, 0) | mask(width) << low
