"""Importing judges every design by itself and keeps copies that do not change."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.exporting import export
from llm4cov_assets.ingest.importing import Options, Rejection, import_source
from llm4cov_assets.ingest.kept import KeptDesign, keep, kept_batch, kept_designs, retired
from llm4cov_assets.ingest.records import MOST_BATCHES, DesignRecord, batches, fitting_size
from llm4cov_assets.ingest.registry import CORPUS, corpus_designs, find_design
from llm4cov_assets.progress import Progress
from sim import reasons
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
    assert find_design("good", home) == report.accepted[1].load().design
    [batch] = kept_designs(home)
    assert kept_designs(home) == report.batches
    assert [d.name for d in kept_batch(home, batch)] == ["deep", "good"]


def many(folder: Path, count: int) -> Path:
    for i in range(count):
        write(folder / f"d{i}" / f"d{i}.v", rtl(f"d{i}", f"assign y = a > {i};"))
    return folder


def test_a_large_import_is_cut_into_batches(tmp_path: Path, home: Path) -> None:
    report = import_source(many(tmp_path / "many", 5), home, batch_size=2, batch="many")
    assert {b: len(found) for b, found in report.batches.items()} == {"many-000": 2, "many-001": 2, "many-002": 1}
    assert kept_designs(home) == report.batches


@pytest.mark.parametrize(("count", "size"), [(1, 80), (80, 80), (16_000, 80), (16_001, 81), (87_000, 435)])
def test_batches_are_large_enough_that_there_are_not_too_many(count: int, size: int) -> None:
    assert fitting_size(count) == size
    assert -(-count // fitting_size(count)) <= MOST_BATCHES


def test_names_of_batches_sort_as_their_numbers_do() -> None:
    names = list(batches(list(range(2_500)), 1, "x"))
    assert names == sorted(names) and len(names) == 2_500


def test_a_dry_run_keeps_nothing(mixed: Path, home: Path) -> None:
    assert len(import_source(mixed, home, dry_run=True).accepted) == 2
    assert kept_designs(home) == {}


def test_a_second_import_of_the_same_source_changes_nothing(mixed: Path, home: Path) -> None:
    first, second = import_source(mixed, home), import_source(mixed, home)
    assert second.accepted == [] and second.known == first.accepted
    assert kept_designs(home) == first.batches


def test_what_is_new_at_a_source_comes_in_and_the_rest_stays(tmp_path: Path, home: Path) -> None:
    import_source(many(tmp_path / "many", 2), home)
    report = import_source(many(tmp_path / "many", 4), home)
    assert [d.name for d in report.accepted] == ["d2", "d3"]
    assert [d.name for d in report.known] == ["d0", "d1"]


def test_a_design_that_changed_at_its_source_is_a_new_version_also_when_it_changes_back(
    tmp_path: Path, home: Path
) -> None:
    source = many(tmp_path / "many", 2)
    [first, _] = import_source(source, home).accepted
    for body in ("assign y = a < 9;", "assign y = a > 0;"):
        (source / "d0" / "d0.v").write_text(rtl("d0", body))
        report = import_source(source, home)
        assert [d.name for d in report.accepted] == [d.name for d in report.replaced] == ["d0"]
        assert find_design("d0", home) == report.accepted[0].load().design
        assert [d.name for found in kept_designs(home).values() for d in found].count("d0") == 1
    assert report.accepted[0].design_id == first.design_id
    assert [d.name for d, _ in retired(home)] == ["d0", "d0"], "the earlier versions are still there"


def test_a_design_alone_changes_back(tmp_path: Path, home: Path) -> None:
    file = write(tmp_path / "one.v", rtl("one"))
    for body in ("assign y = a | b;", "assign y = a & b;", "assign y = a | b;"):
        import_source(file, home)
        file.write_text(rtl("one", body))
    assert [d.name for d in import_source(file, home).accepted] == ["one"]
    assert [d.name for found in kept_designs(home).values() for d in found] == ["one"]
    assert find_design("one", home).sources[0].text == file.read_text()


def test_a_design_moves_to_another_split(tmp_path: Path, home: Path) -> None:
    file = write(tmp_path / "one.v", rtl("one"))
    import_source(file, home)
    import_source(file, home, split="eval")
    assert [(d.name, d.split) for found in kept_designs(home).values() for d in found] == [("one", "eval")]


def test_two_designs_may_change_places(tmp_path: Path, home: Path) -> None:
    source = many(tmp_path / "many", 3)
    import_source(source, home)
    first, second = ((source / f"d{i}" / f"d{i}.v").read_text() for i in (0, 1))
    (source / "d0" / "d0.v").write_text(second.replace("d1", "d0"))
    (source / "d1" / "d1.v").write_text(first.replace("d0", "d1"))
    report = import_source(source, home)
    assert ([d.name for d in report.accepted], report.rejected) == (["d0", "d1"], [])
    (source / "d0" / "d0.v").write_text((source / "d2" / "d2.v").read_text().replace("d2", "d0"))
    report = import_source(source, home)
    assert [(r.name, r.reason) for r in report.rejected] == [("d0", "duplicate")], "d2 still has it"


@pytest.mark.parametrize("name", ["alu", "lock_0_003"])
def test_names_of_bundled_and_generated_designs_are_taken(name: str, tmp_path: Path, home: Path) -> None:
    write(tmp_path / name / "x.v", rtl("x"))
    report = import_source(tmp_path / name, home)
    assert [(r.name, r.reason) for r in report.rejected] == [(name, "name taken")]


@pytest.mark.parametrize(("name", "kept"), [("../x", "_x"), ("a*b", "a_b"), ("-rf", "_rf"), ("a/b", "a_b")])
def test_names_that_commands_would_read_otherwise_are_spelt_otherwise(
    name: str, kept: str, tmp_path: Path, home: Path
) -> None:
    write(tmp_path / "x" / "x.v", rtl("x"))
    write(tmp_path / "x" / "design.toml", f'name = "{name}"\n')
    assert [d.name for d in import_source(tmp_path / "x", home).accepted] == [kept.replace("_x", "__x") if "/x" in name
                                                                          else kept]  # fmt: skip


KILLED = """
import sys
from pathlib import Path
from llm4cov_assets.ingest import importing, kept
done = []
def die(*arguments):
    done.append(arguments)
    if len(done) == int(sys.argv[3]):
        import os
        os._exit(9)
    real(*arguments)
real, kept._retire = kept._retire, die
rename = Path.rename
def renamed(self, target):
    if self.name.startswith("batch-"):
        die_first(self, target)
    return rename(self, target)
def die_first(self, target):
    done.append(target)
    if len(done) == int(sys.argv[3]):
        import os
        os._exit(9)
Path.rename = renamed
importing.import_source(sys.argv[1], Path(sys.argv[2]), batch_size=1)
"""


@pytest.mark.parametrize("moment", [1, 2, 3, 4])
def test_an_import_that_is_killed_while_it_keeps_is_finished_by_whoever_looks_next(
    moment: int, tmp_path: Path, home: Path
) -> None:
    source = many(tmp_path / "many", 2)
    import_source(source, home)
    for i in (0, 1):
        (source / f"d{i}" / f"d{i}.v").write_text(rtl(f"d{i}", f"assign y = b > {i};"))
    command = [sys.executable, "-c", KILLED, str(source), str(home), str(moment)]
    assert subprocess.run(command, check=False).returncode == 9
    active = [d.load().design for found in kept_designs(home).values() for d in found]
    assert [d.name for d in active] == ["d0", "d1"]
    assert all("b >" in d.sources[0].text for d in active)
    assert {d.name for d in import_source(source, home).known} == {"d0", "d1"}


def test_paths_that_no_file_system_takes_are_refused_and_the_rest_comes_in(tmp_path: Path, home: Path) -> None:
    def row(name: str, path: str) -> str:
        files = [{"name": path, "content": rtl(name, f"assign y = a > {len(name)};")}]
        return json.dumps({"id": name, "rtl_files": files,
                           "spec_files": [], "dut_module_name": name, "dut_instance_name": "u", "instruction": "x",
                           "targets": [], "difficulty": "easy", "is_agentic": False})  # fmt: skip

    lines = [row("long", "/".join(["f" * 100] * 48) + "/x.v"), row("short", "x.v")]
    source = write(tmp_path / "rows.jsonl", "\n".join(lines))
    report = import_source(source, home, format="cvdp-ecov")
    assert [d.name for d in report.accepted] == ["short"]
    assert [(r.name, r.reason) for r in report.rejected] == [("long", "malformed record")]


def test_two_imports_at_once_see_each_other(tmp_path: Path, home: Path) -> None:
    for name in ("first", "second"):
        many(tmp_path / name, 4)
    code = "import sys; from pathlib import Path; from llm4cov_assets.ingest.importing import import_source; "
    code += "print(len(import_source(sys.argv[1], Path(sys.argv[2])).accepted))"
    runs = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path / name, home], stdout=subprocess.PIPE, text=True)
        for name in ("first", "second")
    ]
    assert sorted(int(run.communicate(timeout=120)[0]) for run in runs) == [0, 4]


def test_a_killed_import_keeps_nothing(mixed: Path, home: Path) -> None:
    def killed(what: str, done: int, total: int | None, now: str) -> None:
        if now == "lonely":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_source(mixed, home, progress=killed)
    assert kept_designs(home) == {}
    assert list((home / "designs").rglob("*.json")) == []


def test_one_file_or_one_folder_is_one_design(tmp_path: Path, home: Path) -> None:
    file = write(tmp_path / "one" / "one.sv", rtl("one"))
    assert [r.name for r in import_source(file, home, dry_run=True).accepted] == ["one"]
    assert [r.name for r in import_source(tmp_path / "one", home, dry_run=True).accepted] == ["one"]
    assert [r.name for r in import_source(CORPUS / "packet_router", home, split="eval").accepted] == ["packet_router"]


def test_two_designs_of_one_name_or_content_are_not_both_accepted(tmp_path: Path, home: Path) -> None:
    write(tmp_path / "s" / "a" / "same.sv", rtl("same"))
    write(tmp_path / "s" / "a" / "design.toml", 'name = "twin"\n')
    write(tmp_path / "s" / "b" / "other.sv", rtl("other", "assign y = a | b;"))
    write(tmp_path / "s" / "b" / "design.toml", 'name = "twin"\n')
    write(tmp_path / "s" / "c" / "same.sv", rtl("same"))
    report = import_source(tmp_path / "s", home)
    assert [r.name for r in report.accepted] == ["twin"]
    assert sorted(r.reason for r in report.rejected) == ["duplicate", "name taken"]
    again = import_source(write(tmp_path / "same.sv", rtl("same")), home)
    assert [r.reason for r in again.rejected] == ["duplicate"], "also of what was imported before"
    prefixed = import_source(tmp_path / "s" / "b", home, options=Options(prefix="my_"))
    assert [r.name for r in prefixed.accepted] == ["my_twin"]


def test_an_evaluation_design_cannot_be_imported_for_training(home: Path) -> None:
    report = import_source(CORPUS / "alu", home, split="train")
    assert report.accepted == []
    assert [r.reason for r in report.rejected] == ["contaminated"]


def reworked_alu() -> str:
    alu = next(d for d in corpus_designs() if d.name == "alu").sources[0].text
    return alu.replace("module alu", "module unit").replace("8'h5A", "8'h5B").replace("MIN:", "8'd7:")


def test_a_reworked_copy_of_an_evaluation_design_cannot_be_imported_for_training(tmp_path: Path, home: Path) -> None:
    report = import_source(write(tmp_path / "unit.sv", reworked_alu()), home, split="train")
    assert [r.reason for r in report.rejected] == ["contaminated"]
    assert "of the evaluation design alu" in report.rejected[0].detail
    assert import_source(tmp_path / "unit.sv", home, split="eval").rejected == []


def test_what_was_imported_for_evaluation_protects_itself(tmp_path: Path, home: Path) -> None:
    text = WORKLOAD
    import_source(write(tmp_path / "mine.sv", text), home, split="eval")
    copied = text.replace("module mine", "module yours").replace("8'd200", "8'd201")
    report = import_source(write(tmp_path / "yours.sv", copied), home, split="train")
    assert [r.reason for r in report.rejected] == ["contaminated"]


def test_an_evaluation_design_retires_the_training_designs_that_resemble_it(tmp_path: Path, home: Path) -> None:
    copied = WORKLOAD.replace("module mine", "module yours").replace("8'd200", "8'd201")
    [early] = import_source(write(tmp_path / "yours.sv", copied), home, split="train").accepted
    report = import_source(write(tmp_path / "mine.sv", WORKLOAD), home, split="eval")
    assert [(d.name, o.other) for d, o in report.contaminated] == [("yours", "mine")]
    assert [d.name for found in kept_designs(home).values() for d in found] == ["mine"]
    [(gone, why)] = retired(home)
    assert gone.design_id == early.design_id and "evaluation design mine" in why


def test_near_duplicates_of_one_split_are_marked_or_dropped(tmp_path: Path, home: Path) -> None:
    write(tmp_path / "s" / "mine" / "mine.sv", WORKLOAD)
    write(
        tmp_path / "s" / "nearly" / "nearly.sv",
        WORKLOAD.replace("module mine", "module nearly").replace("8'd200", "8'd201"),
    )
    dropped = import_source(tmp_path / "s", home, near="drop", dry_run=True)
    assert [(r.name, r.reason) for r in dropped.rejected] == [("nearly", "duplicate")]
    marked = import_source(tmp_path / "s", home)
    assert [(o.design, o.other) for o in marked.overlaps] == [("nearly", "mine")]
    assert {d.cluster for d in marked.accepted} == {"mine"}, "together they are one observation"


WORKLOAD = """\
module mine (input logic clk, input logic rst, input logic [7:0] level, input logic load, output logic [7:0] held,
             output logic alarm, output logic [3:0] late);
  always_ff @(posedge clk) begin
    if (rst) begin
      held <= '0;
      alarm <= 1'b0;
      late <= '0;
    end else begin
      if (load && level > held) held <= level;
      else if (late == 4'd11) held <= held - 8'd3;
      alarm <= held > 8'd200;
      if (alarm && !load) late <= late + 4'd1;
      else if (load) late <= 4'd0;
    end
  end
endmodule
"""


def test_a_design_that_the_check_refuses_is_rejected(mixed: Path, home: Path) -> None:
    def check(designs: Sequence[KeptDesign], progress: Progress) -> Iterator[tuple[KeptDesign, Rejection | None]]:
        for d in designs:
            wrong = Rejection(d.name, d.source, reasons.DOES_NOT_BUILD, "deep.sv:2: no") if d.name == "deep" else None
            yield replace(d, deterministic=False), wrong

    report = import_source(mixed, home, check=check)
    assert [(r.name, r.deterministic) for r in report.accepted] == [("good", False)]
    assert ("does not build", "deep.sv:2: no") in [(r.reason, r.detail) for r in report.rejected]
    assert report.accepted[0].load().deterministic is False
    assert kept_designs(home) == report.batches


def test_what_came_in_without_a_check_is_checked_later(mixed: Path, home: Path) -> None:
    import_source(mixed, home)

    def check(designs: Sequence[KeptDesign], progress: Progress) -> Iterator[tuple[KeptDesign, Rejection | None]]:
        for d in designs:
            wrong = Rejection(d.name, d.source, reasons.DOES_NOT_BUILD, "deep.sv:2: no") if d.name == "deep" else None
            yield d, wrong

    report = import_source(mixed, home, check=check)
    assert [d.name for d in report.known] == ["good"]
    assert "deep" in [r.name for r in report.rejected]
    assert [d.name for found in kept_designs(home).values() for d in found] == ["good"]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"u.sv": "module u(input string s, output logic y); assign y = 0; endmodule"}, "unusable port"),
        ({"u.sv": rtl("u"), "design.toml": 'clock = "clkk"\n'}, "does not elaborate"),
        ({"u.sv": rtl("u"), "design.toml": 'reset = "!nowhere"\n'}, "does not elaborate"),
    ],
)
def test_what_needs_no_build_to_be_seen_is_refused_without_one(
    tmp_path: Path, home: Path, files: dict[str, str], reason: str
) -> None:
    for name, text in files.items():
        write(tmp_path / "u" / name, text)
    assert [r.reason for r in import_source(tmp_path / "u", home).rejected] == [reason]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"format": "zip"}, "no format"), ({"split": "test"}, "no split"), ({"near": "lose"}, "marked or dropped")],
)
def test_wrong_arguments_are_refused(mixed: Path, home: Path, arguments: dict[str, Any], message: str) -> None:
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
    assert [d.load().design for d in kept_batch(home, "batch: with odd/name")] == list(corpus_designs()[:3])
