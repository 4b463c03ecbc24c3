"""Path conditions: where branches lie, and the steps that lead from reset to them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sim.conditions import BranchCondition, Constraint, Step
from sim.constraints import constraints
from sim.design import Design, SourceFile
from sim.domains import between, bits, exactly, other_than
from sim.elaborate import Analysis, analyse

HEAD = """module m(input logic clk, input logic rst_n, input logic go, input logic stop, input logic [7:0] d,
  input logic [3:0] sel, output logic [7:0] q, output logic hit);
"""


def design(body: str, head: str = HEAD) -> Design:
    return Design(name="m", sources=(SourceFile("m.sv", (head + body + "\nendmodule\n").encode()),), top="m")


def analysis(body: str, head: str = HEAD) -> Analysis:
    return analyse(design(body, head))


def branch(found: Analysis, guard: str, what: str | None = None) -> BranchCondition:
    """The branch whose innermost guard is `guard`."""
    return next(b for b in found.branches if b.guards and b.guards[-1] == guard and what in (None, b.what))


def spelled(steps: tuple[Step, ...] | None) -> list[str]:
    """Steps as text: `3: d[7:4] == 5, go == 1`."""
    assert steps is not None
    return [
        f"{s.cycles}: "
        + ", ".join(
            f"{c.port}{'' if c.high is None else f'[{c.high}:{c.low}]'} {c.op} {c.value}" for c in s.constraints
        )
        for s in steps
    ]


def reset_to(value: str, body: str) -> str:
    return f"always_ff @(posedge clk or negedge rst_n) if (!rst_n) {value} else begin {body} end\n"


def test_a_condition_on_inputs_is_one_step() -> None:
    found = analysis("always_comb begin hit = 0; q = 0; if (go && d == 8'h5a) hit = 1; end")
    assert spelled(branch(found, "go && d == 8'h5a").steps) == ["1: go == 1, d == 90"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("d != 8'd7", "d != 7"),
        ("d < 8'd7", "d <= 6"),
        ("d >= 8'd200", "d >= 200"),
        ("d > 8'd10 && d <= 8'd20", "d >= 11, d <= 20"),
        ("!(d == 8'd9)", "d != 9"),
        ("~d == 8'h0f", "d == 240"),
        ("d[7:4] == 4'h5", "d[7:4] == 5"),
        ("d[3]", "d[3:3] == 1"),
        ("{d[3:0], sel} == 8'ha5", "d[3:0] == 10, sel == 5"),
        ("&d", "d == 255"),
        ("~|d", "d == 0"),
        ("|sel", "sel >= 1"),
        ("d + 8'd3 == 8'd1", "d == 254"),
        ("d - 8'd3 == 8'd1", "d == 4"),
        ("d << 2 == 8'h14", "d[5:0] == 5"),
        ("(d & 8'hf0) == 8'h30", "d[7:4] == 3"),
        ("(d ^ 8'hff) == 8'h01", "d == 254"),
        ("d inside {8'd17}", "d == 17"),
        ("d ==? 8'b1010????", "d[7:4] == 10"),
        ("$signed(d) < -8'sd100", "d >= 128, d <= 155"),
        ("d % 8'd10 == 8'd9 && d > 8'd100 && d < 8'd110", "d == 109"),
    ],
)
def test_operators_are_turned_round(condition: str, expected: str) -> None:
    found = analysis(f"always_comb begin hit = 0; q = 0; if ({condition}) hit = 1; end")
    assert spelled(branch(found, condition).steps) == [f"1: {expected}"]


def test_wires_parameters_functions_and_instances_are_seen_through() -> None:
    head = """
    package p; typedef enum logic [1:0] {IDLE, LOAD = 2'd2} op_t; localparam logic [7:0] KEY = 8'h3c; endpackage
    module leaf #(parameter int K = 0)(input logic [7:0] x, output logic y);
      always_comb begin y = 0; if (x == K) y = 1; end
    endmodule
    module m import p::*; (input logic [7:0] d, input logic [1:0] op, output logic hit, output logic deep);
      function automatic logic [7:0] twist(input logic [7:0] v); return {v[3:0], v[7:4]}; endfunction
    """
    found = analysis(
        "wire [7:0] t = twist(d); wire is_load = op == LOAD; leaf #(.K(77)) u_leaf(.x(d), .y(deep));"
        "always_comb begin hit = 0; if (is_load && t == KEY) hit = 1; end",
        head,
    )
    assert spelled(branch(found, "is_load && t == KEY").steps) == ["1: d == 195, op == 2"]
    inner = branch(found, "x == K")
    assert (inner.instance, spelled(inner.steps)) == ("m.u_leaf", ["1: d == 77"])


def test_case_arms_exclude_earlier_ones_and_default_excludes_all() -> None:
    found = analysis("""always_comb begin
      q = 0; hit = 0;
      casez (sel)
        4'b1???: q = 1;
        4'b01??: q = 2;
        4'd1, 4'd2: q = 3;
        default: hit = 1;
      endcase
    end""")
    arms = [b for b in found.branches if b.what == "case"]
    assert [a.line for a in arms] == [6, 7, 8, 9]
    assert spelled(arms[0].steps) == ["1: sel[3:3] == 1"]
    assert spelled(arms[1].steps) == ["1: sel[3:2] == 1"]
    assert arms[2].guards[-1] == "sel == 4'd1 | 4'd2"
    (step,) = arms[3].steps or ()
    assert step.constraints in ((Constraint("sel", "==", 0),), (Constraint("sel", "==", 3),))


def test_states_are_reached_arm_by_arm_from_reset() -> None:
    found = analysis(
        """typedef enum logic [1:0] {IDLE, ARMED, FIRED} state_t; state_t state;
        """
        + reset_to(
            "state <= IDLE;",
            """case (state)
              IDLE: if (d == 8'h11) state <= ARMED;
              ARMED: if (d == 8'h22) state <= FIRED; else state <= IDLE;
              default: if (go) hit <= 1;
            endcase""",
        )
    )
    assert spelled(branch(found, "state == ARMED").steps) == ["1: d == 17", "1: "]
    assert spelled(branch(found, "go").steps) == ["1: d == 17", "1: d == 34", "1: go == 1"]
    assert branch(found, "go").guards == ("!(!rst_n)", "!(state == IDLE)", "!(state == ARMED)", "state: default", "go")


def test_counters_are_held_as_long_as_they_need() -> None:
    found = analysis(
        "logic [11:0] n;" + reset_to("n <= 0;", "if (stop) n <= 0; else if (go) n <= n + 1; if (n == 1000) hit <= 1;")
    )
    assert spelled(branch(found, "n == 1000").steps) == ["1000: go == 1, stop == 0", "1: "]


def test_counters_count_down_from_what_was_loaded() -> None:
    found = analysis(
        "logic [7:0] n; logic run;"
        + reset_to(
            "begin n <= 0; run <= 0; end",
            "if (go) begin n <= d; run <= 1; end else if (run && n != 0) n <= n - 1; else if (run && stop) hit <= 1;",
        )
    )
    steps = spelled(branch(found, "run && stop", "if").steps)
    assert steps == ["1: go == 1, d == 0", "1: go == 0, stop == 1"]


def test_a_register_may_be_loaded_through_a_delay_line() -> None:
    found = analysis(
        "logic [7:0] a, b;" + reset_to("begin a <= 0; b <= 0; end", "a <= d; b <= a; if (b == 8'h77) hit <= 1;")
    )
    assert spelled(branch(found, "b == 8'h77").steps) == ["1: d == 119", "2: "]


def test_memories_are_written_before_they_are_read() -> None:
    found = analysis(
        "logic [7:0] mem [4];"
        + reset_to(
            "for (int i = 0; i < 4; i++) mem[i] <= 0;", "if (go) mem[sel[1:0]] <= d; else if (mem[2] == 9) hit <= 1;"
        )
    )
    assert spelled(branch(found, "mem[2] == 9", "if").steps) == ["1: go == 1, d == 9, sel[1:0] == 2", "1: go == 0"]


def test_the_reset_branch_needs_the_reset() -> None:
    found = analysis(reset_to("hit <= 0;", "hit <= go;"))
    assert spelled(branch(found, "!rst_n").steps) == ["1: rst_n == 0"]


def test_branches_that_parameters_rule_out_are_listed_with_the_reason() -> None:
    found = analysis("""localparam bit FAST = 0;
    always_comb begin
      hit = 0; q = 0;
      if (FAST) begin
        if (go) hit = 1;
      end
    end""")
    dead = branch(found, "go", "if")
    assert (dead.guards, dead.steps) == (("FAST", "go"), None)
    assert dead.reason == "`FAST` never holds with these parameters"
    assert [(b.line, b.what, b.guards) for b in found.guarded] == [(b.line, b.what, b.guards) for b in found.branches]


def test_what_cannot_happen_or_is_not_followed_has_a_reason() -> None:
    found = analysis(
        """localparam bit FAST = 0; logic lat;
        always_comb begin
          if (FAST) q = 1; else q = 2;
          if (d == 8'd1 && d == 8'd2) hit = 1; else hit = 0;
        end
        always_latch if (go) lat = d[0];
        always_comb if (lat) begin end"""
    )
    assert "never holds with these parameters" in branch(found, "FAST").reason
    assert branch(found, "d == 8'd1 && d == 8'd2").steps is None
    assert branch(found, "d == 8'd1 && d == 8'd2").reason
    assert branch(found, "lat").reason == "it depends on something that is not followed"


def test_reach_leads_to_named_values() -> None:
    found = analysis("logic [3:0] n;" + reset_to("n <= 0;", "if (go) n <= n + 3;") + "assign q = {4'd0, n};")
    assert spelled(found.reach({"n": 9})) == ["3: go == 1", "1: "]
    assert spelled(found.reach({"q": 3, "go": 0})) == ["1: go == 1", "1: go == 0"]
    assert found.reach({"q": 255}) is None
    with pytest.raises(KeyError):
        found.reach({"nothing": 1})


def test_the_same_design_gives_the_same_conditions() -> None:
    body = "logic [7:0] n;" + reset_to("n <= 0;", "if (n[0] == go) n <= n + d; if (n == 8'hc3 && sel == 4) hit <= 1;")
    first = analysis(body)
    second = analyse(replace(design(body), specification="The same RTL.", clock="clk"))
    assert first is not second
    assert first.branches == second.branches
    assert branch(first, "n == 8'hc3 && sel == 4").steps


def test_domains_become_constraints() -> None:
    def spell(domain: object, **options: object) -> list[tuple[object, ...]]:
        return [(c.op, c.value, c.high, c.low) for c in constraints("p", domain, **options)]  # type: ignore[arg-type]

    assert spell(exactly(8, 5)) == [("==", 5, None, None)]
    assert spell(between(8, 3, 9)) == [(">=", 3, None, None), ("<=", 9, None, None)]
    assert spell(other_than(8, 4)) == [("!=", 4, None, None)]
    assert spell(bits(8, 0b11110001, 0b01010001)) == [("==", 1, 0, 0), ("==", 5, 7, 4)]
    assert spell(exactly(4, 5), offset=8, whole=False) == [("==", 5, 11, 8)]
