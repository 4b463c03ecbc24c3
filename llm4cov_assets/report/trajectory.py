"""One trajectory of one design, step by step: testbench, what was uncovered, what came of it."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sim.simulation import UncoveredItem

if TYPE_CHECKING:
    import duckdb

_STEPS = """
select
  t.step, t.design, t.role, t.policy, t.status, t.before, t.after, t.gain, t.accepted,
  coalesce(observed.feedback, '') as observed,
  coalesce(earlier.text, '') as testbench_before,
  coalesce(now.text, '') as testbench,
  t.testbench_id, t.simulation_id, len(t.uncovered) as n_uncovered, t.hit, t.lost
from trajectory_steps_all as t
left join testbenches as now on now.testbench_id = t.testbench_id
left join testbenches as earlier on earlier.testbench_id = t.testbench_before
left join simulations as observed on observed.simulation_id = t.simulation_before
where t.trajectory_id = ?
order by t.step
"""

_MATCHES = """
select trajectory_id from transitions_all where starts_with(trajectory_id, $prefix)
union
select trajectory_id from transitions_all where starts_with(transition_id, $prefix)
union
select trajectory_id from evaluations_all where starts_with(evaluation_id, $prefix)
order by trajectory_id
limit 5
"""

_RTL = """
select f.path, f.text
from design_files as f
join designs as d using (design_id)
where d.name = ? and f.role in ('source', 'include')
order by f.path
"""


@dataclass(frozen=True)
class TrajectoryStep:
    """One answer: from the state it saw to the state it made.

    `before` and `after` are coverage, 0 when failing. `observed` is the feedback that the policy read, empty for a
    draft. `testbench_before` is the file that a repair started from, empty for a draft; `testbench` is empty when the
    answer was unusable. Of the `n_uncovered` points of `before`, `hit` are reached now; `lost` are no longer reached.
    """

    step: int
    design: str
    role: str
    policy: str
    status: str
    before: float
    after: float
    gain: float
    accepted: bool | None
    observed: str
    testbench_before: str
    testbench: str
    testbench_id: str | None
    simulation_id: str | None
    n_uncovered: int
    hit: tuple[UncoveredItem, ...]
    lost: tuple[UncoveredItem, ...]

    @property
    def title(self) -> str:
        """What it is and what coverage did, in one line."""
        name = "Draft" if self.step == 0 else f"Round {self.step}"
        return f"{name}: {self.before:.3f} → {self.after:.3f} ({self.gain:+.3f}), {self.status}"

    @property
    def outcome(self) -> str:
        """How many points it hits, by metric, and loses, as a sentence."""
        kinds = Counter(item.metric for item in self.hit)
        which = ": " + ", ".join(f"{n} {metric}" for metric, n in kinds.items()) if kinds else ""
        lost = f", and loses {len(self.lost)}" if self.lost else ""
        return f"It hits {len(self.hit)} of the {self.n_uncovered} uncovered points{which}{lost}."

    @property
    def uncovered(self) -> str:
        """What the policy was told to be uncovered: the part of `observed` after its table of metrics."""
        _, found, items = self.observed.partition("\nuncovered, most useful first:\n")
        return items.strip("\n") if found else self.observed.strip("\n")

    @property
    def change(self) -> list[str]:
        """Lines of the testbench with ` `, `+` or `-` in front and `@@` between distant ones: what a repair changed,
        or the tests of a draft. Empty when nothing changed, or the answer was unusable."""
        if not self.testbench:
            return []
        if not self.testbench_before:
            return [f"+{line}" for line in _tests(self.testbench)]
        lines = difflib.unified_diff(self.testbench_before.splitlines(), self.testbench.splitlines(), n=2, lineterm="")
        return ["@@" if line.startswith("@@") else line for line in lines][2:]


@dataclass(frozen=True)
class Trajectory:
    """The steps of one trajectory, in order; never empty.

    `avg_random` is what scripted/random reaches on the design in agentic evaluation, None where that is not known;
    `rtl` are the design's files by path.
    """

    trajectory_id: str
    steps: tuple[TrajectoryStep, ...]
    avg_random: float | None
    rtl: Mapping[str, str]

    @property
    def design(self) -> str:
        return self.steps[0].design

    @property
    def best(self) -> float:
        """Highest coverage of any step."""
        return max(step.after for step in self.steps)

    def as_json(self) -> dict[str, Any]:
        """Everything but the RTL, as JSON can hold it."""
        steps = [asdict(step) | {"change": step.change} for step in self.steps]
        return {
            "trajectory_id": self.trajectory_id,
            "design": self.design,
            "avg_random": self.avg_random,
            "steps": steps,
        }


def find(connection: duckdb.DuckDBPyConnection, what: str | None) -> list[str]:
    """Ids of the trajectories that `what` may mean, at most five.

    `what` is the name of an evaluation design (its most telling trajectory of the current configuration), or the
    beginning of the id of a trajectory, a transition or an evaluation; None means the most telling one of all.
    """
    ask = "select trajectory_id from episodes where $what is null or design = $what order by telling limit 1"
    found = connection.execute(ask, {"what": what}).fetchall()
    if not found and what:
        found = connection.execute(_MATCHES, {"prefix": what.strip().lower()}).fetchall()
    return [trajectory_id for (trajectory_id,) in found]


def read(connection: duckdb.DuckDBPyConnection, trajectory_id: str) -> Trajectory:
    """The trajectory with this id, of any configuration; LookupError if there is none."""
    cursor = connection.execute(_STEPS, [trajectory_id])
    columns = [column[0] for column in cursor.description or ()]
    rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    if not rows:
        raise LookupError(f"no trajectory {trajectory_id}")
    steps = tuple(
        TrajectoryStep(**row | {name: tuple(UncoveredItem(**item) for item in row[name]) for name in ("hit", "lost")})
        for row in rows
    )
    ask = "select avg_random from episodes_all where trajectory_id = ?"
    random = connection.execute(ask, [trajectory_id]).fetchone()
    files = connection.execute(_RTL, [steps[0].design]).fetchall()
    return Trajectory(trajectory_id, steps, random[0] if random else None, dict(files))


def by_line(items: Sequence[UncoveredItem]) -> dict[str, dict[int, tuple[str, str]]]:
    """Points by file and line, in order: the source line, and what lies there, with toggles counted."""
    kinds: dict[str, dict[int, tuple[str, list[str]]]] = {}
    for item in items:
        _, found = kinds.setdefault(item.file, {}).setdefault(item.line, (item.source, []))
        found.append(item.what if item.metric != "toggle" else "toggle")
    return {
        file: {line: (source, _counted(found)) for line, (source, found) in sorted(lines.items())}
        for file, lines in sorted(kinds.items())
    }


def markdown(trajectory: Trajectory) -> str:
    """The steps as markdown: what was uncovered (the first lines of it), what changed, what it gained."""
    first, random = trajectory.steps[0], trajectory.avg_random
    against = "" if random is None else f"; scripted/random reaches {random:.3f} on average"
    parts = [f"`{trajectory.trajectory_id}`: {first.policy} on {trajectory.design}{against}"]
    for step in trajectory.steps:
        parts.append(f"**{step.title}**")
        if step.observed:
            parts.append(_fence(step.uncovered.splitlines()[:8], ""))
        if step.change:
            parts.append(_fence(step.change, "diff"))
        parts.append(step.outcome)
    return "\n\n".join(parts)


def _fence(lines: Sequence[str], language: str) -> str:
    return "\n".join([f"```{language}", *lines, "```"])


def _counted(kinds: Sequence[str]) -> str:
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    return ", ".join(f"{kind} ×{n}" if n > 1 else kind for kind, n in counts.items())


def _tests(testbench: str) -> list[str]:
    """The lines from the first cocotb test on; all of them where there is none."""
    lines = testbench.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("@cocotb.test")), 0)
    return lines[first:]
