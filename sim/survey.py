"""What people and policies ask about a design beyond its interface: parameters, enums, constants that are compared,
includes, handshakes, sizes and difficulty. All of it comes from elaboration; nothing is simulated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import log2
from typing import Any

import pyslang
from pyslang import ast, parsing

from sim.comparisons import Comparison, comparisons, parameter_values
from sim.conditions import BranchCondition, Constraint
from sim.design import Design, DesignError, SourceFile
from sim.elaborate import Analysis, analyse
from sim.handshakes import Handshake, handshakes
from sim.slang import Elaboration, elaborate, included_path

UNLIKELY_BITS = 10
"""A branch that needs more input bits than this to have certain values is one that random stimulus seldom reaches."""
EASY, HARD = 0.1, 0.3
"""Difficulty below the first is easy, above the second hard."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of the top. `value` after overrides, as text: integers as decimal numbers, above 32 bits as
    hexadecimal ones; `default` as the source writes it (empty if it has none). `kind` is parameter, localparam or
    type; only `overridable` ones can be given with `--param`."""

    name: str
    kind: str
    type: str
    value: str
    default: str
    overridable: bool


@dataclass(frozen=True)
class Enum:
    """An enumerated type of `width` bits. `scope` is the package or module that declares it; an enum without a name
    goes by the variable that has it. `members` are (name, unsigned value)."""

    name: str
    scope: str
    width: int
    members: tuple[tuple[str, int], ...]
    file: str
    line: int


@dataclass(frozen=True)
class Include:
    """`file` includes `included` at `line`, both relative to the design's root."""

    file: str
    line: int
    included: str


@dataclass(frozen=True)
class Size:
    """One file: lines, and tokens as the lexer reads them before macros are expanded, comments and blanks left out. A
    directive or a use of a macro is one token; inactive branches of `ifdef` count too."""

    file: str
    n_lines: int
    n_tokens: int


@dataclass(frozen=True)
class Survey:
    """`comparisons_left_out` counts what tables of constants have beyond a bound (see sim/comparisons.py).

    `difficulty` is the share of the simulator's branches, those that parameters rule out left aside, that random
    stimulus is unlikely to reach: the way from reset fixes more than UNLIKELY_BITS bits of the inputs, or no way is
    known. `difficulty_label` is easy (below EASY), medium, or hard (above HARD).
    """

    parameters: tuple[Parameter, ...]
    enums: tuple[Enum, ...]
    comparisons: tuple[Comparison, ...]
    comparisons_left_out: int
    handshakes: tuple[Handshake, ...]
    includes: tuple[Include, ...]
    sizes: tuple[Size, ...]
    difficulty: float
    difficulty_label: str

    @property
    def n_tokens(self) -> int:
        return sum(size.n_tokens for size in self.sizes)


def survey(design: Design) -> Survey:
    """The survey of a design; the same sources, options and hints give the same object for a while. Raises
    DesignError where `analyse` does."""
    analysis = analyse(design)
    try:
        return _survey(_Key(design, analysis))
    except RecursionError:
        raise DesignError(f"{design.name}: nested too deeply to be analysed; break up long chains") from None


class _Key:
    """The analysis is kept for the same sources, options and hints: so is what is made of it."""

    def __init__(self, design: Design, analysis: Analysis) -> None:
        self.design = design
        self.analysis = analysis

    def __hash__(self) -> int:
        return id(self.analysis)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.analysis is other.analysis


@lru_cache(maxsize=64)
def _survey(key: _Key) -> Survey:
    design, analysis = key.design, key.analysis
    elaboration = elaborate(design)
    compared, left_out = comparisons(elaboration)
    difficulty = _difficulty(analysis)
    return Survey(
        _parameters(elaboration),
        _enums(elaboration),
        compared,
        left_out,
        handshakes(analysis),
        _includes(design, elaboration),
        tuple(Size(f.path, n_lines(f.content), n_tokens(f)) for f in (*design.sources, *design.includes)),
        difficulty,
        "easy" if difficulty < EASY else "medium" if difficulty <= HARD else "hard",
    )


# sizes


def n_lines(content: bytes) -> int:
    """Lines of a file; what is behind the last line break counts if it is not empty."""
    return content.count(b"\n") + (not content.endswith(b"\n") and content != b"")


def n_tokens(file: SourceFile) -> int:
    """Tokens of a file, counted as `Size` says."""
    manager = pyslang.SourceManager()
    lexer = parsing.Lexer(
        manager.assignText(file.path, file.text), pyslang.BumpAllocator(), pyslang.Diagnostics(), manager
    )
    count = 0
    while lexer.lex().kind != parsing.TokenKind.EndOfFile:
        count += 1
    return count


# parameters and enums


def _parameters(elaboration: Elaboration) -> tuple[Parameter, ...]:
    top = elaboration.compilation.getRoot().topInstances[0]
    return tuple(_parameter(symbol, elaboration) for symbol in top.body.parameters)


def _parameter(symbol: Any, elaboration: Elaboration) -> Parameter:
    kind = "localparam" if symbol.isLocalParam else "parameter"
    if isinstance(symbol, ast.TypeParameterSymbol):
        default = getattr(symbol.syntax, "assignment", None)
        text = elaboration.text(default.type) if default is not None else ""
        return Parameter(symbol.name, "type", "type", str(symbol.targetType.type), text, False)
    default = getattr(symbol.syntax, "initializer", None)
    text = elaboration.text(default.expr) if default is not None else ""
    overridable = not symbol.isLocalParam
    return Parameter(symbol.name, kind, str(symbol.type), _value(symbol.value), text, overridable)


def _value(constant: pyslang.ConstantValue) -> str:
    value = constant.value
    if not isinstance(value, pyslang.SVInt):
        return str(constant)
    if value.hasUnknown:
        return str(value)
    number = int(value)
    return str(number) if abs(number) < 1 << 32 else hex(number)


def _enums(elaboration: Elaboration) -> tuple[Enum, ...]:
    """Enums of all packages and compilation units, and of every module once."""
    found: dict[tuple[object, ...], Enum] = {}
    for owner, scope in _scopes(elaboration):
        for symbol in scope:
            if isinstance(symbol, ast.TypeAliasType):
                kind = symbol.canonicalType
            elif isinstance(symbol, ast.VariableSymbol | ast.NetSymbol):
                kind = symbol.type.canonicalType
            else:
                continue
            if isinstance(kind, ast.EnumType):
                file, line = elaboration.file_line(kind.location)
                members = tuple(
                    (m.name, _member(m.value, kind.bitWidth)) for m in kind if isinstance(m, ast.EnumValueSymbol)
                )
                found.setdefault((file, line, members), Enum(symbol.name, owner, kind.bitWidth, members, file, line))
    return tuple(found.values())


def _member(constant: pyslang.ConstantValue, width: int) -> int:
    value = constant.value
    return int(value) & ((1 << width) - 1) if isinstance(value, pyslang.SVInt) and not value.hasUnknown else 0


def _scopes(elaboration: Elaboration) -> Iterator[tuple[str, Any]]:
    """Everything that may declare a type, with the name of the package or module: packages before their users."""
    for package in elaboration.compilation.getPackages():
        if package.name != "std":
            yield package.name, package
    root = elaboration.compilation.getRoot()
    yield from (("$unit", unit) for unit in root.compilationUnits)
    seen: set[tuple[str, ...]] = set()
    yield from _below(root.topInstances[0], seen)


def _below(instance: ast.InstanceSymbol, seen: set[tuple[str, ...]]) -> Iterator[tuple[str, Any]]:
    """The bodies of an instance and of those below it, one of each module and set of parameters, and their generate
    blocks."""
    name = instance.definition.name
    key = (name, *parameter_values(instance))
    if key in seen:
        return
    seen.add(key)
    scopes: list[Any] = [instance.body]
    while scopes:
        scope = scopes.pop()
        yield name, scope
        for member in scope:
            if isinstance(member, ast.InstanceSymbol):
                if member.isModule:
                    yield from _below(member, seen)
            elif isinstance(member, ast.GenerateBlockSymbol) and member.isUninstantiated:
                continue
            elif isinstance(member, ast.GenerateBlockSymbol | ast.GenerateBlockArraySymbol | ast.InstanceArraySymbol):
                scopes.append(member)


# includes


def _includes(design: Design, elaboration: Elaboration) -> tuple[Include, ...]:
    headers = [f.path for f in design.includes]
    found: dict[Include, None] = {}
    for directive in elaboration.tree.getIncludeDirectives():
        file, line = elaboration.file_line(directive.syntax.sourceRange.start)
        buffer = directive.buffer
        included = included_path(elaboration.manager, buffer.id, headers) if buffer else directive.path
        found[Include(file, line, included)] = None
    return tuple(found)


# difficulty


def _difficulty(analysis: Analysis) -> float:
    """See `Survey`."""
    widths = {p.name: p.width for p in analysis.interface.data_inputs}
    alive = [b for b in analysis.branches if not b.reason.endswith(_RULED_OUT)]
    unlikely = sum(b.steps is None or _fixed_bits(b, widths) > UNLIKELY_BITS for b in alive)
    return round(unlikely / len(alive), 4) if alive else 0.0


_RULED_OUT = "never holds with these parameters"


def _fixed_bits(branch: BranchCondition, widths: dict[str, int]) -> float:
    """Bits of information in the values that the steps ask of the data inputs, however long they hold."""
    return sum(_bits(c, widths[c.port]) for step in branch.steps or () for c in step.constraints if c.port in widths)


def _bits(constraint: Constraint, width: int) -> float:
    width = width if constraint.high is None else constraint.high - (constraint.low or 0) + 1
    every, value = 1 << width, constraint.value
    fitting = {"==": 1, "!=": every - 1, "<": value, "<=": value + 1, ">": every - 1 - value, ">=": every - value}
    return width - log2(max(1, fitting[constraint.op]))
