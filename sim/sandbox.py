"""What untrusted code is locked into: testbenches, and the compilers that read designs and testbenches.

`Sandbox.wrap` is the whole interface. What a caller may rely on in every tier but `plain`:

- the program can write to the folders in `writable`, and to nothing else that stays;
- it can read the system's programs and libraries, this Python with all that is installed in it, and what `readable`
  and `writable` name; not the home of anybody, nor another run;
- it has no network, and gains no privilege by running another program;
- it cannot signal, trace or read the memory of a process outside;
- it ends when the process that started it ends.

What each testbench may use (time, memory, processes, disk space) is limited by the harness, sim/harness/processes.cpp,
which also takes from each what it could do to the harness.

Tiers, best first: `bubblewrap` (namespaces of its own), `landlock` (rules of the kernel for files and system calls,
sim/harness/launcher.cpp), `plain` (nothing of the above; only when asked for). `LLM4COV_SANDBOX` asks for one by name.
`describe` tries out what holds on this machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
_ETC = ("alternatives", "group", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "localtime", "mime.types",
        "nsswitch.conf", "os-release", "passwd", "python3", "timezone",
        f"python{sys.version_info.major}.{sys.version_info.minor}")  # fmt: skip

_PRIVATE = ("/dev/shm", "/tmp")  # writable for the program, and its own

_KILL_S = 5.0  # after which those that still fork are left to the machine
_FIRST_UID = 60100  # of a range that neither distributions nor systemd give to users
_CPUS = "/sys/devices/system/cpu"  # numerical libraries ask it how many threads to start
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


class SandboxError(Exception):
    """No sandbox, or not the one that was asked for. The message says how to mend it."""


class Sandbox(Protocol):
    """One tier of isolation."""

    @property
    def name(self) -> str:
        """The tier's name."""
        ...

    @property
    def missing(self) -> tuple[str, ...]:
        """What it does not provide, for people."""
        ...

    def wrap(self, command: Sequence[str], *, writable: Sequence[Path], readable: Sequence[Path] = ()) -> list[str]:
        """Return the command line that runs `command` inside.

        `writable` are existing folders that the program may change; `readable` are files and folders that it may read
        beside the system and Python (those that do not exist are left out). A folder that is both is writable.
        Start the result in a folder that is readable, and end it with `kill_tree`: it may be more than one process.
        """
        ...


@dataclass(frozen=True)
class Bubblewrap:
    """Namespaces of its own for everything, through bubblewrap."""

    program: str
    name: str = "bubblewrap"
    missing: tuple[str, ...] = ()

    def wrap(self, command: Sequence[str], *, writable: Sequence[Path], readable: Sequence[Path] = ()) -> list[str]:
        binds = {Path(p): "--ro-bind-try" for p in (*_python(), *readable) if not _is_system(p)}
        binds |= {Path(p): "--bind" for p in writable}
        nested = sorted(binds.items(), key=lambda bind: len(bind[0].parts))  # what lies inside covers what is around
        # whoever could rename what is around our folders in a private one would decide what the harness finds there
        fixed = [str(path) for path in dict.fromkeys(_below_private(p) for p in binds) if path and path not in binds]
        # the program is process 1: one of bubblewrap's own there would hold our pipes open to any testbench
        return [
            self.program, "--unshare-pid", "--as-pid-1", "--unshare-net", "--unshare-ipc", "--unshare-uts",
            "--unshare-cgroup-try", "--new-session", "--die-with-parent", "--cap-drop", "ALL",
            "--setenv", "LLM4COV_SANDBOX", self.name, *_system_binds(), "--proc", "/proc", "--dev", "/dev",
            *(argument for folder in _PRIVATE for argument in ("--tmpfs", folder)),
            *(() if any(Path("/var/tmp") in p.parents for p in binds) else ("--symlink", "/tmp", "/var/tmp")),
            "--dir", "/run",
            *(argument for path in fixed for argument in ("--tmpfs", path)),
            *(argument for path, option in nested for argument in (option, str(path), str(path))),
            *(argument for path in (*fixed, "/dev", "/") for argument in ("--remount-ro", path)), "--", *command,
        ]  # fmt: skip


@dataclass(frozen=True)
class Landlock:
    """The kernel's own rules for files and system calls, and another user where root starts it.

    `launcher` is the program of sim/harness/launcher.cpp, `abi` the version of Landlock's interface to use, `uid` the
    other user (None: the same). A program that root starts this way keeps the right to pass private folders, since
    those that it may read can lie below one.
    """

    launcher: str
    abi: int
    uid: int | None = None
    name: str = "landlock"

    @property
    def missing(self) -> tuple[str, ...]:
        found = [
            "names, sizes and times of files can be asked for",
            "command lines of the machine's processes are visible in /proc",
            "/tmp and /dev/shm cannot be written to, and sockets cannot be named (TMPDIR and pairs of sockets work)",
        ]
        if self.abi < 6 and self.uid is None:
            found.append("processes of the same user can be signalled (Linux 6.12 or newer prevents it)")
        if self.uid is None:
            found.append("processes of the same user can be slowed down")
        return tuple(found)

    def wrap(self, command: Sequence[str], *, writable: Sequence[Path], readable: Sequence[Path] = ()) -> list[str]:
        system = (*_SYSTEM, *(f"/etc/{name}" for name in _ETC), _CPUS, "/proc")
        read = (argument for path in (*system, *_python(), *readable) for argument in ("--read", str(path)))
        write = (argument for path in (*_DEVICES, *writable) for argument in ("--write", str(path)))
        user = () if self.uid is None else ("--uid", str(self.uid))
        return [self.launcher, "confine", str(self.abi), *user, *read, *write, "--", *command]


@dataclass(frozen=True)
class Plain:
    """Process groups and resource limits only."""

    name: str = "plain"
    missing: tuple[str, ...] = (
        "the network is reachable",
        "all files of the user are readable and writable",
        "processes of the user can be signalled",
    )

    def wrap(self, command: Sequence[str], *, writable: Sequence[Path], readable: Sequence[Path] = ()) -> list[str]:
        return ["/usr/bin/env", f"LLM4COV_SANDBOX={self.name}", *command]


def kill_tree(pid: int) -> None:
    """Kill a process and all below it: a sandbox puts programs between us and the one that was wrapped.

    The process itself goes last: whatever its descendants fork meanwhile stays below it, where it is found.
    """
    deadline = time.monotonic() + _KILL_S
    while (below := _descendants(pid)) and time.monotonic() < deadline:
        for process in reversed(below):
            _kill(process)
        time.sleep(0.001)
    _kill(pid)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _descendants(pid: int) -> list[int]:
    """All running processes below one."""
    found = [pid]
    for parent in found:
        with suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return [process for process in found[1:] if _runs(process)]


def _runs(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


@lru_cache(maxsize=1)
def _python() -> list[Path]:
    """This Python and everything installed in it, wherever that is."""
    import cocotb

    program = Path(sys.executable).resolve()
    found = [Path(sys.prefix), Path(sys.base_prefix), program.parent.parent, Path(cocotb.__file__).parents[1]]
    return [p for p in dict.fromkeys(p for path in found for p in (path, path.resolve())) if p != Path("/")]


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _SYSTEM)


def _below_private(path: Path) -> Path | None:
    """The outermost folder around `path`, or itself, that lies in a private folder."""
    return next((Path(folder) / path.relative_to(folder).parts[0] for folder in _PRIVATE
                 if Path(folder) in path.parents), None)  # fmt: skip


def _system_binds() -> Iterable[str]:
    for folder in _SYSTEM:
        if os.path.islink(folder):
            yield from ("--symlink", os.readlink(folder), folder)
        elif os.path.isdir(folder):
            yield from ("--ro-bind", folder, folder)
    for path in (*(f"/etc/{name}" for name in _ETC), _CPUS):
        yield from ("--ro-bind-try", path, path)


def find_sandbox(launcher: Callable[[], Path], wanted: str | None = None) -> Sandbox:
    """The best tier that works here, or the one that is `wanted` by name (default: that in LLM4COV_SANDBOX).

    `launcher` compiles the program of sim/harness/launcher.cpp when it is needed. Raises SandboxError when nothing
    holds testbenches here, or the wanted tier does not work.
    """
    wanted = wanted or os.environ.get("LLM4COV_SANDBOX") or None
    if wanted == Plain.name:
        return Plain()
    for tier in _tiers(launcher, wanted):
        if _works(tier):
            return tier
    if wanted:
        raise SandboxError(f"LLM4COV_SANDBOX={wanted} does not work here: use bubblewrap, landlock or plain")
    raise SandboxError(
        "nothing here keeps testbenches from your files: apt-get install bubblewrap and allow unprivileged user "
        "namespaces, or use a kernel with Landlock; to run testbenches that you trust without it: --unsandboxed "
        "(or LLM4COV_SANDBOX=plain)"
    )


def _tiers(launcher: Callable[[], Path], wanted: str | None) -> Iterator[Bubblewrap | Landlock]:
    bubblewrap = shutil.which("bwrap")
    if bubblewrap and wanted in (None, Bubblewrap.name):
        yield Bubblewrap(bubblewrap)
    if wanted in (None, Landlock.name):
        program = str(launcher())
        abi = int(subprocess.run([program, "--version"], capture_output=True, check=True).stdout)
        if abi and os.geteuid() == 0:
            yield Landlock(program, abi, _FIRST_UID + os.getpid() % 1000)  # two that run at once share no user
        if abi:
            yield Landlock(program, abi)


@lru_cache(maxsize=8)
def _works(sandbox: Bubblewrap | Landlock) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        command = sandbox.wrap(["/bin/sh", "-c", "true"], writable=[Path(folder)])
        try:
            return subprocess.run(command, capture_output=True, cwd=folder, timeout=20, check=False).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False
