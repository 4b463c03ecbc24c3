-- Which designs stay worst from stage to stage, and why?
with
  by_design as (
    select
      design,
      kind,
      min(best) as lowest_best,
      arg_max(best, stage) as best_in_last_stage,
      list(round(best, 3) order by stage) as best_by_stage,
      sum(failing)::bigint as failing,
      sum(answers)::bigint as answers,
      arg_max(why, stage) as why
    from worst_designs
    group by design, kind
  )
select design, kind, best_by_stage, failing, answers, why
from by_design
order by best_in_last_stage, lowest_best, design
limit 20;
