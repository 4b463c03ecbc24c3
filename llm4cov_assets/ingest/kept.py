"""Designs kept under the home folder, so that later edits of their source do not matter.

`designs/<batch>/<design_id>/` holds the files of a design with their relative paths below `files/`, and `design.json`
with everything else that a Design is.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from llm4cov_assets.ingest.records import DesignRecord
from sim.design import Design, Exclusion, SourceFile

MANIFEST = "design.json"


def batch_folder(home: Path, batch: str) -> Path:
    """Folder of a batch; characters that are awkward in file names become dashes."""
    return home / "designs" / re.sub(r"[^A-Za-z0-9._-]+", "-", batch)


def keep(record: DesignRecord, home: Path, batch: str) -> Path:
    """Keep a copy of the design in `batch`; returns its folder. The same content kept again only becomes the newest,
    and what is now known of it is added."""
    design = record.design
    folder = batch_folder(home, batch) / design.design_id
    if (folder / MANIFEST).is_file():
        _renew(folder / MANIFEST, record)
        return folder
    partial = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "files").mkdir(parents=True)
    design.write_to(partial / "files")
    manifest = {
        "batch": batch,
        "split": record.split,
        "kind": record.kind,
        "cluster": record.cluster,
        "benchmark": record.benchmark,
        "source": record.source,
        "deterministic": record.deterministic,
        "name": design.name,
        "top": design.top,
        "sources": [f.path for f in design.sources],
        "includes": [f.path for f in design.includes],
        "include_dirs": design.include_dirs,
        "defines": design.defines,
        "parameters": design.parameters,
        "specification": design.specification,
        "clock": design.clock,
        "reset": design.reset,
        "targets": design.targets,
        "exclusions": [asdict(e) for e in design.exclusions],
    }
    (partial / MANIFEST).write_text(json.dumps(manifest, indent=1))
    try:
        partial.rename(folder)
    except OSError:
        # another process kept the same content first
        shutil.rmtree(partial)
        if not (folder / MANIFEST).is_file():
            raise
    return folder


def load_kept(folder: Path) -> DesignRecord:
    """Read what `keep` wrote."""
    manifest = json.loads((folder / MANIFEST).read_text())

    def files(paths: list[str]) -> tuple[SourceFile, ...]:
        return tuple(SourceFile(p, (folder / "files" / p).read_bytes()) for p in paths)

    design = Design(
        name=manifest["name"],
        sources=files(manifest["sources"]),
        top=manifest["top"],
        includes=files(manifest["includes"]),
        include_dirs=tuple(manifest["include_dirs"]),
        defines=tuple((k, v) for k, v in manifest["defines"]),
        parameters=tuple((k, v) for k, v in manifest["parameters"]),
        specification=manifest["specification"],
        clock=manifest["clock"],
        reset=manifest["reset"],
        targets=tuple((k, v) for k, v in manifest["targets"]),
        exclusions=tuple(Exclusion(**e) for e in manifest.get("exclusions", ())),
    )
    places = {key: manifest[key] for key in ("split", "kind", "cluster", "benchmark", "source")}
    return DesignRecord(design, **places, deterministic=manifest.get("deterministic"))


def _renew(path: Path, record: DesignRecord) -> None:
    manifest = json.loads(path.read_text())
    if record.deterministic is None or manifest.get("deterministic") == record.deterministic:
        os.utime(path)
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(manifest | {"deterministic": record.deterministic}, indent=1))
    partial.rename(path)


def kept_designs(home: Path) -> dict[str, list[DesignRecord]]:
    """Kept designs by batch, batches and designs in the order of their names."""
    found: dict[str, list[DesignRecord]] = {}
    for manifest in sorted((home / "designs").glob(f"*/[!.]*/{MANIFEST}")):
        batch = json.loads(manifest.read_text())["batch"]
        found.setdefault(batch, []).append(load_kept(manifest.parent))
    return {batch: _in_order(found[batch]) for batch in sorted(found)}


def kept_batch(home: Path, batch: str) -> list[DesignRecord]:
    """The designs of one batch, by name; empty when there is no such batch."""
    folders = sorted(m.parent for m in batch_folder(home, batch).glob(f"[!.]*/{MANIFEST}"))
    return _in_order(load_kept(f) for f in folders)


def newest_kept(home: Path, name: str) -> DesignRecord | None:
    """The design of that name that was kept last; what was imported wins over what was only simulated."""
    manifests = sorted((home / "designs").glob(f"*/[!.]*/{MANIFEST}"), key=lambda m: (m.stat().st_mtime_ns, str(m)))
    found = [r for r in (load_kept(m.parent) for m in reversed(manifests)) if r.name == name]
    return next((r for r in found if r.split != "adhoc"), found[0] if found else None)


def _in_order(records: Iterable[DesignRecord]) -> list[DesignRecord]:
    return sorted(records, key=lambda r: (r.name, r.design.design_id))
