-- How do the answers of each policy fail?
select
  policy,
  role,
  status,
  count(*) as n,
  count(*) / sum(count(*)) over (partition by policy, role) as share,
  any_value(g.error) filter (g.error != '') as an_error
from transitions as t
join generations as g using (generation_id)
group by policy, role, status
having not bool_and(is_running(status, score_after))
order by policy, role, n desc, status;
