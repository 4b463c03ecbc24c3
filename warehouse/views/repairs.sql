-- Every repair of the stages: coverage of the state it was asked to mend, and of what it made of it.
--
-- stage: stage number
-- design: name of the design
-- policy: public name of the policy that repaired
-- transition_id: the step
-- before: coverage of the selected state, 0 when failing
-- after: coverage of the repair, 0 when failing
-- gain: after minus before
-- running: whether the repair runs
-- accepted: whether the rejection filter kept it
-- reject_reason: why not, else empty
create view repairs_all as
select
  t.config_hash,
  t.stage,
  d.name as design,
  t.policy,
  lower(hex(t.transition_id)) as transition_id,
  t.score_before as before,
  t.score_after as after,
  t.gain,
  is_running(t.status, t.score_after) as running,
  t.accepted,
  t.reject_reason
from rows.transitions as t
left join rows.designs as d using (design_id)
where
  t.stage is not null
  and t.role = 'repair'
order by config_hash, stage, design, transition_id;
