"""The results of one or several training runs as Markdown tables: what docs/results.md and the README show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from llm4cov_assets.learning import evaluation
from llm4cov_assets.report.numbers import PAIRS, Numbers, Rows

if TYPE_CHECKING:
    from llm4cov_assets.profiles import Profile

MODES = ("direct", "agentic")

INTRODUCTION = """# Results of profile {profile}

Made by `llm4cov run --profile {profile} --seed N` for N = {numbers}, then
`llm4cov report --profile {profile} {options} --tables FILE`.

Mean coverage of the evaluation designs with 95 % intervals. *direct* is one draft, *agentic* a draft and up to {rounds}
repair rounds; *line + branch* and the kinds of design are agentic; *simulations* are those of the agentic evaluation.
*passed* is the share of agentic samples whose best testbench passed."""


def results(runs: Sequence[tuple[Profile, Numbers]], evaluations: pl.DataFrame) -> str:
    """Leaderboard and paired differences of each run and, where there are several, the differences over all of them.

    `evaluations` are the rows of all runs; `config_hash` tells them apart. A pair of policies that some run has not
    evaluated is left out of the differences over all of them.
    """
    first = runs[0][0]
    introduction = INTRODUCTION.format(
        profile=first.name,
        numbers=", ".join(str(p.seed) for p, _ in runs),
        options=" ".join(f"--seed {p.seed}" for p, _ in runs),
        rounds=first.eval_rounds,
    )
    parts = [introduction, *(_run(profile, numbers) for profile, numbers in runs)]
    if len(runs) > 1:
        everywhere = set.intersection(*(set(numbers.policies()) for _, numbers in runs))
        pairs = [pair for pair in PAIRS if everywhere.issuperset(pair)]
        pooled = evaluation.compare(evaluations, pairs, first.resamples, first.bootstrap_seed, runs="config_hash")
        seeds = ", ".join(str(p.seed) for p, _ in runs)
        title = f"## All seeds together ({seeds})\n\nTraining runs are resampled as the clusters of designs are.\n\n"
        parts.insert(1, title + _differences(pooled.to_dicts()))
    return "\n\n".join(parts) + "\n"


def _run(profile: Profile, numbers: Numbers) -> str:
    first = next(r for r in numbers.board if r["benchmark"] == "all")
    title = f"## Seed {profile.seed} (configuration `{profile.config_hash}`)"
    about = (
        f"{first['n_designs']} evaluation designs in {first['n_clusters']} clusters, {profile.eval_samples} samples."
    )
    return "\n\n".join([title, about, leaderboard(numbers), _differences(numbers.differences)])


def leaderboard(numbers: Numbers) -> str:
    """One line per policy: coverage direct and agentic, line + branch beside it, and agentic by kind of design."""
    cells = {(r["policy"], r["benchmark"], r["mode"]): r for r in numbers.board}
    kinds = sorted({r["benchmark"] for r in numbers.board} - {"all"})
    head = ["policy", "passed", "direct", "agentic", "agentic, line + branch", *(k.replace("_", " ") for k in kinds)]
    lines = [_line([*head, "simulations"]), _line(["---"] * (len(head) + 1))]
    for policy in numbers.policies():
        direct, agentic = (cells[policy, "all", mode] for mode in MODES)
        of_kinds = (cells.get((policy, kind, "agentic")) for kind in kinds)
        lines.append(
            _line(
                [
                    policy, _share(agentic["sim_pass"]), _interval(direct), _interval(agentic),
                    _share(agentic["avg_line_branch"]), *(_share(c["avg_cov"]) if c else "–" for c in of_kinds),
                    str(agentic["simulations"]),
                ]
            )
        )  # fmt: skip
    return "\n".join(lines)


def _differences(rows: Rows) -> str:
    cells = {(r["policy_a"], r["policy_b"], r["mode"]): r for r in rows if r["benchmark"] == "all"}
    pairs = dict.fromkeys((a, b) for a, b, _ in cells)
    lines = [_line(["paired difference", *MODES]), _line(["---"] * 3)]
    for a, b in pairs:
        shown = (cells.get((a, b, mode)) for mode in MODES)
        lines.append(_line([f"{a} − {b}", *(_difference(c) if c else "–" for c in shown)]))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".removeprefix("0")


def _interval(row: Mapping[str, Any]) -> str:
    return f"{_share(row['avg_cov'])} [{_share(row['avg_cov_low'])}, {_share(row['avg_cov_high'])}]"


def _difference(row: Mapping[str, Any]) -> str:
    return f"{row['diff']:+.3f} [{row['diff_low']:+.3f}, {row['diff_high']:+.3f}]"
