-- How much coverage does a simulation, and a CPU second of simulation, bring in each stage?
select
  stage,
  role,
  policy,
  n,
  gaining / n as share_gaining,
  mean_gain,
  gain_per_simulation,
  gain_per_cpu_s
from gains
where stage is not null
order by stage, role, policy;
