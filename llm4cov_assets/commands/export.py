"""`llm4cov export`: training data and trajectories for other tools."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llm4cov_assets.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from llm4cov_assets.export.datasets import Shape, Source
    from llm4cov_assets.export.selection import Selection
    from llm4cov_assets.export.tally import Limits
    from llm4cov_assets.export.wording import Designs

commands = typer.Typer(
    help="Write training data or trajectories to a folder, with a data card. Nothing that is evaluated on.",
    no_args_is_help=True,
)

FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="new folder to write")]
StageOption = Annotated[list[int] | None, typer.Option("--stage", min=0, help="stage, repeatable; default: all")]
DesignOption = Annotated[list[str] | None, typer.Option("--design", help="glob of design names, repeatable")]
PolicyOption = Annotated[list[str] | None, typer.Option("--policy", help="glob of policy names, repeatable")]
SplitOption = Annotated[str, typer.Option("--split", help="split of the designs: train, inbox or adhoc")]
GainOption = Annotated[float | None, typer.Option("--min-gain", min=-1.0, max=1.0, help="least gain of a step")]
ConfigOption = Annotated[
    str | None, typer.Option("--config", metavar="HASH|all", help="configuration; default: the current one")
]
FormatOption = Annotated[str, typer.Option("--format", help="hf (Parquet for datasets), jsonl or parquet")]
LengthOption = Annotated[
    int | None, typer.Option("--max-chars", min=1, help="leave out rows with more characters of text")
]
UniqueOption = Annotated[bool, typer.Option("--unique", help="leave out rows whose text an earlier row has")]
ValidationOption = Annotated[
    float, typer.Option(min=0.0, max=0.5, help="share of the rows to hold out, by whole clusters of designs")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="count, and write nothing")]
JsonOption = Annotated[bool, typer.Option("--json", help="the description of the export on stdout")]

FORMATS = ("hf", "jsonl", "parquet")
TEXTS = ("compact", "testbench")
SPLITS = ("train", "eval", "inbox", "adhoc", "all")


def mount(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.add_typer(commands, name="export")


@commands.command()
def sft(
    folder: FolderArgument,
    text: Annotated[
        str, typer.Option("--text", help="compact (what the student trained on) or testbench (RTL in, file out)")
    ] = "compact",
    stage: StageOption = None,
    role: Annotated[list[str] | None, typer.Option("--role", help="draft or repair; default: both")] = None,
    design: DesignOption = None,
    policy: PolicyOption = None,
    split: SplitOption = "train",
    min_gain: GainOption = None,
    config: ConfigOption = None,
    max_chars: LengthOption = None,
    unique: UniqueOption = False,
    validation: ValidationOption = 0.0,
    fmt: FormatOption = "hf",
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Examples for supervised fine-tuning, as prompt and completion and as messages. Exit code 1 when none fits."""
    from llm4cov_assets.export import sft as kind
    from llm4cov_assets.export.tally import Limits

    _one_of("--text", text, TEXTS)

    def make(selection: Selection, designs: Designs) -> tuple[Source, None]:
        return kind.source(selection, text, designs), None  # type: ignore[arg-type]  # checked above

    chosen = _chosen(stage, design, policy, role, split, min_gain)
    limits = Limits(max_chars, unique, validation)
    _export(folder, chosen, config, make, fmt, limits, dry_run, as_json, training=True)


@commands.command()
def preferences(
    folder: FolderArgument,
    text: Annotated[
        str, typer.Option("--text", help="testbench (RTL in, file out) or compact (the student's own answers)")
    ] = "testbench",
    margin: Annotated[float, typer.Option(min=0.0, max=1.0, help="least difference in coverage of a pair")] = 0.01,
    stage: StageOption = None,
    role: Annotated[list[str] | None, typer.Option("--role", help="draft or repair; default: repair")] = None,
    design: DesignOption = None,
    policy: PolicyOption = None,
    split: SplitOption = "train",
    min_gain: GainOption = None,
    config: ConfigOption = None,
    max_chars: LengthOption = None,
    unique: UniqueOption = False,
    validation: ValidationOption = 0.0,
    fmt: FormatOption = "hf",
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Pairs of answers to one state for DPO: the best that passed, the worst that was simulated; one that runs against
    one that does not is a pair whatever the margin. Exit code 1 when there is none."""
    from llm4cov_assets.export import preferences as kind
    from llm4cov_assets.export.tally import Limits

    _one_of("--text", text, TEXTS)

    def make(selection: Selection, designs: Designs) -> tuple[Source, None]:
        return kind.source(selection, text, margin, designs), None  # type: ignore[arg-type]  # checked above

    chosen = _chosen(stage, design, policy, role or ["repair"], split, min_gain)
    limits = Limits(max_chars, unique, validation)
    _export(folder, chosen, config, make, fmt, limits, dry_run, as_json, training=True)


@commands.command()
def trajectories(
    folder: FolderArgument,
    hits: Annotated[bool, typer.Option("--hits", help="the points that each step hit, and a table of points")] = False,
    stage: StageOption = None,
    role: Annotated[
        list[str] | None, typer.Option("--role", help="draft, repair, eval_direct, eval_agentic or calibration")
    ] = None,
    design: DesignOption = None,
    policy: PolicyOption = None,
    split: Annotated[
        str, typer.Option("--split", help="split of the designs: train, inbox, adhoc, or eval and all for analysis")
    ] = "train",
    min_gain: GainOption = None,
    config: ConfigOption = None,
    fmt: FormatOption = "parquet",
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Every step of every trajectory: testbench, observation, coverage, gain, seeds. Exit code 1 when there is none."""
    from llm4cov_assets.export import trajectories as kind
    from llm4cov_assets.export.tally import Limits

    def make(selection: Selection, designs: Designs) -> tuple[Source, Any]:
        return kind.source(selection, hits), kind.points() if hits else None

    chosen = _chosen(stage, design, policy, role, split, min_gain)
    _export(folder, chosen, config, make, fmt, Limits(), dry_run, as_json, training=False)


def _chosen(
    stage: list[int] | None,
    design: list[str] | None,
    policy: list[str] | None,
    role: list[str] | None,
    split: str,
    min_gain: float | None,
) -> Callable[[tuple[str, ...]], Selection]:
    from llm4cov_assets.export.selection import Selection

    _one_of("--split", split, SPLITS)

    def of(configs: tuple[str, ...]) -> Selection:
        parts = (tuple(part or ()) for part in (stage, design, policy, role))
        return Selection(configs, *parts, split=split, min_gain=min_gain)  # type: ignore[arg-type]

    return of


def _export(
    folder: Path,
    chosen: Callable[[tuple[str, ...]], Selection],
    config: str | None,
    make: Callable[[Selection, Designs], tuple[Source, tuple[str, Shape] | None]],
    fmt: str,
    limits: Limits,
    dry_run: bool,
    as_json: bool,
    *,
    training: bool,
) -> None:
    from llm4cov_assets.commands.bars import progress
    from llm4cov_assets.commands.query import opened_store
    from llm4cov_assets.export.exporting import export
    from llm4cov_assets.export.guard import refuse_split
    from llm4cov_assets.export.selection import configurations
    from llm4cov_assets.export.wording import Designs
    from llm4cov_assets.export.writing import refuse_taken

    _one_of("--format", fmt, FORMATS)
    if training:
        refuse_split(chosen(()).split)
    target = folder.expanduser().absolute()
    refuse_taken(target)
    with opened_store() as store:
        store.publish(force=True)  # so that what was just written is exported too
        with store.connect() as connection, progress() as tell:
            selection = chosen(configurations(connection, config))
            source, points = make(selection, Designs(connection))
            done = export(
                connection,
                source,
                selection,
                target,
                fmt=fmt,  # type: ignore[arg-type]  # checked above
                limits=limits,
                points=points,
                dry_run=dry_run,
                progress=lambda rows, total: tell("writing rows", rows, total, ""),
            )
    if as_json:
        print(json.dumps(done.description, ensure_ascii=False, default=str))
    if not done.rows:
        hint = "llm4cov sql 'from stage_funnel' shows what there is"
        print(f"llm4cov: no row fits these filters, nothing was written; {hint}", file=sys.stderr)
        raise typer.Exit(1)
    if not as_json:
        _show(done.description, target, dry_run)


def _show(description: dict[str, Any], target: Path, dry_run: bool) -> None:
    """What was written, or would be, for people."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    counts = description["counts"]
    table = Table(box=None, pad_edge=False)
    for name, value in counts[0].items():
        table.add_column(name, justify="left" if isinstance(value, str) else "right")
    for row in counts:
        table.add_row(*("" if v is None else f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values()))
    console.print(table)
    for reason, n in description["left_out"].items():
        console.print(f"{n} left out: {reason}")
    if description["duplicates"] and "same text" not in str(description["left_out"]):
        console.print(f"{description['duplicates']} rows have the text of an earlier one; --unique leaves them out")
    for entry in description.get("trained", []):
        which = "exactly what" if entry["same"] else "not all or not only what"
        console.print(f"stage {entry['stage']}: {which} checkpoint {entry['checkpoint_id'][:8]} was trained on")
    if description["licence"]["imported_designs"]:
        console.print(f"[yellow]{description['licence']['note']}[/]")
    if dry_run:
        console.print(f"{description['rows']} rows; nothing was written (--dry-run)")
        return
    size = sum(file["bytes"] for file in description["files"])
    console.print(f"{description['rows']} rows, {size / 1e6:,.1f} MB, in {target}; README.md there is the data card")


def _one_of(option: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UserError(f"{option} {value}: must be one of {', '.join(allowed)}")
