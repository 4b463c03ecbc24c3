-- Every step of every trajectory of every policy.
--
-- trajectory_id: the draft and the repairs that follow it
-- design: name of the design
-- stage: stage number, null outside the stages
-- step: 0 for the draft
-- role: draft, repair, eval_direct, eval_agentic or calibration
-- policy: public name of the policy that answered
-- status: status after the step; unparsable when the answer held no testbench
-- overall: coverage after the step, 0 when failing
-- gain: coverage after minus coverage before
-- testbench_id: testbench after the step, null when the answer was unusable
-- simulation_id: its simulation
create view trajectories_all as
select
  t.config_hash,
  lower(hex(t.trajectory_id)) as trajectory_id,
  d.name as design,
  t.stage,
  t.step,
  t.role,
  t.policy,
  t.status,
  t.score_after as overall,
  t.gain,
  lower(hex(t.testbench_id)) as testbench_id,
  lower(hex(t.simulation_id)) as simulation_id
from rows.transitions as t
left join rows.designs as d using (design_id);
