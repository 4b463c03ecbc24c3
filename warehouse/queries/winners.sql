-- Which policy wins on which kind of design, and by how much?
with
  averages as (
    select
      e.mode,
      if(d.kind = 'generated', d.cluster, d.kind) as designs,
      e.policy,
      avg(e.overall) as avg_cov,
      count(distinct e.design_id) as n_designs
    from evaluations as e
    join designs as d using (design_id)
    group by all
  ),
  ranked as (
    select
      *,
      row_number() over best_first as place,
      lead(policy) over best_first as runner_up,
      avg_cov - lead(avg_cov) over best_first as ahead_by
    from averages
    window best_first as (partition by mode, designs order by avg_cov desc, policy)
  )
select mode, designs, n_designs, policy as winner, avg_cov, runner_up, ahead_by
from ranked
where place = 1
order by mode, designs;
