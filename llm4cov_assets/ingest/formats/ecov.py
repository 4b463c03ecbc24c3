"""Records of CVDP-ECov: stimulus tasks of CVDP with the RTL made visible, and targets for single instances.

Source: the evaluation set of the LLM4Cov paper, https://huggingface.co/datasets/hez2024/cvdp_ecov_eval. Percentages
are those of Cadence's Xcelium and IMC; `Overall Average` is the metric that every record has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from llm4cov_assets.ingest.formats.fields import (
    identifier,
    joined,
    kind,
    listed,
    mapped,
    named_files,
    optional_text,
    refuse,
    shortened,
    text,
    with_rtl,
)
from sim.assembly import Gathered
from sim.design import Design

FIELDS = ("id", "rtl_files", "spec_files", "dut_module_name", "dut_instance_name", "instruction", "targets",
          "difficulty", "is_agentic", "defines", "parameters")  # fmt: skip
ID = "id"
OVERALL = "Overall Average"
DEFAULT_INSTANCE = "dut"
SPECIFICATION = "specification.md"


def gathered(row: Mapping[str, Any], place: str, name: str) -> Gathered:
    """The design of a record. Raises DesignError.

    Targets keep their metrics' names, but for the overall one; a target for an instance other than the design has the
    key `metric@instance`. Macros and parameters may stand in objects `defines` and `parameters`.
    """
    files = named_files(row.get("rtl_files"), "rtl_files", place)
    texts = named_files(row.get("spec_files") or [], "spec_files", place)
    top = identifier(row.get("dut_module_name"), "dut_module_name", place)
    instance = identifier(row.get("dut_instance_name"), "dut_instance_name", place)
    instruction = optional_text(row.get("instruction"), "instruction", place).strip()
    if instruction == _instruction(top, instance):
        instruction = ""  # it says nothing that the other fields do not
    found = Gathered(place, top or name, name=name, top=top or None, instance=instance)
    found.specification = joined([instruction, *texts.values()])
    found.targets = _targets(row.get("targets"), {instance, top, ""}, place)
    found.defines = _settings(row.get("defines"), "defines", place)
    found.parameters = _settings(row.get("parameters"), "parameters", place)
    return with_rtl(found, files)


def difficulty(row: Mapping[str, Any]) -> str:
    """What a record says of its difficulty."""
    found = row.get("difficulty")
    return found if isinstance(found, str) and found.isprintable() and len(found) <= 40 else ""


def as_ecov(design: Design, difficulty: str = "") -> dict[str, Any]:
    """The record of a design, from which `gathered` makes the same design again.

    `defines` and `parameters` are there only when the design has some; the format has no other place for them.
    """
    instance = design.instance or DEFAULT_INSTANCE
    row: dict[str, Any] = {
        "id": design.name,
        "rtl_files": [{"name": f.path, "content": f.text} for f in (*design.sources, *design.includes)],
        "spec_files": [{"name": SPECIFICATION, "content": design.specification}] if design.specification else [],
        "dut_module_name": design.top,
        "dut_instance_name": instance,
        "instruction": _instruction(design.top, instance),
        "targets": [_target(key, fraction, instance) for key, fraction in design.targets],
        "difficulty": difficulty,
        "is_agentic": False,
    }
    settings = {"defines": dict(design.defines), "parameters": dict(design.parameters)}
    return row | {key: value for key, value in settings.items() if value}


def target_key(metric: str, instance: str = "") -> str:
    """Key of a target among those of a design; `instance` is empty for the design itself."""
    name = "overall" if metric.lower() in ("overall", OVERALL.lower()) else metric
    return f"{name}@{instance}" if instance else name


def _instruction(top: str, instance: str) -> str:
    return (
        f"Write a SystemVerilog testbench that covers as much as possible of the module {top}, instantiated as "
        f"{instance}. Give stimulus only, no assertions."
    )


def _target(key: str, fraction: float, instance: str) -> dict[str, Any]:
    metric, _, inner = key.partition("@")
    name = OVERALL if metric == "overall" else metric
    return {"inst_name": inner or instance, "metric": name, "target_percentage": round(fraction * 100, 6)}


def _targets(value: object, itself: set[str], place: str) -> tuple[tuple[str, float], ...]:
    found: dict[str, float] = {}
    for i, entry in enumerate(listed(value if value is not None else [], "targets", place)):
        where = f"targets[{i}]"
        if not isinstance(entry, Mapping):
            refuse(place, f"{where} is {kind(entry)}, not an object with inst_name, metric and target_percentage")
        metric = text(entry.get("metric"), f"{where}.metric", place).strip()
        if not metric or "@" in metric or not metric.isprintable():
            refuse(place, f"{where}.metric is {shortened(metric)}; write the name of a metric, such as {OVERALL!r}")
        inner = optional_text(entry.get("inst_name"), f"{where}.inst_name", place).strip()
        if not inner.isprintable():
            refuse(place, f"{where}.inst_name is {shortened(inner)}, which cannot be printed; write a plain name")
        key = target_key(metric, "" if inner in itself else inner)
        if key in found:
            refuse(place, f"targets has two for {key}; keep one")
        found[key] = fraction(entry.get("target_percentage"), f"{where}.target_percentage", place)
    return tuple(found.items())


def fraction(value: object, field: str, place: str) -> float:
    """A percentage as a fraction. Raises DesignError unless it is a number from 0 to 100."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(place, f"{field} is {kind(value)}; write a number from 0 to 100")
    if not 0 <= value <= 100:
        refuse(place, f"{field} is {shortened(value)}; write a number from 0 to 100")
    return round(value / 100, 8)


def _settings(value: object, field: str, place: str) -> dict[str, str]:
    found = {k: v for k, v in mapped(value, field, place).items() if v is not None}
    for key, setting in found.items():
        if not re.fullmatch(r"[A-Za-z_]\w*", key) or not isinstance(setting, str | int) or isinstance(setting, bool):
            refuse(place, f"{field}[{shortened(key)}] is {kind(setting)}; write names with text or whole numbers")
    return {key: text(str(setting), field, place) for key, setting in found.items()}
