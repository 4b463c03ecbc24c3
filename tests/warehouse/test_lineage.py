"""Lineage leads from a row to what it was made from, and to what was made from it."""

from __future__ import annotations

import pytest
from example_rows import Example

from warehouse.errors import WarehouseError
from warehouse.lineage import Lineage, Node, trace
from warehouse.schema import TABLES
from warehouse.store import Store

Made = tuple[Store, Example]


def lineage(made: Made, id_: str, limit: int = 5) -> Lineage:
    with made[0].connect() as connection:
        traced = trace(connection, id_, limit)
    assert traced is not None
    return traced


def below(node: Node) -> set[tuple[str, str]]:
    """(table, id) of all rows of a tree but its root."""
    return {(c.table, c.id) for c in node.children} | {pair for c in node.children for pair in below(c)}


def example_id(made: Made, stage: int) -> str:
    return made[1].rows["sft_examples", stage, f"stage_{stage}/sft_dataset", None][0]["example_id"]


def checkpoint_id(made: Made, name: str) -> str:
    [row] = [
        r for (table, *_), its in made[1].rows.items() if table == "checkpoints" for r in its if r["policy"] == name
    ]
    return row["checkpoint_id"]


def test_an_example_leads_back_to_everything_it_was_made_from(made: Made) -> None:
    traced = lineage(made, example_id(made, 2))
    found = below(traced.made_from)
    draft, repair = made[1].steps["2/fifo/0"], made[1].steps["2/fifo/0/r"]
    assert {
        ("transitions", repair.transition_id),
        ("transitions", draft.transition_id),
        ("states", draft.state_id),
        ("simulations", draft.simulation_id),
        ("simulations", repair.simulation_id),
        ("testbenches", draft.testbench_id),
        ("testbenches", repair.testbench_id),
        ("generations", repair.generation_id),
        ("checkpoints", checkpoint_id(made, "stage_1")),
        ("checkpoints", checkpoint_id(made, "stage_0")),
        ("checkpoints", checkpoint_id(made, "base_student")),
    } <= found
    assert {"prompts", "policies", "designs", "design_files"} <= {table for table, _ in found}
    assert traced.made_from.provenance["dagster_run_id"] == "run-1"
    assert traced.made_from.provenance["code_version"] == "1"


def test_what_was_never_involved_is_not_in_the_lineage(made: Made) -> None:
    found = below(lineage(made, example_id(made, 0)).made_from)
    assert ("transitions", made[1].steps["1/fifo/0"].transition_id) not in found
    assert ("checkpoints", checkpoint_id(made, "stage_1")) not in found


def test_an_example_leads_forward_to_its_checkpoint_and_what_that_made(made: Made) -> None:
    found = below(lineage(made, example_id(made, 1)).led_to)
    assert ("checkpoints", checkpoint_id(made, "stage_1")) in found
    assert ("checkpoints", checkpoint_id(made, "stage_2")) in found
    assert ("checkpoints", checkpoint_id(made, "stage_0")) not in found


def test_a_design_and_a_checkpoint_lead_forward_to_everything_made_from_them(made: Made) -> None:
    design = made[1].rows["designs", None, "designs", "batch_0"][0]["design_id"]
    counts = lineage(made, design).n_led_to
    assert counts["checkpoints"] == 3
    assert counts["sft_examples"] == 8
    counts = lineage(made, checkpoint_id(made, "stage_2")).n_led_to
    assert counts == {
        "comparisons": 1, "evaluations": 2, "policies": 1, "scores": 2, "simulations": 1, "testbenches": 1,
        "transitions": 3,
    }  # fmt: skip


def test_many_rows_of_one_kind_are_counted_not_listed(made: Made) -> None:
    traced = lineage(made, checkpoint_id(made, "stage_0"), limit=2)
    [examples] = [n for n in (traced.made_from.hidden.get("sft_examples"),) if n]
    assert examples == 2
    assert len([c for c in traced.made_from.children if c.table == "sft_examples"]) == 2
    assert traced.n_made_from["sft_examples"] == 4


def test_a_row_stands_in_a_tree_once_with_its_neighbours(made: Made) -> None:
    def expanded(node: Node) -> list[tuple[str, str]]:
        mine = [(node.table, node.id)] if node.children else []
        return mine + [pair for child in node.children for pair in expanded(child)]

    for id_ in (example_id(made, 2), checkpoint_id(made, "base_student")):
        for tree in (lineage(made, id_).made_from, lineage(made, id_).led_to):
            assert len(expanded(tree)) == len(set(expanded(tree)))


def test_every_row_with_an_id_has_a_lineage(made: Made) -> None:
    own_ids = {c.name for t in TABLES.values() for c in t.columns if c.type == "id" and not c.refers_to}
    without = {name for name, table in TABLES.items() if len(table.key) > 1 or table.key[0] not in own_ids}
    without |= {"coverage_hits"}
    seen: set[str] = set()
    for (table, *_), rows in made[1].rows.items():
        if table not in without | seen:
            traced = lineage(made, rows[0][TABLES[table].key[0]])
            assert (traced.made_from.table, traced.led_to.table) == (table, table)
            assert traced.made_from.summary
            seen.add(table)
    assert seen == set(TABLES) - without


def test_the_id_of_a_trajectory_leads_to_its_last_step(made: Made) -> None:
    repair = made[1].steps["2/fifo/0/r"]
    root = lineage(made, repair.trajectory_id).made_from
    assert (root.table, root.id) == ("transitions", repair.transition_id)


def test_six_digits_are_enough_when_they_are_unique(made: Made) -> None:
    id_ = example_id(made, 1)
    assert lineage(made, id_[:6]).made_from.id == id_
    assert lineage(made, id_.upper()).made_from.id == id_


def test_prefixes_that_do_not_name_one_row(made: Made) -> None:
    with made[0].connect() as connection:
        assert trace(connection, "0" * 32) is None
        for wrong in ("12345", "xyzxyz", ""):
            with pytest.raises(WarehouseError, match="is no id: 6 to 32 hex digits"):
                trace(connection, wrong)


def test_an_ambiguous_prefix_lists_what_it_could_be(store: Store) -> None:
    from test_store import DRAFTS, benches

    store.write("testbenches", benches("abcdef" + "0" * 26, "abcdef" + "1" * 26), DRAFTS)
    store.publish(force=True)
    with store.connect() as connection, pytest.raises(WarehouseError, match=r"beginning of several ids .*abcdef1111"):
        trace(connection, "abcdef")
