"""Why a simulation is, or is not, in the cache: its key beside the keys of the nearest results that are there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

from sim.build import BuildError
from sim.design import Design
from sim.simulation import Limits, Testbench
from sim.simulator import Simulator

MOST = 3
"""Stored results that a miss is compared with."""

TextOf = Callable[[str], str | None]
"""Gives the text of a testbench by its id, if anybody knows it."""


@dataclass(frozen=True)
class Difference:
    """One thing in which a stored result differs from what was asked for, in words. `now` and `then` are the values in
    the two keys."""

    what: str
    now: Any
    then: Any
    detail: str = ""


@dataclass(frozen=True)
class Near:
    """A stored result of the same design or the same testbench."""

    simulation_id: str
    stored_at: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class Explanation:
    """`hit` is whether the result would come from the cache; `reason` says why, in a sentence. `build` is about the
    design's build. `nearest` are stored results, those with the fewest differences first; `looked_at` is how many
    entries there are."""

    simulation_id: str
    hit: bool
    reason: str
    build: str
    key: dict[str, Any] = field(repr=False)
    nearest: tuple[Near, ...] = ()
    looked_at: int = 0

    def as_json(self) -> dict[str, Any]:
        """A JSON object."""
        return asdict(self)


def explain(
    simulator: Simulator,
    design: Design,
    testbench: Testbench,
    *,
    limits: Limits | None = None,
    seed: int = 0,
    text_of: TextOf = lambda testbench_id: None,
    progress: Callable[[int], None] = lambda looked_at: None,
) -> Explanation:
    """Say why `Simulator.run_many` would, or would not, take this result from the cache. Nothing is simulated."""
    key = json.loads(json.dumps(simulator.key(design, testbench, limits or Limits(), seed)))
    path = simulator.cache.path(key)
    name, build = path.name[:32], _build(simulator, key["build"])
    if path.exists():
        hit, reason = _stored(simulator, path, key)
        return Explanation(name, hit, reason, build, key)
    found: list[tuple[int, str, Path, dict[str, Any]]] = []
    looked_at = 0
    for looked_at, (other, stored) in enumerate(simulator.cache.keys(), 1):
        if looked_at % 1000 == 0:
            progress(looked_at)
        if stored.get("rtl_id") == key["rtl_id"] or stored.get("testbench_id") == key["testbench_id"]:
            found.append((_distance(key, stored), other.name, other, stored))
            found = sorted(found, key=lambda f: f[:2])[:MOST] if len(found) > 10 * MOST else found
    nearest = tuple(
        Near(other.name[:32], _written(other), differences(simulator, design, testbench, key, stored, text_of))
        for _, _, other, stored in sorted(found, key=lambda f: f[:2])[:MOST]
    )
    if nearest:
        reason = "nothing is stored under this key"
    elif looked_at:
        reason = f"none of the {looked_at} stored results is of this design or of this testbench"
    else:
        reason = "the cache is empty"
    return Explanation(name, False, reason, build, key, nearest, looked_at)


def _stored(simulator: Simulator, path: Path, key: dict[str, Any]) -> tuple[bool, str]:
    stored = simulator.cache.get(key)
    if stored is None:
        return False, f"the entry {path} is damaged: the next simulation replaces it"
    try:
        there = not stored["hits"] or simulator.known(stored["build_id"]) is not None
    except (KeyError, TypeError, BuildError):
        there = False
    if not there:
        return False, "it is stored, but the build that its coverage refers to is gone: the design is built again"
    again = "; it may be the machine's fault, and --retry-faults runs it again" if stored.get("fault") else ""
    return True, f"it is stored since {_written(path)}{again}"


def _build(simulator: Simulator, build_id: str) -> str:
    try:
        return "there" if simulator.known(build_id) is not None else "not there: the design would be built"
    except BuildError as error:
        return f"failed, and is not tried again: {error.message.partition(chr(10))[0]}"


def _written(path: Path) -> str:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
    except OSError:
        return "?"


def _distance(key: Mapping[str, Any], stored: Mapping[str, Any]) -> int:
    """How far two keys are apart: another design or testbench counts more than all settings together."""
    names = {name for name in (*key, *stored) if key.get(name) != stored.get(name)}
    return sum(100 if name in ("rtl_id", "testbench_id") else 1 for name in names)


def differences(
    simulator: Simulator,
    design: Design,
    testbench: Testbench,
    key: Mapping[str, Any],
    stored: Mapping[str, Any],
    text_of: TextOf = lambda testbench_id: None,
) -> tuple[Difference, ...]:
    """In what two keys differ, in words; what only follows from another difference is left out."""
    found: list[Difference] = []

    def note(name: str, what: str, detail: str = "") -> None:
        found.append(Difference(what, key.get(name), stored.get(name), detail))

    def differs(name: str) -> bool:
        return key.get(name) != stored.get(name)

    if differs("rtl_id"):
        source = simulator.toolchain.builds / str(stored.get("build")) / "src"
        note("rtl_id", "the design", _changed_files(design, source))
    if differs("testbench_id"):
        note("testbench_id", "the testbench", _changed_text(testbench, text_of(str(stored.get("testbench_id")))))
    if differs("language"):
        note("language", "the language of the testbench")
    if differs("simulator"):
        note("simulator", "the simulator or its version")
    if differs("build") and not differs("rtl_id") and not differs("simulator"):
        note("build", "how designs are built", "another version of this program (flags or harness), or of the compiler")
    if differs("seed"):
        note("seed", "the seed of the simulation (--seed)")
    if differs("limits"):
        now, then = key.get("limits") or {}, stored.get("limits") or {}
        for name in sorted({*now, *then}):
            if now.get(name) != then.get(name):
                found.append(Difference(f"the limit {name}{_OPTIONS.get(name, '')}", now.get(name), then.get(name)))
    if differs("schema"):
        note("schema", "what a stored result means", "another version of this program")
    if differs("stand_in") and not differs("language"):
        note("stand_in", "how SystemVerilog testbenches are run", "another version of this program")
    return tuple(found)


_OPTIONS = {"wall_s": " (--timeout)", "cpu_s": " (--timeout)"}


def _changed_files(design: Design, source: Path) -> str:
    """Which files differ from those that a build was made of."""
    if not source.is_dir():
        return "what it was then is not kept any more"
    now = {file.path: file.content for file in (*design.sources, *design.includes)}
    then = {str(p.relative_to(source)): p.read_bytes() for p in sorted(source.rglob("*")) if p.is_file()}
    said = [f"{name} is new" for name in sorted(now.keys() - then.keys())]
    said += [f"{name} is gone" for name in sorted(then.keys() - now.keys())]
    for name in sorted(now.keys() & then.keys()):
        if now[name] != then[name]:
            texts = (content.decode(errors="replace") for content in (now[name], then[name]))
            said.append(f"{name} differs from line {_first_line(*texts)}")
    return "; ".join(said) or "its files are the same: top module, defines, parameters or include folders differ"


def _changed_text(testbench: Testbench, then: str | None) -> str:
    return "" if then is None else f"differs from line {_first_line(testbench.text, then)}"


def _first_line(now: str, then: str) -> int:
    pairs = zip_longest(now.splitlines(), then.splitlines())
    return next((number for number, (a, b) in enumerate(pairs, 1) if a != b), 1)
