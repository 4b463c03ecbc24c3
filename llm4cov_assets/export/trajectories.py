"""Trajectories as they went, one row a step."""

from __future__ import annotations

from typing import Any

from llm4cov_assets.export.datasets import BLOB, BOOL, FLOAT, INT, TEXT, Columns, Shape, Source
from llm4cov_assets.export.selection import Selection
from sim.simulation import METRICS

_COLUMNS: dict[str, tuple[str, Any, str]] = {
    "trajectory_id": ("lower(hex(t.trajectory_id))", TEXT, "the draft and the repairs that follow it"),
    "step": ("t.step", INT, "0 for the draft"),
    "transition_id": ("lower(hex(t.transition_id))", TEXT, "the step, for `llm4cov lineage`"),
    "config_hash": ("t.config_hash", TEXT, "configuration (profile) that made it"),
    "stage": ("t.stage", INT, "stage number, null outside the stages"),
    "role": ("t.role", TEXT, "draft, repair, eval_direct, eval_agentic or calibration"),
    "split": ("d.split", TEXT, "train, eval, inbox or adhoc: rows of eval are for analysis, never for training"),
    "design_id": ("lower(hex(t.design_id))", TEXT, "design"),
    "design": ("d.name", TEXT, "its name"),
    "cluster": ("d.cluster", TEXT, "unit of the bootstrap: the design itself, or its generator family"),
    "kind": ("d.kind", TEXT, "hand_written, generated or imported"),
    "rtl_id": ("lower(hex(d.rtl_id))", TEXT, "what simulation sees of the design"),
    "policy": ("t.policy", TEXT, "policy that answered"),
    "policy_id": ("lower(hex(t.policy_id))", TEXT, "hash of all that decides its answers"),
    "engine": ("p.engine", TEXT, "scripted, transformers, vllm or openai"),
    "checkpoint_id": ("lower(hex(p.checkpoint_id))", TEXT, "its weights, null if it has none"),
    "generation_id": ("lower(hex(t.generation_id))", TEXT, "answer"),
    "sample": ("g.sample", INT, "0-based number of the sample"),
    "policy_seed": ("g.seed", INT, "seed of the sampling"),
    "prompt": ("pr.text", TEXT, "what the policy was asked"),
    "answer": ("g.text", TEXT, "what it answered"),
    "error": ("g.error", TEXT, "why the answer is unusable, else empty"),
    "prompt_tokens": ("g.prompt_tokens", INT, "tokens in"),
    "completion_tokens": ("g.completion_tokens", INT, "tokens out"),
    "state_id": ("lower(hex(t.state_id))", TEXT, "state before"),
    "testbench_before_id": ("lower(hex(k.testbench_before))", TEXT, "its testbench, null for a draft"),
    "observation_before": ("seen.feedback", TEXT, "what simulation said of it, null for a draft"),
    "testbench_id": ("lower(hex(t.testbench_id))", TEXT, "testbench after, null when the answer is unusable"),
    "language": ("tb.language", TEXT, "its language"),
    "testbench": ("tb.text", TEXT, "its text, whole"),
    "next_state_id": ("lower(hex(t.next_state_id))", TEXT, "state after"),
    "status": ("t.status", TEXT, "how the simulation ended; unparsable when the answer is unusable"),
    "observation": ("s.feedback", TEXT, "what simulation said"),
    "coverage_before": ("t.score_before", FLOAT, "coverage before, 0 when failing or without testbench"),
    "coverage": ("t.score_after", FLOAT, "coverage after, 0 when failing"),
    "gain": ("t.gain", FLOAT, "coverage minus coverage_before: the reward"),
    **{f"{m}_before": (f"seen.{m}", FLOAT, f"{m} coverage before") for m in METRICS},
    **{m: (f"s.{m}", FLOAT, f"{m} coverage after") for m in METRICS},
    "accepted": ("t.accepted", BOOL, "passed the rejection filter; null where no filter applies"),
    "reject_reason": ("t.reject_reason", TEXT, "why not, else empty"),
    "simulation_id": ("lower(hex(t.simulation_id))", TEXT, "simulation"),
    "build_id": ("lower(hex(s.build_id))", TEXT, "build whose points the hits refer to"),
    "simulator": ("s.simulator", TEXT, "simulator and version"),
    "simulation_seed": ("s.seed", INT, "seed of the simulation"),
    "sim_time_ns": ("s.sim_time_ns", INT, "simulated time"),
    "evaluations": ("s.evaluations", INT, "evaluations of the model"),
    "cpu_s": ("s.cpu_s", FLOAT, "CPU seconds of the simulation"),
    "logical_simulations": ("t.logical_simulations", INT, "simulations that a cold cache would have run (0 or 1)"),
    "n_hit": ("s.n_hit", INT, "points hit"),
    "n_points": ("s.n_points", INT, "points of the build"),
}

_HITS = ("h.hits", BLOB, "points hit, as a bitset: point i is bit i % 8 of byte i // 8")

_POINTS: dict[str, tuple[str, Any, str]] = {
    "build_id": ("lower(hex(build_id))", TEXT, "build"),
    "point": ("point", INT, "0-based index in the bitset"),
    "metric": ("metric", TEXT, "line, branch, expression, toggle or functional"),
    "file": ("file", TEXT, "source file"),
    "line": ("line", INT, "1-based line"),
    "column": ('"column"', INT, "1-based column"),
    "instance": ("instance", TEXT, "hierarchical path"),
    "what": ("what", TEXT, "kind of point as the simulator names it"),
    "source": ("source", TEXT, "source line"),
}


def source(selection: Selection, hits: bool) -> Source:
    """What `export trajectories` reads. With `hits` each step has its bitset; `points` says what the bits mean."""
    where, parameters = selection.where()
    steps = "from rows.transitions as t left join rows.designs as d using (design_id)"
    chosen = _COLUMNS | ({"hits": _HITS} if hits else {})
    return Source(
        kind="trajectories",
        title="trajectories",
        about=(
            "Each row is one step: the state before, the policy's answer, and what simulation said of it. A trajectory"
            " is the rows of one `trajectory_id`, by `step`; step 0 begins without a testbench, each other one goes on"
            " from a state that is given by `state_id`."
        ),
        chosen=(f"select t.design_id {steps} where {where}", parameters),
        picked=(
            "select t.config_hash, t.stage, t.trajectory_id, t.step, t.transition_id, t.generation_id, t.testbench_id,"
            " t.simulation_id, t.policy_id, t.design_id, d.cluster, st.testbench_id as testbench_before,"
            " st.simulation_id as simulation_before"
            f" {steps} left join rows.states as st on st.state_id = t.state_id where {where}",
            parameters,
        ),
        order=("config_hash", "stage nulls first", "trajectory_id", "step", "transition_id"),
        sql=(
            f"select k.place, {_select(chosen)} from picked as k"
            " join rows.transitions as t on t.transition_id = k.transition_id"
            " left join rows.designs as d on d.design_id = k.design_id"
            " left join rows.policies as p on p.policy_id = k.policy_id"
            " left join rows.generations as g on g.generation_id = k.generation_id"
            " left join rows.prompts as pr on pr.prompt_id = g.prompt_id"
            " left join rows.simulations as seen on seen.simulation_id = k.simulation_before"
            " left join rows.testbenches as tb on tb.testbench_id = k.testbench_id"
            " left join rows.simulations as s on s.simulation_id = k.simulation_id"
            + (" left join rows.coverage_hits as h on h.simulation_id = k.simulation_id" if hits else "")
        ),
        shapes=(Shape("steps", _columns(chosen)),),
        tables=(
            "transitions", "designs", "policies", "generations", "prompts", "states", "testbenches", "simulations",
            *(("coverage_hits", "coverage_points") if hits else ()),
        ),
        group=("stage", "role", "split", "policy"),
        settings={"hits": hits},
        training=selection.split == "train",
    )  # fmt: skip


def points() -> tuple[str, Shape]:
    """The coverage points of the builds whose hits are exported: query over `picked`, and shape."""
    builds = (
        "select distinct s.build_id from picked as k join rows.simulations as s on s.simulation_id = k.simulation_id"
    )
    sql = f"select {_select(_POINTS)} from rows.coverage_points where build_id in ({builds}) order by build_id, point"
    return sql, Shape("points", _columns(_POINTS))


def _select(columns: dict[str, tuple[str, Any, str]]) -> str:
    return ", ".join(f'{sql} as "{name}"' for name, (sql, _, _) in columns.items())


def _columns(columns: dict[str, tuple[str, Any, str]]) -> Columns:
    return {name: (kind, comment) for name, (_, kind, comment) in columns.items()}
