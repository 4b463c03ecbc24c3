"""`llm4cov cache`: sizes and hits, why a result was not there, and making room."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llm4cov_assets.commands.simulate import (
    DefineOption,
    DesignArgument,
    IncludeOption,
    JsonOption,
    ParamOption,
    TopOption,
    find,
    limits_of,
    read_bench,
)
from llm4cov_assets.errors import UserError

if TYPE_CHECKING:
    from llm4cov_assets.caches import Evicted
    from sim.misses import Explanation

commands = typer.Typer(help="What is cached, how often it was used, why a result was not there, and making room.")


def mount(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.add_typer(commands, name="cache")


@commands.callback(invoke_without_command=True)
def cache(context: typer.Context, as_json: JsonOption = False) -> None:
    """What is cached below LLM4COV_HOME: entries, size on disk, and how often it had what was asked for."""
    from llm4cov_assets import caches
    from llm4cov_assets.home import home

    if context.invoked_subcommand is not None:
        return
    folder = home()
    sizes = caches.sizes(folder)
    if as_json:
        print(json.dumps({"home": str(folder), **sizes}))
    else:
        _show_sizes(folder, sizes)


@commands.command()
def why(
    design: DesignArgument,
    testbench: Annotated[Path, typer.Argument(metavar="TESTBENCH", help="testbench file, as for `llm4cov sim`")],
    timeout: Annotated[float | None, typer.Option(help="wall-clock limit of the run, s")] = None,
    seed: Annotated[int, typer.Option(min=-(2**63), max=2**63 - 1, help="random seed of the simulation")] = 0,
    language: Annotated[str | None, typer.Option(help="cocotb or systemverilog; by the file's name")] = None,
    top: TopOption = None,
    define: DefineOption = None,
    include: IncludeOption = None,
    param: ParamOption = None,
    as_json: JsonOption = False,
) -> None:
    """Why `llm4cov sim` with these arguments would or would not simulate: compares with what is stored of the same
    design or testbench. Simulates nothing. Exit code 0 when the result is there, 1 when it is not."""
    from llm4cov_assets.commands.bars import progress
    from llm4cov_assets.home import home
    from sim.misses import explain
    from sim.simulator import Simulator

    bench = read_bench(testbench, language)
    subject = find(design, top, define, include, param)
    with Simulator(home(), workers=1) as simulator, progress() as tell:
        found = explain(
            simulator,
            subject,
            bench,
            limits=limits_of(timeout),
            seed=seed,
            text_of=_text_of,
            progress=lambda n: tell("looking at stored results", n, None, ""),
        )
    if as_json:
        print(json.dumps(found.as_json(), ensure_ascii=False))
    else:
        _show_explanation(found)
    raise typer.Exit(0 if found.hit else 1)


@commands.command()
def evict(
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="remove what was not used for so long: 30d, 12h, 45m")
    ] = None,
    larger_than: Annotated[
        str | None, typer.Option(metavar="SIZE", help="remove what was used longest ago until this is left: 5G, 500M")
    ] = None,
    which: Annotated[
        list[str] | None,
        typer.Option("--cache", help="simulations, generations or builds, repeatable; default: all three"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say what would go, and remove nothing")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make room: remove cached results, answers and builds that no row of the warehouse refers to.

    What was used within the last hour stays too. Removed entries are made again when they are asked for. Exit code 1
    while a run or a simulation uses the caches.
    """
    from llm4cov_assets import caches
    from llm4cov_assets.commands.bars import progress
    from llm4cov_assets.commands.show import say
    from llm4cov_assets.home import home

    if older_than is None and larger_than is None:
        raise UserError("say what may go: --older-than AGE (30d), --larger-than SIZE (5G), or both")
    for name in which or ():
        if name not in caches.NAMES:
            raise UserError(f"--cache {name}: must be one of {', '.join(caches.NAMES)}")
    seconds = None if older_than is None else _measured("--older-than", older_than, _SECONDS, "30d, 12h or 45m")
    size = None if larger_than is None else int(_measured("--larger-than", larger_than, _BYTES, "5G or 500M"))
    with _steady(), progress() as tell:
        try:
            done = caches.evict(
                home(),
                older_than_s=seconds,
                larger_than=size,
                names=which or caches.NAMES,
                dry_run=dry_run,
                progress=tell,
            )
        except caches.CachesInUse as error:
            say(f"llm4cov: {error}")
            raise typer.Exit(1) from None
    if as_json:
        print(json.dumps({"dry_run": dry_run, **done.as_json()}))
    else:
        _show_evicted(done, size, dry_run)


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BYTES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def _measured(option: str, text: str, units: Mapping[str, int], examples: str) -> float:
    """A number with a unit. UserError if it is none."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]?)[bB]?", text.strip())
    by_name = {unit.lower(): factor for unit, factor in units.items()}
    if match is None or match[2].lower() not in by_name:
        raise UserError(f"{option} {text}: write a number with a unit, such as {examples}")
    return float(match[1]) * by_name[match[2].lower()]


@contextmanager
def _steady() -> Iterator[None]:
    """Say in words which part of the warehouse cannot be read."""
    from warehouse.errors import WarehouseError

    try:
        yield
    except WarehouseError as error:
        raise UserError(f"nothing was removed, since nobody knows what rows refer to: {error}") from error


def _text_of(testbench_id: str) -> str | None:
    """The text of a testbench as the published warehouse has it."""
    import duckdb

    from llm4cov_assets.home import home
    from warehouse.errors import WarehouseError
    from warehouse.reading import open_public

    public = home() / "trajectories.duckdb"
    if not public.exists():
        return None
    try:
        with open_public(public) as connection:
            row = connection.execute("select text from testbenches where testbench_id = ?", [testbench_id]).fetchone()
    except (WarehouseError, duckdb.Error):  # an explanation does without
        return None
    return row[0] if row else None


def _show_sizes(folder: Path, sizes: Mapping[str, Mapping[str, Any]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("", "entries", "on disk", "hits", "misses", "hit rate", "since (UTC)"):
        table.add_column(column, justify="left" if column in ("", "since (UTC)") else "right")
    for name, found in sizes.items():
        counted = ("", "", "", "")
        if found["since"]:
            asked = found["hits"] + found["misses"]
            rate = f"{100 * found['hits'] / asked:.0f} %" if asked else ""
            since = found["since"][:16].replace("T", " ")
            counted = (f"{found['hits']:,}", f"{found['misses']:,}", rate, since)
        table.add_row(name, f"{found['entries']:,}", _size(found["bytes"]), *counted)
    console = Console(highlight=False)
    console.print(f"[dim]{escape(str(folder))}[/]")
    console.print(table)


def _show_explanation(found: Explanation) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{'[green]hit[/]' if found.hit else '[yellow]miss[/]'}  {found.simulation_id}")
    console.print(escape(found.reason))
    console.print(f"build {found.key['build']}: {escape(found.build)}")
    for near in found.nearest:
        console.print(f"\n{near.simulation_id}, stored {near.stored_at}, differs in")
        for difference in near.differences:
            detail = f" ({difference.detail})" if difference.detail else ""
            is_id = difference.what in ("the design", "the testbench")
            values = "" if is_id and detail else f": {difference.now} now, {difference.then} then"
            console.print(f"  {escape(difference.what + values + detail)}")


def _show_evicted(done: Evicted, size: int | None, dry_run: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    goes = "would go" if dry_run else "removed"
    for column in ("", goes, "on disk", "kept: in rows", "kept: used lately"):
        table.add_column(column, justify="right" if column else "left")
    for name, freed in done.freed.items():
        table.add_row(
            name, f"{freed.entries:,}", _size(freed.n_bytes), f"{done.referred[name]:,}", f"{done.recent[name]:,}"
        )
    console = Console(highlight=False)
    console.print(table)
    if done.needed:
        builds = "1 build stays" if done.needed == 1 else f"{done.needed} builds stay"
        console.print(f"{builds} because results that stay need it")
    console.print(f"{_size(done.n_bytes)} {'would be freed' if dry_run else 'freed'}, {_size(done.left)} left")
    if size is not None and done.left > size:
        console.print(f"that is more than {_size(size)}: what is left is referred to by rows, or was used lately")


def _size(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:,.2f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.1f} MB"
