"""Objects as rows: frames with exactly a table's own columns (see `warehouse/schema.py`), missing values null.

Provenance is added when rows are stored. Ids of scoped tables cover the configuration, so functions that make them
take its hash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import polars as pl

from llm4cov_assets.policy.base import Generation, Policy, State
from llm4cov_assets.survey_rows import DETAIL_TABLES, survey_rows
from sim.coverage import popcount
from sim.design import Design
from sim.identity import content_id, sha256
from sim.simulation import CoveragePoint, Simulation, Testbench
from sim.survey import n_tokens, survey
from warehouse.frames import POLARS_TYPES
from warehouse.schema import TABLES

if TYPE_CHECKING:
    from llm4cov_assets.ingest.overlap import Overlap
    from llm4cov_assets.ingest.records import DesignRecord
    from llm4cov_assets.learning.evaluation import Episode
    from llm4cov_assets.learning.rollout import Step
    from sim.build import Build
    from sim.elaborate import Analysis


def table_schema(table: str) -> dict[str, Any]:
    """The polars schema of a table's own columns."""
    return {column.name: POLARS_TYPES[column.type] for column in TABLES[table].columns}


def table_frame(table: str, rows: Iterable[Mapping[str, Any]] = ()) -> pl.DataFrame:
    """A frame of `table`; rows are mappings by column name, columns that a row lacks are null. Without rows: an empty
    frame of the right types."""
    schema = table_schema(table)
    found = list(rows)
    return pl.DataFrame({name: pl.Series(name, [r.get(name) for r in found], dtype) for name, dtype in schema.items()})


def design_row(
    design: Design,
    *,
    split: str,
    kind: str,
    source: str,
    cluster: str | None = None,
    benchmark: str = "",
    analysis: Analysis | None = None,
    deterministic: bool | None = None,
    declared_difficulty: str = "",
) -> dict[str, Any]:
    """One row of `designs`. `cluster` is the generator family; None makes the design a cluster of its own. Without
    an analysis (a design that does not elaborate) the counts of the interface are 0.

    Under the name `details` it has the rows of the tables that say more of the design; see `design_tables`."""
    interface = analysis.interface if analysis else None
    surveyed = survey(design) if analysis else None
    branches = analysis.branches if analysis else ()
    files = (*design.sources, *design.includes)
    return {
        "design_id": design.design_id,
        "rtl_id": design.rtl_id,
        "name": design.name,
        "split": split,
        "kind": kind,
        "cluster": cluster or design.name,
        "benchmark": benchmark,
        "source": source,
        "top": design.top,
        "n_files": len(files),
        "n_lines": sum(_n_lines(f.text) for f in files),
        "n_tokens": surveyed.n_tokens if surveyed else sum(n_tokens(f) for f in files),
        "n_ports": len(interface.ports) if interface else 0,
        "input_bits": sum(p.width for p in interface.ports if p.direction == "in") if interface else 0,
        "output_bits": sum(p.width for p in interface.ports if p.direction == "out") if interface else 0,
        "clocks": list(interface.clocks) if interface else [],
        "resets": [("!" if r.active_low else "") + r.port for r in interface.resets] if interface else [],
        "combinational": interface.combinational if interface else False,
        "n_branches": len(branches),
        "n_conditions_known": sum(b.steps is not None for b in branches),
        "difficulty": surveyed.difficulty if surveyed else None,
        "difficulty_label": surveyed.difficulty_label if surveyed else None,
        "declared_difficulty": declared_difficulty,
        "deterministic": deterministic,
        "instance": design.instance,
        "specification": design.specification,
        "details": survey_rows(design, analysis, surveyed) if analysis and surveyed else {},
    }


def record_row(record: DesignRecord, analysis: Analysis | None) -> dict[str, Any]:
    """One row of `designs` for a design in its place; see `design_row`."""
    return design_row(
        record.design,
        split=record.split,
        kind=record.kind,
        source=record.source,
        cluster=record.cluster,
        benchmark=record.benchmark,
        analysis=analysis,
        deterministic=record.deterministic,
        declared_difficulty=record.difficulty,
    )


def design_rows(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """`designs` of what `design_row` made."""
    return table_frame("designs", rows)


def file_rows(designs: Iterable[Design]) -> pl.DataFrame:
    """`design_files`: sources and headers, and the specification if there is one."""
    rows: list[dict[str, Any]] = []
    for design in designs:
        files = [("source", f.path, f.content, f.text, n_tokens(f)) for f in design.sources]
        files += [("include", f.path, f.content, f.text, n_tokens(f)) for f in design.includes]
        if design.specification:
            spec = design.specification
            files.append(("specification", "specification.md", spec.encode("utf-8", "surrogatepass"), spec, None))
        rows += [
            {
                "design_id": design.design_id,
                "path": path,
                "role": role,
                "sha256": sha256(content),
                "n_lines": _n_lines(text),
                "n_tokens": tokens,
                "text": text,
            }
            for role, path, content, text, tokens in files
        ]
    return table_frame("design_files", rows)


def imported_target_rows(designs: Iterable[Design], simulator: str = "xcelium") -> pl.DataFrame:
    """`targets` that designs brought along, which hold for another simulator than ours. A metric is `overall`, or what
    the source calls it; for an instance below the top it is `metric@instance`."""
    return table_frame(
        "targets",
        (
            {
                "design_id": design.design_id,
                "simulator": simulator,
                "metric": metric,
                "target": target,
                "origin": "imported",
                "reference": None,
                "simulations": 0,
            }
            for design in designs
            for metric, target in design.targets
        ),
    )


def exclusion_rows(designs: Iterable[Design]) -> pl.DataFrame:
    """`exclusions`, in the order in which the designs have them."""
    return table_frame(
        "exclusions",
        (
            {"design_id": design.design_id, "number": number, **asdict(exclusion)}
            for design in designs
            for number, exclusion in enumerate(design.exclusions)
        ),
    )


def design_tables(rows: Iterable[Mapping[str, Any]], designs: Sequence[Design]) -> dict[str, pl.DataFrame]:
    """Rows of designs by table: `rows` are those of `design_row`, in any order."""
    found = list(rows)
    return {
        "designs": design_rows(found),
        "design_files": file_rows(designs),
        "exclusions": exclusion_rows(designs),
        "targets": imported_target_rows(designs),
        **{
            table: table_frame(table, (detail for row in found for detail in row.get("details", {}).get(table, ())))
            for table in DETAIL_TABLES
        },
    }


def overlap_row(
    overlap: Overlap, *, kind: str, design_id: str, other_design_id: str, split: str, other_split: str
) -> dict[str, Any]:
    """One row of `design_overlaps`; `kind` is one of `ingest/copies.py`."""
    measured = {name: getattr(overlap, name) for name in ("share", "exact", "identical", "file", "other_file")}
    ids = {"design_id": design_id, "other_design_id": other_design_id}
    return {**ids, "kind": kind, "split": split, "other_split": other_split, **measured}


def build_check_row(design: Design, simulation: Simulation, build: Build) -> dict[str, Any]:
    """One row of `build_checks`: the build of a design and its run of reset and clocks alone."""
    return {
        "design_id": design.design_id,
        "simulator": build.simulator,
        "build_id": build.build_id,
        "simulation_id": simulation.simulation_id,
        "status": simulation.status,
        "n_points": len(build.points),
        "unavailable": [f"{metric}: {why}" for metric, why in build.metrics_unavailable.items() if metric != "fsm"],
        "deterministic": build.deterministic,
        "delays": build.delays,
        "reset_coverage": simulation.coverage.overall,
        "build_cpu_s": build.cpu_s,
    }


def policy_rows(policies: Iterable[Policy], settings: Mapping[str, str] | None = None) -> pl.DataFrame:
    """`policies`; `settings` gives readable summaries by policy name."""
    return table_frame(
        "policies",
        (
            {
                "policy_id": policy.policy_id,
                "name": policy.name,
                "engine": policy.engine,
                "checkpoint_id": policy.checkpoint_id,
                "settings": (settings or {}).get(policy.name, ""),
            }
            for policy in policies
        ),
    )


def prompt_rows(generations: Iterable[Generation]) -> pl.DataFrame:
    """`prompts`: one row per text, with the first state it was made for."""
    found: dict[str, dict[str, str]] = {}
    for g in generations:
        found.setdefault(g.prompt_id, {"prompt_id": g.prompt_id, "state_id": g.state_id, "text": g.prompt})
    return table_frame("prompts", found.values())


def generation_rows(generations: Iterable[Generation]) -> pl.DataFrame:
    """`generations`, usable or not."""
    return table_frame(
        "generations",
        (
            {
                "generation_id": g.generation_id,
                "prompt_id": g.prompt_id,
                "policy_id": g.policy_id,
                "state_id": g.state_id,
                "sample": g.sample,
                "seed": g.seed,
                "text": g.answer,
                "testbench_id": g.testbench.testbench_id if g.testbench else None,
                "finish_reason": g.finish_reason,
                "error": g.error,
                "prompt_tokens": g.prompt_tokens,
                "completion_tokens": g.completion_tokens,
                "latency_s": g.latency_s,
                "retries": g.retries,
                "cost_usd": g.cost_usd,
            }
            for g in generations
        ),
    )


def testbench_rows(testbenches: Iterable[Testbench | None]) -> pl.DataFrame:
    """`testbenches`, each once; None (an unusable answer) is left out."""
    unique = {t.testbench_id: t for t in testbenches if t}
    return table_frame(
        "testbenches",
        (
            {"testbench_id": i, "language": t.language, "text": t.text, "n_lines": _n_lines(t.text)}
            for i, t in unique.items()
        ),
    )


def simulation_rows(simulations: Iterable[Simulation | None]) -> pl.DataFrame:
    """`simulations`, one row per key; None is left out."""
    unique = {s.simulation_id: s for s in simulations if s}
    return table_frame(
        "simulations",
        (
            {
                "simulation_id": s.simulation_id,
                "design_id": s.design_id,
                "rtl_id": s.rtl_id,
                "testbench_id": s.testbench_id,
                "build_id": s.build_id,
                "language": s.language,
                "status": s.status,
                **(s.coverage.as_dict() if s.running else {}),
                "n_hit": sum(hit for hit, _ in s.points.values()),
                "n_points": sum(total for _, total in s.points.values()),
                "simulator": s.simulator,
                "seed": s.seed,
                "sim_time_ns": s.sim_time_ns,
                "evaluations": s.evaluations,
                "wall_s": s.wall_s,
                "cpu_s": s.cpu_s,
                "feedback": s.feedback,
                "log": s.log,
            }
            for s in unique.values()
        ),
    )


def hit_rows(simulations: Iterable[Simulation | None]) -> pl.DataFrame:
    """`coverage_hits` of the simulations that have any points."""
    unique = {s.simulation_id: s for s in simulations if s and s.hits}
    return table_frame(
        "coverage_hits",
        (
            {"simulation_id": i, "build_id": s.build_id, "hits": s.hits, "n_hit": popcount(s.hits)}
            for i, s in unique.items()
        ),
    )


def point_rows(build_id: str, rtl_id: str, points: Sequence[CoveragePoint]) -> pl.DataFrame:
    """`coverage_points` of one build."""
    return table_frame(
        "coverage_points",
        (
            {
                "build_id": build_id,
                "point": i,
                "rtl_id": rtl_id,
                "metric": p.metric,
                "file": p.file,
                "line": p.line,
                "column": p.column,
                "instance": p.instance,
                "what": p.what,
                "source": p.source,
            }
            for i, p in enumerate(points)
        ),
    )


def state_rows(states: Iterable[State | None]) -> pl.DataFrame:
    """`states`, each once; None (an unusable answer led nowhere) is left out."""
    unique = {s.state_id: s for s in states if s}
    return table_frame(
        "states",
        (
            {
                "state_id": i,
                "design_id": s.design.design_id,
                "testbench_id": s.testbench.testbench_id if s.testbench else None,
                "simulation_id": s.simulation.simulation_id if s.simulation else None,
                "score": s.score,
            }
            for i, s in unique.items()
        ),
    )


def selection_rows(selected: pl.DataFrame, *, config_hash: str, stage: int | None) -> pl.DataFrame:
    """`selections` of what `selection.select` chose."""
    rows = selected.to_dicts()
    for row in rows:
        row["selection_id"] = content_id("selection", config_hash, stage, row["state_id"], row["reason"])
    return table_frame("selections", rows)


def trajectory_id(config_hash: str, stage: int | None, role: str, generation_id: str) -> str:
    """Id of the trajectory that begins with a generation."""
    return content_id("trajectory", config_hash, stage, role, generation_id)


def answer_tables(generations: Sequence[Generation]) -> dict[str, pl.DataFrame]:
    """Rows of what policies answered: prompts, generations and testbenches."""
    return {
        "prompts": prompt_rows(generations),
        "generations": generation_rows(generations),
        "testbenches": testbench_rows(g.testbench for g in generations),
    }


def observation_tables(
    simulations: Sequence[Simulation], points: Callable[[str], Sequence[CoveragePoint]]
) -> dict[str, pl.DataFrame]:
    """Rows of what simulation observed: simulations, points and hits. `points` gives the points of a build."""
    builds = {s.build_id: s.rtl_id for s in simulations if s.hits}
    found = [point_rows(build_id, rtl_id, points(build_id)) for build_id, rtl_id in builds.items()]
    return {
        "simulations": simulation_rows(simulations),
        "coverage_points": pl.concat([table_frame("coverage_points"), *found]),
        "coverage_hits": hit_rows(simulations),
    }


def transition_rows(
    steps: Iterable[Step],
    *,
    config_hash: str,
    stage: int | None,
    role: str,
    policy: str,
    trajectories: Mapping[str, str] | None = None,
    number: int | None = None,
) -> pl.DataFrame:
    """`transitions` of drafts (`role` draft) or repairs (`role` repair), before any filter.

    A draft begins a trajectory. A repair goes on with that of the draft whose state it repairs: `trajectories` gives
    it by state id (a state that is not there begins one of its own). `number` is the place in the trajectory, by
    default 0 for drafts and 1 for repairs.
    """
    rows: list[dict[str, Any]] = []
    for step in steps:
        begins = trajectory_id(config_hash, stage, role, step.generation.generation_id)
        trajectory = (trajectories or {}).get(step.state.state_id, begins)
        at = (0 if step.state.testbench is None else 1) if number is None else number
        identity = content_id("transition", config_hash, stage, role, step.generation.generation_id, trajectory, at)
        rows.append(_transition(step, identity, trajectory, at, role, policy))
    return table_frame("transitions", rows)


def episode_rows(episodes: Iterable[Episode], policy: Policy, *, config_hash: str, stage: int | None) -> pl.DataFrame:
    """`transitions` of evaluation episodes (roles eval_direct and eval_agentic); no filter applies to them."""
    rows: list[dict[str, Any]] = []
    for episode in episodes:
        role = f"eval_{episode.mode}"
        trajectory = _episode_trajectory(episode, policy, config_hash)
        for number, step in enumerate(episode.steps):
            identity = content_id(
                "transition", config_hash, stage, role, step.generation.generation_id, trajectory, number
            )
            rows.append(_transition(step, identity, trajectory, number, role, policy.name))
    return table_frame("transitions", rows)


def evaluation_rows(
    episodes: Iterable[Episode],
    policy: Policy,
    *,
    config_hash: str,
    clusters: Mapping[str, str],
    benchmarks: Mapping[str, str],
    targets: Mapping[str, Mapping[str, float]] | None = None,
) -> pl.DataFrame:
    """`evaluations`: one row per episode. `clusters`, `benchmarks` and `targets` ({metric: fraction}) are by design
    id; a design without targets has `target_met` null."""
    rows: list[dict[str, Any]] = []
    for episode in episodes:
        design_id = episode.design.design_id
        best = episode.best.simulation
        coverage = episode.coverage.as_dict()
        rows.append(
            {
                "evaluation_id": content_id(
                    "evaluation", config_hash, policy.policy_id, episode.mode, design_id, episode.sample
                ),
                "policy_id": policy.policy_id,
                "policy": policy.name,
                "checkpoint_id": policy.checkpoint_id,
                "benchmark": benchmarks[design_id],
                "mode": episode.mode,
                "design_id": design_id,
                "cluster": clusters[design_id],
                "sample": episode.sample,
                "status": episode.status,
                **coverage,
                "overall": episode.best.score,
                "passed": episode.status == "passed",
                "target_met": episode.meets((targets or {}).get(design_id, {})),
                "rounds": episode.rounds,
                "simulations": episode.simulations,
                "cached_simulations": episode.cached_simulations,
                "completion_tokens": episode.completion_tokens,
                "trajectory_id": _episode_trajectory(episode, policy, config_hash),
                "simulation_id": best.simulation_id if best else None,
                "testbench_id": episode.best.testbench.testbench_id if episode.best.testbench else None,
            }
        )
    return table_frame("evaluations", rows)


def _episode_trajectory(episode: Episode, policy: Policy, config_hash: str) -> str:
    design_id = episode.design.design_id
    return content_id("trajectory", config_hash, policy.policy_id, episode.mode, design_id, episode.sample)


def _transition(step: Step, identity: str, trajectory: str, number: int, role: str, policy: str) -> dict[str, Any]:
    return {
        "transition_id": identity,
        "trajectory_id": trajectory,
        "step": number,
        "role": role,
        "design_id": step.state.design.design_id,
        "policy_id": step.generation.policy_id,
        "policy": policy,
        "state_id": step.state.state_id,
        "generation_id": step.generation.generation_id,
        "next_state_id": step.next_state.state_id if step.next_state else None,
        "testbench_id": step.generation.testbench.testbench_id if step.generation.testbench else None,
        "simulation_id": step.simulation.simulation_id if step.simulation else None,
        "status": step.status,
        "score_before": step.state.score,
        "score_after": step.score_after,
        "gain": step.gain,
        "logical_simulations": int(step.logical),
        "cached": step.cached,
        "accepted": None,
        "reject_reason": "",
    }


def _n_lines(text: str) -> int:
    return len(text.splitlines())
