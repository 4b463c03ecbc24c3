"""What a testbench can reach, and what it leaves behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sim.sandbox import Plain, describe, find_sandbox
from sim.simulation import Limits, Testbench
from sim.simulator import Simulator
from tests.sim.conftest import test_body

LOCKED = find_sandbox().name == "bubblewrap"


def log_of(simulator, counter, *lines: str) -> str:
    [r] = simulator.run_many(counter, [Testbench(test_body(*lines))], limits=Limits(wall_s=10))
    return r.log


def test_environment_of_the_caller_does_not_reach_the_testbench(counter, home, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    with Simulator(home, workers=1, read_cache=False) as s:
        assert "hunter2" not in log_of(s, counter, "print(dict(os.environ))")


def test_caller_s_files_are_out_of_reach(simulator, counter, home):
    victim = home / "victim"
    victim.write_text("kept")
    log_of(simulator, counter, f"open({str(victim)!r}, 'w').write('gone')")
    # without namespaces nothing protects the files of the user who runs it, and `describe` says so
    assert victim.read_text() == ("kept" if LOCKED else "gone")


def test_network_is_out_of_reach(simulator, counter):
    lines = ("import socket", "s = socket.socket(); s.settimeout(2)", "print('code', s.connect_ex(('1.1.1.1', 80)))")
    log = log_of(simulator, counter, *lines)
    assert not LOCKED or ("code" in log and "code 0" not in log)


def test_processes_left_behind_are_gone(simulator, counter, home):
    mark = f"left-behind-{os.getpid()}"
    lines = (
        "import subprocess",
        f"subprocess.Popen(['sh', '-c', 'sleep 300; : {mark}'], start_new_session=True)",
        f"os.system('setsid sh -c \"sleep 300; : {mark}\" &')",
    )
    log_of(simulator, counter, *lines)
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(mark.encode() in entry.read_bytes())
        except OSError:
            continue
    assert not any(found)


def test_memory_of_the_harness_is_out_of_reach(simulator, counter):
    lines = ("print('can', os.access(f'/proc/{os.getppid()}/mem', os.R_OK))", "open(f'/proc/{os.getppid()}/mem', 'rb')")
    log = log_of(simulator, counter, *lines)
    assert not LOCKED or "PermissionError" in log or "FileNotFoundError" in log


def test_testbench_sees_only_its_own_folder_and_finds_it_empty(simulator, counter):
    first = log_of(simulator, counter, "open('mine', 'w').write('1')", "print('files', sorted(os.listdir('.')))")
    second = log_of(simulator, counter, "print('files', sorted(os.listdir('.')))")
    assert "'mine'" in first and "'mine'" not in second


def test_a_reply_of_the_harness_cannot_be_forged(simulator, counter):
    """Coverage is the reward: nothing that a testbench can reach leads to the pipes of the harness."""
    lines = (
        "import json",
        "reply = dict(end=1, deadline=False, exit=0, signal=0, time_ns=1, evaluations=1, wall_s=1, cpu_s=1)",
        "reply |= dict(replay_cpu_s=0, replayed=True, same=True, hits='ff' * 4000)",
        "for process in filter(str.isdecimal, os.listdir('/proc')):",
        "    for fd in range(32):",
        "        if int(process) != os.getpid():",
        "            try: open(f'/proc/{process}/fd/{fd}', 'w').write(json.dumps(reply) + chr(10))",
        "            except OSError: pass",
    )
    [r] = simulator.run_many(counter, [Testbench(test_body(*lines))], limits=Limits(wall_s=10))
    assert not LOCKED or r.coverage.overall < 0.5


@pytest.mark.parametrize(
    "line",
    [
        "os.unlink('log'); os.mkfifo('log')",
        "os.unlink('tests.json'); os.mkfifo('tests.json'); os._exit(0)",
        "os.unlink('log'); os.symlink('/etc/passwd', 'log'); os._exit(0)",
        "p = os.getcwd(); os.rename(p, p + 'x'); os.symlink('/etc', p); os._exit(0)",
        "for i in range(1, 30): os.makedirs(f'../job-{i}', exist_ok=True)",
        "import shutil; shutil.rmtree('..', ignore_errors=True); os.chmod('..', 0)",
        "for _ in range(1200): os.mkdir('d'); os.chdir('d')",
        "open('tests.json', 'w').write(chr(91) * 900000); os._exit(0)",
        "raise ValueError(chr(0xd800) + chr(0))",
    ],
)
def test_what_a_testbench_does_to_its_folder_harms_nobody(home, counter, line):
    good = test_body("await ClockCycles(dut.clk, 3)")
    with Simulator(home, workers=1, read_cache=False) as s:
        bad, after = s.run_many(counter, [Testbench(test_body(line)), Testbench(good)], limits=Limits(wall_s=10))
        left = {path.name for folder in (home / "cache" / "run").iterdir() for path in folder.iterdir()}
    assert "root:" not in bad.log
    assert after.status == "passed"
    assert left <= {"harness.log"}
    bad.log.encode()


def test_plain_tier_simulates_too_and_says_what_is_missing(counter, home, monkeypatch):
    monkeypatch.setenv("LLM4COV_SANDBOX", "plain")
    find_sandbox.cache_clear()
    try:
        assert find_sandbox() == Plain()
        with Simulator(home, workers=1, read_cache=False) as s:
            [r] = s.run_many(counter, [Testbench(test_body("await ClockCycles(dut.clk, 3)"))])
        assert r.status == "passed"
        checks = {check: (ok, detail) for check, ok, detail in describe()}
        assert checks["sandbox"] == (False, "tier plain")
        assert not checks["read-only system"][0] or os.geteuid() != 0
        assert all(detail for ok, detail in checks.values() if not ok)
    finally:
        monkeypatch.undo()
        find_sandbox.cache_clear()


def test_forced_tier_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="LLM4COV_SANDBOX"):
        find_sandbox("concrete")
