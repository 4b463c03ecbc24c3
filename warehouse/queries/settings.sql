-- How do the configurations compare on all evaluation designs?
select
  config_hash,
  any_value(r.profile) as profile,
  l.policy,
  l.mode,
  any_value(l.avg_cov) as avg_cov,
  any_value(l.simulations) as simulations
from leaderboard_all as l
left join runs_all as r using (config_hash)
where l.benchmark = 'all'
group by config_hash, l.policy, l.mode
order by l.mode, avg_cov desc, l.policy, config_hash;
