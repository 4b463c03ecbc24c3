"""Exclusions change what is shown of coverage, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llm4cov_assets.ingest.exporting import export
from llm4cov_assets.ingest.kept import keep, load_kept
from llm4cov_assets.ingest.records import DesignRecord
from sim.coverage import Points
from sim.design import Design, DesignError, Exclusion
from sim.exclusions import EXCLUSIONS_FILE, Excluded, as_table, read_exclusions
from sim.load import load_design
from sim.simulation import CoveragePoint, Testbench
from sim.simulator import Simulator
from tests.sim.conftest import COUNTER, test_body

BENCH = Testbench(test_body("await ClockCycles(dut.clk, 3)"))
CASE_LINE = next(n for n, line in enumerate(COUNTER.split("\n"), 1) if "2'd1: q <= q - 1" in line)
DOWN = Exclusion("never counts down", file="counter.sv", first_line=CASE_LINE, last_line=CASE_LINE)


def read(text: str) -> tuple[Exclusion, ...]:
    import tomllib

    return read_exclusions(tomllib.loads(text)["exclude"], Path("box/design.toml"), text)


def point(metric: str = "line", file: str = "rtl/a.sv", line: int = 5, instance: str = "top.g[0].u_a") -> CoveragePoint:
    return CoveragePoint(metric, file, line, 1, instance, "block", "x")


def excluded(point: CoveragePoint, **given: object) -> bool:
    return 0 in Excluded(Points([point]), [Exclusion("why", **given)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ({"file": "rtl/a.sv"}, True),
        ({"file": "rtl/*"}, True),
        ({"file": "a.sv"}, False),
        ({"file": "rtl/a.sv", "first_line": 5, "last_line": 5}, True),
        ({"file": "rtl/a.sv", "first_line": 6, "last_line": 9}, False),
        ({"instance": "top.g[0].u_*"}, True),
        ({"instance": "top.g[?].u_a"}, True),
        ({"instance": "top.g[1].*"}, False),
        ({"instance": "top"}, False),
        ({"metric": "line"}, True),
        ({"metric": "toggle"}, False),
        ({"metric": "line", "instance": "top.v*"}, False),
    ],
)
def test_a_point_is_excluded_when_all_that_is_given_fits(given: dict[str, object], fits: bool) -> None:
    assert excluded(point(), **given) is fits


def test_the_first_exclusion_that_fits_says_why_and_those_that_fit_nothing_are_stale() -> None:
    first, second = Exclusion("first", metric="line"), Exclusion("second", file="rtl/*")
    stale = Exclusion("third", file="gone.sv")
    found = Excluded(Points([point(), point("branch")]), [stale, first, second])
    assert [item.reason for item in found.items(range(2))] == ["first", "second"]
    assert found.stale == (stale,)


def test_every_key_is_read() -> None:
    text = '[[exclude]]\nfile = "a.sv"\nlines = "10-20"\ninstance = "top.u"\nmetric = "branch"\nreason = "it\\nis so"\n'
    assert read(text) == (Exclusion("it is so", "a.sv", 10, 20, "top.u", "branch"),)
    assert read('[[exclude]]\nfile = "a.sv"\nlines = 7\nreason = "x"\n') == (Exclusion("x", "a.sv", 7, 7),)
    assert as_table(Exclusion("x", "a.sv", 7, 9)) == {"file": "a.sv", "lines": "7-9", "reason": "x"}


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ('file = "a.sv"', "needs a reason"),
        ('file = "a.sv"\nreason = " "', "needs a reason"),
        ('reason = "x"', "would exclude every point"),
        ('reason = "x"\nlines = 3', "add file"),
        ('reason = "x"\nfile = 3', "file of an exclusion must be text"),
        ('reason = "x"\nfile = "a.sv"\nlines = "20-10"', "like \"10-20\", not '20-10'"),
        ('reason = "x"\nfile = "a.sv"\nlines = 0', "like"),
        ('reason = "x"\nfile = "a.sv"\nlines = true', "like"),
        ('reason = "x"\nfile = "a.sv"\nlines = [1, 2]', "like"),
        ('reason = "x"\nmetric = "lines"', "no metric 'lines'; choose one of line, branch"),
        ('reason = "x"\ninst = "top"', "unknown key 'inst' in an exclusion; known: file"),
    ],
)
def test_a_bad_exclusion_is_refused_with_file_line_and_mend(table: str, complaint: str) -> None:
    text = f'name = "box"\n[[exclude]]\nfile = "b.sv"\nreason = "fine"\n\n[[exclude]]\n{table}\n'
    with pytest.raises(DesignError) as error:
        read(text)
    assert str(error.value).startswith("box/design.toml:6: ") and complaint in str(error.value)
    assert "\n" not in str(error.value)


def folder(tmp_path: Path, **files: str) -> Path:
    (tmp_path / "box").mkdir(exist_ok=True)
    (tmp_path / "box" / "counter.sv").write_text(COUNTER)
    for name, text in files.items():
        (tmp_path / "box" / name.replace("_", ".")).write_text(text)
    return tmp_path / "box"


TABLE = '[[exclude]]\nfile = "counter.sv"\nlines = {}\nreason = "because"\n'


def test_exclusions_come_from_design_toml_and_from_a_file_of_their_own(tmp_path: Path) -> None:
    box = folder(tmp_path, design_toml=TABLE.format(3), exclusions_toml=TABLE.format(4))
    assert [e.first_line for e in load_design(box).exclusions] == [3, 4]
    others = TABLE.format(5).replace("counter.sv", "other.sv")
    (box / EXCLUSIONS_FILE).write_text(others + TABLE.format(6))
    assert [e.first_line for e in load_design(box / "counter.sv").exclusions] == [6]


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("exclusions.toml", "top = 'a'\n", "unknown key 'top'; write [[exclude]] tables only"),
        ("exclusions.toml", "exclude = 3\n", "write [[exclude]] above each"),
        ("exclusions.toml", "[[exclude]\n", "not valid TOML"),
        ("design.toml", "[exclude]\nreason = 'x'\n", "exclude has the wrong type"),
        ("design.toml", "exclude = [3]\n", "write [[exclude]] above each"),
    ],
)
def test_files_that_hold_no_exclusions_are_refused(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    box = folder(tmp_path)
    (box / name).write_text(text)
    with pytest.raises(DesignError, match=r"^[^\n]*$") as error:
        load_design(box)
    assert name in str(error.value) and complaint in str(error.value)


def test_exclusions_are_part_of_what_policies_read_but_not_of_what_is_simulated(counter: Design) -> None:
    waived = replace(counter, exclusions=(DOWN,))
    assert waived.rtl_id == counter.rtl_id
    assert waived.design_id != counter.design_id
    assert replace(waived, exclusions=()).design_id == counter.design_id


def test_coverage_hits_and_score_are_those_without_exclusions(simulator: Simulator, counter: Design) -> None:
    waived = replace(counter, exclusions=(DOWN, Exclusion("old", file="gone.sv", first_line=3, last_line=4)))
    [plain] = simulator.run_many(counter, [BENCH])
    [shown] = simulator.run_many(waived, [BENCH])
    assert shown.cached, "nothing is simulated again"
    for name in ("simulation_id", "coverage", "points", "instances", "hits", "score"):
        assert getattr(shown, name) == getattr(plain, name)
    assert {(e.line, e.reason) for e in shown.excluded} == {(CASE_LINE, "never counts down")}
    assert sorted(map(str, plain.uncovered)) == sorted(
        str(u) for u in plain.uncovered if u in shown.uncovered or u.line == CASE_LINE
    )
    assert len(shown.uncovered) + len(shown.excluded) == len(plain.uncovered)
    assert shown.stale_exclusions == ("every metric of gone.sv:3-4",)
    assert shown.coverage_without_excluded is not None and plain.coverage_without_excluded is None
    assert (shown.coverage_without_excluded.line or 0) > (shown.coverage.line or 0)
    assert shown.coverage_without_excluded.toggle == shown.coverage.toggle
    public = shown.as_json()
    assert public["coverage"] == plain.as_json()["coverage"] == plain.as_json()["coverage_without_excluded"]
    assert public["excluded"][0]["reason"] == "never counts down"


def test_feedback_follows_the_exclusions_of_the_design_that_asks(simulator: Simulator, counter: Design) -> None:
    waived = replace(counter, exclusions=(DOWN,))
    everything = replace(counter, exclusions=(Exclusion("a demo", instance="*"),))
    jobs = [(design, [BENCH, BENCH]) for design in (counter, waived, everything, counter)]
    found = {index: results for index, results in simulator.run_batches(jobs)}
    plain, some, none, again = (found[i][0].feedback for i in range(4))
    place = f"counter.sv:{CASE_LINE}  "
    assert place in plain and plain == again
    assert place not in some and "excluded by the engineer, not to be reached: 1 uncovered points" in some
    assert "\nuncovered, most useful first" in some and "\nuncovered, most useful first" not in none
    assert all(results[0].feedback == results[1].feedback for results in found.values())
    [fresh] = Simulator.run_many(simulator, waived, [Testbench(BENCH.text + "# other\n")])
    assert not fresh.cached and fresh.feedback == some


def test_exclusions_survive_keeping_and_exporting(tmp_path: Path, counter: Design) -> None:
    design = replace(counter, exclusions=(DOWN, Exclusion('a "b" é', instance="counter.g[0].*", metric="fsm")))
    place = keep(DesignRecord(design, "adhoc", "imported", design.name), tmp_path / "home", "b")
    assert load_kept(place).design == design
    export(design, tmp_path / "out")
    assert load_design(tmp_path / "out").exclusions == design.exclusions
