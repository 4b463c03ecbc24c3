"""Ten thousand testbenches: memory stays flat, and no process and no file is left.

Every design has its block of testbenches, cocotb mostly; one in a hundred is SystemVerilog, one in fifty fails,
crashes, leaves a process behind or writes files. Memory is the resident set of this process and of every process of
the engine that lives long: after a tenth of all testbenches and at the end; for the servers, which live for one design,
after as many of its block and at the end of that.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from llm4cov_assets.ingest.registry import corpus_designs
from sim.design import Design
from sim.simulation import Limits, Testbench
from sim.simulator import Simulator
from tests.soak import equal_sv

DESIGNS = ("timer", "async_fifo", "alu")
BATCH = 100  # testbenches a call: results are let go after each
GROWTH_MB = 16.0
"""A process that grows by more is not flat: less than that is what allocators keep (10,000 leaks of 1 KiB are 10)."""

COCOTB = """\
import os, random
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

@cocotb.test()
async def drives(dut):
    words = random.Random({number})
    for name in {clocks}:
        cocotb.start_soon(Clock(dut[name], 10, unit="ns").start())
    for _ in range(20):
        for name in {inputs}:
            dut[name].value = words.getrandbits(len(dut[name]))
        await RisingEdge(dut[{clocks}[0]])
    {end}
"""
ODD_ENDS = (
    "assert False, 'wrong'",
    "os.kill(os.getpid(), 11)",
    "os.fork() or __import__('time').sleep(600)",
    "os.makedirs('a/b/c'); open('a/b/big', 'wb').write(bytes(1 << 20))",
    "open('/tmp/left', 'w').write('here')",
    "os._exit(0)",
    "raise MemoryError",
)


@dataclass(frozen=True)
class Growth:
    """Resident memory of one process in MiB, early and at the end of a block, or of all of them."""

    block: str
    process: str
    early: float
    late: float

    @property
    def flat(self) -> bool:
        return self.late - self.early <= GROWTH_MB


@dataclass(frozen=True)
class Found:
    """What a soak of the engine saw. `processes` and `files` are those left when it was closed."""

    statuses: Counter[str]
    growth: tuple[Growth, ...]
    processes: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def holds(self) -> bool:
        clean = not self.processes and not self.files and not self.statuses["tool_error"]
        return bool(self.growth) and all(g.flat for g in self.growth) and clean


def testbenches(design: Design, numbers: Sequence[int]) -> Iterator[Testbench]:
    """One testbench for each number, no two the same."""
    interface = equal_sv.analyse(design).interface
    clocks = list(interface.clocks)
    inputs = [p.name for p in interface.inputs if p.name not in clocks]
    for n in numbers:
        if n % 100 == 7:
            text = equal_sv.testbench(design, "nonblocking", 8 + n % 13)
            yield Testbench(text.replace("$urandom", f"$urandom ^ {n}"), "systemverilog")
        else:
            end = ODD_ENDS[n // 50 % len(ODD_ENDS)] if n % 50 == 3 else "pass"
            yield Testbench(COCOTB.format(number=n, clocks=clocks, inputs=inputs, end=end))


def soak(home: Path, designs: Sequence[Design], number: int, workers: int) -> Found:
    """Run `number` testbenches in all, everything below the empty folder `home`."""
    temporary = home / "tmp"
    temporary.mkdir()
    before, tempfile.tempdir = tempfile.tempdir, str(temporary)
    watch = _Watch(early=number // 10)
    try:
        with Simulator(home / "home", workers=workers) as simulator:
            for k, design in enumerate(designs):
                simulator.build(design)
                share = number * (k + 1) // len(designs) - number * k // len(designs)
                watch.block(simulator, design, range(k * number, k * number + share))
            built = {p.name for p in (home / "home" / "builds").iterdir() if _is_kept(p)}
    finally:
        tempfile.tempdir = before
    left = alive(watch.seen, home, watch.others)
    folders = (home / "home" / "cache" / "run", temporary)
    files = [str(p.relative_to(home)) for folder in folders for p in folder.rglob("*")]
    files += [f"builds/{p.name}" for p in (home / "home" / "builds").iterdir() if p.name not in built]
    return Found(watch.statuses, tuple(watch.growth()), tuple(left), tuple(files))


class _Watch:
    """Memory of all processes after the first `early` testbenches of every block and at the end of it."""

    def __init__(self, early: int) -> None:
        self.early = early
        self.statuses: Counter[str] = Counter()
        self.seen: dict[int, psutil.Process] = {}
        self.others = frozenset(children())  # whoever calls may have started some, a test session for instance
        self._blocks: list[tuple[str, dict[str, float], dict[str, float]]] = []

    def block(self, simulator: Simulator, design: Design, numbers: range) -> None:
        early: dict[str, float] = {}
        started = time.monotonic()
        for done in range(BATCH, len(numbers) + BATCH, BATCH):
            batch = list(testbenches(design, numbers[done - BATCH : done]))
            results = simulator.run_many(design, batch, limits=Limits(wall_s=60))
            self.statuses.update(r.status for r in results)
            self.seen |= {p.pid: p for p in children() if p not in self.others}
            if not early and done >= min(self.early, len(numbers) / 2):
                early = _memory()
            if done % 1000 == 0 or done >= len(numbers):
                done = min(done, len(numbers))
                say(f"{design.name}: {done:,} of {len(numbers):,}, {done / (time.monotonic() - started):.0f} a second")
        self._blocks.append((design.name, early, _memory()))

    def growth(self) -> Iterator[Growth]:
        """Of the processes that lived from the first block to the last, then of those that live for one design."""
        first, last = self._blocks[0][1], self._blocks[-1][2]
        throughout = sorted(first.keys() & last.keys())
        yield from (Growth("all", p, first[p], last[p]) for p in throughout)
        for name, early, late in self._blocks:
            yield from (
                Growth(name, p, early[p], late[p]) for p in sorted((early.keys() & late.keys()) - set(throughout))
            )


def children() -> list[psutil.Process]:
    """What this process started, and what that started."""
    return psutil.Process().children(recursive=True)


def alive(seen: dict[int, psutil.Process], home: Path, others: Collection[psutil.Process]) -> list[str]:
    """What still runs of the processes that were seen, of this one's children, and of those that work below `home`;
    but for `others`."""
    psutil.wait_procs([p for p in seen.values() if p.is_running()], timeout=10)  # the system's init takes its time
    found = []
    for process in psutil.process_iter():
        try:
            if process in others:
                continue
            known = seen.get(process.pid) == process or process in children()
            dead = process.status() == psutil.STATUS_ZOMBIE
            if process.pid != os.getpid() and not dead and (known or process.cwd().startswith(str(home))):
                found.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
        except psutil.Error:
            continue
    return found


def _memory() -> dict[str, float]:
    """Resident MiB by name and id of this process and all that it started, bar those that end meanwhile."""
    found: dict[str, float] = {"this process": psutil.Process().memory_info().rss / 2**20}
    for process in children():
        with contextlib.suppress(psutil.NoSuchProcess):
            found[f"{process.name()} {process.pid}"] = process.memory_info().rss / 2**20
    return found


def _is_kept(path: Path) -> bool:
    """Builds, their locks, the harness and the launcher; anything else there is somebody's rest."""
    return path.suffix == ".lock" or (path / "build.json").exists() or path.name.startswith(("harness-", "launcher-"))


def say(what: str) -> None:
    print(f"soak: {what}", file=sys.stderr, flush=True)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, default=10_000, help="testbenches in all (default: 10,000)")
    parser.add_argument("--workers", type=int, default=2, help="at a time (default: 2)")
    parser.add_argument("--designs", default=",".join(DESIGNS), help=f"default: {','.join(DESIGNS)}")


def run(options: argparse.Namespace) -> bool:
    known = {d.name: d for d in corpus_designs()}
    names = options.designs.split(",")
    if unknown := [n for n in names if n not in known]:
        sys.exit(f"script/soak engine: no design {unknown[0]!r} in the corpus; there are: {', '.join(known)}")
    with tempfile.TemporaryDirectory(prefix="soak-") as home:
        found = soak(Path(home), [known[n] for n in names], options.n, options.workers)
    print(", ".join(f"{n:,} {status}" for status, n in found.statuses.most_common()))
    print(f"{'resident MiB':32} {'after 1/10':>10} {'at the end':>10}")
    for g in found.growth:
        print(f"{g.block + ': ' + g.process:32} {g.early:10.1f} {g.late:10.1f}{'' if g.flat else '  GROWS'}")
    for what, left in (("processes", found.processes), ("files", found.files)):
        print(f"{what} left: {len(left)}", *left[:20], sep="\n  ")
    return found.holds
