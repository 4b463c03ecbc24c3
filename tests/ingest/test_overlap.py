"""Copies are found: identical designs whatever their layout, and designs that resemble others, all of them."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from llm4cov_assets.cli import app
from llm4cov_assets.ingest import overlap, token_index
from llm4cov_assets.ingest.canonical import canonical_content, canonical_tokens
from llm4cov_assets.ingest.copies import Copy, copies
from llm4cov_assets.ingest.importing import import_source
from llm4cov_assets.ingest.overlap import EvaluationIndex, SplitIndex
from llm4cov_assets.ingest.records import SEEN_FAMILIES, DesignRecord
from llm4cov_assets.ingest.registry import corpus_designs
from llm4cov_assets.ingest.similarity import f1, least_common, rouge_l
from llm4cov_assets.progress import silent
from llm4cov_assets.report.overlap import html_page, markdown_page
from sim.design import Design, SourceFile
from tests.soak import decontamination
from warehouse.store import Store

WORDS = st.lists(st.sampled_from(["begin", "end", "<=", "a;", "b;", "c", "d", "e"]), max_size=24)
SHARES = st.sampled_from([0.01, 0.3, 0.5, 0.6, 0.7, 0.9, 1.0])
COUNTER = """\
`define STEP 1
module counter(input wire clk, input wire rst, output reg [7:0] q);
  // counts up
  initial $display("see http://x /* not a comment */ %d", 1);
  always @(posedge clk) if (rst) q <= 0; else q <= q + `STEP;
endmodule
"""


def design(name: str, *files: Sequence[str] | str, headers: Sequence[str] = (), top: str = "m") -> Design:
    texts = [f if isinstance(f, str) else " ".join(f) for f in files]
    sources = tuple(SourceFile(f"f{i}.v", text.encode()) for i, text in enumerate(texts))
    includes = tuple(SourceFile(f"h{i}.vh", text.encode()) for i, text in enumerate(headers))
    return Design(name, sources, top, includes)


def longest_common(a: Sequence[str], b: Sequence[str]) -> int:
    """The textbook's table (Cormen et al., 14.4), row by row."""
    row = [0] * (len(b) + 1)
    for x in a:
        before = row
        row = [0]
        for j, y in enumerate(b):
            row.append(before[j] + 1 if x == y else max(before[j + 1], row[j]))
    return row[-1]


def most_alike(one: Design, others: Sequence[Design]) -> float:
    """ROUGE-L of the two files that are most alike, by comparing all."""
    pairs = ((a.text.split(), b.text.split()) for a in one.sources for other in others for b in other.sources)
    return max((f1(longest_common(a, b), len(a), len(b)) for a, b in pairs), default=0.0)


@given(WORDS, WORDS)
def test_rouge_l_is_the_f1_of_the_longest_common_subsequence(a: list[str], b: list[str]) -> None:
    assert rouge_l(a, b) == f1(longest_common(a, b), len(a), len(b))


@given(SHARES, st.integers(1, 10**6), st.integers(1, 10**6))
def test_no_fewer_common_tokens_reach_a_share(least: float, a: int, b: int) -> None:
    need = least_common(least, a, b)
    assert f1(need, a, b) >= least
    assert f1(need - 1, a, b) < least


@given(st.lists(st.lists(WORDS, max_size=3), max_size=6), st.lists(WORDS, max_size=3), SHARES)
def test_every_design_that_resembles_an_evaluation_design_is_found(
    others: list[list[list[str]]], files: list[list[str]], least: float
) -> None:
    evaluation = [design(f"e{i}", *texts) for i, texts in enumerate(others)]
    mine = design("mine", *files)
    truth = most_alike(mine, evaluation)
    found = EvaluationIndex(evaluation).nearest(mine, least)
    assert (found.share if found else None) == (truth if truth >= least else None)
    if found:
        other = next(d for d in evaluation if d.name == found.other)
        a, b = ({f.path: f.text.split() for f in d.sources} for d in (mine, other))
        assert rouge_l(a[found.file], b[found.other_file]) == found.share


@settings(deadline=None)
@given(st.lists(WORDS, min_size=8, max_size=30), SHARES)
def test_every_design_that_resembles_an_earlier_one_is_found(texts: list[list[str]], least: float) -> None:
    designs = [design(f"d{i}", text) for i, text in enumerate(texts)]
    index = SplitIndex(least)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(token_index, "_FEW", 2)  # tokens become common among a few designs, too
        patched.setattr(token_index, "COMMON", 2)
        for i, one in enumerate(designs):
            truth = most_alike(one, designs[:i])
            found = index.add(one.name, one)
            assert (found.share if found else None) == (truth if truth >= least else None)


def test_among_real_texts_what_is_found_is_what_comparing_all_finds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(token_index, "_FEW", 20)
    assert decontamination.run(Namespace(n=400, evaluation=60, sample=40, seed=3)), capsys.readouterr().out
    assert "40 checked against comparing all" in capsys.readouterr().out


def test_half_a_file_makes_a_copy_and_a_token_less_does_not() -> None:
    index = EvaluationIndex(corpus_designs())
    for original in corpus_designs():
        tokens = max((f.text.split() for f in original.sources), key=len)
        half = len(tokens) - len(tokens) // 2  # of an odd number, more than half
        for kept, is_copy in ((half, True), (len(tokens) // 2 - len(tokens) // 20, False)):
            copied = [*tokens[:kept], *(f"other{i}" for i in range(len(tokens) - kept))]
            found = index.nearest(design("copy", copied))
            assert (found is not None) == is_copy, (original.name, kept)
    tokens = [f"t{i}" for i in range(1000)]
    index = EvaluationIndex([design("e", tokens)])
    assert index.nearest(design("at", [*tokens[:500], *(["x"] * 500)])) is not None
    assert index.nearest(design("below", [*tokens[:499], *(["x"] * 501)])) is None


def test_a_copy_that_hides_in_one_of_many_files_or_in_a_header_is_found() -> None:
    [alu] = [d for d in corpus_designs() if d.name == "alu"]
    text = alu.sources[0].text
    index = EvaluationIndex([alu])
    hidden = index.nearest(design("hidden", "module a; endmodule", text.replace("alu", "unit"), ""))
    assert hidden and (hidden.other, hidden.file, hidden.other_file) == ("alu", "f1.v", alu.sources[0].path)
    header = index.nearest(design("header", '`include "h0.vh"', headers=[text]))
    assert header and (header.file, header.share) == ("h0.vh", 1.0)


def test_designs_of_one_split_may_share_headers() -> None:
    index = SplitIndex()
    header = " ".join(f"`define K{i} {i}" for i in range(50))
    assert (
        index.add("a", design("a", "module a(input x, output y); assign y = !x; endmodule", headers=[header])) is None
    )
    assert index.add("b", design("b", "module b; logic [3:0] q; initial q = 3; endmodule", headers=[header])) is None


def test_a_copy_that_is_not_taken_in_makes_no_copies() -> None:
    a, b, c = [f"a{i}" for i in range(10)], [f"b{i}" for i in range(10)], [f"c{i}" for i in range(10)]
    chain = [design("one", a + b), design("two", b + c), design("three", c + [f"d{i}" for i in range(10)])]
    marking, dropping = SplitIndex(), SplitIndex(keep_copies=False)
    assert [o and o.other for o in (marking.add(d.name, d) for d in chain)] == [None, "one", "two"]
    assert [o and o.other for o in (dropping.add(d.name, d) for d in chain)] == [None, "one", None]


def test_files_that_are_too_long_to_compare_are_never_called_different(monkeypatch: pytest.MonkeyPatch) -> None:
    long = [f"t{i % 5000}" for i in range(20_000)]
    turned = long[::-1]
    monkeypatch.setattr(overlap, "BETWEEN", 10**6)
    monkeypatch.setattr(overlap, "INSIDE", 10**6)
    found = EvaluationIndex([design("e", long)]).nearest(design("t", turned))
    assert found and (found.exact, found.share, found.other) == (False, 1.0, "e")
    index = SplitIndex()
    assert index.add("e", design("e", long)) is None
    inside = index.add("t", design("t", turned))
    assert inside and not inside.exact
    assert index.add("u", design("u", [f"u{i}" for i in range(20_000)])) is None, "no token in common: not compared"
    certain = EvaluationIndex([design("e", long, "a b c d")]).nearest(design("t", turned, "a b c e"))
    assert certain and certain.exact and certain.share == 0.75, "what is certain goes first"


def test_hostile_files_take_no_room() -> None:
    index = SplitIndex()
    huge = " ".join(f"t{i}" for i in range(200_000))
    files = [
        design("empty", ""), design("none"), design("binary", "\x00\xff\ud7ff" * 5000), design("line", "x" * 5_000_000),
        design("huge", huge), design("reverse", huge[1_000_000::-1]),
    ]  # fmt: skip
    assert [index.add(d.name, d) for d in files] == [None] * len(files)
    again = index.add("again", design("again", huge))
    assert again and (again.other, again.share) == ("huge", 1.0)
    same = design("same", *["always @* a = b;"] * 10_000)
    assert index.add("same", same) is None
    assert all(index.add(f"same{i}", same) for i in range(100))
    assert len(index) == 5, "equal texts are kept once, empty ones not at all"


def test_a_copy_in_another_layout_is_found_though_no_token_is_the_same() -> None:
    [alu] = [d for d in corpus_designs() if d.name == "alu"]
    spread = " /* - */ ".join(canonical_tokens(alu.sources[0].text.replace("alu", "unit")))
    copy = design("copy", "module other; endmodule", spread, top="unit")
    assert rouge_l(spread.split(), alu.sources[0].text.split()) < 0.5
    found = EvaluationIndex([alu]).nearest(copy)
    assert found and found.identical and (found.other, found.share, found.file) == ("alu", 1.0, "f1.v")


def test_layout_comments_and_names_of_top_and_files_are_no_content() -> None:
    base = canonical_content(design("a", COUNTER, "module sub; endmodule", top="counter"))
    other = (
        COUNTER.replace("  // counts up\n", "/* any\nthing */").replace("\n", "\r\n").replace(" <= ", "<=")
        .replace("(posedge clk) if", "( posedge clk )\t\tif").replace("counter", "\\other ")
    )  # fmt: skip
    assert canonical_content(design("b", "module  sub ;endmodule // x", other, top="other")) == base


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("q <= 0", "q <= 1"),
        ("http://x", "http://y"),
        ("/* not a comment */", ""),
        ("STEP 1\n", "STEP 1 "),
        ("module counter", "module counters"),
        ("q + `STEP", "q & &q"),
        ("[7:0]", "[70]"),
    ],
)
def test_what_changes_the_meaning_is_content(old: str, new: str) -> None:
    def content(text: str) -> str:
        return canonical_content(design("d", text, top="counter"))

    assert old in COUNTER
    assert content(COUNTER.replace(old, new)) != content(COUNTER)


def test_operators_are_not_taken_apart() -> None:
    assert canonical_content(design("a", "assign y = a & &b;")) != canonical_content(design("a", "assign y = a && b;"))
    assert canonical_content(design("a", "assign y=a<=~b;")) == canonical_content(design("a", "assign y = a <= ~ b ;"))


def test_macros_and_parameters_from_outside_are_content() -> None:
    plain = design("a", COUNTER)
    for changed in (
        Design("a", plain.sources, "m", defines=(("FAST", ""),)),
        Design("a", plain.sources, "m", parameters=(("W", "4"),)),
    ):
        assert canonical_content(changed) != canonical_content(plain)
    assert canonical_content(design("a", "`define A " * 50_000)), "nested as often as one likes"


def record(name: str, split: str, text: str, benchmark: str = "") -> DesignRecord:
    return DesignRecord(design(name, text), split, "imported", name, benchmark, f"/x/{name}")


def found_copies(split: str = "all") -> list[Copy]:
    other = "module b; wire [3:0] <script>; assign x = ```; endmodule"
    records = [
        record("e", "eval", COUNTER, "imported"),
        record("seen", "eval", other, SEEN_FAMILIES),
        record("copied", "train", COUNTER.replace("rst", "reset")),
        record("apart", "train", other),
        record("laid", "train", other.replace(" ", "\n")),
        record("near", "train", other.replace("[3:0]", "[4:0]")),
        record("far", "train", "package p; endpackage"),
        record("inbox", "inbox", COUNTER),
    ]
    return copies(records, silent, split)


def test_copies_are_told_by_kind() -> None:
    told = [(c.kind, c.record.name, c.other.name) for c in found_copies()]
    assert told == [
        ("contaminated", "copied", "e"), ("duplicate", "laid", "apart"), ("near duplicate", "near", "apart"),
    ]  # fmt: skip
    assert [c.kind for c in found_copies("eval")] == []
    assert len(found_copies("train")) == 3


def test_a_page_shows_both_files_whatever_they_hold() -> None:
    page = html_page(found_copies(), 8, 0.5, 20)
    assert "<script>" not in page and "&lt;script&gt;" in page
    assert '<span class="minus">-  always @(posedge clk) if (reset)' in page
    text = markdown_page(found_copies(), 8, 0.5, 1)
    assert "1 contaminated, 1 duplicate, 1 near duplicate" in text
    assert text.count("## ") == 1, "only so many are shown"
    assert "````diff" in markdown_page(found_copies(), 8, 0.5, 20)


def test_the_command_tells_copies_and_stores_them(home: Path, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "one.v").write_text(COUNTER.replace("counter", "one"))
    (tmp_path / "src" / "two.v").write_text(COUNTER.replace("counter", "two").replace("[7:0]", "[8:0]"))
    import_source(tmp_path / "src" / "one.v", home)
    import_source(tmp_path / "src" / "two.v", home)
    page = tmp_path / "page.html"
    run = CliRunner().invoke(
        app, ["designs", "overlap", "--profile", "quick", "--least", "0.9", "--json", "--out", str(page)]
    )
    assert run.exit_code == 0, run.output
    [told] = [c for c in json.loads(run.stdout) if c["design"] == "two"]
    assert (told["kind"], told["other"], told["exact"]) == ("near duplicate", "one", True)
    rows = Store(home).query(
        "select d.name, o.name as other, share from design_overlaps as x join designs as d using (design_id)"
        " join designs as o on o.design_id = x.other_design_id"
    )
    assert {"name": "two", "other": "one", "share": told["share"]} in rows.to_dicts()
    assert "two and one" in page.read_text()
    assert CliRunner().invoke(app, ["designs", "overlap", "--split", "x"]).exit_code != 0
