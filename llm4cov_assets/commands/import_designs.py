"""`llm4cov designs import`: bring designs in from any source."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llm4cov_assets.commands.simulate import DefineOption, IncludeOption, ParamOption, TopOption

if TYPE_CHECKING:
    from llm4cov_assets.ingest.importing import ImportReport, Rejection
    from llm4cov_assets.ingest.kept import KeptDesign

SHOWN = 30
"""Designs of each kind that a terminal is shown; --json has all."""

_FORMATS = "auto, directory, filelist, cvdp, cvdp-ecov, codev-r1, verithoughts, fusesoc"


def import_designs(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="folder of a design or of designs, RTL file, file list (.f), data set (.jsonl, .parquet, or "
            "hf:NAME on Hugging Face), FuseSoC .core, or an archive of these",
        ),
    ],
    format: Annotated[str, typer.Option(help=_FORMATS)] = "auto",
    split: Annotated[str, typer.Option(help="train or eval")] = "train",
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="designs per batch (default: 80, more for more than 16,000 designs)")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would be accepted, keep nothing")] = False,
    build: Annotated[
        bool, typer.Option(help="accept only what Verilator builds and what runs under reset and clocks")
    ] = True,
    near_duplicates: Annotated[
        str, typer.Option(help="mark or drop designs that are nearly another one of the same split")
    ] = "mark",
    prefix: Annotated[str, typer.Option(help="put this before the names of the designs")] = "",
    top: TopOption = None,
    define: DefineOption = None,
    include: IncludeOption = None,
    param: ParamOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON on stdout")] = False,
) -> None:
    """Import designs, each record by itself: good ones are kept in batches, the others are listed with their reason.

    A training design that resembles an evaluation design (ROUGE-L of 0.5 or more between any two files) is rejected as
    contaminated; an evaluation design that comes in later retires the training designs that resemble it. What was
    imported before stays; a design that changed at its source becomes a new version. Exit code 0 when at least one is
    accepted or known already, 1 when none is, 2 when the source cannot be read.
    """
    from llm4cov_assets.commands import storing
    from llm4cov_assets.commands.bars import progress
    from llm4cov_assets.commands.simulate import pairs
    from llm4cov_assets.home import home
    from llm4cov_assets.ingest.build_check import build_check
    from llm4cov_assets.ingest.importing import Options, Rejection, contamination, import_source
    from llm4cov_assets.progress import Progress
    from sim import reasons
    from sim.files import own_folder

    options = Options(prefix, top, pairs("--define", define, "1"), tuple(include or ()), pairs("--param", param, None))
    with (
        progress() as tell,
        storing.simulator(build) as simulator,
        own_folder(home() / "designs" / ".incoming") as folder,
    ):
        spool = storing.Spool(folder)

        def check(designs: Sequence[KeptDesign], progress: Progress) -> Iterator[tuple[KeptDesign, Rejection | None]]:
            assert simulator is not None
            return build_check(designs, progress, simulator, lambda tables: spool.add(tables, "adhoc"))

        def describe(batches: dict[str, list[KeptDesign]]) -> None:
            total, done = sum(map(len, batches.values())), 0
            for batch, designs in batches.items():
                tell("elaborating", done, total, batch)
                spool.add(storing.tables_of(d.load() for d in designs), batch)
                done += len(designs)
            # rows come first: a design that is kept has its rows, whenever this is killed
            tell("storing", 0, None, "")
            spool.write()

        report = import_source(
            source, home(), format=format, split=split, batch_size=batch_size, dry_run=dry_run,
            near=near_duplicates,  # type: ignore[arg-type]
            options=options, check=check if build else None, progress=tell, before_commit=describe,
        )  # fmt: skip
        if not dry_run:
            spool.write()
            gone = [
                Rejection(d.name, d.source, reasons.CONTAMINATED, contamination(d, o)) for d, o in report.contaminated
            ]
            rejected = storing.rejected_rows([*report.rejected, *gone])
            storing.write({"rejected_designs": rejected}, "adhoc")
            storing.write({"design_overlaps": storing.overlap_rows(report)}, "adhoc")
            storing.publish()
    if as_json:
        print(json.dumps(_as_json(report, dry_run), ensure_ascii=False))
    else:
        _show(report, source, dry_run)
    raise typer.Exit(0 if report.accepted or report.known else 1)


def _as_json(report: ImportReport, dry_run: bool) -> dict[str, Any]:
    return {
        "accepted": [_brief(d) | {"batch": b} for b, designs in report.batches.items() for d in designs],
        "rejected": [vars(r) for r in report.rejected],
        "known": [_brief(d) | {"batch": d.batch} for d in report.known],
        "replaced": [_brief(d) | {"batch": d.batch} for d in report.replaced],
        "contaminated": [_brief(d) | {"batch": d.batch, **vars(overlap)} for d, overlap in report.contaminated],
        "near_duplicates": [vars(o) for o in report.overlaps],
        "dry_run": dry_run,
    }


def _brief(design: KeptDesign) -> dict[str, Any]:
    hidden = ("folder", "kept_at", "batch", "content")
    return {name: value for name, value in vars(design).items() if name not in hidden}


def _show(report: ImportReport, source: str, dry_run: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    out = Console(highlight=False)

    def table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
        made = Table()
        for column in columns:
            made.add_column(
                column, justify="right" if column in ("files", "lines", "designs") else "left", overflow="fold"
            )
        for line in lines[:SHOWN]:
            made.add_row(*(Text(cell) for cell in line))
        out.print(made)
        if len(lines) > SHOWN:
            out.print(f"and {len(lines) - SHOWN} more (--json has all)")

    found = [(d, batch) for batch, designs in report.batches.items() for d in designs]
    if found:
        table(
            ("name", "batch", "top", "files", "lines"),
            [(d.name, batch, d.top, str(d.n_files), str(d.n_lines)) for d, batch in found],
        )
    if report.rejected:
        below = f"{source.rstrip('/')}/"  # said once, by the person
        lines = [(r.name, r.reason, r.detail.replace(below, "")) for r in report.rejected]
        table(("name", "reason", "detail"), lines)
        if len(report.rejected) > SHOWN:
            counted = Counter(r.reason for r in report.rejected).most_common()
            table(("reason", "designs"), [(reason, str(n)) for reason, n in counted])
    for design, overlap in report.contaminated:
        out.print(
            f"{'would be retired' if dry_run else 'retired'} from training: {design.name} ({overlap.file} resembles "
            f"{overlap.other_file} of {overlap.other}, ROUGE-L {overlap.share:.2f}; designs restore takes it back)",
            markup=False,
        )
    for overlap in report.overlaps[:SHOWN]:
        out.print(
            f"alike: {overlap.design} and {overlap.other} ({overlap.file} and {overlap.other_file}, ROUGE-L "
            f"{overlap.share:.2f})",
            markup=False,
        )
    parts = [f"{len(report.accepted)} {'would be accepted' if dry_run else 'accepted'}"]
    if len(report.batches) > 1:
        parts[0] += f" in {len(report.batches)} batches"
    parts.append(f"{len(report.rejected)} rejected")
    for name, designs in (("imported before", report.known), ("replaced by a new version", report.replaced)):
        parts += [f"{len(designs)} {name}"] if designs else []
    parts += [f"{len(report.overlaps)} near duplicates marked"] if report.overlaps else []
    out.print(", ".join(parts))
    if report.accepted and not dry_run:
        name = report.accepted[0].name
        out.print(f"next: llm4cov designs show {name}; llm4cov close {name}", markup=False)
