"""A small warehouse whose every row is consistent with every other: two training designs, one evaluation design,
three stages, five evaluated policies.

Each design has ten points: lines 0-3, branches 4-5, expressions 6-7, toggles 8-9.
`fifo` gets better from stage to stage and never hits point 9; `uart` hits point 0 and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import polars as pl

from sim.identity import content_id, sha256
from warehouse import frames
from warehouse.schema import TABLES
from warehouse.store import Provenance, Store

CONFIG = "c0ffee00c0ffee00"
METRICS = {"line": (0, 1, 2, 3), "branch": (4, 5), "expression": (6, 7), "toggle": (8, 9)}
N_POINTS = 10
FAILING: frozenset[int] = frozenset()
CPU_S = 0.05


def bitset(points: frozenset[int] | set[int]) -> bytes:
    """Point i is bit i % 8 of byte i // 8."""
    value = sum(1 << i for i in points)
    return value.to_bytes((N_POINTS + 7) // 8, "little")


def coverage(points: frozenset[int] | set[int]) -> dict[str, float]:
    """Fractions by metric, and their mean."""
    metrics = {m: len(points & set(its)) / len(its) for m, its in METRICS.items()}
    return {"overall": sum(metrics.values()) / len(metrics), **metrics}


@dataclass(frozen=True)
class Step:
    """One step as written: its state before and after, and the ids of what it made."""

    transition_id: str
    trajectory_id: str
    step: int
    score: float
    state_id: str
    testbench_id: str | None
    simulation_id: str | None
    generation_id: str


@dataclass
class Example:
    """Collects rows and writes them to a store, referenced tables first."""

    config_hash: str = CONFIG
    run: str = "run-1"
    rows: dict[tuple[str, int | None, str, str | None], list[dict[str, Any]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    steps: dict[str, Step] = field(default_factory=dict)

    def add(self, table: str, stage: int | None, asset: str, partition: str | None, **row: Any) -> None:
        """Add one row; nullable columns that are not given are null."""
        absent = {c.name: None for c in TABLES[table].columns if c.nullable}
        self.rows[table, stage, asset, partition].append(absent | row)

    def write(self, store: Store) -> None:
        for table in TABLES:
            for (name, stage, asset, partition), rows in self.rows.items():
                if name == table:
                    schema = {c.name: frames.POLARS_TYPES[c.type] for c in TABLES[table].columns}
                    provenance = Provenance(stage, self.config_hash, self.run, asset, partition, "1")
                    store.write(table, pl.DataFrame(rows, schema=schema), provenance)

    def design(self, name: str, split: str, known: int) -> str:
        design_id = content_id("design", name)
        at = (None, "designs", "batch_0")
        self.add(
            "designs", *at,
            design_id=design_id, rtl_id=content_id("rtl", name), name=name, split=split, kind="hand_written",
            cluster=name, benchmark="hand_written" if split == "eval" else "", source="corpus", top=name, n_files=1,
            n_lines=40, n_tokens=200, n_ports=5, input_bits=10, output_bits=1, clocks=["clk"], resets=["!rst_n"],
            combinational=False, n_branches=4, n_conditions_known=known, difficulty=1 - known / 4,
            difficulty_label="easy" if known == 4 else "hard", declared_difficulty="", deterministic=True, instance="",
            specification="",
        )  # fmt: skip
        self.details(design_id, name, at)
        self.add(
            "design_files", *at,
            design_id=design_id, path=f"{name}.sv", role="source", sha256=sha256(name.encode()), n_lines=40,
            n_tokens=200, text=f"module {name};",
        )  # fmt: skip
        self.add(
            "exclusions", *at,
            design_id=design_id, number=0, file=f"{name[:2]}*", first_line=10, last_line=10, instance="", metric="",
            reason=f"tied off in {name}",
        )  # fmt: skip
        for point in range(N_POINTS):
            metric = next(m for m, its in METRICS.items() if point in its)
            self.add(
                "coverage_points", *at,
                build_id=content_id("build", name), point=point, rtl_id=content_id("rtl", name), metric=metric,
                file=f"{name}.sv", line=10 + point, column=3, instance=name, what="block", source=f"line {point};",
            )  # fmt: skip
        return design_id

    def details(self, design_id: str, name: str, at: tuple[int | None, str, str | None]) -> None:
        """What elaboration says of a design: five ports, an instance, and one of everything else."""
        ports = (("clk", "in", 1, "clock"), ("rst_n", "in", 1, "reset"), ("valid", "in", 1, "valid"),
                 ("data", "in", 7, "payload"), ("ready", "out", 1, "ready"))  # fmt: skip
        for number, (port, direction, width, role) in enumerate(ports):
            self.add(
                "design_ports", *at,
                design_id=design_id, number=number, name=port, direction=direction, width=width, type="logic",
                role=role,
            )  # fmt: skip
        for number, (path, module) in enumerate(((name, name), (f"{name}.u_core", "core"))):
            self.add("design_instances", *at, design_id=design_id, number=number, path=path, module=module)
        self.add(
            "design_parameters", *at,
            design_id=design_id, number=0, name="WIDTH", kind="parameter", type="int", value="7", default_value="8",
            overridable=True,
        )  # fmt: skip
        for number, member in enumerate(("IDLE", "BUSY")):
            self.add(
                "design_enums", *at,
                design_id=design_id, number=number, scope=name, enum="state_t", member=member, value=str(number),
                width=1, file=f"{name}.sv", line=3,
            )  # fmt: skip
        for number, value in enumerate(("90", None)):
            self.add(
                "design_constants", *at,
                design_id=design_id, number=number, module=name, subject="data", operator="==",
                literal="7'h5a" if value else "7'b1??????", value=value, width=7, kind="case",
                file=f"{name}.sv", line=9,
            )  # fmt: skip
        self.add("design_includes", *at, design_id=design_id, file=f"{name}.sv", line=1, included="common.svh")
        self.add(
            "design_handshakes", *at,
            design_id=design_id, number=0, valid="valid", ready="ready", drives="valid", payload=["data"],
            valid_low=False, ready_low=False, evidence="both",
        )  # fmt: skip

    def policy(self, name: str, checkpoint_id: str | None = None) -> str:
        policy_id = content_id("policy", name, self.config_hash)
        self.add(
            "policies", None, "designs", None,
            policy_id=policy_id, name=name, engine="transformers" if checkpoint_id else "scripted",
            checkpoint_id=checkpoint_id, settings="temperature 0.7",
        )  # fmt: skip
        return policy_id

    def start(self, design: str, partition: str | None, asset: str, stage: int | None) -> str:
        """The state s0 of a design."""
        state_id = content_id("state", design)
        self.add(
            "states", stage, asset, partition,
            state_id=state_id, design_id=content_id("design", design), testbench_id=None, simulation_id=None, score=0.0,
        )  # fmt: skip
        return state_id

    def step(
        self,
        name: str,
        design: str,
        policy: str,
        role: str,
        hits: frozenset[int] | set[int] | None,
        *,
        stage: int | None = None,
        before: Step | None = None,
        status: str = "passed",
        cached: bool = False,
        accepted: bool | None = None,
        reject_reason: str = "",
    ) -> Step:
        """One answer of a policy with everything it refers to. `hits` is None for an answer without testbench."""
        asset = f"stage_{stage}/{role}s" if stage is not None else "baselines/evaluation"
        at = (stage, asset, "batch_0" if stage is not None else None)
        design_id, policy_id = content_id("design", design), content_id("policy", policy, self.config_hash)
        state_id = before.state_id if before else self.start(design, at[2], asset, stage)
        prompt_id = content_id("prompt", state_id)
        generation_id = content_id("generation", name, self.config_hash)
        testbench_id = simulation_id = next_state_id = None
        score = 0.0
        self.add("prompts", *at, prompt_id=prompt_id, state_id=state_id, text="cover this")
        if hits is not None:
            testbench_id = content_id("testbench", design, sorted(hits), status)
            simulation_id = content_id("simulation", design, testbench_id)
            failing = status not in ("passed", "test_failed")
            score = 0.0 if failing else coverage(hits)["overall"]
            next_state_id = content_id("state", design, simulation_id)
            metrics: dict[str, Any] = {} if failing else coverage(hits)
            self.add(
                "testbenches", *at, testbench_id=testbench_id, language="cocotb", text=f"# {sorted(hits)}", n_lines=1
            )
            self.add(
                "simulations", *at,
                simulation_id=simulation_id, design_id=design_id, rtl_id=content_id("rtl", design),
                testbench_id=testbench_id, build_id=content_id("build", design), language="cocotb", status=status,
                n_hit=len(hits), n_points=N_POINTS, simulator="verilator 5.048", seed=0, sim_time_ns=1000,
                evaluations=200, wall_s=0.06, cpu_s=CPU_S, feedback=status, log="", **metrics,
            )  # fmt: skip
            self.add(
                "coverage_hits", *at,
                simulation_id=simulation_id, build_id=content_id("build", design),
                hits=b"" if failing else bitset(hits), n_hit=len(hits),
            )  # fmt: skip
            self.add(
                "states", *at,
                state_id=next_state_id, design_id=design_id, testbench_id=testbench_id, simulation_id=simulation_id,
                score=score,
            )  # fmt: skip
        self.add(
            "generations", *at,
            generation_id=generation_id, prompt_id=prompt_id, policy_id=policy_id, state_id=state_id, sample=0, seed=1,
            text="answer", testbench_id=testbench_id, finish_reason="stop",
            error="" if hits is not None else "no testbench in the answer", prompt_tokens=30, completion_tokens=10,
            latency_s=0.25, retries=0, cost_usd=0.0,
        )  # fmt: skip
        score_before = before.score if before else 0.0
        made = Step(
            content_id("transition", name, self.config_hash),
            before.trajectory_id if before else content_id("trajectory", name, self.config_hash),
            before.step + 1 if before else 0,
            score,
            next_state_id or state_id,
            testbench_id,
            simulation_id,
            generation_id,
        )
        self.add(
            "transitions", *at,
            transition_id=made.transition_id, trajectory_id=made.trajectory_id, step=made.step, role=role,
            design_id=design_id, policy_id=policy_id, policy=policy, state_id=state_id, generation_id=generation_id,
            next_state_id=next_state_id, testbench_id=testbench_id, simulation_id=simulation_id,
            status=status if hits is not None else "unparsable", score_before=score_before, score_after=score,
            gain=score - score_before, logical_simulations=int(hits is not None), cached=cached, accepted=accepted,
            reject_reason=reject_reason,
        )  # fmt: skip
        self.steps[name] = made
        return made

    def selection(self, stage: int, design: str, step: Step, reason: str) -> None:
        self.add(
            "selections", stage, f"stage_{stage}/worst_states", "batch_0",
            selection_id=content_id("selection", self.config_hash, stage, step.state_id, reason),
            state_id=step.state_id, design_id=content_id("design", design), strategy="worst", reason=reason,
            score=step.score,
        )  # fmt: skip

    def checkpoint(self, name: str, stage: int | None, parent: str | None, examples: int) -> str:
        checkpoint_id = content_id("checkpoint", name, self.config_hash)
        self.add(
            "checkpoints", stage, f"{name}/checkpoint", None,
            checkpoint_id=checkpoint_id, policy=name, parent_checkpoint_id=parent, path=f"checkpoints/{name}",
            data_hash="d" * 32, n_examples=examples, n_designs=1, steps=10, tokens=400, loss_first=2.0, loss_last=0.5,
            parameters=800_000, cpu_s=3.0, versions="torch 2.13",
        )  # fmt: skip
        return checkpoint_id

    def example(self, stage: int, design: str, step: Step, role: str) -> None:
        for variant in range(2):
            self.add(
                "sft_examples", stage, f"stage_{stage}/sft_dataset", None,
                example_id=content_id("example", self.config_hash, stage, step.transition_id, variant),
                transition_id=step.transition_id, design_id=content_id("design", design), role=role, variant=variant,
                prompt=f"in p{variant} w1 g0", completion=f"g0 p{variant} {step.transition_id[:2]}", n_tokens=12,
            )  # fmt: skip

    def evaluation(self, policy: str, checkpoint_id: str | None, mode: str, step: Step, simulations: int) -> None:
        hits = {m: v for m, v in coverage(self._hits(step)).items()}
        at = (None, "evaluation", None)
        policy_id = content_id("policy", policy, self.config_hash)
        self.add(
            "evaluations", *at,
            evaluation_id=content_id("evaluation", self.config_hash, policy, mode), policy_id=policy_id, policy=policy,
            checkpoint_id=checkpoint_id, benchmark="hand_written", mode=mode, design_id=content_id("design", "alu"),
            cluster="alu", sample=0, status="passed", passed=True, target_met=hits["overall"] >= 0.7,
            rounds=simulations - 1, simulations=simulations, cached_simulations=0, completion_tokens=10,
            trajectory_id=step.trajectory_id, simulation_id=step.simulation_id, testbench_id=step.testbench_id, **hits,
        )  # fmt: skip
        overall = hits["overall"]
        self.add(
            "scores", *at,
            score_id=content_id("score", self.config_hash, policy, mode), policy=policy, policy_id=policy_id,
            checkpoint_id=checkpoint_id, benchmark="all", mode=mode, n_designs=1, n_clusters=1, sim_pass=1.0,
            cov_pass=float(overall >= 0.7), avg_cov=overall, avg_cov_low=overall, avg_cov_high=overall,
            avg_line_branch=(hits["line"] + hits["branch"]) / 2, pass_at_1=float(overall >= 0.7),
            pass_at_n=float(overall >= 0.7), best_at_n=overall, simulations=simulations, cached_simulations=0,
            bootstrap_seed=7, resamples=100,
        )  # fmt: skip

    def _hits(self, step: Step) -> set[int]:
        rows = [row for (table, *_), its in self.rows.items() if table == "testbenches" for row in its]
        text = next(row["text"] for row in rows if row["testbench_id"] == step.testbench_id)
        return {int(p) for p in text.strip("# []").split(",") if p.strip()}


def example(config_hash: str = CONFIG, run: str = "run-1", started_at: datetime = datetime(2026, 1, 1)) -> Example:
    """The rows of one run of a configuration."""
    e = Example(config_hash, run)
    e.add("runs", None, "run", None, run_id=run, profile="quick", settings="{}", started_at=started_at)
    e.design("fifo", "train", known=4)
    e.design("uart", "train", known=1)
    alu = e.design("alu", "eval", known=4)
    e.add(
        "targets", None, "eval_designs", None,
        design_id=alu, simulator="verilator 5.048", metric="overall", target=0.7, origin="calibrated", reference=0.74,
        simulations=6,
    )  # fmt: skip
    e.policy("teacher")
    e.policy("scripted/random")
    base = e.checkpoint("base_student", None, None, 0)
    e.policy("untrained", base)

    fifo = e.step("0/fifo/0", "fifo", "teacher", "draft", {0, 1, 4, 6, 8}, stage=0, accepted=True)
    failed = e.step("0/fifo/1", "fifo", "teacher", "draft", FAILING, stage=0, status="load_error")
    uart = e.step("0/uart/0", "uart", "teacher", "draft", {0}, stage=0)
    e.step("0/uart/1", "uart", "teacher", "draft", None, stage=0)
    e.selection(0, "fifo", failed, "failing")
    e.selection(0, "fifo", fifo, "worst")
    e.selection(0, "uart", uart, "worst")
    better = e.step(
        "0/fifo/0/r", "fifo", "teacher", "repair", {0, 1, 2, 3, 4, 6, 8}, stage=0, before=fifo, accepted=True
    )
    e.step(
        "0/fifo/1/r", "fifo", "teacher", "repair", {0, 4, 6, 8}, stage=0, before=failed, accepted=False,
        reject_reason="below the floor",
    )  # fmt: skip
    e.step(
        "0/uart/0/r", "uart", "teacher", "repair", {0}, stage=0, before=uart, cached=True, accepted=False,
        reject_reason="no gain",
    )  # fmt: skip
    e.example(0, "fifo", fifo, "draft")
    e.example(0, "fifo", better, "repair")
    stage_0 = e.checkpoint("stage_0", 0, base, 4)
    e.policy("stage_0", stage_0)

    draft = e.step("1/fifo/0", "fifo", "stage_0", "draft", {0, 1, 2, 3, 4, 5, 6, 8}, stage=1)
    e.selection(1, "fifo", draft, "worst")
    repair = e.step("1/fifo/0/r", "fifo", "teacher", "repair", set(range(9)), stage=1, before=draft, accepted=True)
    e.step("1/uart/0", "uart", "stage_0", "draft", {0}, stage=1, cached=True)
    e.example(1, "fifo", repair, "repair")
    stage_1 = e.checkpoint("stage_1", 1, stage_0, 2)
    e.policy("stage_1", stage_1)

    draft = e.step("2/fifo/0", "fifo", "stage_1", "draft", {0, 1, 2, 3, 4, 6, 8}, stage=2, cached=True)
    e.selection(2, "fifo", draft, "worst")
    repair = e.step(
        "2/fifo/0/r", "fifo", "stage_1", "repair", set(range(9)), stage=2, before=draft, cached=True, accepted=True
    )
    e.step("2/uart/0", "uart", "stage_1", "draft", FAILING, stage=2, status="compile_error")
    e.example(2, "fifo", repair, "repair")
    stage_2 = e.checkpoint("stage_2", 2, stage_1, 2)
    e.policy("stage_2", stage_2)

    ladder = (
        ("scripted/random", None, {0, 1, 4, 6, 8}),
        ("untrained", base, {0, 4}),
        ("stage_0", stage_0, {0, 1, 2, 3, 4, 6, 8}),
        ("stage_1", stage_1, {0, 1, 2, 3, 4, 5, 6, 8}),
        ("stage_2", stage_2, set(range(9))),
    )
    for policy, checkpoint, hits in ladder:
        direct = e.step(f"direct/{policy}", "alu", policy, "eval_direct", hits)
        e.evaluation(policy, checkpoint, "direct", direct, 1)
        first = e.step(f"agentic/{policy}/0", "alu", policy, "eval_agentic", hits, cached=True)
        second = e.step(f"agentic/{policy}/1", "alu", policy, "eval_agentic", hits | {7}, before=first)
        e.evaluation(policy, checkpoint, "agentic", second, 2)
    for minute, (what, version, content) in enumerate(
        [("added", 1, "a"), ("changed", 2, "b"), ("changed back", 3, "a"), ("removed", 3, "a"), ("returned", 3, "a")]
    ):
        e.add(
            "design_events", None, "inbox", None,
            event_id=content_id("event", minute), name="fifo", seen_at=datetime(2026, 1, 1, 12, minute), what=what,
            version=version, batch=f"inbox-fifo-v{version:03d}-{content * 8}", content_hash=content * 32,
            source="inbox/fifo", reason=f"fifo: {what}",
        )  # fmt: skip
    e.add(
        "design_events", None, "inbox", None,
        event_id=content_id("event", "notes"), name="notes.doc", seen_at=datetime(2026, 1, 1, 12), what="left out",
        content_hash="", source="", reason="neither a folder nor RTL",
    )  # fmt: skip
    e.add(
        "comparisons", None, "stage_comparison", None,
        comparison_id=content_id("comparison", config_hash), policy_a="stage_2", policy_b="stage_0", benchmark="all",
        mode="direct", n_clusters=1, diff=0.25, diff_low=0.2, diff_high=0.3, bootstrap_seed=7, resamples=100,
    )  # fmt: skip
    return e
