"""What the checks look for: rows that should not be there, or that say something untrue."""

from __future__ import annotations

import polars as pl

from llm4cov_assets.assets.work import Work
from llm4cov_assets.learning import audit


def refused_designs(work: Work) -> pl.DataFrame:
    """Designs of the batch that could not be taken, with the reason."""
    return work.read("rejected_designs", work.asset, work.partition).select("name", "reason", "detail")


def lost_drafts(work: Work) -> pl.DataFrame:
    """Drafts without a transition, and designs without drafts."""
    group = work.asset.split("/")[0]
    drafts = work.read("generations", f"{group}/drafts", work.partition)
    transitions = work.read("transitions", f"{group}/draft_coverage", work.partition)
    designs = work.read("designs", "designs", work.partition)
    lost = drafts.join(transitions, on="generation_id", how="anti").select(id="generation_id", what=pl.lit("draft"))
    bare = designs.join(transitions, on="design_id", how="anti").select(id="design_id", what=pl.lit("design"))
    return pl.concat([lost, bare])


def lost_repairs(work: Work) -> pl.DataFrame:
    """Repairs without a transition, and selected states with fewer repairs than the profile asks for."""
    group = work.asset.split("/")[0]
    repairs = work.read("generations", f"{group}/repairs", work.partition)
    transitions = work.read("transitions", f"{group}/repair_coverage", work.partition)
    states = work.read("selections", f"{group}/worst_states", work.partition).unique("state_id")
    lost = repairs.join(transitions, on="generation_id", how="anti").select(id="generation_id", what=pl.lit("repair"))
    made = transitions.group_by("state_id").len()
    short = states.join(made, on="state_id", how="left").filter(pl.col("len").fill_null(0) < work.profile.repairs)
    return pl.concat([lost, short.select(id="state_id", what=pl.lit("selected state"))])


def false_gains(work: Work) -> pl.DataFrame:
    """Accepted repairs whose coverage or gain is not what the stored bitsets of both simulations give."""
    assets = [f"{work.asset.split('/')[0]}/draft_coverage", work.asset]

    def both(table: str) -> pl.DataFrame:
        return pl.concat([work.read(table, asset, work.partition) for asset in assets])

    transitions = work.read("transitions", work.asset, work.partition)
    tables = [both(table) for table in ("states", "simulations", "coverage_hits", "coverage_points")]
    return audit.false_gains(transitions, *tables)


def leaked_examples(work: Work) -> pl.DataFrame:
    """Training rows whose design, or its RTL, is evaluated on."""
    examples = work.read("sft_examples", work.asset).select("example_id", "design_id")
    return audit.leaked(examples, work.read("designs", "designs"), work.read("designs", "eval_designs"))
