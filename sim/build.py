"""Builds: a design compiled once, for any number of testbenches.

A build is a shared object that the harness loads, in `<home>/builds/<build_id>/`, beside the design's sources, its
coverage points and `build.json`. Failed builds stay too, with their message, so that nobody builds them again.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sim.coverage import CoverageData, Points, parse_coverage, uncovered
from sim.design import Design, macro_texts
from sim.files import own_folder
from sim.identity import content_id
from sim.ports import unusable_port
from sim.probe import with_named_resets
from sim.simulation import UncoveredItem
from sim.slang import elaborate
from sim.toolchain import TOOL_CPU_S, TOOL_MEMORY_MB, Finished, Toolchain, ToolError, locked

FLAGS = ("--cc", "--prefix", "Vtop", "--vpi", "--public-flat-rw", "--x-assign", "0", "--x-initial", "0",
         "-Wno-fatal", "-Werror-MODDUP", "--quiet-stats", "--pins-inout-enables")  # fmt: skip
METRIC_FLAGS = {
    "line": ("--coverage-line",),  # gives the points of `branch` too
    "expression": ("--coverage-expr",),
    "toggle": ("--coverage-toggle",),
    "functional": ("--coverage-user",),
}
FSM_FLAGS = ("--coverage-fsm",)
FSM_REASON = "measured when asked for (sim --fsm): Verilator stops at it on many real designs"
# What is left out, in turn, until Verilator can instrument the design: each alone before both, since either may fail.
LADDER: tuple[tuple[str, ...], ...] = (
    (), ("expression",), ("toggle",), ("expression", "toggle"), ("expression", "toggle", "line"), tuple(METRIC_FLAGS)
)  # fmt: skip
# Instrumenting an xor of n terms that repeat takes time exponential in n. CPU time, so that the points of a design do
# not depend on how busy the machine was; ibex takes 2.3 s.
INSTRUMENT_CPU_S = 120
UNIT_BYTES = 2 << 20  # of generated code that is compiled as one file; see `_units`
_UNIT_MEMORY = 1 << 30  # that the compiler may take for one
PROBE_EVALUATIONS = 200
OPTIMISATION = "-O3"  # of Verilator; the C++ compiler's is in toolchain.COMPILE
Variant = Literal["coverage", "fsm", "vcd", "fst"]
"""What a build is for. Results come from `coverage`. The others are for replaying a record of the inputs: `fsm` is a
probe that has the points of the design's state machines and no others, `vcd` and `fst` write waveforms."""
WAVES_FLAGS = {"vcd": ("--trace-vcd",), "fst": ("--trace-fst",)}
_FST_MEND = "waveforms in FST need lz4 and zlib: apt-get install liblz4-dev zlib1g-dev, or write a .vcd file"
_ERROR = re.compile(
    r"^%Error(?:-[A-Z0-9]+)?: (?:(?P<file>[^\s:]+):(?P<line>\d+):(?:\d+:)? )?(?P<message>.*)$", re.MULTILINE
)
_INTERNAL = re.compile(r"Internal Error|Unsupported: .*coverage|Invalid option: --coverage")
_DETAILS = "\n"  # between a reason and the output it comes from
_CONSEQUENCE = "fatal error may be caused by the earlier error"  # Verilator's own word for it


class BuildError(Exception):
    """A design that does not build. `status` is `design_error` (the message names file and line) or `tool_error`."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True)
class ModelPort:
    """A port as the compiled design keeps it, in the order of its records.

    `kind` is `input` or `output`; of an inout, which is an `input` too, `out` is what the design drives and `enable`
    which bits. `size` and `element_size` are bytes.
    """

    name: str
    kind: str
    size: int
    element_size: int


@dataclass(frozen=True)
class Build:
    """A usable build. `points` is in the build's fixed order, which hit bitsets refer to.

    `metrics_unavailable` says why a metric has no points. `deterministic` is False if the design is not a function of
    its inputs, None if that could not be found out; `delays` is True if it has delays of its own. `cached` tells
    whether it was there already, `cpu_s` what it cost.
    """

    build_id: str
    rtl_id: str
    top: str
    folder: Path
    metrics_unavailable: dict[str, str]
    simulator: str
    deterministic: bool | None
    delays: bool
    ports: tuple[ModelPort, ...]
    cpu_s: float
    cached: bool = False

    @property
    def model(self) -> Path:
        """The shared object."""
        return self.folder / "model.so"

    @property
    def raw_points(self) -> bytes:
        """The points as a data file of Verilator, with counts of 0."""
        return (self.folder / "points.dat").read_bytes()

    @cached_property
    def coverage_data(self) -> CoverageData:
        """What `raw_points` says, with the source lines."""
        sources = {str(p.relative_to(self.folder / "src")): p for p in (self.folder / "src").rglob("*") if p.is_file()}
        text = {name: p.read_text(errors="replace") for name, p in sources.items()}
        return parse_coverage(self.raw_points, top=self.top, dut=self.top, sources=text)

    @cached_property
    def _rows(self) -> np.ndarray[Any, Any]:
        return np.array(self.coverage_data.rows, dtype=np.intp)

    @property
    def points(self) -> Points:
        return self.coverage_data.points

    @cached_property
    def _items(self) -> tuple[UncoveredItem, ...]:
        return uncovered(self.points, b"")

    def uncovered(self, hits: bytes) -> tuple[UncoveredItem, ...]:
        """The points that are not in `hits`; a result shares its items with all others of the build."""
        missing = np.unpackbits(np.frombuffer(hits, dtype=np.uint8), bitorder="little", count=len(self.points)) == 0
        return tuple(itertools.compress(self._items, missing.tolist()))

    def hits(self, counters: bytes) -> bytes:
        """Turn the harness's bitset over its counters into one over `points`."""
        points, rows = self.points, self._rows
        reached = np.unpackbits(np.frombuffer(counters, dtype=np.uint8), bitorder="little", count=len(rows))
        hit = np.zeros(len(points), dtype=bool)
        hit[rows[(reached != 0) & (rows >= 0)]] = True
        return np.packbits(hit, bitorder="little").tobytes()


@dataclass(frozen=True)
class Inspection:
    """What the harness finds out about a compiled model."""

    points: bytes
    deterministic: bool | None
    ports: tuple[ModelPort, ...]


Inspect = Callable[[Path], Inspection]


class Builder:
    """Builds designs below `<home>/builds`; safe to use from several threads and processes at once."""

    def __init__(self, toolchain: Toolchain) -> None:
        self.toolchain = toolchain
        self._known: dict[str, Build] = {}
        self._ids: dict[tuple[str, Variant], str] = {}

    def build_id(self, design: Design, variant: Variant = "coverage") -> str:
        """Key of a build: what simulation sees of the design, simulator and version, flags, harness."""
        key = (design.rtl_id, variant)
        if key not in self._ids:
            tools = self.toolchain
            metrics = ("named resets", FSM_FLAGS) if variant == "fsm" else (METRIC_FLAGS, LADDER, INSTRUMENT_CPU_S)
            flags = (*FLAGS, OPTIMISATION, metrics, *WAVES_FLAGS.get(variant, ()))
            self._ids[key] = content_id("build", design.rtl_id, tools.simulator, flags, tools.harness_id)
        return self._ids[key]

    def known(self, build_id: str) -> Build | None:
        """The finished build of this id, or None. Raises BuildError for a failed one."""
        if build_id in self._known:
            return self._known[build_id]
        folder = self.toolchain.builds / build_id
        try:
            record = json.loads((folder / "build.json").read_text())
        except (OSError, ValueError):
            return None
        if "error" in record:
            raise BuildError(record["status"], record["error"])
        if not (folder / "model.so").exists():
            return None
        self._known[build_id] = build = _build_of(record, folder, cached=True)
        return build

    def build(
        self, design: Design, inspect: Inspect, variant: Variant = "coverage", *, retry_faults: bool = False
    ) -> Build:
        """Return the build of `design`, compiling it unless that was done before.

        Raises BuildError, for `fsm` also when Verilator cannot instrument the design's state machines, and ToolError
        for `fst` when what it needs is not installed.
        """
        if variant == "fst" and not self.toolchain.has_headers("lz4.h", "zlib.h"):
            raise ToolError(_FST_MEND)
        build_id = self.build_id(design, variant)
        if build_id in self._known:
            return self._known[build_id]
        with locked(self.toolchain.builds / f"{build_id}.lock"):
            try:
                known = self.known(build_id)
            except BuildError as error:
                if not (retry_faults and error.status == "tool_error"):
                    raise
                known = None
            return known or self._build(design, build_id, inspect, variant)

    def _build(self, design: Design, build_id: str, inspect: Inspect, variant: Variant) -> Build:
        with own_folder(self.toolchain.builds) as work:
            try:
                record = _Compilation(design, work, self.toolchain, variant).run(inspect)
                record |= {"build_id": build_id, "rtl_id": design.rtl_id, "top": design.top}
                record |= {"simulator": self.toolchain.simulator}
            except BuildError as error:
                (work / "build.json").write_text(json.dumps({"status": error.status, "error": error.message}))
                self._keep(work, build_id)
                raise
            (work / "build.json").write_text(json.dumps(record, indent=1))
            folder = self._keep(work, build_id)
        self._known[build_id] = _build_of(record, folder, cached=True)
        return _build_of(record, folder, cached=False)

    def _keep(self, work: Path, build_id: str) -> Path:
        folder = self.toolchain.builds / build_id
        shutil.rmtree(folder, ignore_errors=True)  # a failed or damaged build of the same key
        work.rename(folder)
        return folder


def _build_of(record: dict[str, Any], folder: Path, *, cached: bool) -> Build:
    ports = tuple(ModelPort(*fields) for fields in record["ports"])
    return Build(folder=folder, cached=cached, **record | {"ports": ports})


class _Compilation:
    """One design on its way to a shared object, in the folder `work`."""

    def __init__(self, design: Design, work: Path, toolchain: Toolchain, variant: Variant) -> None:
        self.design, self.work, self.tools, self.variant = design, work, toolchain, variant
        self.cpu_s = 0.0
        self.delays = False

    def run(self, inspect: Inspect) -> dict[str, Any]:
        self.tools.ensure_harness()
        problem = unusable_port(elaborate(self.design))
        if problem:
            raise BuildError("design_error", problem)
        examined = with_named_resets(self.design) if self.variant == "fsm" else self.design
        examined.write_to(self.work / "src")
        unavailable = self._make()
        self.design.write_to(self.work / "src")  # what people see of it
        try:
            seen = inspect(self.work / "model.so")
        except ToolError as error:
            status = "design_error" if "undefined symbol" in str(error) else "tool_error"
            raise BuildError(status, f"the compiled design cannot be loaded: {error}") from error
        (self.work / "points.dat").write_bytes(seen.points)
        shutil.rmtree(self.work / "obj")
        return {
            "metrics_unavailable": unavailable,
            "deterministic": seen.deterministic,
            "delays": self.delays,
            "ports": [list(vars(port).values()) for port in seen.ports],
            "cpu_s": round(self.cpu_s, 3),
        }

    def _make(self) -> dict[str, str]:
        """Generate and compile, with as many metrics as Verilator can instrument; return why the others are missing."""
        if self.variant == "fsm":
            failure = self._attempt(FSM_FLAGS)
            if failure is None:
                return {}
            raise BuildError("tool_error", f"Verilator cannot instrument its state machines: {failure}")
        failure = None
        for dropped in LADDER:
            why = f"Verilator cannot instrument it here: {(failure or '').partition(_DETAILS)[0]}"
            failure = self._attempt([f for m, flags in METRIC_FLAGS.items() if m not in dropped for f in flags])
            if failure is None:
                also = ("branch",) if "line" in dropped else ()
                return {"fsm": FSM_REASON} | dict.fromkeys((*dropped, *also), why)
        raise BuildError("tool_error", f"Verilator fails on this design: {failure}")

    def _attempt(self, metrics: Sequence[str]) -> str | None:
        """Generate and compile with the flags `metrics`; return None, or why that cannot be done."""
        return self._generate(metrics) or self._compile()

    def _generate(self, metrics: Sequence[str]) -> str | None:
        """Run Verilator with the flags `metrics`; return None when it succeeded, else why it cannot instrument.

        Raises BuildError when it is not the instrumentation that fails.
        """
        design = self.design
        command: list[str | Path] = [*FLAGS, OPTIMISATION, *metrics, "--Mdir", "../obj"]
        command += WAVES_FLAGS.get(self.variant, ())
        command += ["--top-module", design.top]
        command += [f"-I{d or '.'}" for d in design.include_dirs]
        command += [f"-D{macro}" for macro in macro_texts(design.defines)]
        command += [f"-G{name}={value}" for name, value in design.parameters]
        command += [s.path for s in design.sources]
        finished = self._verilator(command, bool(metrics))
        self.delays = False
        if finished.returncode and "NEEDTIMINGOPT" in finished.output:
            finished = self._verilator(["--timing", *command], bool(metrics))
            self.delays = True
        if finished.returncode == 0:
            return None
        if metrics and finished.cpu_s > 0.9 * INSTRUMENT_CPU_S:  # the kernel counts in ticks
            return f"it did not finish within {INSTRUMENT_CPU_S} s of CPU time"
        if finished.limited and not metrics:
            limits = f"{TOOL_CPU_S} s of CPU time and {TOOL_MEMORY_MB >> 10} GiB of memory"
            raise BuildError("tool_error", f"Verilator did not finish within {limits}")
        error = _design_error(finished.output, design)
        first = error.partition("\n")[0][:300]
        if finished.signal:
            return f"it was ended by signal {finished.signal}: {first}"
        if _INTERNAL.search(finished.output) and _CONSEQUENCE not in finished.output:
            return first
        raise BuildError("design_error", error)

    def _verilator(self, command: Sequence[str | Path], instrumented: bool) -> Finished:
        shutil.rmtree(self.work / "obj", ignore_errors=True)
        limit = INSTRUMENT_CPU_S if instrumented else TOOL_CPU_S
        finished = self.tools.verilate(*command, cwd=self.work / "src", cpu_s=limit)
        self.cpu_s += finished.cpu_s
        return finished

    def _compile(self) -> str | None:
        """Compile the generated files, with the harness's precompiled header before them, and link them.

        Returns None, or the first error: Verilator may generate what is not C++ (for the toggles of a port of type
        `event`, for instance).
        """
        units = self._units()
        with ThreadPoolExecutor(min(len(units), _COMPILERS)) as pool:
            compiled = list(pool.map(self._compile_unit, units))
        objects = [f"{unit}.o" for unit in units]
        libraries = ("-llz4", "-lz") if self.variant == "fst" else ()
        steps = [
            *compiled,
            self.tools.link("-shared", "-o", "../model.so", *objects, *libraries, cwd=self.work / "obj"),
        ]
        self.cpu_s += sum(step.cpu_s for step in steps)
        failed = next((step for step in steps if step.returncode != 0), None)
        if failed is None:
            return None
        said = failed.output.strip()
        error = next((line for line in said.split("\n") if "error" in line), said[-300:])
        return f"what it generated does not compile: {error[:300]}{_DETAILS}{said[-4000:]}"

    def _units(self) -> list[str]:
        """Write the files that are compiled; each includes generated files of up to UNIT_BYTES together.

        A small design is cheapest as one file. A large one takes less time and memory as several: ibex
        (7.2 MB) 42 CPU seconds and 622 MB as one, 38 and 473 as five, which can run in parallel; picorv32 (1 MB) 5.7
        as one, 7.4 as three.
        """
        folder = self.work / "obj"
        groups: list[list[str]] = [[]]
        size = 0
        for path in sorted(folder.glob("Vtop*.cpp")):
            if groups[-1] and size + path.stat().st_size > UNIT_BYTES:
                groups.append([])
                size = 0
            groups[-1].append(path.name)
            size += path.stat().st_size
        groups[0].append(f"{self.tools.harness_folder}/model.cpp")
        if self.variant == "fst":  # not part of the harness: it needs libraries that few machines have
            groups.append(["verilated_fst_c.cpp"])
        for number, names in enumerate(groups):
            (folder / f"unit_{number}.cpp").write_text("".join(f'#include "{name}"\n' for name in names))
        return [f"unit_{number}" for number in range(len(groups))]

    def _inouts(self) -> int:
        """Write what model.cpp needs to reach both sides of inout ports; return how many there are."""
        header = (self.work / "obj" / "Vtop.h").read_text()
        names = re.findall(r"\bVL_OUT\w*\(&(\w+)__en,", header)
        lines = [f"into[{i}] = {{&top->{n}, &top->{n}__out, &top->{n}__en}};\n" for i, n in enumerate(names)]
        (self.work / "obj" / "pins.h").write_text("".join(lines))
        return len(names)

    def _compile_unit(self, unit: str) -> Finished:
        kind = self.variant.upper()
        trace = ("-DVM_TRACE=1", f"-DVM_TRACE_{kind}=1") if self.variant in WAVES_FLAGS else ()
        header = self.tools.harness_folder / "model.h"
        inouts = self._inouts() if unit == "unit_0" else 0
        pins = (f"-DLLM4COV_INOUTS={inouts}",) if inouts else ()
        with _compiling:
            return self.tools.compile(
                *trace, *pins, "-I.", "-include", header, "-c", f"{unit}.cpp", "-o", f"{unit}.o", cwd=self.work / "obj"
            )


def _compilers() -> int:
    """How many compilers this process may run at once: what its processors and the free memory carry."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(len(os.sched_getaffinity(0)), free // _UNIT_MEMORY))


_COMPILERS = _compilers()
_compiling = threading.BoundedSemaphore(_COMPILERS)


def _design_error(output: str, design: Design) -> str:
    """The errors of Verilator's output, each with the source line; the first line is the first error."""
    lines: list[str] = []
    sources = {f.path: f for f in (*design.sources, *design.includes)}
    for match in _ERROR.finditer(output):
        message = match["message"].strip()
        if message.startswith(("Exiting due to", "Cannot continue")):
            continue
        file, line = match["file"], match["line"]
        if file is None:
            lines.append(f"%Error: {message}")
            continue
        lines.append(f"%Error: {file}:{line}: {message}")
        if file in sources:
            text = sources[file].text.split("\n")
            number = int(line)
            if 0 < number <= len(text):
                lines.append(f"{number:5} | {text[number - 1].strip()}")
        if len(lines) >= 20:
            break
    return "\n".join(lines) or output.strip()[-2000:] or "Verilator failed without a message"
