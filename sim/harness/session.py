"""Runs inside the harness: the Python side of one simulation.

`preload` runs once, before any design is loaded; `prepare` in the child of each testbench; `run` is the entry point
that cocotb's GPI calls at the start of the simulation. What happened is written to `tests.json` in the run folder, for
people and feedback: this process executes untrusted code, so nothing here is proof of anything.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import sys
import traceback
import warnings
from types import TracebackType
from typing import Any

import cocotb
import cocotb._init
import cocotb._shutdown
import cocotb.clock
import cocotb.logging
import cocotb.regression
import cocotb.simulator
import cocotb.triggers
import cocotb.types

TESTBENCH = "testbench"

_state: dict[str, Any] = {"loaded": False, "total": 0, "passed": 0, "failed": 0, "skipped": 0, "errors": []}


def preload() -> None:
    """Import what nearly every testbench needs, so that children find it in memory."""
    import random  # noqa: F401

    import cocotb._xunit_reporter
    import cocotb.queue
    import cocotb.utils

    # The process leaves right after the simulation: taking the interpreter apart would cost a third of a small run.
    cocotb.simulator.stop_simulator = ctypes.CDLL(None).llm4cov_done


def prepare(argument: str) -> None:
    """Take over the settings of this testbench: JSON with `seed` and `top`. The working directory is its folder."""
    settings = json.loads(argument)
    os.environ["COCOTB_RANDOM_SEED"] = str(settings["seed"])
    os.environ["COCOTB_TOPLEVEL"] = settings["top"]
    os.environ["COCOTB_TEST_MODULES"] = TESTBENCH
    os.environ["PWD"] = os.environ["HOME"] = os.environ["TMPDIR"] = os.getcwd()


def run() -> None:
    """Load the testbench and start its tests."""
    cocotb.logging._configure()
    logging.getLogger("cocotb.initialize").setLevel(logging.WARNING)
    cocotb._init.init_package_from_simulation()
    sys.path.insert(0, "")
    warnings.simplefilter("default")
    warnings.filterwarnings("ignore", message="No tests were discovered")  # it becomes an error right after
    try:
        cocotb.regression._setup_regression_manager()
    except BaseException as error:  # whatever the import of a testbench raises, SystemExit included
        _state["errors"].append(_describe(error))
        _write()
        traceback.print_exception(_without_harness(error))
        cocotb.simulator.stop_simulator()
        return
    manager = cocotb.regression._manager_inst
    _watch(manager)
    _state.update(loaded=True, total=len(manager._test_queue))
    _write()
    manager.start_regression()
    cocotb._shutdown.register(manager._on_sim_end)


def _watch(manager: Any) -> None:
    """Note the outcome of each test, and why the failing ones failed."""
    failed, init_failed, tear_down = manager._record_test_failed, manager._record_test_init_failed, manager._tear_down

    def record_failed(*args: Any, **kwargs: Any) -> None:
        failed(*args, **kwargs)
        result = kwargs.get("result")
        message = kwargs.get("msg")
        if result is not None:
            _state["errors"].append(_describe(result))
        elif message:
            _state["errors"].append({"file": None, "line": None, "type": "", "message": message})
        _count(manager)

    def record_init_failed(*args: Any, **kwargs: Any) -> None:
        error = sys.exc_info()[1]
        init_failed(*args, **kwargs)
        if error is not None:
            _state["errors"].append(_describe(error))
        _count(manager)

    def finished() -> None:
        _count(manager)
        tear_down()

    manager._record_test_failed = record_failed
    manager._record_test_init_failed = record_init_failed
    manager._tear_down = finished


def _count(manager: Any) -> None:
    _state.update(passed=manager.passed, failed=manager.failures, skipped=manager.skipped)
    _write()


def _write() -> None:
    with open("tests.json.tmp", "w", encoding="utf-8") as file:
        json.dump(_state | {"errors": _state["errors"][:20]}, file)
    os.replace("tests.json.tmp", "tests.json")


def _describe(error: BaseException) -> dict[str, Any]:
    """Type, message, and the innermost place in the testbench."""
    name = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename and _is_testbench(error.filename):
        return {"file": f"{TESTBENCH}.py", "line": error.lineno, "type": name, "message": error.msg}
    line = None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if _is_testbench(frame.f_code.co_filename):
            line = number
    return {
        "file": f"{TESTBENCH}.py" if line else None,
        "line": line,
        "type": name,
        "message": str(error)[:2000],
    }


def _is_testbench(filename: str) -> bool:
    return os.path.basename(filename) == f"{TESTBENCH}.py"


def _without_harness(error: BaseException) -> BaseException:
    """Drop the frames above the testbench: they tell its author nothing."""
    tb: TracebackType | None = error.__traceback__
    while tb is not None and not _is_testbench(tb.tb_frame.f_code.co_filename):
        tb = tb.tb_next
    return error.with_traceback(tb)
