"""The data card is made from the designs and committed."""

from __future__ import annotations

import pytest

from llm4cov_assets.ingest import card
from llm4cov_assets.ingest.generator import FAMILIES
from llm4cov_assets.ingest.reference import reference
from llm4cov_assets.ingest.registry import corpus_designs


@pytest.fixture(scope="module")
def page() -> str:
    return card.page()


def test_the_committed_card_is_up_to_date(page: str) -> None:
    assert card.PAGE.read_text() == page, "run python -m llm4cov_assets.ingest.card"


def test_it_says_what_people_ask_of_a_data_set(page: str) -> None:
    sections = {line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")}
    assert sections == {
        "What they are for",
        "How they came about",
        "Hand-written designs",
        "Generator families",
        "Splits and clusters",
        "Targets",
        "Decontamination",
        "Licence",
        "Limits and biases",
        "What must not be concluded",
    }


def test_every_hand_written_design_and_every_family_has_a_row(page: str) -> None:
    development, _, fresh = page.partition("### The development collection")[2].partition("### The fresh collection")
    for design in corpus_designs():
        collection = fresh if reference(design.name).collection == "fresh" else development
        assert f"| [{design.name}](" in collection
        assert page.count(f"\n| {design.name} | verilator ") == 1  # its targets
        assert (card.PAGE.parent / f"../llm4cov_assets/corpus/{design.name}").is_dir()
    for family in FAMILIES:
        assert f"\n| {family} | " in page


def test_it_says_what_fresh_designs_are_for(page: str) -> None:
    assert "`hand_written_fresh`" in page
    assert "no setting was chosen by them" in page
