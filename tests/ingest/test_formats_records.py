"""Records of public data sets become designs, whatever file they come in."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.candidates import Candidate
from llm4cov_assets.ingest.exporting import export
from llm4cov_assets.ingest.formats import reader
from llm4cov_assets.ingest.formats.ecov import as_ecov
from llm4cov_assets.ingest.formats.ecov import gathered as ecov_gathered
from llm4cov_assets.ingest.importing import import_source
from llm4cov_assets.ingest.registry import corpus_designs
from llm4cov_assets.rows import imported_target_rows
from sim import reasons
from sim.assembly import assemble
from sim.design import Design, DesignError
from sim.load import load_design
from tests.ingest.record_samples import agentic, codev, cvdp, ecov, rtl, verithoughts, write_lines

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "cvdp"


def candidates(source: str | Path, format: str = "auto") -> list[Candidate]:
    return list(reader(str(source), format)[0]())


def designs(source: str | Path, format: str = "auto") -> list[Design]:
    return [assemble(c.gather(), name=c.name) for c in candidates(source, format)]


def test_a_stimulus_task_of_cvdp_becomes_a_design_with_its_instance_and_target(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "cvdp.jsonl", [cvdp()])
    [candidate] = candidates(source)
    assert (candidate.name, candidate.place, candidate.difficulty) == ("cvdp_copilot_adder_0007", f"{source}:1", "easy")
    [design] = designs(source)
    assert (design.name, design.top, design.instance) == ("cvdp_copilot_adder_0007", "adder", "uut")
    assert design.targets == (("overall", 0.95),)
    assert [f.path for f in design.sources] == ["src/adder.sv"]
    assert design.specification.startswith("Develop a testbench")


def test_an_agentic_stimulus_task_has_its_rtl_and_its_documents_in_the_context(tmp_path: Path) -> None:
    [design] = designs(write_lines(tmp_path / "cvdp.jsonl", [agentic()]))
    assert (design.top, design.instance, design.targets) == ("adder", "uut", (("overall", 0.995),))
    assert [f.path for f in design.sources] == ["rtl/adder.sv"]  # the testbench beside it is no part of the design
    assert design.specification == "Write a testbench for `adder`.\n\n# Adder\nIt adds."


@pytest.mark.parametrize("record", [cvdp(cid="cid002"), agentic(cid="cid014"), cvdp(cid="cid099")])
def test_other_tasks_of_cvdp_are_not_imported_even_with_complete_rtl(tmp_path: Path, record: dict[str, Any]) -> None:
    [candidate] = candidates(write_lines(tmp_path / "cvdp.jsonl", [record]))
    with pytest.raises(DesignError, match=f"cvdp.jsonl:1: {record['categories'][0]}.* not a stimulus task") as caught:
        candidate.gather()
    assert caught.value.reason == reasons.NOT_STIMULUS


def test_the_script_of_the_harness_says_what_is_measured_and_which_module_that_is(tmp_path: Path) -> None:
    script = "assert metrics ['u_top']['Average'] >= float(os.getenv('TARGET'))\n"
    script += 'assert metrics["u_sub"]["Block"] >= 80.5\n'
    two = rtl("alpha") + rtl("beta", "assign y = a + b;")
    record = cvdp() | {"input": {"prompt": "Instantiate it.", "context": {}}}
    record["harness"]["files"] |= {"src/process.py": script, "src/adder.sv": two}
    record["input"]["context"] = {"verif/skeleton_tb.sv": "module tb; beta #(.W(4)) u_top(.a(a)); endmodule"}
    [design] = designs(write_lines(tmp_path / "cvdp.jsonl", [record]))
    assert (design.top, design.instance) == ("beta", "u_top")
    assert design.targets == (("overall", 0.95), ("Block@u_sub", 0.805))
    record["input"] = {"prompt": "The `alpha` module is instantiated as `u_top`.", "context": {}}
    [design] = designs(write_lines(tmp_path / "cvdp.jsonl", [record]))
    assert design.top == "alpha"


@pytest.mark.skipif(not CASES.is_dir(), reason="the published examples are not on this machine")
def test_the_published_examples_of_cvdp_import_as_they_should(home: Path) -> None:
    [plain, other] = sorted(CASES.glob("*.jsonl"), key=lambda p: "_agentic_" in p.name)
    report = import_source(plain, home, split="eval")
    [kept] = report.accepted
    design = kept.load().design
    assert (design.name, design.top, design.instance) == ("cvdp_copilot_gf_multiplier_0039", "gf_multiplier", "uut")
    assert design.targets == (("overall", 0.9),)
    [rejected] = import_source(other, home, split="eval").rejected
    assert (rejected.name, rejected.reason) == ("cvdp_agentic_8x3_priority_encoder_0003", reasons.NOT_STIMULUS)
    assert "cid014" in rejected.detail


def test_a_record_of_cvdp_ecov_has_targets_for_instances_too(tmp_path: Path) -> None:
    targets = [
        {"inst_name": "u_dut", "metric": "Overall Average", "target_percentage": 90},
        {"inst_name": "u_core", "metric": "Toggle", "target_percentage": 75.5},
    ]
    source = write_lines(tmp_path / "ecov.jsonl", [ecov(targets=targets)])
    [design] = designs(source)
    assert (design.name, design.top, design.instance) == ("ecov_and", "masker", "u_dut")
    assert design.targets == (("overall", 0.9), ("Toggle@u_core", 0.755))
    assert design.specification == "Cover the masker.\n\nIt masks."
    assert candidates(source)[0].difficulty == "medium"
    rows = imported_target_rows([design]).rows(named=True)
    assert {(r["metric"], r["target"], r["origin"], r["simulator"]) for r in rows} == {
        ("overall", 0.9, "imported", "xcelium"), ("Toggle@u_core", 0.755, "imported", "xcelium"),
    }  # fmt: skip


def test_columns_of_json_text_are_read_as_what_they_hold(tmp_path: Path) -> None:
    plain = ecov()
    packed = {k: json.dumps(v) if isinstance(v, list) else v for k, v in plain.items()}
    pl.DataFrame([packed]).write_parquet(tmp_path / "packed.parquet")
    [from_parquet] = designs(tmp_path / "packed.parquet")
    [from_lines] = designs(write_lines(tmp_path / "plain.jsonl", [plain]))
    assert from_parquet.design_id == from_lines.design_id
    assert from_parquet.targets == from_lines.targets


def test_files_beside_the_rtl_are_left_out_and_headers_are_found(tmp_path: Path) -> None:
    using = '`include "widths.svh"\nmodule masker(input [`W-1:0] a, output [`W-1:0] y); assign y = ~a; endmodule\n'
    files = [
        {"name": "./rtl\\masker.sv", "content": using},
        {"name": "inc/widths.svh", "content": "`define W 4\n"},
        {"name": "notes.txt", "content": "not RTL"},
        {"name": "rtl/old.vhd", "content": "entity old is end;"},
    ]
    [candidate] = candidates(write_lines(tmp_path / "ecov.jsonl", [ecov(rtl_files=files)]))
    assert candidate.gather().others == ["rtl/old.vhd"]
    design = assemble(candidate.gather())
    assert [f.path for f in design.sources] == ["rtl/masker.sv"]  # Windows' way of writing paths
    assert ([f.path for f in design.includes], design.include_dirs) == (["inc/widths.svh"], ("inc",))


def test_a_design_written_as_a_record_of_cvdp_ecov_comes_back_the_same(tmp_path: Path) -> None:
    targets = [{"inst_name": "u_core", "metric": "Toggle", "target_percentage": 75.5}]
    settings = {"defines": {"FAST": "1"}, "parameters": {}}
    [imported] = designs(write_lines(tmp_path / "a.jsonl", [ecov(targets=targets, **settings)]))
    [published] = designs(write_lines(tmp_path / "b.jsonl", [cvdp()]))
    for design in (imported, published, *corpus_designs()[:5]):
        row = json.loads(json.dumps(as_ecov(design, "hard")))
        again = assemble(ecov_gathered(row, "row", row["id"]))
        assert (again.rtl_id, again.specification, again.targets) == (
            design.rtl_id, design.specification.strip(), design.targets,
        )  # fmt: skip
        assert as_ecov(again, "hard") == row
        if design.instance:
            assert again.design_id == design.design_id


def test_a_record_of_codev_r1_has_its_specification_in_the_second_message(tmp_path: Path) -> None:
    code = rtl("either", "assign y = a | b;")
    fenced = f"<think>hm</think>\nHere it is:\n```verilog\n{code}```\nand a shell:\n```sh\nls\n```\n"
    source = write_lines(tmp_path / "r1.jsonl", [codev(17), codev("q18", fenced)])
    first, second = designs(source)
    assert [(d.name, d.top, d.specification) for d in (first, second)] == [
        ("codev_r1_17", "either", "An OR gate."), ("q18", "either", "An OR gate."),
    ]  # fmt: skip
    assert first.rtl_id == second.rtl_id  # what stands around a fenced block is no code


def test_an_unverified_question_of_verithoughts_is_not_taken_for_the_specification(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "vt.jsonl", [verithoughts(), verithoughts(rtl("other"), verified=False)])
    verified, unverified = designs(source)
    assert (verified.name, verified.specification) == ("verithoughts_000001", "Write an XOR gate.")
    assert (unverified.name, unverified.specification) == ("verithoughts_000002", "")


@pytest.mark.parametrize(
    ("id", "name"),
    [("../../etc/x", "__.._etc_x"), ('he said "x"', 'he said "x"'), ("a b/c", "a b_c"), ("naïve-Ωμ", "naïve-Ωμ"),
     ("-rf", "_rf"), (".", "_")],
)  # fmt: skip
def test_odd_but_printable_ids_are_names_and_never_places(tmp_path: Path, home: Path, id: str, name: str) -> None:
    report = import_source(write_lines(tmp_path / "e.jsonl", [ecov(id=id)]), home, split="eval")
    [kept] = report.accepted
    assert kept.name == name and kept.folder.resolve().is_relative_to(home.resolve())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["e.jsonl", "home"]


def test_records_without_an_id_are_called_after_their_file_and_line(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "mine.v1.jsonl", [ecov(id=None), b"", ecov(id="  ")])
    assert [(c.name, c.place) for c in candidates(source)] == [
        ("mine.v1_000001", f"{source}:1"), ("mine.v1_000003", f"{source}:3"),
    ]  # fmt: skip


RECORDS = [ecov(id=f"r{i}", name=f"masker{i}") for i in range(150)]


@pytest.fixture(params=["jsonl", "jsonl.gz", "json", "json of lines", "crlf and bom", "parquet", "folder", "saved",
                        "folder of lines"])  # fmt: skip
def source(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The same records in every kind of file."""
    lines = "".join(json.dumps(r) + "\n" for r in RECORDS)
    folder = tmp_path / "data-set"
    match request.param:
        case "jsonl":
            return str(write_lines(tmp_path / "x.jsonl", RECORDS))
        case "jsonl.gz":
            (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
            return str(tmp_path / "x.jsonl.gz")
        case "json":
            (tmp_path / "x.json").write_text(json.dumps(RECORDS, indent=1))
            return str(tmp_path / "x.json")
        case "json of lines":
            (tmp_path / "x.json").write_text(lines)
            return str(tmp_path / "x.json")
        case "crlf and bom":  # and no newline at the end
            (tmp_path / "x.jsonl").write_bytes(b"\xef\xbb\xbf" + lines.rstrip("\n").replace("\n", "\r\n\r\n").encode())
            return str(tmp_path / "x.jsonl")
        case "parquet":
            pl.DataFrame(RECORDS).write_parquet(tmp_path / "x.parquet", row_group_size=40)
            return str(tmp_path / "x.parquet")
        case "folder":
            (folder / "data").mkdir(parents=True)
            for part in (0, 1):
                table = pl.DataFrame(RECORDS[part * 100 : part * 100 + 100])
                table.write_parquet(folder / "data" / f"eval-0000{part}-of-00002.parquet")
            return str(folder)
        case "saved":
            import datasets

            datasets.Dataset.from_list(RECORDS).save_to_disk(folder)
            return str(folder)
        case _:
            folder.mkdir()
            write_lines(folder / "a.jsonl", RECORDS[:100])
            write_lines(folder / "b.jsonl", RECORDS[100:])
            return str(folder)


def test_every_kind_of_file_gives_the_same_records(source: str) -> None:
    read, count = reader(source)
    found = list(read())
    assert [c.name for c in found] == [r["id"] for r in RECORDS]
    assert len({c.place for c in found}) == len(RECORDS)
    assert count in (None, len(RECORDS))
    assert found[-1].gather().sources[0].content.decode() == RECORDS[-1]["rtl_files"][0]["content"]


def test_the_number_of_records_is_known_beforehand_where_it_costs_little(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "x.jsonl", [ecov(), b"  ", b"{broken", codev()])
    pl.DataFrame(RECORDS).write_parquet(tmp_path / "x.parquet")
    assert reader(str(lines), "cvdp-ecov")[1] == 3 == len(candidates(lines, "cvdp-ecov"))
    assert reader(str(tmp_path / "x.parquet"), "cvdp-ecov")[1] == len(RECORDS)


@pytest.mark.parametrize(
    "record, format",
    [(cvdp(), "cvdp"), (agentic(), "cvdp"), (ecov(), "cvdp-ecov"), (codev(), "codev-r1"),
     (verithoughts(), "verithoughts")],
)  # fmt: skip
def test_the_format_of_a_data_set_shows_in_the_first_records_that_can_be_read(
    tmp_path: Path, record: dict[str, Any], format: str
) -> None:
    source = str(write_lines(tmp_path / "x.jsonl", [b"{broken", [], record]))
    broken, no_record, good = candidates(source)
    named = list(reader(source, format)[0]())
    assert [c.name for c in named] == [broken.name, no_record.name, good.name]
    assert named[2].gather() == good.gather()


def test_a_part_of_a_data_set_is_named_when_there_are_several(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    pl.DataFrame(RECORDS[:2]).write_parquet(tmp_path / "set" / "train-00000-of-00001.parquet")
    pl.DataFrame(RECORDS[2:5]).write_parquet(tmp_path / "set" / "test-00000-of-00001.parquet")
    with pytest.raises(UserError, match=r"several parts; name one: hf:.*set@train or hf:.*set@test"):
        candidates(tmp_path / "set")
    source = f"hf:{tmp_path / 'set'}@test"
    assert [(c.name, c.place) for c in candidates(source)] == [(f"r{i}", f"{source}:row {i - 1}") for i in (2, 3, 4)]


def test_a_data_set_on_the_hub_needs_the_network_and_says_so() -> None:
    with pytest.raises(UserError, match=r"hf:nvidia/cvdp.*cannot be read.*download its files"):
        candidates("hf:nvidia/cvdp-benchmark-dataset:cvdp_agentic@eval", "cvdp")


def test_tables_of_cvdp_have_the_paths_of_all_records_in_each_and_only_its_own_count(tmp_path: Path) -> None:
    other = cvdp("cvdp_copilot_sub_0001", **{"src/sub.sv": rtl("sub", "assign y = a - b;"), "src/adder.sv": None})
    folder = tmp_path / "set"
    folder.mkdir()
    write_lines(folder / "eval.jsonl", [cvdp(), other])
    by_line, by_table = designs(folder), designs(f"hf:{folder}")
    assert [[f.path for f in d.sources] for d in by_table] == [["src/adder.sv"], ["src/sub.sv"]]
    assert [d.design_id for d in by_table] == [d.design_id for d in by_line]


def test_code_of_a_data_set_is_never_run(tmp_path: Path) -> None:
    folder = tmp_path / "evil"
    folder.mkdir()
    pl.DataFrame(RECORDS[:1]).write_parquet(folder / "train.parquet")
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    for source in (folder, f"hf:{folder}", f"hf:{folder}/evil.py"):
        with pytest.raises(UserError, match=r"cannot be read .*evil\.py.*name a file of it"):
            candidates(source)
    assert not (tmp_path / "ran").exists()
    assert [c.name for c in candidates(folder / "train.parquet")] == ["r0"]


def test_a_folder_with_rtl_is_a_design_even_with_json_lines_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "masker"
    (folder / "rtl").mkdir(parents=True)
    (folder / "rtl" / "masker.sv").write_text(rtl("masker"))
    write_lines(folder / "vectors.jsonl", [{"a": 1}])
    assert [c.name for c in candidates(folder)] == ["masker"]


def test_only_the_records_at_hand_are_in_memory(tmp_path: Path) -> None:
    """Forty megabytes of records, of which a few at a time are held: more would show in the peak."""
    import tracemalloc

    filler = "// " + "x" * 500_000 + "\n"

    def many() -> Iterator[Any]:
        for i in range(80):
            yield ecov(id=f"r{i}", rtl_files=[{"name": "a.sv", "content": filler + rtl(f"m{i}")}])

    with (tmp_path / "x.jsonl").open("w") as file:
        file.writelines(json.dumps(r) + "\n" for r in many())
    tracemalloc.start()
    try:
        for candidate in reader(str(tmp_path / "x.jsonl"))[0]():
            candidate.gather()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


def test_an_imported_record_is_exported_and_read_again(tmp_path: Path, home: Path) -> None:
    report = import_source(write_lines(tmp_path / "x.jsonl", [cvdp()]), home, split="eval")
    design = report.accepted[0].load().design
    export(design, tmp_path / "out")
    again = load_design(tmp_path / "out")
    assert (again.name, again.rtl_id, again.specification) == (design.name, design.rtl_id, design.specification)
    assert (again.targets, again.instance) == (design.targets, design.instance)
