"""Examples for supervised fine-tuning: what a stage trained on, or the accepted testbenches as whole files."""

from __future__ import annotations

from llm4cov_assets.export import wording
from llm4cov_assets.export.datasets import (
    CONVERSATION,
    INT,
    STEP_COLUMNS,
    STEP_SQL,
    TEXT,
    Columns,
    Row,
    Shape,
    Source,
    Text,
)
from llm4cov_assets.export.selection import Selection
from llm4cov_assets.policy import tokens

_ACCEPTED = "t.accepted and t.stage is not null and t.role in ('draft', 'repair')"


def source(selection: Selection, text: Text, designs: wording.Designs) -> Source:
    """What `export sft` reads: rows of `sft_examples` (compact), or accepted steps of the stages (testbench)."""
    return _compact(selection) if text == "compact" else _testbench(selection, designs)


def _compact(selection: Selection) -> Source:
    tables = (
        "from rows.sft_examples as e left join rows.transitions as t using (transition_id)"
        " left join rows.designs as d on d.design_id = e.design_id"
    )
    where, parameters = selection.where()
    unsplit = selection.where(any_split=True)

    def prepare(row: Row) -> Row:
        said = wording.said(row["completion"].removesuffix(f" {tokens.EOS}"))
        return row | {"messages": [{"role": "user", "content": row["prompt"]}, *said]}

    return Source(
        kind="sft",
        title="training examples of the small student",
        about=(
            "Each row is a prompt and the answer that a simulation proved good, in the compact text of the small"
            " student: conditions on inputs, and stimulus that meets them (see `llm4cov_assets/policy/compact.py`)."
            " Prompt and completion are those that its stages trained on, character for character, in the same order."
            f" A completion ends with the student's end token `{tokens.EOS}`; in the messages it is left out, because"
            " a chat template ends a turn with its own."
        ),
        chosen=(f"select e.design_id {tables} where {unsplit[0]}", unsplit[1]),
        picked=(
            "select e.example_id, t.config_hash, t.stage, t.transition_id, t.simulation_id, e.design_id, d.cluster"
            f" {tables} where {where}",
            parameters,
        ),
        order=("config_hash", "stage", "example_id"),
        sql=(
            "select k.place, lower(hex(e.example_id)) as example_id, e.variant, e.n_tokens, e.prompt, e.completion,"
            f" {STEP_SQL}"
            " from picked as k join rows.sft_examples as e on e.example_id = k.example_id"
            " and e.config_hash = k.config_hash"
            " join rows.transitions as t on t.transition_id = k.transition_id"
            " join rows.designs as d on d.design_id = k.design_id"
            " left join rows.simulations as s on s.simulation_id = k.simulation_id"
        ),
        shapes=_shapes(
            {
                "example_id": (TEXT, "the example"),
                "variant": (INT, "number of the variant: other aliases, other goals, other order"),
                "n_tokens": (INT, "tokens of prompt and completion in the vocabulary of the small student"),
                **STEP_COLUMNS,
            }
        ),
        tables=("sft_examples", "transitions", "designs", "simulations"),
        group=("stage", "role", "policy"),
        prepare=prepare,
    )


def _testbench(selection: Selection, designs: wording.Designs) -> Source:
    tables = "from rows.transitions as t left join rows.designs as d using (design_id)"
    where, parameters = selection.where()
    unsplit = selection.where(any_split=True)

    def prepare(row: Row) -> Row:
        request, answer = wording.request(designs.text(row["design_id"]), row), wording.answer(row["testbench"])
        return row | {
            "prompt": wording.prompt(request),
            "completion": answer,
            "messages": wording.messages(request, answer),
        }

    return Source(
        kind="sft",
        title="accepted testbenches",
        about=(
            "Each row is a state in words (RTL and specification; for a repair also the testbench so far and what the"
            " simulation said of it) and the whole testbench that the rejection filter accepted there. It is for models"
            " that read RTL: the small student was trained on the compact text of the same steps, not on this."
        ),
        chosen=(f"select t.design_id {tables} where {_ACCEPTED} and {unsplit[0]}", unsplit[1]),
        picked=(
            "select t.config_hash, t.stage, t.transition_id, t.testbench_id, t.simulation_id, t.design_id, d.cluster,"
            " st.testbench_id as testbench_before, st.simulation_id as simulation_before"
            f" {tables} left join rows.states as st on st.state_id = t.state_id where {_ACCEPTED} and {where}",
            parameters,
        ),
        order=("config_hash", "stage", "transition_id"),
        sql=(
            f"select k.place, {STEP_SQL}, tb.text as testbench, earlier.text as testbench_before,"
            " seen.feedback as observation_before"
            " from picked as k join rows.transitions as t on t.transition_id = k.transition_id"
            " join rows.designs as d on d.design_id = k.design_id"
            " join rows.testbenches as tb on tb.testbench_id = k.testbench_id"
            " left join rows.simulations as s on s.simulation_id = k.simulation_id"
            " left join rows.testbenches as earlier on earlier.testbench_id = k.testbench_before"
            " left join rows.simulations as seen on seen.simulation_id = k.simulation_before"
        ),
        shapes=_shapes(STEP_COLUMNS),
        tables=("transitions", "designs", "design_files", "testbenches", "simulations", "states"),
        group=("stage", "role", "policy"),
        prepare=prepare,
        settings={"wording_version": wording.WORDING_VERSION},
    )


def _shapes(columns: Columns) -> tuple[Shape, ...]:
    texts: Columns = {"prompt": (TEXT, "what is asked"), "completion": (TEXT, "the answer to learn")}
    return (
        Shape("prompt_completion", {**texts, **columns}),
        Shape("messages", {"messages": (CONVERSATION, "the same as a conversation"), **columns}),
    )
