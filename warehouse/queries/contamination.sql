-- Is anything duplicated, or does anything of the evaluation stand in the training data?
with
  findings as (
    select
      'training example of an evaluation design' as finding,
      d.name as which,
      count(*) as n
    from sft_examples as e
    join designs as d using (design_id)
    where d.split = 'eval'
    group by d.name
    union all
    select
      'file in a training and in an evaluation design',
      t.name || '/' || ft.path || ' = ' || e.name || '/' || fe.path,
      1
    from designs as t
    join design_files as ft using (design_id)
    join design_files as fe using (sha256)
    join designs as e on e.design_id = fe.design_id
    where
      t.split = 'train'
      and e.split = 'eval'
      and ft.role = 'source'
      and fe.role = 'source'
    union all
    select
      'the same example more than once in a stage',
      min(example_id),
      count(*)
    from sft_examples
    group by stage, prompt, completion
    having count(*) > 1
  )
select finding, which, n
from findings
order by finding, n desc, which;
