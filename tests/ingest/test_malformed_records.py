"""Broken records are rejected one by one, with what is wrong, where, and how to mend it; broken files as a whole."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.formats import reader, rows
from llm4cov_assets.ingest.importing import ImportReport, import_source
from llm4cov_assets.ingest.kept import kept_designs
from sim import assembly, reasons
from sim.design import DesignError
from tests.ingest.record_samples import agentic, codev, cvdp, ecov, rtl, verithoughts, write_lines

FIRST = ecov(id="first", name="first")
LAST = ecov(id="last", name="last") | {"rtl_files": [{"name": "l.sv", "content": rtl("last", "assign y = a - b;")}]}


def one_file(name: Any, content: Any = None) -> dict[str, Any]:
    """A record with one file, called `name`."""
    return ecov(rtl_files=[{"name": name, "content": rtl("masker", "assign y = ~a;") if content is None else content}])


def two_files(one: str, other: str) -> dict[str, Any]:
    return ecov(rtl_files=[{"name": n, "content": rtl(f"m{i}")} for i, n in enumerate((one, other))])


def target(**fields: Any) -> dict[str, Any]:
    """A record with a target in which `fields` replace others."""
    return ecov(targets=[{"inst_name": "u_dut", "metric": "Toggle", "target_percentage": 50} | fields])


def raw(record: dict[str, Any], old: str, new: bytes) -> bytes:
    """A record as JSON in which some text is replaced by other bytes."""
    text = json.dumps(record).encode()
    assert old.encode() in text
    return text.replace(old.encode(), new, 1)


DEEP = b"[" * 100_000 + b"]" * 100_000
GOOD = ecov()

JSON_CASES: dict[str, tuple[bytes, str]] = {
    "cut off": (json.dumps(GOOD).encode()[:100], r"not valid JSON: Unterminated string starting at column \d+; mend"),
    "no JSON": (b"module m; endmodule", "not valid JSON: Expecting value at column 1"),
    "two records in a line": (json.dumps(GOOD).encode() * 2, r"not valid JSON: Extra data at column \d+"),
    "single quotes": (b"{'id': 'x'}", "not valid JSON: .*double quotes"),
    "NaN": (raw(GOOD, '"medium"', b"NaN"), "not valid JSON: NaN; write null"),
    "infinity": (raw(GOOD, "92.5", b"-Infinity"), "not valid JSON: -Infinity; write null"),
    "a key twice": (raw(GOOD, '"is_agentic"', b'"id": "y", "is_agentic"'), "the key 'id' occurs twice"),
    "nested deeply": (DEEP, "nested too deeply"),
    "a field nested deeply": (raw(GOOD, "false", DEEP), "nested too deeply"),
    "a number without end": (raw(GOOD, "92.5", b"9" * 100_000), "a number of thousands of digits"),
    "a list": (b"[]", "a list, not an object"),
    "a number": (b"17", "a number, not an object"),
    "null": (b"null", "null, not an object"),
    "text": (b'"module m; endmodule"', "text, not an object"),
    "Latin-1": (raw(GOOD, "Cover", b"Caf\xe9"), r"not UTF-8 text \(0xe9 at byte \d+\); save the file as UTF-8"),
    "UTF-16 in the middle": (json.dumps(GOOD).encode("utf-16"), "not UTF-8 text"),
    "a NUL byte": (raw(GOOD, "Cover", b"\0over"), "not valid JSON: Invalid control character"),
}

ECOV_CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "id true": (ecov(id=True), reasons.MALFORMED, "id is a boolean, not text"),
    "id a list": (ecov(id=["x"]), reasons.MALFORMED, "id is a list, not text"),
    "id with a fraction": (ecov(id=1.5), reasons.MALFORMED, "id is a number, not text"),
    "id of two lines": (ecov(id="a\nb"), reasons.MALFORMED, r"id is 'a\\nb', which cannot be printed"),
    "id with half a pair": (ecov(id="\ud800"), reasons.MALFORMED, "id holds half of a surrogate pair"),
    "id without end": (ecov(id="x" * 100_000), reasons.MALFORMED, "id has 100,000 characters; write at most 200"),
    "no files": ({"id": "x"}, reasons.MALFORMED, "rtl_files is null, not a list"),
    "files a number": (ecov(rtl_files=3), reasons.MALFORMED, "rtl_files is a number, not a list"),
    "files by name": (ecov(rtl_files={"a.sv": ""}), reasons.MALFORMED, "rtl_files is an object, not a list"),
    "files text": (ecov(rtl_files="module m;"), reasons.MALFORMED, "rtl_files is text that is not JSON"),
    "files text nested": (ecov(rtl_files=DEEP.decode()), reasons.MALFORMED, "rtl_files is text that is not JSON"),
    "a file is text": (ecov(rtl_files=["module m; endmodule"]), reasons.MALFORMED, r"rtl_files\[0\] is text, not an"),
    "content a number": (one_file("a.sv", 5), reasons.MALFORMED, r"rtl_files\[0\].content is a number, not text"),
    "no content": (ecov(rtl_files=[{"name": "a.sv"}]), reasons.MALFORMED, r"rtl_files\[0\].content is null, not text"),
    "content with NUL": (one_file("a.sv", "module\0"), reasons.MALFORMED, r"content holds a NUL character \(at 6\)"),
    "content with half a pair": (one_file("a.sv", "// \udc00"), reasons.MALFORMED, "half of a surrogate pair"),
    "name a number": (one_file(5), reasons.MALFORMED, r"rtl_files\[0\].name is a number, not text"),
    "name absolute": (one_file("/etc/a.sv"), reasons.MALFORMED, "'/etc/a.sv', an absolute path"),
    "name of another drive": (one_file("C:\\rtl\\a.sv"), reasons.MALFORMED, "'C:/rtl/a.sv', an absolute path"),
    "name that leads out": (one_file("../a.sv"), reasons.MALFORMED, "'../a.sv', which leads out of the design"),
    "name that leads out as in Windows": (one_file("r\\..\\..\\a.sv"), reasons.MALFORMED, "leads out of the design"),
    "name empty": (one_file(""), reasons.MALFORMED, "'', which names no file"),
    "name of a folder": (one_file("rtl.sv/"), reasons.MALFORMED, "'rtl.sv/', which names no file"),
    "name of two lines": (one_file("a\n.sv"), reasons.MALFORMED, "which cannot be printed"),
    "name without end": (one_file("x" * 5000 + ".sv"), reasons.MALFORMED, "too long for a file system"),
    "name of many folders": (one_file("/".join(["f" * 100] * 48) + "/a.sv"), reasons.MALFORMED, "too long for a file"),
    "name that is an option": (one_file("-f.sv"), reasons.MALFORMED, "cannot take this file name"),
    "name with quotes": (one_file('a".sv'), reasons.MALFORMED, "cannot take this file name"),
    "one name twice": (two_files("a.sv", "a.sv"), reasons.MALFORMED, "two files called 'a.sv'"),
    "one name in two ways": (two_files("r/a.sv", ".\\r\\a.sv"), reasons.MALFORMED, "two files called 'r/a.sv'"),
    "a file and a folder": (two_files("a.sv", "a.sv/b.sv"), reasons.MALFORMED, "both a file and the folder of"),
    "no file at all": (ecov(rtl_files=[]), reasons.NO_RTL, "no RTL found"),
    "only text": (one_file("a.txt"), reasons.NO_RTL, "no RTL found"),
    "only VHDL": (one_file("a.vhd", "entity a is end;"), reasons.VHDL, r"VHDL only \(a.vhd\)"),
    "encrypted": (one_file("a.sv", "`pragma protect begin\n"), reasons.ENCRYPTED, "/a.sv:1: encrypted RTL"),
    "too large": (one_file("a.sv", "//" + "x" * (3 << 20)), reasons.TOO_LARGE, "3 MiB; a design has at most"),
    "no Verilog": (one_file("a.sv", "def main(): pass"), reasons.DOES_NOT_PARSE, "/a.sv:1: "),
    "a module is missing": (
        one_file("a.sv", "module masker(input a, output y);\n  gone u(.a, .y);\nendmodule"),
        reasons.BLACK_BOXES, "/a.sv:2: .*gone",
    ),
    "an include from this machine": (
        one_file("a.sv", '`include "/etc/hostname"\n' + rtl("masker")), reasons.DOES_NOT_PARSE,
        "/a.sv:1: '/etc/hostname' lies outside",
    ),
    "an include of the working folder": (
        one_file("a.sv", '`include "pyproject.toml"\n' + rtl("masker")), reasons.DOES_NOT_PARSE, "/a.sv:1: ",
    ),
    "a header that includes itself": (
        ecov(rtl_files=[{"name": "a.sv", "content": '`include "h.svh"\n' + rtl("masker")},
                        {"name": "h.svh", "content": '`include "h.svh"\n'}]),
        reasons.DOES_NOT_PARSE, "h.svh:1: ",
    ),
    "top a number": (ecov(dut_module_name=5), reasons.MALFORMED, "dut_module_name is a number, not text"),
    "top no name": (ecov(dut_module_name="a b"), reasons.MALFORMED, "dut_module_name is 'a b', which is no identifier"),
    "top elsewhere": (ecov(dut_module_name="gone"), reasons.NO_TOP, "no module 'gone'"),
    "instance no name": (ecov(dut_instance_name="u;"), reasons.MALFORMED, "dut_instance_name is 'u;'"),
    "specification a number": (
        ecov(spec_files=[{"name": "s.md", "content": 5}]), reasons.MALFORMED, r"spec_files\[0\].content is a number",
    ),
    "instruction a list": (ecov(instruction=[]), reasons.MALFORMED, "instruction is a list, not text"),
    "targets a number": (ecov(targets=90), reasons.MALFORMED, "targets is a number, not a list"),
    "a target is a number": (ecov(targets=[90]), reasons.MALFORMED, r"targets\[0\] is a number, not an object"),
    "target as text": (target(target_percentage="90%"), reasons.MALFORMED, "target_percentage is text; write a number"),
    "target true": (target(target_percentage=True), reasons.MALFORMED, "target_percentage is a boolean"),
    "target too high": (target(target_percentage=101), reasons.MALFORMED, "target_percentage is 101; write a number"),
    "target enormous": (target(target_percentage=10**400), reasons.MALFORMED, "target_percentage is 100000"),
    "target below nothing": (target(target_percentage=-0.5), reasons.MALFORMED, "target_percentage is -0.5"),
    "target without metric": (target(metric=None), reasons.MALFORMED, r"targets\[0\].metric is null, not text"),
    "target with an odd metric": (target(metric="a@b"), reasons.MALFORMED, r"targets\[0\].metric is 'a@b'"),
    "a target twice": (
        ecov(targets=[{"inst_name": i, "metric": "Block", "target_percentage": 5} for i in ("u_dut", "")]),
        reasons.MALFORMED, "two for Block",
    ),
    "parameters odd": (ecov(parameters={"W": [4]}), reasons.MALFORMED, r"parameters\['W'\] is a list"),
    "macros odd": (ecov(defines={"a b": "1"}), reasons.MALFORMED, r"defines\['a b'\]"),
    "an id of before": (ecov(id="first", name="second"), reasons.NAME_TAKEN, "'first'"),
    "the design of before": (ecov(id="second", name="first"), reasons.DUPLICATE, "the same RTL as first"),
}  # fmt: skip


def harness(value: Any) -> dict[str, Any]:
    return cvdp() | {"harness": value}


CVDP_CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "another task": (cvdp(cid="cid013"), reasons.NOT_STIMULUS, r"cid013 \(writes checkers\) is not a stimulus task"),
    "an unknown task": (agentic(cid="cid123"), reasons.NOT_STIMULUS, "cid123 is not a stimulus task"),
    "no categories": (cvdp() | {"categories": None}, reasons.MALFORMED, "categories is null, not a list"),
    "categories of numbers": (cvdp() | {"categories": [12]}, reasons.MALFORMED, "categories is a number, not text"),
    "categories without one": (cvdp() | {"categories": ["easy"]}, reasons.MALFORMED, "names none such as cid012"),
    "harness a list": (harness([]), reasons.MALFORMED, "harness is a list, not an object"),
    "files a list": (harness({"files": []}), reasons.MALFORMED, "harness.files is a list, not an object"),
    "no RTL": (harness({"files": {"src/.env": ""}}), reasons.NO_RTL, "no RTL found"),
    "nothing": (harness(None), reasons.NO_RTL, "no RTL found"),
    "a file is a number": (cvdp(**{"src/b.sv": 5}), reasons.MALFORMED, r"harness.files\['src/b.sv'\] is a number"),
    "a file leads out": (cvdp(**{"../b.sv": ""}), reasons.MALFORMED, "a path of harness.files is '../b.sv'"),
    "a file is absolute": (cvdp(**{"/b.sv": ""}), reasons.MALFORMED, "a path of harness.files is '/b.sv'"),
    "input text": (cvdp() | {"input": "x"}, reasons.MALFORMED, "input is text that is not JSON"),
    "no prompt": (cvdp() | {"input": {}}, reasons.MALFORMED, "input.prompt is null, not text"),
    "an agentic prompt of numbers": (agentic() | {"prompt": 1}, reasons.MALFORMED, ": prompt is a number, not text"),
    "context a number": (agentic() | {"context": 1}, reasons.MALFORMED, "context is a number, not an object"),
    "target a word": (cvdp(**{"src/.env": "TARGET = high"}), reasons.MALFORMED, "TARGET in .env is 'high'"),
    "target too high": (cvdp(**{"src/.env": "TARGET=900"}), reasons.MALFORMED, "TARGET in .env is 900"),
    "target not a number": (cvdp(**{"src/.env": "TARGET=nan"}), reasons.MALFORMED, "TARGET in .env is nan"),
    "instance no name": (
        cvdp(**{"src/.env": "INST=a.b", "src/process.py": ""}), reasons.MALFORMED, "INST in .env is 'a.b'",
    ),
    "several tops": (
        cvdp(id="x", **{"src/b.sv": rtl("one") + rtl("two"), "src/process.py": ""}), reasons.SEVERAL_TOPS,
        "several modules could be the top",
    ),
}  # fmt: skip

CODEV_CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "no question": (codev() | {"question": []}, reasons.MALFORMED, "question is empty"),
    "question text": (codev() | {"question": "An OR gate."}, reasons.MALFORMED, "question is text that is not JSON"),
    "question of texts": (codev() | {"question": ["a", "b"]}, reasons.MALFORMED, r"question\[1\] is text, not an"),
    "no specification": (codev() | {"question": [{}, {}]}, reasons.MALFORMED, r"question\[1\].content is null"),
    "no RTL": (codev() | {"ground_truth": None}, reasons.MALFORMED, "ground_truth is null, not a list"),
    "RTL elsewhere": (codev() | {"ground_truth": [{"code": "x"}]}, reasons.MALFORMED, r"ground_truth\[0\].content is"),
    "no code": (codev(code="Sorry, I cannot."), reasons.NO_RTL, "holds no module"),
    "a fence of something else": (codev(code="```\nplease\n```"), reasons.NO_RTL, "holds no module"),
    "id null as text": (codev(id={}), reasons.MALFORMED, "problem_id is an object, not text"),
    "a testbench": (codev(code="module tb; initial $finish; endmodule"), reasons.NO_TOP, "no ports to drive"),
    "a package": (codev(code="// a module\npackage p; endpackage"), reasons.NO_TOP, "no module found"),
}

VERITHOUGHTS_CASES: dict[str, tuple[dict[str, Any], str, str]] = {
    "verified in words": (verithoughts(verified="yes"), reasons.MALFORMED, "verified is text, not a boolean"),
    "question a number": (verithoughts() | {"question": 5}, reasons.MALFORMED, "question is a number, not text"),
    "no RTL": (verithoughts() | {"ground_truth": None}, reasons.MALFORMED, "ground_truth is null, not text"),
    "no module": (verithoughts("assign y = a;"), reasons.NO_RTL, "ground_truth holds no module"),
    "several": (verithoughts(rtl("one") + rtl("two")), reasons.SEVERAL_TOPS, "several modules could be the top"),
}

BROKEN: dict[str, dict[str, tuple[Any, str, str]]] = {
    "cvdp-ecov": ECOV_CASES | {name: (line, reasons.MALFORMED, said) for name, (line, said) in JSON_CASES.items()},
    "cvdp": CVDP_CASES,
    "codev-r1": CODEV_CASES,
    "verithoughts": VERITHOUGHTS_CASES,
}

NEIGHBOURS = {
    "cvdp-ecov": (FIRST, LAST),
    "cvdp": (cvdp(id="first"), cvdp(id="last", **{"src/adder.sv": rtl("subtract", "assign y = a - b;")})),
    "codev-r1": (codev("first"), codev("last", rtl("last"))),
    "verithoughts": (verithoughts() | {"id": "first"}, verithoughts(rtl("last")) | {"id": "last"}),
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, ImportReport]]:
    """For each format an import of all its broken records, between two good ones."""
    found = {}
    for format, cases in BROKEN.items():
        folder = tmp_path_factory.mktemp(format)
        first, last = NEIGHBOURS[format]
        source = write_lines(folder / "x.jsonl", [first, *(case[0] for case in cases.values()), last])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(assembly, "MOST_BYTES", 2 << 20)
            found[format] = source, import_source(source, folder, format=format, split="eval")
    return found


@pytest.mark.parametrize("format, name", [(format, name) for format, cases in BROKEN.items() for name in cases])
def test_a_broken_record_is_rejected_by_itself(
    reports: dict[str, tuple[Path, ImportReport]], format: str, name: str
) -> None:
    source, report = reports[format]
    place = f"{source}:{list(BROKEN[format]).index(name) + 2}"
    _, reason, said = BROKEN[format][name]
    [rejected] = [r for r in report.rejected if r.source == place]
    assert rejected.reason == reason, rejected.detail
    assert_told(rejected.detail, place, said)
    assert rejected.name.isprintable() and rejected.name


@pytest.mark.parametrize("format", BROKEN)
def test_good_records_among_broken_ones_are_accepted(
    reports: dict[str, tuple[Path, ImportReport]], format: str
) -> None:
    _, report = reports[format]
    assert sorted(d.name for d in report.accepted) == ["first", "last"]
    assert len(report.rejected) == len(BROKEN[format])


def assert_told(detail: str, place: str, message: str) -> None:
    """One line, which begins with the place and says what is wrong."""
    assert detail.lstrip("'\"").startswith(place)
    assert re.search(message, detail), detail
    assert "\n" not in detail and len(detail) < 600


def test_a_line_that_is_too_long_is_never_read_as_a_whole(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MOST_OF_A_LINE", 1 << 20)
    source = write_lines(tmp_path / "x.jsonl", [FIRST, b'{"id": "' + b"x" * (3 << 20) + b'"}', LAST])
    report = import_source(source, home, split="eval")
    assert sorted(d.name for d in report.accepted) == ["first", "last"]
    [rejected] = report.rejected
    assert rejected.reason == reasons.TOO_LARGE
    assert_told(rejected.detail, f"{source}:2", "a line of more than 1 MiB")


def test_bytes_that_are_no_text_in_a_table_reject_their_row_alone(tmp_path: Path, home: Path) -> None:
    def struct(content: pa.Array) -> pa.Array:
        return pa.StructArray.from_arrays([pa.array(["a.sv"] * len(content)), content], ["name", "content"])

    texts = [rtl("one").encode(), b"// caf\xe9\n", rtl("three", "assign y = a - b;").encode()]
    broken = pa.Array.from_buffers(pa.string(), 3, pa.array(texts, pa.binary()).buffers())
    files = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), struct(broken))
    table = pa.table({"id": ["first", "second", "third"], "rtl_files": files})
    parquet.write_table(table, tmp_path / "x.parquet")
    report = import_source(tmp_path / "x.parquet", home, format="cvdp-ecov", split="eval")
    assert sorted(d.name for d in report.accepted) == ["first", "third"]
    [rejected] = report.rejected
    assert rejected.reason == reasons.MALFORMED
    assert_told(rejected.detail, f"{tmp_path / 'x.parquet'}:row 2", "text that is not UTF-8")


def test_pickled_columns_of_a_table_are_never_unpacked(tmp_path: Path, home: Path) -> None:
    """The data for reinforcement learning of CodeV-R1 has its RTL pickled."""

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (open, (str(tmp_path / "ran"), "w"))

    import pickle

    row = {"problem_id": [1], "question": ["[]"], "ground_truth": [pickle.dumps(Evil())]}
    pl.DataFrame(row).write_parquet(tmp_path / "x.parquet")
    [rejected] = import_source(tmp_path / "x.parquet", home, format="codev-r1", split="eval").rejected
    assert_told(rejected.detail, f"{tmp_path / 'x.parquet'}:row 1", "ground_truth is binary, not a list")
    assert not (tmp_path / "ran").exists()


def struct_with_one_name_twice() -> pa.Array:
    return pa.StructArray.from_arrays([pa.array(["x"]), pa.array(["y"])], ["n", "n"])


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**62], pa.timestamp("us")),
        pa.array([2**62], pa.int64()).view(pa.date64()),
        pa.array([0], pa.timestamp("us", "Mars/Phobos")),
        struct_with_one_name_twice(),
    ],
    ids=lambda column: str(column.type),
)
def test_a_value_that_python_has_no_type_for_rejects_its_row_where_it_is_needed(
    tmp_path: Path, home: Path, column: pa.Array
) -> None:
    needed, other = tmp_path / "needed.parquet", tmp_path / "other.parquet"
    good = pa.Table.from_pylist([FIRST])
    parquet.write_table(good.set_column(good.schema.get_field_index("instruction"), "instruction", column), needed)
    parquet.write_table(good.append_column("made", column), other)
    [rejected] = import_source(needed, home, split="eval").rejected
    assert rejected.reason == reasons.MALFORMED
    assert_told(rejected.detail, f"{needed}:row 1", "instruction holds a value of type .* that cannot be read")
    assert [d.name for d in import_source(other, home, split="eval").accepted] == ["first"]


def test_two_columns_of_one_name_are_told(tmp_path: Path, home: Path) -> None:
    texts = pa.array(["x"])
    parquet.write_table(pa.Table.from_arrays([texts, texts], ["id", "id"]), tmp_path / "x.parquet")
    with pytest.raises(UserError, match="two columns called 'id'"):
        import_source(tmp_path / "x.parquet", home, format="cvdp-ecov", split="eval")


def test_a_value_that_many_rows_share_is_in_memory_a_few_times_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MOST_OF_A_BATCH", 4 << 20)
    shared = pa.DictionaryArray.from_arrays(pa.array([0] * 100, pa.int32()), pa.array(["x" * (1 << 20)]))
    parquet.write_table(pa.table({"id": shared}), tmp_path / "x.parquet", compression="zstd")
    assert (tmp_path / "x.parquet").stat().st_size < 10_000
    before = pa.default_memory_pool().bytes_allocated()
    most = 0
    for row in rows.rows(str(tmp_path / "x.parquet"), ["id"]):
        assert row.value and len(row.value["id"]) == 1 << 20
        most = max(most, pa.default_memory_pool().bytes_allocated() - before)
    assert most < 16 << 20  # 64 rows would be 64 MiB


def test_a_row_of_a_table_that_is_too_large_is_rejected_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MOST_OF_A_ROW", 1 << 20)
    table = pa.table({"id": ["a", "b" * (1 << 21), "c"]})
    parquet.write_table(table, tmp_path / "x.parquet")
    first, second, third = rows.rows(str(tmp_path / "x.parquet"), ["id"])
    assert (first.value, second.value, third.value) == ({"id": "a"}, None, {"id": "c"})
    assert second.problem and second.problem.reason == reasons.TOO_LARGE
    assert_told(str(second.problem), f"{tmp_path / 'x.parquet'}:row 2", "a row of more than 1 MiB")


def good_table() -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pylist([FIRST | {"id": f"r{i}"} for i in range(500)]), sink)
    return bytes(sink.getvalue())


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(r).encode() + b"\n" for r in records)


def noise(size: int) -> str:
    """Text that hardly compresses."""
    return os.urandom(size).hex()


SOURCES: dict[str, tuple[str, Callable[[], bytes], str, str]] = {
    "empty": ("x.jsonl", lambda: b"", "auto", "no readable record"),
    "empty, named": ("x.jsonl", lambda: b"", "cvdp", "no records in it"),
    "blank lines": ("x.jsonl", lambda: b"\n \r\n\n", "codev-r1", "no records in it"),
    "empty list": ("x.json", lambda: b"[]", "cvdp", "no records in it"),
    "UTF-16": ("x.jsonl", lambda: json.dumps(FIRST).encode("utf-16"), "auto", "UTF-16 text; save it as UTF-8"),
    "UTF-16 without mark": ("x.jsonl", lambda: json.dumps(FIRST).encode("utf-16-le"), "cvdp-ecov", "UTF-16 text"),
    "binary": ("x.jsonl", lambda: b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "auto", "a binary file; a data set is"),
    "a table called lines": ("x.jsonl", good_table, "cvdp-ecov", "this is a Parquet file"),
    "lines called a table": ("x.parquet", lambda: lines(FIRST), "cvdp-ecov", "not a Parquet file that can be read"),
    "a table cut off": ("x.parquet", lambda: good_table()[:-100], "auto", "not a Parquet file that can be read"),
    "a table with a hole": (
        "x.parquet", lambda: good_table()[:200] + b"\xff" * 3000 + good_table()[3200:], "cvdp-ecov",
        "not a Parquet file that can be read",
    ),
    "an empty table": ("x.parquet", lambda: b"", "auto", "not a Parquet file that can be read"),
    "compressed, cut off": (
        "x.jsonl.gz", lambda: gzip.compress(lines(*[FIRST | {"id": noise(90)} for _ in range(300)]))[:-50], "cvdp-ecov",
        "cannot be read to its end .*; get the file again",
    ),
    "compressed, damaged": (
        "x.jsonl.gz", lambda: gzip.compress(lines(FIRST))[:30] + b"\0" * 90, "auto", "cannot be read to its end",
    ),
    "a line without end": (
        "x.jsonl.gz", lambda: gzip.compress(b"[" * (8 << 20)), "auto", ":1: a line of more than 4 MiB",
    ),
    "a list cut off": ("x.json", lambda: json.dumps([FIRST, LAST]).encode()[:-30], "auto", "not valid JSON: "),
    "a list with NaN": ("x.json", lambda: b'[{"id": NaN}]', "cvdp-ecov", "not valid JSON: NaN; write null"),
    "a list in Latin-1": ("x.json", lambda: b'[\n{"id": "caf\xe9"}]', "cvdp", "not UTF-8 text .*byte 12 of line 2"),
    "a list nested deeply": ("x.json", lambda: DEEP, "auto", "nested too deeply"),
    "unknown fields": ("x.jsonl", lambda: lines({"text": "hi", "n\n": 1}), "auto", r"fields text, 'n\\n' are of no"),
    "nothing readable": ("x.jsonl", lambda: b"{\n" * 50, "auto", "no readable record among the first 20"),
}  # fmt: skip


@pytest.mark.parametrize("name, content, format, message", SOURCES.values(), ids=SOURCES)
def test_a_file_that_cannot_be_read_is_refused_as_a_whole(
    tmp_path: Path, home: Path, name: str, content: Callable[[], bytes], format: str, message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(rows, "MOST_OF_A_LINE", 1 << 20)
    monkeypatch.setattr(rows, "MOST_SKIPPED", 4 << 20)
    source = tmp_path / name
    source.write_bytes(content())
    with pytest.raises(UserError) as caught:
        import_source(source, home, format=format, split="eval")
    assert_told(str(caught.value), str(source), message)
    assert kept_designs(home) == {}


@pytest.mark.parametrize(
    "source, format, message",
    [
        ("gone.jsonl", "auto", "no such file"),
        ("gone.jsonl", "cvdp", "no such file"),
        ("hf:", "cvdp", "no name of a data set"),
        ("hf:nobody/nothing", "auto", "check its name and the network"),
        ("hf:nobody/nothing:sft@train", "codev-r1", "check its name and the network"),
        ("hf:../../etc", "auto", "cannot be read"),
        ("pipe", "cvdp", "not an ordinary file"),
        ("empty", "cvdp", "cannot be read"),
        ("broken", "auto", "cannot be read"),
        ("lines", "xml", "no format 'xml'"),
        ("x" * 5000, "auto", "File name too long"),
        ('{"id": "x"}' * 500, "cvdp", "File name too long"),
        ("~nobody-at-all/x.jsonl", "auto", "home directory"),
        ("loop.jsonl", "auto", "no such file"),
        ("a\0b", "auto", "no such file"),
    ],
)
def test_a_source_that_is_not_there_or_no_data_set_is_refused(
    tmp_path: Path, home: Path, source: str, format: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("loop.jsonl").symlink_to("loop.jsonl")
    Path("empty").mkdir()
    Path("broken").mkdir()
    Path("broken", "train.parquet").write_bytes(b"PAR1 but not really PAR1")
    with pytest.raises(UserError, match=message) as caught:
        import_source(source, home, format=format, split="eval")
    assert "\n" not in str(caught.value)
    assert kept_designs(home) == {}


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=5)
    | st.sampled_from(["a.sv", "../x", "cid012", rtl("m"), "[]", "{}", "Toggle"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=8) | st.sampled_from(["name", "content", "files", "metric"]), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.parametrize("format, record", [("cvdp-ecov", ecov()), ("cvdp", cvdp()), ("cvdp", agentic()),
                                            ("codev-r1", codev()), ("verithoughts", verithoughts())])  # fmt: skip
@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_field_holds_a_record_is_a_design_or_refused_in_one_line(
    format: str, record: dict[str, Any], data: st.DataObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = data.draw(st.dictionaries(st.sampled_from(sorted(record)), ANY, min_size=1, max_size=3))
    monkeypatch.setattr(rows, "rows", lambda source, fields=(): iter([rows.Row("x:1", 1, record | changed)]))
    [candidate] = reader("x", format)[0]()
    assert candidate.name.isprintable() and candidate.name
    try:
        found = candidate.gather()
    except DesignError as error:
        assert str(error).startswith("x:1: ") and "\n" not in str(error) and str(error).isprintable()
        assert error.reason in (reasons.MALFORMED, reasons.NO_RTL, reasons.VHDL, reasons.NOT_STIMULUS)
    else:
        assert found.sources and all(0 <= share <= 1 for _, share in found.targets)
