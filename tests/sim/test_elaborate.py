"""Ports, clocks, resets and hierarchy from the elaborated design."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.control import Reset
from sim.design import Design, DesignError, SourceFile
from sim.elaborate import Analysis, analyse
from sim.load import load_design


def analysis(text: str, top: str = "m", **fields: object) -> Analysis:
    return analyse(Design(name=top, sources=(SourceFile(f"{top}.sv", text.encode()),), top=top, **fields))  # type: ignore[arg-type]


def clocked(body: str, edges: str = "posedge clk", ports: str = "") -> Analysis:
    return analysis(
        f"module m(input logic clk, input logic rst_n, input logic rst, input logic clear, input logic d{ports},"
        f" output logic q, output logic p);\n always_ff @({edges}) {body}\nendmodule\n"
    )


def test_ports_have_their_width_after_parameters() -> None:
    text = """
    package p;
      typedef enum logic [1:0] {A, B} kind_t;
      typedef struct packed {logic v; logic [6:0] x;} word_t;
    endpackage
    module m import p::*; #(parameter int W = 4) (
      input logic [W-1:0] a, input kind_t k, input word_t w, inout wire io, output logic [2:0][W-1:0] y
    ); assign y = '0; endmodule"""
    ports = analysis(text, parameters=(("W", "9"),)).interface.ports
    assert [(p.name, p.direction, p.width) for p in ports] == [
        ("a", "in", 9), ("k", "in", 2), ("w", "in", 8), ("io", "inout", 1), ("y", "out", 27),
    ]  # fmt: skip
    assert ports[0].type == "logic[8:0]"


def test_a_design_without_edges_is_combinational() -> None:
    interface = analysis("module m(input logic a, b, output logic y); assign y = a & b; endmodule").interface
    assert interface.combinational and interface.clocks == () and interface.resets == ()
    assert [p.name for p in interface.data_inputs] == ["a", "b"]


@pytest.mark.parametrize(
    ("body", "edges", "reset"),
    [
        ("if (!rst_n) q <= 0; else q <= d;", "posedge clk or negedge rst_n", Reset("rst_n", True, False)),
        ("if (rst) q <= 0; else q <= d;", "posedge clk or posedge rst", Reset("rst", False, False)),
        ("if (rst == 1'b1) q <= 0; else q <= d;", "posedge clk, posedge rst", Reset("rst", False, False)),
        ("if (!rst_n) q <= 0; else q <= d;", "posedge clk", Reset("rst_n", True, True)),
        ("begin if (rst) begin q <= 0; p <= 1; end else q <= d; end", "posedge clk", Reset("rst", False, True)),
        ("if (~rst_n) q <= 0; else if (clear) q <= 0; else q <= d;", "negedge clk", Reset("rst_n", True, True)),
    ],
)
def test_resets_are_recognised_by_what_they_do(body: str, edges: str, reset: Reset) -> None:
    interface = clocked(body, edges).interface
    assert interface.clocks == ("clk",)
    assert interface.resets == (reset,)


def test_an_input_that_clears_everything_is_a_reset_only_if_there_is_no_other() -> None:
    assert clocked("if (clear) q <= 0; else q <= d;").interface.resets == (Reset("clear", False, True),)
    assert clocked("if (d) q <= clear; else q <= rst;").interface.resets == ()


def test_clock_and_reset_are_traced_through_instances_and_assigns() -> None:
    text = """
    module cell_ff(input logic ck, input logic r, input logic d, output logic q);
      wire inverted = !r;
      always_ff @(posedge ck or negedge inverted) if (!inverted) q <= 0; else q <= d;
    endmodule
    module m(input logic clock, input logic arst, input logic d, output logic [1:0] q);
      wire gated; assign gated = clock;
      for (genvar i = 0; i < 2; i++) begin : lane
        cell_ff u_ff(.ck(gated), .r(arst), .d(d), .q(q[i]));
      end
    endmodule"""
    found = analysis(text)
    assert found.interface.clocks == ("clock",)
    assert found.interface.resets == (Reset("arst", False, False),)
    assert found.hierarchy == (("m", "m"), ("m.lane[0].u_ff", "cell_ff"), ("m.lane[1].u_ff", "cell_ff"))


def test_the_clock_with_most_registers_comes_first() -> None:
    text = """module m(input logic a_clk, b_clk, d, output logic x, y, z);
      always_ff @(posedge a_clk) x <= d;
      always_ff @(posedge b_clk) begin y <= d; z <= y; end
    endmodule"""
    assert analysis(text).interface.clocks == ("b_clk", "a_clk")


MANY = (
    "module m(input logic clk, clk2, rst_n, rst, en, set_n, scan, d, sel, output logic q, p); logic a, b, g;\n"
    "{}\nendmodule"
)
ASYNC_LOW, SYNC_HIGH, SYNC_LOW = Reset("rst_n", True, False), Reset("rst", False, True), Reset("rst_n", True, True)


@pytest.mark.parametrize(
    ("body", "clocks", "resets"),
    [
        # through a synchroniser, asynchronous, synchronous, active low
        ("always @(posedge clk, negedge rst_n) if (!rst_n) {b, a} <= 0; else {b, a} <= {a, 1'b1};"
         "always @(posedge clk, negedge b) if (!b) q <= 0; else q <= d;", "clk", [ASYNC_LOW]),
        ("always @(posedge clk) begin a <= rst; b <= a; end always @(posedge clk) if (b) q <= 0; else q <= d;",
         "clk", [SYNC_HIGH]),
        ("always @(posedge clk) begin a <= rst_n; b <= a; end always @(posedge clk) if (!b) q <= 0; else q <= d;",
         "clk", [SYNC_LOW]),
        # otherwise than by an if that assigns constants
        ("always @(posedge clk) q <= !rst_n ? 1'b0 : d;", "clk", [SYNC_LOW]),
        ("always @(posedge clk) q <= rst_n & d;", "clk", [SYNC_LOW]),
        ("always @(posedge clk) case (rst_n) 1'b0: q <= 0; default: q <= d; endcase", "clk", [SYNC_LOW]),
        ("always @(posedge clk) if (rst) begin q <= 0; p <= sel; end else q <= d;", "clk", [SYNC_HIGH]),
        ("always @(posedge clk) begin q <= d; p <= q; if (rst) begin q <= 0; p <= 0; end end", "clk", [SYNC_HIGH]),
        # a name alone makes no reset, and a set is no clock
        ("always @(posedge clk) q <= rst;", "clk", []),
        ("always @(posedge clk, negedge rst_n, negedge set_n) if (!rst_n) q <= 0; else if (!set_n) q <= 1;"
         " else q <= d;", "clk", [ASYNC_LOW]),
        # beside other inputs of the same gate
        ("assign g = scan ? 1'b1 : rst_n; always @(posedge clk, negedge g) if (!g) q <= 0; else q <= d;", "clk",
         [ASYNC_LOW]),
        ("assign g = rst | en; always @(posedge clk) if (g) q <= 0; else q <= d;", "clk", [SYNC_HIGH]),
        # clocks: gated, multiplexed, divided, inverted, several
        ("assign g = en & clk; always @(posedge g) q <= d;", "clk", []),
        ("assign g = en & d; always @(posedge d) p <= en; always @(posedge g) q <= en;", "d", []),
        ("always_latch if (!clk) a = en; assign g = clk & a; always @(posedge g) q <= d;", "clk", []),
        ("assign g = sel ? clk : clk2; always @(posedge g) q <= d;", "clk clk2", []),
        ("always @(posedge clk, negedge rst_n) if (!rst_n) a <= 0; else a <= ~a;"
         "always @(posedge a, negedge rst_n) if (!rst_n) q <= 0; else q <= d;", "clk", [ASYNC_LOW]),
        ("assign g = ~clk; always @(posedge g) q <= d;", "clk", []),
        ("always @(posedge clk, negedge rst_n) if (!rst_n) {a, q} <= 0; else {a, q} <= {q, d};"
         "always @(posedge clk2) if (rst) p <= 0; else p <= a;", "clk clk2", [ASYNC_LOW, SYNC_HIGH]),
    ],
)  # fmt: skip
def test_clocks_and_resets_are_told_by_what_reaches_registers(body: str, clocks: str, resets: list[Reset]) -> None:
    interface = analysis(MANY.format(body)).interface
    assert interface.clocks == tuple(clocks.split())
    assert list(interface.resets) == resets


def test_hints_win() -> None:
    text = """module m(input logic tick, other, start, d, output logic q);
      always_ff @(posedge tick) if (start) q <= d; else q <= other;
    endmodule"""
    interface = analysis(text, reset="!start", clock="other").interface
    assert interface.clocks == ("other", "tick")
    assert interface.resets == (Reset("start", True, True),)
    with pytest.raises(DesignError, match=r"design\.toml names the clock 'nope'"):
        analysis(text, clock="nope")


def test_analysis_is_kept_for_the_same_design() -> None:
    text = "module m(input logic a, output logic y); assign y = a; endmodule"
    assert analysis(text) is analysis(text)


def test_a_missing_top_is_an_error() -> None:
    with pytest.raises(DesignError, match="there is no module 'other'"):
        analyse(Design(name="m", sources=(SourceFile("m.sv", b"module m; endmodule"),), top="other"))


@pytest.mark.parametrize(
    ("body", "parameters"),
    [("assign y = {W{a}};", (("W", "abc"),)), ("assign y = {W{a}};", (("W", "-4"),)), ("assign y = nowhere + 1;", ())],
)
def test_what_elaboration_cannot_make_sense_of_is_not_followed(
    body: str, parameters: tuple[tuple[str, str], ...]
) -> None:
    found = analysis(
        f"module m #(parameter W = 2) (input logic a, output logic [1:0] y, output logic z); {body}\n"
        "always_comb if (a) z = 1; else z = 0;\nendmodule",
        parameters=parameters,
    )
    assert [p.name for p in found.interface.ports] == ["a", "y", "z"]
    assert any(branch.steps for branch in found.branches)


def test_words_that_are_built_of_parts_of_themselves_stay_small() -> None:
    found = analysis("""module m(input logic [31:0] a, input logic [31:0] b, output logic [31:0] y);
      logic [31:0] power;
      always_comb begin
        power = a; y = 0;
        for (int i = 0; i < 32; i++) begin
          y = y ^ ({32{b[i]}} & power);
          power = {power[30:0], 1'b0} ^ ({32{power[31]}} & 32'h04C11DB7);
        end
      end
    endmodule""")
    assert len(found.netlist.x._table) < 20_000


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "top"), [("picorv32", None), ("serv", "serv_rf_top")])
def test_real_designs_are_analysed_whole(folder: str, top: str | None) -> None:
    import pythondata_cpu_picorv32
    import pythondata_cpu_serv

    path = {
        "picorv32": Path(pythondata_cpu_picorv32.data_location) / "picorv32.v",
        "serv": Path(pythondata_cpu_serv.data_location) / "rtl",
    }[folder]
    found = analyse(load_design(path, top=top))
    assert found.interface.clocks == ("clk",)
    assert [r.port for r in found.interface.resets] == (["resetn"] if folder == "picorv32" else ["i_rst"])
    alive = [b for b in found.branches if "never holds" not in b.reason]
    assert sum(b.steps is not None for b in alive) > len(alive) // 2
    assert all(b.reason for b in found.branches if b.steps is None)
