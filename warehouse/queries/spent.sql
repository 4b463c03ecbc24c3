-- What was spent so far?
select
  work,
  sum(n)::bigint as n,
  sum(from_cache)::bigint as from_cache,
  sum(cpu_s) as cpu_s,
  sum(wall_s) as wall_s,
  sum(tokens)::bigint as tokens,
  sum(cost_usd) as cost_usd
from budget
group by work
order by work;
