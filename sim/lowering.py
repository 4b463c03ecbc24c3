"""From elaborated source expressions to word-level expressions, and the state of a process while it is followed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyslang
from pyslang import ast

from sim.expressions import Expression, Expressions, Signal, mask
from sim.frames import Condition, Frame, Memory, UnsupportedError
from sim.slang import Elaboration

MAX_ELEMENTS = 64
"""Unpacked arrays and dynamic selects with more elements than this are not followed."""


class Lowering:
    """Lowers expressions of one elaborated design. `record` is told of every branch point on the way.

    `Targets` adds assignments and `Processes` statements.
    """

    def __init__(self, elaboration: Elaboration) -> None:
        self.x = Expressions()
        self.elaboration = elaboration
        self.names: dict[str, Signal | Memory] = {}
        self.signals: list[Signal] = []
        self.lowest: dict[str, int] = {}
        self.false = self.x.const(0, 1)
        self.true = self.x.const(1, 1)
        self._lower: dict[type, Callable[[Any, Frame], Expression]] = {
            ast.NamedValueExpression: self._named,
            ast.HierarchicalValueExpression: self._named,
            ast.IntegerLiteral: lambda e, f: self._literal(e.value, e.type.bitWidth),
            ast.UnbasedUnsizedIntegerLiteral: lambda e, f: self._literal(e.value, e.type.bitWidth),
            ast.ConversionExpression: self._conversion,
            ast.UnaryExpression: self._unary,
            ast.BinaryExpression: self._binary,
            ast.ConditionalExpression: self._conditional,
            ast.ConcatenationExpression: self._concatenation,
            ast.ReplicationExpression: self._replication,
            ast.ElementSelectExpression: self._select,
            ast.RangeSelectExpression: self._select,
            ast.MemberAccessExpression: self._select,
            ast.InsideExpression: self._inside,
            ast.CallExpression: self._call,
            ast.SimpleAssignmentPatternExpression: self._pattern,
            ast.StructuredAssignmentPatternExpression: self._pattern,
            ast.ReplicatedAssignmentPatternExpression: self._pattern,
            ast.MinTypMaxExpression: lambda e, f: self.lower(e.selected, f),
            ast.AssignmentExpression: self._assignment,
            ast.LValueReferenceExpression: lambda e, f: self.lower(self._references[-1], f),
        }
        self._references: list[Any] = []

    # what the modules of targets and processes provide

    def assign(self, target: Any, value: Expression, frame: Frame, nonblocking: bool) -> None:
        raise NotImplementedError

    def record(self, node: Any, kind: str, frame: Frame, extra: Condition) -> None:
        raise NotImplementedError

    def call(self, node: ast.CallExpression, frame: Frame) -> Expression:
        raise NotImplementedError

    # signals

    def lookup(self, symbol: Any) -> Signal | Memory:
        """The signal of a variable or net, made on first use."""
        name = symbol.hierarchicalPath
        found = self.names.get(name)
        if found is None:
            found = self.names[name] = self._declare(name, symbol.type)
        return found

    def _declare(self, name: str, type_: ast.Type) -> Signal | Memory:
        kind = type_.canonicalType
        if isinstance(kind, ast.FixedSizeUnpackedArrayType) and kind.elementType.isIntegral:
            left, right = kind.range.left, kind.range.right
            if abs(left - right) < MAX_ELEMENTS:
                memory = Memory([], left, right)
                for index in memory.indices:
                    memory.elements.append(Signal(f"{name}[{index}]", kind.elementType.bitWidth))
                self.signals += memory.elements
                return memory
        signal = Signal(name, type_.bitWidth if type_.isIntegral else max(1, type_.bitstreamWidth))
        if not type_.isIntegral:
            signal.reason = f"{name} has a type that is not followed ({type_})"
            signal.driver = self.x.unknown(signal.width)
        elif type_.hasFixedRange and type_.fixedRange.lower:
            self.lowest[name] = type_.fixedRange.lower
        self.signals.append(signal)
        return signal

    def read(self, signal: Signal, frame: Frame) -> Expression:
        found = frame.values.get(signal)
        return found if found is not None else self.x.signal(signal)

    # expressions

    def lower(self, node: Any, frame: Frame) -> Expression:
        """The expression of `node`, as wide as its type. Raises UnsupportedError."""
        lower = self._lower.get(type(node))
        if lower is None:
            constant = node.constant
            if constant is not None:
                return self.constant(constant, node.type.bitWidth)
            raise UnsupportedError(f"{type(node).__name__.removesuffix('Expression')} expressions are not followed")
        return lower(node, frame)

    def condition(self, node: Any, frame: Frame) -> Expression:
        return self.x.truth(self.lower(node, frame))

    def constant(self, constant: pyslang.ConstantValue, width: int) -> Expression:
        value = constant.value
        if not isinstance(value, pyslang.SVInt):
            raise UnsupportedError("constants that are not integers are not followed")
        return self._literal(value, width)

    def _literal(self, value: pyslang.SVInt, width: int) -> Expression:
        if value.hasUnknown:
            known, _ = _known_bits(value)
            return self.x.const(known, width)
        return self.x.const(int(value), width)

    def _named(self, node: Any, frame: Frame) -> Expression:
        symbol = node.symbol
        if isinstance(symbol, ast.ParameterSymbol | ast.EnumValueSymbol):
            return self.constant(symbol.value, node.type.bitWidth)
        if not isinstance(symbol, ast.VariableSymbol | ast.NetSymbol):
            raise UnsupportedError(f"{symbol.name} is not a variable or net")
        found = self.lookup(symbol)
        if isinstance(found, Memory):
            return self.x.concat([self.read(s, frame) for s in found.elements])
        return self.read(found, frame)

    def _conversion(self, node: ast.ConversionExpression, frame: Frame) -> Expression:
        operand = node.operand
        value = self.lower(operand, frame)
        width = node.type.bitWidth
        if width > value.width and operand.type.isSigned:
            return self.x.sext(value, width)
        return self.x.zext(value, width)

    def _unary(self, node: ast.UnaryExpression, frame: Frame) -> Expression:
        a = self.lower(node.operand, frame)
        x, op = self.x, ast.UnaryOperator
        match node.op:
            case op.Plus:
                return a
            case op.Minus:
                return x.arithmetic("sub", x.const(0, a.width), a)
            case op.BitwiseNot:
                return x.not_(a)
            case op.LogicalNot:
                return x.not_(x.truth(a))
            case op.BitwiseAnd:
                return x.reduce("redand", a)
            case op.BitwiseOr:
                return x.reduce("redor", a)
            case op.BitwiseXor:
                return x.reduce("redxor", a)
            case op.BitwiseNand:
                return x.not_(x.reduce("redand", a))
            case op.BitwiseNor:
                return x.not_(x.reduce("redor", a))
            case op.BitwiseXnor:
                return x.not_(x.reduce("redxor", a))
            case _:
                one = x.const(1, a.width)
                step = "add" if node.op in (op.Preincrement, op.Postincrement) else "sub"
                result = x.arithmetic(step, a, one)
                self.assign(node.operand, result, frame, nonblocking=False)
                return result if node.op in (op.Preincrement, op.Predecrement) else a

    def _binary(self, node: ast.BinaryExpression, frame: Frame) -> Expression:
        x, op = self.x, ast.BinaryOperator
        kind = node.op
        a = self.lower(node.left, frame)
        if kind in (op.WildcardEquality, op.WildcardInequality):
            found = self.matches(a, node.right, "xz", frame)
            return found if kind == op.WildcardEquality else x.not_(found)
        b = self.lower(node.right, frame)
        is_signed = node.left.type.isSigned and node.right.type.isSigned
        match kind:
            case op.BinaryAnd:
                return x.and_(a, b)
            case op.BinaryOr:
                return x.or_(a, b)
            case op.BinaryXor:
                return x.xor(a, b)
            case op.BinaryXnor:
                return x.not_(x.xor(a, b))
            case op.Equality | op.CaseEquality:
                return x.eq(a, b)
            case op.Inequality | op.CaseInequality:
                return x.ne(a, b)
            case op.LessThan:
                return x.less(a, b, is_signed)
            case op.GreaterThan:
                return x.less(b, a, is_signed)
            case op.LessThanEqual:
                return x.not_(x.less(b, a, is_signed))
            case op.GreaterThanEqual:
                return x.not_(x.less(a, b, is_signed))
            case op.LogicalAnd:
                return x.and_(x.truth(a), x.truth(b))
            case op.LogicalOr:
                return x.or_(x.truth(a), x.truth(b))
            case op.LogicalImplication:
                return x.or_(x.not_(x.truth(a)), x.truth(b))
            case op.LogicalEquivalence:
                return x.not_(x.xor(x.truth(a), x.truth(b)))
            case op.Power:
                if a.is_const and b.is_const:
                    return x.const(pow(a.value, b.value, 1 << max(1, a.width)), a.width)
                raise UnsupportedError("** on variables is not followed")
            case _:
                return x.arithmetic(_arithmetic_name(kind, is_signed, node.type.isSigned), a, b)

    def _conditional(self, node: ast.ConditionalExpression, frame: Frame) -> Expression:
        if len(node.conditions) != 1 or node.conditions[0].pattern is not None:
            raise UnsupportedError("pattern conditions are not followed")
        test = node.conditions[0].expr
        chosen = self.condition(test, frame)
        text = self.elaboration.source(test)
        results: list[Expression] = []
        outer = frame.path
        for wanted, arm, kind in ((True, node.left, "cond_then"), (False, node.right, "cond_else")):
            condition = Condition(chosen, wanted, text if wanted else f"!({text})")
            self.record(node, kind, frame, condition)
            frame.path = (*outer, condition)
            results.append(self.lower(arm, frame))
            frame.path = outer
        return self.x.ite(chosen, *results)

    def _concatenation(self, node: ast.ConcatenationExpression, frame: Frame) -> Expression:
        return self.x.concat([self.lower(o, frame) for o in node.operands if not o.type.isVoid])

    def _replication(self, node: ast.ReplicationExpression, frame: Frame) -> Expression:
        part = self.lower(node.concat, frame)
        return self.x.concat([part] * (node.type.bitWidth // max(1, part.width)))

    def _select(self, node: Any, frame: Frame) -> Expression:
        base = node.value
        if isinstance(node, ast.ElementSelectExpression) and isinstance(base, ast.ValueExpressionBase):
            symbol = base.symbol
            if isinstance(symbol, ast.VariableSymbol | ast.NetSymbol):
                found = self.lookup(symbol)
                if isinstance(found, Memory):
                    return self._element(found, self.lower(node.selector, frame), frame)
        value = self.lower(base, frame)
        width = node.type.bitWidth
        start = self._offset(node, frame)
        if isinstance(start, int):
            return self.x.slice(value, start + width - 1, start)
        positions = list(positions_of(start, value.width, width))
        if len(positions) > MAX_ELEMENTS:
            return self.x.slice(self.x.arithmetic("lshr", value, start), width - 1, 0)
        result = self.x.const(0, width)
        for position in reversed(positions):
            chosen = self.x.eq(start, self.x.const(position, start.width))
            result = self.x.ite(chosen, self.x.slice(value, position + width - 1, position), result)
        return result

    def _element(self, memory: Memory, index: Expression, frame: Frame) -> Expression:
        result = self.x.const(0, memory.elements[0].width)
        for number, signal in zip(memory.indices, memory.elements, strict=True):
            if 0 <= number <= mask(index.width):
                result = self.x.ite(
                    self.x.eq(index, self.x.const(number, index.width)), self.read(signal, frame), result
                )
        return result

    def _offset(self, node: Any, frame: Frame) -> int | Expression:
        """The lowest bit of a select in its base: a number where it is constant."""
        if isinstance(node, ast.MemberAccessExpression):
            if not isinstance(node.member, ast.FieldSymbol):
                raise UnsupportedError("only fields of packed structures are followed")
            return int(node.member.bitOffset)
        if not node.value.type.isIntegral:
            raise UnsupportedError("a select from an array of more than one dimension is not followed")
        bounds = node.value.type.fixedRange
        if isinstance(node, ast.ElementSelectExpression):
            size = node.type.bitWidth
            index, width = self.lower(node.selector, frame), 1
        else:
            width = node.type.bitWidth * bounds.width // max(1, node.value.type.bitWidth)
            size = node.type.bitWidth // max(1, width)
            index = self.lower(node.left, frame)
            kind = ast.RangeSelectionKind
            if node.selectionKind == kind.Simple:
                right = self.lower(node.right, frame)
                low = min(index.value, right.value) if bounds.isDescending else max(index.value, right.value)
                index, width = self.x.const(low, index.width), 1
            elif (node.selectionKind == kind.IndexedUp) != bounds.isDescending:
                shift = width - 1 if node.selectionKind == kind.IndexedUp else 1 - width
                index, width = self.x.arithmetic("add", index, self.x.const(shift, index.width)), 1
        if index.is_const:
            position = index.value - bounds.right if bounds.isDescending else bounds.right - index.value
            return position * size
        x = self.x
        wide = x.zext(index, max(index.width, node.value.type.bitWidth.bit_length() + 1))
        right = x.const(bounds.right, wide.width)
        position = x.arithmetic("sub", wide, right) if bounds.isDescending else x.arithmetic("sub", right, wide)
        return x.arithmetic("mul", position, x.const(size, wide.width)) if size != 1 else position

    def _inside(self, node: ast.InsideExpression, frame: Frame) -> Expression:
        value = self.lower(node.left, frame)
        result = self.false
        for item in node.rangeList:
            if isinstance(item, ast.ValueRangeExpression):
                is_signed = node.left.type.isSigned and item.left.type.isSigned
                low, high = self.lower(item.left, frame), self.lower(item.right, frame)
                inside = self.x.and_(
                    self.x.not_(self.x.less(value, self._fit(low, value), is_signed)),
                    self.x.not_(self.x.less(self._fit(high, value), value, is_signed)),
                )
            else:
                inside = self.matches(value, item, "xz", frame)
            result = self.x.or_(result, inside)
        return result

    def _fit(self, a: Expression, other: Expression) -> Expression:
        return self.x.zext(a, other.width)

    def matches(self, value: Expression, item: Any, wild: str, frame: Frame) -> Expression:
        """Whether `value` matches a case item whose bits in `wild` (x, z) are don't-cares."""
        literal = item
        while isinstance(literal, ast.ConversionExpression):
            literal = literal.operand
        bits: Any = literal.value if isinstance(literal, ast.IntegerLiteral) else None
        if isinstance(literal, ast.NamedValueExpression) and isinstance(literal.symbol, ast.ParameterSymbol):
            bits = literal.symbol.value.value
        if isinstance(bits, pyslang.SVInt) and bits.hasUnknown:
            known, cares = _known_bits(bits, wild)
            cares |= mask(value.width) & ~mask(bits.bitWidth)
            known &= mask(value.width)
            return self._masked(value, cares & mask(value.width), known)
        other = self.lower(item, frame)
        width = max(value.width, other.width)
        return self.x.eq(self.x.zext(value, width), self.x.zext(other, width))

    def _masked(self, value: Expression, cares: int, known: int) -> Expression:
        """Whether the bits `cares` of `value` are those of `known`, as comparisons of runs of bits."""
        result = self.true
        low = 0
        while cares >> low:
            while not cares >> low & 1:
                low += 1
            high = low
            while cares >> (high + 1) & 1:
                high += 1
            run = self.x.slice(value, high, low)
            result = self.x.and_(result, self.x.eq(run, self.x.const(known >> low, run.width)))
            low = high + 1
        return result

    def _pattern(self, node: Any, frame: Frame) -> Expression:
        elements = getattr(node, "elements", None)
        kind = node.type.canonicalType
        if elements is None or not (node.type.isIntegral or isinstance(kind, ast.FixedSizeUnpackedArrayType)):
            raise UnsupportedError("this assignment pattern is not followed")
        return self.x.concat([self.lower(e, frame) for e in elements])

    def _call(self, node: ast.CallExpression, frame: Frame) -> Expression:
        if not node.isSystemCall:
            return self.call(node, frame)
        name = node.subroutineName
        if node.constant is not None:
            return self.constant(node.constant, node.type.bitWidth)
        arguments = node.arguments
        if name in ("$signed", "$unsigned") and len(arguments) == 1:
            return self.lower(arguments[0], frame)
        if name in ("$countones", "$onehot", "$onehot0") and len(arguments) == 1:
            value = self.lower(arguments[0], frame)
            width = value.width.bit_length() + 1
            total = self.x.const(0, width)
            for i in range(value.width):
                total = self.x.arithmetic("add", total, self.x.zext(self.x.slice(value, i, i), width))
            if name == "$countones":
                return self.x.zext(total, node.type.bitWidth)
            if name == "$onehot":
                return self.x.eq(total, self.x.const(1, width))
            return self.x.less(total, self.x.const(2, width), False)
        if name == "$clog2":
            value = self.lower(arguments[0], frame)
            if value.is_const:
                return self.x.const((value.value - 1).bit_length() if value.value else 0, node.type.bitWidth)
        if name in ("$isunknown",):
            return self.false
        raise UnsupportedError(f"{name} is not followed")

    def _assignment(self, node: ast.AssignmentExpression, frame: Frame) -> Expression:
        if isinstance(node.right, ast.EmptyArgumentExpression):
            raise UnsupportedError("an output connection is not an expression")
        value = self._compound(node, frame) if node.isCompound else self.lower(node.right, frame)
        self.assign(node.left, value, frame, nonblocking=node.isNonBlocking)
        return value

    def _compound(self, node: ast.AssignmentExpression, frame: Frame) -> Expression:
        """`a op= b`: the right side is a binary expression whose left operand stands for `a`."""
        self._references.append(node.left)
        try:
            return self.lower(node.right, frame)
        finally:
            self._references.pop()


def _arithmetic_name(kind: ast.BinaryOperator, is_signed: bool, result_signed: bool) -> str:
    op = ast.BinaryOperator
    match kind:
        case op.Add:
            return "add"
        case op.Subtract:
            return "sub"
        case op.Multiply:
            return "mul"
        case op.Divide:
            return "sdiv" if is_signed else "udiv"
        case op.Mod:
            return "smod" if is_signed else "umod"
        case op.LogicalShiftLeft | op.ArithmeticShiftLeft:
            return "shl"
        case op.LogicalShiftRight:
            return "lshr"
        case op.ArithmeticShiftRight:
            return "ashr" if result_signed else "lshr"
        case _:
            raise UnsupportedError(f"operator {kind} is not followed")


def positions_of(start: Expression, total: int, width: int) -> Iterator[int]:
    """Lowest bits that a dynamic select of `width` bits may have in a base of `total` bits."""
    step = 1
    if start.op == "concat" and start.args[-1].is_const and start.args[-1].value == 0:
        step = 1 << start.args[-1].width
    elif start.op == "mul" and start.args[1].is_const:
        step = max(1, start.args[1].value)
    for position in range(0, total - width + 1, step):
        if position <= mask(start.width):
            yield position


def _known_bits(value: pyslang.SVInt, wild: str = "xz") -> tuple[int, int]:
    """Value of the known bits (unknown ones as 0), and which bits are not in `wild`."""
    known = cares = 0
    for i in range(value.bitWidth):
        bit = str(value[i])
        if bit == "1":
            known |= 1 << i
        if bit not in wild:
            cares |= 1 << i
    return known, cares
