"""`script/bench`: what the engine costs in CPU seconds, each section against a reference measured in the same run.

CPU seconds count this process and everything that it started. Machines are shared and noise only ever adds, so what
is compared runs in turns, several times, and the least of each counts. Figures are not tests: the exit code is 0
whether or not the aims are met.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import resource
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from llm4cov_assets.ingest.registry import corpus_designs
from llm4cov_assets.policy.base import State
from llm4cov_assets.policy.scripted import scripted
from sim.design import Design
from sim.load import load_design
from sim.simulation import Simulation, Testbench
from sim.simulator import Simulator
from tests.sim import plain, plain_sv

RUNNER_S, FROM_SCRATCH_S = 0.33, 10.5
"""CPU seconds of cocotb's runner on a finished build, and of `verilator --binary --coverage` on picorv32, on the
machine that the absolute aims were set on: what they take here says how much slower this one is at the moment."""
CYCLES_OF_A_PART = 100  # a testbench of scripted/random has four

PICORV32_TESTBENCH = """\
`timescale 1ns/1ps
module tb;
  logic clk = 0, resetn = 0, mem_ready = 0;
  logic [31:0] mem_rdata = 0;
  wire mem_valid;
  picorv32 dut(.clk, .resetn, .mem_valid, .mem_ready, .mem_rdata,
               .pcpi_wr(1'b0), .pcpi_rd(32'd0), .pcpi_wait(1'b0), .pcpi_ready(1'b0), .irq(32'd0));
  always #5 clk = ~clk;
  initial begin
    repeat (4) @(posedge clk);
    resetn <= 1;
    repeat (400) begin
      @(posedge clk);
      mem_rdata <= $urandom ^ 32'd{word};
      mem_ready <= mem_valid & ($urandom % {share} != 0);
    end
    $finish;
  end
endmodule
"""


@dataclass(frozen=True)
class Options:
    """What the command line says: the small design, how many rounds, how many cocotb testbenches a batch."""

    design: Design
    rounds: int
    testbenches: int


class Cost:
    """CPU seconds of a block, in this process and all that it started."""

    cpu_s = 0.0


@contextlib.contextmanager
def measured() -> Iterator[Cost]:
    cost, before = Cost(), _cpu()
    yield cost
    cost.cpu_s = _cpu() - before


def _cpu() -> float:
    """CPU seconds of this process and of all that it started: those it waited for, and those that still run with what
    they waited for (the harness is killed at the end, so nobody waits for its forks)."""
    ended = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    running = [p.cpu_times()[:4] for p in psutil.Process().children(recursive=True)]
    return sum(usage.ru_utime + usage.ru_stime for usage in ended) + sum(map(sum, running))


def cost_of(work: Callable[[], object]) -> float:
    """CPU seconds of a call whose own output nobody wants."""
    with contextlib.redirect_stdout(io.StringIO()), measured() as cost:
        work()
    return cost.cpu_s


def cocotb(options: Options, folder: Path) -> None:
    """one small cocotb testbench, sandboxed and checked by replay, against cocotb's own runner"""
    batch = options.testbenches
    testbenches = random_testbenches(options.design, batch * options.rounds)
    from_scratch, reused, ours = [], [], []
    for n in range(2):
        say(f"cocotb: build and test with cocotb's runner, {n + 1} of 2")
        shutil.rmtree(folder / "plain", ignore_errors=True)
        (folder / "plain").mkdir()
        plain.toolchain(folder / "plain" / "home")
        built = cost_of(lambda: plain.build(options.design, folder / "plain"))
        from_scratch.append(built + cost_of(lambda: plain.run(options.design, testbenches[0], folder / "plain")))
    with Simulator(folder / "ours", workers=1) as simulator:
        simulator.build(options.design)
    for n in range(options.rounds):
        say(f"cocotb: round {n + 1} of {options.rounds}")
        reused += [
            cost_of(lambda t=t: plain.run(options.design, t, folder / "plain"))
            for t in testbenches[n * batch : n * batch + 2]
        ]
        with Simulator(folder / "ours", workers=1) as simulator:  # its start counts, once for the batch
            part = testbenches[n * batch : (n + 1) * batch]
            ours.append(cost_of(lambda p=part, s=simulator: simulated(s, options.design, p)) / batch)
    title(f"one cocotb testbench of {4 * CYCLES_OF_A_PART} cycles on {options.design.name}", options.rounds)
    amount("cocotb's runner, build and test (of 2)", from_scratch)
    amount("cocotb's runner, build reused", reused)
    amount(f"ours, sandboxed and replayed, in batches of {batch}", ours)
    ratio("build reused / ours", min(reused) / min(ours), at_least=3)
    ratio("build and test / ours", min(from_scratch) / min(ours), at_least=40)


def systemverilog(options: Options, folder: Path) -> None:
    """one SystemVerilog testbench on picorv32 against `verilator --binary --coverage` from scratch and its run"""
    picorv32, reference, ours = processor(), [], []
    with Simulator(folder / "ours", workers=1) as simulator:
        tools = simulator.toolchain
        say("systemverilog: build picorv32")
        simulated(simulator, picorv32, [unlike_any_other()])
        for n in range(options.rounds):
            say(f"systemverilog: round {n + 1} of {options.rounds}")
            if n < 3:
                place = folder / f"reference{n}"
                place.mkdir()
                text = unlike_any_other().text
                reference.append(cost_of(lambda t=text, p=place: plain_sv.run_from_scratch(tools, picorv32, t, p)))
            text = unlike_any_other()
            ours.append(cost_of(lambda t=text: simulated(simulator, picorv32, [t])))
    title("one SystemVerilog testbench of 400 cycles on picorv32, each of another text", options.rounds)
    amount(f"verilator --binary --coverage, and run (of {len(reference)})", reference)
    amount("ours: check, compile, run, replay", ours)
    ratio("from scratch / ours", min(reference) / min(ours), at_least=6)
    limit("ours", min(ours), at_most_s=1.6, slower=min(reference) / FROM_SCRATCH_S)


def cache(options: Options, folder: Path) -> None:
    """a batch of 1,000 cached simulations, none of them twice"""
    number = 1000
    testbenches = random_testbenches(options.design, number)
    again = []
    with Simulator(folder / "ours", workers=1) as simulator:
        simulator.build(options.design)
        say(f"cache: simulate {number} testbenches")
        first = cost_of(lambda: simulated(simulator, options.design, testbenches))
    for _ in range(options.rounds):
        with Simulator(folder / "ours", workers=1) as simulator:
            found: list[Simulation] = []
            again.append(cost_of(lambda s=simulator, f=found: f.extend(s.run_many(options.design, testbenches))))
            if not all(r.cached for r in found):
                sys.exit("script/bench: not everything came from the cache: did the sources of sim/ change meanwhile?")
    title(f"a batch of {number:,} simulations of {options.design.name}, each in its own cache entry", options.rounds)
    amount("simulated, each", [first / number])
    amount("from the cache, each", [a / number for a in again])
    ratio("simulated / cached", first / min(again))
    limit("from the cache, each", min(again) / number, at_most_s=0.0005)


def workers(options: Options, folder: Path) -> None:
    """CPU per testbench with two workers against one"""
    batch = max(100, options.testbenches)
    testbenches = random_testbenches(options.design, 2 * batch * options.rounds)
    with Simulator(folder / "ours", workers=1) as one, Simulator(folder / "ours", workers=2) as two:
        say("workers: start")
        for simulator in (one, two):
            simulated(simulator, options.design, random_testbenches(options.design, 40, seed=simulator.workers))
        costs: dict[int, list[float]] = {1: [], 2: []}
        for n in range(options.rounds):
            say(f"workers: round {n + 1} of {options.rounds}")
            for k, simulator in enumerate((one, two)):
                part = testbenches[(2 * n + k) * batch : (2 * n + k + 1) * batch]
                spent = cost_of(lambda s=simulator, p=part: simulated(s, options.design, p))
                costs[simulator.workers].append(spent / batch)
    title(f"one of {batch} cocotb testbenches on {options.design.name}, engines started before", options.rounds)
    amount("one worker", costs[1])
    amount("two workers", costs[2])
    ratio("two workers / one", min(costs[2]) / min(costs[1]), at_most=1.15)


def build(options: Options, folder: Path) -> None:
    """a build: with nothing there, with the runtime compiled before, and when it is there"""
    say("build: the runtime, with an empty compiler cache")
    with compiler_cache(folder / "runtime"):
        runtime = cost_of(lambda: with_simulator(folder / "home", lambda s: s.toolchain.ensure_harness()))
    title("a build, with compiler caches that no other run shares", options.rounds)
    amount("the runtime (harness, sandbox launcher, precompiled header), once", [runtime])
    slower = 1.0
    for design, aim in ((options.design, 1.0), (processor(), 4.0)):
        name, runner = design.name, folder / design.name
        say(f"build: {name} with cocotb's runner, from scratch")
        runner.mkdir()
        plain.toolchain(runner / "home")
        reference = cost_of(lambda d=design, f=runner: plain.build(d, f))
        if design is options.design:
            slower = how_much_slower(design, runner)
        costs = [one_round(design, folder, n, options.rounds) for n in range(options.rounds)]
        new_home, same_home, there = map(min, zip(*costs, strict=True))
        amount(f"{name}: cocotb's runner, from scratch (of 1)", [reference])
        amount(f"{name}: ours, nothing there", [runtime + same_home])
        ratio(f"{name}: cocotb's runner / ours, runtime compiled before", reference / same_home)
        limit(f"{name}: ours, new home, runtime in the compiler cache", new_home, at_most_s=aim, slower=slower)
        limit(f"{name}: ours, runtime compiled before in the same home", same_home, at_most_s=aim, slower=slower)
        limit(f"{name}: ours, build there already", there, at_most_s=0.3, slower=slower)


def one_round(design: Design, folder: Path, number: int, rounds: int) -> tuple[float, float, float]:
    """CPU seconds of a build in a new home, in one that has the runtime, and in one that has the build. The compiler
    cache has the runtime each time, and nothing of the design."""
    say(f"build: {design.name}, round {number + 1} of {rounds}")
    costs = []
    for home in (folder / f"{design.name}{number}", folder / "home"):
        objects = folder / "objects"
        shutil.copytree(folder / "runtime", objects)
        with compiler_cache(objects):
            costs += [cost_of(lambda h=home: with_simulator(h, lambda s: s.build(design))) for _ in range(2)]
        shutil.rmtree(objects)
        for record in home.glob("builds/*/build.json"):
            shutil.rmtree(record.parent)
    return costs[0], costs[2], min(costs[1], costs[3])


def how_much_slower(design: Design, runner: Path) -> float:
    """How much slower this machine is now than the one that the absolute aims were set on, by what cocotb's runner
    takes for a testbench on its finished build."""
    costs = [cost_of(lambda t=t: plain.run(design, t, runner)) for t in random_testbenches(design, 3)]
    return min(costs) / RUNNER_S


SECTIONS = {f.__name__: f for f in (cocotb, systemverilog, cache, workers, build)}


def simulated(simulator: Simulator, design: Design, testbenches: list[Testbench]) -> None:
    """Run testbenches that must pass, none of them from the cache: a figure for anything else would say nothing."""
    results = list(simulator.run_many(design, testbenches))
    odd = [r for r in results if r.status != "passed" or r.cached]
    if odd:
        sys.exit(f"script/bench: {odd[0].status}, cached={odd[0].cached}: {odd[0].log[-500:]}")


def random_testbenches(design: Design, n: int, seed: int = 0) -> list[Testbench]:
    answers = scripted("scripted/random", cycles=CYCLES_OF_A_PART).propose([State(design)], n, seed)
    return [a.testbench for a in answers if a.testbench]


def unlike_any_other() -> Testbench:
    """A testbench whose generated code no compiler cache has."""
    text = PICORV32_TESTBENCH.replace("{word}", str(secrets.randbits(32))).replace(
        "{share}", str(2 + secrets.randbelow(30))
    )
    return Testbench(text, "systemverilog")


def processor() -> Design:
    try:
        import pythondata_cpu_picorv32
    except ImportError:
        sys.exit("script/bench: pythondata-cpu-picorv32 is not installed: run script/bootstrap")
    folder = Path(pythondata_cpu_picorv32.__file__).parent / "verilog"
    return load_design(folder / "picorv32.v", top="picorv32")


def with_simulator(home: Path, work: Callable[[Simulator], object]) -> None:
    with Simulator(home, workers=1) as simulator:
        work(simulator)


@contextlib.contextmanager
def compiler_cache(folder: Path) -> Iterator[None]:
    before = os.environ.get("CCACHE_DIR")
    os.environ["CCACHE_DIR"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["CCACHE_DIR"]
        else:
            os.environ["CCACHE_DIR"] = before


def say(what: str) -> None:
    print(f"bench: {what}", file=sys.stderr, flush=True)


def title(what: str, rounds: int) -> None:
    print(f"{what}; CPU ms, the least of {rounds} rounds")


def amount(what: str, seconds: list[float]) -> None:
    print(f"  {what:66} {1000 * min(seconds):10.2f}", flush=True)


def ratio(what: str, value: float, *, at_least: float | None = None, at_most: float | None = None) -> None:
    if at_least is not None:
        told = f"aim >= {at_least:g}: {'met' if value >= at_least else 'missed'}"
    elif at_most is not None:
        told = f"aim <= {at_most:g}: {'met' if value <= at_most else 'missed'}"
    else:
        told = ""
    print(f"  {what:66} {value:9.2f}x  {told}".rstrip(), flush=True)


def limit(what: str, seconds: float, *, at_most_s: float, slower: float = 1.0) -> None:
    """A figure with an absolute aim. `slower` is how much slower this machine is than that on which it was set."""
    told = f"aim <= {1000 * at_most_s:g}: {'met' if seconds <= at_most_s else 'missed'}"
    if slower > 1.1:
        told += f" ({1000 * seconds / slower:.0f} there; this machine is {slower:.1f}x slower now)"
    print(f"  {what:66} {1000 * seconds:10.2f}  {told}", flush=True)


def main() -> None:
    designs = {d.name: d for d in corpus_designs()}
    listed = "\n".join(f"  {name:14} {function.__doc__}" for name, function in SECTIONS.items())
    parser = argparse.ArgumentParser(
        prog="script/bench",
        description=f"What the engine costs, in CPU seconds and against references.\n\nsections:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="sections to run (default: all)")
    parser.add_argument("--design", default="timer", help="small design, by its name in the corpus (default: timer)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of which the least counts (default: 5)")
    parser.add_argument("--testbenches", type=int, default=40, help="cocotb testbenches a batch (default: 40)")
    given = parser.parse_args()
    if unknown := [s for s in given.sections if s not in SECTIONS]:
        parser.error(f"no section {unknown[0]!r}; there are: {', '.join(SECTIONS)}")
    if given.design not in designs:
        parser.error(f"no design {given.design!r} in the corpus; there are: {', '.join(designs)}")
    if min(given.rounds, given.testbenches) < 1:
        parser.error("--rounds and --testbenches are at least 1")
    logging.disable(logging.CRITICAL)
    options = Options(designs[given.design], given.rounds, given.testbenches)
    for name in given.sections or SECTIONS:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            SECTIONS[name](options, Path(folder))


if __name__ == "__main__":
    main()
