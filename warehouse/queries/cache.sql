-- What did the simulation cache save?
select
  coalesce('stage ' || stage, 'outside the stages') as work,
  sum(simulations)::bigint as simulations,
  sum(from_cache)::bigint as from_cache,
  sum(from_cache) / nullif(sum(simulations), 0) as share,
  sum(cpu_s_spent) as cpu_s_spent,
  sum(cpu_s_saved) as cpu_s_saved
from cache_savings
group by stage
order by stage nulls last;
