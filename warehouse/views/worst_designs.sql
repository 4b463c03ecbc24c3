-- How far each design got in each stage, worst first, with what held it back.
--
-- design: name of the design
-- kind: hand_written, generated or imported
-- cluster: the design itself, or its generator family
-- stage: stage number
-- answers: drafts and repairs
-- failing: those that do not run
-- worst_draft: lowest coverage of a running draft
-- best: highest coverage of any answer
-- best_gain: largest gain of a repair
-- accepted: answers that the rejection filter kept
-- n_branches: branches found by elaboration
-- n_conditions_known: branches with a known stimulus from reset
-- why: what held it back, in words
create view worst_designs_all as
with
  answered as (
    select
      config_hash,
      design_id,
      stage,
      count(*) as answers,
      count(*) filter (not is_running(status, score_after)) as failing,
      min(score_after) filter (role = 'draft' and is_running(status, score_after)) as worst_draft,
      max(score_after) as best,
      max(gain) filter (role = 'repair') as best_gain,
      count(*) filter (role = 'repair') as repairs,
      count(*) filter (accepted) as accepted,
      mode(status) filter (not is_running(status, score_after)) as usual_failure
    from rows.transitions
    where
      stage is not null
      and role in ('draft', 'repair')
    group by config_hash, design_id, stage
  )
select
  a.config_hash,
  d.name as design,
  d.kind,
  d.cluster,
  a.stage,
  a.answers,
  a.failing,
  a.worst_draft,
  a.best,
  a.best_gain,
  a.accepted,
  d.n_branches,
  d.n_conditions_known,
  case
    when a.failing = a.answers then 'every answer fails, mostly ' || a.usual_failure
    when a.best >= 1 then 'covered'
    when a.repairs = 0 then 'nothing was repaired'
    when a.best_gain <= 0 then 'no repair gains'
    when 2 * d.n_conditions_known < d.n_branches
      then 'only ' || d.n_conditions_known || ' of ' || d.n_branches || ' branch conditions are known'
    when 2 * a.failing > a.answers then 'most answers fail, mostly ' || a.usual_failure
    else 'gains are small'
  end as why
from answered as a
left join rows.designs as d using (design_id)
order by config_hash, stage, best, design;
