"""Bodies of `designs` and `eval_designs`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from llm4cov_assets import rows
from llm4cov_assets.assets.batches import evaluation_records, is_first_of_version, open_batch
from llm4cov_assets.assets.work import Outcome, Work
from llm4cov_assets.ingest.importing import Rejection
from llm4cov_assets.ingest.kept import kept_batch
from llm4cov_assets.ingest.records import BATCH_SIZE, DesignRecord
from llm4cov_assets.ingest.taking import take_in
from llm4cov_assets.progress import Progress
from llm4cov_assets.report.plots import histogram, markdown
from sim.design import DesignError
from sim.identity import content_id

if TYPE_CHECKING:
    from llm4cov_assets.assets.progress import Task
    from llm4cov_assets.assets.resources import SimulatorResource
    from llm4cov_assets.ingest.kept import KeptDesign
    from sim.simulator import Simulator


def batch_content(work: Work) -> str:
    """Hash of the designs of the partition and of what is wrong with the others. A version of the inbox has the hash of
    its content in its name: nothing has to be imported to tell it."""
    if is_first_of_version(work.partition or ""):
        return content_id("inbox", work.partition)
    batch = open_batch(work.partition or "", work.profile, work.store.home)
    return content_id([r.design.design_id for r in batch.records], [r.detail for r in batch.rejected])


def registered_designs(work: Work, simulator: SimulatorResource) -> Outcome:
    """Rows of the designs of a partition. A version of the inbox is imported first, unless that was done: what does not
    build, or does not run under reset and clocks, is refused."""
    metadata = _imported(work, simulator) if is_first_of_version(work.partition or "") else {}
    batch = open_batch(work.partition or "", work.profile, work.store.home)
    checked, known, refused = _checked(work, simulator)
    records = [replace(r, deterministic=known.get(r.design.design_id, r.deterministic)) for r in batch.records
               if r.design.design_id not in refused]  # fmt: skip
    tables, found = analysed(work, records)
    rejected = [*batch.rejected, *refused.values(), *found]
    tables["rejected_designs"] = _rejected_rows(rejected)
    return Outcome(tables | checked, design_metadata(tables["designs"], rejected) | metadata)


def _imported(work: Work, simulator: SimulatorResource) -> dict[str, Any]:
    """Import a version of the inbox; says into which batches."""
    from llm4cov_assets.ingest.build_check import build_check

    def check(designs: Sequence[KeptDesign], progress: Progress) -> Iterator[tuple[KeptDesign, Rejection | None]]:
        if len(designs) > BATCH_SIZE:  # hours of builds before anything is closed: each batch checks its own
            yield from ((design, None) for design in designs)
            return
        with simulator.open() as running:
            yield from build_check(designs, progress, running)

    with _told(work) as progress:
        found = take_in(work.store.home, work.partition or "", check=check, progress=progress)
    if set(found.batches) <= {work.partition}:
        return {}
    return {"batches": {"markdown": "\n".join(f"- `{batch}`: {n} designs" for batch, n in found.batches.items())}}


def _checked(
    work: Work, simulator: SimulatorResource
) -> tuple[dict[str, pl.DataFrame], dict[str, bool | None], dict[str, Rejection]]:
    """The build check of the designs that came in as this partition: its rows, and by design id whether those that run
    are deterministic, and why designs of the inbox are refused. What was checked before is in the cache."""
    from llm4cov_assets.ingest.build_check import build_check

    kept = [d for d in kept_batch(work.store.home, work.partition or "") if d.kind == "imported"]
    if not kept:
        return {}, {}, {}
    parts: list[dict[str, pl.DataFrame]] = []
    with simulator.open() as running, _told(work) as progress:
        done = list(build_check(kept, progress, running, parts.append))
    known = {design.design_id: design.deterministic for design, why in done if not why}
    refused = {design.design_id: why for design, why in done if why and design.split == "inbox"}
    return {name: pl.concat([part[name] for part in parts]) for name in (parts[0] if parts else {})}, known, refused


@contextmanager
def _told(work: Work) -> Iterator[Progress]:
    """The progress of an import as tasks of the asset, one after the other."""
    with ExitStack() as stack:
        now: tuple[str, Task, int] | None = None

        def tell(what: str, done: int, total: int | None, name: str) -> None:
            nonlocal now
            if now is None or now[0] != what:
                stack.close()
                now = what, stack.enter_context(work.task(what, total or 0, "designs")), 0
            now[1].advance(max(0, done - now[2]))
            now = now[0], now[1], max(done, now[2])

        yield tell


def evaluation_content(work: Work) -> str:
    """Hash of the evaluation designs."""
    return content_id([r.design.design_id for r in evaluation_records(work.profile, work.store.home)])


def evaluation_designs(work: Work, simulator: Simulator) -> Outcome:
    """Rows of the evaluation designs, and their targets from a reference campaign."""
    from llm4cov_assets.assets.simulating import Counted
    from llm4cov_assets.ingest.calibration import calibrate, reference_rows

    records = evaluation_records(work.profile, work.store.home)
    tables, rejected = analysed(work, records)
    accepted = set(tables["designs"]["design_id"])
    designs = [r.design for r in records if r.design.design_id in accepted]
    simulate = Counted(work, simulator)
    simulate.doing = "reference campaign"
    references = calibrate(
        designs, simulate, simulator.points, budget_sims=work.profile.calibration_sims, seed=work.profile.seed
    )
    measured = reference_rows(references, simulator.points, work.profile.config_hash)
    measured["targets"] = pl.concat([measured["targets"], tables["targets"]])
    tables |= measured
    tables["rejected_designs"] = _rejected_rows(rejected)
    reached = [r.coverage.overall or 0.0 for r in references]
    metadata = {
        "targets": tables["targets"].height,
        "reference_coverage": round(sum(reached) / max(len(reached), 1), 4),
        "references": {"markdown": markdown(histogram(reached, "reference coverage"), "reference coverage")},
    }
    return Outcome(tables, design_metadata(tables["designs"], rejected) | metadata | simulate.costs, simulate.logical)


def analysed(work: Work, records: Sequence[DesignRecord]) -> tuple[dict[str, pl.DataFrame], list[Rejection]]:
    """Rows of the designs that elaborate, and why the others do not."""
    from sim.elaborate import analyse

    found: list[dict[str, Any]] = []
    accepted, rejected = [], []
    with work.task("elaborating", len(records), "designs") as task:
        for r in records:
            task.advance()
            try:
                analysis = analyse(r.design)
            except DesignError as error:
                rejected.append(Rejection(r.name, r.source, "does not elaborate", str(error)))
                continue
            accepted.append(r.design)
            found.append(rows.record_row(r, analysis))
    return rows.design_tables(found, accepted), rejected


def _rejected_rows(rejected: Sequence[Rejection]) -> pl.DataFrame:
    return rows.table_frame("rejected_designs", (vars(r) for r in rejected))


def design_metadata(designs: pl.DataFrame, rejected: Sequence[Rejection]) -> dict[str, Any]:
    """Counts of designs, lines and conditions."""
    branches = int(designs["n_branches"].sum())
    known = int(designs["n_conditions_known"].sum())
    rejections = "\n".join(f"- `{r.name}`: {r.detail}" for r in rejected[:20])
    return {
        "designs": designs.height,
        "rejected": len(rejected),
        "clusters": designs["cluster"].n_unique(),
        "lines": int(designs["n_lines"].sum()),
        "branches": branches,
        "conditions_known": known,
        "conditions_known_share": round(known / branches, 3) if branches else 0.0,
        "rejections": {"markdown": rejections or "none"},
    }
