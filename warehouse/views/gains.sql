-- What the answers of each policy gained, and what a simulation and a CPU second brought.
--
-- stage: stage number, null outside the stages
-- role: draft, repair, eval_direct, eval_agentic or calibration
-- policy: public name
-- n: answers
-- gaining: answers with a gain above 0
-- losing: answers with a gain below 0
-- mean_gain: mean gain of all answers
-- median_gain: median gain of all answers
-- best_gain: largest gain
-- accepted: answers that the rejection filter kept
-- simulations: simulations a cold cache would have run
-- cpu_s: CPU seconds that these simulations take with a cold cache
-- gain_per_simulation: gain of the gaining answers over all simulations
-- gain_per_cpu_s: gain of the gaining answers over all CPU seconds of simulation
create view gains_all as
select
  t.config_hash,
  t.stage,
  t.role,
  t.policy,
  count(*) as n,
  count(*) filter (t.gain > 0) as gaining,
  count(*) filter (t.gain < 0) as losing,
  avg(t.gain) as mean_gain,
  median(t.gain) as median_gain,
  max(t.gain) as best_gain,
  count(*) filter (t.accepted) as accepted,
  sum(t.logical_simulations)::bigint as simulations,
  coalesce(sum(s.cpu_s), 0) as cpu_s,
  sum(greatest(t.gain, 0)) / nullif(sum(t.logical_simulations), 0) as gain_per_simulation,
  sum(greatest(t.gain, 0)) / nullif(sum(s.cpu_s), 0) as gain_per_cpu_s
from rows.transitions as t
left join rows.simulations as s using (simulation_id)
group by t.config_hash, t.stage, t.role, t.policy
order by config_hash, stage, role, policy;
