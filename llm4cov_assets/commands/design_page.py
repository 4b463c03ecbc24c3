"""`llm4cov designs show`: everything that elaboration tells of a design, on one page or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llm4cov_assets.commands.simulate import (
    DefineOption,
    DesignArgument,
    IncludeOption,
    ParamOption,
    TopOption,
    find,
)

if TYPE_CHECKING:
    from sim.design import Design
    from sim.elaborate import Analysis
    from sim.survey import Survey

MOST_ROWS = 48
"""Rows of one table on the page, and lines of the specification; JSON has all."""
MOST_WORDS = 24
"""Names in one enumeration on the page."""

Data = dict[str, Any]


def show_design(
    design: DesignArgument,
    top: TopOption = None,
    define: DefineOption = None,
    include: IncludeOption = None,
    param: ParamOption = None,
    sources: Annotated[bool, typer.Option("--sources", help="print the RTL too")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object with everything on stdout")] = False,
) -> None:
    """What elaboration finds: ports, clocks, resets, handshakes, parameters, enums, constants that are compared,
    instances, includes, sizes, difficulty, and for every branch how to get there from reset."""
    from sim.elaborate import analyse
    from sim.survey import survey

    subject = find(design, top, define, include, param)
    analysis = analyse(subject)
    surveyed = survey(subject)
    data = described(subject, analysis, surveyed)
    if as_json:
        if sources:
            data["sources"] = {f.path: f.text for f in (*subject.sources, *subject.includes)}
        print(json.dumps(data, ensure_ascii=False))
        return
    _Page().show(data)
    if sources:
        from rich.syntax import Syntax

        for f in (*subject.includes, *subject.sources):
            _console().rule(f.path)
            _console().print(Syntax(f.text, "systemverilog", line_numbers=True))


def described(design: Design, analysis: Analysis, survey: Survey) -> Data:
    """Everything there is to say, as JSON says it."""
    from llm4cov_assets.survey_rows import port_roles

    return {
        "name": design.name,
        "design_id": design.design_id,
        "rtl_id": design.rtl_id,
        "top": design.top,
        "instance": design.instance,
        "files": [f.path for f in (*design.sources, *design.includes)],
        "sizes": [asdict(s) for s in survey.sizes],
        "n_lines": analysis.n_lines,
        "n_tokens": survey.n_tokens,
        "difficulty": survey.difficulty,
        "difficulty_label": survey.difficulty_label,
        "defines": dict(design.defines),
        "overrides": dict(design.parameters),
        "parameters": [asdict(p) for p in survey.parameters],
        "ports": list(port_roles(analysis, survey)),
        "clocks": list(analysis.interface.clocks),
        "resets": [vars(r) for r in analysis.interface.resets],
        "combinational": analysis.interface.combinational,
        "handshakes": [asdict(h) for h in survey.handshakes],
        "enums": [{**asdict(e), "members": dict(e.members)} for e in survey.enums],
        "constants": [asdict(c) for c in survey.comparisons],
        "constants_left_out": survey.comparisons_left_out,
        "includes": [asdict(i) for i in survey.includes],
        "hierarchy": [{"instance": path, "module": module} for path, module in analysis.hierarchy],
        "branches": [
            {
                "file": b.file,
                "line": b.line,
                "what": b.what,
                "instance": b.instance,
                "guards": list(b.guards),
                "steps": None
                if b.steps is None
                else [{"constraints": [vars(c) for c in s.constraints], "cycles": s.cycles} for s in b.steps],
                "reason": b.reason,
            }
            for b in analysis.branches
        ],
        "specification": design.specification,
    }


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


class _Page:
    """Prints what `described` gives. Texts of the source are never read as markup."""

    def __init__(self) -> None:
        self.out = _console()

    def show(self, data: Data) -> None:
        from rich.text import Text

        sizes = f"{_count(data['files'], 'file')}, {data['n_lines']} lines, {data['n_tokens']} tokens"
        self.out.print(Text(f"{data['name']}  top {data['top']}, {sizes}", style="bold"))
        self.say(f"design {data['design_id']}  rtl {data['rtl_id']}")
        self.say(f"difficulty {data['difficulty']:.2f} ({data['difficulty_label']}): the share of branches that random "
                 "stimulus is unlikely to reach")  # fmt: skip
        if data["instance"]:
            self.say(f"testbenches call the instance {data['instance']}")
        self.table(("port", "direction", "width", "type", "role"), data["ports"], lambda p: _port(p, data))
        if data["combinational"]:
            self.say("no clock: combinational")
        for h in data["handshakes"][:MOST_ROWS]:
            self.say(_handshake(h))
        self.more(data["handshakes"], MOST_ROWS)
        parameters = [p for p in data["parameters"] if p["kind"] != "localparam"]
        self.table(("parameter", "value", "default", "type"), parameters,
                   lambda p: (p["name"], p["value"], p["default"], p["type"]))  # fmt: skip
        for e in data["enums"][:MOST_WORDS]:
            members = [f"{name} {value}" for name, value in e["members"].items()]
            self.say(f"enum {e['name']} of {e['scope']}, {e['width']} bits: {_some(members)}")
        self.more(data["enums"], MOST_WORDS)
        self.constants(data)
        self.table(("file", "lines", "tokens"), data["sizes"] if len(data["sizes"]) > 1 else [],
                   lambda s: (s["file"], str(s["n_lines"]), str(s["n_tokens"])))  # fmt: skip
        for i in data["includes"][:MOST_WORDS]:
            self.say(f"{i['file']}:{i['line']} includes {i['included']}")
        self.more(data["includes"], MOST_WORDS)
        instances = [f"{h['instance']} ({h['module']})" for h in data["hierarchy"]]
        if len(instances) > 1:
            self.say(f"{len(instances)} instances: {_some(instances)}")
        self.table(("branch", "guards", "from reset"), data["branches"],
                   lambda b: (f"{b['file']}:{b['line']} {b['what']}", " && ".join(b["guards"]), _path(b)))  # fmt: skip
        known = sum(b["steps"] is not None for b in data["branches"])
        self.say(f"{known} of {len(data['branches'])} branches with a known path from reset")
        lines = data["specification"].strip().splitlines()
        for line in lines[:MOST_ROWS]:
            self.say(line)
        self.more(lines, MOST_ROWS, "lines")

    def say(self, text: str) -> None:
        self.out.print(text, markup=False)

    def more(self, items: Sequence[Any], most: int, what: str = "") -> None:
        """What was left out of a list, if anything."""
        if len(items) > most:
            self.say(f"and {len(items) - most} more{what and ' '}{what}, --json has all")

    def table(self, columns: Sequence[str], items: Sequence[Data], cells: Callable[[Data], Iterable[str]]) -> None:
        """A table of the first items, nothing when there are none."""
        from rich.table import Table
        from rich.text import Text

        if not items:
            return
        table = Table()
        for column in columns:
            right = column in ("width", "lines", "tokens")
            table.add_column(column, justify="right" if right else "left", overflow="fold")
        for item in items[:MOST_ROWS]:
            table.add_row(*(Text(cell) for cell in cells(item)))
        self.out.print(table)
        self.more(items, MOST_ROWS)

    def constants(self, data: Data) -> None:
        """What is compared with constants, a line for each signal of each module."""
        grouped = [
            (key, list(group))
            for key, group in groupby(
                sorted(data["constants"], key=lambda c: (c["module"], c["subject"])),
                key=lambda c: (c["module"], c["subject"]),
            )
        ]
        rows = [
            {"place": f"{module}: {subject}", "compared": _some([_constant(c) for c in its]),
             "where": f"{its[0]['file']}:{its[0]['line']}"}
            for (module, subject), its in grouped
        ]  # fmt: skip
        self.table(("compared", "with", "first at"), rows, lambda r: (r["place"], r["compared"], r["where"]))
        if data["constants_left_out"]:
            self.say(f"and {data['constants_left_out']} more constants of large tables, which are not kept")


def _some(words: Sequence[str], most: int = MOST_WORDS) -> str:
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more} more, --json has all" if more > 0 else "")


def _count(items: Sequence[Any], what: str) -> str:
    return f"{len(items)} {what}{'' if len(items) == 1 else 's'}"


def _port(p: Data, data: Data) -> tuple[str, ...]:
    role = "" if p["role"] == "data" else p["role"]
    for r in data["resets"]:
        if r["port"] == p["name"]:
            role = f"reset, active {'low' if r['active_low'] else 'high'}, {'' if r['synchronous'] else 'a'}synchronous"
    return p["name"], p["direction"], str(p["width"]), p["type"], role


def _handshake(h: Data) -> str:
    low = [h[side] for side in ("valid", "ready") if h[f"{side}_low"]]
    return (
        f"handshake {h['valid']}/{h['ready']}: the testbench drives {h[h['drives']]}"
        + (f"; active low: {', '.join(low)}" if low else "")
        + (f"; with {_some(h['payload'])}" if h["payload"] else "")
    )


def _constant(c: Data) -> str:
    relation = "" if c["operator"] == "==" else f"{c['operator']} "
    plain = c["value"] is None or c["literal"] == str(c["value"])
    return f"{relation}{c['literal']}" + ("" if plain else f" ({c['value']})")


def _path(branch: Data) -> str:
    if branch["steps"] is None:
        return f"unknown: {branch['reason']}"
    return "; ".join(
        (", ".join(_constraint(c) for c in step["constraints"]) or "any inputs")
        + (f" for {step['cycles']} cycles" if step["cycles"] != 1 else "")
        for step in branch["steps"]
    )


def _constraint(c: Data) -> str:
    part = "" if c["high"] is None else f"[{c['high']}:{c['low']}]"
    return f"{c['port']}{part} {c['op']} {c['value']}"
