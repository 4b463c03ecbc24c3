-- What does each repair round add, and how many samples still take it?
select
  policy,
  round,
  n_going,
  n_samples,
  avg_cov,
  avg_cov - lag(avg_cov) over (partition by policy order by round) as added,
  avg_line_branch,
  share_full
from rounds
where benchmark = 'all'
order by policy, round;
