"""Tries out what the sandbox holds back on this machine: hostile programs run inside, and what they achieved is seen
from outside."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sim.sandbox import Bubblewrap, Plain, Sandbox, kill_tree

_TIMEOUT_S = 20.0
_MEND = "apt-get install bubblewrap, and allow unprivileged user namespaces"

_ATTEMPTS = """
import json, os, socket, sys
given = json.loads(sys.argv[1])
done = []

def attempt(name, action):
    try:
        action()
        done.append(name)
    except OSError:
        pass

def connect(family, address):
    with socket.socket(family) as s:
        s.settimeout(2)
        s.connect(address)

for path in given["private"]:
    attempt("home", lambda: open(path, "rb").read(1))
attempt("run", lambda: open(given["secret"]).read())
attempt("run", lambda: os.listdir(os.path.dirname(given["secret"])).index("secret"))
attempt("write", lambda: open(given["secret"], "a").write("changed"))
attempt("write", lambda: open(given["secret"] + "2", "w"))
attempt("write", lambda: os.chmod(given["secret"], 0o777))
attempt("network", lambda: connect(socket.AF_INET, ("127.0.0.1", given["port"])))
attempt("network", lambda: connect(socket.AF_UNIX, given["name"]))
attempt("memory", lambda: open(f"/proc/{given['victim']}/mem", "rb"))
attempt("memory", lambda: open(f"/proc/{given['victim']}/environ", "rb").read(1))
attempt("signal", lambda: given["victim"] == os.getpid() or os.kill(given["victim"], 9))
print(json.dumps(done))
"""

_LIMITED = {
    "processes": "import os, time\nwhile True:\n    if os.fork() == 0: time.sleep(9)",
    "memory": "import os, time\n"
    "for _ in range(6): os.fork() or (bytearray(b'1') * (20 << 20), time.sleep(9))\ntime.sleep(9)",
    "disk": "import time\nfor i in range(40): open(str(i), 'wb').write(bytes(1 << 20))\ntime.sleep(9)",
    "deleted files": "import os, time\nkept = [open(str(i), 'wb') for i in range(40)]\n"
    "for i, f in enumerate(kept): os.unlink(str(i)); f.write(bytes(1 << 20)); f.flush()\ntime.sleep(9)",
    "number of files": "import time\nfor i in range(400): open(str(i), 'w').close()\ntime.sleep(9)",
    "wall clock": "while True: pass",
}
_EXCESS = {"processes": 3, "memory": 4, "disk": 5, "deleted files": 5, "number of files": 6, "wall clock": 1}
_LIMITS = ("8", "50", "16", "200")  # processes, MB, MB of disk, files
_KILLS_SERVER = (
    "import os, resource\n"
    "for pid in (os.getppid(), -os.getppid()):\n"
    "    for attempt in (lambda: os.kill(pid, 9), lambda: resource.prlimit(abs(pid), resource.RLIMIT_CPU, (0, 0))):\n"
    "        try: attempt()\n"
    "        except OSError: pass\n"
)


@dataclass(frozen=True)
class Property:
    """One thing that a sandbox should do; `detail` says how to mend it where it does not hold, else how it holds."""

    name: str
    holds: bool
    detail: str


def describe(sandbox: Sandbox, launcher: Path, folder: Path) -> list[Property]:
    """Try out `sandbox`. `launcher` is the program of sim/harness/launcher.cpp; `folder` is where runs lie.

    Takes about a second.
    """
    lacks = f", which lacks: {'; '.join(sandbox.missing)}" if sandbox.missing else ""
    held = not isinstance(sandbox, Plain)
    rows = [Property("sandbox", held, f"tier {sandbox.name}{lacks}")]
    if not held:  # what would be tried here would succeed
        return [*rows, *(Property(name, False, f"not tried; {_MEND}") for name in (*_NAMES.values(), _SERVER))]
    mend = "" if isinstance(sandbox, Bubblewrap) else _MEND
    with tempfile.TemporaryDirectory(prefix="selfcheck-", dir=folder) as base:
        done = _attempt(sandbox, Path(base))
        for key, name in _NAMES.items():
            rows.append(Property(name, key not in done, mend if key in done else ""))
        for name in _LIMITED:
            wall_ms = 100 if name == "wall clock" else 8000
            held = _limited(sandbox, launcher, Path(base), _LIMITED[name], wall_ms) == _EXCESS[name]
            rows.append(Property(f"limit on {name}", held, "" if held else "needs a kernel with /proc/PID/children"))
        held = _limited(sandbox, launcher, Path(base), _KILLS_SERVER, 8000) == 0
        rows.append(Property(_SERVER, held, "" if held else mend))
    return rows


_SERVER = "harness out of reach of testbenches"
_NAMES = {
    "home": "home cannot be read",
    "run": "other runs cannot be read",
    "write": "nothing outside can be changed",
    "network": "no network",
    "signal": "no signals to processes outside",
    "memory": "no reading of processes outside",
}


def _attempt(sandbox: Sandbox, base: Path) -> set[str]:
    """Which things a hostile program could do."""
    run, other = base / "run", base / "other"
    run.mkdir()
    other.mkdir(mode=0o755)
    (other / "secret").write_text("kept")
    mode = (other / "secret").stat().st_mode
    with _listening() as (port, name), subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL) as victim:
        try:
            given = {
                "private": [str(p) for p in _home_files()],
                "secret": str(other / "secret"),
                "port": port,
                "name": name,
                "victim": victim.pid,
            }
            command = [sys.executable, "-I", "-c", _ATTEMPTS, json.dumps(given)]
            output = _run(sandbox.wrap(command, writable=[run]), run)
            try:
                done = set(json.loads(output))
            except ValueError:
                return set(_NAMES)  # nothing was tried, so nothing is proved
            done.discard("signal")  # within, the number may be another's: what counts is who is alive
            if victim.poll() is not None:
                done.add("signal")
            done.discard("write")
            changed = (other / "secret").stat().st_mode != mode or (other / "secret").read_text() != "kept"
            return done | ({"write"} if changed or len(os.listdir(other)) > 1 else set())
        finally:
            victim.kill()


def _limited(sandbox: Sandbox, launcher: Path, base: Path, script: str, wall_ms: int) -> int | None:
    """Which limit stopped a program that runs as a testbench does, see `Excess` in sim/harness/processes.h."""
    with tempfile.TemporaryDirectory(dir=base) as run:
        command = [str(launcher), "limit", str(wall_ms), *_LIMITS, run, "--", sys.executable, "-I", "-c", script]
        wrapped = sandbox.wrap(command, writable=[Path(run)], readable=[launcher])
        words = _run(wrapped, Path(run)).split()
        return int(words[1]) if len(words) == 2 and words[0] == "excess" else None


def _run(command: list[str], folder: Path) -> str:
    # stdin stays open: the launcher takes its end for ours
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True, text=True,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    timer = threading.Timer(_TIMEOUT_S, kill_tree, (process.pid,))
    timer.start()
    try:
        with process.stdin, process.stdout as output:
            return output.read()
    finally:
        timer.cancel()
        kill_tree(process.pid)
        process.wait()


@contextlib.contextmanager
def _listening() -> Iterator[tuple[int, str]]:
    """Somebody to talk to: a port of this machine, and a socket with an abstract name."""
    name = f"\0llm4cov-{os.getpid()}"
    with socket.socket() as inet, socket.socket(socket.AF_UNIX) as local:
        inet.bind(("127.0.0.1", 0))
        local.bind(name)
        inet.listen()
        local.listen()
        yield inet.getsockname()[1], name


def _home_files() -> list[Path]:
    """Some files of the user that this process can read."""
    with contextlib.suppress(OSError, RuntimeError):
        return [p for p in sorted(Path.home().iterdir()) if p.is_file() and os.access(p, os.R_OK)][:20]
    return []
