"""What an export was made from: parts, configurations, designs, policies and versions."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import duckdb

from llm4cov_assets.export.datasets import Source
from llm4cov_assets.export.selection import Selection
from sim.identity import sha256
from warehouse.schema import SCHEMA_VERSION, TABLES

EXPORT_VERSION = 1
"""Version of the layout of an export: folders, columns, `export.json`."""


def describe(connection: duckdb.DuckDBPyConnection, source: Source, selection: Selection) -> dict[str, Any]:
    """Everything about the origin of the rows (those of the temporary table `picked`) that a reader may want to
    check."""
    designs = _designs(connection)
    return {
        "configurations": _configurations(connection),
        "designs": designs,
        "policies": _policies(connection, source),
        "versions": {
            "export": EXPORT_VERSION,
            "program": _version("llm4cov-assets"),
            "schema": SCHEMA_VERSION,
            "code": _codes(connection, source),
            "simulators": _simulators(connection),
            "duckdb": version("duckdb"),
            "python": platform.python_version(),
        },
        "licence": licence(designs),
        "source": _parts(connection, source, selection),
    }


def trained(connection: duckdb.DuckDBPyConnection, hashes: Mapping[tuple[str, int], str]) -> list[dict[str, Any]]:
    """For each configuration and stage the checkpoint that was trained on its own rows, and whether the exported rows
    are those, to the last character. A stage that also trained on others' rows (`replay`), and rows left out by a
    filter, are not the same."""
    found = []
    for (config_hash, stage), data_hash in sorted(hashes.items()):
        rows = connection.execute(
            "select lower(hex(checkpoint_id)), data_hash, n_examples from rows.checkpoints"
            " where config_hash = $config and stage = $stage and policy = 'stage_' || $stage order by created_at",
            {"config": config_hash, "stage": stage},
        ).fetchall()
        for checkpoint_id, trained_on, n_examples in rows[-1:]:
            found.append(
                {
                    "config_hash": config_hash,
                    "stage": stage,
                    "checkpoint_id": checkpoint_id,
                    "checkpoint_examples": n_examples,
                    "checkpoint_data_hash": trained_on,
                    "data_hash": data_hash,
                    "same": trained_on == data_hash,
                }
            )
    return found


def licence(designs: list[dict[str, Any]]) -> dict[str, Any]:
    """The licence of the rows as a data card names it, and what a reader must know."""
    imported = [d for d in designs if d["kind"] == "imported"]
    own = "The bundled and the generated designs, and testbenches for them, are under Apache-2.0."
    if not imported:
        return {"name": "apache-2.0", "note": own, "imported_designs": 0}
    return {
        "name": "other",
        "note": (
            f"{own} {len(imported)} designs were imported and carry licences of their own, which this program does not"
            " know: prompts, testbenches and file names quote them. Look at their sources (`designs` in export.json)"
            " before you pass this on."
        ),
        "imported_designs": len(imported),
    }


def _all(connection: duckdb.DuckDBPyConnection, names: Sequence[str], sql: str) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in connection.execute(sql).fetchall()]


def _configurations(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    return _all(
        connection,
        ("config_hash", "profile", "settings"),
        "select c.config_hash, r.profile, r.settings from (select distinct config_hash from picked) as c"
        " left join (from rows.runs qualify row_number() over (partition by config_hash order by started_at desc) = 1)"
        " as r using (config_hash) order by 1",
    )


def _designs(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    return _all(
        connection,
        ("design_id", "design", "rtl_id", "kind", "cluster", "split", "source", "rows"),
        "select lower(hex(c.design_id)), d.name, lower(hex(d.rtl_id)), d.kind, d.cluster, d.split, d.source, c.n"
        " from (select design_id, count(*) as n from picked group by 1) as c"
        " left join rows.designs as d using (design_id) order by d.name, 1",
    )


def _policies(connection: duckdb.DuckDBPyConnection, source: Source) -> list[dict[str, Any]]:
    other = " union select other_transition from picked" if source.kind == "preferences" else ""
    return _all(
        connection,
        ("policy", "policy_id", "engine", "settings", "checkpoint_id", "checkpoint_versions"),
        f"with steps(step) as (select transition_id from picked{other}),"
        " used as (select distinct t.policy, t.policy_id from steps"
        " join rows.transitions as t on t.transition_id = steps.step)"
        " select u.policy, lower(hex(u.policy_id)), p.engine, p.settings, lower(hex(p.checkpoint_id)), k.versions"
        " from used as u join rows.policies as p using (policy_id)"
        " left join (select distinct checkpoint_id, versions from rows.checkpoints) as k"
        " on k.checkpoint_id = p.checkpoint_id order by all",
    )


def _codes(connection: duckdb.DuckDBPyConnection, source: Source) -> list[dict[str, Any]]:
    table = "sft_examples" if source.tables[0] == "sft_examples" else "transitions"
    return _all(
        connection,
        ("asset", "code_version"),
        f"select distinct asset_key, code_version from rows.{table}"
        " where config_hash in (select config_hash from picked) and asset_key is not null order by all",
    )


def _simulators(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = connection.execute(
        "select distinct simulator from rows.simulations"
        " where simulation_id in (select simulation_id from picked) order by 1"
    ).fetchall()
    return [row[0] for row in rows]


def _parts(connection: duckdb.DuckDBPyConnection, source: Source, selection: Selection) -> dict[str, Any]:
    """The Parquet parts of the tables that were read; of result tables those of the chosen configurations. The name of
    a part ends with the hash of its content."""
    rows = connection.execute(
        "select name, table_name, n_rows from parts where table_name in (select unnest($tables)) order by name",
        {"tables": list(source.tables)},
    ).fetchall()
    kept = [
        {"name": name, "rows": n_rows}
        for name, table, n_rows in rows
        if not selection.configs
        or TABLES[table].scope == "keyed"
        or name.rpartition("/")[2].rpartition("-")[0] in selection.configs
    ]
    return {"parts": kept, "sha256": sha256([part["name"] for part in kept])}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # run from a folder that was not installed
        return "unknown"
