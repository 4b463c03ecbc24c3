"""`llm4cov designs overlap`: which designs are copies of which."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llm4cov_assets.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llm4cov_assets.ingest.copies import Copy

SHOWN = 30
"""Copies that a terminal is shown; --json and --out have all, with the files."""

_TOLD = 5  # columns that fit


def show_overlap(
    split: Annotated[str, typer.Option(help="train (and its contamination), eval, or all")] = "all",
    least: Annotated[float, typer.Option(min=0.05, max=1.0, help="ROUGE-L from which designs count as copies")] = 0.5,
    profile: Annotated[str, typer.Option(help="profile whose generated designs are meant")] = "demo",
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="page to write: .md or .html")] = None,
    shown: Annotated[int, typer.Option(min=0, help="copies of which the page shows what they have in common")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON on stdout")] = False,
) -> None:
    """Which training designs resemble evaluation designs, and which designs of a split each other. What is found is
    stored too (table `design_overlaps`).

    Exit code 1 when a training design is contaminated.
    """
    from llm4cov_assets.commands.bars import progress
    from llm4cov_assets.home import home
    from llm4cov_assets.ingest.copies import copies
    from llm4cov_assets.ingest.kept import kept_designs
    from llm4cov_assets.ingest.registry import bundled_records
    from llm4cov_assets.profiles import profile as named_profile
    from llm4cov_assets.report import overlap as pages

    if split not in ("train", "eval", "all"):
        raise UserError(f"no split {split!r}; there are train, eval and all")
    if out and out.suffix not in (".md", ".html"):
        raise UserError(f"{out}: a page is written as .md or .html")
    kept = [d for designs in kept_designs(home()).values() for d in designs]
    records = [*bundled_records(named_profile(profile)), *kept]
    with progress() as tell:
        found = copies(records, tell, split, least)
        tell("storing", 0, None, "")
        _store(found, profile)
    n = sum(r.split in ("train", "eval") if split == "all" else r.split == split for r in records)
    if out:
        page = pages.html_page if out.suffix == ".html" else pages.markdown_page
        out.write_text(page(found, n, least, shown))
    if as_json:
        print(json.dumps(pages.as_rows(found), ensure_ascii=False))
    else:
        _show(found, pages.summary(found, n), out)
    raise typer.Exit(1 if any(c.kind == "contaminated" for c in found) else 0)


def _store(found: Sequence[Copy], profile: str) -> None:
    """Write `design_overlaps`, and the designs that no one has stored yet."""
    from llm4cov_assets import rows
    from llm4cov_assets.commands import storing
    from llm4cov_assets.home import home
    from llm4cov_assets.ingest.copies import id_of
    from llm4cov_assets.ingest.kept import KeptDesign
    from warehouse.store import Store

    if not found:
        return
    involved = {id_of(r): r for c in found for r in (c.record, c.other)}
    stored = set(Store(home()).query("select design_id from designs")["design_id"])
    missing = [r for design_id, r in involved.items() if design_id not in stored]
    storing.write(storing.tables_of(r.load() if isinstance(r, KeptDesign) else r for r in missing), "adhoc", profile)
    storing.write({"design_overlaps": rows.table_frame("design_overlaps", map(overlap_row, found))}, "adhoc", profile)
    storing.publish()


def overlap_row(copy: Copy) -> dict[str, Any]:
    """Its row of `design_overlaps`."""
    from llm4cov_assets import rows
    from llm4cov_assets.ingest.copies import id_of

    return rows.overlap_row(
        copy.overlap,
        kind=copy.kind,
        design_id=id_of(copy.record),
        other_design_id=id_of(copy.other),
        split=copy.record.split,
        other_split=copy.other.split,
    )


def _show(found: Sequence[Copy], summary: str, out: Path | None) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from llm4cov_assets.report.overlap import HEADS, cells

    console = Console(highlight=False)
    if found:
        table = Table()
        for head in HEADS[:_TOLD]:
            table.add_column(head, overflow="fold", no_wrap=head in ("kind", "design", "resembles"))
        for copy in found[:SHOWN]:
            table.add_row(*(Text(cell) for cell in cells(copy)[:_TOLD]))
        console.print(table)
    if len(found) > SHOWN:
        console.print(f"and {len(found) - SHOWN} more (--json and --out have all, with the files)")
    console.print(summary, markup=False)
    if out:
        console.print(f"page: {out}", markup=False, soft_wrap=True)
