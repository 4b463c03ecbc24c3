"""Elaboration with pyslang: from file contents to a compilation, and its diagnostics as one-line messages."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyslang
from pyslang import ast, parsing, syntax

from sim.design import Design, SourceFile, macro_texts

_PREDEFINED = (("VERILATOR", "1"), ("verilator", "1"), ("verilator3", "1"))  # by the simulator: what it sees, counts
_SOURCE_CHARACTERS = 160  # of a line that a message quotes: generated and binary files have endless ones


@dataclass(frozen=True)
class Elaboration:
    """One compilation unit and everything needed to ask it questions. Line and column numbers start at 1."""

    manager: pyslang.SourceManager
    tree: syntax.SyntaxTree
    compilation: ast.Compilation

    def file_line(self, location: pyslang.SourceLocation) -> tuple[str, int]:
        """File (relative to the design's root) and line of a location; macros count where they are used."""
        expanded = self.manager.getFullyExpandedLoc(location)
        return self.manager.getFileName(expanded), self.manager.getLineNumber(expanded)

    def source(self, expression: ast.Expression) -> str:
        """The source text of an expression, without the conversions that elaboration put around it."""
        while expression.syntax is None and isinstance(expression, ast.ConversionExpression):
            expression = expression.operand
        return self.text(expression.syntax)

    def text(self, node: syntax.SyntaxNode | None) -> str:
        """The source text of a syntax node on one line, comments left out."""
        if node is None:
            return ""
        lines = (line.split("//", 1)[0] for line in str(node).splitlines())
        return " ".join(" ".join(lines).split())


@dataclass(frozen=True)
class Problem:
    """An error of the compiler: `code` is pyslang's name for it, `source` the stripped line, cut when it is long."""

    code: str
    file: str
    line: int
    message: str
    source: str


def elaborate(design: Design) -> Elaboration:
    """Compile the design as one compilation unit with its top, parameters and defines. Never raises on bad RTL."""
    return compile_files(
        design.sources, design.includes, design.include_dirs, design.defines, design.parameters, design.top
    )


def compile_files(
    sources: Sequence[SourceFile],
    includes: Iterable[SourceFile] = (),
    include_dirs: Sequence[str] = (),
    defines: Iterable[tuple[str, str]] = (),
    parameters: Iterable[tuple[str, str]] = (),
    top: str | None = None,
) -> Elaboration:
    """Compile `sources` in their order as one compilation unit; without `top`, uninstantiated modules are roots."""
    manager = pyslang.SourceManager()
    for header in includes:
        assign_header(manager, header)
    buffers = [manager.assignText(source.path, source.text) for source in sources]
    preprocessor = parsing.PreprocessorOptions()
    preprocessor.predefines = macro_texts((*_PREDEFINED, *defines))
    preprocessor.additionalIncludePaths = list(include_dirs)
    options = ast.CompilationOptions()
    if top:
        options.topModules = {top}
    options.paramOverrides = [f"{name}={value}" for name, value in parameters]
    bag = pyslang.Bag()
    bag.preprocessorOptions = preprocessor
    bag.compilationOptions = options
    tree = syntax.SyntaxTree.fromBuffers(buffers, manager, bag)
    compilation = ast.Compilation(bag)
    compilation.addSyntaxTree(tree)
    return Elaboration(manager, tree, compilation)


def assign_header(manager: pyslang.SourceManager, header: SourceFile) -> None:
    """Give the compiler a file to be included. It looks for one by its canonical path as soon as the current folder has
    a folder of that name, and would read what lies there."""
    manager.assignText(header.path, header.text)
    if os.path.lexists(header.path.partition("/")[0]):
        manager.assignText(os.path.realpath(header.path), header.text)


def included_path(manager: pyslang.SourceManager, buffer: pyslang.BufferID, headers: Iterable[str]) -> str:
    """The path of an included file: that of one of the `headers`, else where it lies on this machine."""
    path = str(manager.getFullPath(buffer))
    return next((h for h in headers if os.path.realpath(h) == path), path) if os.path.isabs(path) else path


def first_problem(elaboration: Elaboration, diagnostics: Iterable[pyslang.Diagnostic]) -> Problem | None:
    """The first error among `diagnostics`; warnings do not count."""
    engine = pyslang.DiagnosticEngine(elaboration.manager)
    for diagnostic in diagnostics:
        if diagnostic.isError():
            file, line = elaboration.file_line(diagnostic.location)
            return Problem(
                str(diagnostic.code).removeprefix("DiagCode(").removesuffix(")"),
                file,
                line,
                _printable(engine.formatMessage(diagnostic)),
                _source_line(elaboration, diagnostic.location),
            )
    return None


def _source_line(elaboration: Elaboration, location: pyslang.SourceLocation) -> str:
    expanded = elaboration.manager.getFullyExpandedLoc(location)
    text = elaboration.manager.getSourceText(expanded.buffer)
    lines = text.rstrip("\0").splitlines()
    line = elaboration.manager.getLineNumber(expanded)
    return quoted(lines, line)


def quoted(lines: Sequence[str], line: int) -> str:
    """A line (counted from 1) as messages quote it: stripped, printable, cut when long; empty if there is none."""
    source = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    shown = _printable(source[:_SOURCE_CHARACTERS])
    return shown if len(source) <= _SOURCE_CHARACTERS else f"{shown} …"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
