"""The Python side of the harness (sim/harness/main.cpp): one process that runs the testbenches of one design at a time.

An Engine belongs to one thread. It starts its process when first needed and again when that died.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, NoReturn

from sim.build import PROBE_EVALUATIONS, Build, Inspection, ModelPort
from sim.checker import Checker
from sim.design import Design
from sim.files import make_own_folder, open_ordinary, remove
from sim.sandbox import kill_tree
from sim.simulation import Limits
from sim.toolchain import Toolchain, ToolError
from sim.violations import Violation

HARNESS_LOG = "harness.log"
LOG_BYTES = 64 << 10  # of the end of a log that is kept
_START_TIMEOUT_S = 60.0
_GRACE_S = 60.0  # beyond the wall-clock limits that the harness itself enforces
_TESTS_BYTES = 1 << 20


class End(IntEnum):
    """Why a run ended; the order is that of `End` in sim/harness/simulation.h."""

    NONE = 0
    DONE = 1
    FINISH = 2
    STOP = 3
    NONCONVERGED = 4
    FATAL = 5
    STARVED = 6
    TIME_LIMIT = 7
    EVALUATION_LIMIT = 8
    RECORD_FULL = 9


class Excess(IntEnum):
    """The limit at which the harness killed a run; the order is that of `Excess` in sim/harness/processes.h."""

    NONE = 0
    WALL = 1
    CPU = 2
    PROCESSES = 3
    MEMORY = 4
    DISK = 5
    FILES = 6
    HIDING = 7


@dataclass(frozen=True)
class Tests:
    """What the testbench's process says of its tests; a claim of untrusted code."""

    __test__ = False

    loaded: bool = False
    total: int = 0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    errors: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """One run, as the harness saw it.

    `counters` is the harness's bitset of a clean replay (empty when the replay did not end); `same` tells whether the
    replay gave the outputs that the run had. `errors` counts `$error` and failed assertions of a SystemVerilog
    testbench, a claim too. `record` is what `replay` takes, if it was asked for.
    """

    end: End
    excess: Excess
    exit: int
    signal: int
    time_ns: int
    evaluations: int
    wall_s: float
    cpu_s: float
    replayed: bool
    same: bool
    counters: bytes
    tests: Tests = field(default_factory=Tests)
    errors: int = 0
    record: bytes = b""
    log: str = ""


class EngineDied(ToolError):
    """The harness ended in the middle of a command."""


class EngineStopped(Exception):
    """The engine was stopped by `abort`: what it was doing has no result."""


class Engine:
    """Runs testbenches in a harness process inside the sandbox."""

    def __init__(self, toolchain: Toolchain, runs: Path) -> None:
        self._tools = toolchain
        self._folder = make_own_folder(runs)
        self._process: subprocess.Popen[bytes] | None = None
        self._model: Path | None = None
        self._buffer = b""
        self._stopped = False
        self._checker: Checker | None = None

    def inspect(self, model: Path) -> Inspection:
        """Load a freshly compiled model, list its points and find out whether it is deterministic.

        Raises ToolError when it cannot be loaded.
        """
        self._open(model)
        file = self._folder / "points.dat"
        ports = tuple(ModelPort(*fields) for fields in self._ask("points", str(file))["ports"])
        deterministic = self._ask("probe", str(PROBE_EVALUATIONS))["deterministic"]
        self.release()  # the folder of the model is about to be renamed
        return Inspection(file.read_bytes(), deterministic, ports)

    def check(self, text: str, design: Design) -> tuple[Violation, ...]:
        """What a SystemVerilog testbench does that testbenches must not do. Raises ToolError."""
        if self._stopped:
            raise EngineStopped
        self._checker = self._checker or Checker(self._tools.sandbox)
        return self._checker.check(text, design)

    def run(
        self, build: Build, testbench: str | Path, *, limits: Limits, seed: int, keep_record: bool = False
    ) -> Outcome:
        """Run one testbench: the text of a cocotb file, or the shared object of a compiled SystemVerilog one.

        Raises ToolError (EngineDied if the harness ended).
        """
        self._open(build.model)
        folder = self._empty_folder()
        record = self._folder / "record" if keep_record else None
        try:
            library = ""
            if isinstance(testbench, str):
                (folder / "testbench.py").write_text(testbench, encoding="utf-8", errors="surrogateescape")
            else:  # where it was compiled is out of sight of every testbench
                library = str(shutil.copy(testbench, folder))
            reply = self._ask(
                "run", str(folder), str(limits.sim_time_ns), str(limits.evaluations),
                str(int(limits.wall_s * 1000)), str(max(1, int(limits.cpu_s))), str(limits.memory_mb),
                str(limits.output_bytes), str(record or ""), library,
                str(seed & 0x7FFFFFFF), json.dumps({"seed": seed, "top": build.top}),
                str(limits.processes), str(limits.disk_mb), str(limits.files),
                timeout_s=2 * limits.wall_s + _GRACE_S,
            )  # fmt: skip
            return Outcome(
                end=End(reply["end"]) if reply["end"] in End._value2member_map_ else End.NONE,
                excess=Excess(reply["excess"]),
                exit=reply["exit"],
                signal=reply["signal"],
                time_ns=min(reply["time_ns"], limits.sim_time_ns),
                evaluations=reply["evaluations"],
                wall_s=reply["wall_s"],
                cpu_s=reply["cpu_s"] + reply["replay_cpu_s"],
                replayed=reply["replayed"],
                same=reply["same"],
                counters=bytes.fromhex(reply["hits"]),
                tests=_read_tests(folder / "tests.json"),
                errors=reply["errors"],
                record=_read_record(record) if record else b"",
                log=_read_log(folder / "log"),
            )
        finally:
            self._sweep()

    def replay(self, build: Build, record: bytes, *, waves: Path | None = None) -> bytes:
        """Replay a record of `run` on another build of the same design; returns the bitset over its counters.

        Writes the waveforms to the file `waves`, if the build can. Raises ToolError when the replay does not end.
        """
        self._open(build.model)
        folder = self._empty_folder()
        try:
            (folder / "record").write_bytes(record)
            reply = self._ask("replay", str(folder / "record"), str(folder / "waves") if waves else "", timeout_s=400)
            if not reply["replayed"]:
                raise ToolError("the recorded inputs cannot be replayed on this build")
            if waves and (folder / "waves").is_file():
                shutil.move(folder / "waves", waves)
            return bytes.fromhex(reply["hits"])
        finally:
            self._sweep()

    def _empty_folder(self) -> Path:
        """A folder for one testbench, whatever the one before it did to its surroundings."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        return Path(tempfile.mkdtemp(prefix="job-", dir=self._folder))

    def _sweep(self) -> None:
        """Remove everything that a testbench wrote, also beside its own folder."""
        with contextlib.suppress(OSError):
            for path in self._folder.iterdir():
                if path.name != HARNESS_LOG:
                    remove(path)

    def release(self) -> None:
        """Let go of the open design; the process stays."""
        if self._model is not None:
            self._model = None
            self._ask("close")

    def abort(self) -> None:
        """Stop for good, from another thread: a command in progress raises EngineStopped in its own."""
        self._stopped = True
        self._kill()

    def _kill(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            kill_tree(process.pid)

    def close(self) -> None:
        """End the process and remove its folder."""
        self._stop()
        if self._checker is not None:
            self._checker.close()
        remove(self._folder)

    def _open(self, model: Path) -> None:
        if self._model == model and self._process is not None:
            return
        self.release()
        if self._process is None:
            self._start()
        self._ask("open", str(model))
        self._model = model

    def _start(self) -> None:
        if self._stopped:
            raise EngineStopped
        program = self._tools.ensure_harness()
        self._folder.mkdir(parents=True, exist_ok=True)
        tools = self._tools
        command = tools.sandbox.wrap([str(program)], writable=[self._folder], readable=[tools.builds, *tools.readable])
        with (self._folder / HARNESS_LOG).open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=self._folder,
                env=self._tools.python_environment(), start_new_session=True, bufsize=0,
            )  # fmt: skip
        self._buffer = b""
        self._reply(_START_TIMEOUT_S)

    def _ask(self, *fields: str, timeout_s: float = _GRACE_S) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdin is None:
            raise EngineDied("the harness is not running")
        try:
            process.stdin.write("\t".join(fields).encode() + b"\n")
        except BrokenPipeError:
            self._died()
        return self._reply(timeout_s)

    def _reply(self, timeout_s: float) -> dict[str, Any]:
        process = self._process
        assert process is not None and process.stdout is not None
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, left))
            chunk = os.read(process.stdout.fileno(), 1 << 20) if ready else b""
            if not chunk:
                self._died()
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            reply: dict[str, Any] = json.loads(line)
        except ValueError:
            self._died()
        if "error" in reply:
            raise ToolError(reply["error"])
        return reply

    def _died(self) -> NoReturn:
        log = _read_log(self._folder / HARNESS_LOG).strip()
        self._stop()
        if self._stopped:
            raise EngineStopped
        raise EngineDied(f"the harness ended unexpectedly{': ' + log[-500:] if log else ''}")

    def _stop(self) -> None:
        process, self._process, self._model = self._process, None, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process = process
            self._kill()
            self._process = None
            process.wait()


def _read_log(path: Path) -> str:
    try:
        with open_ordinary(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_BYTES))
            return file.read(LOG_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _read_record(path: Path) -> bytes:
    with open_ordinary(path) as file:
        return file.read()


def _read_tests(path: Path) -> Tests:
    """Read tests.json, which the testbench could have written: anything unexpected counts as nothing said."""
    try:
        with open_ordinary(path) as file:
            said = json.loads(file.read(_TESTS_BYTES))
        counts = {k: said[k] for k in asdict(Tests()) if k not in ("loaded", "errors")}
        if not all(type(v) is int and v >= 0 for v in counts.values()) or type(said["loaded"]) is not bool:
            return Tests()
        errors = tuple(e for e in said["errors"] if isinstance(e, dict))
        return Tests(loaded=said["loaded"], errors=errors, **counts)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return Tests()


def untold_errors(tests: Tests, text: str, log: str) -> list[str]:
    """The errors that ended tests and whose place `log` does not name (it may have been cut), as in a traceback."""
    lines: list[str] = []
    source = text.split("\n")
    for error in tests.errors[:5]:
        line = error.get("line")
        if type(line) is int and f'testbench.py", line {line}' in log:
            continue
        if type(line) is int and 0 < line <= len(source):
            lines.append(f'  File "testbench.py", line {line}')
            lines.append(f"    {source[line - 1].strip()[:200]}")
        lines.append(f"{error.get('type', '')}: {str(error.get('message', ''))[:500]}")
    return [line.encode("utf-8", errors="replace").decode() for line in lines]  # JSON may bring lone surrogates
