"""The report, the metadata of the comparison and `llm4cov trajectory` show what the warehouse holds."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import polars as pl
import pytest
from example_rows import CONFIG, Example, example
from typer.testing import CliRunner

from llm4cov_assets.assets.evaluating import comparison_metadata
from llm4cov_assets.cli import app
from llm4cov_assets.errors import UserError
from llm4cov_assets.profiles import Profile
from llm4cov_assets.report import trajectory
from llm4cov_assets.report.numbers import numbers as read_numbers
from llm4cov_assets.report.numbers import ordered, policy_place
from llm4cov_assets.report.page import page
from llm4cov_assets.report.pictures import pictures
from warehouse.store import Store

Filled = tuple[Store, Example]


class Page(HTMLParser):
    """Headings, table cells and the rest of the text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.cells: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "path", "use"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("h2", "h3"):
            self.headings.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.cells.append(data)


def test_numbers_are_those_of_the_configuration_asked_for(filled: Filled) -> None:
    found = read_numbers(filled[0], CONFIG)
    assert found.policies() == ["untrained", "stage_0", "stage_1", "stage_2", "scripted/random"]
    assert [(r["policy_a"], r["diff"]) for r in found.differences] == [("stage_2", 0.25)]
    assert found.funnel["repairs_accepted"].to_list() == [1, 1, 1]
    assert found.rounds.filter(benchmark="all", policy="stage_0")["avg_cov"].to_list() == [0.625, 0.75]
    assert found.trajectory_id == filled[1].steps["agentic/stage_2/0"].trajectory_id
    other = read_numbers(filled[0], "beef" * 4)
    assert (other.board, other.trajectory_id, other.funnel["drafts"].to_list()) == ([], None, [1])


def test_all_comes_before_kinds_and_direct_before_agentic() -> None:
    rows = [
        {"policy": policy, "benchmark": benchmark, "mode": mode}
        for policy in ("scripted/reset", "control", "untrained")
        for benchmark in ("hand_written", "all")
        for mode in ("agentic", "direct")
    ]
    assert [(r["benchmark"], r["mode"], r["policy"]) for r in ordered(rows)][:4] == [
        ("all", "direct", "untrained"),
        ("all", "direct", "control"),
        ("all", "direct", "scripted/reset"),
        ("all", "agentic", "untrained"),
    ]
    assert policy_place("stage_2") < policy_place("teacher") < policy_place("scripted/random")


def test_every_picture_says_one_thing_and_how_to_read_it(filled: Filled) -> None:
    drawn = pictures(read_numbers(filled[0], CONFIG))
    assert list(drawn) == ["leaderboard", "differences", "rounds", "simulations", "funnel", "repairs"]
    for picture in drawn.values():
        assert picture.caption.endswith(".") and picture.caption in picture.markdown
    assert "line and branch alone" in drawn["leaderboard"].svg
    assert "stage 2 (stage_1 repairs)" in drawn["repairs"].svg


def test_pictures_without_numbers_are_left_out(filled: Filled) -> None:
    assert list(pictures(read_numbers(filled[0], "beef" * 4))) == ["funnel"]


def test_the_report_is_one_page_with_all_sections(filled: Filled) -> None:
    numbers = read_numbers(filled[0], CONFIG)
    with filled[0].connect() as connection:
        telling = trajectory.read(connection, numbers.trajectory_id or "")
    html = page(Profile(), numbers, pictures(numbers), telling)
    shown = Page(html)
    for heading in ("Leaderboard", "Coverage by round", "One trajectory, step by step", "Funnel of each stage"):
        assert heading in shown.headings
    assert "Round 1: 0.875 → 0.875 (+0.000), passed" in shown.headings
    assert {"line and branch", "stage_2 − stage_0", "+0.250", "[+0.200, +0.300]"} <= set(shown.cells)
    assert html.count("<svg") == 6 and "http" not in html.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in html and shown.open in ([], ["html"])


def test_what_a_page_shows_is_escaped(filled: Filled) -> None:
    step = trajectory.TrajectoryStep(
        0, "<em>", "repair", "<i>", "passed", 0.0, 0.5, 0.5, None, "status: <u>\nuncovered, most useful first:\n<s>",
        "old", "<new>", None, None, 1, (), (),
    )  # fmt: skip
    made_up = trajectory.Trajectory("0" * 32, (step,), 0.25, {"<f>": "<r>"})
    html = page(Profile(), read_numbers(filled[0], CONFIG), {}, made_up)
    for raw in ("<em>", "<i>", "<u>", "<s>", "<new>", "<f>", "<r>"):
        assert raw not in html
    assert "&lt;new&gt;" in html and "&lt;s&gt;" in html


def test_the_comparison_shows_the_same_as_the_report(filled: Filled) -> None:
    store = filled[0]
    scores = [r for r in store.read("scores", config_hash=CONFIG).to_dicts() if r["benchmark"] == "all"]
    found = read_numbers(store, CONFIG, scores, store.read("comparisons", config_hash=CONFIG).to_dicts())
    metadata = comparison_metadata(store, found, pl.DataFrame({"evaluation_id": ["a"]}))
    assert {f"plot/{name}" for name in pictures(found)} < set(metadata)
    assert "avg_line_branch" in metadata["leaderboard"]["markdown"]
    assert "| stage_0 | all | 1 | 1 | 1 | 0.750 | 0.750 |" in metadata["rounds"]["markdown"]
    assert "**Round 1: 0.875 → 0.875 (+0.000), passed**" in metadata["trajectory"]["markdown"]
    assert (metadata["policies"], metadata["evaluations"]) == (5, 1)


def test_a_repair_shows_what_was_uncovered_what_changed_and_what_it_hit(filled: Filled) -> None:
    with filled[0].connect() as connection:
        read = trajectory.read(connection, filled[1].steps["0/fifo/0"].trajectory_id)
    draft, repair = read.steps
    assert (read.design, read.best, read.avg_random, list(read.rtl)) == ("fifo", 0.625, None, ["fifo.sv"])
    assert (draft.change, draft.n_uncovered, draft.observed) == (["+# [0, 1, 4, 6, 8]"], 10, "")
    assert repair.title == "Round 1: 0.500 → 0.625 (+0.125), passed"
    assert repair.change == ["@@", "-# [0, 1, 4, 6, 8]", "+# [0, 1, 2, 3, 4, 6, 8]"]
    assert repair.outcome == "It hits 2 of the 5 uncovered points: 2 line."
    assert trajectory.by_line(repair.hit) == {"fifo.sv": {12: ("line 2;", "block"), 13: ("line 3;", "block")}}
    assert json.loads(json.dumps(read.as_json()))["steps"][1]["hit"][0]["line"] == 12


def test_an_unusable_answer_changes_nothing(filled: Filled) -> None:
    with filled[0].connect() as connection:
        [step] = trajectory.read(connection, filled[1].steps["0/uart/1"].trajectory_id).steps
        with pytest.raises(LookupError):
            trajectory.read(connection, "0" * 32)
    assert (step.status, step.testbench, step.change, step.hit) == ("unparsable", "", [], ())


def test_a_draft_shows_its_tests_and_a_repair_its_changes() -> None:
    text = 'import cocotb\n\n\n@cocotb.test()\nasync def t(dut):\n    """Nothing."""\n'
    step = trajectory.TrajectoryStep(
        0, "d", "draft", "p", "passed", 0.0, 0.5, 0.5, None, "", "", text, None, None, 2, (), ()
    )
    assert step.change == ["+@cocotb.test()", "+async def t(dut):", '+    """Nothing."""']


def llm4cov(store: Store, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, [*arguments], env={"LLM4COV_HOME": str(store.home)})
    return done.exit_code, done.output


def test_a_trajectory_is_found_by_its_id_and_by_those_of_its_rows(filled: Filled) -> None:
    step = filled[1].steps["0/fifo/0/r"]
    for identity in (step.trajectory_id, step.trajectory_id[:10], step.transition_id):
        code, output = llm4cov(filled[0], "trajectory", identity)
        assert code == 0 and "Round 1: 0.500 → 0.625 (+0.125), passed" in output
    code, output = llm4cov(filled[0], "trajectory", step.trajectory_id, "--json")
    assert json.loads(output)["design"] == "fifo"


def test_without_an_evaluation_of_the_current_configuration_there_is_none(filled: Filled) -> None:
    for arguments in ((), ("alu",), ("0" * 32,)):
        code, output = llm4cov(filled[0], "trajectory", *arguments)
        assert code == 1 and "from episodes order by telling" in output


def test_a_published_file_without_the_views_of_this_version_says_what_to_do(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.publish(force=True)
    store.public.chmod(0o644)
    with duckdb.connect(store.public) as connection:
        connection.execute("drop view episodes cascade")
    done = CliRunner().invoke(app, ["trajectory"], env={"LLM4COV_HOME": str(tmp_path)})
    assert isinstance(done.exception, UserError) and "llm4cov warehouse publish" in str(done.exception)
    assert llm4cov(store, "warehouse", "publish")[0] == 0
    assert llm4cov(store, "trajectory")[0] == 1


def test_the_most_telling_trajectory_is_shown_by_default_and_for_a_design(tmp_path_factory, filled: Filled) -> None:
    store = Store(tmp_path_factory.mktemp("alone"))
    filled[1].write(store)
    store.publish(force=True)
    for arguments in ((), ("alu",)):
        code, output = llm4cov(store, "trajectory", *arguments)
        assert code == 0 and "alu: stage_2, best 87.5 %; scripted/random reaches 62.5 % on average" in output


def test_the_report_is_written_with_its_pictures_beside_it(tmp_path: Path) -> None:
    rows, store = example(Profile().config_hash), Store(tmp_path)
    rows.write(store)
    code, output = llm4cov(store, "report", "--out", str(tmp_path / "new" / "r.html"), "--pictures", str(tmp_path))
    assert code == 0 and len(output.split()) == 7
    assert "One trajectory, step by step" in (tmp_path / "new" / "r.html").read_text()
    assert (tmp_path / "rounds.svg").read_text().startswith("<svg")


def test_tables_show_every_run_and_the_runs_together(tmp_path: Path) -> None:
    profile, store = Profile(), Store(tmp_path)
    for seed in (0, 1):
        example(profile.model_copy(update={"seed": seed}).config_hash).write(store)
    path = tmp_path / "results.md"
    arguments = ["report", "--seed", "0", "--seed", "1", "--tables", str(path)]
    code, output = llm4cov(store, *arguments)
    text = path.read_text()
    assert code == 0 and output.split()[-1] == str(path)
    assert next(line for line in text.splitlines() if line.startswith("## ")) == "## All seeds together (0, 1)"
    [agentic] = {line.split(" | ")[3] for line in text.splitlines() if line.startswith("| stage_2 | ")}
    stored = store.read("scores").filter(policy="stage_2", benchmark="all", mode="agentic")["avg_cov"].unique()
    assert agentic.startswith(f"{stored.item():.3f}"[1:])


def test_a_pair_that_one_run_lacks_is_not_compared_over_all_of_them(tmp_path: Path) -> None:
    profile, store = Profile(), Store(tmp_path)
    whole, part = (profile.model_copy(update={"seed": seed}) for seed in (0, 1))
    rows = example(part.config_hash)
    for (table, *_), its in rows.rows.items():
        if table in ("scores", "evaluations"):
            its[:] = [row for row in its if row["policy"] != "stage_2"]
    example(whole.config_hash).write(store)
    rows.write(store)
    path = tmp_path / "results.md"
    code, _ = llm4cov(store, "report", "--seed", "0", "--seed", "1", "--tables", str(path))
    together, _, alone = path.read_text().partition("## Seed 0")
    assert code == 0 and "stage_2" not in together and "| stage_2 − " in alone


def test_tables_and_report_are_files_of_their_own(filled: Filled, tmp_path: Path) -> None:
    one = str(tmp_path / "r")
    done = CliRunner().invoke(app, ["report", "--out", one, "--tables", one], env={"LLM4COV_HOME": str(filled[0].home)})
    assert isinstance(done.exception, UserError) and not Path(one).exists()


def test_the_report_of_a_profile_without_results_says_what_to_run(filled: Filled) -> None:
    done = CliRunner().invoke(app, ["report", "--seed", "3"], env={"LLM4COV_HOME": str(filled[0].home)})
    assert "llm4cov run --profile demo --seed 3; results of " in str(done.exception)
