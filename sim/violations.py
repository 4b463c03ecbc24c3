"""What a SystemVerilog testbench may not do, found before anything is compiled.

A testbench drives the ports of the design's top, of which it has one instance. It cannot reach what is inside: it is
compiled against a stand-in without internals, and its coverage comes from a replay of the inputs (sim/stub.py). This
check tells the author so in one line instead of an error about a name that does not exist, and refuses what would run
other programs or read other files while the testbench is compiled or run.

Three looks at one text, each for what the one before cannot see:
- characters: comments and directives, also where `ifdef` leaves text out and inside the bodies of macros;
- syntax, after macros: system tasks, declarations, names with dots;
- elaboration: what a name stands for, which instances there are, the values of parameters.

The design's files come first in the same compilation unit, as in the build. Names of files that are no constant are
left to the sandbox. A testbench that does not compile has no violations unless they are certain.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyslang
from pyslang import ast, parsing, syntax

from sim.design import Design, macro_texts
from sim.slang import assign_header, elaborate, included_path, quoted

MAX_VIOLATIONS = 50
"""The first so many are told."""

_SENTINEL = "llm4cov_end_of_design"

_VERILATOR_MACROS = ("VERILATOR=1", "verilator=1", "verilator3=1", "VERILATOR_TIMING=1", "SYSTEMVERILOG=1",
                     "coverage_block_off=/*verilator coverage_block_off*/")  # fmt: skip
_SLANG_MACROS = ("__slang__", "__slang_major__", "__slang_minor__")

_HARMLESS_PRAGMAS = {"lint_off", "lint_on", "lint_save", "lint_restore", "tracing_on", "tracing_off", "full_case",
                     "parallel_case", "unroll_full", "unroll_disable", "tag"}  # fmt: skip
_ONE_WORD_PRAGMAS = {"public", "clocker", "fargs", "forceable", "sformat"}
_DIRECTIVES = {
    "verilator_config": "configure the simulator outside of the testbench",
    "coverage_block_off": "coverage cannot be switched off",
    "protect": "write the testbench in plain text",
    "protected": "write the testbench in plain text",
    "verilog": "C++ cannot be part of a testbench",
    **dict.fromkeys(
        ("systemc_header", "systemc_header_post", "systemc_interface", "systemc_implementation", "systemc_imp_header",
         "systemc_ctor", "systemc_dtor", "systemc_class_name"),
        "C++ cannot be part of a testbench",
    ),
}  # fmt: skip
_SYSTEM_TASKS = {
    "$system": "a testbench cannot run programs; remove it",
    "$sdf_annotate": "the delays of the design are its own; remove it",
    "$input": "write the statements into the testbench",
    **dict.fromkeys(
        ("$coverage_control", "$coverage_get", "$coverage_get_max", "$coverage_merge", "$coverage_save",
         "$set_coverage_db_name", "$load_coverage_db"),
        "coverage is measured outside of the testbench; remove it",
    ),
    **dict.fromkeys(
        ("$save", "$restart", "$incsave", "$reset"), "drive the reset of the design instead; remove it"
    ),
}  # fmt: skip
_SINCE_2023 = {"$get_initial_random_seed"}  # which pyslang does not know yet
_FILE_TASKS = {"$fopen", "$readmemb", "$readmemh", "$writememb", "$writememh", "$dumpfile", "$dumpports"}
_INTERFACE = ast.DefinitionKind.Interface
_RAW_CODE = re.compile(r"\$c(pure)?\d*")

_LEXEMES = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<string>\"\"\".*?\"\"\"|"(?:\\.|[^"\\\n])*")
      | `\\?`?"                                    # a quotation mark of a macro's body does not start a string
      | (?P<directive>`\\?[A-Za-z_][\w$]*)
      | (?P<escaped>\\[^\s]+)
      | (?P<system>\$[A-Za-z_][\w$]*)
      | (?P<word>[A-Za-z_][\w$]*)""",
    re.VERBOSE | re.DOTALL,
)
_PRAGMA = re.compile(r"(?://|/\*)\s*verilator\s+(?P<word>\w+)(?P<rest>[^\n]*)", re.IGNORECASE)
_DEFINE = re.compile(r"`define[ \t]+\\?(?P<name>[\w$]+)(?P<args>\([^)]*\))?(?P<body>(?:\\\r?\n|[^\n])*)")
_CONDITION = re.compile(r"`(?:ifdef|ifndef|elsif)(?P<names>[^\n]*)")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]|\r(?![\r\n])")
_LINE = re.compile(r'`line\s+(?P<line>\d{1,9})\s+"(?P<file>[^"\\]*)"(?:\s+[012])?\s*(?://.*)?$')
_UNKNOWN = object()  # the value of what does not compile
_BUILD_FILES = {"design.sv", "stand_in.sv"}  # sim/testbench.py
_RESERVED = re.compile(r"llm4cov_|uvm_hdl_")


@dataclass(frozen=True)
class Violation:
    """What is refused: `line` of the testbench, `message` with what to do instead, `source` the stripped line."""

    rule: str
    line: int
    message: str
    source: str


def violations(text: str, design: Design) -> tuple[Violation, ...]:
    """Return what the testbench `text` does that is refused, by line.

    Empty for a clean testbench, and for one that does not compile when no violation is certain. Elaborates in this
    process, which hostile text can stop, fill or crash: `sim.checker` is for text of others.
    """
    text = text.encode("utf-8", "replace").decode("utf-8")
    found = _Found(text)
    _look_at_characters(text, {f.path for f in (*design.sources, *design.includes)} | _BUILD_FILES, found)
    _look_at_unit(_Unit(text, design, ()), found)
    shared = _names_tested(text) & _macros(design)
    if shared:  # whether the build sees them is not for this check to know, so neither way may hide anything
        _look_at_unit(_Unit(text, design, sorted(shared)), found)
    return found.sorted()


def place(text: str, line: int) -> tuple[str, int]:
    """File and line that a person knows for a line of a testbench that was put together from several files.

    The file is empty for a testbench of one file, which has no `line` directives.
    """
    file, offset = "", 0
    for number, source in enumerate(text.split("\n")[: line - 1], 1):
        match = _LINE.match(source.strip())
        if match:
            file, offset = match["file"], int(match["line"]) - number - 1
    return file, line + offset


class _Found:
    """Violations of one text, each rule once a line."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._starts = [m.end() for m in re.finditer("\n", text)]
        self._found: dict[tuple[int, str], Violation] = {}

    def add(self, rule: str, line: int, message: str) -> None:
        """Note a violation in a line."""
        self._found.setdefault((line, rule), Violation(rule, line, message, quoted(self._lines, line)))

    def add_at(self, rule: str, offset: int, message: str) -> None:
        """Note a violation at a character of the text."""
        self.add(rule, bisect_right(self._starts, offset) + 1, message)

    def sorted(self) -> tuple[Violation, ...]:
        """The first of them, by line."""
        return tuple(self._found[key] for key in sorted(self._found))[:MAX_VIOLATIONS]


def _look_at_characters(text: str, taken: set[str], found: _Found) -> None:
    """Comments, directives and what is refused even where nothing compiles it."""
    for match in _CONTROL.finditer(text):
        found.add_at("characters", match.start(), "a control character; save the testbench as plain text")
    imported = False
    for match in _LEXEMES.finditer(text):
        kind, word, at = match.lastgroup, match.group(), match.start()
        if kind == "comment":
            _look_at_comment(word, at, found)
            continue
        if kind == "directive":
            _look_at_directive(text, match, taken, found)
        elif kind == "system":
            _look_at_system_name(word, lambda r, m, at=at: found.add_at(r, at, m), certain_only=True)
        elif kind in ("word", "escaped") and _RESERVED.match(word.lstrip("\\")):
            found.add_at("reserved_name", at, f"the name {word} is the simulator's; choose another")
        elif kind == "string" and imported and word in ('"DPI-C"', '"DPI"'):
            _refuse_dpi(lambda r, m, at=at: found.add_at(r, at, m))
        imported = kind == "word" and word in ("import", "export")
    for match in _DEFINE.finditer(text):
        _look_at_macro(match, found)


def _look_at_comment(comment: str, at: int, found: _Found) -> None:
    pragma = _PRAGMA.match(comment)
    if not pragma:
        return
    word, rest = pragma["word"].lower(), pragma["rest"].replace("*/", " ").strip()
    prose = "_" not in word and word not in _ONE_WORD_PRAGMAS and rest and not rest.startswith("@")
    if word in _HARMLESS_PRAGMAS or prose:
        return
    message = f"the simulator's comment `verilator {word}` is not allowed; remove it"
    found.add_at("pragma", at, f"{message} (lint_off and lint_on are)")


def _look_at_directive(text: str, match: re.Match[str], taken: set[str], found: _Found) -> None:
    name = match.group().lstrip("`\\")
    rest = text[match.end() :].split("\n", 1)[0].strip()
    if name in _DIRECTIVES:
        found.add_at("directive", match.start(), f"the directive `{name} is not allowed; {_DIRECTIVES[name]}")
    elif name == "line":
        line = _LINE.match(f"`line {rest}")
        if line is None or line["file"].removeprefix("./") in taken:
            found.add_at("directive", match.start(), "`line can only name a file of the testbench; remove it")
    elif name in ("ifdef", "ifndef", "elsif") and re.search(r"\b__(FILE|LINE)__\b", rest):
        found.add_at("directive", match.start(), "`__FILE__ and `__LINE__ are no macros to ask for; remove it")
    elif name == "pragma" and rest.startswith("protect"):
        found.add_at("directive", match.start(), "encrypted text is not allowed; write the testbench in plain text")
    elif name == "begin_keywords" and not re.match(r'"1(364|800)-', rest):
        found.add_at("directive", match.start(), "only keywords of IEEE 1364 and IEEE 1800 are allowed; remove it")
    elif name == "include":
        file = rest[1:].split('"' if rest[:1] == '"' else ">", 1)[0]
        if rest[:1] not in ('"', "<") or file.startswith(("/", "~")) or ".." in file.split("/"):
            found.add_at("include", match.start(), _INCLUDE)


_INCLUDE = "only the design's own headers can be included, by name; put everything else into the testbench"


def _look_at_macro(define: re.Match[str], found: _Found) -> None:
    """What only becomes a directive or comment when the macro is used is one for some compilers and not for others."""
    arguments = {a.split("=")[0].strip() for a in (define["args"] or "")[1:-1].split(",")} - {""}
    for used in re.finditer(r"``|`\\?(?P<name>[A-Za-z_]\w*)(?P<paste>``)?", define["body"]):
        name = used["name"]
        if name is None:
            continue
        if name in arguments or (used["paste"] and any(d.startswith(name) for d in (*_DIRECTIVES, "include", "line"))):
            at = define.start("body") + used.start()
            found.add_at("directive", at, "a macro puts the name of a directive together; write the directive out")
    for comment in re.finditer(r"/``[/*]|/[/*]\s*(?P<first>\w+)", define["body"]):
        if comment["first"] is None or comment["first"] in arguments:
            at = define.start("body") + comment.start()
            found.add_at("pragma", at, "a macro puts a comment of the simulator together; remove it")


def _look_at_system_name(name: str, add: Any, certain_only: bool = False) -> None:
    if _RAW_CODE.fullmatch(name):
        add("raw_code", f"{name} would run C++; write it in SystemVerilog")
    elif name in _SYSTEM_TASKS:
        add("system_task", f"{name} is not allowed: {_SYSTEM_TASKS[name]}")
    elif not certain_only and not _is_standard(name):
        add("system_task", f"{name} is no system task of IEEE 1800, and none can be added; remove it")


def _is_standard(name: str) -> bool:
    return name in _SINCE_2023 or f"s_{name[1:].replace('$', '_')}" in parsing.KnownSystemName.__members__


def _refuse_dpi(add: Any) -> None:
    add("dpi", "functions of C cannot be imported or exported; write them in SystemVerilog")


def _names_tested(text: str) -> set[str]:
    """The macros that `ifdef` and its kin ask for."""
    return {name for m in _CONDITION.finditer(text) for name in re.findall(r"[A-Za-z_][\w$]*", m["names"])}


def _macros(design: Design) -> set[str]:
    """The macros that come with the design."""
    files = (*design.sources, *design.includes)
    return {name for name, _ in design.defines} | {m["name"] for f in files for m in _DEFINE.finditer(f.text)}


class _Unit:
    """The design's files and then the testbench, compiled together."""

    def __init__(self, text: str, design: Design, undefined: Iterable[str]) -> None:
        self.design = design
        self.manager = manager = pyslang.SourceManager()
        for header in design.includes:
            assign_header(manager, header)
        buffers = [manager.assignText(source.path, source.text) for source in design.sources]
        # what the design's files leave open ends here, and what comes after is the testbench's
        sentinel = f"package {_SENTINEL}; endpackage\n`resetall\n" + "".join(f"`undef {n}\n" for n in undefined)
        buffers.append(manager.assignText(f"{_SENTINEL}.sv", sentinel))
        name = "testbench.sv"
        while name in {f.path for f in (*design.sources, *design.includes)}:
            name = f"_{name}"
        text = text.removeprefix("\ufeff")
        self.buffer = manager.assignText(name, text)
        self._line_ends = [m.end() for m in re.finditer(b"\n", text.encode())]
        preprocessor = parsing.PreprocessorOptions()
        preprocessor.predefines = [*_VERILATOR_MACROS, *macro_texts(design.defines)]
        preprocessor.undefines = list(_SLANG_MACROS)
        preprocessor.additionalIncludePaths = list(design.include_dirs)
        bag = pyslang.Bag()
        bag.preprocessorOptions = preprocessor
        self.tree = syntax.SyntaxTree.fromBuffers([*buffers, self.buffer], manager, bag)
        self.compilation = ast.Compilation(bag)
        self.compilation.addSyntaxTree(self.tree)
        unit = self.tree.root
        members = list(unit.members) if isinstance(unit, syntax.CompilationUnitSyntax) else [unit]
        names = [_declared(m) for m in members]
        cut = names.index(_SENTINEL) if _SENTINEL in names else len(members) - 1
        self.design_names = {n for n in names[:cut] if n} | {design.top}
        kinds = {_declared(m): m.kind for m in members[:cut]}
        self.design_packages = {n for n, k in kinds.items() if k == syntax.SyntaxKind.PackageDeclaration}
        interfaces = {n for n, k in kinds.items() if k == syntax.SyntaxKind.InterfaceDeclaration}
        self.design_modules = self.design_names - self.design_packages - interfaces
        self.members = members[cut + 1 :]

    def line(self, location: pyslang.SourceLocation | None) -> int | None:
        """The line of the testbench that a location comes from, through macros and headers; None for the design's."""
        if location is None:
            return None
        location = self.manager.getFullyExpandedLoc(location)
        for _ in range(100):
            if location.buffer == self.buffer.id:
                return bisect_right(self._line_ends, location.offset) + 1  # whatever `line` claims
            if not location.buffer or not self.manager.isIncludedFileLoc(location):
                return None
            location = self.manager.getFullyExpandedLoc(self.manager.getIncludedFrom(location.buffer))
        return None

    @cached_property
    def errors(self) -> bool:
        """Whether the testbench has errors, in which case what it does not do is not known."""
        found = [*self.compilation.getParseDiagnostics(), *self.compilation.getSemanticDiagnostics()]
        return any(d.isError() and self.line(d.location) for d in found)


def _declared(node: Any) -> str:
    """The name that a declaration of a module, interface, program, package, checker or primitive gives."""
    if isinstance(node, syntax.ModuleDeclarationSyntax | syntax.ExternModuleDeclSyntax):
        return str(node.header.name.valueText)
    if isinstance(node, syntax.UdpDeclarationSyntax | syntax.CheckerDeclarationSyntax | syntax.ExternUdpDeclSyntax):
        return str(node.name.valueText)
    return ""


def _look_at_unit(unit: _Unit, found: _Found) -> None:
    elaborated = _Elaborated(unit, found)
    _Syntax(unit, found, elaborated.elsewhere).look()
    for directive in unit.tree.getIncludeDirectives():
        location = directive.syntax.directive.location
        if unit.manager.getFullyExpandedLoc(location).buffer != unit.buffer.id:
            continue  # of the design's own headers
        headers = {f.path for f in unit.design.includes}
        path = included_path(unit.manager, directive.buffer.id, headers) if directive.buffer else None
        if path not in headers:
            found.add("include", unit.line(location) or 1, _INCLUDE)


class _Elaborated:
    """What elaboration tells. `elsewhere`: where names begin that stand for things outside the design."""

    def __init__(self, unit: _Unit, found: _Found) -> None:
        self.unit, self.found = unit, found
        self.elsewhere: set[tuple[int, int]] = set()
        self.instances: list[ast.InstanceSymbol] = []
        self.unknown = False
        expressions = dict.fromkeys(
            (
                ast.ExpressionKind.NamedValue,
                ast.ExpressionKind.HierarchicalValue,
                ast.ExpressionKind.MemberAccess,
                ast.ExpressionKind.Call,
            ),
            self._expression,
        )
        table: dict[Any, Any] = {
            ast.SymbolKind.Instance: self._instance,
            ast.SymbolKind.Package: self._package,
            ast.SymbolKind.UninstantiatedDef: self._uninstantiated,
            **expressions,
        }
        unit.compilation.getRoot().visit(lookup_table=table)
        self._look_at_instances()

    def _package(self, package: ast.PackageSymbol) -> ast.VisitAction:
        own = package.name not in self.unit.design_packages
        return ast.VisitAction.Advance if own else ast.VisitAction.Skip

    def _uninstantiated(self, symbol: ast.UninstantiatedDefSymbol) -> None:
        # modules that exist stand here too, where generate leaves them out
        names = {d.name for d in self.unit.compilation.getDefinitions()}
        self.unknown = self.unknown or symbol.definitionName not in names

    def _instance(self, instance: ast.InstanceSymbol) -> ast.VisitAction:
        definition = instance.definition
        if self.unit.line(definition.location) is not None or instance.isInterface:
            return ast.VisitAction.Advance
        scope = instance.parentScope
        if self.unit.line(instance.location) is not None and not (scope and scope.isUninstantiated):
            self.instances.append(instance)
            for connection in instance.portConnections:
                if connection.expression is not None:
                    connection.expression.visit(self._expression)
        return ast.VisitAction.Skip

    def _look_at_instances(self) -> None:
        add, top = self.found.add, self.unit.design.top
        tops = 0
        for instance in self.instances:
            line = self.unit.line(instance.location) or 1
            name = instance.definition.name
            if name != top:
                add("design_module", line, f"{name} is a part of the design; only its top, {top}, can be instantiated")
                continue
            tops += 1
            if tops > 1:
                add("second_instance", line, f"one instance of {top} is simulated; remove this one")
            self._look_at_parameters(instance, line)
        if not self.instances and not self.unknown and not self.unit.errors:
            add("no_instance", 1, f"the design is not instantiated; instantiate {top} and connect its ports")

    def _look_at_parameters(self, instance: ast.InstanceSymbol, line: int) -> None:
        node: Any = instance.syntax
        while node is not None and not isinstance(node, syntax.HierarchyInstantiationSyntax):
            node = node.parent
        if node is None or node.parameters is None:
            return
        own = {p.name: p for p in self._own_parameters}
        given = [p for p in instance.body.parameters if not p.isLocalParam]
        assignments = (a for a in node.parameters.parameters if isinstance(a, syntax.ParamAssignmentSyntax))
        for position, assignment in enumerate(assignments):
            name = given[position].name if position < len(given) else ""
            if isinstance(assignment, syntax.NamedParamAssignmentSyntax):
                name = assignment.name.valueText if assignment.expr is not None else ""
            symbol = next((p for p in given if p.name == name), None)
            if symbol is not None and name in own and _value(symbol) not in (_value(own[name]), _UNKNOWN):
                at = self.unit.line(assignment.sourceRange.start) or line
                message = (
                    f"parameter {name} of the design is {_shown(own[name])}; give it this value or leave it out, or "
                    f"build the design with another (--param {name}=VALUE)"
                )
                self.found.add("parameter", at, message)

    @cached_property
    def _own_parameters(self) -> list[Any]:
        self._own = elaborate(self.unit.design)  # the symbols live as long as their compilation
        tops = self._own.compilation.getRoot().topInstances
        return [p for p in tops[0].body.parameters if not p.isLocalParam] if tops else []

    def _expression(self, node: Any) -> None:
        if not isinstance(node, ast.Expression) or node.bad:
            return
        if isinstance(node, ast.CallExpression):
            if node.isSystemCall:
                self._look_at_files(node)
                return
            symbol: Any = node.subroutine
        elif isinstance(node, ast.ValueExpressionBase):
            symbol = node.symbol
        elif isinstance(node, ast.MemberAccessExpression):
            symbol = node.member
        else:
            return
        start = node.sourceRange.start
        if not isinstance(node, ast.NamedValueExpression) and self._inside(symbol):
            line = self.unit.line(start)
            if line is not None and not _only_traced(node.syntax):
                self.found.add("hierarchical", line, _hierarchical(_written(node.syntax) or symbol.name))
            return
        self.elsewhere.add((start.buffer.id, start.offset))
        if self._shared_variable(symbol):
            line = self.unit.line(start)
            if line is not None:
                message = f"variable {symbol.name} is the design's own; drive and observe the design through its ports"
                self.found.add("package_variable", line, message)

    def _inside(self, symbol: ast.Symbol) -> bool:
        """Whether a symbol lies in an instance of a module of the design."""
        body = symbol if isinstance(symbol, ast.InstanceBodySymbol) else None
        scope: ast.Scope | None = symbol.parentScope
        while body is not None or scope is not None:
            body = body or (scope.containingInstance if scope else None)
            if body is None:
                return False
            definition = body.definition
            if self.unit.line(definition.location) is None and definition.definitionKind != _INTERFACE:
                return True
            scope, body = body.parentInstance.parentScope if body.parentInstance else None, None
        return False

    def _shared_variable(self, symbol: ast.Symbol) -> bool:
        """Whether a symbol is a variable of the design outside its modules."""
        if not isinstance(symbol, ast.VariableSymbol) or ast.VariableFlags.Const in symbol.flags:
            return False
        if symbol.lifetime != ast.VariableLifetime.Static or symbol.parentScope.containingInstance is not None:
            return False
        return self.unit.line(symbol.location) is None

    def _look_at_files(self, call: ast.CallExpression) -> None:
        if call.subroutineName not in _FILE_TASKS or not call.arguments:
            return
        argument = call.arguments[0]
        if argument.bad:
            return
        value = argument.eval(ast.EvalContext(self.unit.compilation.getRoot()))
        name = value.value if value else None
        if isinstance(name, pyslang.SVInt):
            name = _characters(int(name)) if not name.hasUnknown else None
        line = self.unit.line(call.sourceRange.start)
        if isinstance(name, str) and line is not None:
            _look_at_file_name(name, line, call.subroutineName, self.found)


def _characters(value: int) -> str:
    return value.to_bytes((value.bit_length() + 7) // 8, "big").replace(b"\0", b"").decode("latin-1")


def _look_at_file_name(name: str, line: int, task: str, found: _Found) -> None:
    if name.startswith(("/", "~")) or ".." in name.split("/"):
        found.add("file", line, f"{task} can only use files in the testbench's own folder; name the file alone")


def _value(symbol: Any) -> Any:
    if symbol.kind == ast.SymbolKind.TypeParameter:
        return str(symbol.targetType.type.canonicalType)
    value = symbol.value.value
    if value is None:
        return _UNKNOWN
    if isinstance(value, pyslang.SVInt):
        return str(value) if value.hasUnknown else int(value)
    return str(value)


def _shown(symbol: Any) -> str:
    return str(_value(symbol))[:80]


def _hierarchical(name: str) -> str:
    return f"{name[:80]} lies inside the design; drive and observe the design through its ports"


def _written(node: Any) -> str:
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", str(node), flags=re.DOTALL) if node is not None else ""
    return " ".join(text.split()).strip("()")


def _enclosing(node: Any, kinds: type | tuple[type, ...]) -> Iterator[Any]:
    while node is not None:
        if isinstance(node, kinds):
            yield node
        node = node.parent


def _only_traced(node: Any) -> bool:
    """Whether a name is an argument of `$dumpvars`, which the simulator ignores for what does not exist."""
    return any(_system_name(call) == "$dumpvars" for call in _enclosing(node, syntax.InvocationExpressionSyntax))


def _system_name(call: syntax.InvocationExpressionSyntax) -> str:
    return call.left.systemIdentifier.valueText if isinstance(call.left, syntax.SystemNameSyntax) else ""


class _Syntax:
    """What the syntax of the testbench tells, after macros."""

    def __init__(self, unit: _Unit, found: _Found, elsewhere: set[tuple[int, int]]) -> None:
        self.unit, self.found, self.elsewhere = unit, found, elsewhere
        self.names: set[str] = set()  # of the design's instances

    def look(self) -> None:
        """Note what is refused."""
        kind = syntax.SyntaxKind
        declarations = (kind.ModuleDeclaration, kind.InterfaceDeclaration, kind.ProgramDeclaration,
                        kind.PackageDeclaration, kind.CheckerDeclaration, kind.UdpDeclaration, kind.ExternModuleDecl,
                        kind.ExternUdpDecl)  # fmt: skip
        configs = (kind.ConfigDeclaration, kind.LibraryDeclaration, kind.LibraryIncludeStatement)
        self._visit({kind.HierarchyInstantiation: self._instantiation})  # the names of instances, for what follows
        self._visit(
            {
                kind.ScopedName: self._name,
                kind.SystemName: self._system_name,
                kind.InvocationExpression: self._call,
                kind.BindDirective: self._refuse("bind", "bind is not allowed; use the ports of the design"),
                kind.DefParam: self._refuse("defparam", "defparam is not allowed; use #(.NAME(value)) on an instance"),
                kind.DPIImport: self._dpi,
                kind.DPIExport: self._dpi,
                kind.AttributeSpec: self._attribute,
                **dict.fromkeys(declarations, self._declaration),
                **dict.fromkeys(configs, self._refuse("config", "configurations are not allowed; remove it")),
            }
        )

    def _visit(self, table: dict[Any, Any]) -> None:
        for member in self.unit.members:
            member.visit(lookup_table=table)

    def _add(self, rule: str, node: Any, message: str) -> None:
        self.found.add(rule, self.unit.line(node.getFirstToken().location) or 1, message)

    def _refuse(self, rule: str, message: str) -> Any:
        return lambda node: self._add(rule, node, message)

    def _dpi(self, node: Any) -> None:
        _refuse_dpi(lambda rule, message: self._add(rule, node, message))

    def _declaration(self, node: Any) -> None:
        name = _declared(node)
        if name in self.unit.design_names:
            self._add("redefinition", node, f"{name} is the design's; give the testbench's own another name")

    def _instantiation(self, node: syntax.HierarchyInstantiationSyntax) -> None:
        if node.type.valueText in self.unit.design_modules:
            instances = (i for i in node.instances if isinstance(i, syntax.HierarchicalInstanceSyntax))
            self.names |= {i.decl.name.valueText for i in instances if i.decl is not None}

    def _system_name(self, node: syntax.SystemNameSyntax) -> None:
        name = node.systemIdentifier.valueText
        _look_at_system_name(name, lambda rule, message: self._add(rule, node, message))

    def _attribute(self, node: syntax.AttributeSpecSyntax) -> None:
        if node.name.valueText.lower().startswith("verilator"):
            self._add("pragma", node, "the simulator's attributes are not allowed; remove it")

    def _call(self, node: syntax.InvocationExpressionSyntax) -> None:
        task = _system_name(node)
        if not task or node.arguments is None:
            return
        arguments = [a for a in node.arguments.parameters if hasattr(a, "expr")]
        if task.startswith("$assert") and any(set(re.findall(r"\w+", str(a))) & self.names for a in arguments):
            self._add("hierarchical", node, f"{task} cannot switch what is in the design; leave the arguments out")
        if task in _FILE_TASKS and arguments:
            token = arguments[0].getFirstToken()
            if token.kind == parsing.TokenKind.StringLiteral and isinstance(token.value, str):
                line = self.unit.line(token.location) or 1
                _look_at_file_name(token.value, line, task, self.found)

    def _name(self, node: syntax.ScopedNameSyntax) -> None:
        if isinstance(node.parent, syntax.ScopedNameSyntax):
            return
        parts = _parts(node)
        inner = [name for name in parts[:-1] if name in self.names]
        if inner:
            start = node.getFirstToken().location
            shadowed = parts[0] in self.names and _declared_around(node, parts[0])
            if (start.buffer.id, start.offset) not in self.elsewhere and not shadowed and not _only_traced(node):
                self._add("hierarchical", node, _hierarchical(".".join(parts)))
        elif parts[0] in self.unit.design_packages and len(parts) == 2:
            package = self.unit.compilation.getPackage(parts[0])
            symbol = package.find(parts[1]) if package else None
            if isinstance(symbol, ast.VariableSymbol) and ast.VariableFlags.Const not in symbol.flags:
                message = f"variable {parts[1]} is the design's own; drive and observe the design through its ports"
                self._add("package_variable", node, message)


def _parts(node: Any) -> list[str]:
    """The names of a dotted name, from left to right."""
    found: list[str] = []
    while isinstance(node, syntax.ScopedNameSyntax):
        found.append(_identifier(node.right))
        node = node.left
    return [*reversed([*found, _identifier(node)])]


def _identifier(node: Any) -> str:
    token = getattr(node, "identifier", None)
    return str(token.valueText) if token is not None else str(node).strip()


_SCOPES = (
    syntax.ModuleDeclarationSyntax,
    syntax.ClassDeclarationSyntax,
    syntax.FunctionDeclarationSyntax,
    syntax.BlockStatementSyntax,
)


def _declared_around(node: Any, name: str) -> bool:
    """Whether a scope around a name declares a variable or port of its own that the name stands for."""
    before = node.getFirstToken().location
    for scope in _enclosing(node, _SCOPES):
        found: list[Any] = []
        scope.visit(lookup_table={syntax.SyntaxKind.Declarator: found.append})
        anywhere = isinstance(scope, syntax.ClassDeclarationSyntax)
        for declared in found:
            known = anywhere or declared.name.location < before
            if declared.name.valueText == name and known and next(_enclosing(declared, _SCOPES)) == scope:
                return True
    return False
