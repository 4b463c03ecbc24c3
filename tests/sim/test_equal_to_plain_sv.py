"""A SystemVerilog testbench hits what it hits when design and testbench are one plain Verilator build.

A plain build is slow, so script/test compares three designs; `script/soak equal-sv` compares fifteen.
"""

from __future__ import annotations

import pytest

from tests.soak.equal_sv import compared, subject, testbench

pytestmark = pytest.mark.slow
CASES = (("counter", "race"), ("async_fifo", "race"), ("packet_router", "nonblocking"))


@pytest.mark.parametrize(("name", "style"), CASES)
def test_points_and_hits_are_those_of_a_plain_build(simulator, tmp_path, name, style):
    examined = subject(name)
    found = compared(simulator, examined, testbench(examined, style, 8), tmp_path)
    assert found.equal, found
    assert found.hits < found.points  # else a lost evaluation would not show
