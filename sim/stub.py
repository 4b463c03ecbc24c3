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

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyslang
from pyslang import ast, syntax

from sim.design import Design
from sim.slang import Elaboration, elaborate

STEP = "llm4cov_step"
"""The function that the stand-in calls."""

_DIRECTIONS = {ast.ArgumentDirection.In: "input", ast.ArgumentDirection.Out: "output"}
_MOST_BITS = 1 << 16  # of all inputs or all outputs; wider vectors are beyond what simulators are built for


class Unsupported(Exception):
    """A design that SystemVerilog testbenches cannot drive here. The message says why."""


@dataclass(frozen=True)
class _Port:
    """One port as the compiled design keeps it: `elements` (index texts, lowest first) of `width` bits, each padded
    to `size` bytes."""

    name: str
    direction: str
    declaration: str
    elements: tuple[str, ...]
    width: int

    @property
    def size(self) -> int:
        if self.width > 64:
            return 4 * -(-self.width // 32)
        return next(size for size in (1, 2, 4, 8) if self.width <= 8 * size)


def stub(design: Design, *, delays: bool) -> str:
    """Return the SystemVerilog text of the stand-in for the design's top.

    With `delays` it also steps the design when its own delays say so. Raises Unsupported for ports that do not go
    through a vector of bits: interfaces, structures that are not packed, real numbers, strings, inout.
    """
    body = elaborate(design).compilation.getRoot().topInstances[0].body
    # the compiled design lists its ports by name; the vectors are the memory of one after another
    ports = [_port(p) for p in body.portList]
    inputs, outputs = (sorted((p for p in ports if p.direction == d), key=_order)
                       for d in ("input", "output"))  # fmt: skip
    n_in, n_out = (max(1, sum(p.size * len(p.elements) for p in group)) for group in (inputs, outputs))
    if 8 * max(n_in, n_out) > _MOST_BITS:
        raise Unsupported(f"the ports of {design.top} have more than {_MOST_BITS} bits")
    parameters = ", ".join(_parameters(body))
    lines = [
        '`begin_keywords "1800-2017"',
        "`default_nettype wire",
        f"`timescale {'1ps/1ps' if delays else '1ns/1ps'}",
        f"module {design.top} {f'#({parameters}) ' if parameters else ''}({', '.join(p.declaration for p in ports)});",
        f'  import "DPI-C" function void {STEP}(input bit [{8 * n_in - 1}:0] i, output bit [{8 * n_out - 1}:0] o, '
        "output longint unsigned d);",
        f"  bit [{8 * n_in - 1}:0] llm4cov_inputs;",
        f"  bit [{8 * n_out - 1}:0] llm4cov_outputs;",
        "  longint unsigned llm4cov_delay;",
        "  int unsigned llm4cov_steps, llm4cov_wake;",
        "  bit llm4cov_go;",
        "  initial #0 llm4cov_go = ~llm4cov_go;",
        f"  always @({', '.join([*_values(inputs), 'llm4cov_go'])}) begin",
        f"    llm4cov_inputs <= {_concatenation(inputs)};",
        "    llm4cov_steps <= llm4cov_steps + 1;",
        "  end",
        "  always @(llm4cov_steps) begin",
        f"    {STEP}(llm4cov_inputs, llm4cov_outputs, llm4cov_delay);",
        *(f"    {line}" for line in _assignments(outputs)),
        *(["    if (llm4cov_delay != 0) llm4cov_wake <= #(llm4cov_delay) llm4cov_steps;"] if delays else []),
        "  end",
    ]
    if delays:  # of several waits only the one of the last step counts
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
        raise Unsupported(
            f"port {symbol.name} of the top is not a plain variable or net: write the testbench in cocotb"
        )
    direction = _DIRECTIONS.get(symbol.direction)
    if direction is None:
        raise Unsupported(
            f"port {symbol.name} of the top is {symbol.direction.name.lower()}: write the testbench in cocotb"
        )
    kind = symbol.type.canonicalType
    dimensions: list[pyslang.ConstantRange] = []
    while isinstance(kind, ast.FixedSizeUnpackedArrayType):
        dimensions.append(kind.range)
        kind = kind.elementType.canonicalType
    if not kind.isIntegral:
        raise _not_driven(symbol.name, f"of type {symbol.type}")
    width, name = int(kind.bitWidth), f"\\{symbol.name} "
    sign = " signed" if kind.isSigned else ""
    unpacked = "".join(f"[{r.left}:{r.right}]" for r in dimensions)
    elements = [""]
    for r in dimensions:
        elements = [f"{e}[{i}]" for e in elements for i in range(min(r.left, r.right), max(r.left, r.right) + 1)]
    packed = f" [{width - 1}:0]" if width > 1 else ""
    return _Port(symbol.name, direction, f"{direction} logic{sign}{packed} {name}{unpacked}", tuple(elements), width)


def _order(port: _Port) -> bytes:
    """The compiled design lists its ports by name, and names that need it in their escaped form."""
    simple = re.fullmatch(r"[A-Za-z_][\w$]*", port.name, re.ASCII)
    return (port.name if simple else f"\\{port.name} ").encode()


def _not_driven(port: str, what: str) -> Unsupported:
    return Unsupported(f"port {port} of the top is {what}, which a SystemVerilog testbench cannot drive: use cocotb")


def _values(ports: list[_Port]) -> Iterator[str]:
    return (f"\\{port.name} {element}" for port in ports for element in port.elements)


def _concatenation(ports: list[_Port]) -> str:
    parts: list[str] = []
    for port in ports:
        spare = 8 * port.size - port.width
        for element in port.elements:
            value = f"\\{port.name} {element}"
            parts.append(f"{{{spare}'b0, {value}}}" if spare else value)
    return f"{{{', '.join(reversed(parts))}}}" if parts else "8'b0"


def _assignments(ports: list[_Port]) -> Iterator[str]:
    at = 0
    for port in ports:
        for element in port.elements:
            yield f"\\{port.name} {element} = llm4cov_outputs[{at + port.width - 1}:{at}];"
            at += 8 * port.size


def _parameters(body: ast.InstanceBodySymbol) -> Iterator[str]:
    """The parameters with the values that the design is built with; others are refused before anything is built."""
    for symbol in body.parameters:
        if isinstance(symbol, ast.ParameterSymbol) and not symbol.isLocalParam:
            yield f"parameter \\{symbol.name}  = {symbol.value}"
        elif isinstance(symbol, ast.TypeParameterSymbol) and not symbol.isLocalParam:
            yield f"parameter type \\{symbol.name}  = logic"
