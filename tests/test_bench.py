"""What `script/bench` and `script/soak` stand on: CPU seconds of all that was started, and their command lines."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import bench
from tests.bench import cost_of
from tests.soak import __main__ as soak

BURN = "import time\nwhile time.process_time() < 0.3: pass"


def test_cost_has_the_time_of_programs_that_ended_and_of_those_that_still_run():
    assert cost_of(lambda: subprocess.run([sys.executable, "-c", BURN], check=True)) > 0.25
    lines = f"{BURN}\nprint(flush=True)\nimport sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", lines], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        before_it_ends = cost_of(lambda: running.stdout and running.stdout.readline())
        started_before = cost_of(lambda: None)
        running.communicate()
    assert before_it_ends > 0.1
    assert started_before < 0.1


@pytest.mark.parametrize(("main", "names"), [(bench.main, bench.SECTIONS), (soak.main, soak.SOAKS)])
def test_help_lists_everything_and_an_unknown_name_is_refused_in_one_line(main, names, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["script", "--help"])
    with pytest.raises(SystemExit, match="0"):
        main()
    told = capsys.readouterr().out
    assert all(name in told for name in names)
    monkeypatch.setattr(sys, "argv", ["script", "nothing"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "'nothing'" in capsys.readouterr().err.splitlines()[-1]


def test_soak_without_a_name_lists_one_line_for_each(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["script/soak"])
    soak.main()
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in told] == list(soak.SOAKS)
    assert all(len(line) < 140 for line in told)


@pytest.mark.slow
def test_section_says_each_figure_and_whether_its_aim_was_met():
    command = [sys.executable, "-m", "tests.bench", "workers", "--rounds", "1", "--testbenches", "4"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "one worker" in told and "two workers / one" in told
    assert told.rstrip().endswith(("met", "missed"))
