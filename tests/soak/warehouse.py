"""Four writers publish while people read, sit in a read-only prompt and write into the public file: nothing is lost.

Every transaction writes a fixed number of rows, so a count that is no multiple of it is a partial read. The prompt
that writes opens the public file read-write (as root, whom mode 0444 does not stop) and writes after a publication
replaced it, so that its log lies beside the new file.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from multiprocessing.synchronize import Event
from pathlib import Path

import duckdb
import polars as pl

from sim.identity import content_id
from warehouse.store import Provenance, Store

WRITERS = 4
ROWS = 7
"""Rows of one transaction."""

COUNT = "select count(*) as n from testbenches"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--transactions", type=int, default=60, help="transactions of all writers (default: 60)")


def run(options: argparse.Namespace) -> bool:
    each = options.transactions // WRITERS
    with tempfile.TemporaryDirectory(prefix="llm4cov-soak-") as folder:
        return _run(Path(folder), each)


def _run(home: Path, each: int) -> bool:
    store = Store(home)
    store.publish(force=True)
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    idle = context.Process(target=sit, args=(store.public, stop))
    scribbler = context.Process(target=scribble, args=(store.public, stop))
    writers = [context.Process(target=write, args=(home, n, each)) for n in range(WRITERS)]
    for process in (idle, scribbler, *writers):
        process.start()
    counts, failed = [], 0
    while any(writer.is_alive() for writer in writers):
        count = ask(home)
        failed += count is None
        counts += [count] if count is not None else []
    for writer in writers:
        writer.join()
    stop.set()
    for person in (idle, scribbler):
        person.join()
    Store(home).publish(force=True)
    with duckdb.connect(str(store.public), read_only=True) as connection:  # as people open it
        seen = connection.execute(COUNT).fetchall()[0][0]
    moved = len(list(home.glob("*.wal.foreign-*")))
    figures = {
        "transactions": WRITERS * each, "written": seen / ROWS, "writers failed": sum(w.exitcode != 0 for w in writers),
        "reads": len(counts) + failed, "failed reads": failed, "partial reads": sum(c % ROWS != 0 for c in counts),
        "reads that went back": sum(b < a for a, b in itertools.pairwise(counts)),
        "foreign logs moved aside": moved, "problems": len(store.verify()),
    }  # fmt: skip
    for name, figure in figures.items():
        print(f"{name:26} {figure:g}")
    bad = ("writers failed", "failed reads", "partial reads", "reads that went back", "problems")
    return seen == ROWS * WRITERS * each and moved > 0 and bool(counts) and not any(figures[name] for name in bad)


def write(home: Path, writer: int, transactions: int) -> None:
    """Write and publish, `transactions` times."""
    store = Store(home)
    for number in range(transactions):
        ids = [content_id("soak", writer, number, row) for row in range(ROWS)]
        frame = pl.DataFrame({"testbench_id": ids, "language": "cocotb", "text": ids, "n_lines": 1})
        store.write("testbenches", frame, Provenance(0, "soak", "run", "stage_0/drafts", f"batch_{writer}", "1"))
        store.publish(force=True)


def ask(home: Path) -> int | None:
    """The number of rows as `llm4cov sql` tells it; None when it fails."""
    command = [sys.executable, "-m", "llm4cov_assets.cli", "sql", "--json", COUNT]
    done = subprocess.run(command, env={**os.environ, "LLM4COV_HOME": str(home)}, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr.strip(), file=sys.stderr)
        return None
    return int(json.loads(done.stdout)[0]["n"])


def sit(public: Path, stop: Event) -> None:
    """Hold the public file open read-only, as an idle prompt does."""
    with duckdb.connect(str(public), read_only=True):
        stop.wait()


def scribble(public: Path, stop: Event) -> None:
    """Open the public file read-write, again and again, and write once another one is in its place."""
    number = 0
    while not stop.wait(0.2):
        try:
            with duckdb.connect(str(public)) as connection:
                opened = public.stat().st_ino
                while public.stat().st_ino == opened and not stop.is_set():
                    time.sleep(0.02)
                number += 1
                connection.execute(f"create table mine_{number} as select 1 as x")
                time.sleep(0.5)
        except duckdb.Error:
            continue  # what such a person does may fail; what the others do may not
