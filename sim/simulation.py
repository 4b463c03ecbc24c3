"""What goes into a simulation and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from sim.identity import content_id

Language = Literal["cocotb", "systemverilog"]

METRICS = ("line", "branch", "expression", "toggle")
"""The metrics whose unweighted mean is `overall`."""

SIDE_METRICS = ("fsm", "functional")
"""Metrics that stand beside `overall` and never enter it."""

STATUSES = (
    "passed", "test_failed", "load_error", "compile_error", "design_error", "tool_error", "timeout", "starved",
    "nonconverged", "crashed", "resource_limit", "early_exit", "policy_violation", "forged", "unsupported",
)  # fmt: skip


@dataclass(frozen=True)
class Testbench:
    """One complete stimulus file; never a patch."""

    __test__ = False  # not a pytest class

    text: str
    language: Language = "cocotb"

    @cached_property
    def testbench_id(self) -> str:
        return content_id("testbench", self.language, self.text)


@dataclass(frozen=True)
class Limits:
    """When a simulation is stopped. The first two are deterministic: reaching one is `timeout`, cached like any
    result. The others are faults of the machine or the testbench (`timeout` for wall clock, else `resource_limit`).

    `cpu_s` (processor time), `memory_mb` (2**20 bytes), `processes`, `disk_mb` (2**20 bytes) and `files` (folders
    included) hold for all processes of a testbench together, and are looked at every 50 ms; `cpu_s` and `memory_mb`
    also for each at once. `output_bytes` is the size of the largest file that it may write, its log included.
    """

    sim_time_ns: int = 1_000_000
    evaluations: int = 1_000_000
    wall_s: float = 30.0
    cpu_s: float = 30.0
    memory_mb: int = 2048
    output_bytes: int = 16 << 20
    processes: int = 64
    disk_mb: int = 256
    files: int = 10_000


@dataclass(frozen=True)
class Coverage:
    """Fractions in [0, 1]; None where the build has no such points."""

    overall: float | None = None
    line: float | None = None
    branch: float | None = None
    expression: float | None = None
    toggle: float | None = None
    fsm: float | None = None
    functional: float | None = None

    def as_dict(self) -> dict[str, float | None]:
        return {"overall": self.overall, **{m: getattr(self, m) for m in (*METRICS, *SIDE_METRICS)}}


@dataclass(frozen=True)
class CoveragePoint:
    """One point of a build, in the build's fixed order. `metric` is one of METRICS or SIDE_METRICS; `instance` is
    the hierarchical path below the top (the top's own name first); `what` is the simulator's comment (for example
    `if`, `else`, `case`, `block`, or `data[3]` for a toggle); `source` is the stripped source line."""

    metric: str
    file: str
    line: int
    column: int
    instance: str
    what: str
    source: str


@dataclass(frozen=True)
class UncoveredItem:
    """A point that no evaluation reached, as shown to people and policies."""

    metric: str
    file: str
    line: int
    instance: str
    what: str
    source: str


@dataclass(frozen=True)
class ExcludedItem(UncoveredItem):
    """An uncovered point that the design's exclusions leave out of sign-off, with their reason."""

    reason: str


@dataclass(frozen=True)
class Simulation:
    """The result of one testbench on one design; see `as_json` for the public form.

    `hits` is a bitset over the build's points (point i is bit i % 8 of byte i // 8), empty when nothing ran.
    `coverage` of a failing simulation is all None and its `overall` counts as 0 (`score`).
    For a design with exclusions, excluded points are in `excluded` instead of `uncovered`, and
    `coverage_without_excluded` is over the points that are not excluded; nothing else depends on exclusions.
    `stale_exclusions` describes those that fit no point of the build.
    """

    simulation_id: str
    design_id: str
    rtl_id: str
    testbench_id: str
    build_id: str
    language: Language
    status: str
    coverage: Coverage = Coverage()
    points: dict[str, tuple[int, int]] = field(default_factory=dict)
    metrics_unavailable: dict[str, str] = field(default_factory=dict)
    instances: tuple[dict[str, Any], ...] = ()
    uncovered: tuple[UncoveredItem, ...] = ()
    excluded: tuple[ExcludedItem, ...] = ()
    coverage_without_excluded: Coverage | None = None
    stale_exclusions: tuple[str, ...] = ()
    cached: bool = False
    build_cached: bool = False
    simulator: str = ""
    seed: int = 0
    sim_time_ns: int = 0
    evaluations: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    feedback: str = ""
    log: str = ""
    hits: bytes = b""

    @property
    def running(self) -> bool:
        """Status `passed`, `test_failed`, or `timeout` with coverage. Everything else is failing."""
        if self.status == "timeout":
            return self.coverage.overall is not None
        return self.status in ("passed", "test_failed")

    @property
    def score(self) -> float:
        """Overall coverage; 0 for a failing simulation."""
        return (self.coverage.overall or 0.0) if self.running else 0.0

    def as_json(self) -> dict[str, Any]:
        """The public result object of `llm4cov sim --json`."""
        return {
            "simulation_id": self.simulation_id,
            "design_id": self.design_id,
            "rtl_id": self.rtl_id,
            "testbench_id": self.testbench_id,
            "language": self.language,
            "status": self.status,
            "coverage": self.coverage.as_dict(),
            "coverage_without_excluded": (self.coverage_without_excluded or self.coverage).as_dict(),
            "points": {m: list(p) for m, p in self.points.items()},
            "metrics_unavailable": self.metrics_unavailable,
            "instances": list(self.instances),
            "uncovered": [vars(u) for u in self.uncovered],
            "excluded": [vars(e) for e in self.excluded],
            "stale_exclusions": list(self.stale_exclusions),
            "cached": self.cached,
            "build_cached": self.build_cached,
            "simulator": self.simulator,
            "seed": self.seed,
            "sim_time_ns": self.sim_time_ns,
            "wall_s": self.wall_s,
            "cpu_s": self.cpu_s,
            "feedback": self.feedback,
            "log": self.log,
        }

    def with_cached(self, cached: bool) -> Simulation:
        return replace(self, cached=cached)
