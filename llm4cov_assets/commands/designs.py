"""`llm4cov designs`: bring designs in, look at them, take them out, generate and calibrate them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llm4cov_assets.commands.design_page import show_design
from llm4cov_assets.commands.import_designs import import_designs
from llm4cov_assets.commands.overlap import show_overlap
from llm4cov_assets.errors import UserError

if TYPE_CHECKING:
    from llm4cov_assets.ingest.kept import KeptDesign
    from llm4cov_assets.ingest.records import DesignRecord

_SUMMARY = (
    "name",
    "design_id",
    "rtl_id",
    "split",
    "kind",
    "cluster",
    "benchmark",
    "source",
    "top",
    "n_files",
    "n_lines",
)

JsonOption = Annotated[bool, typer.Option("--json", help="print JSON on stdout")]
group = typer.Typer(help="Bring designs in, look at them, generate and calibrate them.", no_args_is_help=True)


def mount(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.add_typer(group, name="designs")


group.command("import")(import_designs)
group.command("show")(show_design)
group.command("overlap")(show_overlap)


@group.command("list")
def list_designs(
    glob: Annotated[str, typer.Argument(metavar="GLOB", help="names to list")] = "*",
    split: Annotated[str | None, typer.Option(help="only this split: train, eval, inbox, adhoc")] = None,
    profile: Annotated[str, typer.Option(help="profile whose generated designs are listed")] = "demo",
    as_json: JsonOption = False,
) -> None:
    """Every design with a name: bundled, generated for a profile, imported."""
    from fnmatch import fnmatchcase

    from llm4cov_assets.home import home
    from llm4cov_assets.ingest.kept import kept_designs
    from llm4cov_assets.ingest.registry import bundled_records, did_you_mean
    from llm4cov_assets.profiles import profile as named_profile

    kept = [d for designs in kept_designs(home()).values() for d in designs]
    known = [r for r in (*bundled_records(named_profile(profile)), *kept) if split is None or r.split == split]
    records = [r for r in known if fnmatchcase(r.name, glob)]
    if not records and (meant := did_you_mean(glob, [r.name for r in known])):
        typer.echo(f"llm4cov: no design is called {glob!r}{meant}", err=True)
    if as_json:
        _print([_summary(r) for r in records])
        return
    table = _table("name", "split", "kind", "cluster", "files", "lines")
    for r in records:
        s = _summary(r)
        table.add_row(r.name, r.split, r.kind, r.cluster, str(s["n_files"]), str(s["n_lines"]))
    _out().print(table)
    _out().print(f"{len(records)} designs")


@group.command("export")
def export_design(
    design: Annotated[str, typer.Argument(metavar="DESIGN", help="name, folder or RTL file")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="new or empty folder")],
    as_json: JsonOption = False,
) -> None:
    """Write a design to a folder that can be imported again: sources, specification and design.toml."""
    from llm4cov_assets.home import home
    from llm4cov_assets.ingest.exporting import export
    from llm4cov_assets.ingest.registry import find_design

    subject = find_design(design, home())
    files = export(subject, folder)
    if as_json:
        _print({"name": subject.name, "design_id": subject.design_id, "folder": str(folder), "files": files})
    else:
        _out().print(f"{subject.name}: {len(files)} files in {folder}")


@group.command("generate")
def generate_designs(
    count: Annotated[int, typer.Option(min=1, help="designs")] = 16,
    families: Annotated[str, typer.Option(metavar="GLOB", help="families, several with commas")] = "*",
    seed: Annotated[int, typer.Option(min=-(2**63), max=2**63 - 1, help="seed of the generator")] = 0,
    split: Annotated[str, typer.Option(help="train or eval")] = "train",
    as_json: JsonOption = False,
) -> None:
    """Generate designs into the warehouse as one batch. Families held out of training appear with --split eval only."""
    from llm4cov_assets.commands import storing
    from llm4cov_assets.home import home
    from llm4cov_assets.ingest.kept import keep
    from llm4cov_assets.ingest.registry import generated_records

    records = generated_records(count, families, seed, split)
    batch = f"generated-{split}-{seed}"
    for record in records:
        keep(record, home(), batch)
    storing.write(storing.tables_of(records), batch)
    storing.publish()
    if as_json:
        _print([{**_summary(r), "batch": batch} for r in records])
        return
    table = _table("name", "family", "benchmark", "lines")
    for r in records:
        table.add_row(r.name, r.cluster, r.benchmark, str(_summary(r)["n_lines"]))
    _out().print(table)
    _out().print(f"{len(records)} designs in batch {batch}")


@group.command("retire")
def retire_design(
    name: Annotated[str, typer.Argument(metavar="NAME", help="imported design")],
    reason: Annotated[str, typer.Option(help="why, for those who find it later")] = "retired by hand",
) -> None:
    """Let nothing new use an imported design: no training, evaluation or name. Its rows and results stay."""
    from llm4cov_assets.home import home
    from llm4cov_assets.ingest.kept import kept_designs, retire

    found = [d for designs in kept_designs(home()).values() for d in designs if d.name == name and d.split != "adhoc"]
    if not found:
        raise UserError(f"no imported design {name!r} (see `llm4cov designs list`)")
    for design in found:
        retire(design, reason)
    _out().print(f"{name} is retired; `llm4cov designs restore {name}` takes it back", markup=False)


@group.command("restore")
def restore_design(
    name: Annotated[str, typer.Argument(metavar="NAME", help="retired design")],
) -> None:
    """Use a retired design again, in its last version: also one that was retired as contaminated."""
    from llm4cov_assets.home import home
    from llm4cov_assets.ingest.kept import kept_designs, restore, retired

    gone = [(d, why) for d, why in retired(home()) if d.name == name]
    if not gone:
        raise UserError(f"no retired design {name!r}")
    if any(d.name == name and d.split != "adhoc" for designs in kept_designs(home()).values() for d in designs):
        raise UserError(f"there is a newer {name!r}; import the version that you want again")
    design, why = max(gone, key=lambda found: found[0].kept_at)
    restore(design)
    _out().print(f"{name} of batch {design.batch} is used again; it was retired: {why}", markup=False)


@group.command("calibrate")
def calibrate_designs(
    glob: Annotated[str, typer.Argument(metavar="GLOB", help="names of designs")] = "*",
    budget_sims: Annotated[int, typer.Option(min=1, help="simulations of the campaign of one design")] = 24,
    seed: Annotated[int, typer.Option(min=-(2**63), max=2**63 - 1, help="seed of the campaign")] = 0,
    profile: Annotated[str, typer.Option(help="profile whose evaluation designs are meant")] = "demo",
    as_json: JsonOption = False,
) -> None:
    """Set coverage targets: 0.95 of what a seeded reference campaign reaches, for this simulator and version.

    What the campaign simulated is stored too (role `calibration`). Evaluation designs are calibrated; a name without
    wildcards may be any design. Exit code 1 when none could run.
    """
    from dataclasses import replace
    from functools import partial

    from llm4cov_assets.commands import storing
    from llm4cov_assets.commands.bars import progress
    from llm4cov_assets.ingest.calibration import calibrate, reference_rows
    from llm4cov_assets.profiles import profile as named_profile

    settings = named_profile(profile)
    records = _chosen(glob, profile)
    with progress() as tell, storing.simulator() as simulator:
        assert simulator is not None
        references = calibrate(
            [r.design for r in records],
            partial(simulator.run_batches, limits=settings.limits, seed=0),
            simulator.points,
            budget_sims=budget_sims,
            seed=seed,
            progress=lambda done, total: tell("calibrating", done, total, "simulations"),
        )
        ran = {r.design.design_id for r in references if r.coverage.overall is not None}
        records = [
            replace(r, deterministic=simulator.build(r.design).deterministic) if r.design.design_id in ran else r
            for r in records
        ]
        tables = reference_rows(references, simulator.points, settings.config_hash)
    storing.write(storing.tables_of(records), "adhoc", profile)
    storing.write(tables, "adhoc", profile)
    storing.publish()
    targets = tables["targets"]
    names = {r.design.design_id: r.name for r in records}
    found = [{"name": names[row["design_id"]], **row} for row in targets.iter_rows(named=True)]
    if as_json:
        _print(found)
    else:
        table = _table("name", "metric", "target", "reference", "simulations", "simulator")
        for row in found:
            reference = "" if row["reference"] is None else f"{row['reference']:.3f}"
            table.add_row(
                row["name"], row["metric"], f"{row['target']:.3f}", reference, str(row["simulations"]), row["simulator"]
            )
        _out().print(table)
    failed = [r.design.name for r in references if r.coverage.overall is None]
    for name in failed:
        typer.echo(f"llm4cov: {name}: no testbench of the reference campaign ran; try `llm4cov sim` on it", err=True)
    raise typer.Exit(1 if len(failed) == len(references) else 0)


def _chosen(glob: str, profile: str) -> list[DesignRecord]:
    from fnmatch import fnmatchcase

    from llm4cov_assets.home import home
    from llm4cov_assets.ingest.records import DesignRecord
    from llm4cov_assets.ingest.registry import find_design, known_records
    from llm4cov_assets.profiles import profile as named_profile

    known = known_records(home(), named_profile(profile))
    records = [r for r in known if fnmatchcase(r.name, glob) and r.split == "eval"]
    if records:
        return records
    if any(c in glob for c in "*?["):
        raise UserError(f"no evaluation design matches {glob!r} (see `llm4cov designs list --split eval`)")
    design = find_design(glob, home())
    named = [r for r in known if r.design.design_id == design.design_id]
    return named or [DesignRecord(design, "adhoc", "imported", design.name, "", glob)]


def _summary(record: DesignRecord | KeptDesign) -> dict[str, Any]:
    from llm4cov_assets.ingest.kept import KeptDesign

    if isinstance(record, KeptDesign):
        return {name: getattr(record, name) for name in _SUMMARY}
    files = (*record.design.sources, *record.design.includes)
    return {
        "name": record.name,
        "design_id": record.design.design_id,
        "rtl_id": record.design.rtl_id,
        "split": record.split,
        "kind": record.kind,
        "cluster": record.cluster,
        "benchmark": record.benchmark,
        "source": record.source,
        "top": record.design.top,
        "n_files": len(files),
        "n_lines": sum(f.text.count("\n") for f in files),
    }


def _print(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))


def _out() -> Any:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


def _table(*columns: str) -> Any:
    from rich.table import Table

    table = Table()
    for column in columns:
        right = column in ("files", "lines", "target", "reference", "simulations")
        whole = column in ("name", "batch")  # to be copied
        table.add_column(column, justify="right" if right else "left", overflow="fold", no_wrap=whole)
    return table
