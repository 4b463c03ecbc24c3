"""Design batches: the partitions of everything up to `repair_coverage`."""

from __future__ import annotations

import dagster as dg

design_batches = dg.DynamicPartitionsDefinition(name="design_batch")
"""A dropped design is its own batch; an imported or generated data set is cut into batches. Never delete one."""

backfill = dg.BackfillPolicy.multi_run(max_partitions_per_run=50)
