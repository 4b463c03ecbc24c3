"""What elaboration tells of a design, as rows of the tables that detail `designs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sim.design import Design
from sim.elaborate import Analysis
from sim.survey import Survey

DETAIL_TABLES = (
    "design_ports",
    "design_instances",
    "design_parameters",
    "design_enums",
    "design_constants",
    "design_includes",
    "design_handshakes",
)
"""The tables that `survey_rows` gives."""

Rows = list[dict[str, Any]]


def survey_rows(design: Design, analysis: Analysis, survey: Survey) -> dict[str, Rows]:
    """Rows by table, for all of DETAIL_TABLES."""
    includes = {(i.file, i.line): asdict(i) for i in survey.includes}  # one within a macro may stand for several
    found: dict[str, Sequence[Mapping[str, Any]]] = {
        "design_ports": list(port_roles(analysis, survey)),
        "design_instances": [{"path": path, "module": module} for path, module in analysis.hierarchy],
        "design_parameters": [{**asdict(p), "default_value": p.default} for p in survey.parameters],
        "design_enums": [
            {"enum": e.name, "member": name, "value": str(value)}
            | {"scope": e.scope, "width": e.width, "file": e.file, "line": e.line}
            for e in survey.enums
            for name, value in e.members
        ],
        "design_constants": [
            {**asdict(c), "value": None if c.value is None else str(c.value)} for c in survey.comparisons
        ],
        "design_includes": list(includes.values()),
        "design_handshakes": [{**asdict(h), "payload": list(h.payload)} for h in survey.handshakes],
    }
    return {
        table: [{"design_id": design.design_id, "number": number, **row} for number, row in enumerate(rows)]
        for table, rows in found.items()
    }


def port_roles(analysis: Analysis, survey: Survey) -> Iterator[dict[str, Any]]:
    """Name, direction, width, type and role of every port of the top, in order."""
    interface = analysis.interface
    roles = {port: "payload" for h in survey.handshakes for port in h.payload}
    roles |= {port: role for h in survey.handshakes for port, role in ((h.valid, "valid"), (h.ready, "ready"))}
    roles |= dict.fromkeys((r.port for r in interface.resets), "reset")
    roles |= dict.fromkeys(interface.clocks, "clock")
    for port in interface.ports:
        yield {**asdict(port), "role": roles.get(port.name, "data")}
