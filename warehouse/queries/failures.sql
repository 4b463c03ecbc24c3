-- How do the answers of each policy fail?
with
  answers as (
    select
      policy,
      role,
      status,
      count(*) as n,
      count(*) / sum(count(*)) over (partition by policy, role) as share,
      bool_and(is_running(status, score_after)) as running,
      any_value(g.error) filter (g.error != '') as an_error
    from transitions as t
    join generations as g using (generation_id)
    group by policy, role, status
  )
select policy, role, status, n, share, an_error
from answers
where not running
order by policy, role, n desc, status;
