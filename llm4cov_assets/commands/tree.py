"""The lineage of a row as a tree in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from warehouse.lineage import Lineage, Node


def show(lineage: Lineage) -> None:
    """Print both directions, with the number of rows of each kind."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=1 << 20)
    root = lineage.made_from
    console.print(_label(root))
    for name in ("asset_key", "partition_key", "code_version", "dagster_run_id", "config_hash", "created_at"):
        if root.provenance[name] is not None:
            console.print(f"  [dim]{name}[/] {escape(str(root.provenance[name]))}")
    for title, node, counts in (
        ("made from", lineage.made_from, lineage.n_made_from),
        ("led to", lineage.led_to, lineage.n_led_to),
    ):
        listed = ", ".join(f"{n:,} {table}" for table, n in counts.items()) or "nothing"
        tree = Tree(f"[bold]{title}[/] {listed}")
        _grow(tree, node)
        console.print(tree)


def _grow(tree: Tree, node: Node) -> None:
    for child in node.children:
        _grow(tree.add(_label(child)), child)
    for table, n in node.hidden.items():
        tree.add(f"[dim]… {n:,} more {table}[/]")


def _label(node: Node) -> str:
    how = {"here": "", "elsewhere": " [dim](shown elsewhere)[/]", "first_only": " [dim]…[/]"}[node.shown]
    made_by = node.provenance["asset_key"]
    return (
        f"[cyan]{node.table}[/] {node.id[:12]}  {escape(node.summary)}"
        + (f"  [dim]{escape(made_by)}[/]" if made_by else "")
        + how
    )
