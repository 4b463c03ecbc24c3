"""`llm4cov inbox`: what lies in the inbox and how it stands; point it at designs elsewhere."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llm4cov_assets.errors import UserError

if TYPE_CHECKING:
    from llm4cov_assets.assets.watching import Line, Look
    from llm4cov_assets.ingest.pointers import Pointer

JsonOption = Annotated[bool, typer.Option("--json", help="print JSON on stdout")]
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")

group = typer.Typer(help="Look at the inbox, and point it at designs that lie elsewhere.", invoke_without_command=True)


def mount(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.add_typer(group, name="inbox")


@group.callback()
def default(context: typer.Context) -> None:
    """Look at the inbox, and point it at designs that lie elsewhere. Without a command: list."""
    if context.invoked_subcommand is None:
        list_entries(as_json=False)


@group.command("list")
def list_entries(as_json: JsonOption = False) -> None:
    """Every entry: how it stands, its version and batch, since when, and why."""
    found, daemon = _lines()
    if as_json:
        print(json.dumps([vars(line) for line in found], ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    out = Console(highlight=False)
    table = Table("entry", "status", "version", "batch", "since (UTC)", "what there is to say")
    for line in found:
        cells = (line.name, line.status, line.version, line.batch, line.since, line.detail)
        table.add_row(*(Text(cell, overflow="fold") for cell in cells))
    if found:
        out.print(table)
    counts = ", ".join(f"{n} {status}" for status, n in sorted(Counter(line.status for line in found).items()))
    out.print(counts or f"nothing in {_inbox()}", markup=False)
    if not daemon:
        out.print("Nothing looks after it now: start script/server, which imports and closes what is new.")


@group.command("status")
def status(
    name: Annotated[str, typer.Argument(metavar="NAME", help="entry, as `llm4cov inbox list` shows it")],
    as_json: JsonOption = False,
) -> None:
    """One entry: how it stands, its history, its batches, and what was not accepted. Exit code 1 when unknown."""
    from llm4cov_assets.home import home
    from llm4cov_assets.ingest.taking import taken
    from llm4cov_assets.ingest.versions import entry_key
    from warehouse.store import Store

    found, _ = _lines()
    line = next((li for li in found if li.name == name), None)
    events = Store(home()).read("design_events").sort("seen_at")
    mine = [r for r in events.iter_rows(named=True) if r["name"] == name or entry_key(r["name"]) == name]
    if line is None and not mine:
        typer.echo(f"llm4cov: no entry {name!r} in the inbox, nor was there one: llm4cov inbox list", err=True)
        raise typer.Exit(1)
    note = taken(home(), line.batch) if line and line.batch else None
    shown = ("seen_at", "what", "version", "batch", "content_hash", "source", "reason")
    data: dict[str, Any] = {
        "entry": vars(line) if line else None,
        "history": [{k: str(r[k]) if k == "seen_at" else r[k] for k in shown} for r in mine],
        "batches": note.batches if note else {},
        "rejected": [vars(r) for r in note.rejected] if note else [],
    }
    if as_json:
        print(json.dumps(data, ensure_ascii=False))
        return
    if line:
        print(f"{line.name}: {line.status}" + (f" ({line.detail})" if line.detail else ""))
        print(f"source: {line.source}" if line.source else "source: none any more")
    for row in mine:
        version = f" version {row['version']}" if row["version"] else ""
        print(f"  {str(row['seen_at'])[:19]}  {row['what']}{version}  {row['batch'] or ''}  {row['reason']}")
    for batch, n in data["batches"].items():
        print(f"  {batch}: {n} designs")
    for r in data["rejected"][:20]:
        print(f"  rejected {r['name']}: {r['reason']}: {r['detail']}")
    if len(data["rejected"]) > 20:
        print(f"  and {len(data['rejected']) - 20} more (--json has all)")


@group.command("add")
def add(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="folder, RTL file, .f, .core, archive, data set, or repository")
    ],
    git: Annotated[
        bool, typer.Option("--git", help="take what is committed there, not what lies in the folder")
    ] = False,
    name: Annotated[str | None, typer.Option(help="name of the entry (default: that of PATH)")] = None,
    branch: Annotated[str, typer.Option(help="branch of the repository (default: HEAD)")] = "",
    subfolder: Annotated[str, typer.Option(help="look only below this folder of PATH")] = "",
    designs: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="each folder that fits is an entry of its own; may be repeated"),
    ] = None,
) -> None:
    """Point the inbox at designs elsewhere: a file NAME.toml in it, which can also be written by hand."""
    from llm4cov_assets.ingest.inbox import entry_name, scan_inbox
    from llm4cov_assets.ingest.pointers import pointer

    place = path.expanduser().absolute()
    if not place.exists():
        raise UserError(f"{path}: no such file or folder")
    called = name or re.sub(r"[^A-Za-z0-9_.-]+", "-", entry_name(place.resolve().name)).strip("-.") or "designs"
    if not _NAME.fullmatch(called):
        raise UserError(f"{called!r} is no name for an entry; use letters, digits, _, - and dots, 64 at most")
    keys = {"path": str(place), "git": git, "branch": branch, "subfolder": subfolder, "designs": designs or []}
    pointed = pointer(keys, f"{called}.toml", _inbox())
    taken = [p.name for p in _inbox().iterdir() if entry_name(p.name) == called]
    if taken:
        raise UserError(f"{_inbox() / taken[0]} is called {called!r} already; choose another --name")
    if git:
        _refuse_unreadable(pointed)
    _write(_inbox() / f"{called}.toml", pointed.as_toml())
    found = scan_inbox(_inbox(), settle_s=0, only=lambda n: n == called)
    for entry in found.entries:
        print(f"{entry.name}: {entry.source}")
    for label, left in found.left_out.items():
        print(f"{label}: {'waiting' if left.waits else 'left out'}: {left.why}")
    print(f"{_inbox() / f'{called}.toml'}: looked at every few seconds while script/server runs")


@group.command("remove")
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="entry, or source file")],
    delete: Annotated[bool, typer.Option("--delete", help="also what was dropped into the inbox itself")] = False,
) -> None:
    """Take an entry out of the inbox: it becomes inactive, and its results stay.

    Of an entry that `add` made only the source file is removed, never what it points at.
    """
    from llm4cov_assets.ingest.inbox import POINTER_SUFFIX, entry_name
    from sim import files

    paths = [p for p in sorted(_inbox().iterdir()) if name in (p.name, entry_name(p.name))]
    if not paths:
        whole = next((p for p in sorted(_inbox().glob("*.toml")) if name.startswith(f"{entry_name(p.name)}.")), None)
        hint = f"it comes from {whole}: remove {entry_name(whole.name)}, or narrow its designs" if whole else (
            "llm4cov inbox list shows them")  # fmt: skip
        raise UserError(f"no entry {name!r} in {_inbox()}; {hint}")
    for path in paths:
        if path.suffix != POINTER_SUFFIX and not path.is_symlink() and not delete:
            raise UserError(f"{path} was dropped here: move it away yourself, or say --delete")
    for path in paths:
        files.remove(path)
        print(f"{path} removed; its batches and results stay")


def _lines() -> tuple[list[Line], bool]:
    """How the entries stand, with the times that the sensor noted, and whether the daemon runs."""
    from llm4cov_assets.assets.instance import terminal_instance
    from llm4cov_assets.assets.looking_after import noted_file
    from llm4cov_assets.assets.partitions import design_batches
    from llm4cov_assets.assets.watching import Noted, dated, lines, look_at_inbox
    from llm4cov_assets.home import home

    with terminal_instance(home()) as instance:
        batches = instance.get_dynamic_partitions(design_batches.name)
        look = look_at_inbox(home(), batches, instance, remember=False)
        daemon = _runs(instance)
    found = dated(lines(look), Noted.load(noted_file(home())), "")
    return [_as_it_is(line, look) for line in found], daemon


def _as_it_is(line: Line, look: Look) -> Line:
    """What the sensor will take with its next look is not taken yet."""
    if line.status != "new":
        return line
    return replace(line, detail=f"{line.detail}; not imported yet")


def _runs(instance: Any) -> bool:
    """Whether a daemon looks after the sensors now."""
    with suppress(Exception):  # no daemon ever ran
        return bool(instance.get_daemon_statuses(["SENSOR"])["SENSOR"].healthy)
    return False


def _inbox() -> Path:
    from llm4cov_assets.home import home

    return home() / "inbox"


def _refuse_unreadable(pointed: Pointer) -> None:
    from llm4cov_assets.ingest.git_source import GitError, commit_id, tree_files

    try:
        tree_files(pointed.path, commit_id(pointed.path, pointed.branch), pointed.subfolder)
    except GitError as error:
        raise UserError(str(error)) from None


def _write(path: Path, text: str) -> None:
    from sim.files import replace_file

    replace_file(path, text.encode())
    os.chmod(path, 0o644)
