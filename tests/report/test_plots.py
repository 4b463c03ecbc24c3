"""Pictures are small SVGs that stand on a page together, in the colours of the page."""

from __future__ import annotations

import base64
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from llm4cov_assets.report import plots

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


PICTURES = {
    "histogram": lambda: plots.histogram([0.1, 0.5, 1.0], "coverage"),
    "histogram of nothing": lambda: plots.histogram([], "coverage"),
    "curve": lambda: plots.curve([(1, 2.0), (2, 0.5)], "loss"),
    "curve of nothing": lambda: plots.curve([], "loss"),
    "intervals": lambda: plots.intervals({"direct": [("a", 0.5, 0.4, 0.6)]}, "coverage", {"a": "#ff0000"}),
    "lines": lambda: plots.lines({"a": [(0, 0.5), (1, 0.75)]}, "round", "coverage", {}),
    "bars": lambda: plots.bars(["drafts", "repairs"], {"stage 0": [3, 1200]}, "number", {}),
    "before and after": lambda: plots.before_after({"stage 0": [(0.0, 0.5)]}, "before", "after", "coverage"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_one_small_svg_that_asks_for_nothing_else(name: str) -> None:
    svg = PICTURES[name]()
    assert svg.startswith("<svg") and ElementTree.fromstring(svg).tag == f"{SVG}svg"
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert len(svg) < 40_000
    assert PICTURES[name]() == svg


def test_pictures_share_a_page_and_its_colours() -> None:
    svgs = [make() for make in PICTURES.values()]
    for svg in svgs:
        assert "var(--ink, #" in svg and "var(--paper, #" in svg and "#334155;" not in svg.replace("var(", "")
    by_id: dict[str, set[str]] = {}
    for svg in svgs:
        for element in ElementTree.fromstring(svg).iter():
            if "id" in element.attrib:
                by_id.setdefault(element.attrib["id"], set()).add(ElementTree.tostring(element, encoding="unicode"))
    assert all(len(same) == 1 for same in by_id.values())


def test_labels_carry_the_numbers() -> None:
    svg = plots.intervals({"agentic": [("a − b", 0.125, 0.1, 0.15), ("a − c", -0.5, -0.6, -0.4)]}, "d", {}, zero=True)
    assert {"a − b", "a − c", "+0.125", "-0.500", "agentic"} <= set(texts(svg))
    assert {"1,200", "stage 0", "drafts", "number"} <= set(texts(PICTURES["bars"]()))


def test_line_names_do_not_lie_on_each_other() -> None:
    series = {name: [(0, 0.1), (1, 0.9 + i / 1000)] for i, name in enumerate("abcde")}
    svg = plots.lines(series, "x", "y", {})
    found = re.findall(r'y="([\d.]+)"[^>]*>[a-e] 0\.9', svg)
    places = sorted(map(float, found))
    assert len(places) == 5
    assert min(b - a for a, b in pairwise(places)) > 8


def test_markdown_holds_the_picture_itself() -> None:
    text = plots.markdown("<svg/>", "nothing")
    assert base64.b64decode(text.removeprefix("![nothing](data:image/svg+xml;base64,").removesuffix(")")) == b"<svg/>"
