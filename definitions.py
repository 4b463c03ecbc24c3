"""Dagster entry point."""

import dagster as dg

from llm4cov_assets.assets.checks import every_design_is_accepted, stage_checks
from llm4cov_assets.assets.closure import closure
from llm4cov_assets.assets.comparison import (
    baselines_evaluation,
    control_checkpoint,
    control_evaluation,
    stage_comparison,
)
from llm4cov_assets.assets.inbox import (
    due_closures,
    inbox,
    inbox_entries,
    publish_after_failure,
    publish_after_success,
)
from llm4cov_assets.assets.jobs import JOBS
from llm4cov_assets.assets.preparation import base_student, designs, eval_designs
from llm4cov_assets.assets.resources import (
    PoliciesResource,
    ProfileResource,
    SimulatorResource,
    TrainerResource,
    WarehouseResource,
)
from llm4cov_assets.assets.stage import STAGES, stage_assets

defs = dg.Definitions(
    assets=[
        designs,
        eval_designs,
        base_student,
        baselines_evaluation,
        *(asset for k in STAGES for asset in stage_assets(k)),
        control_checkpoint,
        control_evaluation,
        stage_comparison,
        closure,
        inbox_entries,
    ],
    asset_checks=[every_design_is_accepted, *(check for k in STAGES for check in stage_checks(k))],
    jobs=JOBS,
    sensors=[inbox, publish_after_success, publish_after_failure],
    schedules=[due_closures],
    resources={
        "profile": ProfileResource(),
        "warehouse": WarehouseResource(),
        "simulator": SimulatorResource(),
        "policies": PoliciesResource(),
        "trainer": TrainerResource(),
    },
    executor=dg.in_process_executor,
)
