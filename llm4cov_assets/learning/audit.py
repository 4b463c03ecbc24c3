"""What must hold of training data, recomputed from rows rather than believed."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from sim.coverage import Points, summarise
from sim.simulation import CoveragePoint

TOLERANCE = 1e-6
"""Coverage is stored as a double; anything beyond rounding is a disagreement."""


def false_gains(
    transitions: pl.DataFrame,
    states: pl.DataFrame,
    simulations: pl.DataFrame,
    hits: pl.DataFrame | None = None,
    points: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Accepted transitions whose coverage before, coverage after or gain is not what their simulations say.

    `transitions`, `states`, `simulations`, `hits` (`coverage_hits`) and `points` (`coverage_points`) are rows of
    these tables. The states must hold those before the transitions. With hits and points the coverage of a running
    simulation is counted again from its bitset, else the stored `overall` is taken. Returns
    `transition_id, design_id, score_before, score_after, gain, found_before, found_after`; `found_*` is null where a
    state or simulation is missing.
    """
    accepted = transitions.filter(pl.col("accepted").fill_null(False))
    before = states.select("state_id", pl.col("simulation_id").alias("simulation_before"))
    accepted = accepted.join(before.unique("state_id"), on="state_id", how="left")
    wanted = pl.concat([accepted["simulation_id"], accepted["simulation_before"]]).drop_nulls().unique()
    rows = simulations.unique("simulation_id").filter(pl.col("simulation_id").is_in(wanted.implode()))
    found = rows.select("simulation_id", score=_score())
    if hits is not None and points is not None:
        counted = _counted(hits.filter(pl.col("simulation_id").is_in(wanted.implode())), points)
        found = (
            found.join(counted, on="simulation_id", how="left")
            .with_columns(score=pl.when(pl.col("score") > 0).then("counted").otherwise("score"))
            .drop("counted")
        )
    known_state = pl.col("state_id").is_in(states["state_id"].unique().implode())
    s0 = known_state & pl.col("simulation_before").is_null()
    checked = (
        accepted.join(
            found.rename({"simulation_id": "simulation_before", "score": "before"}), on="simulation_before", how="left"
        )
        .join(found.rename({"score": "found_after"}), on="simulation_id", how="left")
        .with_columns(found_before=pl.when(s0).then(0.0).otherwise("before"))
    )
    agree = (
        _close("score_before", pl.col("found_before"))
        & _close("score_after", pl.col("found_after"))
        & _close("gain", pl.col("found_after") - pl.col("found_before"))
    )
    return checked.filter(~agree.fill_null(False)).select(
        "transition_id", "design_id", "score_before", "score_after", "gain", "found_before", "found_after"
    )


def leaked(training: pl.DataFrame, designs: pl.DataFrame, evaluation: pl.DataFrame) -> pl.DataFrame:
    """Rows of `training` (any rows with a `design_id`) whose design, or whose RTL, is evaluated on.

    `designs` and `evaluation` are rows of `designs` (`design_id`, `rtl_id`): all designs, and those evaluated on.
    A training design that `designs` does not know is returned too: nobody can tell what it is.
    """
    known = designs.select("design_id", "rtl_id").unique("design_id")
    rows = training.join(known, on="design_id", how="left", maintain_order="left")
    same_design = pl.col("design_id").is_in(evaluation["design_id"].unique().implode())
    same_rtl = pl.col("rtl_id").is_in(evaluation["rtl_id"].unique().implode()).fill_null(True)
    return rows.filter(same_design | same_rtl).select(training.columns)


def _score() -> pl.Expr:
    """Coverage of a simulation row, 0 when failing."""
    running = pl.col("status").is_in(["passed", "test_failed"]) | (
        (pl.col("status") == "timeout") & pl.col("overall").is_not_null()
    )
    return pl.when(running).then(pl.col("overall").fill_null(0.0)).otherwise(0.0)


def _close(column: str, found: pl.Expr) -> pl.Expr:
    return (pl.col(column) - found).abs() <= TOLERANCE


def _counted(hits: pl.DataFrame, points: pl.DataFrame) -> pl.DataFrame:
    """`simulation_id, counted`: coverage counted again from bitsets."""
    rows = [row for build in hits.partition_by("build_id") for row in _of_build(build, points)]
    return pl.DataFrame(rows, schema={"simulation_id": pl.String, "counted": pl.Float64}, orient="row")


def _of_build(hits: pl.DataFrame, points: pl.DataFrame) -> Iterator[tuple[str, float | None]]:
    of_build = points.filter(pl.col("build_id") == hits["build_id"][0]).unique("point").sort("point")
    names = ("metric", "file", "line", "column", "instance", "what", "source")
    table = Points(CoveragePoint(*row) for row in of_build.select(names).iter_rows())
    for simulation_id, bits in hits.select("simulation_id", "hits").iter_rows():
        yield simulation_id, summarise(table, bits)[0].overall
