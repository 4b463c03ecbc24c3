"""An archive of anything that can be imported: a folder of designs, a file list, records, cores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.archives import Unpacked, archive_stem, unpacked
from llm4cov_assets.ingest.candidates import Candidate
from sim.assembly import Gathered
from sim.design import DesignError


def candidates(source: str, format: str) -> Iterator[Candidate]:
    """What is in the archive at `source`, which stays unpacked until the last candidate was taken. Messages name its
    members as `archive.zip/member`. An archive that cannot be unpacked is one candidate, which says why."""
    from llm4cov_assets.ingest.formats import reader

    path = Path(source).expanduser()
    try:
        with unpacked(path) as found:
            try:
                read, _ = reader(str(found.path), format)
                for candidate in read():
                    yield _shown(candidate, found)
            except UserError as error:
                raise UserError(found.shown(str(error))) from None
    except DesignError as error:
        yield refused(archive_stem(path), source, error)


def refused(name: str, place: str, error: DesignError) -> Candidate:
    """A candidate of which it is known already why it is none."""

    def gather() -> Gathered:
        raise DesignError(str(error), error.reason)

    return Candidate(name, place, gather)


def _shown(candidate: Candidate, archive: Unpacked) -> Candidate:
    def gather() -> Gathered:
        try:
            found = candidate.gather()
        except DesignError as error:
            raise DesignError(archive.shown(str(error)), error.reason) from None
        folder = archive.shown(str(found.folder)) if found.folder else ""
        return replace(found, place=archive.shown(found.place), shown_folder=folder)

    return replace(candidate, place=archive.shown(candidate.place), gather=gather)
