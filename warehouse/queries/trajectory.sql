-- How did one trajectory go, step by step, with the lines of the testbench that came and went?
-- Shown is the longest one with the largest gain of its repairs; put another `trajectory_id` into `chosen`.
with
  chosen as (
    select trajectory_id
    from trajectories
    where step > 0
    group by trajectory_id
    order by count(*) desc, sum(gain) desc, trajectory_id
    limit 1
  ),
  steps as (
    select
      t.step,
      t.design,
      t.policy,
      t.status,
      t.overall,
      t.gain,
      string_split(b.text, chr(10)) as lines,
      coalesce(lag(lines) over (order by t.step), []) as lines_before
    from trajectories as t
    join chosen using (trajectory_id)
    left join testbenches as b using (testbench_id)
  )
select
  step,
  design,
  policy,
  status,
  overall,
  gain,
  array_to_string(list_filter(lines, lambda x: not list_contains(lines_before, x)), chr(10)) as lines_added,
  array_to_string(list_filter(lines_before, lambda x: not list_contains(lines, x)), chr(10)) as lines_removed
from steps
order by step;
