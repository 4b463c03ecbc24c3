"""Builds: a design compiled once, for any number of testbenches.

A build is a shared object that the harness loads, in `<home>/builds/<build_id>/`, beside the design's sources, its
coverage points and `build.json`. Failed builds stay too, with their message, so that nobody builds them again.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sim.coverage import Points, parse_coverage, uncovered
from sim.design import Design
from sim.identity import content_id
from sim.simulation import UncoveredItem
from sim.toolchain import Toolchain, ToolError, locked

FLAGS = ("--cc", "--prefix", "Vtop", "--vpi", "--public-flat-rw", "--x-assign", "0", "--x-initial", "0",
         "-Wno-fatal", "-Werror-MODDUP", "--quiet-stats")  # fmt: skip
METRIC_FLAGS = {
    "line": ("--coverage-line",),  # gives the points of `branch` too
    "expression": ("--coverage-expr",),
    "toggle": ("--coverage-toggle",),
    "functional": ("--coverage-user",),
}
FSM_REASON = "not measured: Verilator's FSM coverage stops on many real designs"
BUILD_TIMEOUT_S = 600.0
PROBE_EVALUATIONS = 200
OPTIMISATION = "-O3"  # of Verilator; the C++ compiler's is in toolchain.COMPILE
WAVES_FLAGS = ("--trace",)
_ERROR = re.compile(
    r"^%Error(?:-[A-Z0-9]+)?: (?:(?P<file>[^\s:]+):(?P<line>\d+):(?:\d+:)? )?(?P<message>.*)$", re.MULTILINE
)
_INTERNAL = re.compile(r"Internal Error|Verilator aborted|Unsupported: .*coverage")
_CONSEQUENCE = "fatal error may be caused by the earlier error"  # Verilator's own word for it


class BuildError(Exception):
    """A design that does not build. `status` is `design_error` (the message names file and line) or `tool_error`."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


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
    cpu_s: float
    cached: bool = False

    @property
    def model(self) -> Path:
        """The shared object."""
        return self.folder / "model.so"

    @cached_property
    def _coverage(self) -> tuple[Points, np.ndarray[Any, Any]]:
        sources = {str(p.relative_to(self.folder / "src")): p for p in (self.folder / "src").rglob("*") if p.is_file()}
        text = {name: p.read_text(errors="replace") for name, p in sources.items()}
        data = parse_coverage((self.folder / "points.dat").read_bytes(), top=self.top, dut=self.top, sources=text)
        return data.points, np.array(data.rows, dtype=np.intp)

    @property
    def points(self) -> Points:
        return self._coverage[0]

    @cached_property
    def _items(self) -> tuple[UncoveredItem, ...]:
        return uncovered(self.points, b"")

    def uncovered(self, hits: bytes) -> tuple[UncoveredItem, ...]:
        """The points that are not in `hits`; a result shares its items with all others of the build."""
        missing = np.unpackbits(np.frombuffer(hits, dtype=np.uint8), bitorder="little", count=len(self.points)) == 0
        return tuple(itertools.compress(self._items, missing.tolist()))

    def hits(self, counters: bytes) -> bytes:
        """Turn the harness's bitset over its counters into one over `points`."""
        points, rows = self._coverage
        reached = np.unpackbits(np.frombuffer(counters, dtype=np.uint8), bitorder="little", count=len(rows))
        hit = np.zeros(len(points), dtype=bool)
        hit[rows[(reached != 0) & (rows >= 0)]] = True
        return np.packbits(hit, bitorder="little").tobytes()


@dataclass(frozen=True)
class Inspection:
    """What the harness finds out about a compiled model."""

    points: bytes
    deterministic: bool | None


Inspect = Callable[[Path], Inspection]


class Builder:
    """Builds designs below `<home>/builds`; safe to use from several threads and processes at once."""

    def __init__(self, toolchain: Toolchain) -> None:
        self.toolchain = toolchain
        self._known: dict[str, Build] = {}
        self._ids: dict[tuple[str, bool], str] = {}

    def build_id(self, design: Design, *, waves: bool = False) -> str:
        """Key of a build: what simulation sees of the design, simulator and version, flags, harness."""
        key = (design.rtl_id, waves)
        if key not in self._ids:
            tools = self.toolchain
            flags = (*FLAGS, OPTIMISATION, METRIC_FLAGS, *(WAVES_FLAGS if waves else ()))
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
        build = Build(folder=folder, cached=True, **record)
        self._known[build_id] = build
        return build

    def build(self, design: Design, inspect: Inspect, *, retry_faults: bool = False, waves: bool = False) -> Build:
        """Return the build of `design`, compiling it unless that was done before.

        With `waves` it can write waveforms, and is slower. Raises BuildError.
        """
        build_id = self.build_id(design, waves=waves)
        if build_id in self._known:
            return self._known[build_id]
        with locked(self.toolchain.builds / f"{build_id}.lock"):
            try:
                known = self.known(build_id)
            except BuildError as error:
                if not (retry_faults and error.status == "tool_error"):
                    raise
                known = None
            return known or self._build(design, build_id, inspect, waves)

    def _build(self, design: Design, build_id: str, inspect: Inspect, waves: bool) -> Build:
        work = Path(tempfile.mkdtemp(prefix=f"{build_id}.", dir=self.toolchain.builds))
        try:
            try:
                record = _Compilation(design, work, self.toolchain, waves).run(inspect)
                record |= {"build_id": build_id, "rtl_id": design.rtl_id, "top": design.top}
                record |= {"simulator": self.toolchain.simulator}
            except BuildError as error:
                (work / "build.json").write_text(json.dumps({"status": error.status, "error": error.message}))
                self._keep(work, build_id)
                raise
            (work / "build.json").write_text(json.dumps(record, indent=1))
            folder = self._keep(work, build_id)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        self._known[build_id] = Build(folder=folder, cached=True, **record)
        return Build(folder=folder, **record)

    def _keep(self, work: Path, build_id: str) -> Path:
        folder = self.toolchain.builds / build_id
        shutil.rmtree(folder, ignore_errors=True)  # a failed or damaged build of the same key
        work.chmod(0o755)
        work.rename(folder)
        return folder


class _Compilation:
    """One design on its way to a shared object, in the folder `work`."""

    def __init__(self, design: Design, work: Path, toolchain: Toolchain, waves: bool) -> None:
        self.design, self.work, self.tools, self.waves = design, work, toolchain, waves
        self.cpu_s = 0.0
        self.delays = False

    def run(self, inspect: Inspect) -> dict[str, Any]:
        self.tools.ensure_harness()
        self.design.write_to(self.work / "src")
        unavailable = self._verilate()
        self._compile()
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
            "cpu_s": round(self.cpu_s, 3),
        }

    def _verilate(self) -> dict[str, str]:
        """Generate C++, with as many metrics as Verilator can instrument; return why the others are missing."""
        dropped: dict[str, str] = {}
        for metric in ("", "expression", "toggle", "line", "functional"):
            if metric:
                dropped[metric] = dropped.get("", "")
            output = self._generate([m for m in METRIC_FLAGS if m not in dropped])
            if output is None:
                reasons = {m: f"Verilator cannot instrument it here: {why}" for m, why in dropped.items() if m}
                if "line" in reasons:
                    reasons["branch"] = reasons["line"]
                return {"fsm": FSM_REASON} | reasons
            if not _INTERNAL.search(output) or _CONSEQUENCE in output:
                raise BuildError("design_error", _design_error(output, self.design))
            dropped[""] = _design_error(output, self.design).partition("\n")[0][:300]
        raise BuildError("tool_error", f"Verilator fails on this design: {dropped['']}")

    def _generate(self, metrics: Sequence[str]) -> str | None:
        """Run Verilator; return None when it succeeded, else what it said."""
        flags = [f for m in metrics for f in METRIC_FLAGS[m]]
        command: list[str | Path] = [*FLAGS, OPTIMISATION, *flags, "--Mdir", "../obj"]
        command += WAVES_FLAGS if self.waves else ()
        command += ["--top-module", self.design.top]
        command += [f"-I{d or '.'}" for d in self.design.include_dirs]
        command += [f"-D{name}={value}" if value else f"-D{name}" for name, value in self.design.defines]
        command += [f"-G{name}={value}" for name, value in self.design.parameters]
        files = [s.path for s in self.design.sources]
        for timing in ((), ("--timing",)):
            shutil.rmtree(self.work / "obj", ignore_errors=True)
            finished = self.tools.verilate(
                *command, *timing, *files, cwd=self.work / "src", timeout_s=BUILD_TIMEOUT_S
            )
            self.cpu_s += finished.cpu_s
            if finished.returncode == 0:
                self.delays = bool(timing)
                return None
            if "NEEDTIMINGOPT" not in finished.output or timing:
                break
        if finished.timed_out:
            raise BuildError("tool_error", f"Verilator did not finish within {BUILD_TIMEOUT_S:.0f} s")
        if finished.returncode < 0:
            return f"%Error: Verilator aborted by signal {-finished.returncode}\n{finished.output}"
        return finished.output

    def _compile(self) -> None:
        """Compile all generated files as one, with the harness's precompiled header before them."""
        folder = self.tools.harness_folder
        units = sorted(p.name for p in (self.work / "obj").glob("Vtop*.cpp"))
        includes = [f'#include "{name}"\n' for name in units]
        (self.work / "obj" / "all.cpp").write_text("".join(includes) + f'#include "{folder}/model.cpp"\n')
        trace = ("-DVM_TRACE=1", "-DVM_TRACE_VCD=1") if self.waves else ()
        finished = self.tools.compile(
            *trace, "-I.", "-include", folder / "model.h", "-c", "all.cpp", "-o", "all.o", cwd=self.work / "obj"
        )
        self.cpu_s += finished.cpu_s
        if finished.returncode == 0:
            finished = self.tools.link("-shared", "-o", "../model.so", "all.o", cwd=self.work / "obj")
            self.cpu_s += finished.cpu_s
        if finished.returncode != 0:
            raise BuildError("tool_error", f"compiling the generated code failed:\n{finished.output.strip()[-4000:]}")


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
