-- What do the repairs of each stage make of the states they start from?
select
  stage,
  count(*) as repairs,
  avg(before) as avg_before,
  avg(after) as avg_after,
  median(before) as median_before,
  median(after) as median_after,
  count(*) filter (gain > 0) / count(*) as share_better,
  count(*) filter (gain < 0) / count(*) as share_worse,
  count(*) filter (not running) / count(*) as share_failing,
  avg(before) filter (accepted) as avg_before_accepted,
  avg(after) filter (accepted) as avg_after_accepted
from repairs
group by stage
order by stage;
