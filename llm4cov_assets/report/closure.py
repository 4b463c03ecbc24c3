"""The result of a closure run as JSON, Markdown and testbench files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llm4cov_assets.learning.closure import Closure


def closure_summary(result: Closure) -> dict[str, Any]:
    """What `close --json` prints and `summary.json` holds."""
    best = result.best
    origin = {s.generation.testbench.testbench_id: s.policy for s in result.steps[::-1] if s.generation.testbench}
    single = best.simulation if best else None
    failing = {s.simulation.status: s.simulation.feedback for s in result.steps if s.simulation}
    return {
        "design": result.design.name,
        "design_id": result.design.design_id,
        "stopped": result.stopped,
        "rounds": max((step.round for step in result.steps), default=0),
        "simulations": result.simulations,
        "cached_simulations": result.cached_simulations,
        "merged": result.merged.as_dict(),
        "points": {metric: list(counts) for metric, counts in result.merged_points.items()},
        "best": {
            "overall": single.score,
            "coverage": single.coverage.as_dict(),
            "status": single.status,
            "testbench_id": single.testbench_id,
            "simulation_id": single.simulation_id,
            "policy": origin.get(single.testbench_id, ""),
        }
        if single
        else None,
        "testbenches": [
            {"testbench_id": t.testbench_id, "policy": origin.get(t.testbench_id, "")} for t in result.testbenches
        ],
        "steps": [
            {
                "round": step.round,
                "policy": step.policy,
                "testbench_id": step.generation.testbench.testbench_id if step.generation.testbench else None,
                "status": step.simulation.status if step.simulation else None,
                "overall": step.simulation.score if step.simulation else None,
                "new_points": step.new_points,
                "accepted": step.accepted,
                "merged": step.merged,
            }
            for step in result.steps
        ],
        "uncovered": [vars(item) for item in result.uncovered],
        "excluded": [vars(item) for item in result.excluded],
        "errors": [] if single else [f"{status}: {text.strip()[:400]}" for status, text in failing.items()],
    }


def write_closure(result: Closure, summary: Mapping[str, Any], out: Path) -> None:
    """Write `best.*`, the testbenches of the merged coverage, `summary.json` and `summary.md` into `out`."""
    out.mkdir(parents=True, exist_ok=True)
    best = result.best.testbench if result.best else None
    files = {f"testbench_{n}": t for n, t in enumerate(result.testbenches, 1)} | ({"best": best} if best else {})
    files = {f"{stem}{'.py' if t.language == 'cocotb' else '.sv'}": t for stem, t in files.items()}
    for name, testbench in files.items():
        (out / name).write_text(testbench.text, encoding="utf-8")
    (out / "summary.json").write_text(json.dumps(summary, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (out / "summary.md").write_text(_markdown(summary, sorted(files)), encoding="utf-8")


def _markdown(summary: Mapping[str, Any], files: Sequence[str]) -> str:
    lines = [
        f"# Coverage of {summary['design']}",
        "",
        f"Stopped by {summary['stopped']} after {summary['rounds']} rounds and {summary['simulations']} simulations.",
        "",
        "| metric | merged | best testbench |",
        "| --- | --- | --- |",
    ]
    single = summary["best"]["coverage"] if summary["best"] else {}
    for metric, share in summary["merged"].items():
        if share is not None:
            alone = single.get(metric)
            lines.append(f"| {metric} | {100 * share:.1f} % | {'–' if alone is None else f'{100 * alone:.1f} %'} |")
    lines += ["", "Files: " + (", ".join(files) or "none") + ".", "", f"## Uncovered ({len(summary['uncovered'])})", ""]
    for item in summary["uncovered"]:
        lines.append(f"- `{item['file']}:{item['line']}` {item['metric']} {item['what']}: `{item['source']}`")
    if summary["excluded"]:
        lines += ["", f"## Excluded ({len(summary['excluded'])})", ""]
        for item in summary["excluded"]:
            lines.append(f"- `{item['file']}:{item['line']}` {item['metric']} {item['what']}: {item['reason']}")
    return "\n".join([*lines, ""])
