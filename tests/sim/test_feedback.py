"""What a policy reads about a simulation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sim.conditions import BranchCondition
from sim.feedback import LogError, errors, feedback, merge_toggles
from sim.simulation import STATUSES, Coverage, UncoveredItem

COVERAGE = Coverage(overall=0.7, line=0.5, branch=0.75, expression=None, toggle=0.85)
POINTS = {"line": (5, 10), "branch": (6, 8), "toggle": (17, 20)}

TRACEBACK = """\
     0.00ns INFO     cocotb.regression   running test.a (1/1)
     4.00ns WARNING  cocotb.regression   a failed
                                          Traceback (most recent call last):
                                            File "/tmp/x7/y/testbench.py", line 12, in a
                                              await drive(dut)
                                            File "/usr/lib/python3.11/site-packages/cocotb/handle.py", line 99, in get
                                              raise AttributeError(name)
                                          AttributeError: no attribute 'foo' in <object at 0x7f889911aa>
     4.00ns INFO     ** TESTS=1 PASS=0 FAIL=1 SKIP=0   0.31 **
"""


def item(line: int, what: str, metric: str = "branch", instance: str = "top", source: str = "") -> UncoveredItem:
    return UncoveredItem(metric, "top.sv", line, instance, what, source or f"source {line}")


def branch(line: int, what: str, *guards: str, instance: str = "top") -> BranchCondition:
    return BranchCondition("top.sv", line, what, instance, guards, None)


def lines_of(text: str) -> list[str]:
    """The source lines in the order in which they are listed."""
    return [line.partition("  ")[0] for line in text.splitlines() if line.startswith("top.sv:")]


def test_status_comes_first_then_the_table_then_the_uncovered_points():
    text = feedback("passed", COVERAGE, POINTS, [item(4, "if")])
    head, overall, *_ = text.splitlines()
    assert head.startswith("status: passed") and overall == "coverage: 70.0 % overall"
    assert "  line            5 of     10   50.0 %" in text
    assert "expression" not in text
    assert text.index("toggle") < text.index("uncovered") < text.index("top.sv:4  source 4\n  branch if")


def test_only_full_coverage_reads_100_percent():
    almost = feedback("passed", Coverage(overall=0.9999), {"line": (9999, 10000)}, [])
    assert "99.9 % overall" in almost
    assert "100.0 % overall" in feedback("passed", Coverage(overall=1.0), {"line": (3, 3)}, [])


def test_a_failing_run_shows_the_first_errors_with_file_line_and_source():
    text = feedback("load_error", Coverage(), {}, [], log=TRACEBACK)
    assert "error: testbench.py:12: AttributeError: no attribute 'foo' in <object at 0x...>" in text
    assert "    await drive(dut)" in text
    assert "uncovered" not in text


def test_a_failed_test_shows_its_error_and_its_coverage():
    text = feedback("test_failed", COVERAGE, POINTS, [item(4, "if")], log=TRACEBACK)
    assert text.index("error: ") < text.index("coverage: ") < text.index("uncovered")


def test_a_passed_run_shows_no_errors_however_the_log_reads():
    assert "error" not in feedback("passed", COVERAGE, POINTS, [], log=TRACEBACK)


def test_the_source_of_a_line_comes_from_the_testbench_where_the_log_has_none():
    log = 'Traceback (most recent call last):\n  File "tb.py", line 2, in f\nValueError: x\n'
    assert errors(log, testbench="a = 1\nb = f(a)\n") == [LogError("tb.py", 2, "b = f(a)", "ValueError: x")]


def test_errors_of_simulator_and_compiler_are_read():
    log = (
        "%Error: /tmp/z/t.sv:3:5: syntax error, unexpected foo\n    3 | module foo\n      |   ^~\n"
        "[40] %Fatal: t.sv:12: Assertion failed in top.x: boo\nt.cpp:7:1: error: no such thing\n%Error: a fourth\n"
    )
    assert errors(log) == [
        LogError("t.sv", 3, "module foo", "syntax error, unexpected foo"),
        LogError("t.sv", 12, "", "Assertion failed in top.x: boo"),
        LogError("t.cpp", 7, "", "no such thing"),
    ]


def test_without_a_known_error_the_end_of_the_log_stands_in_without_times():
    log = "one\ntwo\n\nthree\nfour\n** TEST  PASS  0.31 **\n"
    assert [e.message for e in errors(log)] == ["two", "three", "four"]
    assert errors("") == []


def test_toggle_bits_merge_into_ranges():
    bits = [f"q[{i}]:{edge}" for i in (0, 1, 2, 5) for edge in ("0->1", "1->0")] + ["q[7]:0->1", "en:1->0"]
    assert merge_toggles(bits) == ["q[2:0] both edges", "q[5] both edges", "q[7] 0->1", "en 1->0"]


def test_toggle_words_with_the_same_bits_merge_too():
    bits = [f"mem[{w}][{b}]:{e}" for w in range(16) for b in range(8) for e in ("0->1", "1->0")]
    assert merge_toggles(bits) == ["mem[15:0][7:0] both edges"]
    assert merge_toggles(["s.a[1]:0->1", "g[0].z:0->1"]) == ["s.a[1] 0->1", "g[0].z 0->1"]


def test_guards_tell_when_a_line_is_reached():
    text = feedback(
        "passed", COVERAGE, POINTS, [item(9, "if")], [branch(9, "if", "!(rst)", "a || b"), branch(9, "else", "x")]
    )
    assert "  branch if when !(rst) && (a || b)" in text


def test_lines_that_open_the_way_to_others_come_first_and_toggles_last():
    uncovered = [
        item(3, "x[0]:0->1", "toggle"),
        item(5, "if"),
        item(7, "if"),
        item(8, "if"),
        item(9, "else"),
    ]
    guards = [branch(5, "if", "z"), branch(7, "if", "a"), branch(8, "if", "a", "b"), branch(9, "else", "a", "!(c)")]
    assert lines_of(feedback("passed", COVERAGE, POINTS, uncovered, guards)) == [
        "top.sv:7",
        "top.sv:5",
        "top.sv:8",
        "top.sv:9",
        "top.sv:3",
    ]


def test_instances_are_named_only_where_there_are_several():
    both = [item(4, "if", instance="top.a"), item(4, "if", instance="top.b")]
    assert "branch if in top.a, top.b" in feedback("passed", COVERAGE, POINTS, both)
    assert " in top" not in feedback("passed", COVERAGE, POINTS, both[:1])


def test_what_does_not_fit_is_counted():
    uncovered = [item(line, what) for line in range(1, 200) for what in ("if", "else")]
    text = feedback("passed", COVERAGE, POINTS, uncovered, limit=1000)
    shown = text.count("\n  branch if") + text.count("\n  branch else")
    assert 800 < len(text) <= 1000
    assert text.endswith(f"... and {398 - shown} more uncovered points on {199 - shown // 2} lines")


@given(
    st.sampled_from(STATUSES),
    st.lists(
        st.builds(item, st.integers(1, 50), st.text(max_size=30), st.sampled_from(["line", "toggle"])), max_size=60
    ),
    st.lists(st.sampled_from([*TRACEBACK.splitlines(), "%Error: x", 'File "a", line 9', "  ", "é\x00"])).map("\n".join),
    st.integers(0, 3000),
)
def test_feedback_never_exceeds_its_limit(status, uncovered, log, limit):
    text = feedback(status, COVERAGE, POINTS, uncovered, log=log, limit=limit)
    assert len(text) <= limit
    assert text == feedback(status, COVERAGE, POINTS, uncovered, log=log, limit=limit)


def test_points_that_are_excluded_are_counted_but_not_listed():
    text = feedback("passed", COVERAGE, POINTS, [item(4, "if")], excluded=3)
    assert "not to be reached: 3 uncovered points\nuncovered, most useful first:\ntop.sv:4" in text
    assert "excluded" not in feedback("passed", COVERAGE, POINTS, [item(4, "if")])
    assert feedback("passed", COVERAGE, POINTS, [], excluded=3).endswith("3 uncovered points")
