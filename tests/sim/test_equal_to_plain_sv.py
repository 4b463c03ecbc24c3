"""A SystemVerilog testbench hits what it hits when design and testbench are one plain Verilator build.

A plain build is slow, so script/test compares one design with two clocks; `script/soak equal-sv` compares fifteen.
"""

from __future__ import annotations

import pytest

from tests.soak.equal_sv import compared, subject, testbench

pytestmark = pytest.mark.slow


def test_points_and_hits_are_those_of_a_plain_build(simulator, tmp_path):
    examined = subject("async_fifo")
    found = compared(simulator, examined, testbench(examined, "race", 8), tmp_path)
    assert found.equal, found
    assert found.hits < found.points  # else a lost evaluation would not show
