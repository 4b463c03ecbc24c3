"""Write a design to a folder from which it can be imported again."""

from __future__ import annotations

import json
from pathlib import Path

from llm4cov_assets.errors import UserError
from sim.design import Design
from sim.exclusions import as_table
from sim.load import SETTINGS_FILE

SPECIFICATION = "spec.md"


def export(design: Design, folder: Path) -> list[str]:
    """Write sources, headers, `spec.md` and `design.toml`; returns the paths below `folder`.

    UserError when the folder has something in it already.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: not an empty folder; name a new one")
    folder.mkdir(parents=True, exist_ok=True)
    design.write_to(folder)
    written = [f.path for f in (*design.sources, *design.includes)]
    if design.specification:
        (folder / SPECIFICATION).write_text(design.specification, encoding="utf-8")
        written.append(SPECIFICATION)
    (folder / SETTINGS_FILE).write_text(_settings(design), encoding="utf-8")
    return sorted([*written, SETTINGS_FILE])


def _settings(design: Design) -> str:
    """A design.toml that says everything which the files do not. TOML strings are JSON strings."""
    lines = [f"name = {json.dumps(design.name)}", f"top = {json.dumps(design.top)}"]
    lines.append(f"sources = {json.dumps([f.path for f in design.sources])}")
    if design.include_dirs:
        lines.append(f"include_dirs = {json.dumps(list(design.include_dirs))}")
    for hint in ("clock", "reset", "instance"):
        if getattr(design, hint):
            lines.append(f"{hint} = {json.dumps(getattr(design, hint))}")
    if design.specification:
        lines.append(f"spec = {json.dumps(SPECIFICATION)}")
    for table in ("defines", "parameters", "targets"):
        pairs = getattr(design, table)
        if pairs:
            lines += ["", f"[{table}]", *(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in pairs)]
    for exclusion in design.exclusions:
        lines += ["", "[[exclude]]", *(f"{k} = {json.dumps(v)}" for k, v in as_table(exclusion).items())]
    return "\n".join([*lines, ""])
