-- Paired differences of two policies in mean coverage, with bootstrap intervals over clusters.
--
-- policy_a: policy
-- policy_b: the policy it is compared with
-- benchmark: all, or the kind of design
-- mode: direct or agentic
-- n_clusters: clusters of the bootstrap
-- diff: mean coverage of a minus that of b
-- diff_low: 2.5 % bootstrap quantile of diff; above 0 means that a is better
-- diff_high: 97.5 % bootstrap quantile of diff; below 0 means that b is better
create view comparisons_all as
select
  config_hash,
  policy_a,
  policy_b,
  benchmark,
  mode,
  n_clusters,
  diff,
  diff_low,
  diff_high
from rows.comparisons
order by config_hash, benchmark, mode, policy_a, policy_b;
