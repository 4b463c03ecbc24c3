"""Nothing stays behind when the caller ends, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sim import toolchain
from sim.simulation import Testbench
from sim.simulator import Simulator
from sim.toolchain import call
from tests.sim.conftest import test_body

pytestmark = pytest.mark.slow

SCRIPT = """\
import sys
from pathlib import Path
from sim.simulation import Limits, Testbench
from sim.simulator import Simulator
from sim.toolchain import call
from tests.sim.conftest import COUNTER, design, test_body
benches = [Testbench(test_body("await ClockCycles(dut.clk, 3)", "while True: pass") + f"# {n}") for n in range(4)]
with Simulator(Path(sys.argv[1]), workers=2, read_cache=False) as s:
    next(s.run_many(design(COUNTER), [Testbench(test_body("pass"))]))
    print("ready", flush=True)
    list(s.run_many(design(COUNTER), benches, limits=Limits(wall_s=60)))
"""


def harnesses(home: Path) -> list[int]:
    """Processes whose command line names this home."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(home / "builds" / "harness-").encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


def wait_until_gone(pids: list[int]) -> list[int]:
    for _ in range(100):
        pids = [p for p in pids if Path(f"/proc/{p}").exists()]
        if not pids:
            break
        time.sleep(0.1)
    return pids


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_caller_ends_in_the_middle(home, tmp_path, how):
    before = set(harnesses(home))
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    root = Path(__file__).parents[2]
    caller = subprocess.Popen(
        [sys.executable, str(script), str(home)], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert caller.stdout is not None and caller.stdout.readline() == "ready\n"
    time.sleep(0.5)
    mine = [p for p in harnesses(home) if p not in before]
    assert mine
    caller.send_signal(how)
    caller.wait(timeout=30)
    assert wait_until_gone(mine) == []
    with Simulator(home, workers=1) as s:  # the next one cleans up, and works
        assert not [p for p in (home / "cache" / "run").iterdir() if p.name.startswith(f"{caller.pid}-")]
        assert s.workers == 1


def test_leaving_the_iteration_early_stops_the_rest(home, counter):
    benches = [Testbench(test_body(f"await ClockCycles(dut.clk, {n})") + "# early\n") for n in range(1, 60)]
    with Simulator(home, workers=2) as s:
        for index, _ in enumerate(s.run_many(counter, benches)):
            if index == 2:
                break
    assert s.counters.simulated < len(benches)


def test_harness_that_is_killed_is_started_again(home, counter):
    with Simulator(home, workers=1, read_cache=False) as s:
        bench = Testbench(test_body("await ClockCycles(dut.clk, 3)"))
        assert next(s.run_many(counter, [bench])).status == "passed"
        s._pool._engines[0]._kill()
        assert next(s.run_many(counter, [bench])).status == "passed"


def test_failures_for_want_of_disk_space_are_raised_and_not_stored(home, counter, monkeypatch):
    bench = Testbench(test_body("assert False, 'full'"))
    unbuilt = replace(counter, parameters=(("W", "7"),))
    with Simulator(home, workers=1) as s:
        monkeypatch.setattr(toolchain, "_SPARE_BYTES", 1 << 60)
        for design in (counter, replace(counter, top="nothing")):
            with pytest.raises(OSError, match="No space left"):
                next(s.run_many(design, [bench]))
        monkeypatch.undo()
        monkeypatch.setattr(s.toolchain.__class__, "compile", lambda *_, cwd: call(["false"], cwd=cwd, env={}))
        monkeypatch.setattr(toolchain, "_SPARE_BYTES", 1 << 60)
        with pytest.raises(OSError, match="No space left"):
            next(s.run_many(unbuilt, [bench]))
        monkeypatch.undo()
        for design, status in ((counter, "test_failed"), (unbuilt, "test_failed")):
            result = next(s.run_many(design, [bench]))
            assert result.status == status and not result.cached


def test_folders_of_processes_that_are_gone_are_removed(home):
    left = [home / "builds" / "999999999-x", home / "cache" / "compile" / "999999999-y"]
    for folder in left:
        folder.mkdir(parents=True)
        (folder / "all.cpp").write_text("")
    with Simulator(home, workers=1):
        assert not any(folder.exists() for folder in left)
