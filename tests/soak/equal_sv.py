"""Points and hits of SystemVerilog testbenches are those of design and testbench in one plain Verilator build.

Testbenches are made from the elaborated interface of each design: they are short, so that coverage is far from
saturated and a lost evaluation shows. They differ in when they write inputs: `race` with blocking assignments right
at the clock edge that the design samples at, which is where the simulator's order of events decides; `nonblocking` at
that edge; `delayed` after it; `falling` at the other edge.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from llm4cov_assets.ingest.registry import corpus_designs
from sim.coverage import indices, parse_coverage
from sim.design import Design
from sim.elaborate import Interface, Port, analyse
from sim.load import load_design
from sim.simulation import CoveragePoint, Limits, Testbench
from sim.simulator import Simulator
from tests.sim import plain_sv
from tests.sim.conftest import COUNTER
from tests.sim.conftest import design as one_file

STYLES = {"race": ("@(posedge {clock});", "="), "nonblocking": ("@(posedge {clock});", "<="),
          "delayed": ("@(posedge {clock}); #1;", "="), "falling": ("@(negedge {clock});", "=")}  # fmt: skip
DESIGNS = ("counter", "alu", "async_fifo", "packet_router", "i2c_target", "spi_master", "uart", "divider", "sync_fifo",
           "vending", "elevator", "hamming", "float_class", "cache_controller", "picorv32")  # fmt: skip
_LIMITS = Limits(sim_time_ns=10_000_000)
_SEED = 1  # plain_sv.MAIN has the same


@dataclass(frozen=True)
class Comparison:
    """Our result beside the plain run's. The four tuples are empty when both agree."""

    status: str
    points: int
    hits: int
    evaluations: int
    cpu_s: float
    log: str
    points_only_ours: tuple[object, ...]
    points_only_plain: tuple[object, ...]
    hits_only_ours: tuple[object, ...]
    hits_only_plain: tuple[object, ...]

    @property
    def equal(self) -> bool:
        differences = (self.points_only_ours, self.points_only_plain, self.hits_only_ours, self.hits_only_plain)
        return self.status == "passed" and self.hits > 0 and not any(differences)


def subject(name: str) -> Design:
    """A design of DESIGNS, or any of the corpus."""
    if name == "counter":
        return one_file(COUNTER)
    if name == "picorv32":
        import pythondata_cpu_picorv32 as package

        return load_design(Path(package.__file__).parent / "verilog" / "picorv32.v", top=name)
    return next(d for d in corpus_designs() if d.name == name)


def testbench(design: Design, style: str, cycles: int) -> str:
    """A testbench named `tb`, with the design as its instance `dut`: clocks, reset, `cycles` random values on all
    inputs."""
    interface = analyse(design).interface
    wait, assign = STYLES[style]
    lines = ["module tb;", *map(_declaration, interface.ports)]
    values = ", ".join(f".{name}({value})" for name, value in design.parameters)  # the plain build knows them from here
    ports = ", ".join(f".{p.name}({p.name})" for p in interface.ports)
    lines.append(f"  {design.top} {f'#({values}) ' if values else ''}dut({ports});")
    for number, clock in enumerate(interface.clocks):
        lines.append(f"  initial {clock} = 0;\n  always #{5 + 2 * number} {clock} = ~{clock};")
    lines += ["  initial begin", *_driving(interface, wait, assign, cycles), "    $finish;", "  end", "endmodule"]
    return "\n".join(lines) + "\n"


testbench.__test__ = False  # type: ignore[attr-defined]


def _declaration(port: Port) -> str:
    width = f"[{port.width - 1}:0] " if port.width > 1 else ""
    return f"  logic {width}{port.name}{' = 0' if port.direction == 'in' else ''};"


def _driving(interface: Interface, wait: str, assign: str, cycles: int) -> Iterator[str]:
    resets = {r.port: r for r in interface.resets}
    driven = [p for p in interface.inputs if p.name not in interface.clocks and p.name not in resets]
    clock = interface.clocks[0] if interface.clocks else None
    yield from (f"    {r.port} {assign} {int(not r.active_low)};" for r in resets.values())
    yield f"    repeat (3) @(posedge {clock});" if clock else "    #1;"
    yield from (f"    {r.port} {assign} {int(r.active_low)};" for r in resets.values())
    yield f"    repeat ({cycles}) begin"
    yield f"      {wait.format(clock=clock) if clock else '#3;'}"
    yield from (f"      {p.name} {assign} {{{-(-p.width // 32)}{{$urandom}}}};" for p in driven)
    yield "    end"
    if clock is None:
        yield "    #1;"


def compared(simulator: Simulator, design: Design, text: str, folder: Path) -> Comparison:
    """Run a testbench of `testbench` both ways; the plain build goes below `folder`."""
    [ours] = simulator.run_many(design, [Testbench(text, "systemverilog")], limits=_LIMITS, seed=_SEED)
    points = simulator.points(ours.build_id) if ours.hits else ()
    theirs = parse_coverage(plain_sv.run(design, text, folder), top=design.top, dut="TOP.tb.dut")
    our_points, plain_points = set(map(_key, points)), set(map(_key, theirs.points))
    our_hits = {_key(points[i]) for i in indices(ours.hits)}
    plain_hits = {_key(theirs.points[i]) for i in indices(theirs.hits)}
    return Comparison(
        status=ours.status, points=len(our_points), hits=len(our_hits), evaluations=ours.evaluations,
        cpu_s=ours.cpu_s, log=ours.log,
        points_only_ours=tuple(our_points - plain_points), points_only_plain=tuple(plain_points - our_points),
        hits_only_ours=tuple(our_hits - plain_hits), hits_only_plain=tuple(plain_hits - our_hits),
    )  # fmt: skip


def _key(point: CoveragePoint) -> tuple[object, ...]:
    return (point.metric, point.file, point.line, point.column, point.instance, point.what)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--designs", default=",".join(DESIGNS), help=f"default: {','.join(DESIGNS)}")
    parser.add_argument("--styles", default="race,nonblocking", help=f"of {', '.join(STYLES)}; default: the first two")
    parser.add_argument("--cycles", type=int, default=8, help="random values on all inputs (default: 8)")


def run(options: argparse.Namespace) -> bool:
    names, styles = options.designs.split(","), options.styles.split(",")
    if unknown := [s for s in styles if s not in STYLES]:
        sys.exit(f"script/soak equal-sv: no style {unknown[0]!r}; there are: {', '.join(STYLES)}")
    known = {*DESIGNS, *(d.name for d in corpus_designs())}
    if unknown := [n for n in names if n not in known]:
        sys.exit(f"script/soak equal-sv: no design {unknown[0]!r}; there are: {', '.join(sorted(known))}")
    print(f"{'design':18} {'style':12} {'points':>7} {'hits':>7} {'evaluations':>12}  difference", flush=True)
    different = 0
    with tempfile.TemporaryDirectory(prefix="soak-") as home, Simulator(Path(home) / "home", workers=1) as simulator:
        for name in names:
            for style in styles:
                with tempfile.TemporaryDirectory(dir=home) as folder:
                    examined = subject(name)
                    found = compared(simulator, examined, testbench(examined, style, options.cycles), Path(folder))
                different += not found.equal
                print(f"{name:18} {style:12} {found.points:7} {found.hits:7} {found.evaluations:12}  {_told(found)}",
                      flush=True)  # fmt: skip
    print(f"{different} of {len(names) * len(styles)} differ")
    return different == 0


def _told(found: Comparison) -> str:
    if found.equal:
        return "none"
    if found.status != "passed":
        return f"{found.status}: {found.log[-300:]}"
    groups = {
        "points only ours": found.points_only_ours, "points only plain": found.points_only_plain,
        "hits only ours": found.hits_only_ours, "hits only plain": found.hits_only_plain,
    }  # fmt: skip
    return "; ".join(f"{len(g)} {what}, {g[0]}" for what, g in groups.items() if g) or "nothing was hit"
