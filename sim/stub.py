"""The stand-in for a design in the build of a SystemVerilog testbench.

It has the name, parameters and ports of the design's top and nothing inside but one call: when an input changes, all
inputs go to the design's one coverage build, which runs in the same process (sim/harness/testbench.cpp), and its
outputs come back. So a testbench compiles in a second whatever the size of the design, both languages share points
and denominators, and there is nothing inside the stand-in that a testbench could reach.

When the inputs are taken decides races. Verilator runs clocked logic after the assignments of the active region and
before nonblocking ones take effect: a nonblocking assignment of all inputs takes them at that point, and the call
follows at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyslang
from pyslang import ast, syntax

from sim.build import Build, ModelPort
from sim.design import Design
from sim.slang import Elaboration, elaborate

STEP = "llm4cov_step"
"""The function that the stand-in calls."""

_DIRECTIONS = {
    ast.ArgumentDirection.In: "input logic",
    ast.ArgumentDirection.Out: "output logic",
    ast.ArgumentDirection.InOut: "inout wire logic",
}
_MOST_BITS = 1 << 16  # of all inputs or all outputs; wider vectors are beyond what simulators are built for


class Unsupported(Exception):
    """A design that SystemVerilog testbenches cannot drive here. The message says why."""


@dataclass(frozen=True)
class _Port:
    """One port of the top: `elements` are the index texts of an unpacked array, lowest first, of `width` bits each."""

    name: str
    declaration: str
    elements: tuple[str, ...]
    width: int


@dataclass(frozen=True)
class _Slice:
    """One element of a port in a vector: `width` bits of `bytes`, from byte `at`."""

    port: str
    element: str
    kind: str
    width: int
    at: int
    bytes: int

    @property
    def name(self) -> str:
        return f"\\{self.port} {self.element}"

    @property
    def bits(self) -> str:
        """Its place in a vector."""
        return f"{8 * self.at + self.width - 1}:{8 * self.at}"


def stub(design: Design, build: Build) -> str:
    """Return the SystemVerilog text of the stand-in for the design's top.

    With delays in the design it also steps it when these say so. Raises Unsupported for ports that do not go through
    a vector of bits (real numbers).
    """
    body = elaborate(design).compilation.getRoot().topInstances[0].body
    ports = {port.name: port for port in map(_port, body.portList)}
    inputs = list(_slices(ports, [p for p in build.ports if p.kind == "input"]))
    outputs = list(_slices(ports, [p for p in build.ports if p.kind != "input"]))
    n_in, n_out = (8 * (group[-1].at + group[-1].bytes if group else 1) for group in (inputs, outputs))
    if max(n_in, n_out) > _MOST_BITS:
        raise Unsupported(f"the ports of {design.top} have more than {_MOST_BITS} bits")
    parameters = ", ".join(_parameters(body))
    declarations = ", ".join(port.declaration for port in ports.values())
    lines = [
        '`begin_keywords "1800-2017"',
        "`default_nettype wire",
        f"`timescale {'1ps/1ps' if build.delays else '1ns/1ps'}",
        f"module {design.top} {f'#({parameters}) ' if parameters else ''}({declarations});",
        f'  import "DPI-C" function void {STEP}(input bit [{n_in - 1}:0] i, output bit [{n_out - 1}:0] o, '
        "output longint unsigned d);",
        f"  bit [{n_in - 1}:0] llm4cov_inputs;",
        f"  bit [{n_out - 1}:0] llm4cov_outputs;",
        "  longint unsigned llm4cov_delay;",
        "  int unsigned llm4cov_steps, llm4cov_wake;",
        "  bit llm4cov_go;",
        "  initial #0 llm4cov_go = ~llm4cov_go;",
        f"  always @({', '.join([*(s.name for s in inputs), 'llm4cov_go'])}) begin",
        f"    llm4cov_inputs <= {_concatenation(inputs)};",
        "    llm4cov_steps <= llm4cov_steps + 1;",
        "  end",
        "  always @(llm4cov_steps) begin",
        f"    {STEP}(llm4cov_inputs, llm4cov_outputs, llm4cov_delay);",
        *(f"    {s.name} = llm4cov_outputs[{s.bits}];" for s in outputs if s.kind == "output"),
        *(["    if (llm4cov_delay != 0) llm4cov_wake <= #(llm4cov_delay) llm4cov_steps;"] if build.delays else []),
        "  end",
        *_drivers(outputs),
    ]
    if build.delays:  # of several waits only the one of the last step counts
        lines.append("  always @(llm4cov_wake) if (llm4cov_wake == llm4cov_steps) llm4cov_go = ~llm4cov_go;")
    return "\n".join([*lines, "endmodule", "`end_keywords", "`resetall", ""])


def shared_text(design: Design) -> str:
    """What a testbench may share with the design: its files without their modules (packages, interfaces, types,
    macros)."""
    elaboration = elaborate(design)
    cuts = sorted(_module_ranges(elaboration), reverse=True)
    texts = {source.path: source.content for source in design.sources}
    for path, start, end in cuts:
        content = texts[path]
        texts[path] = content[:start] + b"\n" * content[start:end].count(b"\n") + content[end:]
    return "".join(f'`line 1 "{path}" 0\n{content.decode("utf-8", "replace")}\n' for path, content in texts.items())


def _module_ranges(elaboration: Elaboration) -> Iterator[tuple[str, int, int]]:
    """(file, first byte, byte after the last) of every module; of those that come from macros or headers none."""
    unit = elaboration.tree.root
    members = unit.members if isinstance(unit, syntax.CompilationUnitSyntax) else [unit]
    for member in members:
        if member.kind not in (syntax.SyntaxKind.ModuleDeclaration, syntax.SyntaxKind.ProgramDeclaration):
            continue
        begin, end = member.sourceRange.start, member.sourceRange.end
        manager = elaboration.manager
        if manager.isFileLoc(begin) and manager.isFileLoc(end) and begin.buffer == end.buffer:
            yield manager.getFileName(begin), begin.offset, end.offset


def _port(symbol: ast.Symbol) -> _Port:
    if not isinstance(symbol, ast.PortSymbol) or symbol.internalSymbol is None:
        raise _not_driven(symbol.name, "not a plain variable or net")
    direction = _DIRECTIONS.get(symbol.direction)
    if direction is None:
        raise _not_driven(symbol.name, symbol.direction.name.lower())
    kind = symbol.type.canonicalType
    dimensions: list[pyslang.ConstantRange] = []
    while isinstance(kind, ast.FixedSizeUnpackedArrayType):
        dimensions.append(kind.range)
        kind = kind.elementType.canonicalType
    if not kind.isIntegral:
        raise _not_driven(symbol.name, f"of type {symbol.type}")
    width = int(kind.bitWidth)
    sign = " signed" if kind.isSigned else ""
    packed = f" [{width - 1}:0]" if width > 1 else ""
    unpacked = "".join(f"[{r.left}:{r.right}]" for r in dimensions)
    elements = [""]
    for r in dimensions:
        elements = [f"{e}[{i}]" for e in elements for i in range(min(r.left, r.right), max(r.left, r.right) + 1)]
    return _Port(symbol.name, f"{direction}{sign}{packed} \\{symbol.name} {unpacked}", tuple(elements), width)


def _slices(ports: Mapping[str, _Port], kept: Sequence[ModelPort]) -> Iterator[_Slice]:
    """The memory of the compiled design's ports, one after another."""
    at = 0
    for model in kept:
        name = model.name.removeprefix("\\").rstrip(" ")
        port = ports[name]
        for element in port.elements:
            yield _Slice(name, element, model.kind, port.width, at, model.element_size)
            at += model.element_size


def _not_driven(port: str, what: str) -> Unsupported:
    return Unsupported(f"port {port} of the top is {what}, which a SystemVerilog testbench cannot drive: use cocotb")


def _concatenation(slices: Sequence[_Slice]) -> str:
    spares = [8 * s.bytes - s.width for s in slices]
    parts = [f"{{{n}'b0, {s.name}}}" if n else s.name for s, n in zip(slices, spares, strict=True)]
    return f"{{{', '.join(reversed(parts))}}}" if parts else "8'b0"


def _drivers(outputs: Sequence[_Slice]) -> Iterator[str]:
    """What the design drives on its inout ports, bit by bit."""
    enables = {(s.port, s.element): s for s in outputs if s.kind == "enable"}
    for s in outputs:
        if s.kind != "out":
            continue
        enable = enables[s.port, s.element]
        for bit in range(s.width):
            value, driven = (f"llm4cov_outputs[{8 * v.at + bit}]" for v in (s, enable))
            index = f"[{bit}]" if s.width > 1 else ""
            yield f"  assign {s.name}{index} = {driven} ? {value} : 1'bz;"


def _parameters(body: ast.InstanceBodySymbol) -> Iterator[str]:
    """The parameters with the values that the design is built with; others are refused before anything is built."""
    for symbol in body.parameters:
        if isinstance(symbol, ast.ParameterSymbol) and not symbol.isLocalParam:
            yield f"parameter \\{symbol.name}  = {symbol.value}"
        elif isinstance(symbol, ast.TypeParameterSymbol) and not symbol.isLocalParam:
            yield f"parameter type \\{symbol.name}  = logic"
