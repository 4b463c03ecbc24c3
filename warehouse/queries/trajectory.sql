-- How did one trajectory go, step by step: testbench, what was uncovered, what the repair gained?
-- Shown is the most telling one of the evaluation (`from episodes order by telling`); another one with
-- `llm4cov trajectory ID`, or in the DuckDB shell after `set variable trajectory_id = '…'`. The view
-- `trajectory_steps` has the points themselves.
with
  steps as materialized (
    select
      t.step,
      d.name as design,
      t.policy,
      t.status,
      t.score_before as before,
      t.score_after as after,
      t.gain,
      t.testbench_id,
      s.testbench_id as testbench_before,
      t.simulation_id,
      s.simulation_id as simulation_before
    from transitions as t
    join states as s using (state_id)
    join designs as d on d.design_id = t.design_id
    where t.trajectory_id = coalesce(
      getvariable('trajectory_id'),
      (select trajectory_id from episodes where telling = 1)
    )
  ),
  points as (
    select
      steps.step,
      p.metric,
      p.metric || ' ' || p.file || ':' || p.line as point,
      coalesce(bitset_has(nullif(earlier.hits, ''::blob), p.point), false) as was,
      coalesce(bitset_has(nullif(now.hits, ''::blob), p.point), false) as becomes
    from steps
    join simulations using (simulation_id)
    join coverage_points as p using (build_id)
    left join coverage_hits as now on now.simulation_id = steps.simulation_id
    left join coverage_hits as earlier on earlier.simulation_id = steps.simulation_before
  ),
  changes as (
    select
      step,
      count(*) filter (not was) as n_uncovered,
      count(*) filter (not was and becomes) as n_hit,
      count(*) filter (was and not becomes) as n_lost,
      list(distinct point order by point) filter (not was and becomes and metric != 'toggle') as hit
    from points
    group by step
  ),
  texts as (
    select
      steps.*,
      coalesce(string_split(now.text, chr(10)), []) as lines,
      coalesce(string_split(earlier.text, chr(10)), []) as lines_before
    from steps
    left join testbenches as now on now.testbench_id = steps.testbench_id
    left join testbenches as earlier on earlier.testbench_id = steps.testbench_before
  )
select
  step,
  design,
  policy,
  status,
  before,
  after,
  gain,
  n_uncovered,
  n_hit,
  n_lost,
  coalesce(hit, []) as hit,
  array_to_string(list_filter(lines, lambda x: not list_contains(lines_before, x)), chr(10)) as lines_added,
  array_to_string(list_filter(lines_before, lambda x: not list_contains(lines, x)), chr(10)) as lines_removed
from texts
left join changes using (step)
order by step;
