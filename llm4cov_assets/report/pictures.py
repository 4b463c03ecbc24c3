"""The pictures of a configuration: each says one thing, in the report and in asset metadata alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from llm4cov_assets.report import plots
from llm4cov_assets.report.numbers import Numbers, policy_place

COLOURS = {
    "untrained": "#8b8f98",
    "stage_0": "#9cc9fb",
    "stage_1": "#5193f5",
    "stage_2": "#2059e0",
    "control": "#d97706",
    "teacher": "#16924a",
    "scripted/random": "#dc2626",
    "scripted/reset": "#a16207",
}
"""One colour a policy, in every picture; stages grow darker."""

FUNNEL = {
    "drafts": "drafts proposed",
    "drafts_running": "drafts running",
    "selected": "states selected",
    "repairs": "repairs proposed",
    "repairs_running": "repairs running",
    "repairs_gaining": "repairs gaining",
    "repairs_accepted": "repairs accepted",
    "drafts_accepted": "drafts accepted",
    "pairs": "pairs trained on",
}
"""Columns of `stage_funnel` in the order of the work, and what they are called."""


@dataclass(frozen=True)
class Picture:
    """An SVG with its title, and a sentence that says how to read it."""

    name: str
    title: str
    caption: str
    svg: str

    @property
    def markdown(self) -> str:
        """The picture and how to read it, as markdown with the data inside."""
        return f"{plots.markdown(self.svg, self.title)}\n\n{self.caption}"


def pictures(numbers: Numbers) -> dict[str, Picture]:
    """The pictures by name; those that there are no numbers for are left out."""
    return {picture.name: picture for picture in _pictures(numbers)}


def _pictures(numbers: Numbers) -> Iterator[Picture]:
    board = [row for row in numbers.board if row["benchmark"] == "all"]
    if board:
        panels = {
            mode: [(r["policy"], r["avg_cov"], r["avg_cov_low"], r["avg_cov_high"]) for r in board if r["mode"] == mode]
            for mode in dict.fromkeys(row["mode"] for row in board)
        }
        marks = {(r["mode"], r["policy"]): r["avg_line_branch"] for r in board if r["avg_line_branch"] is not None}
        yield Picture(
            "leaderboard",
            "Leaderboard",
            "Mean coverage on the evaluation designs. The hollow mark is line and branch coverage alone: toggles and "
            "expressions come for nothing with random stimulus, lines and branches have to be reached.",
            plots.intervals(panels, "mean coverage (fraction)", COLOURS, marks, "line and branch alone"),
        )
    pairs = [row for row in numbers.differences if row["benchmark"] == "all"]
    if pairs:
        panels = {
            mode: [
                (f"{r['policy_a']} − {r['policy_b']}", r["diff"], r["diff_low"], r["diff_high"])
                for r in pairs
                if r["mode"] == mode
            ]
            for mode in dict.fromkeys(row["mode"] for row in pairs)
        }
        yield Picture(
            "differences",
            "Paired differences",
            "The first policy minus the second on the same designs. An interval that does not cross 0 is a difference "
            "that the choice of designs does not explain.",
            plots.intervals(panels, "difference of mean coverage", {}, zero=True),
        )
    yield from _rounds(numbers)
    if numbers.funnel.height:
        series = {
            f"stage {row['stage']}": [float(row[column]) for column in FUNNEL]
            for row in numbers.funnel.iter_rows(named=True)
        }
        yield Picture(
            "funnel",
            "Funnel of each stage",
            "From the first draft to the training data: every pair of a state and an answer gives several training "
            "rows (see the table).",
            plots.bars(list(FUNNEL.values()), series, "number", _stage_colours(series)),
        )
    if numbers.repairs.height:
        by_stage = {
            f"stage {stage} ({group['policy'][0]} repairs)": list(group.select("before", "after").iter_rows())
            for (stage,), group in numbers.repairs.group_by("stage", maintain_order=True)
        }
        yield Picture(
            "repairs",
            "Coverage before and after repair",
            "The selected states, and what their repairs reached; failing ones lie at 0, dashed lines are means.",
            plots.before_after(by_stage, "state before", "after its repair", "coverage (fraction)"),
        )


def _rounds(numbers: Numbers) -> Iterator[Picture]:
    rounds = numbers.rounds.filter(pl.col("benchmark") == "all", pl.col("policy").is_in(numbers.policies()))
    if rounds.is_empty():
        return
    by_policy = {
        policy: rounds.filter(policy=policy) for policy in sorted(rounds["policy"].unique().to_list(), key=policy_place)
    }
    last = int(rounds["round"].max())  # type: ignore[arg-type]
    columns = {"round": "repair round (0 is the draft)", "simulations_per_sample": "simulations per sample so far"}
    by_round, spent = (
        plots.lines(
            {policy: list(frame.select(column, "avg_cov").iter_rows()) for policy, frame in by_policy.items()},
            axis,
            "mean coverage of the best state so far (fraction)",
            COLOURS,
            range(last + 1) if column == "round" else None,
        )
        for column, axis in columns.items()
    )
    yield Picture(
        "rounds",
        "Coverage by round",
        "Agentic evaluation: a draft, then repairs, each from the best state so far. A sample with nothing left to "
        "cover stops and stays in the mean.",
        by_round,
    )
    yield Picture(
        "simulations",
        "Simulations spent against coverage",
        "The same rounds by what they cost. A policy that covers a design early stops early, so its line ends further "
        "left; one that answers the same for every sample is simulated once.",
        spent,
    )


def _stage_colours(names: dict[str, list[float]]) -> dict[str, str]:
    return {name: COLOURS.get(name.replace(" ", "_"), plots.FILL) for name in names}
