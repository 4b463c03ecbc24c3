"""Records of CVDP, agentic and not: the stimulus tasks among them, with the RTL of their harness made visible.

Source: https://huggingface.co/datasets/nvidia/cvdp-benchmark-dataset (v1.0 and v1.1); categories: arXiv 2506.14074,
table 1. In a stimulus task (cid012) the harness holds the RTL, `src/.env` the target, and `src/process.py` the instance
whose coverage counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from llm4cov_assets.ingest.formats.ecov import fraction, target_key
from llm4cov_assets.ingest.formats.fields import (
    joined,
    listed,
    mapped,
    mapped_files,
    refuse,
    shortened,
    text,
    with_rtl,
)
from sim import reasons
from sim.assembly import Gathered

FIELDS = ("id", "categories", "input", "output", "harness", "prompt", "context")
ID = "id"
STIMULUS = "cid012"

CATEGORIES = {
    "cid002": "completes RTL", "cid003": "writes RTL from a specification", "cid004": "modifies RTL",
    "cid005": "writes RTL that reuses modules", "cid006": "matches RTL and specifications", "cid007": "improves RTL",
    "cid008": "matches testbenches and test plans", "cid009": "answers questions on RTL",
    "cid010": "answers questions on testbenches", "cid013": "writes checkers", "cid014": "writes assertions",
    "cid016": "mends bugs in RTL",
}  # fmt: skip
"""What the other categories ask for."""

_TESTBENCH_FOLDERS = {"verif", "tb", "test", "tests", "testbench"}
_TESTBENCH = re.compile(r"(^|_)(tb|testbench)(_|$)", re.IGNORECASE)
_DOCUMENTS = (".md", ".txt")
_READ = 50_000
"""Characters of a text that are searched for the name of the instance: patterns that look ahead are slow."""
_MODULE = re.compile(r"\b(?:module|macromodule)\s+(?:automatic\s+|static\s+)?([A-Za-z_][\w$]*)")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_MEASURED = re.compile(
    r"metrics\s*\[\s*(['\"])(?P<instance>[A-Za-z_]\w*)\1\s*\]\s*\[\s*(['\"])(?P<metric>[\w ]+)\3\s*\]"
    r"\s*>=?\s*(?P<least>\d+(?:\.\d+)?)?"
)
_SETTING = re.compile(r"^[ \t]*(?:export[ \t]+)?(?P<name>\w+)[ \t]*=(?P<value>.*)$", re.MULTILINE)


def gathered(row: Mapping[str, Any], place: str, name: str) -> Gathered:
    """The design of a stimulus task. Raises DesignError, also for the tasks of other categories."""
    cid = _category(row, place)
    if cid != STIMULUS:
        what = f" ({CATEGORIES[cid]})" if cid in CATEGORIES else ""
        refuse(place, f"{cid}{what} is not a stimulus task; only {STIMULUS} is imported", reasons.NOT_STIMULUS)
    prompt, context, harness = _parts(row, place)
    rtl = _rtl(harness, context)
    settings = _settings(harness)
    instance, targets = _targets(harness, settings, place)
    modules = {m: None for path, content in rtl.items() if path.lower().endswith((".v", ".sv"))
               for m in _MODULE.findall(_COMMENT.sub(" ", content))}  # fmt: skip
    stem = re.sub(r"^cvdp_(copilot|agentic)_|_\d+$", "", name)
    found = Gathered(place, stem, name=name, instance=instance, targets=targets)
    found.top = _top(list(modules), instance, [prompt, *context.values()], settings)
    documents = [c for p, c in sorted(context.items()) if PurePosixPath(p).suffix.lower() in _DOCUMENTS]
    found.specification = joined([prompt, *documents])
    return with_rtl(found, rtl)


def difficulty(row: Mapping[str, Any]) -> str:
    """What a record says of its difficulty: the word beside the category."""
    found = row.get("categories")
    words = [w for w in found if isinstance(w, str)] if isinstance(found, list) else []
    return next((w for w in words if not re.fullmatch(r"cid\d+", w) and w.isprintable() and len(w) <= 40), "")


def _category(row: Mapping[str, Any], place: str) -> str:
    for word in listed(row.get("categories"), "categories", place):
        if re.fullmatch(r"cid\d+", text(word, "categories", place)):
            return str(word)
    refuse(place, "categories names none such as cid012; write the category of the task there")


def _parts(row: Mapping[str, Any], place: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Prompt, context and harness of either kind of record."""
    harness = mapped(row.get("harness"), "harness", place)
    inner, field = (harness["files"], "harness.files") if "files" in harness else (harness, "harness")
    asked, within = (mapped(row["input"], "input", place), "input.") if row.get("input") is not None else (row, "")
    prompt = text(asked.get("prompt"), f"{within}prompt", place)
    context = mapped_files(asked.get("context"), f"{within}context", place)
    return prompt, context, mapped_files(inner, field, place)


def _rtl(harness: Mapping[str, str], context: Mapping[str, str]) -> dict[str, str]:
    """The files of the design: those of the harness, which are what is measured, then those of the context that are not
    the same under another folder. Testbenches are left out."""
    found = {path: content for path, content in harness.items() if not _is_testbench(path)}
    names = {PurePosixPath(path).name for path in found}
    added = {p: c for p, c in context.items() if not _is_testbench(p) and PurePosixPath(p).name not in names}
    return found | added


def _is_testbench(path: str) -> bool:
    named = PurePosixPath(path)
    return bool(_TESTBENCH.search(named.stem)) or any(part.lower() in _TESTBENCH_FOLDERS for part in named.parts[:-1])


def _settings(harness: Mapping[str, str]) -> dict[str, str]:
    """The environment of the harness."""
    environment = next((content for path, content in harness.items() if PurePosixPath(path).name == ".env"), "")
    return {m["name"]: m["value"].strip().strip("'\"") for m in _SETTING.finditer(environment)}


def _targets(
    harness: Mapping[str, str], settings: Mapping[str, str], place: str
) -> tuple[str, tuple[tuple[str, float], ...]]:
    """The instance name of the design, and the targets: those that the harness's script asserts, the first of them for
    the design itself."""
    wanted = None
    if "TARGET" in settings:
        try:
            wanted = float(settings["TARGET"].removesuffix("%"))
        except ValueError:
            refuse(place, f"TARGET in .env is {shortened(settings['TARGET'])}; write a number from 0 to 100")
    scripts = {p: c for p, c in harness.items() if p.endswith(".py")}
    scripts = {p: c for p, c in scripts.items() if PurePosixPath(p).name == "process.py"} or scripts
    measured = [m for content in scripts.values() for m in _MEASURED.finditer(content)]
    instance = measured[0]["instance"] if measured else settings.get("INST", "")
    if not re.fullmatch(r"[A-Za-z_]\w*|", instance):
        refuse(place, f"INST in .env is {shortened(instance)}, which is no identifier; write the plain name")
    found: dict[str, float] = {}
    for match in measured:
        least = float(match["least"]) if match["least"] else wanted
        if least is not None:
            metric = "overall" if match["metric"] == "Average" else match["metric"]
            key = target_key(metric, "" if match["instance"] == instance else match["instance"])
            found[key] = fraction(least, "TARGET in .env", place)
    if not measured and wanted is not None:
        found["overall"] = fraction(wanted, "TARGET in .env", place)
    return instance, tuple(found.items())


def _top(modules: list[str], instance: str, texts: list[str], settings: Mapping[str, str]) -> str | None:
    """The module that is instantiated as `instance`, if that can be told: from a testbench, from what the prompt says,
    or from the harness's environment. None for a single module, which needs no telling, and if nothing tells."""
    if len(modules) < 2:
        return None
    if instance:
        said = "|".join(map(re.escape, sorted(modules, key=len, reverse=True)))
        told = (
            rf"\b({said})\b\s*(?:#\s*\([^;]{{0,1000}}?\)\s*)?\b{instance}\s*\(",
            rf"\b({said})\b[^.\n]{{0,200}}?\binst\w*[^.\n]{{0,80}}?\b{instance}\b",
        )
        for pattern in told:
            for content in texts:
                match = re.search(pattern, content[:_READ])
                if match:
                    return match[1]
    return settings["TOPLEVEL"] if settings.get("TOPLEVEL") in modules else None
