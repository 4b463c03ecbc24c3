"""Importing judges every design by itself and keeps copies that do not change."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.exporting import export
from llm4cov_assets.ingest.importing import import_source
from llm4cov_assets.ingest.kept import keep, kept_batch, kept_designs
from llm4cov_assets.ingest.records import DesignRecord
from llm4cov_assets.ingest.registry import CORPUS, corpus_designs, find_design
from sim.design import Design, DesignError
from sim.load import load_design


def rtl(name: str, body: str = "assign y = a & b;") -> str:
    return f"module {name}(input logic a, input logic b, output logic y);\n  {body}\nendmodule\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A folder of folders: two good designs, one that does not parse, one without a module it needs, one empty."""
    source = tmp_path / "source"
    write(source / "good" / "good.sv", rtl("good"))
    write(source / "deep" / "rtl" / "deep.sv", rtl("deep", "assign y = a | b;"))
    write(source / "broken" / "broken.sv", "module broken(input logic a;\nendmodule\n")
    write(source / "lonely" / "lonely.sv", rtl("lonely", "missing u(.a(a), .y(y));"))
    (source / "empty").mkdir()
    return source


def test_good_designs_are_accepted_and_the_others_listed_with_file_and_reason(mixed: Path, home: Path) -> None:
    report = import_source(mixed, home)
    assert [r.name for r in report.accepted] == ["deep", "good"]
    reasons = {r.name: r for r in report.rejected}
    assert set(reasons) == {"broken", "lonely", "empty"}
    assert "broken.sv:1" in reasons["broken"].detail
    assert "lonely.sv:2" in reasons["lonely"].detail and "missing" in reasons["lonely"].detail
    assert "no RTL" in reasons["empty"].detail


def test_imported_designs_are_found_by_name_whatever_happens_to_the_source(mixed: Path, home: Path) -> None:
    report = import_source(mixed, home)
    (mixed / "good" / "good.sv").write_text(rtl("good", "assign y = 0;"))
    assert find_design("good", home) == report.accepted[1].design
    [batch] = kept_designs(home)
    assert [r.name for r in kept_batch(home, batch)] == ["deep", "good"]
    assert kept_designs(home)[batch] == report.batches[batch]


def test_a_large_import_is_cut_into_batches(tmp_path: Path, home: Path) -> None:
    for i in range(5):
        write(tmp_path / "many" / f"d{i}" / f"d{i}.v", rtl(f"d{i}", f"assign y = a > {i};"))
    report = import_source(tmp_path / "many", home, batch_size=2, batch="many")
    assert {name: len(records) for name, records in report.batches.items()} == {
        "many-000": 2,
        "many-001": 2,
        "many-002": 1,
    }


def test_a_dry_run_keeps_nothing(mixed: Path, home: Path) -> None:
    assert len(import_source(mixed, home, dry_run=True).accepted) == 2
    assert kept_designs(home) == {}


def test_a_second_import_of_the_same_source_changes_nothing(mixed: Path, home: Path) -> None:
    first, second = import_source(mixed, home), import_source(mixed, home)
    assert first.batches == second.batches
    assert kept_designs(home) == first.batches


def test_one_file_or_one_folder_is_one_design(tmp_path: Path, home: Path) -> None:
    file = write(tmp_path / "one" / "one.sv", rtl("one"))
    assert [r.name for r in import_source(file, home, dry_run=True).accepted] == ["one"]
    assert [r.name for r in import_source(tmp_path / "one", home, dry_run=True).accepted] == ["one"]
    assert [r.name for r in import_source(CORPUS / "packet_router", home, split="eval").accepted] == ["packet_router"]


def test_two_designs_of_one_name_or_content_are_not_both_accepted(tmp_path: Path, home: Path) -> None:
    write(tmp_path / "s" / "a" / "same.sv", rtl("same"))
    write(tmp_path / "s" / "a" / "design.toml", 'name = "twin"\n')
    write(tmp_path / "s" / "b" / "other.sv", rtl("other"))
    write(tmp_path / "s" / "b" / "design.toml", 'name = "twin"\n')
    write(tmp_path / "s" / "c" / "same.sv", rtl("same"))
    report = import_source(tmp_path / "s", home)
    assert [r.name for r in report.accepted] == ["twin"]
    assert sorted(r.reason for r in report.rejected) == ["duplicate", "name taken"]


def test_an_evaluation_design_cannot_be_imported_for_training(home: Path) -> None:
    report = import_source(CORPUS / "alu", home, split="train")
    assert report.accepted == []
    assert [r.reason for r in report.rejected] == ["in evaluation set"]


def test_a_reworked_copy_of_an_evaluation_design_cannot_be_imported_for_training(tmp_path: Path, home: Path) -> None:
    alu = next(d for d in corpus_designs() if d.name == "alu").sources[0].text
    reworked = alu.replace("module alu", "module unit").replace("8'h5A", "8'h5B").replace("MIN:", "8'd7:")
    report = import_source(write(tmp_path / "unit.sv", reworked), home, split="train")
    assert [r.reason for r in report.rejected] == ["in evaluation set"]
    assert "copy of the evaluation design alu" in report.rejected[0].detail
    assert import_source(tmp_path / "unit.sv", home, split="eval").rejected == []


def test_a_design_that_the_check_refuses_is_rejected(mixed: Path, home: Path) -> None:
    def check(design: Design) -> None:
        if design.name == "deep":
            raise DesignError("deep.sv:2: no")

    report = import_source(mixed, home, check=check)
    assert [r.name for r in report.accepted] == ["good"]
    assert ("does not build", "deep.sv:2: no") in [(r.reason, r.detail) for r in report.rejected]


def test_what_the_check_says_about_determinism_is_kept_with_the_design(mixed: Path, home: Path) -> None:
    import_source(mixed, home)
    report = import_source(mixed, home, check=lambda design: design.name != "deep")
    assert {r.name: r.deterministic for r in report.accepted} == {"deep": False, "good": True}
    assert kept_designs(home) == report.batches
    import_source(mixed, home)
    assert kept_designs(home) == report.batches, "an import without the check forgets nothing"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"format": "zip"}, "no format"), ({"format": "cvdp"}, "cannot be read"), ({"split": "test"}, "no split")],
)
def test_wrong_arguments_are_refused(mixed: Path, home: Path, arguments: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        import_source(mixed, home, **arguments)


def test_a_missing_source_is_refused(tmp_path: Path, home: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        import_source(tmp_path / "nowhere", home)


@pytest.mark.parametrize("name", ["packet_router", "async_fifo", "alu"])
def test_an_exported_design_is_the_same_design_when_loaded_again(name: str, tmp_path: Path) -> None:
    design = next(d for d in corpus_designs() if d.name == name)
    export(design, tmp_path / "out")
    assert load_design(tmp_path / "out").design_id == design.design_id
    with pytest.raises(UserError, match="not an empty folder"):
        export(design, tmp_path / "out")


def test_export_keeps_headers_defines_and_hints(tmp_path: Path) -> None:
    write(tmp_path / "d" / "inc" / "w.svh", "`define EXTRA 1\n")
    write(tmp_path / "d" / "src" / "d.sv", '`include "w.svh"\n' + rtl("d", "assign y = a & (`W > `EXTRA);"))
    write(tmp_path / "d" / "design.toml", 'reset = "!b"\n[defines]\nW = 3\n[targets]\noverall = 0.9\n')
    design = load_design(tmp_path / "d")
    export(design, tmp_path / "out")
    again = load_design(tmp_path / "out")
    assert again == design
    assert again.targets == (("overall", 0.9),)


def test_a_kept_design_comes_back_whole(home: Path) -> None:
    for design in corpus_designs()[:3]:
        record = DesignRecord(design, "eval", "imported", design.name, "imported", "x")
        keep(record, home, "batch: with odd/name")
        keep(record, home, "batch: with odd/name")
    assert [r.design for r in kept_batch(home, "batch: with odd/name")] == list(corpus_designs()[:3])
