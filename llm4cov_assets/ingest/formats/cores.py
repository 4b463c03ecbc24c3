"""What FuseSoC core files say of designs, read by the fusesoc library in a process of its own.

    python -m llm4cov_assets.ingest.formats.cores < request.json > answer.json

The library logs, leaves through `exit` and trusts what it reads (YAML that repeats itself, patterns that backtrack), so
that its reader may be killed. Nothing is run or fetched: no generators, hooks, filters, scripts or providers.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sim import reasons

TOOL = "verilator"
"""The tool whose files are chosen where a core names different ones (`tool_verilator ? (…)`)."""

TARGETS = ("default", "synth", "lint", "rtl")
"""Targets that describe a design, best first; then come the others, and those of simulations, which are testbenches."""

MOST_NODES = 200_000
"""Keys, values, lists and objects in the YAML of a core file, counted again wherever an alias repeats them."""

_TESTBENCH = re.compile(r"sim|test|tb|bench|formal", re.IGNORECASE)
_RTL_TYPE = re.compile(r"(systemVerilog|verilog)Source")
_LINE = re.compile(r"line (\d+), column \d+")


@dataclass
class CoreReading:
    """What is known of one core file: how to compile it, or why it is no design. Paths are absolute.

    `reason` and `message` are those of a DesignError; both are empty for a core without a top module, too, of which
    nothing else is known but its name.
    """

    file: str
    name: str = ""
    reason: str = ""
    message: str = ""
    top: str = ""
    description: str = ""
    sources: list[str] = field(default_factory=lambda: [])
    include_dirs: list[str] = field(default_factory=lambda: [])
    others: list[str] = field(default_factory=lambda: [])
    defines: dict[str, str] = field(default_factory=lambda: {})
    parameters: dict[str, str] = field(default_factory=lambda: {})


class _Refused(Exception):
    """A core that is no design here: reason and message."""


def read_cores(files: list[str], wanted: list[str], root: str, without_top: bool) -> Iterator[CoreReading]:
    """What the core files `wanted` say; dependencies are found among `files`, which lie below `root`.

    With `without_top` a core that names no top module is read too, by its default target.
    """
    from fusesoc.capi2.coreparser import Core2Parser

    class Parser(Core2Parser):
        """Takes keys without a value for left out, as earlier versions of FuseSoC did."""

        def validate(self, capi_data: Any) -> None:
            _drop_nulls(capi_data)
            super().validate(capi_data)

    parser = Parser(resolve_env_vars=False, allow_additional_properties=True)
    library = _Library(root)
    for file in files:
        library.add(file, parser)
    for file in wanted:
        yield library.failed[file] if file in library.failed else _read(library.cores[file], library, without_top)


class _Library:
    """Core files that can be read, by file, and those that cannot."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.cores: dict[str, Any] = {}
        self.failed: dict[str, CoreReading] = {}
        self._files: dict[str, str] = {}
        self._providers: dict[tuple[str, str, str], list[Any]] = {}

    def add(self, file: str, parser: Any) -> None:
        """Read a core file. What a second one of the same name says does not count."""
        from fusesoc.core import Core

        try:
            _refuse_yaml_that_repeats_itself(file)
            core = Core(parser=parser, core_file=file, cache_root=Path(self.root, ".fusesoc-cache"))
            names = [core.name, *core.get_virtuals({"tool": TOOL})]
        except _Refused as refused:
            self.failed[file] = CoreReading(file, Path(file).stem, *refused.args)
            return
        except Exception as error:
            self.failed[file] = CoreReading(file, Path(file).stem, reasons.MALFORMED, _described(file, error))
            return
        first = self._files.setdefault(str(core.name), file)
        if first != file:
            message = f"{file}: the core {core.name} is in {first} too; keep one"
            self.failed[file] = CoreReading(file, core.name.name, reasons.NAME_TAKEN, message)
            return
        self.cores[file] = core
        for name in names:
            self._providers.setdefault((name.vendor, name.library, name.name), []).append(core)

    def needed_by(self, top: Any, flags: Mapping[str, Any]) -> list[Any]:
        """The core `top` and all that it depends on, dependencies first. Raises _Refused when one is missing, which the
        library's solver does not name, and its DependencyError for versions that contradict each other."""
        from fusesoc.coremanager import CoreDB

        cores = CoreDB()  # of these alone: solving takes time for each core that there is
        for core in self._reachable(top, flags):
            cores.add(core, None)
        return list(cores.solve(top.name, flags))

    def _reachable(self, top: Any, flags: Mapping[str, Any]) -> Iterator[Any]:
        waiting, seen = [(top, True)], {str(top.name)}
        while waiting:
            core, is_certain = waiting.pop()
            yield core
            for depend in core.get_depends(_flags_of(core, top, flags)):
                if depend.conflict:
                    continue
                found = self._find(core, depend, is_certain)
                new = [c for c in found if str(c.name) not in seen]
                seen.update(str(c.name) for c in new)
                waiting += [(c, is_certain and len(found) == 1) for c in new]  # of several the solver chooses

    def _find(self, core: Any, depend: Any, is_certain: bool) -> list[Any]:
        from fusesoc.vlnv import compare_relation

        there = self._providers.get((depend.vendor, depend.library, depend.name), [])
        found = [c for c in there if c.name.name != depend.name or compare_relation(c.name, depend.relation, depend)]
        if found or not is_certain:
            return found
        why = next((f" ({r.message})" for r in self.failed.values() if r.name == depend.name), "")
        why = f" (but {', '.join(_shown(c.name) for c in there)})" if there else why
        raise _Refused(
            reasons.UNREADABLE,
            f"{core.core_file}: depends on {_shown(depend)}, which no core file below {self.root} provides{why}; "
            "import a folder that holds it too, with --format fusesoc",
        )


def _refuse_yaml_that_repeats_itself(file: str) -> None:
    """Raise _Refused for YAML with more than MOST_NODES nodes. It is read as events, in which an alias is one; what
    is no YAML passes, for the library to say why."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []  # anchors, and how many nodes there were before
    n_nodes = 0
    try:
        for event in yaml.parse(Path(file).read_text(encoding="utf-8-sig").partition("\n")[2], Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                if any(anchor == event.anchor for anchor, _ in open_nodes):
                    raise _Refused(reasons.MALFORMED, f"{file}:{event.start_mark.line + 2}: the alias "
                                   f"{ascii(event.anchor)[:60]} lies in what it repeats; take it out")  # fmt: skip
                n_nodes += sizes.get(event.anchor, 1)
            elif isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
                if isinstance(event, yaml.ScalarEvent) and event.anchor:
                    sizes[event.anchor] = 1
                elif isinstance(event, yaml.CollectionStartEvent):
                    open_nodes.append((event.anchor, n_nodes))
                n_nodes += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                anchor, before = open_nodes.pop()
                if anchor:
                    sizes[anchor] = n_nodes - before
            if n_nodes > MOST_NODES:
                raise _Refused(reasons.MALFORMED, f"{file}:{event.start_mark.line + 2}: YAML of more than "
                               f"{MOST_NODES:,} values, aliases written out; repeat less")  # fmt: skip
    except yaml.YAMLError:
        return


def _drop_nulls(data: Any) -> None:
    if isinstance(data, dict):
        for key in [k for k, v in data.items() if v is None]:
            del data[key]
    for value in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        _drop_nulls(value)


def _described(file: str, error: BaseException) -> str:
    """An error of the library in one line; its line numbers lack the first line of the file."""
    text = str(error)
    match = _LINE.search(text)
    n_lines = len(Path(file).read_text(errors="replace").splitlines())
    where = f"{file}:{min(int(match[1]) + 1, n_lines)}" if match else file
    text = re.sub(r'\s*in "<[^>]*>",', "", text)
    text = _LINE.sub("", text).replace("Error validating data", "").replace("Error validating ", "")
    said = " ".join(re.sub(r"For further information.*", "", text).split())[:240] or type(error).__name__
    return f"{where}: not a core file that FuseSoC reads: {said}; mend it there"


def _read(core: Any, library: _Library, without_top: bool) -> CoreReading:
    from fusesoc.coremanager import DependencyError

    reading = CoreReading(str(core.core_file), core.name.name)
    try:
        target, reading.top = _target(core)
        if target is None and not without_top:
            return reading
        reading.description = core.get_description() or ""
        flags = {"target": target or "default", "tool": TOOL, "is_toplevel": True}
        _collect(reading, library.needed_by(core, flags), core, flags)
    except _Refused as refused:
        reading.reason, reading.message = refused.args
    except DependencyError as error:
        said = " ".join(str(error.msg).split())[:240]
        reading.reason = reasons.UNREADABLE
        reading.message = f"{reading.file}: its dependencies contradict each other ({said}); mend their versions"
    except Exception as error:
        reading.reason, reading.message = reasons.MALFORMED, _described(reading.file, error)
    return reading


def _target(core: Any) -> tuple[str | None, str]:
    """The target that describes the design, and its top module; None when no target has one."""
    names = list(core.get_data({}).targets)
    rest = [n for n in names if n not in TARGETS]
    order = [n for n in TARGETS if n in names] + sorted(rest, key=lambda n: bool(_TESTBENCH.search(n)))
    for name in order:
        target = core.get_target({"target": name, "tool": TOOL, "is_toplevel": True})
        tops = [t for t in " ".join(target.toplevel).split() if t] if target else []
        if len(tops) == 1:
            return name, tops[0]
    return None, ""


def _flags_of(core: Any, top: Any, flags: Mapping[str, Any]) -> dict[str, Any]:
    return {**flags, "is_toplevel": core.name == top.name}


def _shown(name: Any) -> str:
    version = f":{name.version}" if name.version != "0" else ""
    version = f"{version} or later" if version and name.relation == ">=" else version
    return ":".join(part for part in (name.vendor, name.library, name.name) if part) + version


def _collect(reading: CoreReading, cores: list[Any], top: Any, flags: Mapping[str, Any]) -> None:
    """Files and settings of the core and of what it depends on, in that order: dependencies first."""
    parameters: dict[str, Any] = {}
    include_dirs: dict[str, None] = {}
    for core in cores:
        own = _flags_of(core, top, flags)
        _refuse_what_is_made(core, own)
        for file in core.get_files(own):
            _add_file(reading, core, file, include_dirs)
        parameters.update(core.get_parameters(own, parameters))
    reading.include_dirs = list(include_dirs)
    for name, parameter in parameters.items():
        if "default" not in parameter:
            continue
        value = parameter["default"]
        if parameter["paramtype"] == "vlogdefine" and value is not False:
            reading.defines[name] = _plain(value)
        elif parameter["paramtype"] == "vlogparam":
            reading.parameters[name] = f'"{value}"' if parameter["datatype"] == "str" else _plain(value)


def _plain(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _refuse_what_is_made(core: Any, flags: Mapping[str, Any]) -> None:
    made = core.get_ttptttg(flags)
    if made:
        raise _Refused(
            reasons.UNREADABLE,
            f"{core.core_file}: has files made by the generator {made[0]['generator']}, which is not run "
            "here; where FuseSoC and what the generator needs are installed, `fusesoc run --setup` on the core you "
            "want (with its --target) writes a .vc file: import that",
        )
    if core.provider:
        raise _Refused(
            reasons.UNREADABLE,
            f"{core.core_file}: its files are fetched ({core.get_data({}).provider.name}), and nothing is "
            "fetched here; run `fusesoc fetch` and import the folder that it makes",
        )


def _add_file(reading: CoreReading, core: Any, file: Mapping[str, Any], include_dirs: dict[str, None]) -> None:
    path = os.path.join(core.files_root, file["name"])
    kind = file.get("file_type", "")
    suffix = Path(path).suffix.lower()
    if _RTL_TYPE.match(kind) or (not kind and suffix in (".v", ".sv", ".vh", ".svh")):
        if not os.path.exists(path):
            raise _Refused(
                reasons.UNREADABLE,
                f"{core.core_file}: names {file['name']!r}, which is not there; add the file, or take it out",
            )
        if file.get("is_include_file"):
            folder = file.get("include_path") or os.path.dirname(file["name"])
            include_dirs[os.path.join(core.files_root, folder)] = None
        else:
            reading.sources.append(path)
        reading.defines.update({str(k): _plain(v) for k, v in (file.get("define") or {}).items()})
    elif kind.startswith("vhdlSource") or suffix in (".vhd", ".vhdl"):
        reading.others.append(path)


def main() -> None:
    """Answer the request on stdin."""
    logging.disable(logging.CRITICAL)
    request = json.load(sys.stdin)
    readings = [asdict(r) for r in read_cores(**request)]
    json.dump(readings, sys.stdout)


if __name__ == "__main__":
    main()
