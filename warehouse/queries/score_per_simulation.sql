-- What coverage does each policy reach for the simulations it spends, and where does one more stop to pay?
select
  policy,
  round,
  simulations_per_sample,
  avg_cov,
  (avg_cov - lag(avg_cov) over rounds_of_policy)
  / nullif(simulations_per_sample - lag(simulations_per_sample) over rounds_of_policy, 0) as added_per_simulation
from rounds
where benchmark = 'all'
window rounds_of_policy as (partition by policy order by round)
order by policy, round;
