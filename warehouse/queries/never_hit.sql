-- Which source lines hold points that no simulation in the warehouse ever hit?
--
-- They are candidates for unreachable: show that nothing can reach them and exclude them, or find the stimulus.
-- All simulations count, whoever wrote the testbench, in every configuration; `simulations` says how many tried. Points
-- belong to a build, so what only an earlier version of a design was asked for does not count for the present one.
-- `excluded` is the reason of the exclusion that fits all the points of the line, null where there is none.
with
  tried as (
    select
      rtl_id,
      s.build_id,
      count(*) as simulations,
      bitset_union_agg(nullif(h.hits, ''::blob)) as hits
    from simulations as s
    join coverage_hits as h using (simulation_id)
    group by rtl_id, s.build_id
  ),
  newest as (
    select
      rtl_id,
      arg_max(design_id, created_at) as design_id,
      arg_max(name, created_at) as design
    from designs
    group by rtl_id
  ),
  never_hit as (
    select
      n.design,
      t.simulations,
      p.*,
      (
        select arg_min(e.reason, e.number)
        from exclusions as e
        where
          e.design_id = n.design_id
          and e.metric in ('', p.metric)
          and (e.file = '' or p.file glob replace(e.file, '[', '[[]'))
          and (e.instance = '' or p.instance glob replace(e.instance, '[', '[[]'))
          and (e.first_line is null or p.line between e.first_line and e.last_line)
      ) as reason
    from tried as t
    join newest as n using (rtl_id)
    join coverage_points as p on p.build_id = t.build_id
    where
      t.hits is null
      or not bitset_has(t.hits, p.point)
  )
select
  design,
  file,
  line,
  list(distinct metric order by metric) as metrics,
  count(*) as points,
  max(simulations) as simulations,
  if(count(reason) = count(*), min(reason), null) as excluded,
  any_value(source) as source
from never_hit
group by build_id, design, file, line
order by excluded is not null, points desc, design, file, line;
