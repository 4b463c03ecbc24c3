"""Records of CodeV-R1: `problem_id`, `question` (messages; the specification is the second) and `ground_truth`.

Source: the data set that the LLM4Cov paper trains on, https://huggingface.co/datasets/zhuyaoyu/CodeV-R1-dataset
(configuration `sft`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from llm4cov_assets.ingest.formats.fields import kind, listed, refuse, text, with_rtl
from sim import reasons
from sim.assembly import Gathered

FIELDS = ("problem_id", "question", "ground_truth")
ID = "problem_id"
FILE = "dut.sv"
"""Name of the only file: records of this kind have code without one."""

_MODULE = re.compile(r"\bmodule\b")


def gathered(row: Mapping[str, Any], place: str, name: str) -> Gathered:
    """The design of a record. Raises DesignError."""
    code = text(_content(row.get("ground_truth"), 0, "ground_truth", place), "ground_truth[0].content", place)
    question = listed(row.get("question"), "question", place)
    message = min(1, len(question) - 1)
    spec = text(_content(question, message, "question", place), f"question[{message}].content", place)
    found = Gathered(place, name, name=name, specification=spec.strip())
    return with_rtl(found, {FILE: plain_code(code, "ground_truth[0].content", place)})


def plain_code(answer: str, field: str, place: str) -> str:
    """The code of an answer: its fenced blocks with modules, or all of it. Raises DesignError without any module."""
    blocks = [block for block in _fenced(answer) if _MODULE.search(block)]
    code = "".join(blocks) if blocks else answer
    if not _MODULE.search(code):
        refuse(place, f"{field} holds no module; give the RTL of the design there", reasons.NO_RTL)
    return code


def _fenced(answer: str) -> list[str]:
    """The contents of Markdown's fenced blocks; the last may lack its end."""
    if "```" not in answer:
        return []
    blocks: list[str] = []
    inside = False
    for line in answer.splitlines(keepends=True):
        if line.lstrip().startswith("```"):
            inside = not inside
            blocks += [""] if inside else []
        elif inside:
            blocks[-1] += line
    return blocks


def _content(value: object, number: int, field: str, place: str) -> object:
    messages = listed(value, field, place)
    if not messages:
        refuse(place, f"{field} is empty; it holds the messages, or the code")
    entry = messages[number]
    if not isinstance(entry, Mapping):
        refuse(place, f"{field}[{number}] is {kind(entry)}, not an object with content")
    return entry.get("content")
