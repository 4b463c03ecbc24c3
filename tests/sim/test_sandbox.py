"""What untrusted code can reach, what it may use, and what it leaves behind, in each tier that works here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sim.files import own_folder
from sim.sandbox import Landlock, Plain, SandboxError, find_sandbox
from sim.selfcheck import describe
from sim.simulation import Limits, Testbench
from sim.simulator import Simulator
from sim.toolchain import ToolError, find_toolchain
from tests.sim.conftest import COUNTER, test_body

GOOD = test_body("await ClockCycles(dut.clk, 3)")


@pytest.fixture(scope="session", params=["bubblewrap", "landlock"])
def held(request, home):
    """A simulator in one tier."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLM4COV_SANDBOX", request.param)
        try:
            simulator = Simulator(home, workers=1, read_cache=False)
        except ToolError as error:
            pytest.skip(str(error))
        with simulator:
            yield simulator


def result_of(simulator, counter, *lines: str, **limits):
    [r] = simulator.run_many(counter, [Testbench(test_body(*lines))], limits=replace(Limits(wall_s=10), **limits))
    return r


def log_of(simulator, counter, *lines: str) -> str:
    return result_of(simulator, counter, *lines).log


def test_every_property_that_doctor_shows_holds(held, home):
    tools = held.toolchain
    rows = describe(tools.sandbox, tools.ensure_launcher(), home)
    assert [r.name for r in rows if not r.holds] == []
    assert len(rows) > 10


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user already")
def test_every_property_holds_for_an_ordinary_user_too(held, home):
    launcher = held.toolchain.ensure_launcher()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        program = shutil.copy(launcher, folder)
        os.chmod(program, 0o755)
        script = (
            "import sys; from pathlib import Path; from sim.sandbox import find_sandbox; "
            "from sim.selfcheck import describe; program = Path(sys.argv[1]); "
            "rows = describe(find_sandbox(lambda: program, sys.argv[2]), program, program.parent); "
            "print([r.name for r in rows if not r.holds])"
        )
        tier = held.toolchain.sandbox.name
        try:
            done = subprocess.run(
                [sys.executable, "-c", script, program, tier], user=65534, group=65534, extra_groups=[], cwd=folder,
                env={"PYTHONPATH": os.pathsep.join(sys.path), "HOME": folder, "PATH": os.environ["PATH"]},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
        except PermissionError:
            pytest.skip("this project lies where an ordinary user cannot look")
    if "Permission denied" in done.stderr and not done.stdout:
        pytest.skip("this project cannot be read by an ordinary user")
    assert done.stdout.strip() == "[]", done.stderr


def test_environment_of_the_caller_does_not_reach_the_testbench(counter, home, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    with Simulator(home, workers=1, read_cache=False) as s:
        assert "hunter2" not in log_of(s, counter, "print(dict(os.environ))")


def test_files_of_the_caller_are_out_of_reach(held, counter, home):
    victim = home / "victim"
    victim.write_text("kept-for-me")
    mode = victim.stat().st_mode
    log = log_of(
        held,
        counter,
        f"victim = {str(victim)!r}",
        "for action in (lambda: print(open(victim).read()), lambda: open(victim, 'w').write('gone'),",
        "        lambda: os.chmod(victim, 0o777), lambda: os.unlink(victim),",
        f"        lambda: os.symlink('/', {str(home / 'link')!r}), lambda: print(os.listdir({str(home)!r}))):",
        "    try: action()",
        "    except OSError: pass",
    )
    assert victim.read_text() == "kept-for-me" and victim.stat().st_mode == mode
    assert not (home / "link").is_symlink()
    assert "kept-for-me" not in log and "'victim'" not in log


def test_system_files_that_nobody_needs_are_out_of_reach(held, counter):
    log = log_of(
        held,
        counter,
        "for path in ('/etc/shadow', '/etc/ssh', '/root', '/home', '/var/log', '/etc/hostname'):",
        "    try: print('open', os.listdir(path) if os.path.isdir(path) else open(path).read())",
        "    except OSError: pass",
    )
    found = [line for line in log.splitlines() if line.startswith("open")]
    # a folder that holds this Python shows the way to it and nothing else
    assert not [line for line in found if "[" not in line or len(line) > 60]


def test_what_is_installed_can_be_imported(held, counter):
    r = result_of(held, counter, "import numpy, cocotb.queue, tempfile", "tempfile.TemporaryFile().write(b'1')")
    assert r.status == "passed"


@pytest.mark.skipif(shutil.which("z3") is None, reason="z3 is not installed")
def test_the_solver_of_constrained_random_runs_inside(held, counter):
    call = "subprocess.run(['z3', '--in'], input='(check-sat)', capture_output=True, text=True).stdout"
    assert "'sat" in log_of(held, counter, "import subprocess", f"print(repr({call}))")


def test_network_is_out_of_reach(held, counter):
    lines = (
        "import socket",
        "try: s = socket.socket(); s.settimeout(2); print('code', s.connect_ex(('1.1.1.1', 80)))",
        "except OSError: print('refused')",
    )
    assert "refused" in log_of(held, counter, *lines)


def test_processes_left_behind_are_gone(held, counter):
    mark = f"left-behind-{os.getpid()}"
    lines = (
        "import subprocess",
        f"subprocess.Popen(['sh', '-c', 'sleep 300; : {mark}'], start_new_session=True)",
        f"os.system('setsid sh -c \"sleep 300; : {mark}\" &')",
    )
    log_of(held, counter, *lines)
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(mark.encode() in entry.read_bytes())
        except OSError:
            continue
    assert not any(found)


def test_memory_of_the_harness_is_out_of_reach(held, counter):
    assert "can read" not in log_of(
        held,
        counter,
        "for name in ('mem', 'environ', 'maps', *(f'fd/{i}' for i in range(20))):",
        "    path = f'/proc/{os.getppid()}/{name}'",
        "    try: print('can read', name, os.readlink(path) if name[:2] == 'fd' else open(path, 'rb').read(1))",
        "    except OSError: pass",
    )


def test_harness_cannot_be_signalled_limited_or_slowed_down(held, counter):
    lines = (
        "import resource",
        "parent = os.getppid()",
        "for action in (lambda: os.kill(parent, 9), lambda: os.kill(-parent, 9), lambda: os.kill(1, 9),",
        "        lambda: resource.prlimit(parent, resource.RLIMIT_CPU, (0, 0)),",
        "        lambda: os.sched_setscheduler(parent, os.SCHED_IDLE, os.sched_param(0)),",
        "        lambda: os.setpriority(os.PRIO_USER, 0, 19)):",
        "    try: action(); print('could')",
        "    except OSError: pass",
    )
    bad, after = held.run_many(counter, [Testbench(test_body(*lines)), Testbench(GOOD)], limits=Limits(wall_s=10))
    assert (bad.status, after.status) == ("passed", "passed")
    assert "could" not in bad.log


def test_testbench_sees_only_its_own_folder_and_finds_it_empty(held, counter):
    lines = (
        "import tempfile",
        "folders = ('.', tempfile.gettempdir(), '/tmp', '/var/tmp', '/dev/shm')",
        "print('found', [d for d in folders if os.path.lexists(d + '/mine')])",
        "for folder in folders:",
        "    try: os.makedirs(folder + '/mine/deeper'); os.chmod(folder + '/mine', 0)",
        "    except OSError: pass",
        "print('now', [d for d in folders if os.path.lexists(d + '/mine')])",
    )
    first = log_of(held, counter, *lines)
    second = log_of(held, counter, *lines, "pass")
    assert "now ['.'" in first
    assert "found []" in second


def test_a_reply_of_the_harness_cannot_be_forged(held, counter):
    """Coverage is the reward: nothing that a testbench can reach leads to the pipes of the harness."""
    lines = (
        "import json",
        "reply = dict(end=1, excess=0, exit=0, signal=0, time_ns=1, evaluations=1, wall_s=1, cpu_s=1, errors=0)",
        "reply |= dict(replay_cpu_s=0, replayed=True, same=True, hits='ff' * 4000)",
        "for process in filter(str.isdecimal, os.listdir('/proc')):",
        "    for fd in range(32):",
        "        if int(process) != os.getpid():",
        "            try: open(f'/proc/{process}/fd/{fd}', 'w').write(json.dumps(reply) + chr(10))",
        "            except OSError: pass",
    )
    assert result_of(held, counter, *lines).coverage.overall < 0.5


@pytest.mark.parametrize(
    ("lines", "limits", "says"),
    [
        (("while True:", "    if os.fork() == 0: time.sleep(60)"), {}, "more than 64 processes"),
        (("while True: os.fork()",), {}, "more than 64 processes"),
        (
            ("for _ in range(8): os.fork() or (bytearray(b'1') * (40 << 20), time.sleep(60))", "time.sleep(60)"),
            {"memory_mb": 200},
            "more than 200 MiB of memory together",
        ),
        (
            ("for i in range(200): open(str(i), 'wb').write(bytes(1 << 20))", "time.sleep(60)"),
            {"disk_mb": 50},
            "larger than 50 MiB together",
        ),
        (
            ("kept = [open(f'{i}', 'wb') for i in range(100)]", "for i in range(100): os.unlink(str(i))",
             "for f in kept: f.write(bytes(1 << 20)); f.flush()", "time.sleep(60)"),
            {"disk_mb": 50},
            "larger than 50 MiB together",
        ),
        (("for i in range(300): open(str(i), 'w').close()", "time.sleep(60)"), {"files": 200}, "more than 200 files"),
        (
            ("for _ in range(4): os.fork()", "while True: pass"),
            {"cpu_s": 1},
            "1 s of processor time of all its processes",
        ),
    ],
    ids=["processes", "fork bomb", "memory", "disk", "deleted files", "files", "processor time"],
)  # fmt: skip
def test_what_all_processes_of_a_testbench_use_is_limited(held, counter, lines, limits, says):
    r = result_of(held, counter, *lines, **limits)
    assert r.status == "resource_limit"
    assert says in r.log


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
        "os.makedirs('a/b'); os.chmod('a', 0)",
        "open('tests.json', 'w').write(chr(91) * 900000); os._exit(0)",
        "raise ValueError(chr(0xd800) + chr(0))",
    ],
)
def test_what_a_testbench_does_to_its_folder_harms_nobody(held, home, counter, line):
    bad, after = held.run_many(counter, [Testbench(test_body(line)), Testbench(GOOD)], limits=Limits(wall_s=10))
    left = {path.name for folder in (home / "cache" / "run").iterdir() for path in folder.iterdir()}
    assert "root:" not in bad.log
    assert after.status == "passed"
    assert left <= {"harness.log"}
    bad.log.encode()


def test_compilers_run_inside_too(held, home):
    tools = held.toolchain
    (home / "secret.h").write_text("#error from-the-home")
    work = Path(tempfile.mkdtemp(dir=tools.builds))
    try:
        (work / "reads.cpp").write_text(f'#include "{home}/secret.h"\n')
        (work / "fine.cpp").write_text("int x;\n")
        (work / "reads.v").write_text(f'`include "{home}/secret.h"\n')
        assert tools.compile("-c", "fine.cpp", "-o", "fine.o", cwd=work).returncode == 0
        for finished in (
            tools.compile("-c", "reads.cpp", "-o", "reads.o", cwd=work),
            tools.verilate("--lint-only", "reads.v", cwd=work, cpu_s=60),
        ):
            assert finished.returncode != 0
            assert "from-the-home" not in finished.output
        tools.link("-shared", "-o", home / "outside.so", "fine.o", cwd=work)
        assert not (home / "outside.so").exists()
    finally:
        shutil.rmtree(work)


def test_what_other_testbenches_are_compiled_from_is_out_of_reach(held, counter):
    with own_folder(held.toolchain.scratch) as other:
        (other / "other.sv").write_text("module other_testbench; endmodule")
        log = log_of(held, counter, f"print(open({str(other / 'other.sv')!r}).read())")
    assert "other_testbench" not in log and ("PermissionError" in log or "FileNotFoundError" in log)


def test_compiler_that_takes_too_long_is_ended_with_all_it_started(held):
    tools = held.toolchain
    work = Path(tempfile.mkdtemp(dir=tools.builds))
    try:
        (work / "slow.v").write_text(
            "module slow(output [31:0] y);\n"
            "  function automatic int f(int n); return n < 2 ? n : f(n - 1) + f(n - 2); endfunction\n"
            "  localparam int x = f(60);\n  assign y = x;\nendmodule\n"
        )
        finished = tools.verilate("--lint-only", "slow.v", cwd=work, cpu_s=1)
        assert finished.limited or "recursive" in finished.output.lower()
    finally:
        shutil.rmtree(work)
    assert not [p for p in Path("/proc").glob("[0-9]*/cwd") if os.path.realpath(p) == str(work)]


def test_older_kernel_s_gap_is_closed(held, tmp_path):
    """Before its version 3 Landlock did not govern cutting off a file that is open for reading."""
    tier = held.toolchain.sandbox
    if not isinstance(tier, Landlock):
        pytest.skip("only in the tier landlock")
    victim, run = tmp_path / "readable", tmp_path / "run"
    victim.write_text("kept")
    run.mkdir()
    script = (
        "import os\n"
        f"for action in (lambda: os.truncate({str(victim)!r}, 0), lambda: os.open({str(victim)!r}, os.O_TRUNC)):\n"
        "    try: action(); print('could')\n"
        "    except OSError: print('refused')"
    )
    old = replace(tier, abi=2)
    command = old.wrap([sys.executable, "-c", script], writable=[run], readable=[victim])
    output = subprocess.run(command, cwd=run, capture_output=True, text=True, check=True).stdout
    assert output.split() == ["refused", "refused"]
    assert victim.read_text() == "kept"
    assert any("signalled" in text for text in replace(old, uid=None).missing)


def test_plain_tier_is_only_for_those_who_ask(tmp_path, monkeypatch):
    monkeypatch.delenv("LLM4COV_SANDBOX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    no_landlock = tmp_path / "launcher"
    no_landlock.write_text("#!/bin/sh\necho 0\n")
    no_landlock.chmod(0o755)
    with pytest.raises(SandboxError, match="--unsandboxed"):
        find_sandbox(lambda: no_landlock)
    monkeypatch.setenv("LLM4COV_SANDBOX", "plain")
    assert find_sandbox(lambda: no_landlock) == Plain()


def test_forced_tier_that_does_not_exist_is_refused(home, monkeypatch):
    monkeypatch.setenv("LLM4COV_SANDBOX", "concrete")
    with pytest.raises(ToolError, match="LLM4COV_SANDBOX=concrete"):
        find_toolchain(home)


def test_unsandboxed_run_has_the_rights_of_the_user_and_doctor_says_so(home, tmp_path, monkeypatch):
    from llm4cov_assets.cli import app

    monkeypatch.setenv("LLM4COV_HOME", str(home))
    monkeypatch.setenv("LLM4COV_SANDBOX", "")  # the option changes it; this puts it back
    (tmp_path / "counter.sv").write_text(COUNTER)
    (tmp_path / "tb.py").write_text(test_body(f"open({str(tmp_path / 'mine')!r}, 'w').write('written')"))
    command = ["sim", str(tmp_path / "counter.sv"), str(tmp_path / "tb.py"), "--unsandboxed", "--json", "--no-cache"]
    done = CliRunner().invoke(app, command)
    assert json.loads(done.stdout)["status"] == "passed"
    assert (tmp_path / "mine").read_text() == "written"
    tools = find_toolchain(home)
    rows = describe(tools.sandbox, tools.ensure_launcher(), home)
    assert not any(r.holds for r in rows) and all(r.detail for r in rows)
