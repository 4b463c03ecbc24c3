-- How far each policy is after each round of agentic evaluation, and what it spent until then.
-- A sample that stopped early (nothing is left to cover) stays in the means of the later rounds.
--
-- policy: public name
-- benchmark: all, or the kind of design
-- round: 0 for the draft, then the repair rounds
-- n_samples: samples of all designs
-- n_going: samples that took this round
-- avg_cov: mean coverage of the best state so far, 0 where failing
-- avg_line_branch: mean of its line and branch coverage, 0 where failing
-- share_full: share of samples with coverage 1
-- simulations_per_sample: simulations so far that a cold cache would have run, per sample
create view rounds_all as
with
  steps as (
    select
      t.config_hash,
      t.trajectory_id,
      t.step,
      -- the state that the next step started from is the best one so far
      lead(t.score_before, 1, e.overall) over in_order as best,
      if(lead(t.step) over in_order is null, e.simulation_id, lead(s.simulation_id) over in_order) as simulation_id,
      sum(t.logical_simulations) over in_order as simulations
    from rows.transitions as t
    join rows.evaluations as e using (config_hash, trajectory_id)
    join rows.states as s using (state_id)
    where t.role = 'eval_agentic'
    window in_order as (partition by t.config_hash, t.trajectory_id order by t.step)
  ),
  numbers as (
    select distinct config_hash, step as round
    from steps
  ),
  samples as (
    select e.config_hash, e.policy, e.benchmark, e.trajectory_id, numbers.round
    from rows.evaluations as e
    join numbers using (config_hash)
    where e.mode = 'agentic'
  ),
  standing as (
    select
      samples.*,
      steps.step,
      steps.best,
      steps.simulations,
      coalesce(list_avg([o.line, o.branch]), if(steps.best = 0, 0, null)) as line_branch
    from samples
    asof join steps
      on samples.config_hash = steps.config_hash
      and samples.trajectory_id = steps.trajectory_id
      and samples.round >= steps.step
    left join rows.simulations as o using (simulation_id)
  )
select
  config_hash,
  policy,
  coalesce(benchmark, 'all') as benchmark,
  round,
  count(*) as n_samples,
  count(*) filter (step = round) as n_going,
  avg(best) as avg_cov,
  avg(line_branch) as avg_line_branch,
  avg((best >= 1 - 1e-9)::integer) as share_full,
  sum(simulations) / count(*) as simulations_per_sample
from standing
group by grouping sets ((config_hash, policy, round), (config_hash, policy, benchmark, round))
order by config_hash, benchmark, policy, round;
