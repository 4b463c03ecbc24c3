"""`llm4cov sql`, `lineage`, `trajectory`, `report` and `warehouse`: reading and keeping the warehouse."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from llm4cov_assets.commands.pipeline import LARGEST_SEED, ProfileOption, elsewhere, options, seeded
from llm4cov_assets.errors import UserError

if TYPE_CHECKING:
    from warehouse.publish import Published
    from warehouse.store import Store

JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout")]

warehouse = typer.Typer(help="Keep the warehouse: publish, rebuild, verify, compact.", no_args_is_help=True)


def mount(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command("sql")(sql)
    app.command("lineage")(lineage)
    app.command("trajectory")(trajectory)
    app.command("report")(report)
    app.add_typer(warehouse, name="warehouse")


def sql(
    query: Annotated[str | None, typer.Argument(metavar="[QUERY]", help="SQL, or a command such as .tables")] = None,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV on stdout")] = False,
    limit: Annotated[int, typer.Option(help="rows shown of a table for people; 0 for all", min=0)] = 100,
) -> None:
    """Ask the warehouse, read-only. Without QUERY a prompt; `.help` there tells the rest."""
    from llm4cov_assets.commands.prompt import Prompt

    if as_json and as_csv:
        raise UserError("--json and --csv exclude each other")
    with opened_store(asked_by_user=True) as store:
        prompt = Prompt(store, "json" if as_json else "csv" if as_csv else "table", limit)
        if query is None and sys.stdin.isatty():
            prompt.run()
        elif query is None:
            prompt.script(sys.stdin.read())
        else:
            prompt.answer(query)


def lineage(
    row: Annotated[str, typer.Argument(metavar="ID", help="id of any row, or its first six or more digits")],
    limit: Annotated[int, typer.Option(help="rows shown of one kind below one row", min=1)] = 5,
    as_json: JsonOption = False,
) -> None:
    """What a row was made from, and what was made from it. Exit code 1 when there is no such row."""
    from llm4cov_assets.commands import tree
    from warehouse.lineage import trace

    with opened_store() as store, store.connect() as connection:
        traced = trace(connection, row, limit)
        if traced is None:
            hint = "what was just written appears after `llm4cov warehouse publish`"
            print(f"llm4cov: no row has an id that begins with {row!r}; {hint}", file=sys.stderr)
            raise typer.Exit(1)
        if as_json:
            print(json.dumps(traced.as_json()))
        else:
            tree.show(traced)


def trajectory(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="id of a trajectory, a transition or an evaluation, or a design's name"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """One trajectory step by step: testbench, what was uncovered, the repair, what it gained. Without ID the most
    telling one of the evaluation; of a design likewise. Exit code 1 when there is none."""
    from llm4cov_assets.commands import show
    from llm4cov_assets.report import trajectory as trajectories

    with opened_store() as store, store.connect() as connection:
        found = trajectories.find(connection, what)
        if not found:
            why = f"for {what!r}" if what else "in the evaluation of the current configuration"
            print(f"llm4cov: no trajectory {why}: llm4cov sql 'from episodes order by telling'", file=sys.stderr)
            raise typer.Exit(1)
        if len(found) > 1:
            raise UserError(f"{what!r} may mean several trajectories ({', '.join(found)}): give more digits")
        read = trajectories.read(connection, found[0])
    if as_json:
        print(json.dumps(read.as_json()))
    else:
        show.trajectory(read)


def report(
    profile: ProfileOption = "demo",
    seed: Annotated[
        list[int] | None,
        typer.Option("--seed", min=0, max=LARGEST_SEED, help="training run to show; repeat it for more tables"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="file to write (default: reports/<profile>.html in the home)")
    ] = None,
    tables: Annotated[
        Path | None, typer.Option(help="file for the tables as Markdown, of all runs that are named")
    ] = None,
    pictures: Annotated[Path | None, typer.Option(help="folder for the pictures as SVG files, too")] = None,
) -> None:
    """Write one HTML file with the results of a profile: tables, pictures, one trajectory step by step."""
    import polars as pl

    from llm4cov_assets.report import page
    from llm4cov_assets.report.numbers import numbers
    from llm4cov_assets.report.pictures import pictures as draw
    from llm4cov_assets.report.results import results

    seeds = list(dict.fromkeys(seed or [None]))
    with opened_store() as store:
        runs = [(p, numbers(store, p.config_hash)) for p in (seeded(profile, s) for s in seeds)]
        for number, (_, found) in zip(seeds, runs, strict=True):
            if not found.board:
                which = options(profile, number) + elsewhere(store)
                raise UserError(f"nothing is evaluated yet for this profile and seed: llm4cov run {which}")
        chosen, found = runs[0]
        drawn = draw(found)
        name = profile if seeds[0] is None else f"{profile}-seed-{seeds[0]}"
        html = out or store.home / "reports" / f"{name}.html"
        if tables and tables.resolve() == html.resolve():
            raise UserError(f"--out and --tables both name {tables}: give each a file of its own")
        files = {html: page.report(store, chosen, found, drawn)}
        if tables:
            evaluations = [store.read("evaluations", config_hash=p.config_hash) for p, _ in runs]
            files[tables] = results(runs, pl.concat(evaluations))
    if pictures:
        files |= {pictures / f"{picture.name}.svg": picture.svg for picture in drawn.values()}
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}; name another place") from error
        print(path)


@warehouse.command()
def publish(as_json: JsonOption = False) -> None:
    """Bring what was written into the public file, now."""
    with opened_store() as store:
        _report(store, store.publish(force=True), as_json)


@warehouse.command()
def rebuild(as_json: JsonOption = False) -> None:
    """Make the public file anew from the parts alone."""
    with opened_store() as store:
        _report(store, store.rebuild(), as_json)


@warehouse.command()
def verify(as_json: JsonOption = False) -> None:
    """Check parts, keys, references and coverage. Exit code 1 when something is wrong."""
    with opened_store() as store:
        problems = store.verify()
    if as_json:
        print(json.dumps({"ok": not problems, "problems": [vars(p) for p in problems]}))
    else:
        for problem in problems:
            print(f"{problem.where}: {problem.what}")
        print(f"{len(problems)} problems" if problems else "everything holds")
    raise typer.Exit(1 if problems else 0)


@warehouse.command()
def compact(as_json: JsonOption = False) -> None:
    """Merge small parts, so that there are few. Rows stay as they are."""
    with opened_store() as store:
        result = store.compact()
    if as_json:
        print(json.dumps(vars(result)))
    else:
        print(f"{result.merged} parts merged into {result.made}; {result.kept} left as they were")


def _report(store: Store, published: Published, as_json: bool) -> None:
    for message in published.messages:
        print(message, file=sys.stderr)
    if as_json:
        print(json.dumps({"file": str(store.public), "changed": published.changed, "new_parts": published.new_parts}))
    elif published.changed:
        print(f"{store.public} published, {published.new_parts} new parts")
    else:
        print(f"{store.public} is up to date")


@contextmanager
def opened_store(asked_by_user: bool = False) -> Iterator[Store]:
    """The store of the home folder; errors of the warehouse and of SQL become one line and exit code 2.

    `asked_by_user`: the SQL is the user's, so a view that is not there is their error and not the published file's.
    """
    import duckdb

    from llm4cov_assets.home import home
    from warehouse.errors import WarehouseError
    from warehouse.reading import first_line
    from warehouse.store import Store

    try:
        yield Store(home())
    except WarehouseError as error:
        raise UserError(str(error)) from error
    except duckdb.Error as error:
        if isinstance(error, duckdb.CatalogException) and not asked_by_user:
            raise UserError(
                f"{Store(home()).public} was published by another version of this program ({first_line(error)}): "
                "llm4cov warehouse publish"
            ) from error
        lines = str(error).splitlines()
        hint = next((f" ({line.strip()})" for line in lines[1:] if line.startswith(("Did you", "Candidate"))), "")
        raise UserError(first_line(error) + hint) from error
