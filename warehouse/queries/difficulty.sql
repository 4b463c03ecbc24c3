-- Which designs are hard, and what do they compare their signals with?
--
-- Difficulty is the share of branches that random stimulus is unlikely to reach. Beside it stand the constants that
-- somebody has to know to get there, widest first, and what the designs were scored, where they were evaluated.
with
  constants as (
    select
      design_id,
      count(*) as constants,
      list(module || ': ' || subject || ' ' || operator || ' ' || literal order by width desc, number)[:5] as examples
    from design_constants
    group by design_id
  ),
  best as (
    select
      design_id,
      max(overall) as best_overall
    from evaluations
    group by design_id
  )
select
  name as design,
  split,
  difficulty_label,
  difficulty,
  declared_difficulty,
  n_branches,
  n_conditions_known,
  n_tokens,
  coalesce(constants, 0) as constants,
  examples,
  best_overall
from designs
left join constants using (design_id)
left join best using (design_id)
where difficulty is not null
order by difficulty desc, n_branches desc, design;
