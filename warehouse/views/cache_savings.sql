-- What the simulation cache saved.
--
-- stage: stage number, null outside the stages
-- role: draft, repair, eval_direct, eval_agentic or calibration
-- simulations: simulations a cold cache would have run
-- from_cache: those that came from the cache
-- share_from_cache: their share
-- cpu_s_spent: CPU seconds of those that ran
-- cpu_s_saved: CPU seconds that those from the cache had taken
create view cache_savings_all as
select
  t.config_hash,
  t.stage,
  t.role,
  sum(t.logical_simulations)::bigint as simulations,
  coalesce(sum(t.logical_simulations) filter (t.cached), 0)::bigint as from_cache,
  coalesce(sum(t.logical_simulations) filter (t.cached), 0) / nullif(sum(t.logical_simulations), 0)
    as share_from_cache,
  coalesce(sum(s.cpu_s) filter (not t.cached), 0) as cpu_s_spent,
  coalesce(sum(s.cpu_s) filter (t.cached), 0) as cpu_s_saved
from rows.transitions as t
left join rows.simulations as s using (simulation_id)
group by t.config_hash, t.stage, t.role
order by config_hash, stage, role;
