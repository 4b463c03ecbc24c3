-- Where does each training example come from: repair, state, simulations, prompt, policy, run?
select
  e.example_id,
  e.stage,
  d.name as design,
  t.role,
  t.policy,
  p.checkpoint_id as policy_checkpoint_id,
  c.checkpoint_id as trained_checkpoint_id,
  t.score_before,
  t.score_after,
  s.simulation_id as simulation_before,
  t.simulation_id as simulation_after,
  s.testbench_id as testbench_before,
  t.testbench_id as testbench_after,
  g.prompt_id,
  t.generation_id,
  t.dagster_run_id,
  t.asset_key,
  t.code_version
from sft_examples as e
join transitions as t using (transition_id)
join states as s using (state_id)
join generations as g using (generation_id)
join policies as p on p.policy_id = t.policy_id
join designs as d on d.design_id = e.design_id
left join checkpoints as c on c.stage = e.stage
order by e.stage, d.name, e.example_id;
