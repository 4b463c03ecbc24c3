"""Copies among designs as a page that a person can judge them by: Markdown, or one HTML file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

from llm4cov_assets.ingest.copies import KINDS, Copy, beside
from llm4cov_assets.report.page import STYLE

_SHOWN_LINES = 60
HEADS = ("kind", "design", "resembles", "splits", "ROUGE-L", "file", "other file")
"""Columns of the table of copies."""

HOW = """\
ROUGE-L is the F1 of the longest common subsequence of whitespace tokens of the two files that are most alike
(LLM4Cov, arXiv 2602.16953). Every design that reaches {least:g} with another one is found; the most similar one is
named. *Contaminated* training designs resemble an evaluation design that nothing may be trained on; a *duplicate* has
the RTL of another design of its split apart from comments, layout and the name of its top; the others are *near
duplicates*. Evaluation designs of families that are trained on resemble training designs by intent and are left out."""


def as_rows(copies: Sequence[Copy]) -> list[dict[str, Any]]:
    """What `--json` prints: one object for each copy."""
    return [
        {
            "kind": c.kind,
            "design": c.record.name,
            "other": c.other.name,
            "split": c.record.split,
            "other_split": c.other.split,
            "share": c.overlap.share,
            "exact": c.overlap.exact,
            "identical": c.overlap.identical,
            "file": c.overlap.file,
            "other_file": c.overlap.other_file,
            "source": c.record.source,
            "other_source": c.other.source,
        }
        for c in copies
    ]


def cells(copy: Copy) -> tuple[str, ...]:
    """One line of the table."""
    o = copy.overlap
    measured = f"{o.share:.3f}" if o.exact else f"at most {o.share:.3f}: too long to compare"
    share = "identical" if o.identical else measured
    splits = f"{copy.record.split}, {copy.other.split}"
    return copy.kind, copy.record.name, copy.other.name, splits, share, o.file, o.other_file


def summary(copies: Sequence[Copy], n_designs: int) -> str:
    """One sentence: how many of which kind."""
    counted = Counter(c.kind for c in copies)
    parts = [f"{counted[kind]} {kind}{'s' if kind != KINDS[0] and counted[kind] != 1 else ''}" for kind in KINDS]
    return f"{n_designs} designs: {', '.join(parts)}"


def markdown_page(copies: Sequence[Copy], n_designs: int, least: float, shown: int) -> str:
    """The page with the differences of the first `shown` copies."""
    lines = ["# Copies among designs", "", f"{summary(copies, n_designs)}.", "", HOW.format(least=least), ""]
    lines += [f"| {' | '.join(HEADS)} |", f"|{' --- |' * len(HEADS)}"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells(c))} |" for c in copies]
    for copy in copies[:shown]:
        said, text = _shown(copy)
        fence = "`" * max([3, *(1 + len(run) for run in re.findall("`+", text))])
        lines += ["", f"## {copy.record.name} and {copy.other.name}", "", said, "", fence + "diff", text, fence]
    return "\n".join(lines) + "\n"


def html_page(copies: Sequence[Copy], n_designs: int, least: float, shown: int) -> str:
    """The same as one HTML file."""
    how = escape(HOW.format(least=least)).replace("*", "")
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells(c))}</tr>" for c in copies)
    parts = []
    for copy in copies[:shown]:
        said, text = _shown(copy)
        title = escape(f"{copy.record.name} and {copy.other.name}")
        parts.append(f"<h3>{title}</h3><p class='how'>{escape(said)}</p><pre>{_coloured(text)}</pre>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Copies among designs</title><style>{STYLE}</style></head><body><h1>Copies among designs</h1>"
        f"<p>{escape(summary(copies, n_designs))}.</p><p class='how'>{how}</p><div class='wide'><table>"
        f"<tr>{''.join(f'<th>{head}</th>' for head in HEADS)}</tr>{rows}</table></div>{''.join(parts)}</body></html>\n"
    )


def _coloured(text: str) -> str:
    marks = {"+": "plus", "-": "minus"}
    return "".join(f'<span class="{marks.get(line[:1], "")}">{escape(line) or " "}</span>' for line in text.split("\n"))


def _shown(copy: Copy) -> tuple[str, str]:
    """What a person sees of both files: a sentence, and the beginning of their differences."""
    n, difference = beside(copy)
    if not n:
        return "Too long to show side by side.", ""
    lines = [line[:200] for line in difference]
    if len(lines) > _SHOWN_LINES:
        lines[_SHOWN_LINES:] = [f"... {len(lines) - _SHOWN_LINES} more lines"]
    return f"The longest run of tokens that both files hold has {n}.", "\n".join(lines)
