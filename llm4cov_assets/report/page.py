"""The report: one HTML file that needs nothing else, with the numbers of one configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from llm4cov_assets.report import trajectory as trajectories
from llm4cov_assets.report.numbers import Numbers, Rows
from llm4cov_assets.report.pictures import FUNNEL, Picture
from llm4cov_assets.report.trajectory import Trajectory, TrajectoryStep, by_line

if TYPE_CHECKING:
    from llm4cov_assets.profiles import Profile
    from warehouse.store import Store

STYLE = """
:root { --ink: #1e293b; --faint: #cbd5e1; --paper: #ffffff; --soft: #f1f5f9; --plus: #dcfce7; --minus: #fee2e2 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #cbd5e1; --faint: #475569; --paper: #0f172a; --soft: #1e293b; --plus: #14432a; --minus: #4c1d1d } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--ink); background: var(--paper) }
h2 { margin-top: 2.5rem } h3 { margin: 1.6rem 0 .4rem }
figure { margin: 1rem 0 } figure svg { width: 100%; max-width: 54rem; height: auto; display: block }
figcaption, .how { opacity: .75 }
.wide { overflow-x: auto } table { border-collapse: collapse; margin: 1rem 0; font-size: 14px }
th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--faint); white-space: nowrap }
th { text-align: left; font-weight: 600; vertical-align: bottom; white-space: normal }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums }
pre { background: var(--soft); padding: .6rem .8rem; white-space: pre-wrap; font: 12.5px/1.45 ui-monospace, monospace;
  border-radius: 4px; margin: .4rem 0 }
pre .plus { background: var(--plus) } pre .minus { background: var(--minus) } pre span { display: block }
details { margin: .4rem 0 } summary { cursor: pointer; opacity: .85 }
.step { border-left: 3px solid var(--faint); padding-left: 1rem; margin: 1.5rem 0 }
"""

_SHOWN = 14
"""Lines of feedback that stand in the open; the rest is folded away."""


def report(store: Store, profile: Profile, found: Numbers, drawn: Mapping[str, Picture]) -> str:
    """HTML of the results of a profile, with the most telling trajectory as an example."""
    with store.connect() as connection:
        example = trajectories.read(connection, found.trajectory_id) if found.trajectory_id else None
    return page(profile, found, drawn, example)


def page(profile: Profile, found: Numbers, drawn: Mapping[str, Picture], example: Trajectory | None) -> str:
    """The report of these numbers and pictures (by name), with one trajectory as an example."""
    title = f"llm4cov: profile {profile.name}"
    body = "".join(_sections(profile, found, drawn, example))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f"<p>Configuration {profile.config_hash}. Coverage is of Verilator, on designs that no policy trained on; a"
        " failing testbench counts 0. <b>direct</b> is one draft, <b>agentic</b> a draft and up to"
        f" {profile.eval_rounds} repair rounds. Stimulus only: nothing here checks results.</p>{body}</body></html>\n"
    )


def _sections(
    profile: Profile, found: Numbers, drawn: Mapping[str, Picture], example: Trajectory | None
) -> Iterator[str]:
    whole = [row for row in found.board if row["benchmark"] == "all"]
    yield _section(drawn.get("leaderboard"), _leaderboard(whole), *_by_kind(found.board))
    kinds = [row for row in found.differences if row["benchmark"] != "all"]
    folded = _folded("by kind of evaluation design", _differences(kinds)) if kinds else ""
    yield _section(drawn.get("differences"), _differences([r for r in found.differences if r not in kinds]), folded)
    yield _section(drawn.get("rounds"))
    yield _section(drawn.get("simulations"), _folded("figures of both", _table(found.rounds.to_dicts(), _ROUNDS)))
    if example:
        yield f"<h2>One trajectory, step by step</h2>{_trajectory(example)}"
    yield _section(drawn.get("funnel"), _table(found.funnel.to_dicts(), _FUNNEL))
    yield _section(drawn.get("repairs"))
    yield f"<h2>Training</h2>{_table(found.checkpoints.to_dicts(), _TRAINING)}"
    settings = [{"setting": key, "value": str(value)} for key, value in profile.model_dump().items()]
    yield f"<h2>Settings</h2>{_folded(f'{len(settings)} settings', _table(settings, ('setting', 'value')))}"


_LEADERBOARD = {
    "policy": "policy", "mode": "mode", "avg_cov": "coverage", "interval": "95 % interval",
    "avg_line_branch": "line and branch", "sim_pass": "passed", "cov_pass": "targets met", "pass_at_n": "pass@n",
    "best_at_n": "best@n", "simulations": "simulations",
}  # fmt: skip
_DIFFERENCES = {
    "pair": "paired difference", "mode": "mode", "benchmark": "designs", "n_clusters": "clusters",
    "signed": "coverage", "interval": "95 % interval",
}  # fmt: skip
_ROUNDS = (
    "policy", "benchmark", "round", "n_samples", "n_going", "avg_cov", "avg_line_branch", "share_full",
    "simulations_per_sample",
)  # fmt: skip
_FUNNEL = {"stage": "stage", **FUNNEL, "examples": "training rows", "draft_coverage": "mean coverage of drafts"}
_TRAINING = ("policy", "n_designs", "n_examples", "steps", "tokens", "loss_first", "loss_last", "cpu_s")


def _section(picture: Picture | None, *content: str) -> str:
    if picture is None:
        return ""
    figure = f"<figure>{picture.svg}<figcaption>{escape(picture.caption)}</figcaption></figure>"
    return f"<h2>{escape(picture.title)}</h2>{figure}{''.join(content)}"


def _leaderboard(rows: Rows) -> str:
    size = f"{rows[0]['n_designs']} evaluation designs in {rows[0]['n_clusters']} clusters" if rows else ""
    return f'<p class="how">{size}.</p>' + _table([row | {"interval": _interval(row)} for row in rows], _LEADERBOARD)


def _by_kind(board: Rows) -> Iterator[str]:
    """For each mode a table of coverage by kind of evaluation design, overall and in lines and branches alone."""
    kinds = {row["benchmark"]: row["n_designs"] for row in board if row["benchmark"] != "all"}
    values = {(row["policy"], row["benchmark"], row["mode"]): row for row in board}
    for mode in dict.fromkeys(row["mode"] for row in board) if kinds else ():
        heads = {"policy": "policy"}
        for kind, designs in kinds.items():
            heads |= {kind: f"{kind.replace('_', ' ')} ({designs} designs)", f"{kind}/lines": "line and branch"}
        rows = []
        for policy in dict.fromkeys(row["policy"] for row in board):
            line: dict[str, Any] = {"policy": policy}
            for kind in kinds:
                row = values.get((policy, kind, mode))
                line[kind] = f"{row['avg_cov']:.3f} {_interval(row)}" if row else None
                line[f"{kind}/lines"] = row["avg_line_branch"] if row else None
            rows.append(line)
        yield _folded(f"by kind of evaluation design, {mode}", _table(rows, heads), shown=mode == "agentic")


def _differences(rows: Rows) -> str:
    shown = (
        row
        | {
            "pair": f"{row['policy_a']} − {row['policy_b']}",
            "signed": f"{row['diff']:+.3f}",
            "interval": f"[{row['diff_low']:+.3f}, {row['diff_high']:+.3f}]",
        }
        for row in rows
    )
    return _table(list(shown), _DIFFERENCES)


def _trajectory(example: Trajectory) -> str:
    first, random = example.steps[0], example.avg_random
    against = f" Random stimulus reaches {random:.3f} there on average." if random is not None else ""
    folded = "".join(_folded(path, f"<pre>{escape(text)}</pre>") for path, text in example.rtl.items())
    return (
        f"<p>Design <b>{escape(example.design)}</b>, policy <b>{escape(first.policy)}</b>: from {first.after:.3f} to"
        f" {example.best:.3f} in {len(example.steps) - 1} rounds.{against} <code>llm4cov trajectory"
        f" {example.trajectory_id[:12]}</code> shows it in the terminal, <code>llm4cov trajectory DESIGN</code> that of"
        f" another design.</p>{folded}" + "".join(map(_step, example.steps))
    )


def _step(step: TrajectoryStep) -> str:
    seen = f"<p>Nothing is covered yet: {step.n_uncovered} points.</p>"
    if step.observed:
        lines = step.uncovered.splitlines()
        more = _folded("more of it", _pre(lines[_SHOWN:])) if lines[_SHOWN:] else ""
        seen = f"<p>{step.n_uncovered} points are uncovered; the policy reads:</p>{_pre(lines[:_SHOWN])}{more}"
    change = step.change
    if not change:
        changed = "<p>The testbench stays as it was.</p>" if step.testbench else "<p>The answer holds no testbench.</p>"
    elif step.testbench_before:
        changed = f"<p>What it changes in the testbench:</p>{_pre(change, marked=True)}"
    else:
        changed = f"<p>The stimulus of its testbench:</p>{_pre([line[1:] for line in change])}"
    whole = _folded("the whole testbench", _pre(step.testbench.splitlines())) if step.testbench else ""
    hit = _folded(step.outcome, _points(step)) if step.hit else f"<p>{step.outcome}</p>"
    return f'<div class="step"><h3>{escape(step.title)}</h3>{seen}{changed}{whole}{hit}</div>'


def _points(step: TrajectoryStep) -> str:
    rows = [
        {"where": f"{file}:{line}", "points": what, "source": source.strip()}
        for file, lines in by_line(step.hit).items()
        for line, (source, what) in lines.items()
    ]
    return _table(rows)


def _pre(lines: Sequence[str], marked: bool = False) -> str:
    if not marked:
        return f"<pre>{escape(chr(10).join(lines))}</pre>"
    kinds = {"+": "plus", "-": "minus"}
    spans = (f"<span class={kinds.get(line[:1], 'same')}>{escape(line) or ' '}</span>" for line in lines)
    return f"<pre>{''.join(spans)}</pre>"


def _folded(title: str, content: str, shown: bool = False) -> str:
    return f"<details{' open' if shown else ''}><summary>{escape(title)}</summary>{content}</details>"


def _interval(row: Mapping[str, Any]) -> str:
    return f"[{row['avg_cov_low']:.3f}, {row['avg_cov_high']:.3f}]"


def _table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str] | Sequence[str] = ()) -> str:
    """Rows as an HTML table; `columns` may give the heads. Numbers stand right, fractions have three digits."""
    if not rows:
        return "<p>Nothing yet.</p>"
    heads = columns if isinstance(columns, Mapping) else {c: c.replace("_", " ") for c in columns or rows[0]}
    numeric = {c for c in heads if any(isinstance(row[c], int | float) and row[c] is not None for row in rows)}
    head = "".join(_cell(name, c in numeric, "th") for c, name in heads.items())
    body = "".join(f"<tr>{''.join(_cell(row[c], c in numeric) for c in heads)}</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _cell(value: Any, numeric: bool, tag: str = "td") -> str:
    text = "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
    return f"<{tag} class={'n' if numeric else 't'}>{escape(text)}</{tag}>"
