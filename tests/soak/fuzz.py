"""Readers of foreign bytes meet many more examples than script/test tries, drawn anew: no traceback, no hang."""

from __future__ import annotations

import argparse
import os

import pytest

TESTS = "tests/sim/test_fuzz.py"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=50, help="how many times as many as script/test (default: 50)")
    parser.add_argument("-k", metavar="EXPRESSION", default="", help="only the tests that this fits, as in pytest")


def run(options: argparse.Namespace) -> bool:
    os.environ["LLM4COV_FUZZ"] = str(options.times)  # read when pytest imports the tests
    return pytest.main(["-v", "-m", "", "--timeout", "86400", "--durations=10", TESTS, "-k", options.k]) == 0
