"""How a design wants to be talked to: its handshakes, and the values that it compares its inputs with."""

from __future__ import annotations

import re
from collections.abc import Iterator

from llm4cov_assets.policy.traffic import Offer, Traffic
from sim.design import Design
from sim.elaborate import Analysis, Port
from sim.survey import Survey, survey

MOST_VALUES = 48
"""Values kept of one port: those on the way to branches first."""

_NEAR = {"==": (0,), "!=": (0,), "<": (-1, 0), "<=": (0, 1), ">": (0, 1), ">=": (-1, 0)}
"""Which neighbours of a constant lie on both sides of a comparison with it."""
_SLICE = re.compile(r"(?P<port>[\w$]+)\s*(?:\[\s*(?P<high>\d+)\s*(?::\s*(?P<low>\d+)\s*)?\])?")


def traffic(design: Design, analysis: Analysis) -> Traffic:
    """The traffic of a design. Without a clock there are no handshakes."""
    surveyed = survey(design)
    inputs = {p.name: p for p in analysis.interface.data_inputs}
    arrays = {p.name for p in analysis.interface.ports if "$[" in p.type}  # their bits are not one number
    pairs = [h for h in surveyed.handshakes if analysis.interface.clocks and not arrays & {h.valid, h.ready}]
    offers = [
        Offer(h.valid, h.ready, 0 if h.ready_low else 1, tuple(name for name in h.payload if name in inputs))
        for h in pairs
        if h.drives == "valid" and not h.valid_low and h.valid in inputs
    ]
    receivers = [h.ready for h in pairs if h.drives == "ready" and h.ready in inputs]
    values = [(port.name, found) for port in inputs.values() if (found := _values(port, analysis, surveyed))]
    return Traffic(tuple(offers), tuple(receivers), tuple(values))


def _values(port: Port, analysis: Analysis, surveyed: Survey) -> tuple[tuple[int, int], ...]:
    """(value, bits that matter) of the constants that a port is compared with, on both sides of each."""
    if port.width == 1:
        return ()
    found: dict[tuple[int, int], None] = {}
    for operator, value, high, low in (*_on_the_way(port, analysis), *_compared(port, analysis, surveyed)):
        top = (1 << high - low + 1) - 1
        if top < 2:
            continue
        for step in _NEAR[operator]:
            if 0 <= value + step <= top:
                found[(value + step) << low, top << low] = None
    return tuple(found)[:MOST_VALUES]


def _on_the_way(port: Port, analysis: Analysis) -> Iterator[tuple[str, int, int, int]]:
    """Constraints on the port on the way from reset to any branch: (operator, value, highest bit, lowest bit)."""
    for branch in analysis.branches:
        for step in branch.steps or ():
            for c in step.constraints:
                if c.port == port.name:
                    whole = c.high is None
                    yield c.op, c.value, port.width - 1 if whole else c.high or 0, 0 if whole else c.low or 0


def _compared(port: Port, analysis: Analysis, surveyed: Survey) -> Iterator[tuple[str, int, int, int]]:
    """Constants that the top compares the port or a part of it with, and members of its type."""
    top = analysis.hierarchy[0][1]
    for c in surveyed.comparisons:
        match = _SLICE.fullmatch(c.subject) if c.module == top and c.value is not None else None
        if match and match["port"] == port.name and c.value is not None:
            high = int(match["high"]) if match["high"] else port.width - 1
            low = int(match["low"] or match["high"] or 0)
            if low <= high < port.width:
                yield c.operator, c.value, high, low
    for enum in surveyed.enums:
        if port.type.split("::")[-1].split(".")[-1] == enum.name and enum.width == port.width:
            yield from (("==", value, port.width - 1, 0) for _, value in enum.members)
