"""Pictures as SVG: plain functions from numbers to text, light enough for asset metadata.

Colours of text, lines and background are CSS variables with a default (`--ink`, `--faint`, `--paper`): a page that
sets them shows the pictures in its own colours, everything else shows them dark on white.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT, PAPER = "#334155", "#cbd5e1", "#fefefe"
FILL, OTHER = "#3b82f6", "#94a3b8"

STYLE = {
    "font.size": 9, "font.family": "sans-serif", "svg.fonttype": "none", "svg.hashsalt": "llm4cov",
    "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.edgecolor": FAINT,
    "grid.color": FAINT, "grid.linewidth": 0.5, "axes.spines.top": False, "axes.spines.right": False,
    "axes.axisbelow": True, "axes.titlesize": 9, "axes.titlelocation": "left", "lines.linewidth": 1.6,
    "figure.facecolor": PAPER, "axes.facecolor": PAPER, "legend.frameon": False,
}  # fmt: skip

Interval = tuple[str, float, float, float]
"""Label, estimate, low and high end."""

Line = Sequence[tuple[float, float]]
"""Points (x, y) in the order in which they are joined."""


def markdown(svg: str, caption: str) -> str:
    """The picture as markdown with the data inside, as Dagster and notebooks show it."""
    return f"![{caption}](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"


def histogram(values: Sequence[float], title: str, bins: int = 20) -> str:
    """Histogram of fractions in [0, 1]."""
    mean = sum(values) / len(values) if values else 0.0
    with _drawing(4, 1.9) as (figure, axes):
        axes.hist(values, bins=bins, range=(0, 1), color=FILL, rwidth=0.95)
        axes.set(title=f"{title}: n = {len(values)}, mean {mean:.3f}", xlim=(0, 1), ylabel="number")
        return _svg(figure)


def curve(points: Line, title: str) -> str:
    """One line through points, from 0 upwards."""
    ends = f"{points[0][1]:.3g} to {points[-1][1]:.3g}" if points else "none"
    with _drawing(4, 1.9) as (figure, axes):
        axes.plot([x for x, _ in points], [y for _, y in points], color=FILL)
        axes.set(title=f"{title}: {ends}")
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.grid(axis="y")
        return _svg(figure)


def intervals(
    panels: Mapping[str, Sequence[Interval]],
    axis: str,
    colours: Mapping[str, str],
    marks: Mapping[tuple[str, str], float] | None = None,
    mark: str = "",
    zero: bool = False,
) -> str:
    """Estimates with their intervals, one panel beside the other, one line a label.

    Labels stand in the order in which they first occur. `marks` are second values by (panel, label), drawn hollow and
    explained by `mark`. `zero` draws the line that an interval should not cross.
    """
    labels = list(dict.fromkeys(label for rows in panels.values() for label, *_ in rows))
    with _drawing(8, 0.9 + 0.25 * len(labels), columns=len(panels)) as (figure, *all_axes):
        for axes, (panel, rows) in zip(all_axes, panels.items(), strict=True):
            for label, value, low, high in rows:
                y, colour = labels.index(label), colours.get(label, FILL)
                axes.plot([low, high], [y, y], color=colour, linewidth=2.5, alpha=0.45, solid_capstyle="butt")
                axes.plot(value, y, "o", color=colour, markersize=5)
                if marks and (panel, label) in marks:
                    axes.plot(marks[panel, label], y, "D", color=colour, markersize=4.5, fillstyle="none")
                text = f"{value:+.3f}" if zero else f"{value:.3f}"
                axes.annotate(text, (high, y), (6, 0), textcoords="offset points", va="center", fontsize=7)
            if zero:
                axes.axvline(0, color=INK, linewidth=0.8)
            axes.set(title=panel, xlabel=axis, ylim=(len(labels) - 0.4, -0.6))
            axes.margins(x=0.14)
            axes.set_yticks(range(len(labels)), labels)
            axes.grid(axis="x")
            axes.tick_params(left=False)
        if mark:
            all_axes[0].plot([], [], "o", color=INK, markersize=5, label="overall, with 95 % interval")
            all_axes[0].plot([], [], "D", color=INK, markersize=4.5, fillstyle="none", label=mark)
            figure.legend(loc="outside lower center", ncols=2, fontsize=8)
        return _svg(figure)


def lines(
    series: Mapping[str, Line], x: str, y: str, colours: Mapping[str, str], ticks: Sequence[float] | None = None
) -> str:
    """Lines with their names at the right end. `x` and `y` name the axes with their units."""
    with _drawing(8, 4.2) as (figure, axes):
        for name, points in series.items():
            axes.plot([p[0] for p in points], [p[1] for p in points], "o-", color=colours.get(name, FILL), markersize=4)
        axes.set(xlabel=x, ylabel=y)
        if ticks is not None:
            axes.set_xticks(ticks)
        axes.grid()
        low, high = axes.get_ylim()
        ends = {name: points[-1][1] for name, points in series.items() if points}
        for name, place in _apart(ends, (high - low) / 21).items():
            at = series[name][-1]
            axes.annotate(
                f"{name} {at[1]:.3f}", at, (1.02, place), textcoords=("axes fraction", "data"), va="center", fontsize=8,
                color=colours.get(name, FILL),
                arrowprops={"arrowstyle": "-", "color": colours.get(name, FILL), "linewidth": 0.5, "alpha": 0.5},
            )  # fmt: skip
        return _svg(figure)


def bars(labels: Sequence[str], series: Mapping[str, Sequence[float]], axis: str, colours: Mapping[str, str]) -> str:
    """Horizontal bars, grouped by label, one bar a series, each with its number."""
    thick = 0.8 / max(1, len(series))
    with _drawing(8, 0.7 + 0.19 * len(labels) * len(series)) as (figure, axes):
        for number, (name, values) in enumerate(series.items()):
            places = [i - 0.4 + thick * (number + 0.5) for i in range(len(labels))]
            drawn = axes.barh(places, values, thick * 0.9, color=colours.get(name, FILL), label=name)
            axes.bar_label(drawn, [f"{value:,.0f}" for value in values], padding=3, fontsize=7)
        axes.set(xlabel=axis, ylim=(len(labels) - 0.5, -0.5))
        axes.set_yticks(range(len(labels)), labels)
        axes.margins(x=0.08)
        axes.tick_params(left=False)
        axes.grid(axis="x")
        figure.legend(loc="outside right upper", fontsize=8)
        return _svg(figure)


def before_after(panels: Mapping[str, Sequence[tuple[float, float]]], before: str, after: str, axis: str) -> str:
    """Two histograms of fractions over each other, with their means as dashed lines: one panel a key."""
    with _drawing(8, 2.5, columns=len(panels)) as (figure, *all_axes):
        for axes, (panel, pairs) in zip(all_axes, panels.items(), strict=True):
            for values, colour, name in (([b for b, _ in pairs], OTHER, before), ([a for _, a in pairs], FILL, after)):
                axes.hist(values, bins=20, range=(0, 1), color=colour, alpha=0.65, rwidth=0.95, label=name)
                mean = sum(values) / max(1, len(values))
                axes.axvline(mean, color=colour, linestyle="--", linewidth=1.2)
                axes.annotate(
                    f"{mean:.3f}", (mean, 1), (-2, -2), xycoords=("data", "axes fraction"), ha="right", va="top",
                    textcoords="offset points", fontsize=7, color=colour,
                )  # fmt: skip
            axes.set(title=panel, xlabel=axis, xlim=(0, 1.005))
        all_axes[0].set_ylabel("repairs")
        handles, names = all_axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2, fontsize=8)
        return _svg(figure)


def _apart(places: Mapping[str, float], least: float) -> dict[str, float]:
    """Places at least `least` apart, as near to where they were as a push to both sides leaves them."""
    names = sorted(places, key=lambda name: -places[name])
    moved = [places[name] for name in names]
    for _ in range(50):
        for i in range(len(moved) - 1):
            short = least - (moved[i] - moved[i + 1])
            if short > 1e-12:
                moved[i] += short / 2
                moved[i + 1] -= short / 2
    return dict(zip(names, moved, strict=True))


@contextmanager
def _drawing(width: float, height: float, columns: int = 1) -> Iterator[tuple[Figure, Axes, *tuple[Axes, ...]]]:
    """A figure of `width` × `height` inches and its axes, from left to right, with the same scales; matplotlib's own
    settings stay as they are."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(1, columns, sharex=True, sharey=True, squeeze=False)[0]
        yield (figure, *axes)


def _svg(figure: Figure) -> str:
    """The figure without what only a file of its own needs; sizes in px, as wide as the page at most."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", svg)  # nothing refers to them, and a page has several pictures
    svg = re.sub(r"font-family: [^;]*;", "font-family: system-ui, sans-serif;", svg)
    svg = re.sub(r"(\.\d\d)\d{3,4}\b", r"\1", svg)  # coordinates; labels have three digits
    svg = svg.replace('xmlns:xlink="http://www.w3.org/1999/xlink"', "").replace("xlink:href", "href")
    for name, colour in (("ink", INK), ("faint", FAINT), ("paper", PAPER)):
        svg = svg.replace(f": {colour}", f": var(--{name}, {colour})")
    return svg
