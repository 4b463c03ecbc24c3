"""What commands on designs write into the warehouse: partition `adhoc`, or the batch that they make."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from llm4cov_assets import rows
from llm4cov_assets.home import home
from llm4cov_assets.ingest.kept import kept_designs
from llm4cov_assets.profiles import profile as named_profile
from sim.design import Design, DesignError
from sim.elaborate import Analysis, analyse
from warehouse.store import Provenance, Store

if TYPE_CHECKING:
    from llm4cov_assets.ingest.importing import ImportReport
    from llm4cov_assets.ingest.records import DesignRecord
    from sim.simulator import Simulator

CODE_VERSION = "1"


def write(tables: Mapping[str, pl.DataFrame], partition: str, profile: str = "demo") -> None:
    """Store rows that no asset made."""
    provenance = Provenance(None, named_profile(profile).config_hash, None, None, partition, CODE_VERSION)
    Store(home()).write_all(tables, provenance)


def publish() -> None:
    """Let SQL see what was stored."""
    Store(home()).publish(force=True)


def tables_of(records: Iterable[DesignRecord]) -> dict[str, pl.DataFrame]:
    """Rows of designs; elaboration that fails leaves the counts of the interface at 0."""
    found: list[dict[str, Any]] = []
    designs: list[Design] = []
    for r in records:
        designs.append(r.design)
        found.append(rows.record_row(r, _analysis(r.design)))
    return rows.design_tables(found, designs)


def _analysis(design: Design) -> Analysis | None:
    try:
        return analyse(design)
    except DesignError:
        return None


class Spool:
    """Tables on their way to the warehouse, on disk: an import of ten thousand designs does not fit into memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def add(self, tables: Mapping[str, pl.DataFrame], partition: str) -> None:
        """Put tables aside."""
        folder = self._folder / f"{self._count:06d}"
        folder.mkdir(parents=True)
        (folder / "partition").write_text(partition)
        for name, frame in tables.items():
            frame.write_ipc(folder / f"{name}.arrow")
        self._count += 1

    def write(self) -> None:
        """Store everything that was put aside, batches before what refers to their designs."""
        partitions = {folder: (folder / "partition").read_text() for folder in sorted(self._folder.iterdir())}
        for folder in sorted(partitions, key=lambda f: partitions[f] == "adhoc"):
            write({p.stem: pl.read_ipc(p) for p in folder.glob("*.arrow")}, partitions[folder])
            shutil.rmtree(folder)


@contextmanager
def simulator(wanted: bool = True) -> Iterator[Simulator | None]:
    """A simulator on the home folder, or None when none is wanted."""
    if not wanted:
        yield None
        return
    from sim.simulator import Simulator

    with Simulator(home()) as made:
        yield made


def rejected_rows(rejected: Sequence[Any]) -> pl.DataFrame:
    """Rows of `rejected_designs`."""
    return rows.table_frame("rejected_designs", [vars(r) for r in rejected])


def overlap_rows(report: ImportReport) -> pl.DataFrame:
    """Rows of `design_overlaps` of an import: what resembles other designs of its split, and what evaluation designs
    that came in show to be contaminated."""
    kept = {d.name: d for designs in kept_designs(home()).values() for d in designs}
    alike = [(o, kept.get(o.design), kept.get(o.other), "near duplicate") for o in report.overlaps]
    alike += [(o, design, kept.get(o.other), "contaminated") for design, o in report.contaminated]
    return rows.table_frame(
        "design_overlaps",
        [
            rows.overlap_row(
                overlap, kind=kind, design_id=design.design_id, other_design_id=other.design_id, split=design.split,
                other_split=other.split,
            )
            for overlap, design, other, kind in alike
            if design and other
        ],
    )  # fmt: skip
