"""What testbench code is locked into.

The harness, not each testbench, is wrapped: it pays the price once and forks its children inside. What a caller of
`Sandbox.wrap` may rely on, whatever the tier:

- the program sees only the environment it is given, runs in a session of its own, and ends when its stdin is closed;
- it can write to `run_folder`, and to nothing of the caller's (tier `bubblewrap`);
- the harness kills everything that a testbench leaves behind, and limits CPU time, memory, file size and the number
  of processes of each (the latter not for root).

Tiers, best first: `bubblewrap` (no network, read-only system, private /tmp, own process ids), `unshare` (no network),
`plain` (none of these). `LLM4COV_SANDBOX` forces one. `describe` tells what holds on this machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol


class Sandbox(Protocol):
    """One tier of isolation."""

    @property
    def name(self) -> str:
        """The tier's name."""
        ...

    @property
    def missing(self) -> tuple[str, ...]:
        """What it does not provide."""
        ...

    def wrap(self, command: Sequence[str], *, run_folder: Path, read_only: Sequence[Path] = ()) -> list[str]:
        """Return the command line that runs `command` inside.

        `run_folder` stays writable; `read_only` names folders that must be readable even if they lie below /tmp.
        """
        ...


@dataclass(frozen=True)
class Bubblewrap:
    """Namespaces of its own for everything, through bubblewrap."""

    program: str
    private_proc: bool
    name: str = "bubblewrap"

    @property
    def missing(self) -> tuple[str, ...]:
        return () if self.private_proc else ("process ids of the machine stay visible in /proc",)

    def wrap(self, command: Sequence[str], *, run_folder: Path, read_only: Sequence[Path] = ()) -> list[str]:
        proc = ["--proc", "/proc"] if self.private_proc else ["--ro-bind", "/proc", "/proc"]
        # the program is process 1: one of bubblewrap's own there would hold our pipes open to any testbench
        binds = [a for p in read_only for a in ("--ro-bind", str(p), str(p))]
        return [
            self.program, "--unshare-pid", "--as-pid-1", "--unshare-net", "--unshare-ipc", "--unshare-uts",
            "--unshare-cgroup-try", "--new-session", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", *proc,
            "--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--tmpfs", "/run", *binds,
            "--bind", str(run_folder), str(run_folder), "--", *command,
        ]  # fmt: skip


@dataclass(frozen=True)
class Unshare:
    """A network namespace without interfaces, nothing more."""

    program: str
    arguments: tuple[str, ...]
    name: str = "unshare"
    missing: tuple[str, ...] = ("the file system is writable", "process ids of the machine are visible")

    def wrap(self, command: Sequence[str], *, run_folder: Path, read_only: Sequence[Path] = ()) -> list[str]:
        return [self.program, *self.arguments, "--", *command]


@dataclass(frozen=True)
class Plain:
    """Process groups and resource limits only."""

    name: str = "plain"
    missing: tuple[str, ...] = (
        "the network is reachable",
        "the file system is writable",
        "process ids of the machine are visible",
    )

    def wrap(self, command: Sequence[str], *, run_folder: Path, read_only: Sequence[Path] = ()) -> list[str]:
        return list(command)


@lru_cache(maxsize=4)
def find_sandbox(forced: str | None = None) -> Sandbox:
    """The best tier that works here; `forced` (default: LLM4COV_SANDBOX) asks for one by name.

    Raises ValueError for a forced tier that does not exist or does not work.
    """
    wanted = forced or os.environ.get("LLM4COV_SANDBOX")
    for tier in _tiers():
        if wanted in (None, tier.name) and _works(tier):
            return tier
    raise ValueError(f"LLM4COV_SANDBOX={wanted} does not work here: use bubblewrap, unshare or plain")


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
    bwrap, unshare = shutil.which("bwrap"), shutil.which("unshare")
    if bwrap:
        tiers += [Bubblewrap(bwrap, private_proc=True), Bubblewrap(bwrap, private_proc=False)]
    if unshare:
        own = ("--net",) if os.geteuid() == 0 else ("--user", "--map-current-user", "--net")
        tiers.append(Unshare(unshare, own))
    return [*tiers, Plain()]


def _works(sandbox: Sandbox) -> bool:
    return _probe(sandbox, "true")


def _probe(sandbox: Sandbox, script: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        command = sandbox.wrap(["/bin/sh", "-c", script], run_folder=Path(folder))
        try:
            return subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0
        except (OSError, subprocess.TimeoutExpired):
            return False
