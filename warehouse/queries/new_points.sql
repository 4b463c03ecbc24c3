-- Which points did each accepted repair hit that the state before it had not?
select
  t.stage,
  d.name as design,
  t.gain,
  bitset_count(bitset_difference(after.hits, before.hits)) as n_new,
  bitset_list(bitset_difference(after.hits, before.hits)) as new_points,
  bitset_count(bitset_difference(before.hits, after.hits)) as n_lost
from transitions as t
join designs as d using (design_id)
join states as s using (state_id)
join coverage_hits as before on before.simulation_id = s.simulation_id
join coverage_hits as after on after.simulation_id = t.simulation_id
where
  t.role = 'repair'
  and t.accepted
  and octet_length(before.hits) = octet_length(after.hits)
order by t.stage, d.name, n_new desc, t.transition_id;
