"""Library files and folders of a file list (`-v`, `-y`): they count as far as they define what is missing otherwise."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyslang import ast, syntax

from llm4cov_assets.ingest.formats.listed import Listed, canonical, gathered, is_below, kind
from sim import reasons
from sim.assembly import Gathered, refuse_missing_rtl
from sim.design import DesignError
from sim.slang import Elaboration, compile_files
from sim.trial import is_suspicious, refuse_what_breaks_the_parser

MOST_ROUNDS = 64
"""Library modules that use library modules that use …: each level is a compilation."""

_DEFINITION = re.compile(rb"\b(?:module|macromodule|primitive|interface|package)\s+(?:(?:automatic|static)\s+)?(\w+)")
_MISSING = re.compile(r"\((?:UnknownModule|UnknownPackage|UnknownInterface)\)")


@dataclass
class Libraries:
    """What a list says of libraries. Without suffixes those of Verilog count, and files named like the module alone."""

    files: list[Path] = field(default_factory=lambda: [])
    folders: list[Path] = field(default_factory=lambda: [])
    suffixes: list[str] = field(default_factory=lambda: [])

    def __bool__(self) -> bool:
        return bool(self.files or self.folders)


def add_library_modules(
    place: str, stem: str, listed: Listed, libraries: Libraries, confined_to: Path | None = None
) -> Gathered:
    """The design that is `listed`, with the library files that it needs behind its own.

    The top is decided without them: nobody instantiates most modules of a library. Raises DesignError.
    """
    if not listed.sources:
        refuse_missing_rtl(place, [p.name for p in listed.others] or [p.name for p in libraries.files])
    finder = _Finder(libraries, confined_to)
    listed = replace(listed, sources=list(listed.sources))
    for _ in range(MOST_ROUNDS):
        found = gathered(place, stem, listed, confined_to)
        if is_suspicious([*found.sources, *found.includes], found.include_dirs, found.defines.values()):
            refuse_what_breaks_the_parser(place, found, {})
        unit = compile_files(found.sources, found.includes, found.include_dirs, found.defines.items(), (), listed.top)
        if listed.top is None:
            listed.top = _only_root(unit)
        known = set(listed.sources)
        new = [p for name in _missing(unit) if (p := finder.find(name)) and p not in known]
        if not new:
            return replace(found, top=listed.top)
        listed.sources += dict.fromkeys(new)
    raise DesignError(f"{place}: library modules use each other more than {MOST_ROUNDS} levels deep; list their files",
                      reasons.TOO_LARGE)  # fmt: skip


def _only_root(unit: Elaboration) -> str | None:
    """The module that nobody instantiates, if there is one such with ports."""
    roots = [i.name for i in unit.compilation.getRoot().topInstances if len(i.body.portList)]
    return roots[0] if len(roots) == 1 else None


def _missing(unit: Elaboration) -> Iterator[str]:
    """Names that are used and defined nowhere; those in branches of `generate` that are left out, too, as the simulator
    looks for them."""
    names = _Names(unit)
    yield from (name for name in names.used if name not in names.defined)
    for diagnostic in unit.compilation.getAllDiagnostics():
        if _MISSING.search(str(diagnostic.code)) and diagnostic.args:
            yield str(diagnostic.args[0])


class _Names:
    """Modules and packages that a compilation unit uses and defines, in the order of its text."""

    def __init__(self, unit: Elaboration) -> None:
        self.used: dict[str, None] = {}
        self.defined: set[str] = set()
        unit.tree.root.visit(self._visit)

    def _visit(self, node: Any) -> ast.VisitAction:
        if isinstance(node, syntax.ModuleDeclarationSyntax):
            self.defined.add(node.header.name.valueText)
        elif isinstance(node, syntax.UdpDeclarationSyntax):
            self.defined.add(node.name.valueText)
        elif isinstance(node, syntax.HierarchyInstantiationSyntax):
            self.used[node.type.valueText] = None
        elif isinstance(node, syntax.PackageImportItemSyntax):
            self.used[node.package.valueText] = None
        elif isinstance(node, syntax.ScopedNameSyntax) and isinstance(node.left, syntax.IdentifierNameSyntax):
            self.used[node.left.identifier.valueText] = None
        return ast.VisitAction.Advance


class _Finder:
    """Finds the file of a library that defines a name: library files in their order, then folders in theirs."""

    def __init__(self, libraries: Libraries, confined_to: Path | None) -> None:
        self._folders = libraries.folders
        self._suffixes = libraries.suffixes or [".v", ".sv", ""]
        self._confined_to = confined_to
        self._definers: dict[str, Path] = {}
        for path in reversed(libraries.files):
            self._definers.update(dict.fromkeys(_defined_in(path), path))

    def find(self, name: str) -> Path | None:
        if name in self._definers:
            return self._definers[name]
        if not name.isprintable() or os.sep in name:  # an escaped identifier
            return None
        for folder in self._folders:
            for suffix in self._suffixes:
                path = folder / f"{name}{suffix}"
                if kind(path) == "file" and is_below(path, self._confined_to):
                    return canonical(path)
        return None


def _defined_in(path: Path) -> Iterator[str]:
    """Names that a file may define; comments can add some, which costs nothing but a file too many."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DesignError(f"{path}: cannot be read ({error.strerror}); check the file and its permissions",
                          reasons.UNREADABLE) from None  # fmt: skip
    return (match[1].decode() for match in _DEFINITION.finditer(content))
