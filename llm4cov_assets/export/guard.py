"""The wall between evaluation and training: what is evaluated on is never exported as training data."""

from __future__ import annotations

from typing import Any

import duckdb

from llm4cov_assets.errors import UserError

_SHOWN = 5  # designs that a refusal names

EVALUATED = """
select design_id, rtl_id, 'its split is eval' as why
from rows.designs
where split = 'eval'
union all
select d.design_id, d.rtl_id, 'configuration ' || e.config_hash || ' evaluates on it'
from (select distinct design_id, config_hash from rows.evaluations) as e
join rows.designs as d using (design_id)
"""
"""Designs that any configuration evaluates on."""

_OFFENDERS = """
with
  evaluated as ({evaluated}),
  chosen as (select distinct design_id from ({chosen}))
select coalesce(d.name, lower(hex(c.design_id))) as name, max(coalesce(
  direct.why, 'has the RTL of ' || (select min(name) from rows.designs where design_id = same.design_id)
  || ': ' || same.why, 'the table designs does not know it')) as why
from chosen as c
left join rows.designs as d on d.design_id = c.design_id
left join evaluated as direct on direct.design_id = c.design_id
left join evaluated as same on same.rtl_id = d.rtl_id
where d.design_id is null or direct.design_id is not null or same.rtl_id is not null
group by all
order by name
"""


def refuse_evaluation(connection: duckdb.DuckDBPyConnection, chosen: str, parameters: dict[str, Any]) -> None:
    """Raise UserError if rows of the query `chosen` (a column `design_id`) come from a design, or from RTL, that any
    configuration evaluates on, or from a design that nobody knows."""
    found = connection.execute(_OFFENDERS.format(evaluated=EVALUATED, chosen=chosen), parameters).fetchall()
    if found:
        named = "; ".join(f"{name} ({why})" for name, why in found[:_SHOWN])
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise UserError(
            f"refused: {len(found)} of the chosen designs are evaluated on, and whoever trains on them can no longer"
            f" say what a score means: {named}{more}. Leave them out with --design or --config"
        )


def refuse_split(split: str) -> None:
    """Raise UserError for a split whose rows are never training data."""
    if split in ("eval", "all"):
        raise UserError(
            f"--split {split}: designs of the split eval are never exported as training data;"
            " name train, inbox or adhoc (`export trajectories --split eval` writes them for analysis)"
        )
