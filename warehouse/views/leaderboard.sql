-- How good each policy is on the evaluation designs, with bootstrap intervals over clusters.
--
-- policy: public name
-- benchmark: all, or the kind of design
-- mode: direct (one draft) or agentic (one draft and repair rounds)
-- n_designs: evaluation designs
-- n_clusters: clusters of the bootstrap
-- sim_pass: share of samples with status passed
-- cov_pass: share running with all targets met; null without targets
-- avg_cov: mean coverage, 0 where failing
-- avg_cov_low: 2.5 % bootstrap quantile of avg_cov
-- avg_cov_high: 97.5 % bootstrap quantile of avg_cov
-- avg_line_branch: mean of line and branch coverage, 0 where failing: what random stimulus does not get for nothing
-- pass_at_1: chance that one sample meets the targets; null without targets
-- pass_at_n: chance that one of n samples does
-- best_at_n: mean over designs of the best of n samples
-- simulations: simulations a cold cache would have run
-- checkpoint_id: weights, null for scripted policies
create view leaderboard_all as
select
  config_hash,
  policy,
  benchmark,
  mode,
  n_designs,
  n_clusters,
  sim_pass,
  cov_pass,
  avg_cov,
  avg_cov_low,
  avg_cov_high,
  avg_line_branch,
  pass_at_1,
  pass_at_n,
  best_at_n,
  simulations,
  lower(hex(checkpoint_id)) as checkpoint_id
from rows.scores
order by config_hash, benchmark, mode, avg_cov desc, policy;
