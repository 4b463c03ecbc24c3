"""The report: one HTML file that needs nothing else, with the figures of one configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import polars as pl

from llm4cov_assets.profiles import Profile
from llm4cov_assets.report.plots import histogram, intervals

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #1e293b }
table { border-collapse: collapse; margin: 1rem 0 } th, td { padding: .2rem .7rem; border-bottom: 1px solid #cbd5e1 }
th { text-align: left } td.n { text-align: right; font-variant-numeric: tabular-nums }
"""


def page(
    profile: Profile,
    board: Sequence[Mapping[str, Any]],
    differences: Sequence[Mapping[str, Any]],
    transitions: pl.DataFrame,
    checkpoints: pl.DataFrame,
) -> str:
    """HTML of a configuration: leaderboard, comparisons, the funnel of each stage, training, settings.

    `board` and `differences` are rows of `scores` and `comparisons`, in order; `transitions` and `checkpoints` rows of
    these tables.
    """
    whole = [r for r in board if r["benchmark"] == "all"]
    bars = [(f"{r['policy']} {r['mode'][0]}", r["avg_cov"], r["avg_cov_low"], r["avg_cov_high"]) for r in whole]
    drafts = transitions.filter(pl.col("role") == "draft", pl.col("stage").is_not_null())
    curves = [
        histogram(group["score_after"].to_list(), f"coverage of stage {stage} drafts")
        for (stage,), group in drafts.sort("stage").group_by("stage", maintain_order=True)
    ]
    columns = ["policy", "benchmark", "mode", "n_designs", "sim_pass", "cov_pass", "avg_cov", "avg_cov_low"]
    columns += ["avg_cov_high", "pass_at_1", "pass_at_n", "best_at_n", "simulations"]
    pairs = ["policy_a", "policy_b", "benchmark", "mode", "n_clusters", "diff", "diff_low", "diff_high"]
    trained = ["policy", "n_designs", "n_examples", "steps", "tokens", "loss_first", "loss_last", "cpu_s"]
    sections = [
        ("Leaderboard", intervals(bars, "mean coverage (d direct, a agentic), 95 % intervals") + table(board, columns)),
        ("Paired differences of mean coverage", table(differences, pairs)),
        ("Trajectories", table(funnel(transitions).to_dicts()) + "".join(curves)),
        ("Training", table(checkpoints.sort("created_at").select(trained).to_dicts())),
        ("Settings", table([{"setting": k, "value": str(v)} for k, v in profile.model_dump().items()])),
    ]
    title = f"llm4cov: profile {profile.name}"
    body = "".join(f"<h2>{escape(name)}</h2>{content}" for name, content in sections)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
        f"<h1>{escape(title)}</h1><p>Configuration {profile.config_hash}. Coverage is of Verilator, on designs that no"
        " policy trained on; a failing testbench counts 0. Stimulus only: nothing here checks results.</p>"
        f"{body}</html>\n"
    )


def funnel(transitions: pl.DataFrame) -> pl.DataFrame:
    """How many drafts and repairs of each stage ran, gained and were accepted."""
    return (
        transitions.filter(pl.col("role").is_in(["draft", "repair"]), pl.col("stage").is_not_null())
        .group_by("stage", "role")
        .agg(
            proposed=pl.len(),
            usable=pl.col("testbench_id").is_not_null().sum(),
            passed=(pl.col("status") == "passed").sum(),
            gained=(pl.col("gain") > 0).sum(),
            accepted=pl.col("accepted").sum(),
            mean_coverage=pl.col("score_after").mean(),
            mean_gain=pl.col("gain").mean(),
        )
        .sort("stage", "role")
    )


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """Rows as an HTML table; numbers stand right, fractions have three digits."""
    if not rows:
        return "<p>Nothing yet.</p>"
    names = list(columns or rows[0])
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    lines = ("".join(_cell(row[name]) for name in names) for row in rows)
    return f"<table><tr>{head}</tr>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return f"<td>{escape('–' if value is None else str(value))}</td>"
    return f'<td class="n">{value:.3f}</td>' if isinstance(value, float) else f'<td class="n">{value}</td>'
