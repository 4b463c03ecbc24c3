-- How good is each policy, overall and in line and branch coverage alone?
-- Random stimulus gets toggles and expressions for nothing; lines and branches it has to reach.
select
  policy,
  mode,
  sim_pass,
  avg_cov,
  avg_cov_low,
  avg_cov_high,
  avg_line_branch,
  best_at_n,
  simulations
from leaderboard
where benchmark = 'all'
order by mode, avg_cov desc, policy;
