-- What is left of the drafts and repairs of each stage, from the question to the training example?
select
  stage,
  drafts,
  drafts_running,
  selected,
  repairs,
  repairs_running,
  repairs_gaining,
  repairs_accepted,
  drafts_accepted,
  pairs,
  examples,
  simulations,
  avg_cov_direct,
  avg_cov_agentic
from stage_funnel
order by stage;
