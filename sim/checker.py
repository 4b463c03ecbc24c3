"""The check of sim/violations.py for text that nobody vouches for: sandboxed, and with limits.

One process imports the compiler, which takes a hundred times as long as to check a testbench, and forks a child for
each testbench. A child can be stopped by its limits or crash; the next testbench does not notice.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyslang

from sim.design import Design, SourceFile
from sim.violations import Violation, violations

if TYPE_CHECKING:
    import subprocess

    from sim.sandbox import Sandbox

CPU_S = 20
"""Seconds of CPU that one check may take; an ordinary testbench takes some milliseconds."""
WALL_S = 60.0
"""Seconds of wall clock that one check may take: the machine may be busy with others."""
MEMORY_BYTES = 2 << 30
"""Address space of one check."""

_MAX_REPLY = 1 << 20
_READY = b"ready\n"
_TOO_MUCH = 3  # exit code of a child that ran out of memory or stack
_SPARE_S = 30.0  # after which the process is given up that should have stopped its child


class Checker:
    """Checks testbenches, one at a time, in a process that starts with the first. Close it, or use it in `with`.

    One may be called from several threads when they take turns.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check(self, text: str, design: Design) -> tuple[Violation, ...]:
        """Return `violations(text, design)`.

        A testbench that cannot be elaborated within the limits, or that crashes the compiler, gives one violation of
        rule `resource`. Raises ToolError when the process cannot be started.
        """
        request = json.dumps({"text": text, "design": _pack(design)}).encode() + b"\n"
        for _ in range(2):  # what ended the process may have had nothing to do with the testbench
            try:
                reply = json.loads(self._ask(request))
                if reply["code"]:
                    return (_beyond_limits(int(reply["code"])),)
                return tuple(Violation(**row) for row in reply["rows"])
            except (TypeError, ValueError, KeyError):
                self.close()
        return (_beyond_limits(1),)

    def close(self) -> None:
        """End the process; the next check starts another."""
        from sim.sandbox import kill_tree

        process, self._process = self._process, None
        if process is not None:
            kill_tree(process.pid)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _ask(self, request: bytes) -> bytes:
        """The line that answers a request; less when the process ended or took too long."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._start()
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        return _exchange(self._process.stdin.fileno(), self._process.stdout.fileno(), request)

    def _start(self) -> None:
        import subprocess  # here: the process itself has no use for these, and pays for every import
        import tempfile

        from sim.toolchain import ToolError

        here, packages = Path(__file__).resolve().parent, Path(pyslang.__file__).parents[1]
        # without site, which sets up whatever else is installed; what is around this package may not be readable
        boot = (
            f"import sys, types; sys.path.insert(0, {str(packages)!r}); sys.modules['sim'] = types.ModuleType('sim'); "
            f"sys.modules['sim'].__path__ = [{str(here)!r}]; from sim.checker import _serve; _serve()"
        )
        command = self._sandbox.wrap([sys.executable, "-I", "-S", "-c", boot], writable=[], readable=[here, packages])
        with tempfile.TemporaryFile() as errors:
            self._process = subprocess.Popen(
                command, cwd=here, env={"LC_ALL": "C.UTF-8"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=errors, bufsize=0, start_new_session=True,
            )  # fmt: skip
            assert self._process.stdin is not None and self._process.stdout is not None
            os.set_blocking(self._process.stdin.fileno(), False)
            if _exchange(self._process.stdin.fileno(), self._process.stdout.fileno(), b"") != _READY:
                self.close()
                errors.seek(0)
                said = errors.read(4096).decode("utf-8", "replace").strip().splitlines()[-1:]
                raise ToolError(
                    f"the check of testbenches does not start in the sandbox ({self._sandbox.name}): "
                    f"{said[0] if said else 'no message'}; see llm4cov doctor"
                )


def _exchange(to: int, of: int, request: bytes) -> bytes:
    """Write a request and read the line that answers it; less when that ends or takes too long."""
    answer, deadline = b"", time.monotonic() + WALL_S + _SPARE_S
    while not answer.endswith(b"\n") and len(answer) <= _MAX_REPLY + 100:
        ready = select.select([of], [to] if request else [], [], max(0.0, deadline - time.monotonic()))
        try:
            if ready[0]:
                got = os.read(of, 1 << 16)
                answer += got
                if not got:
                    break
            elif ready[1]:
                request = request[os.write(to, request[: 1 << 20]) :]
            else:
                break
        except BrokenPipeError:
            break
    return answer


def check(text: str, design: Design, sandbox: Sandbox) -> tuple[Violation, ...]:
    """Check one testbench; see `Checker.check`, which is far cheaper for many."""
    with Checker(sandbox) as checker:
        return checker.check(text, design)


def _beyond_limits(code: int) -> Violation:
    message = (
        f"the testbench cannot be elaborated within limits ({CPU_S} s of CPU, {MEMORY_BYTES >> 30} GiB); make its "
        "loops, macros, literals and nesting smaller"
    )
    if code > 0 and code != _TOO_MUCH:
        message = f"the check of the testbench failed (code {code}): {message}"
    return Violation("resource", 1, message, "")


def _pack(design: Design) -> dict[str, Any]:
    files = {
        kind: [[f.path, f.content.decode("latin-1")] for f in getattr(design, kind)] for kind in ("sources", "includes")
    }
    return files | {k: getattr(design, k) for k in ("name", "top", "include_dirs", "defines", "parameters")}


def _unpack(packed: dict[str, Any]) -> Design:
    return Design(
        name=packed["name"],
        sources=tuple(SourceFile(path, content.encode("latin-1")) for path, content in packed["sources"]),
        top=packed["top"],
        includes=tuple(SourceFile(path, content.encode("latin-1")) for path, content in packed["includes"]),
        include_dirs=tuple(packed["include_dirs"]),
        defines=tuple((name, value) for name, value in packed["defines"]),
        parameters=tuple((name, value) for name, value in packed["parameters"]),
    )


def _serve() -> None:
    """The process: one request a line on stdin, one reply a line on stdout."""
    os.write(1, _READY)
    while request := sys.stdin.buffer.readline():
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _work(request, writing)
        os.close(writing)
        answer = _read(reading)
        if answer is None:
            os.kill(child, signal.SIGKILL)
        os.close(reading)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        rows = answer if answer and code == 0 and b"\n" not in answer else b"[]"
        sys.stdout.buffer.write(b'{"code": %d, "rows": %s}\n' % (code if answer is not None else -signal.SIGKILL, rows))
        sys.stdout.buffer.flush()


def _read(descriptor: int) -> bytes | None:
    """All that a child writes; None when it takes too long or writes too much."""
    found, deadline = b"", time.monotonic() + WALL_S
    while select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
        got = os.read(descriptor, 1 << 16)
        found += got
        if not got:
            return found
        if len(found) > _MAX_REPLY:
            return None
    return None


def _work(request: bytes, writing: int) -> None:
    """A child: check one testbench and end."""
    code = 1
    try:
        for limit, value in (
            (resource.RLIMIT_CPU, CPU_S),
            (resource.RLIMIT_AS, MEMORY_BYTES),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(limit, (value, value))
        os.dup2(writing, 1)  # nothing else leads to whoever asked
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        packed = json.loads(request)
        rows = [asdict(v) for v in violations(packed["text"], _unpack(packed["design"]))]
        answer = json.dumps(rows).encode()
        while answer:
            answer = answer[os.write(writing, answer) :]
        code = 0
    except (MemoryError, RecursionError):
        code = _TOO_MUCH
    finally:
        os._exit(code)
