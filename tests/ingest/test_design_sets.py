"""Which designs belong to which set, and how a person names one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.canonical import canonical_content
from llm4cov_assets.ingest.generator import HELD_OUT
from llm4cov_assets.ingest.overlap import overlaps, rouge_overlaps
from llm4cov_assets.ingest.records import HAND_WRITTEN, HELD_OUT_FAMILIES, SEEN_FAMILIES, batches
from llm4cov_assets.ingest.registry import (
    corpus_designs,
    evaluation_set,
    find_design,
    generated_records,
    known_records,
    training_set,
)
from llm4cov_assets.ingest.similarity import rouge_l
from llm4cov_assets.profiles import Profile, profile
from sim.design import Design, DesignError, SourceFile

DEMO, QUICK = profile("demo"), profile("quick")


def test_hundreds_of_distinct_designs_are_trained_on_and_none_of_them_is_evaluated() -> None:
    evaluated = {canonical_content(r.design) for r in evaluation_set(DEMO)}
    assert len(evaluated) == len(evaluation_set(DEMO)) >= 50
    for seed in range(3):
        records = training_set(Profile(seed=seed))
        trained = {canonical_content(r.design) for r in records}
        assert len(trained) == len({r.design.rtl_id for r in records}) == len(records) >= 300
        assert not trained & evaluated


def test_held_out_families_are_never_trained_on() -> None:
    clusters = {r.cluster for r in training_set(DEMO)}
    assert not clusters & set(HELD_OUT)
    assert len(clusters) >= 10
    with pytest.raises(UserError, match="held-out"):
        training_set(Profile(train_families="packet"))
    with pytest.raises(UserError, match="--split eval"):
        generated_records(3, "packet", 0, "train")


def test_the_sets_have_the_sizes_that_the_profile_asks_for() -> None:
    for settings in (DEMO, QUICK):
        assert len(training_set(settings)) == settings.train_designs
    benchmarks = [r.benchmark for r in evaluation_set(QUICK)]
    assert benchmarks.count(HAND_WRITTEN) == QUICK.eval_hand_written
    assert benchmarks.count(HELD_OUT_FAMILIES) == QUICK.eval_per_family * len(HELD_OUT)
    assert len({r.name for r in (*training_set(DEMO), *evaluation_set(DEMO))}) == len(
        [*training_set(DEMO), *evaluation_set(DEMO)]
    )


def test_evaluation_designs_fall_into_two_dozen_clusters_of_three_kinds() -> None:
    records = evaluation_set(DEMO)
    assert len({r.cluster for r in records}) >= 24
    assert {r.benchmark for r in records} == {HAND_WRITTEN, SEEN_FAMILIES, HELD_OUT_FAMILIES}
    assert {r.cluster for r in records if r.benchmark == HELD_OUT_FAMILIES} == set(HELD_OUT)
    assert all(r.cluster == r.name for r in records if r.benchmark == HAND_WRITTEN)


def test_evaluation_designs_are_the_same_for_every_seed_of_a_profile() -> None:
    assert [r.design.design_id for r in evaluation_set(Profile(seed=5))] == [
        r.design.design_id for r in evaluation_set(DEMO)
    ]


def test_training_designs_do_not_resemble_hand_written_ones_or_held_out_families() -> None:
    other = [r.design for r in evaluation_set(DEMO) if r.benchmark != SEEN_FAMILIES]
    for seed in range(3):
        trained = [r.design for r in training_set(Profile(seed=seed))]
        assert overlaps(trained, other) == []
        assert rouge_overlaps(trained, other) == []


def test_a_design_resembles_itself_under_another_name() -> None:
    alu = next(d for d in corpus_designs() if d.name == "alu")
    [overlap] = overlaps([alu], list(corpus_designs()), least=0.9)
    assert (overlap.other, overlap.share) == ("alu", 1.0)
    [overlap] = rouge_overlaps([alu], list(corpus_designs()), least=0.9)
    assert (overlap.other, overlap.share) == ("alu", 1.0)


def test_a_very_long_file_is_compared_in_no_time() -> None:
    tokens = [str(i) for i in range(400_000)]
    began = time.process_time()
    assert rouge_l(tokens, tokens[:1000]) == rouge_l(tokens[:1000], tokens) == pytest.approx(2000 / 401_000)
    long = Design("long", (SourceFile("long.sv", " ".join(tokens).encode()),), "long")
    assert rouge_overlaps([long], corpus_designs()) == []
    assert time.process_time() - began < 10


def test_rouge_l_is_the_f1_of_the_longest_common_subsequence() -> None:
    assert rouge_l(list("abcd"), list("axcdy")) == pytest.approx(2 * 3 / 9)
    assert rouge_l(["a"], []) == 0.0
    assert rouge_l(["a", "b"], ["b", "a"]) == pytest.approx(0.5)
    assert rouge_l(list("axcdy"), list("abcd")) == rouge_l(list("abcd"), list("axcdy"))


def test_batches_cover_all_designs_in_order_under_names_that_sort() -> None:
    records = training_set(DEMO)
    cut = batches(records, 50, "train")
    assert list(cut) == sorted(cut)
    assert next(iter(cut)) == "train-000"
    assert [r for batch in cut.values() for r in batch] == records
    assert max(len(b) for b in cut.values()) == 50


def test_a_glob_keeps_matching_designs_only() -> None:
    narrowed = DEMO.model_copy(update={"designs_glob": "lock_*"})
    assert {r.cluster for r in training_set(narrowed)} == {"lock"}
    assert {r.cluster for r in evaluation_set(narrowed)} == {"lock"}


def test_a_person_finds_designs_by_name_file_or_folder(tmp_path: Path) -> None:
    rtl = tmp_path / "blink.sv"
    rtl.write_text("module blink(input logic clk, output logic q); always_ff @(posedge clk) q <= !q; endmodule\n")
    assert find_design("vending", tmp_path).name == "vending"
    assert find_design("lock_0_003", tmp_path).name == "lock_0_003"
    assert find_design(str(rtl), tmp_path).top == "blink"
    assert find_design(str(tmp_path), tmp_path).top == "blink"
    assert find_design("packet_router", tmp_path, parameters={"DEPTH": "4"}).parameters[0] == ("DEPTH", "4")


def test_an_unknown_design_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="neither a known name"):
        find_design("nothing_like_it", tmp_path)
    with pytest.raises(DesignError, match="no such file"):
        find_design("./nothing.sv", tmp_path)


def test_every_known_design_has_a_name_of_its_own(tmp_path: Path) -> None:
    names = [r.name for r in known_records(tmp_path, DEMO)]
    assert len(names) == len(set(names))
