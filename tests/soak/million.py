"""A million simulations of a thousand designs, made up: times of views and publishing, and the space that rows need."""

from __future__ import annotations

import argparse
import hashlib
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from warehouse import catalog, frames
from warehouse.schema import TABLES
from warehouse.store import Provenance, Store

A_DESIGN = 1000
"""Simulations of one design."""

A_BATCH = 10
"""Designs of one partition."""

POINTS = 200
VIEW_S, PUBLISH_S, PARTS_RATIO, DATABASE_RATIO = 0.3, 5.0, 1.2, 1.3
DEFAULTS: dict[str, Any] = {"text": "", "int": 0, "float": 0.0, "bool": False, "blob": b"", "text[]": [], "id[]": []}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--designs", type=int, default=1000, help="1,000 simulations each (default: 1000)")


def run(options: argparse.Namespace) -> bool:
    with tempfile.TemporaryDirectory(prefix="llm4cov-soak-") as folder:
        return _run(Store(Path(folder)), options.designs)


def _run(store: Store, designs: int) -> bool:
    for batch in range(designs // A_BATCH):
        write_batch(store, batch)
    print(f"publish of everything      {_timed(lambda: store.publish(force=True)):.2f} s", flush=True)
    write_batch(store, designs // A_BATCH, designs=1, simulations=100)
    publish_s = _timed(lambda: store.publish(force=True))
    print(f"publish of one more batch  {publish_s:.2f} s")
    views = _views(store)
    one_file = _one_file_a_table(store)
    parts = sum(file.stat().st_size for file in store.parts.rglob("*.parquet")) / one_file
    database = store.public.stat().st_size / one_file
    print(f"parts {parts:.2f} times, database {database:.2f} times the size of one zstd Parquet file a table")
    return (
        max(views.values()) < VIEW_S
        and publish_s < PUBLISH_S
        and parts <= PARTS_RATIO
        and database <= DATABASE_RATIO
    )  # fmt: skip


def write_batch(store: Store, batch: int, designs: int = A_BATCH, simulations: int = A_DESIGN) -> None:
    """Write the rows of one partition: designs, their points, and a draft with everything it refers to a simulation."""
    draw = random.Random(batch)
    provenance = Provenance(0, "soak", "run", "stage_0/drafts", f"batch_{batch:04}", "1")
    names = [f"d{batch:04}_{number}" for number in range(designs)]
    keys = [(name, f"{name}/{number}") for name in names for number in range(simulations)]
    of = {kind: [_id(kind, name) for name, _ in keys] for kind in ("design", "rtl", "build")}
    ids = {
        kind: [_id(kind, key) for _, key in keys]
        for kind in ("testbench", "simulation", "state", "prompt", "generation", "transition", "trajectory")
    }
    start = [_id("start", name) for name, _ in keys]
    hits = [draw.randbytes(POINTS // 8) for _ in keys]
    overall = [value.bit_count() / POINTS for value in map(int.from_bytes, hits)]
    bench = [f"async def test(dut):\n    dut.data.value = {draw.getrandbits(256)}\n" * 4 for _ in keys]
    status = draw.choices(("passed", "test_failed", "load_error"), (8, 1, 1), k=len(keys))
    own = {"design_id": [_id("design", n) for n in names], "rtl_id": [_id("rtl", n) for n in names]}
    points = [(name, point) for name in names for point in range(POINTS)]
    ran = {"testbench_id": ids["testbench"], "simulation_id": ids["simulation"]}
    policy = _id("policy", "teacher")
    tables: dict[str, dict[str, Any]] = {
        "policies": {"policy_id": [policy], "name": "teacher", "engine": "scripted"},
        "designs": {**own, "name": names, "cluster": names, "top": names, "split": "train", "kind": "generated"},
        "coverage_points": {
            "build_id": [_id("build", n) for n, _ in points], "rtl_id": [_id("rtl", n) for n, _ in points],
            "point": [p for _, p in points], "metric": "line", "line": [p for _, p in points],
            "file": [f"{n}.sv" for n, _ in points], "source": [f"x{p} <= y{p};" for _, p in points],
        },
        "testbenches": {"testbench_id": ids["testbench"], "language": "cocotb", "text": bench, "n_lines": 8},
        "simulations": {
            **ran, "design_id": of["design"], "rtl_id": of["rtl"], "build_id": of["build"], "language": "cocotb",
            "status": status, "overall": overall, "line": overall, "n_points": POINTS, "cpu_s": 0.05, "wall_s": 0.06,
            "feedback": [f"line {o:.3f}" for o in overall], "simulator": "made up",
        },
        "coverage_hits": {"simulation_id": ids["simulation"], "build_id": of["build"], "hits": hits},
        "states": {"state_id": [*ids["state"], *dict.fromkeys(start)],
                   "design_id": [*of["design"], *dict.fromkeys(of["design"])]},
        "prompts": {"prompt_id": [_id("prompt", n) for n in names], "state_id": list(dict.fromkeys(start))},
        "generations": {
            "generation_id": ids["generation"], "prompt_id": [_id("prompt", n) for n, _ in keys], "policy_id": policy,
            "state_id": start, "testbench_id": ids["testbench"], "text": bench,
        },
        "transitions": {
            **ran, "transition_id": ids["transition"], "trajectory_id": ids["trajectory"], "role": "draft",
            "design_id": of["design"], "policy_id": policy, "policy": "teacher", "state_id": start,
            "generation_id": ids["generation"], "next_state_id": ids["state"], "status": status,
            "score_after": overall, "gain": overall, "logical_simulations": 1, "accepted": True,
        },
    }  # fmt: skip
    store.write_all({name: _frame(name, columns) for name, columns in tables.items()}, provenance)


def _frame(table: str, given: dict[str, Any]) -> pl.DataFrame:
    """A frame of a table with the columns that are given, and nothing of interest in the others."""
    height = max(len(values) for values in given.values() if isinstance(values, list))
    columns = {}
    for column in TABLES[table].columns:
        value = given.get(column.name, None if column.nullable else DEFAULTS.get(column.type))
        listed = value if column.name in given and isinstance(value, list) else [value] * height
        columns[column.name] = pl.Series(listed, dtype=frames.POLARS_TYPES[column.type])
    return pl.DataFrame(columns)


def _id(*what: str) -> str:
    return hashlib.sha256("/".join(what).encode()).hexdigest()[:32]


def _views(store: Store) -> dict[str, float]:
    """Seconds for count and first 100 rows of each view, warm."""
    found = {}
    with store.connect() as connection:
        for view in catalog.load_views():

            def ask(name: str = view.name) -> None:
                connection.execute(f"select count(*) from {name}").fetchall()
                connection.execute(f"from {name} limit 100").fetchall()

            ask()
            found[view.name] = _timed(ask)
            print(f"view {view.name:22}{found[view.name]:.3f} s", flush=True)
    return found


def _one_file_a_table(store: Store) -> int:
    """Bytes of the same rows in one zstd Parquet file a table."""
    size = 0
    with duckdb.connect() as connection:
        connection.execute(f"attach '{store.public}' as made (read_only)")
        for table in TABLES:
            file = store.home / f"{table}.one.parquet"
            connection.execute(f"copy made.rows.{table} to '{file}' (format parquet, compression zstd)")
            size += file.stat().st_size
    return size


def _timed(what: Any) -> float:
    start = time.monotonic()
    what()
    return time.monotonic() - start
