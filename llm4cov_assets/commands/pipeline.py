"""`llm4cov run`, `llm4cov compare` and `llm4cov profiles`."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llm4cov_assets.commands.sandboxing import UnsandboxedOption
from llm4cov_assets.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

    from llm4cov_assets.profiles import Profile
    from warehouse.store import Store

ProfileOption = Annotated[str, typer.Option("--profile", help="name of the profile, see `llm4cov profiles`")]
LARGEST_SEED = 2**32 - 1  # that numpy, and with it the trainer, takes
SeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed", min=0, max=LARGEST_SEED, help="seed of designs, weights and sampling, instead of the profile's"
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="one JSON object on stdout")]


LEARNING_STEPS = 500
"""With fewer optimiser steps in all the small student has not learnt to copy."""


def mount(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command("run")(run)
    app.command("compare")(compare)
    app.command("profiles")(profiles)


def run(
    profile: ProfileOption = "demo",
    seed: SeedOption = None,
    stages: Annotated[str, typer.Option(help="stages to run, like 0-2 or 0")] = "0-2",
    designs: Annotated[str | None, typer.Option(help="glob of design names", metavar="GLOB")] = None,
    budget_sims: Annotated[int | None, typer.Option(min=1, help="logical simulations, at most")] = None,
    unsandboxed: UnsandboxedOption = False,
    as_json: JsonOption = False,
) -> None:
    """Materialise the pipeline and show the leaderboard. Interrupted, the same command goes on from there."""
    from llm4cov_assets.assets.plan import RunFailed, run_pipeline, stages_of
    from llm4cov_assets.home import home

    chosen = seeded(profile, seed)
    if designs is not None:
        chosen = chosen.model_copy(update={"designs_glob": designs})
    numbers, folder = stages_of(stages), home()
    os.environ.setdefault("TQDM_DISABLE", "1")  # bars of libraries would tear ours
    print(budget_text(chosen), file=sys.stderr)
    try:
        summary = run_pipeline(
            chosen, numbers, folder, budget_sims=budget_sims, command=f"llm4cov run {options(profile, seed)}"
        )
    except RunFailed as failure:
        print(f"llm4cov run: {failure}", file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print(
            "llm4cov run: interrupted; what was finished is stored, the same command goes on from there",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    board, differences = results(chosen)
    if as_json:
        answer = {
            "profile": chosen.name,
            "config_hash": chosen.config_hash,
            **summary.costs,
            "leaderboard": board,
            "comparisons": differences,
        }
        print(json.dumps(answer))
    else:
        show_results(board, differences)
        if sum(chosen.steps) < LEARNING_STEPS:
            print(f"profile {chosen.name} trains too little to learn anything: its ranking means nothing")
        print(costs_text(summary.costs))
        print(f"results: {folder / 'trajectories.duckdb'} (llm4cov sql, duckdb -readonly); runs: script/server")


def compare(
    policy_a: str,
    policy_b: str,
    profile: ProfileOption = "demo",
    seed: Annotated[
        list[int] | None,
        typer.Option(
            "--seed", min=0, max=LARGEST_SEED, help="training run to take; repeat it to take several together"
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Mean coverage of POLICY_A minus that of POLICY_B on the evaluation designs, paired, with 95 % intervals.

    With several --seed the training runs are resampled as the designs are.
    """
    import polars as pl

    from llm4cov_assets.home import home
    from llm4cov_assets.learning import evaluation
    from warehouse.store import Store

    runs, parts = [seeded(profile, s) for s in dict.fromkeys(seed or [None])], []
    for chosen in runs:
        part = Store(home()).read("evaluations", config_hash=chosen.config_hash)
        known = sorted(part["policy"].unique().to_list())
        for name in (policy_a, policy_b):
            if name not in known:
                there = f"there are {', '.join(known)}" if known else "there are none"
                raise UserError(
                    f"policy {name!r} has no evaluations for profile {profile} with seed {chosen.seed} ({there}): "
                    f"llm4cov run {options(profile, chosen.seed)}{elsewhere(Store(home()))}"
                )
        parts.append(part)
    found = evaluation.compare(
        pl.concat(parts), [(policy_a, policy_b)], runs[0].resamples, runs[0].bootstrap_seed, runs="config_hash"
    )
    rows = found.drop("comparison_id").to_dicts()
    if as_json:
        print(json.dumps(rows))
    else:
        show_comparisons(rows)


def profiles(as_json: JsonOption = False) -> None:
    """The profiles and what each is meant to cost."""
    from llm4cov_assets.assets.instance import dagster_home
    from llm4cov_assets.home import home
    from llm4cov_assets.profiles import PROFILES

    dagster_home(home())
    if as_json:
        print(json.dumps([p.model_dump(mode="json") | {"config_hash": p.config_hash} for p in PROFILES.values()]))
    else:
        print("\n".join(budget_text(p) for p in PROFILES.values()))


def seeded(name: str, seed: int | None) -> Profile:
    """The profile called `name`, with another seed if one is given."""
    from llm4cov_assets.profiles import profile as named

    return named(name) if seed is None else named(name).model_copy(update={"seed": seed})


def elsewhere(store: Store) -> str:
    """A hint at results of other settings, for who finds none of those asked for; empty where there are none."""
    n = store.read("scores")["config_hash"].n_unique()
    return f"; results of {n} other settings are here: llm4cov sql 'from leaderboard_all'" if n else ""


def options(name: str, seed: int | None) -> str:
    """The options that name a profile and a seed on the command line."""
    return f"--profile {name}" + ("" if seed is None else f" --seed {seed}")


def budget_text(profile: Profile) -> str:
    """What a profile will do and what it is meant to cost, in CPU seconds."""
    p, seconds = profile, profile.budget_cpu_s
    steps = " + ".join(map(str, p.steps))
    return (
        f"profile {p.name} ({p.config_hash})\n"
        f"  designs       {p.train_designs} for training; up to {p.eval_hand_written} hand-written ones and"
        f" {p.eval_per_family} of each family for evaluation\n"
        f"  trajectories  {p.drafts} drafts a design, {p.repairs} repairs a selected state, in stages 0, 1 and 2\n"
        f"  training      {steps} steps of {p.batch_rows} rows; the control takes those of stages 1 and 2 again\n"
        f"  evaluation    {p.eval_samples} samples a design, direct and with {p.eval_rounds} repair rounds\n"
        f"  budget        {sum(seconds.values())} CPU s: " + ", ".join(f"{k} {v}" for k, v in seconds.items())
    )


def costs_text(costs: dict[str, float]) -> str:
    """What this call did itself."""
    return (
        f"this run: {costs['simulations_run']:.0f} simulations ({costs['simulations_from_cache']:.0f} from the cache), "
        f"{costs['builds_run']:.0f} builds, {costs['generations_run']:.0f} generations "
        f"({costs['generations_from_cache']:.0f} from the cache), {costs['training_steps_run']:.0f} training steps, "
        f"{costs['cpu_s']:.0f} CPU s"
    )


def results(profile: Profile) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Leaderboard and comparisons of a configuration, in the order in which they are shown."""
    from llm4cov_assets.home import home
    from llm4cov_assets.report.numbers import ordered
    from warehouse.schema import PROVENANCE
    from warehouse.store import Store

    store, hidden = Store(home()), [c.name for c in PROVENANCE]
    scores = store.read("scores", config_hash=profile.config_hash).drop(hidden).to_dicts()
    differences = store.read("comparisons", config_hash=profile.config_hash).drop(hidden).to_dicts()
    return ordered(scores), ordered(differences)


def show_results(board: list[dict[str, Any]], differences: list[dict[str, Any]]) -> None:
    """Print the leaderboard, mean coverage by benchmark, and the comparisons over all evaluation designs."""
    from rich.table import Table

    console = _console()
    whole = [r for r in board if r["benchmark"] == "all"]
    if not whole:
        return
    title = f"Leaderboard: {whole[0]['n_designs']} evaluation designs in {whole[0]['n_clusters']} clusters"
    table = Table("policy", "mode", title=title, title_justify="left")
    for column in ("passed", "targets met", "coverage", "95 % interval", "line+branch"):
        table.add_column(column, justify="right")
    for column in ("pass@1", "pass@n", "best@n", "simulations"):
        table.add_column(column, justify="right")
    for r in whole:
        interval = f"{r['avg_cov_low']:.3f} to {r['avg_cov_high']:.3f}"
        shares = [_fraction(r[c]) for c in ("pass_at_1", "pass_at_n", "best_at_n")]
        first = (r["policy"], r["mode"], _fraction(r["sim_pass"]), _fraction(r["cov_pass"]), f"{r['avg_cov']:.3f}")
        table.add_row(*first, interval, _fraction(r["avg_line_branch"]), *shares, str(r["simulations"]))
    console.print(table)
    columns = list(dict.fromkeys((r["benchmark"], r["mode"]) for r in board if r["benchmark"] != "all"))
    table = Table("policy", title="Mean coverage by kind of evaluation design (line+branch)", title_justify="left")
    for benchmark, mode in columns:
        table.add_column(f"{benchmark} {mode}", justify="right")
    values = {
        (r["policy"], r["benchmark"], r["mode"]): f"{r['avg_cov']:.3f} ({_fraction(r['avg_line_branch'])})"
        for r in board
    }
    for policy in dict.fromkeys(r["policy"] for r in whole):
        table.add_row(policy, *(values.get((policy, *column), "–") for column in columns))
    console.print(table)
    show_comparisons([r for r in differences if r["benchmark"] == "all"])


def show_comparisons(differences: list[dict[str, Any]]) -> None:
    """Print paired differences as a table."""
    from rich.table import Table

    table = Table("comparison", "benchmark", "mode", title="Paired differences of mean coverage", title_justify="left")
    for column in ("difference", "95 % interval", "clusters"):
        table.add_column(column, justify="right")
    for r in differences:
        interval = f"{r['diff_low']:+.3f} to {r['diff_high']:+.3f}"
        pair = f"{r['policy_a']} − {r['policy_b']}"
        table.add_row(pair, r["benchmark"], r["mode"], f"{r['diff']:+.3f}", interval, str(r["n_clusters"]))
    _console().print(table)


def _console() -> Console:
    """Tables keep their width when they go to a file."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=140)


def _fraction(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
