"""What `sim`, `close` and `trajectory` print for people. Results go to stdout, progress to stderr."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from llm4cov_assets.report.trajectory import by_line
from sim.simulation import METRICS, SIDE_METRICS, Simulation, UncoveredItem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llm4cov_assets.learning.closure import ClosureStep
    from llm4cov_assets.report.trajectory import Trajectory
    from sim.design import Design

_LINES = 40
"""Uncovered source lines shown; all of them are in `--json`."""

_SEEN = 12
"""Lines of feedback shown of a step; all of them are in `--json`."""


def say(text: str) -> None:
    """One line of progress on stderr."""
    Console(stderr=True, highlight=False).print(escape(text))


@contextmanager
def working(text: str) -> Iterator[None]:
    """A spinner on stderr while the block runs; nothing when stderr is no terminal."""
    console = Console(stderr=True)
    with console.status(escape(text)) if console.is_terminal else nullcontext():
        yield


def simulation(
    design: Design,
    testbench: Path,
    result: Simulation,
    log: Path,
    written: Mapping[str, Path | None] = {},
    files: Sequence[Mapping[str, Any]] = (),
) -> None:
    """The result of one simulation: status, errors, metrics, what is uncovered and what is excluded, and where the log
    and the files in `written` are (None: not asked for). `files` are the rows of `sim.coverage.files`, shown when
    there are several."""
    console = Console(highlight=False)
    colour = "green" if result.status == "passed" else "yellow" if result.running else "red"
    origin = "from the cache" if result.cached else f"{result.cpu_s:.2f} CPU s"
    console.print(
        f"[bold]{escape(design.name)}[/] with {escape(testbench.name)}: [bold {colour}]{result.status}[/]"
        f"  ({origin}, {result.sim_time_ns:,} ns simulated, {escape(result.simulator)})"
    )
    if result.status != "passed" or result.coverage.overall is None:
        errors = result.feedback.partition("\ncoverage:")[0].strip()
        named = re.sub(r"error: testbench\.(py|sv):", f"error: {testbench.name}:", errors)
        console.print(escape(named), soft_wrap=True)
    if result.coverage.overall is not None:
        console.print(metrics(result.coverage.as_dict(), result.points, result.metrics_unavailable))
        if len(files) > 1:
            console.print(by_file(files))
        console.print(uncovered(result.uncovered))
        console.print(excluded(result))
    if result.status not in ("passed", "design_error") and result.log.strip() not in result.feedback:
        console.print("[dim]end of the log:[/]")
        for line in result.log.rstrip().splitlines()[-12:]:
            console.print(f"  [dim]{escape(line)}[/]", soft_wrap=True)
    for name, path in written.items():
        if path is not None and path.exists():
            console.print(f"[dim]{name}: {escape(str(path))}[/]", soft_wrap=True)
    console.print(f"[dim]log: {escape(str(log))}   simulation {result.simulation_id}[/]", soft_wrap=True)


def metrics(
    coverage: Mapping[str, float | None], points: Mapping[str, Sequence[int]], unavailable: Mapping[str, str]
) -> Table:
    """A table of the metrics: share, points hit of all, and a bar; `overall` first."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for metric in ("overall", *METRICS, *SIDE_METRICS):
        share = coverage.get(metric)
        if share is None:
            reason = unavailable.get(metric)
            if reason:
                table.add_row(metric, "–", "", f"[dim]{escape(reason)}[/]")
            continue
        hit, total = points.get(metric, (0, 0))
        filled = round(share * 30)
        count = f"{hit}/{total}" if total else ""
        table.add_row(metric, f"{100 * share:.1f} %", count, "█" * filled + "[dim]░[/]" * (30 - filled))
    return table


def uncovered(items: Sequence[UncoveredItem]) -> Group:
    """The uncovered points by file and source line, toggles counted per line."""
    files = by_line(items)
    shown, lines = 0, []
    total = sum(len(found) for found in files.values())
    if total:
        lines.append(f"[bold]uncovered[/]: {len(items)} points on {total} lines")
    for name, found in files.items():
        if shown >= _LINES:
            break
        lines.append(f"[cyan]{escape(name)}[/]")
        for number, (source, what) in list(found.items())[: _LINES - shown]:
            lines.append(f"{number:6}  {escape(source[:90])}  [dim]{escape(what[:120])}[/]")
            shown += 1
    if total > shown:
        lines.append(f"[dim]… and {total - shown} more lines (--json has all)[/]")
    return Group(*lines)


def by_file(files: Sequence[Mapping[str, Any]]) -> Table:
    """A table of the files: overall and each metric that has points in any, least covered first."""
    shown = ["overall", *(m for m in (*METRICS, *SIDE_METRICS) if any(row[m] is not None for row in files))]
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("file", *shown):
        table.add_column(column, justify="left" if column == "file" else "right")
    ranked = sorted(files, key=lambda row: (2.0 if row["overall"] is None else row["overall"], row["path"]))
    for row in ranked[:_LINES]:
        shares = ("–" if row[m] is None else f"{100 * row[m]:.1f} %" for m in shown)
        table.add_row(f"[cyan]{escape(row['path'])}[/]", *shares)
    if len(ranked) > _LINES:
        table.add_row(f"[dim]… and {len(ranked) - _LINES} more files (--json has all)[/]")
    return table


def excluded(result: Simulation) -> Group:
    """What exclusions leave out of the uncovered points, by reason, coverage without it, and stale exclusions."""
    lines = []
    if result.excluded and result.coverage_without_excluded is not None:
        share = result.coverage_without_excluded.overall
        told = "" if share is None else f"; overall {100 * share:.1f} % without excluded points"
        lines.append(f"[bold]excluded[/]: {len(result.excluded)} uncovered points{told}")
        for reason, n in Counter(item.reason for item in result.excluded).most_common(_LINES):
            lines.append(f"{n:6}  {escape(reason[:150])}")
    for stale in result.stale_exclusions:
        lines.append(f"[yellow]stale exclusion[/]: no point fits {escape(stale)}; correct or delete it")
    return Group(*lines)


def trajectory(found: Trajectory) -> None:
    """Every step: what was uncovered, as the policy read it, what changed in the testbench, and what it hits."""
    console = Console(highlight=False)
    first = found.steps[0]
    against = "" if found.avg_random is None else f"; scripted/random reaches {100 * found.avg_random:.1f} % on average"
    console.print(
        f"[bold]{escape(found.design)}[/]: {escape(first.policy)}, best {100 * found.best:.1f} %{against}"
        f"  [dim]{found.trajectory_id}[/]",
        soft_wrap=True,
    )
    colours = {"+": "green", "-": "red", "@": "dim"}
    for step in found.steps:
        console.print(f"\n[bold]{escape(step.title)}[/]  [dim]{escape(step.policy)}[/]")
        if step.observed:
            seen = step.uncovered.splitlines()
            console.print(f"{step.n_uncovered} points were uncovered; the policy read:")
            for line in seen[:_SEEN]:
                console.print(f"  [dim]{escape(line)}[/]", soft_wrap=True)
            if seen[_SEEN:]:
                console.print(f"  [dim]… and {len(seen) - _SEEN} more lines (--json has all)[/]")
        for line in step.change:
            console.print(f"  [{colours.get(line[:1], 'default')}]{escape(line)}[/]", soft_wrap=True)
        if not step.change:
            console.print("  the same testbench again" if step.testbench else "  no testbench in the answer")
        console.print(step.outcome, soft_wrap=True)
        reached = [item for item in step.hit if step.testbench_before and item.metric != "toggle"]
        for file, lines in by_line(reached).items():
            for number, (source, kinds) in lines.items():
                console.print(
                    f"  {escape(f'{file}:{number}')}  {escape(source)}  [dim]{escape(kinds)}[/]", soft_wrap=True
                )


@contextmanager
def closing(budget: int) -> Iterator[Callable[[ClosureStep], None]]:
    """A live line of the loop on stderr; yields what to call for every step."""
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=console)
    task = bar.add_task("drafts", total=budget)

    def heard(step: ClosureStep) -> None:
        if step.logical:
            bar.advance(task)
        round_name = "drafts" if step.round == 0 else f"round {step.round}"
        bar.update(task, description=f"{round_name}, {step.policy}, merged coverage {100 * step.merged:.1f} %")
        if step.new_points and not console.is_terminal:
            console.print(f"{round_name}: {step.policy} +{step.new_points} points, {100 * step.merged:.1f} %")

    with Live(bar, console=console, transient=True) if console.is_terminal else nullcontext():
        yield heard


def closure(summary: Mapping[str, Any], out: Path | None) -> None:
    """The result of a closure run."""
    console = Console(highlight=False)
    best = summary["best"]
    console.print(
        f"[bold]{escape(summary['design'])}[/]: stopped by {summary['stopped']} after {summary['rounds']} rounds, "
        f"{summary['simulations']} simulations ({summary['cached_simulations']} from the cache)"
    )
    if best is None:
        console.print("[red]no testbench ran[/]; the first errors:")
        for error in summary["errors"]:
            console.print(f"  {escape(error)}")
        return
    console.print(metrics(summary["merged"], summary["points"], {}))
    console.print(f"best single testbench: {100 * best['overall']:.1f} % ({best['testbench_id']}, {best['policy']})")
    console.print(f"{len(summary['testbenches'])} testbenches give the merged coverage")
    console.print(uncovered([UncoveredItem(**item) for item in summary["uncovered"]]))
    console.print(f"[dim]written to {escape(str(out))}[/]" if out else "[dim]--out DIR writes the testbenches[/]")
