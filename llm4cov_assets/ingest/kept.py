"""Designs kept under the home folder, so that later edits of their source do not matter.

`designs/<batch>/<design_id>/` holds the files of a design with their relative paths below `files/`, and `design.json`
with everything else that a Design is. A batch that was imported as a whole has a `batch.json` too: its designs in
order, in brief, so that nobody has to open ten thousand folders to list them. `retired.json` beside a `design.json`
says why that design is not used any more; nothing that is kept is ever removed, since results hang on it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from llm4cov_assets.ingest.canonical import canonical_content
from llm4cov_assets.ingest.records import DesignRecord
from sim.design import Design, Exclusion, SourceFile
from sim.files import own_folder, remove_stale_folders, replace_file

MANIFEST = "design.json"
INDEX = "batch.json"
_INCOMING = ".incoming"
_RETIRED = "retired.json"
_PLAN = "plan.json"
_PLACE = ("split", "kind", "cluster", "benchmark", "source", "origin", "deterministic", "difficulty")
_BRIEF = ("name", "design_id", "rtl_id", "content", "top", "n_files", "n_lines", *_PLACE)


@dataclass(frozen=True)
class KeptDesign:
    """A kept design in brief; `load` gives the whole. `content` is its canonical content (see ingest/overlap.py);
    `kept_at` orders designs of one name, in nanoseconds."""

    name: str
    design_id: str
    rtl_id: str
    content: str
    top: str
    n_files: int
    n_lines: int
    split: str
    kind: str
    cluster: str
    benchmark: str
    source: str
    origin: str
    deterministic: bool | None
    difficulty: str
    batch: str
    folder: Path
    kept_at: int

    def load(self) -> DesignRecord:
        """Read the design from its folder."""
        return replace(load_kept(self.folder), deterministic=self.deterministic, cluster=self.cluster)


def batch_folder(home: Path, batch: str) -> Path:
    """Folder of a batch; characters that are awkward in file names become dashes."""
    return home / "designs" / re.sub(r"[^A-Za-z0-9._-]+", "-", batch)


def keep(record: DesignRecord, home: Path, batch: str) -> Path:
    """Keep a copy of one design in `batch`, to which others may be added; returns its folder. The same content kept
    again only becomes the newest, and what is now known of it is added."""
    folder = batch_folder(home, batch) / record.design.design_id
    if (folder / MANIFEST).is_file():
        _renew(folder / MANIFEST, record)
        return folder
    partial = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    _write(record, partial, batch)
    try:
        partial.rename(folder)
    except OSError:
        # another process kept the same content first
        shutil.rmtree(partial)
        if not (folder / MANIFEST).is_file():
            raise
    return folder


class Staging:
    """Designs on their way in: nobody sees them before their batch is committed, and a batch appears as a whole."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home = home
        self.folder = folder

    def add(self, record: DesignRecord) -> KeptDesign:
        """Copy a design into the staging folder."""
        folder = self.folder / record.design.design_id
        manifest = _write(record, folder, "")
        return _brief(manifest, folder, "")

    def commit(
        self, batches: dict[str, Sequence[KeptDesign]], gone: Sequence[tuple[KeptDesign, str]] = ()
    ) -> dict[str, list[KeptDesign]]:
        """Make the designs that were added into these batches, and retire what is `gone` with its reason: all of it,
        also when this is killed on the way. What is in a batch already stays as it is."""
        moves: list[tuple[str, str]] = []
        for batch, designs in batches.items():
            partial = self.folder / f"batch-{len(moves)}"
            partial.mkdir()
            for design in designs:
                _rewrite(
                    design.folder / MANIFEST, batch=batch, deterministic=design.deterministic, cluster=design.cluster
                )
                design.folder.rename(partial / design.design_id)
            index = {"batch": batch, "designs": [{name: getattr(d, name) for name in _BRIEF} for d in designs]}
            (partial / INDEX).write_text(json.dumps(index, indent=1))
            moves.append((str(partial), str(batch_folder(self.home, batch))))
        plan = {"moves": moves, "gone": [(str(d.folder), d.name, reason) for d, reason in gone]}
        replace_file(self.folder / _PLAN, json.dumps(plan).encode())
        _carry_out(self.folder)
        return {batch: kept_batch(self.home, batch) for batch in batches}


def _carry_out(folder: Path) -> None:
    """Do what the plan of a staging folder says and has not been done yet."""
    plan = json.loads((folder / _PLAN).read_text())
    for partial, target in ((Path(a), Path(b)) for a, b in plan["moves"]):
        if partial.exists() and not target.exists():
            partial.rename(target)
        for design in partial.glob(f"*/{MANIFEST}"):
            # designs were kept there one by one: it stays such a batch
            if not (target / design.parent.name).exists():
                design.parent.rename(target / design.parent.name)
    for place, name, reason in plan["gone"]:
        _retire(Path(place), name, reason)
    (folder / _PLAN).unlink()


def _finish_killed(home: Path) -> None:
    """Carry out the plans of processes that were killed while they did."""
    for plan in (home / "designs" / _INCOMING).glob(f"*/{_PLAN}"):
        if not Path(f"/proc/{plan.parent.name.partition('-')[0]}").exists():
            with suppress(FileNotFoundError):  # somebody else does it too
                _carry_out(plan.parent)


@contextmanager
def staging(home: Path) -> Iterator[Staging]:
    """A place for designs that are being imported; what was not committed when the block ends is gone."""
    _finish_killed(home)
    remove_stale_folders(home / "designs" / _INCOMING)
    with own_folder(home / "designs" / _INCOMING) as folder:
        yield Staging(home, folder)


def load_kept(folder: Path) -> DesignRecord:
    """Read the design in a folder."""
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
        instance=manifest.get("instance", ""),
    )
    places = {key: manifest[key] for key in ("split", "kind", "cluster", "benchmark", "source")}
    return DesignRecord(
        design,
        **places,
        deterministic=manifest.get("deterministic"),
        difficulty=manifest.get("difficulty", ""),
        origin=manifest.get("origin", ""),
    )


def kept_designs(home: Path) -> dict[str, list[KeptDesign]]:
    """Kept designs in brief by batch, batches in the order of their names; retired ones are left out."""
    _finish_killed(home)
    found: dict[str, list[KeptDesign]] = {}
    for folder in sorted((home / "designs").glob("[!.]*")):
        designs = _batch(folder)
        if designs:
            found.setdefault(designs[0].batch, []).extend(designs)
    return {batch: found[batch] for batch in sorted(found)}


def kept_batch(home: Path, batch: str) -> list[KeptDesign]:
    """The designs of one batch in brief, by name, retired ones left out; empty when there is no such batch."""
    return _batch(batch_folder(home, batch))


def newest_kept(home: Path, name: str) -> DesignRecord | None:
    """The design of that name that was kept last; what was imported wins over what was only simulated."""
    found = [d for designs in kept_designs(home).values() for d in designs if d.name == name]
    found.sort(key=lambda d: (d.split != "adhoc", d.kept_at, str(d.folder)))
    return found[-1].load() if found else None


def retire(design: KeptDesign, reason: str) -> None:
    """Let nothing new use a kept design; the first reason stays."""
    _retire(design.folder, design.name, reason)


def _retire(folder: Path, name: str, reason: str) -> None:
    if not (folder / _RETIRED).is_file():
        replace_file(folder / _RETIRED, json.dumps({"name": name, "reason": reason}).encode())


def restore(design: KeptDesign) -> None:
    """Take back what `retire` did."""
    (design.folder / _RETIRED).unlink(missing_ok=True)


def retired(home: Path) -> list[tuple[KeptDesign, str]]:
    """The designs that are not used any more, and why."""
    paths = sorted((home / "designs").glob(f"[!.]*/[!.]*/{_RETIRED}"))
    return [(_opened(path.parent / MANIFEST), str(json.loads(path.read_text())["reason"])) for path in paths]


def _write(record: DesignRecord, folder: Path, batch: str) -> dict[str, Any]:
    design = record.design
    (folder / "files").mkdir(parents=True)
    design.write_to(folder / "files")
    files = (*design.sources, *design.includes)
    manifest = {
        "batch": batch,
        **{key: getattr(record, key) for key in _PLACE},
        "name": design.name,
        "design_id": design.design_id,
        "rtl_id": design.rtl_id,
        "content": canonical_content(design),
        "n_files": len(files),
        "n_lines": sum(f.content.count(b"\n") for f in files),
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
        "instance": design.instance,
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1))
    return manifest


def _renew(path: Path, record: DesignRecord) -> None:
    manifest = json.loads(path.read_text())
    if record.deterministic is None or manifest.get("deterministic") == record.deterministic:
        os.utime(path)
        return
    _rewrite(path, deterministic=record.deterministic)


def _rewrite(path: Path, **changes: Any) -> None:
    replace_file(path, json.dumps(json.loads(path.read_text()) | changes, indent=1).encode())


def _batch(folder: Path) -> list[KeptDesign]:
    """The designs in the folder of a batch, by name."""
    index = folder / INDEX
    if index.is_file():
        content = json.loads(index.read_text())
        at = index.stat().st_mtime_ns
        briefs: Iterable[KeptDesign] = (
            KeptDesign(**entry, batch=content["batch"], folder=folder / entry["design_id"], kept_at=at)
            for entry in content["designs"]
        )
    else:
        briefs = (_opened(manifest) for manifest in folder.glob(f"[!.]*/{MANIFEST}"))
    active = (d for d in briefs if not (d.folder / _RETIRED).is_file())
    return sorted(active, key=lambda d: (d.name, d.design_id))


def _opened(path: Path) -> KeptDesign:
    manifest = json.loads(path.read_text())
    return _brief(manifest, path.parent, manifest["batch"], path.stat().st_mtime_ns)


def _brief(manifest: dict[str, Any], folder: Path, batch: str, kept_at: int = 0) -> KeptDesign:
    if "rtl_id" not in manifest:  # kept by an older version
        design = load_kept(folder).design
        files = (*design.sources, *design.includes)
        manifest = {
            "design_id": design.design_id,
            "rtl_id": design.rtl_id,
            "content": canonical_content(design),
            "n_files": len(files),
            "n_lines": sum(f.content.count(b"\n") for f in files),
            "deterministic": None,
            "difficulty": "",
            "origin": "",
            **manifest,
        }
    return KeptDesign(**{name: manifest[name] for name in _BRIEF}, batch=batch, folder=folder, kept_at=kept_at)
