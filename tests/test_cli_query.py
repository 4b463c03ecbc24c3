"""`llm4cov sql`, `lineage` and `warehouse` from the outside: output, exit codes, errors in one line."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "warehouse"))
from example_rows import Example, example

from warehouse.store import Store


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Example]:
    home, rows = tmp_path_factory.mktemp("home"), example()
    rows.write(Store(home))
    Store(home).publish(force=True)
    return home, rows


@dataclass(frozen=True)
class Result:
    returncode: int
    stdout: str
    stderr: str


def llm4cov(home: Path, *arguments: str, stdin: str = "") -> Result:
    """The command line in this process, with its own streams; a start of its own costs half a second."""
    from llm4cov_assets.cli import main

    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("LLM4COV_HOME", str(home))
        patch.setattr(sys, "argv", ["llm4cov", *arguments])
        patch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as ended:
            main()
    return Result(int(ended.value.code or 0), out.getvalue(), err.getvalue())


def test_sql_prints_a_table_json_or_csv(filled: tuple[Path, Example]) -> None:
    query = "select policy, avg_cov from leaderboard where mode = 'direct' limit 2"
    table = llm4cov(filled[0], "sql", query)
    assert table.returncode == 0
    assert "stage_2" in table.stdout and "0.875" in table.stdout
    as_json = llm4cov(filled[0], "sql", query, "--json")
    assert json.loads(as_json.stdout) == [
        {"policy": "stage_2", "avg_cov": 0.875},
        {"policy": "stage_1", "avg_cov": 0.75},
    ]
    as_csv = llm4cov(filled[0], "sql", query, "--csv")
    assert as_csv.stdout == "policy,avg_cov\nstage_2,0.875\nstage_1,0.75\n"


def test_an_answer_without_rows_says_so(filled: tuple[Path, Example]) -> None:
    done = llm4cov(filled[0], "sql", "from leaderboard where false")
    assert (done.returncode, done.stderr) == (0, "no rows\n")
    assert llm4cov(filled[0], "sql", "from leaderboard where false", "--json").stdout == "[]\n"


def test_sql_writes_no_files(filled: tuple[Path, Example], tmp_path: Path) -> None:
    done = llm4cov(filled[0], "sql", f"copy (select 1) to '{tmp_path / 'out.csv'}'")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out.csv").exists()


def test_sql_reads_statements_and_dot_commands_from_a_pipe(filled: tuple[Path, Example]) -> None:
    assert json.loads(llm4cov(filled[0], "sql", "--json", stdin="select 1 as one;").stdout) == [{"one": 1}]
    several = llm4cov(filled[0], "sql", "--json", stdin=".tables\n\nselect\n  2 as two;\n.views\nselect 3 as three\n")
    tables, two, views, three = map(json.loads, several.stdout.splitlines())
    assert "designs" in {row["table"] for row in tables} and "gains" in {row["view"] for row in views}
    assert (two, three) == ([{"two": 2}], [{"three": 3}])
    assert llm4cov(filled[0], "sql", stdin="\n").returncode == 2
    assert llm4cov(filled[0], "sql", "--csv", stdin="select 1 as one;\n.quit\nselect nothing;").stdout == "one\n1\n"
    assert "stage_funnel" in llm4cov(filled[0], "sql", ".views").stdout
    assert "simulations" in llm4cov(filled[0], "sql", ".tables").stdout
    assert "mean coverage, 0 where failing" in llm4cov(filled[0], "sql", ".schema leaderboard").stdout
    assert "Which designs stay worst" in llm4cov(filled[0], "sql", ".examples").stdout
    assert "from worst_designs" in llm4cov(filled[0], "sql", ".example stay_worst").stdout
    assert "compile_error" in llm4cov(filled[0], "sql", ".run stay_worst").stdout
    assert ".schema NAME" in llm4cov(filled[0], "sql", ".help").stdout


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("selec 1", "syntax error"),
        ("select avgcov from leaderboard", "avg_cov"),
        ("from nothing", "nothing"),
        ("delete from rows.designs", "read-only"),
        (".schema nothing", "no table or view 'nothing'"),
        (".run nothing", "no example 'nothing'"),
        (".nothing", "no command .nothing"),
        ("", "nothing is asked"),
        (" ; ", "nothing is asked"),
    ],
)
def test_a_wrong_query_is_one_line_and_exit_code_2(filled: tuple[Path, Example], query: str, message: str) -> None:
    result = llm4cov(filled[0], "sql", query)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("llm4cov: ") and message in result.stderr
    assert result.stderr.count("\n") == 1


def test_json_holds_nothing_that_json_does_not_know(filled: tuple[Path, Example]) -> None:
    query = "select 'nan'::double as a, ['inf'::double] as b, {'c': '-inf'::float} as d, '\\x01'::blob as e"
    result = llm4cov(filled[0], "sql", "--json", query)
    assert json.loads(result.stdout, parse_constant=pytest.fail) == [
        {"a": None, "b": [None], "d": {"c": None}, "e": "01"}
    ]
    assert llm4cov(filled[0], "sql", "--json", "/* nothing */").returncode == 0


def test_an_empty_home_is_initialised(tmp_path: Path) -> None:
    result = llm4cov(tmp_path / "new", "sql", "--json", "select count(*) as n from simulations")
    assert (result.returncode, json.loads(result.stdout)) == (0, [{"n": 0}])
    assert (tmp_path / "new" / "trajectories.duckdb").exists()


def test_lineage_prints_both_directions(filled: tuple[Path, Example]) -> None:
    home, rows = filled
    id_ = rows.steps["0/fifo/0/r"].transition_id
    result = llm4cov(home, "lineage", id_[:8])
    assert result.returncode == 0
    assert "made from" in result.stdout and "led to" in result.stdout
    assert rows.steps["0/fifo/0"].transition_id[:12] in result.stdout
    as_json = json.loads(llm4cov(home, "lineage", id_, "--json").stdout)
    assert (as_json["table"], as_json["id"], as_json["dagster_run_id"]) == ("transitions", id_, "run-1")
    assert as_json["led_to"]["counts"]["checkpoints"] == 3


def test_lineage_of_nothing_is_1_and_of_nonsense_2(filled: tuple[Path, Example]) -> None:
    assert llm4cov(filled[0], "lineage", "0" * 32).returncode == 1
    nonsense = llm4cov(filled[0], "lineage", "xyz")
    assert (nonsense.returncode, nonsense.stderr.count("\n")) == (2, 1)


def test_keeping_the_warehouse(filled: tuple[Path, Example]) -> None:
    home = filled[0]
    assert json.loads(llm4cov(home, "warehouse", "verify", "--json").stdout) == {"ok": True, "problems": []}
    assert json.loads(llm4cov(home, "warehouse", "compact", "--json").stdout)["merged"] > 10
    assert "published" in llm4cov(home, "warehouse", "publish").stdout
    assert "up to date" in llm4cov(home, "warehouse", "publish").stdout
    assert json.loads(llm4cov(home, "warehouse", "rebuild", "--json").stdout)["changed"] is True


def test_verify_exits_with_1_when_something_is_wrong(tmp_path: Path) -> None:
    example().write(Store(tmp_path))
    part = next((tmp_path / "parts" / "designs").rglob("*.parquet"))
    part.write_bytes(b"nothing of the kind")
    result = llm4cov(tmp_path, "warehouse", "verify")
    assert result.returncode == 1
    assert part.name in result.stdout
    published = llm4cov(tmp_path, "warehouse", "publish")
    assert (published.returncode, published.stderr.count("\n")) == (2, 1)
