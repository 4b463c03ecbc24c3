-- What happened to the entries of the inbox, and what came of each version?
select
  h.name,
  h.seen_at,
  h.what,
  h.version,
  h.batch,
  h.active,
  count(distinct t.design_id) as designs_closed,
  max(t.score_after) as best_testbench,
  h.reason
from design_history as h
left join transitions as t on t.partition_key = h.batch and t.asset_key = 'closure'
group by all
order by h.name, h.seen_at;
