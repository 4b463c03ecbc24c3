"""Checks: what must hold for a stage's data (blocking), recomputed from rows rather than believed, and a warning for
designs that were refused."""

import dagster as dg

from llm4cov_assets.assets.resources import ProfileResource, WarehouseResource
from llm4cov_assets.assets.work import check


@dg.asset_check(asset="designs")
def every_design_is_accepted(
    context: dg.AssetCheckExecutionContext, profile: ProfileResource, warehouse: WarehouseResource
) -> dg.AssetCheckResult:
    """Every design of the batch could be read and elaborated; the others are listed with file, line and mend."""
    from llm4cov_assets.assets.checking import refused_designs

    return check(context, profile, warehouse, refused_designs, severity=dg.AssetCheckSeverity.WARN)


def stage_checks(k: int) -> list[dg.AssetChecksDefinition]:
    """The checks of stage k."""
    group = f"stage_{k}"

    @dg.asset_check(asset=[group, "draft_coverage"], blocking=True)
    def every_draft_has_a_transition(
        context: dg.AssetCheckExecutionContext, profile: ProfileResource, warehouse: WarehouseResource
    ) -> dg.AssetCheckResult:
        """No draft is lost between proposal and coverage."""
        from llm4cov_assets.assets.checking import lost_drafts

        return check(context, profile, warehouse, lost_drafts, stage=k)

    @dg.asset_check(asset=[group, "repair_coverage"], blocking=True)
    def every_selected_state_has_its_repairs(
        context: dg.AssetCheckExecutionContext, profile: ProfileResource, warehouse: WarehouseResource
    ) -> dg.AssetCheckResult:
        """No selected state and no repair is lost between selection and coverage."""
        from llm4cov_assets.assets.checking import lost_repairs

        return check(context, profile, warehouse, lost_repairs, stage=k)

    @dg.asset_check(asset=[group, "repair_coverage"], blocking=True)
    def every_accepted_repair_has_its_gain(
        context: dg.AssetCheckExecutionContext, profile: ProfileResource, warehouse: WarehouseResource
    ) -> dg.AssetCheckResult:
        """The gain of each accepted repair, recomputed from the bitsets of both simulations, is what it claims."""
        from llm4cov_assets.assets.checking import false_gains

        return check(context, profile, warehouse, false_gains, stage=k)

    @dg.asset_check(asset=[group, "sft_dataset"], blocking=True)
    def no_evaluation_design_in_training_data(
        context: dg.AssetCheckExecutionContext, profile: ProfileResource, warehouse: WarehouseResource
    ) -> dg.AssetCheckResult:
        """No training row comes from a design, or from RTL, that is evaluated on."""
        from llm4cov_assets.assets.checking import leaked_examples

        return check(context, profile, warehouse, leaked_examples, stage=k)

    return [
        every_draft_has_a_transition,
        every_selected_state_has_its_repairs,
        every_accepted_repair_has_its_gain,
        no_evaluation_design_in_training_data,
    ]
