"""Points and hits of cocotb testbenches are those of cocotb's own runner on a plain build: 13 designs."""

from __future__ import annotations

import argparse
import os

import pytest

TESTS = "tests/sim/test_equal_to_plain.py"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-k", metavar="EXPRESSION", default="", help="only the designs that this fits, as in pytest")


def run(options: argparse.Namespace) -> bool:
    os.environ["LLM4COV_SOAK"] = "1"
    return pytest.main(["-v", "-m", "", "--timeout", "3600", "--durations=10", TESTS, "-k", options.k]) == 0
