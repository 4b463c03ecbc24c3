"""Which of the statuses a run has: a pure function of what the harness saw and what the testbench claims."""

from __future__ import annotations

import signal

from sim.engine import End, Excess, Outcome
from sim.simulation import Language, Limits

FAULTS = frozenset({"timeout", "resource_limit", "crashed", "tool_error"})
"""Statuses that may come from the machine and not from the testbench, see `is_fault`."""

_EXCESSES = {
    Excess.CPU: "stopped after {limits.cpu_s:g} s of processor time of all its processes",
    Excess.PROCESSES: "stopped with more than {limits.processes} processes, or 16 threads for each of these",
    Excess.MEMORY: "stopped when its processes used more than {limits.memory_mb} MiB of memory together",
    Excess.DISK: "stopped when its files were larger than {limits.disk_mb} MiB together",
    Excess.FILES: "stopped with more than {limits.files} files and folders",
    Excess.HIDING: "stopped because it hid what it uses: leave its processes and folders readable",
}
_LIMIT_SIGNALS = {signal.SIGXCPU, signal.SIGXFSZ}


def verdict(outcome: Outcome, deterministic: bool | None, language: Language = "cocotb") -> str:
    """Return the status of one run.

    Order matters: what stopped the run comes before what its tests said, and a result that the inputs do not explain
    (`forged`) before a good one. A design that is not a function of its inputs is never called forged.
    """
    tests = outcome.tests
    if outcome.excess == Excess.WALL:
        return "timeout"
    if outcome.excess:
        return "resource_limit"
    if outcome.signal in _LIMIT_SIGNALS or outcome.end == End.RECORD_FULL or _out_of_memory(outcome):
        return "resource_limit"
    if outcome.signal:
        return "crashed"
    if language == "cocotb" and (not tests.loaded or tests.total == 0):
        # nothing of the testbench ran before it was loaded, so leaving early is a way of not loading
        return "load_error"
    if outcome.end in (End.TIME_LIMIT, End.EVALUATION_LIMIT):
        return _unless_forged("timeout", outcome, deterministic)
    if outcome.end == End.NONCONVERGED:
        return "nonconverged"
    if outcome.end == End.FATAL:
        return "crashed"
    if outcome.end == End.STARVED:
        return "starved"
    if outcome.end in (End.NONE, End.FINISH):
        return "early_exit"
    if language == "systemverilog":  # `$finish`, and having nothing more to do, is no failure by itself
        failed = outcome.errors > 0 or outcome.end == End.STOP
        return _unless_forged("test_failed" if failed else "passed", outcome, deterministic)
    if tests.passed + tests.failed + tests.skipped < tests.total and outcome.end != End.STOP:
        return "early_exit"
    if tests.failed or outcome.end == End.STOP:
        return _unless_forged("test_failed", outcome, deterministic)
    if tests.passed == 0:
        return "load_error"  # every test is skipped: none started
    return _unless_forged("passed", outcome, deterministic)


def explain(status: str, outcome: Outcome, limits: Limits) -> str:
    """One line on what stopped the run, for the end of its log; empty where the log tells it."""
    if outcome.excess in _EXCESSES:
        return _EXCESSES[outcome.excess].format(limits=limits)
    if outcome.excess == Excess.WALL:
        return f"stopped after {limits.wall_s:g} s of wall-clock time, at {outcome.time_ns} ns"
    match outcome.end:
        case End.TIME_LIMIT:
            return f"stopped at the limit of {limits.sim_time_ns} ns of simulated time"
        case End.EVALUATION_LIMIT:
            return f"stopped at the limit of {limits.evaluations} evaluations, at {outcome.time_ns} ns"
        case End.RECORD_FULL:
            return "stopped because the record of the inputs is full: drive fewer or narrower values"
        case End.FINISH:
            return f"the design called $finish at {outcome.time_ns} ns, before the tests ended"
        case End.STARVED:
            return f"at {outcome.time_ns} ns a test waits, and nothing will happen any more: is the clock running?"
        case _:
            pass
    if outcome.signal == signal.SIGXCPU:
        return f"stopped after {limits.cpu_s:g} s of processor time"
    if outcome.signal == signal.SIGXFSZ:
        return f"stopped after writing a file of {limits.output_bytes} bytes"
    if outcome.signal:
        return f"the process was killed by {signal.Signals(outcome.signal).name}"
    if status == "load_error" and outcome.tests.skipped:
        return "every test is skipped: none started"
    if status == "early_exit":
        return "the process ended before the tests did"
    if status == "forged":
        return "replaying the inputs gives other outputs: the testbench changed something else than inputs"
    return ""


def is_fault(status: str, outcome: Outcome | None) -> bool:
    """Whether another try may end differently: limits on wall clock, memory and the like, and failing tools."""
    if outcome is None:  # the harness or a tool failed, or nothing ran
        return status in FAULTS
    return status in FAULTS and outcome.end not in (End.TIME_LIMIT, End.EVALUATION_LIMIT)


def has_coverage(status: str, outcome: Outcome, deterministic: bool | None) -> bool:
    """Whether a result keeps the coverage of its replay: however it ended, unless the replay gave other outputs.

    Coverage of a failing result is for people; it counts as 0 wherever results are compared.
    """
    if status in ("load_error", "forged") or not outcome.replayed:
        return False
    return outcome.same or deterministic is False


def _unless_forged(status: str, outcome: Outcome, deterministic: bool | None) -> str:
    if outcome.replayed and not outcome.same and deterministic is not False:
        return "forged"
    return status


def _out_of_memory(outcome: Outcome) -> bool:
    if any(e.get("type") == "MemoryError" for e in outcome.tests.errors):
        return True
    # an allocation that fails in C++ throws std::bad_alloc, which nothing catches or the harness reports
    fatal = outcome.signal == signal.SIGABRT or outcome.end == End.FATAL
    return fatal and "bad_alloc" in outcome.log[-4000:]
