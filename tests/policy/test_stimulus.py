"""Stimulus programs: text and back, and concrete values for constraints."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llm4cov_assets.policy.aim import holds, satisfy
from llm4cov_assets.policy.stimulus import (
    Burst,
    Drive,
    Program,
    Reset,
    Segment,
    combine,
    from_goal,
    parse,
    render,
)
from sim.conditions import Constraint, Step
from sim.control import Reset as ResetPort
from sim.design import Design, SourceFile
from sim.elaborate import Interface, Port
from sim.goals import Goal

RST_N = ResetPort("rst_n", True, False)
DESIGN = Design(name="fifo", sources=(SourceFile("fifo.sv", b""),), top="fifo")


def interface(*ports: tuple[str, int], clocks=("clk",), resets=(RST_N,), type="logic"):
    inputs = [Port(name, "in", width, type) for name, width in ports]
    others = [Port(name, "in", 1, "logic") for name in (*clocks, *(r.port for r in resets))]
    return Interface(ports=(*others, *inputs, Port("q", "out", 8, "logic")), clocks=clocks, resets=resets)


FIFO = interface(("push", 1), ("data", 12), ("wide", 200))
PROGRAM = Program(
    (
        Segment("fifo.sv:33:if", (Drive((("push", 1), ("data", 0xA5))), Drive((("wide", 1 << 199),), 30), Reset(3))),
        Segment("64 random cycles", (Burst(123, 64),)),
        Segment("nothing", ()),
    )
)


def test_a_program_survives_rendering():
    assert parse(render(PROGRAM, DESIGN, FIFO)) == PROGRAM


def test_a_rendered_file_is_python_that_people_can_read():
    text = render(PROGRAM, DESIGN, FIFO)
    compile(text, "testbench.py", "exec")
    assert "    # goal: fifo.sv:33:if\n    await bench.restart()\n" in text
    assert '    await bench.drive({"push": 1, "data": 0x0a5})\n' in text
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + "\n",
        lambda text: text.replace("0x0a5", "0xa5"),
        lambda text: text.replace("await bench.burst(seed=123, cycles=64)", "await bench.burst(seed=f(), cycles=64)"),
        lambda text: text.replace("        rng = random.Random(seed)\n", ""),
        lambda text: text.replace('"data": 12', '"data": 13'),
        lambda text: text.replace('"rst_n": 0', "**resets"),
        lambda text: "import cocotb\n",
        lambda text: "",
        lambda text: "def broken(:\n",
    ],
)
def test_a_file_that_was_not_rendered_is_no_program(change):
    assert parse(change(render(PROGRAM, DESIGN, FIFO))) is None


def test_port_names_may_be_keywords_or_escaped():
    odd = interface(("in", 1), ("a+b", 4), ('q"\\', 4), ("cycles", 3), clocks=(), resets=())
    program = Program((Segment("odd", (Drive((("in", 1), ("a+b", 3), ('q"\\', 15), ("cycles", 1))),)),))
    text = render(program, Design(name='odd"\\', sources=(), top="odd"), odd)
    compile(text, "testbench.py", "exec")
    assert parse(text) == program


def test_a_goal_label_with_line_breaks_stays_a_comment():
    text = render(Program((Segment("a\nimport os\n", ()),)), DESIGN, FIFO)
    assert parse(text) == Program((Segment("a import os", ()),))


names = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zl", "Zp", "Zs")), min_size=1, max_size=8)
drives = st.builds(
    Drive,
    st.dictionaries(names, st.integers(0, (1 << 70) - 1), max_size=4).map(lambda d: tuple(d.items())),
    st.integers(1, 300),
)
actions = st.one_of(
    drives, st.builds(Burst, st.integers(0, 1 << 40), st.integers(0, 999)), st.builds(Reset, st.integers(1, 9))
)
labels = names.map(lambda text: text.strip())
programs = st.builds(
    Program,
    st.lists(st.builds(Segment, labels, st.lists(actions, max_size=4).map(tuple)), max_size=4).map(tuple),
)


@given(programs)
def test_any_program_survives_rendering(program):
    assert parse(render(program, DESIGN, FIFO)) == program


def test_files_for_the_same_ports_are_combined_without_repeats():
    first = Program((Segment("a", (Burst(1, 9),)),))
    second = Program((Segment("a", (Burst(1, 9),)), Segment("b", (Burst(2, 9),))))
    other = render(second, DESIGN, interface(("x", 1)))
    texts = [render(first, DESIGN, FIFO), "import cocotb\n", other, render(second, DESIGN, FIFO)]
    assert combine(texts) == texts[3]
    assert combine(texts[1:3]) == other
    assert combine(texts[1:2]) is None
    assert combine([]) is None


def test_a_goal_becomes_values_that_meet_its_constraints():
    steps = (
        Step((Constraint("push", "==", 1), Constraint("data", "==", 5, 3, 0), Constraint("data", ">", 2, 11, 8)), 2),
        Step((Constraint("data", "!=", 0x305),)),
        Step((Constraint("q", "==", 1), Constraint("clk", "==", 1))),
    )
    segment = from_goal(Goal("g", steps, (), ()), FIFO)
    assert segment == Segment("g", (Drive((("push", 1), ("data", 0x305)), 2), Drive((("data", 0x304),)), Drive(())))


def test_a_reset_inside_a_goal_is_released_afterwards():
    steps = (Step((Constraint("rst_n", "==", 0),), 2), Step((Constraint("push", "==", 1),)))
    segment = from_goal(Goal("g", steps, (), ()), FIFO)
    assert segment.actions == (Drive((("rst_n", 0),), 2), Drive((("push", 1), ("rst_n", 1))))


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [("==", 9, 9), ("!=", 0, 1), ("!=", 3, 0), ("<", 9, 8), ("<=", 9, 9), (">", 9, 10), (">=", 9, 9)],
)
def test_a_range_gives_its_boundary(op, value, expected):
    assert satisfy([Constraint("p", op, value)], 8) == expected


def test_a_value_that_is_held_is_kept_when_it_differs_already():
    assert satisfy([Constraint("p", "!=", 3)], 8, held=77) == 77


fields = st.tuples(st.integers(0, 7), st.integers(0, 7)).map(sorted)
constraints = st.builds(
    lambda field, op, value: Constraint("p", op, value & (1 << field[1] - field[0] + 1) - 1, field[1], field[0]),
    fields,
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    st.integers(0, 255),
)


@given(constraints, st.integers(0, 255), st.integers(0, 99))
def test_one_constraint_is_met_whenever_it_can_be(constraint, held, seed):
    possible = any(holds(constraint, value) for value in range(256))
    for rng in (None, Random(seed)):
        value = satisfy([constraint], 8, held, rng)
        assert 0 <= value < 256
        assert holds(constraint, value) == possible


@example(0, [Constraint("p", "!=", 0, 0, 0), Constraint("p", "<", 0, 0, 0)])
@given(st.integers(0, 255), st.lists(constraints, min_size=2, max_size=3))
def test_several_constraints_are_met_as_far_as_boundaries_allow(held, several):
    value = satisfy(several, 8, held)
    assert sum(holds(c, value) for c in several) >= min(1, sum(any(holds(c, v) for v in range(256)) for c in several))
