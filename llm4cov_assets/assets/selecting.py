"""Body of `worst_states`."""

from __future__ import annotations

import polars as pl

from llm4cov_assets import rows
from llm4cov_assets.assets.work import Outcome, Work
from llm4cov_assets.learning.selection import select


def selected_states(work: Work) -> Outcome:
    """Which drafts of the partition are worth a repair."""
    source = f"stage_{work.stage}/draft_coverage"
    ran = work.read("simulations", source, work.partition).select("simulation_id", "overall")
    drafts = work.read("transitions", source, work.partition).join(ran, on="simulation_id", how="left")
    running = pl.col("status").is_in(["passed", "test_failed"]) | (
        (pl.col("status") == "timeout") & pl.col("overall").is_not_null()
    )
    states = drafts.select(
        "design_id", "status", running.alias("running"), state_id="next_state_id", score="score_after"
    )
    chosen = select(states, work.profile.strategy, work.profile.median_gap, work.profile.seed)
    return Outcome(
        {"selections": rows.selection_rows(chosen, config_hash=work.profile.config_hash, stage=work.stage)},
        {
            "drafts": states.height,
            "selected": chosen.height,
            "designs": chosen["design_id"].n_unique(),
            "mean_coverage": round(chosen["score"].mean() or 0.0, 4),
            **{f"reason/{reason}": n for reason, n in chosen["reason"].value_counts(sort=True).iter_rows()},
        },
    )
