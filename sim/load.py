"""Read a design from a file or a folder."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from pyslang import ast, syntax

from sim.design import Design, DesignError, Exclusion, SourceFile
from sim.exclusions import EXCLUSIONS_FILE, fits_file, read_exclusions
from sim.slang import Elaboration, compile_files, first_problem
from sim.trial import is_suspicious, refuse_what_breaks_the_parser

SOURCE_SUFFIXES = (".v", ".sv")
HEADER_SUFFIXES = (".vh", ".svh")
SPECIFICATION_SUFFIXES = (".md", ".txt")
SETTINGS_FILE = "design.toml"

_KEYS: dict[str, type | tuple[type, ...]] = {
    "name": str, "top": str, "split": str, "sources": list, "include_dirs": list, "defines": (dict, list),
    "parameters": dict, "clock": str, "reset": str, "targets": dict, "spec": str, "exclude": list,
}  # fmt: skip


def load_design(
    path: Path,
    *,
    name: str | None = None,
    top: str | None = None,
    defines: Mapping[str, str] = {},
    include_dirs: Sequence[Path] = (),
    parameters: Mapping[str, str] = {},
    survived: bool = False,
) -> Design:
    """Read the design at `path`: an RTL file, or a folder that is searched recursively.

    In a folder every folder that holds a header is an include folder, `*.md` and `*.txt` are the specification, and
    an optional `design.toml` may give `name, top, split, sources, include_dirs, defines, parameters, clock, reset,
    targets, spec, exclude`; exclusions may also stand in `exclusions.toml` (see sim/exclusions.py). Of those beside a
    single file the ones count that may concern it. Arguments win over `design.toml`. Sources are put in compile order:
    packages before their users. The top module is the only module that nobody instantiates, else the one named like
    the file or folder.

    Files that could break the parser are read by a child process first, unless they `survived` that already.

    Raises DesignError, one line that names file, line and mend: nothing at `path`, no RTL there, RTL that does not
    parse, a module that nobody defines, no top or several, a design.toml that cannot be understood.
    """
    path = Path(path)
    if not path.exists():
        raise DesignError(f"{path}: no such file or folder; name an RTL file (*.v, *.sv) or a folder with RTL")
    found = _find(path)
    _refuse_file_names([*found.sources, *found.includes], found.root)
    if not survived and is_suspicious([*found.sources, *found.includes]):
        refuse_what_breaks_the_parser(
            path, name=name, top=top, defines=dict(defines), include_dirs=list(include_dirs),
            parameters=dict(parameters),
        )  # fmt: skip
    order = compile_order(found.sources, found.includes, found.include_dirs, {**found.defines, **defines})
    external = _external_includes(order, found, [Path(folder) for folder in include_dirs])
    includes = tuple(sorted([*found.includes, *external.files], key=lambda f: f.path))
    folders = tuple(dict.fromkeys([*found.include_dirs, *external.folders]))
    all_defines = tuple(sorted({**found.defines, **defines}.items()))
    all_parameters = tuple(sorted({**found.parameters, **parameters}.items()))
    stem = path.resolve().stem if path.is_file() else path.resolve().name
    if not (name or found.name or stem).isprintable():
        raise DesignError(f"{str(path)!r}: no name for a design; rename it, or name it in design.toml")
    elaboration = compile_files(order, includes, folders, all_defines)
    _refuse_syntax_errors(elaboration, found.root)
    chosen = top or found.top or _choose_top(elaboration, path, stem)
    elaboration = compile_files(order, includes, folders, all_defines, all_parameters, chosen)
    _refuse_missing_modules(elaboration, found.root, chosen, path)
    return Design(
        name=name or found.name or stem,
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
    )


@dataclass
class _Found:
    """What lies at the path, before anything is compiled."""

    root: Path
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


def _read(path: Path, root: Path) -> SourceFile:
    try:
        return SourceFile(path.relative_to(root).as_posix(), path.read_bytes())
    except OSError as error:
        raise DesignError(f"{path}: cannot be read ({error.strerror}); check the file and its permissions") from None


def _find(path: Path) -> _Found:
    if path.is_file():
        if path.suffix not in SOURCE_SUFFIXES:
            raise DesignError(f"{path}: not RTL; name a *.v or *.sv file, or the folder that holds the design")
        found = _Found(path.parent, [_read(path, path.parent)])
        for suffix in SPECIFICATION_SUFFIXES:
            if path.with_suffix(suffix).is_file():
                found.specification = _read(path.with_suffix(suffix), path.parent).text
                break
        waivers = _waivers(path.parent / EXCLUSIONS_FILE)
        found.exclusions = tuple(e for e in waivers if any(fits_file(e, f.path) for f in found.sources))
        return found
    files = sorted(p for p in path.rglob("*") if p.is_file() and not _hidden(p.relative_to(path)))
    found = _Found(path)
    settings_text = _text(path / SETTINGS_FILE)
    settings = _settings(path / SETTINGS_FILE, settings_text)
    headers = [p for p in files if p.suffix in HEADER_SUFFIXES]
    sources = [p for p in files if p.suffix in SOURCE_SUFFIXES]
    if "sources" in settings:
        sources = _listed(path, settings["sources"])
    if not sources:
        raise DesignError(f"{path}: no RTL found (*.v, *.sv); name the folder that holds the sources")
    found.sources = [_read(p, path) for p in sources]
    found.includes = [_read(p, path) for p in headers if p not in sources]
    found.include_dirs = sorted({p.parent.relative_to(path).as_posix() for p in headers})
    for folder in settings.get("include_dirs", ()):
        if not isinstance(folder, str) or not _is_folder(path / folder):
            raise DesignError(f"{path / SETTINGS_FILE}: include_dirs names {folder!r}, which is not a folder")
        found.include_dirs.append(PurePosixPath(folder).as_posix())
    defines = settings.get("defines", {})
    pairs = defines.items() if isinstance(defines, dict) else (str(d).partition("=")[::2] for d in defines)
    found.defines = {str(key): _value(value) for key, value in pairs}
    found.parameters = {str(key): _value(value) for key, value in settings.get("parameters", {}).items()}
    found.name, found.top = settings.get("name"), settings.get("top")
    found.clock, found.reset = settings.get("clock"), settings.get("reset")
    found.targets = tuple(sorted((str(k), float(v)) for k, v in settings.get("targets", {}).items()))
    found.exclusions = read_exclusions(settings.get("exclude", []), path / SETTINGS_FILE, settings_text)
    found.exclusions += _waivers(path / EXCLUSIONS_FILE)
    if "spec" in settings:
        spec = path / settings["spec"]
        if not _is_inside(settings["spec"]) or not spec.is_file():
            raise DesignError(f"{path / SETTINGS_FILE}: spec names {settings['spec']!r}, which is not a file in there")
        found.specification = _read(spec, path).text
    else:
        texts = [_read(p, path).text for p in files if p.suffix in SPECIFICATION_SUFFIXES]
        found.specification = "\n\n".join(text.strip() for text in texts)
    return found


def _is_inside(pattern: str) -> bool:
    """Whether a path or glob of design.toml stays below the design's folder and can be one at all."""
    named = PurePosixPath(pattern)
    return bool(named.parts) and not named.is_absolute() and ".." not in named.parts and "\0" not in pattern


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _hidden(relative: Path) -> bool:
    return any(part.startswith(".") for part in relative.parts)


def _value(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _text(path: Path) -> str:
    """The text of a settings file; empty when there is none."""
    if not path.is_file():
        return ""
    content = _read(path, path.parent).content
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DesignError(f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8") from None


def _toml(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise DesignError(f"{path}: values are nested too deeply; write them flat") from None
    except ValueError as error:  # also for integers of thousands of digits
        raise DesignError(f"{path}: not valid TOML: {error}") from None


def _waivers(path: Path) -> tuple[Exclusion, ...]:
    """The exclusions of a file of their own; none when there is no such file."""
    text = _text(path)
    tables = _toml(path, text)
    if tables.keys() - {"exclude"}:
        raise DesignError(f"{path}: unknown key {min(tables.keys() - {'exclude'})!r}; write [[exclude]] tables only")
    return read_exclusions(tables.get("exclude", []), path, text)


def _settings(path: Path, text: str) -> dict[str, Any]:
    """The checked content of design.toml."""
    settings = _toml(path, text)
    for key, value in settings.items():
        if key not in _KEYS:
            raise DesignError(f"{path}: unknown key {key!r}; known: {', '.join(_KEYS)}")
        if not isinstance(value, _KEYS[key]):
            raise DesignError(f"{path}: {key} has the wrong type ({type(value).__name__})")
    for key, value in settings.get("targets", {}).items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise DesignError(f"{path}: targets.{key} must be a number between 0 and 1")
    return settings


def _listed(path: Path, patterns: Sequence[Any]) -> list[Path]:
    listed: dict[Path, None] = {}
    for pattern in patterns:
        if not isinstance(pattern, str) or not _is_inside(pattern):
            raise DesignError(
                f"{path / SETTINGS_FILE}: sources names {pattern!r}; name files below the design's folder"
            )
        matches = sorted(p for p in path.glob(pattern) if p.is_file())
        if not matches:
            raise DesignError(f"{path / SETTINGS_FILE}: sources names {pattern!r}, but no such file is there")
        listed.update(dict.fromkeys(matches))
    return list(listed)


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


def _external_includes(sources: Sequence[SourceFile], found: _Found, folders: Sequence[Path]) -> _External:
    """Included files that are not among the found ones: beside the sources, or in the include folders given."""
    external = _External()
    for i, folder in enumerate(folders):
        if not folder.is_dir():
            raise DesignError(f"{folder}: not a folder; --include names a folder with headers")
        inside = folder.resolve().is_relative_to(found.root.resolve())
        relative = folder.resolve().relative_to(found.root.resolve()).as_posix() if inside else f"include_{i}"
        external.folders.append(relative)
    known = {f.path for f in (*sources, *found.includes)}
    places = [(found.root / d, d) for d in dict.fromkeys(PurePosixPath(s.path).parent.as_posix() for s in sources)]
    places += [(found.root / d, d) for d in found.include_dirs]
    places += list(zip(folders, external.folders, strict=True))
    while True:
        files = [*found.includes, *external.files]
        dirs = [*found.include_dirs, *external.folders]
        unit = compile_files(sources, files, dirs, found.defines.items())
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
                    external.files.append(SourceFile(path, _read(real / directive.path, real).content))
                    known.add(path)
                    new = True
                    break
        if not new:
            _refuse_foreign_includes(unit, known, found.root)
            return external


def _refuse_foreign_includes(unit: Elaboration, known: set[str], root: Path) -> None:
    """A design is its own files: what lies elsewhere on this machine is neither read nor part of its identity."""
    for directive in unit.tree.getIncludeDirectives():
        if directive.buffer and str(unit.manager.getFullPath(directive.buffer.id)) not in known:
            file, line = unit.file_line(directive.syntax.sourceRange.start)
            raise DesignError(
                f"{root / file}:{line}: {directive.path!r} lies outside the design; include it by its name alone and "
                "name its folder with --include or include_dirs in design.toml"
            )


def _refuse_file_names(sources: Sequence[SourceFile], root: Path) -> None:
    for source in sources:
        if source.path[0] in "-+@" or not source.path.isprintable() or any(c in source.path for c in '"\\'):
            raise DesignError(
                f"{str(root / source.path)!r}: the simulator cannot take this file name; rename it, without quotation "
                "marks, backslashes and control characters, and with a letter first"
            )


def _refuse_syntax_errors(elaboration: Elaboration, root: Path) -> None:
    problem = first_problem(elaboration, elaboration.compilation.getParseDiagnostics())
    if problem is None:
        return
    mend = "mend the syntax there"
    if problem.code == "CouldNotOpenIncludeFile":
        mend = "name the folder that holds it with --include or include_dirs in design.toml"
    elif problem.code == "UnknownDirective":
        mend = "define it with --define, or include the header that defines it"
    raise DesignError(f"{root / problem.file}:{problem.line}: {problem.message} in `{problem.source}`; {mend}")


def _choose_top(elaboration: Elaboration, path: Path, stem: str) -> str:
    modules = {
        d.name
        for d in elaboration.compilation.getDefinitions()
        if isinstance(d, ast.DefinitionSymbol) and d.definitionKind == ast.DefinitionKind.Module
    }
    instances = elaboration.compilation.getRoot().topInstances
    # a root without ports is a testbench: there is nothing to drive
    roots = sorted(i.name for i in instances if len(i.body.portList))
    if not modules:
        raise DesignError(f"{path}: no module found; name a file or folder that defines one")
    if len(roots) == 1:
        return roots[0]
    if instances and not roots:
        others = sorted(modules - {i.name for i in instances})
        instead = f"choose the design below it with --top: {', '.join(others)}" if others else "give the design ports"
        raise DesignError(f"{path}: {', '.join(sorted(i.name for i in instances))} has no ports to drive; {instead}")
    if stem in modules:
        return stem
    if not roots:
        raise DesignError(f"{path}: no top module, every module is instantiated; name one with --top: "
                          f"{', '.join(sorted(modules))}")  # fmt: skip
    raise DesignError(f"{path}: several modules could be the top ({', '.join(roots)}); choose one with --top NAME")


def _refuse_missing_modules(elaboration: Elaboration, root: Path, top: str, path: Path) -> None:
    if not elaboration.compilation.getRoot().topInstances:
        names = sorted(d.name for d in elaboration.compilation.getDefinitions() if isinstance(d, ast.DefinitionSymbol))
        raise DesignError(f"{path}: there is no module {top!r} to be the top; choose one of: {', '.join(names)}")
    if not len(elaboration.compilation.getRoot().topInstances[0].body.portList):
        raise DesignError(f"{path}: the top {top} has no ports to drive; choose another with --top")
    diagnostics = elaboration.compilation.getSemanticDiagnostics()
    missing = [d for d in diagnostics if "UnknownModule" in str(d.code)]
    problem = first_problem(elaboration, missing)
    if problem:
        raise DesignError(
            f"{root / problem.file}:{problem.line}: {problem.message} in `{problem.source}`; "
            "add the file that defines it, or choose another top with --top"
        )
