"""Pairs of answers to one state, the better one first, for DPO and its kin."""

from __future__ import annotations

from llm4cov_assets.export import wording
from llm4cov_assets.export.datasets import CONVERSATION, FLOAT, INT, TEXT, Columns, Row, Shape, Source, Text
from llm4cov_assets.export.selection import Selection
from llm4cov_assets.policy import tokens

_NO_FAULT_OF_THE_ANSWER = "('tool_error', 'design_error', 'unsupported', 'resource_limit')"
"""Statuses that say little about the testbench: it would have to be run again to know."""

_ANSWERS = """
  select
    t.transition_id, t.state_id, t.generation_id, t.testbench_id, t.simulation_id, t.design_id, d.cluster,
    t.config_hash, t.stage, t.status, t.score_after, g.prompt_id, is_running(t.status, t.score_after) as running
  from rows.transitions as t
  left join rows.designs as d using (design_id)
  join rows.simulations as s on s.simulation_id = t.simulation_id
  join rows.generations as g on g.generation_id = t.generation_id
  join rows.policies as p on p.policy_id = t.policy_id
  where t.stage is not null and t.role in ('draft', 'repair') and s.language = 'cocotb'
    and t.status not in {no_fault} and {compact} and {where}
"""

_PAIRS = """
with
  answers as ({answers}),
  best as (
    select * from answers where status = 'passed'
    qualify row_number() over (partition by {same} order by score_after desc, transition_id) = 1
  ),
  worst as (
    select * from answers
    qualify row_number() over (partition by {same} order by score_after, running, transition_id) = 1
  ),
  counted as (select {same}, count(*) as n_answers from answers group by all)
select
  t.config_hash, t.stage, t.state_id, t.transition_id, t.generation_id, t.testbench_id, t.simulation_id, t.design_id,
  t.cluster, t.prompt_id, w.transition_id as other_transition, w.generation_id as other_generation,
  w.testbench_id as other_testbench, w.simulation_id as other_simulation, c.n_answers
from best as t
join worst as w using ({same})
join counted as c using ({same})
where t.testbench_id != w.testbench_id
  and (t.score_after - w.score_after >= $margin - 1e-9 or (t.running and not w.running))
"""

_ROWS = """
select
  k.place, lower(hex(t.state_id)) as state_id, t.config_hash, t.stage, t.role, lower(hex(t.design_id)) as design_id,
  d.name as design, d.cluster, d.kind, t.score_before as coverage_before, k.n_answers,
  t.score_after - w.score_after as margin,
  lower(hex(t.transition_id)) as chosen_transition_id, lower(hex(t.testbench_id)) as chosen_testbench_id,
  lower(hex(t.simulation_id)) as chosen_simulation_id, t.policy as chosen_policy, t.status as chosen_status,
  t.score_after as chosen_coverage,
  lower(hex(w.transition_id)) as rejected_transition_id, lower(hex(w.testbench_id)) as rejected_testbench_id,
  lower(hex(w.simulation_id)) as rejected_simulation_id, w.policy as rejected_policy, w.status as rejected_status,
  w.score_after as rejected_coverage,
  pr.text as prompt_text, g.text as answer, other_g.text as other_answer, tb.text as testbench,
  other_tb.text as other_testbench, earlier.text as testbench_before, seen.feedback as observation_before
from picked as k
join rows.transitions as t on t.transition_id = k.transition_id
join rows.transitions as w on w.transition_id = k.other_transition
join rows.designs as d on d.design_id = k.design_id
join rows.generations as g on g.generation_id = k.generation_id
join rows.generations as other_g on other_g.generation_id = k.other_generation
left join rows.prompts as pr on pr.prompt_id = k.prompt_id
left join rows.testbenches as tb on tb.testbench_id = k.testbench_id
left join rows.testbenches as other_tb on other_tb.testbench_id = k.other_testbench
left join rows.testbenches as earlier on earlier.testbench_id = k.testbench_before
left join rows.simulations as seen on seen.simulation_id = k.simulation_before
"""

_COLUMNS: Columns = {
    "state_id": (TEXT, "the state that both answer"),
    "config_hash": (TEXT, "configuration (profile) of the chosen step"),
    "stage": (INT, "stage of the chosen step"),
    "role": (TEXT, "draft or repair"),
    "design_id": (TEXT, "design"),
    "design": (TEXT, "its name"),
    "cluster": (TEXT, "unit of the bootstrap: the design itself, or its generator family"),
    "kind": (TEXT, "hand_written, generated or imported"),
    "coverage_before": (FLOAT, "coverage of the state, 0 when failing or without testbench"),
    "n_answers": (INT, "simulated answers to this state among the selected ones"),
    "margin": (FLOAT, "chosen_coverage minus rejected_coverage"),
    **{
        f"{which}_{name}": (kind, f"{comment} ({which})")
        for which in ("chosen", "rejected")
        for name, kind, comment in (
            ("transition_id", TEXT, "step, for `llm4cov lineage`"),
            ("testbench_id", TEXT, "testbench"),
            ("simulation_id", TEXT, "its simulation"),
            ("policy", TEXT, "policy that answered"),
            ("status", TEXT, "how the simulation ended"),
            ("coverage", FLOAT, "coverage, 0 when failing"),
        )
    },
}


def source(selection: Selection, text: Text, margin: float, designs: wording.Designs) -> Source:
    """What `export preferences` reads: for each state the best `passed` answer and the worst simulated one.

    They make a pair if they differ by at least `margin` in coverage, or if only one of them runs. Compact answers must
    share their prompt, which names the goals; answers in words share the state.
    """
    compact = text == "compact"
    same = "state_id, prompt_id" if compact else "state_id"

    def pairs(any_split: bool) -> tuple[str, dict[str, object]]:
        where, parameters = selection.where(any_split=any_split)
        answers = _ANSWERS.format(
            no_fault=_NO_FAULT_OF_THE_ANSWER, where=where, compact="p.engine = 'transformers'" if compact else "true"
        )
        return _PAIRS.format(answers=answers, same=same), {**parameters, "margin": margin}

    sql, parameters = pairs(any_split=False)
    unsplit, unsplit_parameters = pairs(any_split=True)

    def prepare(row: Row) -> Row:
        if compact:
            asked = [{"role": "user", "content": row["prompt_text"]}]
            answers = (row["answer"], row["other_answer"])
            texts = (row["prompt_text"], *(f"{answer} {tokens.EOS}" for answer in answers))
        else:
            request = wording.request(designs.text(row["design_id"]), row)
            asked = wording.messages(request)
            answers = (wording.answer(row["testbench"]), wording.answer(row["other_testbench"]))
            texts = (wording.prompt(request), *answers)
        names = ("prompt", "chosen", "rejected")
        spoken = dict(zip(names, (asked, *(wording.said(a) for a in answers)), strict=True))
        return row | dict(zip(names, texts, strict=True)) | {"spoken": spoken}

    return Source(
        kind="preferences",
        title="preference pairs",
        about=(
            "Each row is a state, the best testbench that passed there (`chosen`) and the worst one that was simulated"
            " there (`rejected`). Simulation decided, not a person and not a model. Results that say little about the"
            " testbench (faults of tools, limits of the machine) are in no pair."
            + (
                " The text is the compact one of the small student; both answers had the same prompt."
                if compact
                else " The text is for models that read RTL."
            )
        ),
        chosen=(f"select design_id from ({unsplit})", unsplit_parameters),
        picked=(
            f"select x.*, st.testbench_id as testbench_before, st.simulation_id as simulation_before from ({sql}) as x"
            " left join rows.states as st on st.state_id = x.state_id",
            parameters,
        ),
        order=("config_hash", "stage", "state_id", "transition_id"),
        sql=_ROWS,
        shapes=(
            Shape("prompt_chosen_rejected", {**_texts(TEXT), **_COLUMNS}),
            Shape("messages", {**_texts(CONVERSATION), **_COLUMNS}, lambda row: row["spoken"]),
        ),
        tables=(
            "transitions", "designs", "design_files", "testbenches", "simulations", "states", "generations", "prompts",
            "policies",
        ),
        group=("stage", "role", "chosen_policy", "rejected_policy"),
        prepare=prepare,
        settings={"margin": margin, **({} if compact else {"wording_version": wording.WORDING_VERSION})},
    )  # fmt: skip


def _texts(kind: object) -> Columns:
    return {
        "prompt": (kind, "what is asked"),
        "chosen": (kind, "the better answer"),
        "rejected": (kind, "the worse answer"),
    }
