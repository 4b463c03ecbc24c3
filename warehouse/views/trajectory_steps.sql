-- Every step of every trajectory with the points it started from, those it hit and those it lost.
-- Ask for one trajectory at a time: the lists are long.
--
-- trajectory_id: the draft and the repairs that follow it
-- step: 0 for the draft
-- design: name of the design
-- role: draft, repair, eval_direct or eval_agentic
-- policy: public name of the policy that answered
-- status: status after the step; unparsable when the answer held no testbench
-- before: coverage of the state it started from, 0 when failing
-- after: coverage after the step, 0 when failing
-- gain: after minus before
-- accepted: whether the rejection filter kept it; null where no filter applies
-- testbench_before: testbench it started from, null for a draft
-- testbench_id: testbench after the step, null when the answer was unusable
-- simulation_before: observation it started from, null for a draft
-- simulation_id: observation after the step
-- uncovered: points that were uncovered before
-- hit: those of them that it hit
-- lost: points that were covered before and are not after
create view trajectory_steps_all as
with
  builds as (
    select
      build_id,
      list({
        'point': point,
        'item': {'metric': metric, 'file': file, 'line': line, 'instance': instance, 'what': what, 'source': source}
      } order by point) as points
    from rows.coverage_points
    group by build_id
  ),
  steps as (
    select
      t.*,
      s.testbench_id as testbench_before,
      s.simulation_id as simulation_before,
      coalesce(now.build_id, earlier.build_id) as build_id,
      nullif(earlier_hits.hits, ''::blob) as was,
      nullif(now_hits.hits, ''::blob) as becomes
    from rows.transitions as t
    join rows.states as s using (state_id)
    left join rows.simulations as now on now.simulation_id = t.simulation_id
    left join rows.simulations as earlier on earlier.simulation_id = s.simulation_id
    left join rows.coverage_hits as now_hits on now_hits.simulation_id = t.simulation_id
    left join rows.coverage_hits as earlier_hits on earlier_hits.simulation_id = s.simulation_id
  )
select
  t.config_hash,
  lower(hex(t.trajectory_id)) as trajectory_id,
  t.step,
  d.name as design,
  t.role,
  t.policy,
  t.status,
  t.score_before as before,
  t.score_after as after,
  t.gain,
  t.accepted,
  lower(hex(t.testbench_before)) as testbench_before,
  lower(hex(t.testbench_id)) as testbench_id,
  lower(hex(t.simulation_before)) as simulation_before,
  lower(hex(t.simulation_id)) as simulation_id,
  coalesce(
    list_transform(
      list_filter(
        builds.points,
        lambda p: not coalesce(bitset_has(t.was, p.point), false)
      ),
      lambda p: p.item
    ),
    []
  ) as uncovered,
  coalesce(
    list_transform(
      list_filter(
        builds.points,
        lambda p: not coalesce(bitset_has(t.was, p.point), false)
          and coalesce(bitset_has(t.becomes, p.point), false)
      ),
      lambda p: p.item
    ),
    []
  ) as hit,
  coalesce(
    list_transform(
      list_filter(
        builds.points,
        lambda p: coalesce(bitset_has(t.was, p.point), false)
          and not coalesce(bitset_has(t.becomes, p.point), false)
      ),
      lambda p: p.item
    ),
    []
  ) as lost
from steps as t
left join rows.designs as d on d.design_id = t.design_id
left join builds on builds.build_id = t.build_id;
