"""States and testbenches in words, for a language model that reads RTL and writes whole testbenches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import duckdb

WORDING_VERSION = 1
"""Raise it when the same state gives another text."""

SYSTEM = (
    "You write stimulus for hardware designs: complete cocotb 2 testbenches in Python that reach as much line, branch,"
    " expression and toggle coverage of the design as possible. Answer with one Python file."
)

_KEPT = 256  # designs whose text is kept at a time


class Designs:
    """The designs of a warehouse as text; the latest ones stay in memory."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection.cursor()  # beside a result that is still being read
        self._texts: OrderedDict[str, str] = OrderedDict()

    def text(self, design_id: str) -> str:
        """RTL, ports and specification of a design; `design_id` is 32 hex digits. KeyError for an unknown one."""
        if design_id in self._texts:
            self._texts.move_to_end(design_id)
            return self._texts[design_id]
        row = self._connection.execute(
            "select top, clocks, resets, instance, specification from rows.designs where design_id = unhex($id)",
            {"id": design_id},
        ).fetchone()
        if row is None:
            raise KeyError(design_id)
        files = self._connection.execute(
            "select path, text from rows.design_files where design_id = unhex($id) and role != 'specification'"
            " order by role desc, path",
            {"id": design_id},
        ).fetchall()
        self._texts[design_id] = text = _design(*row, files)
        if len(self._texts) > _KEPT:
            self._texts.popitem(last=False)
        return text


def _design(
    top: str, clocks: list[str], resets: list[str], instance: str, specification: str, files: list[tuple[str, str]]
) -> str:
    facts = [f"The top module is `{top}`."]
    facts += [f"Clocks: {', '.join(f'`{c}`' for c in clocks)}."] if clocks else ["It has no clock."]
    if resets:
        named = (f"`{r.lstrip('!')}` (active {'low' if r.startswith('!') else 'high'})" for r in resets)
        facts.append(f"Resets: {', '.join(named)}.")
    if instance:
        facts.append(f"The testbench's instance of it is called `{instance}`.")
    parts = [" ".join(facts)]
    parts += [f"File `{path}`:\n{fenced(text, 'systemverilog')}" for path, text in files]
    if specification.strip():
        parts.append(f"Specification:\n{specification.strip()}")
    return "\n\n".join(parts)


def request(design: str, before: Mapping[str, Any]) -> str:
    """What is asked in a state: `design` is its text, `before` has `testbench_before` and `observation_before` (None
    in the first state, which has no testbench)."""
    if not before["testbench_before"]:
        return f"{design}\n\nWrite a testbench for this design."
    return (
        f"{design}\n\nThis testbench was simulated:\n{fenced(before['testbench_before'], 'python')}\n\n"
        f"The simulation says:\n{fenced(before['observation_before'] or '', '')}\n\n"
        "Write a testbench that covers more: a complete file, not a change of this one."
    )


def answer(testbench: str) -> str:
    """A testbench as a model is to write it."""
    return fenced(testbench, "python")


def prompt(request: str) -> str:
    """Instruction and request as one string, for models without a chat template. The answer follows it."""
    return f"{SYSTEM}\n\n{request}\n\n"


def messages(request: str, answer: str | None = None) -> list[dict[str, str]]:
    """The same as a conversation, for models with a chat template."""
    asked = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": request}]
    return asked if answer is None else [*asked, *said(answer)]


def said(answer: str) -> list[dict[str, str]]:
    """An answer as the last turn of a conversation."""
    return [{"role": "assistant", "content": answer}]


def fenced(text: str, language: str) -> str:
    """A code block; its fence is longer than any in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
