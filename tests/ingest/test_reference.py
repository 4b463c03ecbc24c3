"""What is known about bundled designs is read with errors that name file and line, and written without loss."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llm4cov_assets.assets.closing import calibrated_targets
from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.importing import import_source
from llm4cov_assets.ingest.reference import (
    CORPUS,
    REFERENCE_FILE,
    Targets,
    Unreachable,
    campaigns,
    contradicted,
    parse,
    reference,
    targets_of,
    written,
)
from llm4cov_assets.ingest.registry import corpus_designs, development_designs, evaluation_set, reference_targets
from llm4cov_assets.ingest.registry import fresh_records as fresh
from llm4cov_assets.profiles import profile
from llm4cov_assets.rows import table_frame
from sim import reasons
from sim.simulation import CoveragePoint, UncoveredItem
from sim.simulator import Simulator
from warehouse.store import Provenance, Store

GOOD = """\
# a comment that a person wrote
collection = "fresh"

[facts]
clocks = ["clk"]

[[facts.resets]]
port = "rst_n"
active = "low"
synchronous = false

[[unreachable]]
metric = "toggle"
file = "a.sv"
line = 7
what = ["count[7]:*"]
reason = "count ends at 100"
"""
FOUND = Targets(
    "Verilator 5", "r" * 8, 64, 0, 0.95, {"overall": 0.9, "line": 1.0}, {"overall": 0.855, "line": 0.95}, {"line": 2}, 1
)


def read(text: str) -> str:
    """The error of a file with this content; its path is short."""
    with pytest.raises(UserError) as error:
        parse("a", text, Path("a/reference.toml"))
    return str(error.value)


def test_a_file_is_read_as_it_was_written() -> None:
    found = parse("a", GOOD, Path("a"))
    assert (found.collection, found.facts.clocks, found.targets) == ("fresh", ("clk",), ())
    [reset] = found.facts.resets
    assert (reset.port, reset.active_low, reset.synchronous) == ("rst_n", True, False)
    assert found.unreachable == (Unreachable("toggle", "a.sv", 7, "count ends at 100", ("count[7]:*",)),)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("[facts]", "[facts", "a/reference.toml: not valid TOML"),
        ('"fresh"', '"stale"', "a/reference.toml:2: collection is 'stale'; choose one of development, fresh"),
        ('collection = "fresh"', "", "a/reference.toml:1: collection is missing"),
        ('clocks = ["clk"]', "clocks = [1]", "a/reference.toml:5: clocks must be names of ports"),
        ('active = "low"', 'active = "lo"', "a/reference.toml:9: active is 'lo'"),
        ("synchronous = false", 'synchronous = "no"', "a/reference.toml:10: synchronous must be of type bool"),
        ("line = 7", "line = true", "a/reference.toml:15: line must be of type int"),
        ('metric = "toggle"', 'metric = "speed"', "a/reference.toml:13: metric is 'speed'"),
        ('reason = "count ends at 100"', "", "a/reference.toml:12: reason is missing"),
        ('reason = "count', 'reason = " "\nwhy = "count', "a/reference.toml:18: unknown key"),
        ('["count[7]:*"]', "[]", "a/reference.toml:16: what must be a list"),
        ("[facts]\n", '[facts]\nclock = "clk"\n', "a/reference.toml:5: unknown key 'clock'; known: clocks, resets"),
    ],
)
def test_an_error_names_file_line_and_mend(old: str, new: str, error: str) -> None:
    assert GOOD.count(old) == 1
    assert read(GOOD.replace(old, new)).startswith(error)


def test_targets_are_written_behind_what_people_wrote_and_read_back() -> None:
    text = written(GOOD, [FOUND])
    assert text.startswith(GOOD)
    assert parse("a", text, Path("a")).targets == (FOUND,)
    assert written(text, [FOUND]) == text
    assert "two [[targets]] of one simulator" in read(written(GOOD, [FOUND, FOUND]))
    assert "reached must be fractions" in read(text.replace("0.900000", "1.2"))


def test_unreachable_points_fit_by_place_and_glob_and_are_held_against_what_was_reached() -> None:
    known = parse("a", GOOD, Path("a"))
    points = [CoveragePoint("toggle", "a.sv", 7, 1, "a", f"count[{bit}]:0->1", "") for bit in (6, 7)]
    items = [UncoveredItem(p.metric, p.file, p.line, p.instance, p.what, "") for p in points]
    assert [known.why_unreachable(p) for p in points] == [None, "count ends at 100"]
    assert contradicted(known, points, items) == []
    [reached] = contradicted(known, points, items[:1])
    assert "count[7]:0->1 of a was reached, but is listed as unreachable (count ends at 100)" in reached
    [stale] = contradicted(known, points[:1], items[:1])
    assert stale == "a: no toggle point 'count[7]:*' in a.sv:7"


@pytest.mark.parametrize("name", [d.name for d in corpus_designs()])
def test_every_bundled_design_has_targets_for_the_rtl_that_it_has(name: str) -> None:
    [design] = [d for d in corpus_designs() if d.name == name]
    known = reference(name)
    assert known.targets, f"run python -m llm4cov_assets.ingest.reference {name}"
    for found in known.targets:
        assert found.rtl_id == design.rtl_id, f"run python -m llm4cov_assets.ingest.reference {name}"
        assert found.targets.keys() == found.reached.keys() >= {"overall", "line", "branch", "toggle"}
        for metric, target in found.targets.items():
            assert target == pytest.approx(found.share * found.reached[metric], abs=1e-6)
        assert reference_targets()[design.design_id, found.simulator] == found.targets


def test_entries_name_files_of_their_design_and_lines_in_them() -> None:
    for design in corpus_designs():
        lines = {f.path: f.text.splitlines() for f in design.sources}
        for entry in reference(design.name).unreachable:
            assert lines[entry.file][entry.line - 1].strip(), (design.name, entry)


def test_a_design_without_a_file_is_an_error() -> None:
    with pytest.raises(UserError, match=rf"{REFERENCE_FILE}: no such file"):
        reference("no_such_design")


def test_profiles_evaluate_on_the_development_collection_and_fresh_designs_stand_apart() -> None:
    evaluated = {r.name for r in evaluation_set(profile("demo")) if r.kind == "hand_written"}
    assert evaluated == {d.name for d in development_designs()}
    assert evaluated.isdisjoint(r.name for r in fresh())
    assert {r.benchmark for r in fresh()} == {"hand_written_fresh"}
    assert evaluated | {r.name for r in fresh()} == {p.name for p in CORPUS.iterdir() if p.is_dir()}


def test_nobody_trains_on_a_copy_of_a_fresh_design(tmp_path: Path, home: Path) -> None:
    text = (CORPUS / "dma_engine" / "dma_engine.sv").read_text()
    (tmp_path / "mine.sv").write_text(text.replace("dma_engine", "mine"))
    [refused] = import_source(tmp_path / "mine.sv", home, split="train", dry_run=True).rejected
    assert refused.reason == reasons.CONTAMINATED
    assert "dma_engine" in refused.detail


def test_a_closure_of_a_bundled_design_knows_its_targets_and_calibrated_ones_win(home: Path) -> None:
    store, [found] = Store(home), reference("alu").targets
    [alu] = [d for d in corpus_designs() if d.name == "alu"]
    key = (alu.design_id, found.simulator)
    assert calibrated_targets(store)[key] == found.targets
    calibrated = {
        "design_id": alu.design_id, "simulator": found.simulator, "metric": "overall", "target": 0.5,
        "origin": "calibrated", "reference": 0.6, "simulations": 8,
    }  # fmt: skip
    store.write("targets", table_frame("targets", [calibrated]), Provenance(None, "c" * 8))
    assert calibrated_targets(store)[key] == {"overall": 0.5}


def test_a_campaign_gives_targets_and_shows_what_is_wrongly_called_unreachable(simulator: Simulator) -> None:
    [alu] = [d for d in corpus_designs() if d.name == "alu"]
    told: list[tuple[int, int]] = []
    [(found, left)] = campaigns([alu], simulator, 8, 0, lambda now, done, total: told.append((done, total)))
    targets = targets_of(found, reference("alu"), left, seed=0)
    assert told[-1] == (8, 8)
    assert (targets.simulations, targets.rtl_id, targets.simulator) == (8, alu.rtl_id, simulator.toolchain.simulator)
    assert targets.reached["overall"] == pytest.approx(found.coverage.overall, abs=1e-6)
    assert sum(targets.left.values()) == len(left) > 0

    points = simulator.build(alu).points
    reached = next(p for p in points if p.metric == "line" and (p.line, p.what) not in {(u.line, u.what) for u in left})
    wrong = replace(reference("alu"), unreachable=(Unreachable("line", reached.file, reached.line, "never happens"),))
    assert f"{reached.file}:{reached.line}: line" in contradicted(wrong, points, left)[0]
