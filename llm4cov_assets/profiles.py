"""Profiles: everything a person may want to vary, in one typed object."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from llm4cov_assets.errors import UserError
from sim.identity import content_id
from sim.simulation import Limits


class Profile(BaseModel):
    """One configuration of the whole pipeline. `config_hash` of the resolved object is in every row it makes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field("demo", description="name of the profile")
    seed: int = Field(0, ge=0, lt=2**32, description="seed of everything that is sampled")

    # designs
    train_designs: int = Field(320, ge=1, description="generated training designs")
    train_families: str = Field("*", description="glob of generator families to train on (held-out ones never)")
    eval_hand_written: int = Field(64, ge=0, description="hand-written evaluation designs, at most")
    eval_per_family: int = Field(2, ge=0, description="evaluation designs per generator family, seen and held out")
    batch_size: int = Field(80, ge=1, description="designs per partition (design batch)")
    designs_glob: str = Field("*", description="glob of design names to keep")

    # stages
    teacher: str = Field("scripted/directed", description="policy that repairs in stages 0 and 1 and drafts in stage 0")
    teacher_reach: int = Field(
        2, ge=0, description="steps from reset that a scripted teacher always plans ahead; 0: all of them"
    )
    teacher_patience: float = Field(
        0.5, ge=0, le=1, description="probability that it plans one more step; where it gives up, a burst follows"
    )
    drafts: int = Field(12, ge=1, description="drafts per design")
    repairs: int = Field(8, ge=1, description="repairs per selected state")
    strategy: str = Field("worst", pattern="^(worst|median|uniform|best)$", description="which drafts to repair")
    median_gap: float = Field(0.10, description="select the lower-median draft too if it is this much above the worst")
    per_prompt: int = Field(
        4, ge=1, description="samples of a state that share a prompt of the student in the stages; the best is kept"
    )
    tau: float = Field(0.01, description="least gain of an accepted repair")
    floor: float = Field(0.50, description="least coverage of an accepted stage-0 repair and of a direct example")
    keep_per_design: int = Field(
        4, ge=0, description="best drafts, and best repairs, kept per design; 0 keeps all that are accepted; paper: 1"
    )
    drafts_until: int = Field(2, description="last stage that trains on its accepted drafts too; 1 in the paper")
    replay: bool = Field(
        False,
        description="train on the rows of all stages so far, the stage's own twice; not in the paper",
    )

    # student and training
    hidden_size: int = Field(128, description="width of the small student")
    layers: int = Field(2, description="layers of the small student; four learn to copy later and cost twice as much")
    variants: int = Field(8, description="rows made of one accepted pair (fresh aliases, goals permuted and subset)")
    steps: tuple[int, int, int] = Field((1000, 800, 800), description="optimiser steps of stages 0, 1 and 2")
    learning_rates: tuple[float, float, float] = Field((3e-3, 2e-3, 1.5e-3), description="peak rate of each stage")
    batch_rows: int = Field(32, description="rows per optimiser step")
    max_length: int = Field(512, description="longest row in tokens; longer rows are left out and counted")
    threads: int = Field(1, description="torch threads of training and generation")
    temperature: float = Field(0.5, description="sampling temperature of the student in evaluations")
    exploration: float = Field(1.0, description="sampling temperature of the student's drafts and repairs in stages")
    top_p: float = Field(0.95, description="nucleus of the student")

    # evaluation
    eval_samples: int = Field(5, ge=1, description="samples per evaluation design")
    eval_rounds: int = Field(3, ge=0, description="repair rounds in agentic mode")
    resamples: int = Field(10_000, description="bootstrap resamples")
    bootstrap_seed: int = Field(7, description="seed of the bootstrap")
    calibration_sims: int = Field(24, description="simulations of the reference campaign of one evaluation design")

    # simulation
    sim_time_ns: int = Field(200_000, description="simulated time after which a run is a timeout, ns")
    evaluations: int = Field(200_000, description="model evaluations after which a run is a timeout")
    wall_s: float = Field(20.0, description="wall-clock limit of one simulation, s")

    # budget, CPU seconds
    budget_cpu_s: dict[str, int] = Field(
        default_factory=lambda: {"builds": 350, "simulations": 600, "training": 650, "generation": 250},
        description="CPU seconds that the profile is meant to take, by kind of work",
    )

    @property
    def config_hash(self) -> str:
        """Of everything but the budget: what a profile is meant to take does not change what it makes."""
        return content_id("profile", self.model_dump(mode="json", exclude={"budget_cpu_s"}))[:16]

    @property
    def limits(self) -> Limits:
        return Limits(sim_time_ns=self.sim_time_ns, evaluations=self.evaluations, wall_s=self.wall_s)


PROFILES: dict[str, Profile] = {
    p.name: p
    for p in (
        Profile(),
        Profile(
            name="quick",
            train_designs=12,
            eval_hand_written=4,
            eval_per_family=1,
            batch_size=12,
            drafts=2,
            repairs=2,
            variants=4,
            steps=(30, 15, 15),
            eval_samples=1,
            eval_rounds=1,
            calibration_sims=6,
            budget_cpu_s={"builds": 40, "simulations": 20, "training": 40, "generation": 20},
        ),
    )
}


def profile(name: str) -> Profile:
    """The profile called `name`; UserError if there is none."""
    if name not in PROFILES:
        raise UserError(f"no profile {name!r}; there are {', '.join(sorted(PROFILES))} (see `llm4cov profiles`)")
    return PROFILES[name]
