"""What a survey says of a design: parameters, enums, constants, handshakes, includes, sizes, difficulty."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sim.comparisons import comparisons
from sim.design import Design, DesignError, SourceFile
from sim.elaborate import analyse
from sim.handshakes import Handshake
from sim.load import load_design
from sim.slang import elaborate
from sim.survey import Survey, n_tokens, survey


def design(text: str, top: str = "m", **fields: object) -> Design:
    return Design(name=top, sources=(SourceFile(f"{top}.sv", text.encode()),), top=top, **fields)  # type: ignore[arg-type]


def surveyed(text: str, top: str = "m", **fields: object) -> Survey:
    return survey(design(text, top, **fields))


def constants(text: str, **fields: object) -> list[tuple[str, str, str, int | None]]:
    return [(c.subject, c.operator, c.literal, c.value) for c in surveyed(text, **fields).comparisons]


def body(statements: str, ports: str = "") -> str:
    return (
        f"module m(input logic clk, s{ports}, input logic [7:0] a, input logic [3:0] b, output logic [7:0] y);\n"
        f"{statements}\nendmodule\n"
    )


# parameters, enums


def test_parameters_have_their_value_after_overrides_and_their_default() -> None:
    text = """module m #(parameter int W = 4, parameter type T = logic [W-1:0], parameter string NAME = "x",
                         parameter logic [63:0] KEY = 64'hDEAD_BEEF_0000_0001, parameter real R = 0.5,
                         parameter logic signed [7:0] NEG = -2)(input T a, output T y);
      localparam int TWICE = W * 2; parameter BODY = 1; assign y = a; endmodule"""
    found = surveyed(text, parameters=(("W", "9"),)).parameters
    assert [(p.name, p.kind, p.value, p.default, p.overridable) for p in found] == [
        ("W", "parameter", "9", "4", True),
        ("T", "type", "logic[8:0]", "logic [W-1:0]", False),
        ("NAME", "parameter", '"x"', '"x"', True),
        ("KEY", "parameter", "0xdeadbeef00000001", "64'hDEAD_BEEF_0000_0001", True),
        ("R", "parameter", "0.5", "0.5", True),
        ("NEG", "parameter", "-2", "-2", True),
        ("TWICE", "localparam", "18", "W * 2", False),
        ("BODY", "localparam", "1", "1", False),  # of a module with a parameter port list: not to be overridden
    ]


def test_enums_are_found_wherever_they_are_declared_and_once() -> None:
    text = """
    package p; typedef enum logic [1:0] {A, B, C = 3} abc_t; endpackage
    typedef enum {U0, U1} unit_t;
    interface bus; typedef enum logic {I0, I1} bus_t; logic v; endinterface
    module leaf import p::*; #(parameter W = 2)(input abc_t k, output logic y);
      typedef enum logic [W-1:0] {L0, L1} leaf_t; leaf_t l; assign l = L1; assign y = k == B && l == L0; endmodule
    module m import p::*; (input logic clk, input abc_t k, output logic [2:0] y);
      enum logic [2:0] {ONE = 1, TWO} nameless;
      bus b();
      leaf u0(.k, .y(y[0])); leaf u1(.k, .y(y[1])); leaf #(.W(5)) u2(.k, .y(y[2]));
      if (1) begin : g enum logic {G0, G1} inner; always_ff @(posedge clk) inner <= G1; end
      if (0) begin : never enum logic {N0, N1} outer; end
      always_ff @(posedge clk) nameless <= TWO;
    endmodule"""
    found = {(e.name, e.scope, e.width): dict(e.members) for e in surveyed(text).enums}
    assert found == {
        ("abc_t", "p", 2): {"A": 0, "B": 1, "C": 3},
        ("unit_t", "$unit", 32): {"U0": 0, "U1": 1},
        ("leaf_t", "leaf", 2): {"L0": 0, "L1": 1},
        ("nameless", "m", 3): {"ONE": 1, "TWO": 2},
        ("inner", "m", 1): {"G0": 0, "G1": 1},
    }


# constants


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("assign y = a == 8'h5a;", [("a", "==", "8'h5a", 0x5A)]),
        ("assign y = 8'h5a < a ? 1 : 0;", [("a", ">", "8'h5a", 0x5A)]),
        ("assign y = (a != 3) && !(b >= 4'd12);", [("a", "!=", "3", 3), ("b", ">=", "4'd12", 12)]),
        ("assign y = a[3:1] === 3'b101;", [("a[3:1]", "==", "3'b101", 5)]),
        ("assign y = {a, b} == 12'hABC;", [("{a, b}", "==", "12'hABC", 0xABC)]),
        ("assign y = $signed(a) < -8'sd1;", [("$signed(a)", "<", "-8'sd1", 255)]),
        ("assign y = a inside {[3:7], 9};", [("a", ">=", "3", 3), ("a", "<=", "7", 7), ("a", "==", "9", 9)]),
        ("always_comb case (b) 1, 2: y = 1; default: y = 0; endcase", [("b", "==", "1", 1), ("b", "==", "2", 2)]),
        ("always_comb casez (b) 4'b1??0: y = 1; default: y = 0; endcase", [("b", "==", "4'b1??0", None)]),
        ("always_comb case (1'b1) (a == 4): y = 1; b[0]: y = 2; default: y = 0; endcase",
         [("a", "==", "4", 4)]),
        ("localparam K = 77; `define GO 8'd12\nassign y = a == K || a == `GO;",
         [("a", "==", "K", 77), ("a", "==", "8'd12", 12)]),
        ("function automatic logic f(input logic [7:0] x); return x == 8'd200; endfunction assign y = f(a);",
         [("x", "==", "8'd200", 200)]),
        # decided by parameters, or of a loop alone
        ("localparam W = 4; if (W == 4) assign y = a; else assign y = 0;", []),
        ("localparam W = 4; assign y = W == 4 ? a : 0;", []),
        ("always_comb begin y = 0; for (int i = 0; i < 8; i++) if (i == 3) y[i] = a[i]; end", []),
        ("always_comb begin y = 0; for (int i = 0; i < 8; i++) if (a == 8'(i) && b == 2) y[i] = 1; end",
         [("b", "==", "2", 2)]),
        ("assign y = a == a;", []),
        ("always_ff @(posedge clk) assert (a != 99);", []),
    ],
)  # fmt: skip
def test_constants_of_every_kind_of_condition(statement: str, expected: list[tuple[str, str, str, int | None]]) -> None:
    assert sorted(constants(body(statement)), key=str) == sorted(expected, key=str)


def test_a_constant_is_told_once_a_module_with_its_place() -> None:
    text = """module leaf #(parameter K = 3)(input logic [7:0] a, output logic y); assign y = a == K; endmodule
    module m(input logic [7:0] a, output logic [3:0] y);
      leaf u0(.a, .y(y[0])); leaf u1(.a, .y(y[1])); leaf #(9) u2(.a, .y(y[2]));
      leaf #(9) u3(.a(a == 8'd7 ? 8'd0 : a), .y(y[3]));
    endmodule"""
    found = surveyed(text).comparisons
    assert [(c.module, c.subject, c.value, c.width, c.file, c.line) for c in found] == [
        ("leaf", "a", 3, 8, "m.sv", 1), ("leaf", "a", 9, 8, "m.sv", 1), ("m", "a", 7, 8, "m.sv", 4),
    ]  # fmt: skip


def test_escaped_names_and_what_macros_make_are_read() -> None:
    text = r"""`define IS(x, v) ((x) == (v))
    module m(input logic [7:0] \a+b , output logic y); assign y = `IS(\a+b , 8'd6) || \a+b == 8'd7; endmodule"""
    assert constants(text) == [("\\a+b", "==", "(8'd6)", 6), ("\\a+b", "==", "8'd7", 7)]


def test_tables_of_thousands_of_constants_are_bounded_and_counted() -> None:
    arms = "\n".join(f"16'd{i}: y = 8'd{i % 251};" for i in range(3000))
    text = f"module m(input logic [15:0] a, output logic [7:0] y); always_comb case (a) {arms} endcase\nendmodule\n"
    found, left_out = comparisons(elaborate(design(text)))
    assert (len(found), left_out) == (1000, 2000)
    assert found[-1].value == 999


# handshakes


def handshake(ports: str, statements: str = "") -> list[Handshake]:
    return list(
        surveyed(f"module m(input logic clk, input logic rst_n, {ports});\n{statements}\nendmodule\n").handshakes
    )


@pytest.mark.parametrize(
    ("ports", "valid", "ready", "drives", "payload"),
    [
        ("input logic in_valid, input logic [7:0] in_data, output logic in_ready", "in_valid", "in_ready", "valid",
         ("in_data",)),
        ("output logic m_tvalid, output logic [7:0] m_tdata, output logic m_tlast, input logic m_tready", "m_tvalid",
         "m_tready", "ready", ("m_tdata", "m_tlast")),
        ("input logic i_cmd_vld, input logic [3:0] i_cmd_op, output logic o_cmd_rdy", "i_cmd_vld", "o_cmd_rdy", "valid",
         ("i_cmd_op",)),
        ("output logic instr_req_o, output logic [7:0] instr_addr_o, input logic instr_gnt_i, instr_rvalid_i",
         "instr_req_o", "instr_gnt_i", "ready", ("instr_addr_o",)),
        ("output logic wb_cyc_o, output logic wb_stb_o, output logic [3:0] wb_adr_o, input logic wb_ack_i", "wb_stb_o",
         "wb_ack_i", "ready", ("wb_cyc_o", "wb_adr_o")),
        ("input logic psel, penable, pwrite, input logic [7:0] paddr, output logic pready", "penable", "pready",
         "valid", ("psel", "pwrite", "paddr")),
        ("input logic valid, input logic [7:0] d, input logic scan_x, output logic ready", "valid", "ready", "valid",
         ("d",)),
        ("input logic [3:0] req, output logic [3:0] gnt", "req", "gnt", "valid", ()),
    ],
)  # fmt: skip
def test_pairs_are_known_by_name(ports: str, valid: str, ready: str, drives: str, payload: tuple[str, ...]) -> None:
    assert handshake(ports) == [Handshake(valid, ready, drives, payload)]


@pytest.mark.parametrize(
    "ports",
    [
        "input logic in_valid, input logic out_ready",  # both driven by us
        "input logic in_valid, output logic out_ready",  # of different channels
        "input logic [1:0] in_valid, output logic in_ready",  # of different widths
        "input logic enable, output logic done, input logic request_line, output logic already",
        "input logic invalid, output logic unready",
    ],
)
def test_what_is_no_pair(ports: str) -> None:
    assert handshake(ports) == []


def test_a_fifo_is_known_by_what_it_tests_together() -> None:
    ports = (
        "input logic wr_en, input logic [7:0] wr_data, output logic wr_full, output logic almost_full,"
        " input logic rd_en, output logic [7:0] rd_data, output logic rd_empty, input logic scan, output logic seen"
    )
    found = handshake(
        ports,
        "logic [2:0] n; assign wr_full = n == 4; assign almost_full = n >= 3; assign rd_empty = n == 0;\n"
        "wire push = wr_en && (!wr_full || rd_en); wire pop = rd_en & ~rd_empty; assign rd_data = 0;\n"
        "always_ff @(posedge clk or negedge rst_n) if (!rst_n) n <= 0; else begin n <= n + push - pop;\n"
        "  if (scan && seen) seen <= 0; else if (wr_data == 9) seen <= 1; end",
    )
    assert found == [
        Handshake("wr_en", "wr_full", "valid", ("wr_data",), False, True, "structure"),
        Handshake("rd_empty", "rd_en", "ready", ("rd_data",), True, False, "structure"),
    ]


def test_a_response_to_a_request_of_the_design_is_no_offer() -> None:
    ports = "input logic rd_valid, input logic [7:0] rd_data, output logic rd_request, output logic [7:0] q"
    tested = "always_ff @(posedge clk) if (rd_request && rd_valid) begin q <= rd_data; rd_request <= 0; end"
    assert handshake(ports, tested) == []


def test_structure_confirms_names_and_active_low_ones_are_marked() -> None:
    found = handshake(
        "input logic a_valid, input logic [7:0] a_data, output logic a_ready, b_req_n, input logic b_ack_n",
        "logic [7:0] q; assign a_ready = q != 3; assign b_req_n = q[0];\n"
        "always_ff @(posedge clk) if (a_valid) if (a_ready) q <= a_data;",
    )
    assert found == [
        Handshake("a_valid", "a_ready", "valid", ("a_data",), evidence="both"),
        Handshake("b_req_n", "b_ack_n", "ready", (), True, True, "names"),
    ]


# includes, sizes


def test_includes_and_sizes_of_every_file() -> None:
    files = {
        "rtl/m.sv": b'`include "a.svh"\n// a comment\n'
        b"module m(output logic y); /* and\nanother */ assign y = `A; endmodule\n",
        "inc/a.svh": b'`include "b.svh"\n`define A `B',
        "inc/b.svh": b"`define B 1\n",
    }
    subject = Design(
        name="m", sources=(SourceFile("rtl/m.sv", files["rtl/m.sv"]),), top="m", include_dirs=("inc",),
        includes=tuple(SourceFile(path, text) for path, text in files.items() if path.startswith("inc")),
    )  # fmt: skip
    found = survey(subject)
    assert [(i.file, i.line, i.included) for i in found.includes] == [
        ("rtl/m.sv", 1, "inc/a.svh"), ("inc/a.svh", 1, "inc/b.svh"),
    ]  # fmt: skip
    # `include "a.svh" | module m ( output logic y ) ; | assign y = `A ; | endmodule
    assert {s.file: (s.n_lines, s.n_tokens) for s in found.sizes} == {
        "rtl/m.sv": (4, 2 + 8 + 5 + 1), "inc/a.svh": (2, 2 + 3), "inc/b.svh": (1, 3),
    }  # fmt: skip
    assert found.n_tokens == 16 + 5 + 3


@pytest.mark.parametrize(
    ("content", "tokens"),
    [(b"", 0), (b"  \n\t// only\n/* comments */\n", 0), (b"a <= 8'hFF + b[3];", 11), ("a // ü\nb".encode("latin-1"), 2),
     (b'"a string; with // no comment"', 1)],
)  # fmt: skip
def test_tokens_leave_out_comments_and_blanks(content: bytes, tokens: int) -> None:
    assert n_tokens(SourceFile("a.sv", content)) == tokens


# difficulty


@pytest.mark.parametrize(
    ("guards", "difficulty", "label"),
    [
        (["b == 1", "s", "a < 200"], 0.0, "easy"),
        (["b == 1", "s", "a[0]", "a == 1 && b == 2"], 0.1111, "medium"),
        (["a == 1 && b == 2", "a == 3 && b == 5"], 0.4, "hard"),
    ],
)
def test_difficulty_is_the_share_of_branches_behind_many_certain_bits(
    guards: list[str], difficulty: float, label: str
) -> None:
    ifs = "\n".join(f"if ({guard}) y <= {i};" for i, guard in enumerate(guards))
    found = surveyed(body(f"always_ff @(posedge clk) begin {ifs} end"))
    assert (found.difficulty, found.difficulty_label) == (difficulty, label)


def test_branches_that_parameters_rule_out_count_neither_way() -> None:
    found = surveyed(body("localparam OFF = 0; always_ff @(posedge clk) if (OFF) y <= 1; else if (s) y <= 2;"))
    assert found.difficulty == 0.0


# the whole


def test_a_survey_is_kept_for_the_same_design() -> None:
    text = "module m(input logic a, output logic y); assign y = a; endmodule"
    assert surveyed(text) is surveyed(text)


def test_bytes_that_are_no_text_and_empty_designs_are_surveyed() -> None:
    subject = Design(
        name="m", sources=(SourceFile("m.sv", b"// \xff\xfe\x00\nmodule m(input logic a); endmodule\n"),), top="m"
    )
    found = survey(subject)
    assert (found.comparisons, found.handshakes, found.difficulty_label) == ((), (), "easy")


def test_what_is_nested_too_deeply_or_has_no_top_is_a_design_error() -> None:
    deep = "+".join(["a"] * 10) + " == " + "(" * 200 + "1" + ")" * 200
    assert surveyed(body(f"assign y = {deep};")).comparisons[0].value == 1
    chain = "".join(f"if (a == {i % 256}) y = {i % 7}; else " for i in range(sys.getrecursionlimit() // 2))
    with pytest.raises(DesignError, match="nested too deeply"):
        surveyed(body(f"always_comb {chain} y = 0;"))
    with pytest.raises(DesignError, match="there is no module 'absent' to be the top; choose another with --top: m"):
        survey(Design(name="m", sources=(SourceFile("m.sv", b"module m(input logic a); endmodule"),), top="absent"))


def test_processors_have_the_interfaces_that_their_manuals_tell() -> None:
    picorv32 = pytest.importorskip("pythondata_cpu_picorv32")
    serv = pytest.importorskip("pythondata_cpu_serv")
    axi = load_design(Path(picorv32.data_location) / "picorv32.v", top="picorv32_axi")
    interface = analyse(axi).interface
    assert (interface.clocks, [(r.port, r.active_low) for r in interface.resets]) == (("clk",), [("resetn", True)])
    small = load_design(Path(serv.data_location) / "rtl", top="serv_rf_top")
    interface = analyse(small).interface
    assert (interface.clocks, [(r.port, r.active_low) for r in interface.resets]) == (("clk",), [("i_rst", False)])
    found, left_out = comparisons(elaborate(axi))
    opcodes = {c.value for c in found if c.subject == "mem_rdata_latched[6:0]"}
    assert {0b0110111, 0b0010111, 0b1101111, 0b1100111, 0b1100011} <= opcodes and left_out == 0
