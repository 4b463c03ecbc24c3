-- What was spent so far, by kind of work and stage.
--
-- work: simulation, generation or training
-- stage: stage number, null outside the stages
-- n: simulations a cold cache would have run, answers, or checkpoints
-- from_cache: those that came from the simulation cache; null for other work
-- cpu_s: CPU seconds spent; null for generation, which is measured in wall-clock time
-- wall_s: wall-clock seconds of requests; null for other work
-- tokens: tokens read and written by models
-- cost_usd: price of requests
create view budget_all as
with
  simulated as (
    select
      t.config_hash,
      'simulation' as work,
      t.stage,
      sum(t.logical_simulations)::bigint as n,
      coalesce(sum(t.logical_simulations) filter (t.cached), 0)::bigint as from_cache,
      coalesce(sum(s.cpu_s) filter (not t.cached), 0) as cpu_s
    from rows.transitions as t
    left join rows.simulations as s using (simulation_id)
    group by t.config_hash, t.stage
  ),
  generated as (
    select
      t.config_hash,
      'generation' as work,
      t.stage,
      count(*) as n,
      sum(g.latency_s) as wall_s,
      sum(g.prompt_tokens + g.completion_tokens)::bigint as tokens,
      sum(g.cost_usd) as cost_usd
    from (select distinct config_hash, stage, generation_id from rows.transitions) as t
    join rows.generations as g using (generation_id)
    group by t.config_hash, t.stage
  ),
  trained as (
    select
      config_hash,
      'training' as work,
      stage,
      count(*) as n,
      sum(cpu_s) as cpu_s,
      sum(tokens)::bigint as tokens
    from rows.checkpoints
    group by config_hash, stage
  )
select config_hash, work, stage, n, from_cache, cpu_s, wall_s, tokens, cost_usd
from (
  from simulated
  union all by name
  from generated
  union all by name
  from trained
)
order by config_hash, work, stage;
