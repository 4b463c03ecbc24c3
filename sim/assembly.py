"""From the files of a design to a Design: compile order, include files, top module; and why that fails."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from pyslang import ast, syntax

from sim import reasons
from sim.design import Design, DesignError, Exclusion, SourceFile, listed
from sim.inclusion import foreign
from sim.slang import Elaboration, compile_files, first_problem, included_path
from sim.trial import is_suspicious, refuse_what_breaks_the_parser

SOURCE_SUFFIXES = (".v", ".sv")
HEADER_SUFFIXES = (".vh", ".svh")

MOST_FILES = 5_000
MOST_BYTES = 64 << 20
"""Of one design. OpenTitan's largest block is a tenth of that; more is a folder with something else in it."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029]")
_NO_NUMBER = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)
_ENCRYPTED = re.compile(rb"^[ \t]*`(?:pragma[ \t]+protect|protected\b)", re.MULTILINE)


class ForeignInclude(DesignError):
    """A source includes what is no file of the design."""


@dataclass
class Gathered:
    """What a source holds of one design, before anything is compiled.

    `place` is what messages begin with: the file or folder, or the file and line of a record. Paths of files are
    relative to `folder`, which is None when they do not lie on disk. `name` may be missing; then `stem` names the
    design, and decides between several modules that could be the top.
    """

    place: str
    stem: str
    folder: Path | None = None
    sources: list[SourceFile] = field(default_factory=lambda: [])
    includes: list[SourceFile] = field(default_factory=lambda: [])
    include_dirs: list[str] = field(default_factory=lambda: [])
    defines: dict[str, str] = field(default_factory=lambda: {})
    parameters: dict[str, str] = field(default_factory=lambda: {})
    name: str | None = None
    top: str | None = None
    clock: str | None = None
    reset: str | None = None
    targets: tuple[tuple[str, float], ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    specification: str = ""
    instance: str = ""
    others: list[str] = field(default_factory=lambda: [])  # files beside them that are no Verilog, such as VHDL
    shown_folder: str = ""  # `folder` as messages name it, when that is not its path: of an unpacked archive

    def at(self, file: str) -> str:
        """A file of it as messages name it."""
        return f"{self.shown_folder or self.folder or self.place}/{file}"


def assemble(
    found: Gathered,
    *,
    name: str | None = None,
    top: str | None = None,
    defines: Mapping[str, str] = {},
    include_dirs: Sequence[Path] = (),
    parameters: Mapping[str, str] = {},
    survived: bool = False,
) -> Design:
    """The design that `found` is. Arguments win over what it says itself; `include_dirs` are folders on disk.

    Sources are put in compile order: packages before their users. The top is the only module that nobody
    instantiates, else the one called like `found.stem`. Files that could break the parser are read by a child process
    first, unless they `survived` that already.

    Raises DesignError, one line that names file, line and mend.
    """
    _refuse_amount(found)
    _refuse_what_is_no_text(found)
    _refuse_encrypted(found)
    _refuse_file_names([*found.sources, *found.includes], found)
    all_defines = tuple(sorted({**found.defines, **defines}.items()))
    all_parameters = tuple(sorted({**found.parameters, **parameters}.items()))
    _refuse_values("define", all_defines, found)
    _refuse_values("parameter", all_parameters, found)
    files = [*found.sources, *found.includes]
    outside = foreign(files, found.include_dirs)
    if outside:
        raise _outside(found, outside.file, outside.line, outside.named)
    if not survived and is_suspicious(
        files, found.include_dirs, [value for _, value in (*all_defines, *all_parameters)]
    ):
        refuse_what_breaks_the_parser(
            found.place, found,
            dict(name=name, top=top, defines=dict(defines), include_dirs=list(include_dirs),
                 parameters=dict(parameters)),
        )  # fmt: skip
    order = compile_order(found.sources, found.includes, found.include_dirs, {**found.defines, **defines})
    external = _external_includes(order, found, [Path(folder) for folder in include_dirs], {**found.defines, **defines})
    includes = tuple(sorted([*found.includes, *external.files], key=lambda f: f.path))
    folders = tuple(dict.fromkeys([*found.include_dirs, *external.folders]))
    called = name or found.name or found.stem
    if not called.isprintable() or not called:
        raise DesignError(f"{found.place!r}: no name for a design; rename it, or name it in design.toml",
                          reasons.MALFORMED)  # fmt: skip
    elaboration = compile_files(order, includes, folders, all_defines, all_parameters)
    _refuse_syntax_errors(elaboration, found)
    chosen = top or found.top or _choose_top(elaboration, found)
    elaboration = compile_files(order, includes, folders, all_defines, all_parameters, chosen)
    _refuse_missing_modules(elaboration, found, chosen)
    return Design(
        name=called,
        sources=order,
        top=chosen,
        includes=includes,
        include_dirs=folders,
        defines=all_defines,
        parameters=all_parameters,
        specification=found.specification,
        clock=found.clock,
        reset=found.reset,
        targets=found.targets,
        exclusions=found.exclusions,
        instance=found.instance,
    )


def refuse_missing_rtl(place: str, others: Sequence[str]) -> None:
    """Raise the DesignError for a source without Verilog; `others` are the files that it has instead."""
    vhdl = [f for f in others if f.lower().endswith((".vhd", ".vhdl"))]
    if vhdl:
        raise DesignError(
            f"{place}: VHDL only ({vhdl[0]}); the simulator reads Verilog and SystemVerilog: convert it, for example "
            "with ghdl --synth --out=verilog", reasons.VHDL,
        )  # fmt: skip
    raise DesignError(f"{place}: no RTL found (*.v, *.sv); name the folder that holds the sources", reasons.NO_RTL)


def _refuse_amount(found: Gathered) -> None:
    files = [*found.sources, *found.includes]
    size = sum(len(f.content) for f in files)
    if len(files) > MOST_FILES or size > MOST_BYTES:
        raise DesignError(
            f"{found.place}: {len(files):,} files, {size >> 20} MiB; a design has at most {MOST_FILES:,} files and "
            f"{MOST_BYTES >> 20} MiB: name a folder with less in it, or list the sources in design.toml",
            reasons.TOO_LARGE,
        )


def _refuse_what_is_no_text(found: Gathered) -> None:
    for file in (*found.sources, *found.includes):
        if b"\0" not in file.content:
            continue
        if file.content.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise DesignError(f"{found.at(file.path)}: UTF-16 text; save it as UTF-8", reasons.UNREADABLE)
        line = file.content.count(b"\n", 0, file.content.index(b"\0")) + 1
        raise DesignError(f"{found.at(file.path)}:{line}: a null byte, so no text or not UTF-8; save it as UTF-8, or "
                          "leave the file out", reasons.UNREADABLE)  # fmt: skip


def _refuse_encrypted(found: Gathered) -> None:
    for file in (*found.sources, *found.includes):
        match = _ENCRYPTED.search(file.content)
        if match:
            line = file.content.count(b"\n", 0, match.start()) + 1
            raise DesignError(
                f"{found.at(file.path)}:{line}: encrypted RTL, which the simulator cannot read; use the plain sources",
                reasons.ENCRYPTED,
            )


def read_file(path: Path, root: Path) -> SourceFile:
    """One file of a design whose root is `root`. Raises DesignError when it cannot be read."""
    try:
        return SourceFile(path.relative_to(root).as_posix(), path.read_bytes())
    except OSError as error:
        raise DesignError(
            f"{path}: cannot be read ({error.strerror}); check the file and its permissions", reasons.UNREADABLE
        ) from None


def compile_order(
    sources: Sequence[SourceFile], includes: list[SourceFile], include_dirs: list[str], defines: Mapping[str, str]
) -> tuple[SourceFile, ...]:
    """Packages before the files that use them, files of macros alone first, otherwise the given order.

    A source that another one includes is moved to `includes`, and its folder to `include_dirs`.
    """
    if len(sources) == 1:
        return tuple(sources)
    definers: dict[str, str] = {}
    used: dict[str, set[str]] = {}
    included: set[str] = set()
    macros_only: set[str] = set()
    for source in sources:
        unit = compile_files([source], includes, include_dirs, defines.items())
        included |= {PurePosixPath(d.path).name for d in unit.tree.getIncludeDirectives()}
        names = _Packages(unit)
        definers.update(dict.fromkeys(names.defined, source.path))
        used[source.path] = names.used
        if names.empty:
            macros_only.add(source.path)
    by_path = {source.path: source for source in sources}
    for path in [p for p in by_path if PurePosixPath(p).name in included and len(included) > 0]:
        # a source that another one includes would be compiled twice
        includes.append(by_path.pop(path))
        include_dirs.append(PurePosixPath(path).parent.as_posix())
    ordered: dict[str, SourceFile] = {}
    open_paths: set[str] = set()

    def visit(path: str) -> None:
        if path in ordered or path in open_paths or path not in by_path:
            return
        open_paths.add(path)
        for package in sorted(used[path]):
            if package in definers:
                visit(definers[package])
        ordered[path] = by_path[path]

    for path in sorted(by_path, key=lambda p: p not in macros_only):
        visit(path)
    return tuple(ordered.values())


class _Packages:
    """The packages that one file defines and uses; `empty` when it holds directives alone."""

    def __init__(self, unit: Elaboration) -> None:
        self.defined: set[str] = set()
        self.used: set[str] = set()
        self.empty = True
        unit.tree.root.visit(self._visit)

    def _visit(self, node: Any) -> ast.VisitAction:
        if isinstance(node, syntax.ModuleDeclarationSyntax):
            self.empty = False
            if node.kind == syntax.SyntaxKind.PackageDeclaration:
                self.defined.add(node.header.name.valueText)
        elif isinstance(node, syntax.PackageImportItemSyntax):
            self.used.add(node.package.valueText)
        elif isinstance(node, syntax.ScopedNameSyntax) and isinstance(node.left, syntax.IdentifierNameSyntax):
            self.used.add(node.left.identifier.valueText)
        elif isinstance(node, syntax.MemberSyntax):
            self.empty = False
        return ast.VisitAction.Advance


@dataclass
class _External:
    files: list[SourceFile] = field(default_factory=lambda: [])
    folders: list[str] = field(default_factory=lambda: [])


def _external_includes(
    sources: Sequence[SourceFile], found: Gathered, folders: Sequence[Path], defines: Mapping[str, str]
) -> _External:
    """Included files that are not among the found ones: beside the sources, or in the include folders given."""
    external = _External()
    for i, folder in enumerate(folders):
        if not folder.is_dir():
            raise DesignError(f"{folder}: not a folder; --include names a folder with headers")
        root = found.folder.resolve() if found.folder else None
        inside = root is not None and folder.resolve().is_relative_to(root)
        relative = folder.resolve().relative_to(root).as_posix() if inside and root else f"include_{i}"
        external.folders.append(relative)
    known = {f.path for f in (*sources, *found.includes)}
    inner = [*dict.fromkeys(PurePosixPath(s.path).parent.as_posix() for s in sources), *found.include_dirs]
    places = [(found.folder / d, d) for d in inner] if found.folder else []
    places += list(zip(folders, external.folders, strict=True))
    while True:
        files = [*found.includes, *external.files]
        dirs = [*found.include_dirs, *external.folders]
        unit = compile_files(sources, files, dirs, defines.items())
        new = False
        for directive in unit.tree.getIncludeDirectives():
            for real, relative in places:
                path = PurePosixPath(relative, directive.path).as_posix()
                if path in known:
                    break
                named = PurePosixPath(directive.path)
                if named.is_absolute() or ".." in named.parts:
                    continue
                if (real / directive.path).is_file():
                    external.files.append(SourceFile(path, read_file(real / directive.path, real).content))
                    known.add(path)
                    new = True
                    break
        if not new:
            _refuse_foreign_includes(unit, known, found)
            return external


def _refuse_foreign_includes(unit: Elaboration, known: set[str], found: Gathered) -> None:
    """A design is its own files: what lies elsewhere on this machine is neither read nor part of its identity."""
    for directive in unit.tree.getIncludeDirectives():
        if directive.buffer and included_path(unit.manager, directive.buffer.id, known) not in known:
            file, line = unit.file_line(directive.syntax.sourceRange.start)
            raise _outside(found, file, line, directive.path)


def _outside(found: Gathered, file: str, line: int, named: str) -> ForeignInclude:
    return ForeignInclude(
        f"{found.at(file)}:{line}: {named!r} lies outside the design; include it by its name alone "
        "and name its folder with --include or include_dirs in design.toml"
    )


def _refuse_values(kind: str, pairs: Sequence[tuple[str, str]], found: Gathered) -> None:
    """Macros and parameters become lines of Verilog: nothing but a name and a value may reach them."""
    for name, value in pairs:
        if not _IDENTIFIER.fullmatch(name):
            raise DesignError(f"{found.place}: the {kind} {name!r} has no name that Verilog can use; write letters, "
                              "digits and _, a letter first", reasons.MALFORMED)  # fmt: skip
        if _CONTROL.search(value):
            raise DesignError(f"{found.place}: the value of the {kind} {name} has a line break or control character "
                              f"({value[:40]!r}); write it on one line", reasons.MALFORMED)  # fmt: skip
        if _NO_NUMBER.fullmatch(value):
            raise DesignError(f"{found.place}: the value of the {kind} {name} is {value}, which Verilog has no number "
                              "for; give a finite one", reasons.MALFORMED)  # fmt: skip


def _refuse_file_names(sources: Sequence[SourceFile], found: Gathered) -> None:
    for source in sources:
        if source.path[0] in "-+@" or not source.path.isprintable() or any(c in source.path for c in '"\\'):
            raise DesignError(
                f"{found.at(source.path)!r}: the simulator cannot take this file name; rename it, without quotation "
                "marks, backslashes and control characters, and with a letter first",
                reasons.MALFORMED,
            )


def _refuse_syntax_errors(elaboration: Elaboration, found: Gathered) -> None:
    problem = first_problem(elaboration, elaboration.compilation.getParseDiagnostics())
    if problem is None:
        return
    mend = "mend the syntax there"
    if problem.code == "CouldNotOpenIncludeFile":
        mend = "name the folder that holds it with --include or include_dirs in design.toml"
    elif problem.code == "UnknownDirective":
        mend = "define it with --define, or include the header that defines it"
        if problem.source.startswith("`error"):
            mend = "that is the author's own check: give the order that it asks for with `sources` in design.toml"
    raise DesignError(f"{found.at(problem.file)}:{problem.line}: {problem.message} in `{problem.source}`; {mend}")


def _choose_top(elaboration: Elaboration, found: Gathered) -> str:
    path, stem = found.place, found.stem
    modules = {
        d.name
        for d in elaboration.compilation.getDefinitions()
        if isinstance(d, ast.DefinitionSymbol) and d.definitionKind == ast.DefinitionKind.Module
    }
    instances = elaboration.compilation.getRoot().topInstances
    # a root without ports is a testbench: there is nothing to drive
    roots = sorted(i.name for i in instances if len(i.body.portList))
    if not modules:
        raise DesignError(f"{path}: no module found; name a file or folder that defines one", reasons.NO_TOP)
    if len(roots) == 1:
        return roots[0]
    if instances and not roots:
        others = sorted(modules - {i.name for i in instances})
        instead = f"choose the design below it with --top: {', '.join(others)}" if others else "give the design ports"
        raise DesignError(f"{path}: {', '.join(sorted(i.name for i in instances))} has no ports to drive; {instead}",
                          reasons.NO_TOP)  # fmt: skip
    if stem in modules:
        return stem
    if not roots:
        for name in sorted(modules - _instantiated(elaboration)):
            _refuse_unusable_top(elaboration, found, name)
        raise DesignError(f"{path}: no top module, every module is instantiated; name one with --top: "
                          f"{', '.join(sorted(modules))}", reasons.NO_TOP)  # fmt: skip
    raise DesignError(f"{path}: several modules could be the top ({listed(roots)}); choose one with --top "
                      "NAME, or name it in design.toml", reasons.SEVERAL_TOPS)  # fmt: skip


def _refuse_missing_modules(elaboration: Elaboration, found: Gathered, top: str) -> None:
    path = found.place
    if not elaboration.compilation.getRoot().topInstances:
        names = sorted(d.name for d in elaboration.compilation.getDefinitions() if isinstance(d, ast.DefinitionSymbol))
        if top in names:
            _refuse_unusable_top(elaboration, found, top)
        raise DesignError(f"{path}: there is no module {top!r} to be the top; choose one of: "
                          f"{listed(names)}", reasons.NO_TOP)  # fmt: skip
    if not len(elaboration.compilation.getRoot().topInstances[0].body.portList):
        raise DesignError(f"{path}: the top {top} has no ports to drive; choose another with --top", reasons.NO_TOP)
    diagnostics = elaboration.compilation.getSemanticDiagnostics()
    missing = [d for d in diagnostics if "UnknownModule" in str(d.code)]
    problem = first_problem(elaboration, missing)
    if problem:
        vhdl = [f for f in found.others if f.lower().endswith((".vhd", ".vhdl"))]
        mend = "add the file that defines it, or choose another top with --top"
        if vhdl:
            mend = f"is it in {vhdl[0]}? VHDL is not read: convert it to Verilog"
        raise DesignError(
            f"{found.at(problem.file)}:{problem.line}: {problem.message} in `{problem.source}`; {mend}",
            reasons.BLACK_BOXES,
        )


def _refuse_unusable_top(elaboration: Elaboration, found: Gathered, top: str) -> None:
    """Say why a module that is there cannot be the top."""
    for definition in elaboration.compilation.getDefinitions():
        declared = definition.syntax
        if definition.name != top or not isinstance(declared, syntax.ModuleDeclarationSyntax):
            continue
        file, line = elaboration.file_line(definition.location)
        without = _without_default(declared)
        if without:
            raise DesignError(
                f"{found.at(file)}:{line}: the parameter {without[0]} of {top} has no value; give it one with --param "
                f"{without[0]}=VALUE or `parameters` in design.toml", reasons.NO_TOP,
            )  # fmt: skip
        if not _IDENTIFIER.fullmatch(top):
            raise DesignError(
                f"{found.at(file)}:{line}: the escaped module name {top!r} cannot be that of a top; rename the module "
                "with letters, digits and _, or choose another with --top", reasons.NO_TOP,
            )  # fmt: skip
        raise DesignError(f"{found.at(file)}:{line}: {top} cannot stand alone as the top; choose another module "
                          "with --top", reasons.NO_TOP)  # fmt: skip


def _instantiated(elaboration: Elaboration) -> set[str]:
    """Names of modules that any module instantiates, also one that cannot be elaborated."""
    names: set[str] = set()

    def visit(node: Any) -> ast.VisitAction:
        if isinstance(node, syntax.HierarchyInstantiationSyntax):
            names.add(node.type.valueText)
        return ast.VisitAction.Advance

    elaboration.tree.root.visit(visit)
    return names


def _without_default(module: syntax.ModuleDeclarationSyntax) -> list[str]:
    header: Any = module.header
    declared = header.parameters.declarations if header.parameters else []
    return [
        str(declarator.name.valueText)
        for parameter in declared
        if isinstance(parameter, syntax.ParameterDeclarationSyntax | syntax.TypeParameterDeclarationSyntax)
        for declarator in parameter.declarators
        if (isinstance(declarator, syntax.DeclaratorSyntax) and declarator.initializer is None)
        or (isinstance(declarator, syntax.TypeAssignmentSyntax) and declarator.assignment is None)
    ]
