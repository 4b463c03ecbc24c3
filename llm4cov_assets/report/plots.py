"""Small pictures as SVG: plain functions from numbers to text, light enough for asset metadata."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

WIDTH, BAR, MARGIN = 360, 22, 96
INK, FILL = "#334155", "#3b82f6"


def markdown(svg: str, caption: str) -> str:
    """The picture as markdown with the data inside, as Dagster and notebooks show it."""
    return f"![{caption}](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"


def histogram(values: Sequence[float], title: str, bins: int = 20) -> str:
    """SVG histogram of fractions in [0, 1]."""
    counts = [0] * bins
    for value in values:
        counts[min(int(value * bins), bins - 1)] += 1
    height, most = 120, max([1, *counts])
    step = (WIDTH - 20) / bins
    bars = [
        f'<rect x="{10 + i * step:.1f}" y="{24 + height * (1 - n / most):.1f}" width="{step - 1:.1f}" '
        f'height="{height * n / most:.1f}" fill="{FILL}"><title>from {i / bins:.2f}: {n}</title></rect>'
        for i, n in enumerate(counts)
    ]
    axis = "".join(_text(10 + x * (WIDTH - 20), height + 38, f"{x:g}", "middle") for x in (0, 0.25, 0.5, 0.75, 1))
    mean = sum(values) / len(values) if values else 0.0
    return _svg(height + 46, _text(10, 14, f"{title}: n = {len(values)}, mean {mean:.3f}") + "".join(bars) + axis)


def intervals(rows: Sequence[tuple[str, float, float, float]], title: str) -> str:
    """SVG of (label, value, low, high) as bars from 0 to 1 with their intervals."""
    scale = WIDTH - MARGIN - 20
    parts = [_text(10, 14, title)]
    for i, (label, value, low, high) in enumerate(rows):
        y = 24 + i * BAR
        middle = y + BAR / 2
        parts.append(_text(MARGIN - 6, middle + 4, label, "end"))
        parts.append(
            f'<rect x="{MARGIN}" y="{y + 3}" width="{max(0.0, value) * scale:.1f}" height="{BAR - 6}" fill="{FILL}" '
            f'fill-opacity="0.6"><title>{escape(label)}: {value:.3f} [{low:.3f}, {high:.3f}]</title></rect>'
            f'<path d="M{MARGIN + low * scale:.1f} {middle}H{MARGIN + high * scale:.1f}" stroke="{INK}" '
            f'stroke-width="2"/>'
        )
    return _svg(32 + BAR * len(rows), "".join(parts))


def curve(points: Sequence[tuple[float, float]], title: str) -> str:
    """SVG line through (x, y) points, from (0, 0) to the largest of each."""
    height = 120
    across = max([1.0, *(x for x, _ in points)])
    up = max([1e-9, *(y for _, y in points)])
    line = " ".join(f"{10 + x / across * (WIDTH - 20):.1f},{24 + height * (1 - y / up):.1f}" for x, y in points)
    ends = f"{points[0][1]:.3g} to {points[-1][1]:.3g}" if points else "none"
    return _svg(
        height + 46,
        _text(10, 14, f"{title}: {ends}")
        + f'<polyline points="{line}" fill="none" stroke="{FILL}" stroke-width="2"/>'
        + _text(10, height + 38, "0")
        + _text(WIDTH - 10, height + 38, f"{across:g}", "end"),
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="11" fill="{INK}">{escape(text)}</text>'


def _svg(height: float, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" font-family="sans-serif">'
        f'<rect width="100%" height="100%" fill="white"/>{body}</svg>'
    )
