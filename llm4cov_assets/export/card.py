"""The data card of an export: README.md with the header that `datasets` understands, and export.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from llm4cov_assets.export.datasets import Shape, Source

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
"""Names of the Hugging Face hub for the number of rows."""

Written = tuple[Shape, Sequence[str]]
"""A data set that was written, and its splits."""

_SHOWN = 40  # lines of a table that may be long


def as_json(description: dict[str, Any]) -> bytes:
    """`export.json`."""
    return json.dumps(description, indent=1, ensure_ascii=False, default=str).encode() + b"\n"


def card(source: Source, description: dict[str, Any], shapes: Sequence[Written], ending: str) -> str:
    """README.md: `shapes` are the data sets that were written, each with its splits; `ending` is that of the files."""
    sections = [
        _header(source, description, shapes, ending),
        f"# LLM4Cov: {source.title}",
        source.about,
        _warning(source),
        _use(shapes, ending),
        _counts(source, description),
        _columns(shapes),
        _origin(description),
        _licence(description),
        _files(description),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _header(source: Source, description: dict[str, Any], shapes: Sequence[Written], ending: str) -> str:
    size = next((name for most, name in _SIZES if description["rows"] < most), "n>1M")
    lines = [
        f"pretty_name: {json.dumps('LLM4Cov: ' + source.title)}",
        f"license: {description['licence']['name']}",
        "language:",
        "- en",
        "task_categories:",
        f"- {'reinforcement-learning' if source.kind == 'trajectories' else 'text-generation'}",
        "tags:",
        *(f"- {tag}" for tag in ("hardware-verification", "testbench-generation", "cocotb", "verilog", "code")),
        "size_categories:",
        f"- {size}",
        "configs:",
    ]
    for number, (shape, splits) in enumerate(shapes):
        lines += [f"- config_name: {shape.name}", *(["  default: true"] if number == 0 else []), "  data_files:"]
        for split in splits:
            lines += [f"  - split: {split}", f"    path: {shape.name}/{split}-*.{ending}"]
    return "\n".join(["---", *lines, "---"])


def _warning(source: Source) -> str:
    if source.training:
        return "No row comes from a design, or from RTL, that any configuration of this warehouse evaluates on."
    return (
        "**Not for training.** These rows include designs that policies are evaluated on: a model trained on them can"
        " no longer be measured with them."
    )


def _use(shapes: Sequence[Written], ending: str) -> str:
    first = shapes[0][0].name
    lines = [
        "## Use",
        "```python",
        "from datasets import load_dataset",
        "",
        "data = load_dataset('FOLDER')  # this folder; no network is needed",
        *(f"data = load_dataset('FOLDER', '{shape.name}')" for shape, _ in shapes[1:]),
        "```",
        f"or, in SQL: `from read_{'json' if ending == 'jsonl' else 'parquet'}('FOLDER/{first}/*.{ending}')`.",
    ]
    return "\n".join(lines)


def _counts(source: Source, description: dict[str, Any]) -> str:
    parts = ["## Rows", _table(description["counts"])]
    splits = description["splits"]
    if "validation" in splits:
        held_out = ", ".join(description["validation"]["clusters"])
        parts.append(
            f"{splits['train']} rows are in the split train, {splits['validation']} in validation: all rows of the"
            f" clusters {held_out}. A cluster is a hand-written design or one generator family."
        )
    for heading in ("filters", "settings"):
        said = "; ".join(f"{name}: {_plain(value) or 'none'}" for name, value in description[heading].items())
        parts.append(f"{heading.capitalize()}: {said}.")
    for reason, n in description["left_out"].items():
        parts.append(f"{n} rows were left out: {reason}.")
    if source.kind != "trajectories":
        of_text = description["characters"]
        parts.append(
            f"The text has {of_text['all']} characters, that of the longest row {of_text['longest']}."
            f" {description['duplicates']} rows had the text of an earlier row"
            + (" and were left out." if description["settings"]["unique"] else "; `--unique` leaves such out.")
        )
    for entry in description.get("trained", []):
        parts.append(
            f"Stage {entry['stage']} of {entry['config_hash']}: "
            + (
                f"these are exactly the rows, in order, that checkpoint {entry['checkpoint_id']} was trained on."
                if entry["same"]
                else f"checkpoint {entry['checkpoint_id']} was trained on {entry['checkpoint_examples']} rows that are"
                " not these alone (filters, or rows of other stages)."
            )
        )
    return "\n\n".join(parts)


def _columns(shapes: Sequence[Written]) -> str:
    parts = ["## Columns"]
    for shape, _ in shapes:
        rows = [
            {"column": name, "type": _type(kind), "meaning": comment} for name, (kind, comment) in shape.columns.items()
        ]
        parts += [f"### {shape.name}", _table(rows)]
    return "\n\n".join(parts)


def _type(kind: Any) -> str:
    text = str(kind)
    return "list of {role, content}" if text.startswith("list") else text


def _origin(description: dict[str, Any]) -> str:
    versions = description["versions"]
    kinds: dict[str, int] = {}
    for design in description["designs"]:
        kinds[design["kind"]] = kinds.get(design["kind"], 0) + 1
    configurations = ", ".join(f"{c['config_hash']} ({c['profile'] or '?'})" for c in description["configurations"])
    lines = [
        "## Origin",
        f"- Made at {description['created_at']} with llm4cov {versions['program']}, warehouse schema"
        f" {versions['schema']}, export format {versions['export']}.",
        f"- Configurations: {configurations}. Their settings are in export.json.",
        f"- Designs: {len(description['designs'])}"
        f" ({', '.join(f'{n} {kind}' for kind, n in sorted(kinds.items()))}); each is in export.json with its source.",
        f"- Simulator: {', '.join(versions['simulators']) or 'none'}. Coverage counts that simulator's points, and"
        " another one would give other figures.",
        f"- Warehouse parts read: {len(description['source']['parts'])}; SHA-256 of their names, which end with the"
        f" hashes of their contents: `{description['source']['sha256']}`.",
    ]
    policies = [
        {
            "policy": p["policy"],
            "engine": p["engine"],
            "checkpoint": p["checkpoint_id"] or "",
            "versions": p["checkpoint_versions"] or "",
        }
        for p in description["policies"]
    ]
    return "\n".join(lines) + "\n\n" + _table(policies)


def _licence(description: dict[str, Any]) -> str:
    return f"## Licence\n\n{description['licence']['note']}"


def _files(description: dict[str, Any]) -> str:
    return "## Files\n\n" + _table(description["files"])


def _table(rows: Sequence[dict[str, Any]]) -> str:
    """A Markdown table; of a long one the beginning."""
    if not rows:
        return ""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    lines += ["| " + " | ".join(_plain(row[n]).replace("|", "\\|") for n in names) + " |" for row in rows[:_SHOWN]]
    if len(rows) > _SHOWN:
        lines.append(f"\n{len(rows) - _SHOWN} more are in export.json.")
    return "\n".join(lines)


def _plain(value: Any) -> str:
    match value:
        case None:
            return ""
        case float():
            return f"{value:.4g}"
        case list():
            return ", ".join(map(str, value))
        case _:
            return str(value)
