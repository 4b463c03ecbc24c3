-- Every sample of agentic evaluation: what its draft reached, what the repairs added, and what random stimulus gets.
--
-- trajectory_id: its steps, see trajectory_steps
-- policy: public name
-- design: name of the design
-- benchmark: kind of design
-- sample: 0-based number
-- draft: coverage of the draft, 0 when failing
-- best: coverage of the best state, 0 when failing
-- gain: best minus draft
-- rounds: repair rounds used
-- gaining: rounds that raised the best coverage
-- simulations: simulations a cold cache would have run
-- avg_random: mean of best over the samples of scripted/random on the design, null where it was not evaluated
-- telling: rank as an example: last stage, hand-written design, above random, two rounds or more that gain, largest gain
create view episodes_all as
with
  walked as (
    select
      t.config_hash,
      t.trajectory_id,
      max(t.score_after) filter (t.step = 0) as draft,
      count(*) filter (t.step > 0 and t.gain > 0) as gaining
    from rows.transitions as t
    where t.role = 'eval_agentic'
    group by t.config_hash, t.trajectory_id
  ),
  undirected as (
    select config_hash, design_id, avg(overall) as avg_random
    from rows.evaluations
    where
      policy = 'scripted/random'
      and mode = 'agentic'
    group by config_hash, design_id
  ),
  last_stage as (
    select config_hash, max(policy) as policy
    from rows.evaluations
    where regexp_full_match(policy, 'stage_\d')
    group by config_hash
  )
select
  e.config_hash,
  lower(hex(e.trajectory_id)) as trajectory_id,
  e.policy,
  d.name as design,
  e.benchmark,
  e.sample,
  walked.draft,
  e.overall as best,
  e.overall - walked.draft as gain,
  e.rounds,
  walked.gaining,
  e.simulations,
  undirected.avg_random,
  row_number() over (
    partition by e.config_hash
    order by
      e.policy is not distinct from last_stage.policy desc,
      e.benchmark = 'hand_written' desc,
      e.overall > coalesce(undirected.avg_random, 0) desc,
      walked.gaining >= 2 desc,
      e.overall - walked.draft desc,
      e.trajectory_id
  ) as telling
from rows.evaluations as e
join walked using (config_hash, trajectory_id)
left join undirected using (config_hash, design_id)
left join last_stage on last_stage.config_hash = e.config_hash
left join rows.designs as d using (design_id)
order by config_hash, policy, design, sample;
