-- What was each stage trained on?
select
  e.stage,
  e.role,
  count(*) as examples,
  count(distinct e.transition_id) as transitions,
  count(distinct e.design_id) as designs,
  avg(e.n_tokens) as mean_tokens,
  avg(t.gain) as mean_gain,
  avg(t.score_after) as mean_coverage
from sft_examples as e
join transitions as t using (transition_id)
group by e.stage, e.role
order by e.stage, e.role;
