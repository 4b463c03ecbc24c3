"""Verification names what is wrong; compaction changes nothing that can be seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from example_rows import Example, example
from test_publish import content
from test_store import DRAFTS, A, B, C, benches, parts, selections

from warehouse.parts import list_parts
from warehouse.store import Provenance, Store
from warehouse.verification import check_part


def rows_of(rows: Example, table: str, asset: str = "stage_0/drafts") -> list[dict[str, Any]]:
    return next(its for (name, _, made_by, _), its in rows.rows.items() if name == table and made_by == asset)


def problems(store: Store, rows: Example) -> set[str]:
    rows.write(store)
    return {problem.where for problem in store.verify()}


def test_a_good_warehouse_has_no_problems(store: Store) -> None:
    assert problems(store, example()) == set()


@pytest.mark.parametrize(
    ("table", "column", "value", "where"),
    [
        ("transitions", "gain", 0.9, {"transitions.gain"}),
        ("transitions", "policy_id", "ee" * 16, {"transitions.policy_id"}),
        ("transitions", "score_before", 0.3, {"transitions.gain", "transitions.score_before"}),
        ("states", "score", 0.25, {"states.score"}),
        ("simulations", "toggle", 1.0, {"simulations.toggle", "simulations.overall"}),
        ("simulations", "overall", 0.6, {"simulations.overall", "states.score"}),
        ("simulations", "n_points", 11, {"simulations.n_points"}),
        ("coverage_hits", "n_hit", 4, {"coverage_hits.n_hit", "simulations.n_hit"}),
        ("coverage_hits", "hits", b"\x13\x03", {"simulations.expression", "simulations.toggle"}),
    ],
)
def test_a_wrong_value_is_named(store: Store, table: str, column: str, value: object, where: set[str]) -> None:
    rows = example()
    of_table = rows_of(rows, table)
    running = next(i for i, row in enumerate(of_table) if row.get("score", 1) and row.get("overall", 1))
    of_table[running][column] = value
    # every row with the same key must tell the same story
    assert where <= problems(store, rows) or table == "states"


def test_a_reference_to_nothing_is_named(store: Store) -> None:
    rows = example()
    rows_of(rows, "transitions")[0]["generation_id"] = "ee" * 16
    [problem] = [p for p in (rows.write(store), store.verify())[1] if p.where == "transitions.generation_id"]
    assert "1 rows refer to a row that generations does not have, for example " + "ee" * 16 in problem.what


def test_a_changed_part_and_a_damaged_part_are_named(store: Store) -> None:
    store.write("testbenches", benches(A), DRAFTS)
    store.write("testbenches", benches(B, text="other"), DRAFTS)
    one, two = parts(store)
    original = one.read_bytes()
    one.write_bytes(two.read_bytes())
    [problem] = store.verify()
    assert problem.where.endswith(one.name)
    assert "changed after it was written" in problem.what
    one.write_bytes(original[:-10])
    [problem] = store.verify()
    assert "is damaged" in problem.what


def test_rows_that_are_gone_are_named_though_another_asset_has_some_beside_them(store: Store) -> None:
    store.write("testbenches", benches(A), DRAFTS, whole=True)
    [part] = parts(store)
    store.write("testbenches", benches(B), Provenance(**{**vars(DRAFTS), "asset_key": "stage_0/repairs"}), whole=True)
    store.write("selections", selections(), DRAFTS, whole=True)  # no rows: nothing that could be gone

    def held(asset: str) -> bool:
        return store.holds(["testbenches"], DRAFTS.config_hash, asset, "batch_0")

    assert store.verify() == [] and held("stage_0/drafts") and not held("stage_1/drafts")
    part.unlink()
    [problem] = store.verify()
    assert problem.where.endswith("stage_0%2Fdrafts.current") and "stage_0/drafts[batch_0]" in problem.what
    assert not held("stage_0/drafts") and held("stage_0/repairs")
    store.write("testbenches", benches(A), DRAFTS, whole=True)
    assert store.verify() == [] and held("stage_0/drafts")
    store.compact()
    assert store.verify() == [] and held("stage_0/drafts")


def test_every_flipped_byte_of_a_part_is_noticed_or_harmless(store: Store) -> None:
    store.write("testbenches", benches(A, B), DRAFTS)
    [part] = parts(store)
    original, whole = part.read_bytes(), store.read("testbenches").drop("created_at", "dagster_run_id")
    listed = list_parts(store.parts)[0]
    noticed = 0
    for position in range(0, len(original), 61):
        part.write_bytes(original[:position] + bytes([original[position] ^ 0x5A]) + original[position + 1 :])
        if check_part(listed):
            noticed += 1
        else:
            assert store.read("testbenches").drop("created_at", "dagster_run_id").equals(whole)
    assert noticed > 20


def test_compaction_leaves_few_parts_and_the_same_rows(store: Store) -> None:
    example().write(store)
    for id_ in (A, B, C):
        store.write("testbenches", benches(id_), DRAFTS)
        store.write("selections", selections(id_), DRAFTS, whole=True)
    store.publish(force=True)
    problems_before = store.verify()
    before, read, n_parts = content(store), store.read("transitions"), len(parts(store))
    result = store.compact()
    assert result.merged + result.kept == n_parts
    assert len(parts(store)) == result.made + result.kept < n_parts / 2
    assert store.read("transitions").equals(read)
    store.publish(force=True)
    assert content(store) == before
    store.rebuild()
    assert content(store) == before
    assert store.verify() == problems_before
    assert store.compact().merged == 0


def test_what_was_merged_is_not_written_again(store: Store) -> None:
    for id_ in (A, B):
        store.write("selections", selections(id_), DRAFTS)
    store.compact()
    store.write("selections", selections(C), DRAFTS)
    store.compact()
    [merged] = parts(store)
    for id_ in (A, B, C):
        store.write("selections", selections(id_), Provenance(**{**vars(DRAFTS), "dagster_run_id": "later"}))
    assert parts(store) == [merged]
    store.write("selections", selections(B), DRAFTS, whole=True)
    assert store.read("selections")["selection_id"].to_list() == [B]


def test_a_crash_between_merging_and_removing_is_harmless(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for id_ in (A, B):
        store.write("selections", selections(id_), DRAFTS)
    store.publish(force=True)

    def crash(_: object) -> None:
        raise KeyboardInterrupt

    for name in ("warehouse.folding.replace_parts", "warehouse.compaction.remove"):
        with monkeypatch.context() as patch:
            patch.setattr(name, lambda *_: crash(None))
            with pytest.raises(KeyboardInterrupt):
                store.compact()
        assert store.read("selections").height == 2
        store.publish(force=True)
        assert store.query("from selections_all").height == 2
    store.compact()
    assert len(parts(store)) == 1
    assert store.query("from selections_all").height == 2


def test_readers_go_on_while_parts_are_merged(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for id_ in (A, B):
        store.write("selections", selections(id_), DRAFTS)
    listed = parts(store)

    from warehouse import parts as part_module

    original = part_module.list_parts
    compacted: list[Path] = []

    def list_and_compact(*arguments: Any) -> Any:
        found = original(*arguments)
        if not compacted:
            compacted.extend(listed)
            monkeypatch.undo()
            store.compact()
        return found

    monkeypatch.setattr("warehouse.store.parts.list_parts", list_and_compact)
    assert store.read("selections")["selection_id"].to_list() == [A, B]
    assert compacted
