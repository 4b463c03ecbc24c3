"""What untrusted code is locked into: testbenches, and the compilers that read designs and testbenches.

`Sandbox.wrap` is the whole interface. What a caller may rely on in every tier but `plain`:

- the program can write to the folders in `writable`, and to nothing else that stays;
- it can read the system's programs and libraries, this Python with all that is installed in it, and what `readable`
  and `writable` name; not the home of anybody, nor another run;
- it has no network, and gains no privilege by running another program;
- it cannot signal, trace or read the memory of a process outside;
- it ends when the process that started it ends.

Time, memory, processes and disk space are limited by the harness (sim/harness/processes.cpp), for each testbench.

Tiers, best first: `bubblewrap` (namespaces of its own), `plain` (nothing of the above; only when asked for).
`LLM4COV_SANDBOX` asks for one by name.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
_ETC = ("alternatives", "group", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "localtime", "mime.types",
        "nsswitch.conf", "os-release", "passwd", "python3", "timezone",
        f"python{sys.version_info.major}.{sys.version_info.minor}")  # fmt: skip


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
    private_proc: bool = True
    name: str = "bubblewrap"

    @property
    def missing(self) -> tuple[str, ...]:
        return () if self.private_proc else ("process ids of the machine stay visible in /proc",)

    def wrap(self, command: Sequence[str], *, writable: Sequence[Path], readable: Sequence[Path] = ()) -> list[str]:
        proc = ["--proc", "/proc"] if self.private_proc else ["--ro-bind", "/proc", "/proc"]
        binds = {Path(p): "--ro-bind-try" for p in (*_python(), *readable) if not _is_system(p)}
        binds |= {Path(p): "--bind" for p in writable}
        nested = sorted(binds.items(), key=lambda bind: len(bind[0].parts))  # what lies inside covers what is around
        # the program is process 1: one of bubblewrap's own there would hold our pipes open to any testbench
        return [
            self.program, "--unshare-pid", "--as-pid-1", "--unshare-net", "--unshare-ipc", "--unshare-uts",
            "--unshare-cgroup-try", "--new-session", "--die-with-parent", "--cap-drop", "ALL",
            *_system_binds(), "--dev", "/dev", *proc, "--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--dir", "/run",
            *(argument for path, option in nested for argument in (option, str(path), str(path))),
            "--remount-ro", "/", "--", *command,
        ]  # fmt: skip


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
        return list(command)


def kill_tree(pid: int) -> None:
    """Kill a process and all below it: a sandbox puts programs between us and the one that was wrapped."""
    found = [pid]
    for parent in found:
        with suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    for process in reversed(found):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _python() -> list[Path]:
    """This Python and everything installed in it, wherever that is."""
    import cocotb

    program = Path(sys.executable).resolve()
    found = [Path(sys.prefix), Path(sys.base_prefix), program.parent.parent, Path(cocotb.__file__).parents[1]]
    return list(dict.fromkeys(p for path in found for p in (path, path.resolve())))


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _SYSTEM)


def _system_binds() -> Iterable[str]:
    for folder in _SYSTEM:
        if os.path.islink(folder):
            yield from ("--symlink", os.readlink(folder), folder)
        elif os.path.isdir(folder):
            yield from ("--ro-bind", folder, folder)
    for name in _ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


@lru_cache(maxsize=4)
def find_sandbox(forced: str | None = None) -> Sandbox:
    """The best tier that works here; `forced` (default: LLM4COV_SANDBOX) asks for one by name.

    Raises ValueError for a forced tier that does not exist or does not work.
    """
    wanted = forced or os.environ.get("LLM4COV_SANDBOX")
    for tier in _tiers():
        if wanted in (None, tier.name) and _works(tier):
            return tier
    raise ValueError(f"LLM4COV_SANDBOX={wanted} does not work here: use bubblewrap, landlock or plain")


def describe() -> list[tuple[str, bool, str]]:
    """Check what the sandbox provides on this machine: (check, holds, detail), for people."""
    sandbox = find_sandbox()
    rows = [("sandbox", sandbox.name == "bubblewrap", f"tier {sandbox.name}")]
    for check, script in (
        ("no network", "! cat /proc/net/route | tail -n +2 | grep -q ."),
        ("read-only system", "! touch /etc/llm4cov-probe 2>/dev/null && ! touch /usr/llm4cov-probe 2>/dev/null"),
        ("private /tmp", 'test "$(ls -A /tmp | wc -l)" -lt 2'),
        ("own process ids", 'test "$(ls -d /proc/[0-9]* | wc -l)" -lt 12'),
    ):
        holds = _probe(sandbox, script)
        rows.append((check, holds, "" if holds else _mend(sandbox)))
    root = os.geteuid() == 0
    rows.append(("limits on CPU time, memory and file size", True, "setrlimit"))
    processes = "not enforced for root: use an ordinary user" if root else "setrlimit"
    rows.append(("limit on processes", not root, processes))
    return rows


def _mend(sandbox: Sandbox) -> str:
    if sandbox.name == "bubblewrap":
        return "; ".join(sandbox.missing) or "this container hides it from bubblewrap"
    return "install bubblewrap (apt-get install bubblewrap) and allow unprivileged user namespaces"


def _tiers() -> list[Sandbox]:
    tiers: list[Sandbox] = []
    bwrap = shutil.which("bwrap")
    if bwrap:
        tiers += [Bubblewrap(bwrap, private_proc=True), Bubblewrap(bwrap, private_proc=False)]
    return [*tiers, Plain()]


def _works(sandbox: Sandbox) -> bool:
    return _probe(sandbox, "true")


def _probe(sandbox: Sandbox, script: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        command = sandbox.wrap(["/bin/sh", "-c", script], writable=[Path(folder)])
        try:
            return subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False
