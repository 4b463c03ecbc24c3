"""The one entry for simulations: designs are built once, testbenches run once, then results come from the cache."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from sim import usage
from sim.backend import Backend, LocalPool
from sim.build import Build, Builder, BuildError, Variant
from sim.cache import SCHEMA_VERSION, SimulationCache
from sim.conditions import BranchCondition
from sim.coverage import Points, summarise
from sim.design import Design, DesignError, Exclusion
from sim.engine import LOG_BYTES, Engine, EngineDied, Outcome, untold_errors
from sim.exclusions import Excluded, without_excluded
from sim.feedback import feedback
from sim.files import remove_stale_folders
from sim.identity import sha256
from sim.occupancy import occupy
from sim.simulation import STATUSES, Coverage, Limits, Simulation, Testbench
from sim.testbench import STAND_IN_VERSION, Prepared, prepared
from sim.toolchain import Toolchain, ToolError, find_toolchain, refuse_full_disk
from sim.verdict import explain, has_coverage, is_fault, verdict

MOST_PER_TASK = 16  # testbenches that one worker takes at a time


@dataclass
class Counters:
    """What a Simulator has done so far. `simulated` counts runs whose result is new, `from_cache` the others
    (duplicates in one call included)."""

    simulated: int = 0
    from_cache: int = 0
    builds: int = 0
    builds_from_cache: int = 0
    build_cpu_s: float = 0.0
    sim_cpu_s: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, **amounts: float) -> None:
        with self._lock:
            for name, amount in amounts.items():
                setattr(self, name, getattr(self, name) + amount)

    def as_dict(self) -> dict[str, float]:
        with self._lock:
            return {k: v for k, v in vars(self).items() if not k.startswith("_")}


@dataclass(frozen=True)
class _Task:
    """Testbenches of one design for one worker, with their keys."""

    design: Design
    testbenches: tuple[tuple[str, Testbench], ...]  # (simulation id, testbench)
    limits: Limits
    seed: int


class Simulator(AbstractContextManager["Simulator"]):
    """Builds designs and runs testbenches on them, everything below `home`.

    `workers` (default: one a processor) run at a time. `retry_faults` runs results again that may have been the
    machine's fault (wall clock, memory, tools); without `read_cache` everything runs again, and is stored. Use it as
    a context manager, or call `close`: it leaves no processes.
    Several Simulators, also of several processes, may share a home.
    """

    def __init__(
        self,
        home: Path,
        *,
        workers: int | None = None,
        retry_faults: bool = False,
        read_cache: bool = True,
        backend: Backend | None = None,
    ) -> None:
        self.home = home.resolve()
        self.workers = workers or len(os.sched_getaffinity(0))
        self.retry_faults = retry_faults
        self.read_cache = read_cache
        self.counters = Counters()
        self.toolchain: Toolchain = find_toolchain(self.home)
        self._builder = Builder(self.toolchain)
        self._excluded: dict[tuple[str, tuple[Exclusion, ...]], Excluded] = {}
        self.cache = SimulationCache(self.home / "cache" / "simulations")
        self._occupied = occupy(self.home)
        runs = self.home / "cache" / "run"
        for folder in (runs, self.toolchain.scratch, self.toolchain.builds):
            remove_stale_folders(folder)
        self._pool = LocalPool(self.workers, lambda: Engine(self.toolchain, runs))
        self._backend: Backend = backend or self._pool

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything that still runs."""
        self._backend.close()
        self._pool.close()
        if self._occupied is not None:
            self._occupied.close()
            self._occupied = None
            self._count()

    def _count(self) -> None:
        done = self.counters
        usage.add(
            self.home / "cache",
            {
                "simulations": (done.from_cache, done.simulated) if self.read_cache else (0, 0),
                "builds": (done.builds_from_cache, done.builds),
            },
        )

    def build(self, design: Design) -> Build:
        """Return the build of a design, from `<home>/builds` if it is there. Raises BuildError."""
        return self._pool.call(lambda engine: self._build(design, engine))

    def points(self, build_id: str) -> Points:
        """The coverage points of a finished build, in the order that hit bitsets refer to. Raises KeyError."""
        return self.finished_build(build_id).points

    def known(self, build_id: str) -> Build | None:
        """The finished build of this id, or None. Raises BuildError for a failed one."""
        return self._builder.known(build_id)

    def finished_build(self, build_id: str) -> Build:
        """The finished build of this id. Raises KeyError, and BuildError for a failed one."""
        build = self.known(build_id)
        if build is None:
            raise KeyError(build_id)
        return build

    def run_many(
        self, design: Design, testbenches: Sequence[Testbench], *, limits: Limits | None = None, seed: int = 0
    ) -> Iterator[Simulation]:
        """Simulate testbenches on one design; results come in the order of the testbenches, as soon as they are there.

        A testbench that occurs twice is simulated once. Nothing is raised for bad designs or testbenches: every
        testbench has a result, whose status says what went wrong. OSError when the disk is full or cannot be written.
        """
        size = max(1, min(MOST_PER_TASK, -(-len(testbenches) // self.workers)))
        jobs = [(design, testbenches[i : i + size]) for i in range(0, len(testbenches), size)]
        done: dict[int, list[Simulation]] = {}
        due = 0
        for index, results in self.run_batches(jobs, limits=limits, seed=seed):
            done[index] = results
            while due in done:
                yield from done.pop(due)
                due += 1

    def run_batches(
        self, jobs: Sequence[tuple[Design, Sequence[Testbench]]], *, limits: Limits | None = None, seed: int = 0
    ) -> Iterator[tuple[int, list[Simulation]]]:
        """Simulate the testbenches of many designs; yields (position of the job, results in order) as jobs finish.

        The same rules as for `run_many`, over all jobs: what occurs twice is simulated once.
        """
        limits = limits or Limits()
        batch = _Batch(jobs)
        missing: list[list[tuple[str, Testbench]]] = [[] for _ in jobs]
        for index, (design, testbenches) in enumerate(jobs):
            for testbench in testbenches:
                key = self.key(design, testbench, limits, seed)
                simulation_id = sha256(key)[:32]
                batch.expect(index, simulation_id)
                if batch.is_new(simulation_id):
                    known = self._from_cache(key, simulation_id, design)
                    if known is None:
                        missing[index].append((simulation_id, testbench))
                    else:
                        batch.put(known)
        yield from self._shown(batch.finished(), jobs)
        tasks = [
            _Task(jobs[i][0], tuple(part[n : n + MOST_PER_TASK]), limits, seed)
            for i, part in enumerate(missing)
            for n in range(0, len(part), MOST_PER_TASK)
        ]
        for _, results in self._backend.map(self._work, tasks):
            for simulation in results:
                batch.put(simulation)
            yield from self._shown(batch.finished(), jobs)
        self.counters.add(from_cache=batch.served - sum(len(t.testbenches) for t in tasks))

    def _shown(
        self, finished: Iterator[tuple[int, list[Simulation]]], jobs: Sequence[tuple[Design, Sequence[Testbench]]]
    ) -> Iterator[tuple[int, list[Simulation]]]:
        """Finished jobs as their design shows them: its exclusions are no part of what is cached."""
        for index, results in finished:
            design, testbenches = jobs[index]
            if design.exclusions:
                pairs = zip(results, testbenches, strict=True)
                results = [self._without_excluded(simulation, design, testbench) for simulation, testbench in pairs]
            yield index, results

    def _without_excluded(self, simulation: Simulation, design: Design, testbench: Testbench) -> Simulation:
        if not simulation.hits:
            return simulation
        key = (simulation.build_id, design.exclusions)
        if key not in self._excluded:
            self._excluded[key] = Excluded(self.points(simulation.build_id), design.exclusions)
        shown = without_excluded(simulation, self._excluded[key])
        if not shown.excluded:
            return shown
        text = feedback(
            shown.status, shown.coverage, shown.points, shown.uncovered, _branches(design), shown.log,
            testbench=testbench.text, excluded=len(shown.excluded),
        )  # fmt: skip
        return replace(shown, feedback=text)

    def run_examined(
        self,
        design: Design,
        testbench: Testbench,
        *,
        waves: Path | None = None,
        fsm: bool = False,
        limits: Limits | None = None,
        seed: int = 0,
    ) -> Simulation:
        """Simulate one testbench as `run_many` does, and replay the record of its inputs for more.

        `waves` is a file that gets the waveforms (VCD, or FST if its name ends with `.fst`). With `fsm` the result
        has the coverage of the design's state machines too, as far as Verilator finds them; where it cannot,
        `metrics_unavailable` says why. The testbench runs once more for the record, which may be large. Raises
        BuildError, and ToolError when the simulator fails.
        """
        limits = limits or Limits()
        [result] = self.run_many(design, [testbench], limits=limits, seed=seed)
        if not result.hits:
            return result

        def examine(engine: Engine) -> Simulation:
            record = self._record(engine, design, testbench, limits, seed)
            if waves is not None:
                variant: Variant = "fst" if waves.suffix == ".fst" else "vcd"
                build = self._builder.build(design, engine.inspect, variant, retry_faults=self.retry_faults)
                engine.replay(build, record, waves=waves.resolve())
            return self._with_state_machines(engine, design, record, result) if fsm else result

        return self._pool.call(examine)

    def _with_state_machines(self, engine: Engine, design: Design, record: bytes, result: Simulation) -> Simulation:
        """The result with the coverage of a probe build, on which the same inputs are replayed."""
        missing = {m: why for m, why in result.metrics_unavailable.items() if m != "fsm"}
        try:
            probe = self._builder.build(design, engine.inspect, "fsm", retry_faults=self.retry_faults)
        except BuildError as error:
            return replace(result, metrics_unavailable=missing | {"fsm": error.message})
        if not probe.points:
            return replace(result, metrics_unavailable=missing | {"fsm": "Verilator finds no state machine"})
        hits = probe.hits(engine.replay(probe, record))
        coverage, totals, _ = summarise(probe.points, hits)
        return replace(
            result,
            coverage=replace(result.coverage, fsm=coverage.fsm),
            points=result.points | totals,
            uncovered=result.uncovered + probe.uncovered(hits),
            metrics_unavailable=missing,
        )

    def _record(self, engine: Engine, design: Design, testbench: Testbench, limits: Limits, seed: int) -> bytes:
        build = self._build(design, engine)
        with prepared(self.toolchain, design, build, testbench, engine.check) as ready:
            if ready.program is None:
                raise ToolError(ready.log)
            return engine.run(build, ready.program, limits=limits, seed=seed, keep_record=True).record

    def key(self, design: Design, testbench: Testbench, limits: Limits, seed: int) -> dict[str, Any]:
        """Everything that decides the result of a simulation: what it is cached by."""
        return {
            "schema": SCHEMA_VERSION,
            "rtl_id": design.rtl_id,
            "testbench_id": testbench.testbench_id,
            "language": testbench.language,
            "simulator": self.toolchain.simulator,
            "build": self._builder.build_id(design),
            "seed": seed,
            "limits": asdict(limits),
        } | ({"stand_in": STAND_IN_VERSION} if testbench.language == "systemverilog" else {})

    def _from_cache(self, key: dict[str, Any], simulation_id: str, design: Design) -> Simulation | None:
        stored = self.cache.get(key) if self.read_cache else None
        if stored is None or (self.retry_faults and stored.get("fault")):
            return None
        try:
            build = self._builder.known(stored["build_id"]) if stored["hits"] else None
            return _unpack(stored, simulation_id, design, build)
        except (KeyError, TypeError, ValueError, AttributeError, BuildError):
            return None  # damaged, or its build is gone

    def _work(self, engine: Engine, task: _Task) -> list[Simulation]:
        """Build the design and run the testbenches of a task on one engine."""
        design = task.design
        try:
            build = self._build(design, engine)
        except (BuildError, ToolError) as error:
            status = error.status if isinstance(error, BuildError) else "tool_error"
            return [
                self._finish(self._blank(i, testbench, task), status, None, str(error), testbench, task)
                for i, testbench in task.testbenches
            ]
        branches = _branches(design)
        return [self._simulate(engine, build, branches, i, testbench, task) for i, testbench in task.testbenches]

    def _build(self, design: Design, engine: Engine) -> Build:
        build = self._builder.build(design, engine.inspect, retry_faults=self.retry_faults)
        if build.cached:
            self.counters.add(builds_from_cache=1)
        else:
            self.counters.add(builds=1, build_cpu_s=build.cpu_s)
        return build

    def _simulate(
        self,
        engine: Engine,
        build: Build,
        branches: Sequence[BranchCondition],
        simulation_id: str,
        testbench: Testbench,
        task: _Task,
    ) -> Simulation:
        """Run one testbench, once more if the first try ended in a way that may be the machine's fault."""
        outcome: Outcome | None = None
        with prepared(self.toolchain, task.design, build, testbench, engine.check) as ready:
            status, log = ready.status, ready.log
            for attempt in (1, 2) if ready.program is not None else ():
                outcome, status, log = self._try(engine, build, ready, testbench, task)
                if not is_fault(status, outcome) or attempt == 2:
                    break
        blank = replace(
            self._blank(simulation_id, testbench, task),
            build_id=build.build_id,
            build_cached=build.cached,
            metrics_unavailable=build.metrics_unavailable,
            cpu_s=round(ready.cpu_s, 4),
        )
        if outcome is not None:
            blank = replace(
                blank,
                sim_time_ns=outcome.time_ns,
                evaluations=outcome.evaluations,
                wall_s=round(outcome.wall_s, 4),
                cpu_s=round(ready.cpu_s + outcome.cpu_s, 4),
            )
            if has_coverage(status, outcome, build.deterministic):
                hits = build.hits(outcome.counters)
                coverage, totals, instances = summarise(build.points, hits)
                blank = replace(
                    blank,
                    hits=hits,
                    coverage=coverage,
                    points=totals,
                    instances=instances,
                    uncovered=build.uncovered(hits),
                )
        self.counters.add(sim_cpu_s=blank.cpu_s)
        return self._finish(blank, status, outcome, log, testbench, task, branches)

    def _try(
        self, engine: Engine, build: Build, ready: Prepared, testbench: Testbench, task: _Task
    ) -> tuple[Outcome | None, str, str]:
        assert ready.program is not None
        try:
            outcome = engine.run(build, ready.program, limits=task.limits, seed=task.seed)
        except EngineDied as error:
            # the harness is beyond the reach of honest testbenches: this one killed processes at random
            return None, "crashed", f"the simulation took its harness down: {error}"
        except ToolError as error:
            return None, "tool_error", str(error)
        status = verdict(outcome, build.deterministic, testbench.language)
        lines = [
            ready.notes,
            *untold_errors(outcome.tests, testbench.text, outcome.log),
            explain(status, outcome, task.limits),
        ]
        return outcome, status, "\n".join([outcome.log.rstrip("\n"), *(line for line in lines if line), ""])

    def _finish(
        self,
        blank: Simulation,
        status: str,
        outcome: Outcome | None,
        log: str,
        testbench: Testbench,
        task: _Task,
        branches: Sequence[BranchCondition] = (),
    ) -> Simulation:
        """Add status, log and feedback, and store the result."""
        text = feedback(status, blank.coverage, blank.points, blank.uncovered, branches, log, testbench=testbench.text)
        simulation = replace(blank, status=status, log=log[-LOG_BYTES:], feedback=text)
        if status != "passed":
            refuse_full_disk(self.home)
        key = self.key(task.design, testbench, task.limits, task.seed)
        self.cache.put(key, _pack(simulation) | {"fault": is_fault(status, outcome)})
        self.counters.add(simulated=1)
        return simulation

    def _blank(self, simulation_id: str, testbench: Testbench, task: _Task) -> Simulation:
        design = task.design
        return Simulation(
            simulation_id=simulation_id,
            design_id=design.design_id,
            rtl_id=design.rtl_id,
            testbench_id=testbench.testbench_id,
            build_id=self._builder.build_id(design),
            language=testbench.language,
            status="tool_error",
            simulator=self.toolchain.simulator,
            seed=task.seed,
        )


class _Batch:
    """Results of many jobs on their way: which job waits for which simulation."""

    def __init__(self, jobs: Sequence[tuple[Design, Sequence[Testbench]]]) -> None:
        self._designs = [design for design, _ in jobs]
        self._expected: list[list[str]] = [[] for _ in jobs]
        self._waiting: dict[str, list[int]] = {}
        self._left = [0] * len(jobs)
        self._results: dict[str, Simulation] = {}
        self._open = set(range(len(jobs)))
        self.served = 0

    def expect(self, job: int, simulation_id: str) -> None:
        self._expected[job].append(simulation_id)

    def is_new(self, simulation_id: str) -> bool:
        """True the first time that this simulation is asked for."""
        if simulation_id in self._waiting:
            return False
        self._waiting[simulation_id] = []
        return True

    def put(self, simulation: Simulation) -> None:
        self._results[simulation.simulation_id] = simulation

    def finished(self) -> Iterator[tuple[int, list[Simulation]]]:
        """Jobs that have all their results and were not given out before."""
        for job in sorted(self._open):
            if all(i in self._results for i in self._expected[job]):
                self._open.remove(job)
                self.served += len(self._expected[job])
                design_id = self._designs[job].design_id
                yield job, [replace(self._results[i], design_id=design_id) for i in self._expected[job]]


def _branches(design: Design) -> Sequence[BranchCondition]:
    """The conditions of the design's branches; none where the analysis does not understand the design."""
    from sim.elaborate import analyse

    try:
        return analyse(design).guarded
    except DesignError:
        return ()


_SHOWN = ("uncovered", "excluded", "coverage_without_excluded", "stale_exclusions")
"""Fields of a simulation that follow from its hits, its build and the exclusions of the design that asks."""


def _pack(simulation: Simulation) -> dict[str, Any]:
    """What the cache keeps. The uncovered points follow from hits and build: they would be most of an entry."""
    fields = {k: v for k, v in vars(simulation).items() if k not in (*_SHOWN, "hits", "coverage", "cached")}
    return fields | {"hits": simulation.hits.hex(), "coverage": simulation.coverage.as_dict()}


def _unpack(stored: dict[str, Any], simulation_id: str, design: Design, build: Build | None) -> Simulation:
    hits = bytes.fromhex(stored["hits"])
    if hits and build is None:
        raise KeyError(stored["build_id"])
    if stored["status"] not in STATUSES or not all(isinstance(stored[k], str) for k in ("feedback", "log")):
        raise ValueError(simulation_id)
    fields = {k: v for k, v in stored.items() if k not in (*_SHOWN, "fault")}
    fields |= {
        "simulation_id": simulation_id,
        "design_id": design.design_id,
        "hits": hits,
        "coverage": Coverage(**stored["coverage"]),
        "points": {m: (hit, total) for m, (hit, total) in stored["points"].items()},
        "instances": tuple(stored["instances"]),
        "uncovered": build.uncovered(hits) if build else (),
        "cached": True,
        "build_cached": True,
    }
    return Simulation(**fields)
