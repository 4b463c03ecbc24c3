-- What each stage asked for and what was left of it, step by step.
--
-- stage: stage number
-- designs: designs with a draft
-- drafts: drafts proposed
-- drafts_usable: drafts whose answer held a testbench
-- drafts_running: drafts with status passed, test_failed, or timeout with coverage
-- drafts_passed: drafts with status passed
-- draft_coverage: mean coverage of the drafts, 0 where failing
-- selected: states selected for repair
-- repairs: repairs proposed
-- repairs_usable: repairs whose answer held a testbench
-- repairs_running: repairs that run
-- repairs_passed: repairs with status passed
-- repairs_gaining: repairs with a gain above 0
-- repairs_accepted: repairs that the rejection filter kept
-- drafts_accepted: drafts kept as direct examples
-- examples: training examples made of them
-- pairs: answers that the examples were made of, several of each
-- designs_trained: designs among the examples
-- simulations: simulations a cold cache would have run
-- avg_cov_direct: mean coverage of the stage's policy on all evaluation designs, one draft
-- avg_cov_agentic: the same with repair rounds
create view stage_funnel_all as
with
  steps as (
    select
      config_hash,
      stage,
      count(distinct design_id) filter (role = 'draft') as designs,
      count(*) filter (role = 'draft') as drafts,
      count(testbench_id) filter (role = 'draft') as drafts_usable,
      count(*) filter (role = 'draft' and is_running(status, score_after)) as drafts_running,
      count(*) filter (role = 'draft' and status = 'passed') as drafts_passed,
      avg(score_after) filter (role = 'draft') as draft_coverage,
      count(*) filter (role = 'repair') as repairs,
      count(testbench_id) filter (role = 'repair') as repairs_usable,
      count(*) filter (role = 'repair' and is_running(status, score_after)) as repairs_running,
      count(*) filter (role = 'repair' and status = 'passed') as repairs_passed,
      count(*) filter (role = 'repair' and gain > 0) as repairs_gaining,
      count(*) filter (role = 'repair' and accepted) as repairs_accepted,
      count(*) filter (role = 'draft' and accepted) as drafts_accepted,
      sum(logical_simulations)::bigint as simulations
    from rows.transitions
    where
      stage is not null
      and role in ('draft', 'repair')
    group by config_hash, stage
  ),
  selected_states as (
    select config_hash, stage, count(*) as selected
    from rows.selections
    group by config_hash, stage
  ),
  training_rows as (
    select
      config_hash,
      stage,
      count(*) as examples,
      count(distinct transition_id) as pairs,
      count(distinct design_id) as designs_trained
    from rows.sft_examples
    group by config_hash, stage
  ),
  evaluated as (
    select
      config_hash,
      policy,
      any_value(avg_cov) filter (mode = 'direct') as avg_cov_direct,
      any_value(avg_cov) filter (mode = 'agentic') as avg_cov_agentic
    from rows.scores
    where benchmark = 'all'
    group by config_hash, policy
  )
select
  steps.config_hash,
  steps.stage,
  steps.designs,
  steps.drafts,
  steps.drafts_usable,
  steps.drafts_running,
  steps.drafts_passed,
  steps.draft_coverage,
  coalesce(selected_states.selected, 0) as selected,
  steps.repairs,
  steps.repairs_usable,
  steps.repairs_running,
  steps.repairs_passed,
  steps.repairs_gaining,
  steps.repairs_accepted,
  steps.drafts_accepted,
  coalesce(training_rows.examples, 0) as examples,
  coalesce(training_rows.pairs, 0) as pairs,
  coalesce(training_rows.designs_trained, 0) as designs_trained,
  steps.simulations,
  evaluated.avg_cov_direct,
  evaluated.avg_cov_agentic
from steps
left join selected_states using (config_hash, stage)
left join training_rows using (config_hash, stage)
left join evaluated
  on evaluated.config_hash = steps.config_hash
  and evaluated.policy = 'stage_' || steps.stage
order by config_hash, stage;
