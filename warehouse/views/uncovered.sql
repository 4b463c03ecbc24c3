-- Coverage points that no simulation of the configuration ever hit.
--
-- design: name of the design
-- metric: line, branch, expression, toggle, fsm or functional
-- file: source file
-- line: line of the file
-- instance: hierarchical path
-- what: kind of point as the simulator names it
-- source: source line
-- simulations: simulations of the design that did not hit it
create view uncovered_all as
with
  simulated as (
    select distinct config_hash, design_id, simulation_id
    from rows.transitions
    where simulation_id is not null
  ),
  covered as (
    select
      simulated.config_hash,
      simulated.design_id,
      s.build_id,
      count(*) as simulations,
      bitset_union_agg(nullif(h.hits, ''::blob)) as hits
    from simulated
    join rows.simulations as s using (simulation_id)
    left join rows.coverage_hits as h using (simulation_id)
    group by simulated.config_hash, simulated.design_id, s.build_id
  )
select
  covered.config_hash,
  d.name as design,
  p.metric,
  p.file,
  p.line,
  p.instance,
  p.what,
  p.source,
  covered.simulations
from covered
join rows.coverage_points as p using (build_id)
left join rows.designs as d using (design_id)
where
  covered.hits is null
  or not bitset_has(covered.hits, p.point);
