"""Testbenches made ready to run: a cocotb file as it is, a SystemVerilog one compiled to a shared object.

A SystemVerilog testbench is checked first (sim/violations.py), then compiled with a stand-in for the design
(sim/stub.py), all of it in the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sim.build import Build
from sim.design import Design, macro_texts
from sim.files import own_folder
from sim.simulation import Testbench
from sim.stub import Unsupported, shared_text, stub
from sim.toolchain import TOOL_MEMORY_MB, Finished, Toolchain
from sim.violations import Violation, place

FILE = "testbench.sv"
STAND_IN_VERSION = 1
"""Raise it when the stand-in or the flags below change what a testbench does."""

FLAGS = ("--cc", "--prefix", "Vbench", "--timing", "--timescale", "1ns/1ps", "--x-assign", "0", "--x-initial", "0",
         "--assert", "-Wno-fatal", "--quiet-stats", "-Wno-MULTITOP", "-Wno-DECLFILENAME")  # fmt: skip
CPU_S = 60
"""Seconds of CPU that Verilator and the compiler may take each; an ordinary testbench takes one for both."""

_ERROR = re.compile(r"^%Error(?P<code>-[A-Z0-9]+)?: ", re.MULTILINE)
_SAYS_NOTHING = re.compile(
    r"%Error: (Exiting due to|Cannot continue)|\s+\.\.\. (See the manual|For warning|Use \"|This fatal error|For error)"
)
_LEFT_OUT = re.compile(
    r"^%Warning-(?:COVERIGN|CONSTRAINTIGN|RANDC|UNSUPPORTED|ASSERTIGN)[^\n]*(?:\n(?!%)[^\n]*)*", re.MULTILINE
)


Check = Callable[[str, Design], tuple[Violation, ...]]


@dataclass(frozen=True)
class Prepared:
    """What a run needs: `program` is the text of a cocotb file or the path of a shared object.

    Without a program `status` (`policy_violation`, `compile_error`, `unsupported`, `resource_limit`) and `log` say why.
    `notes` are the simulator's words on what it leaves out, such as covergroups; `cpu_s` is what preparing took.
    """

    program: str | Path | None
    status: str = ""
    log: str = ""
    notes: str = ""
    cpu_s: float = 0.0


@contextmanager
def prepared(tools: Toolchain, design: Design, build: Build, testbench: Testbench, check: Check) -> Iterator[Prepared]:
    """Make a testbench ready; what was made for it is there until the block ends. Raises ToolError and OSError."""
    if testbench.language == "cocotb":
        yield Prepared(testbench.text)
        return
    if found := check(testbench.text, design):
        status = "resource_limit" if found[0].rule == "resource" else "policy_violation"
        # what else is wrong is why no instance was found
        told = sorted(found, key=lambda v: v.rule == "no_instance")
        yield Prepared(None, status, "\n".join(_told(v, testbench.text) for v in told))
        return
    with own_folder(tools.scratch) as work:
        yield _compile(tools, design, build, testbench.text, work)


def _told(violation: Violation, text: str) -> str:
    """As Verilator tells its errors, so that people and feedback find the line."""
    file, line = place(text, violation.line)
    return f"%Error: {file or FILE}:{line}: {violation.message}\n{line:5} | {violation.source}"


def _compile(tools: Toolchain, design: Design, build: Build, text: str, work: Path) -> Prepared:
    try:
        _write_sources(design, build, text, work / "src")
    except Unsupported as error:
        return Prepared(None, "unsupported", str(error))
    includes = [f"-Iinclude/{d}" for d in design.include_dirs]
    defines = [f"-D{macro}" for macro in macro_texts(design.defines)]
    verilated = tools.verilate(
        *FLAGS, "--Mdir", "../obj", *includes, *defines, "stand_in.sv", "design.sv", FILE,
        cwd=work / "src", cpu_s=CPU_S,
    )  # fmt: skip
    if verilated.returncode != 0:
        return _failed(verilated)
    notes = "\n".join(m.group() for m in _LEFT_OUT.finditer(verilated.output))
    built = _link(tools, work)
    cpu_s = verilated.cpu_s + built.cpu_s
    if built.limited:
        return replace(_beyond_limits(built), notes=notes, cpu_s=cpu_s)
    if built.returncode != 0:
        why = "the code that Verilator makes of this testbench does not compile:\n"
        return Prepared(None, "unsupported", why + built.output.strip()[-4000:], notes, cpu_s)
    return Prepared(work / "testbench.so", "", "", notes, cpu_s)


def _write_sources(design: Design, build: Build, text: str, folder: Path) -> None:
    folder.mkdir()
    for header in design.includes:
        target = folder / "include" / header.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(header.content)
    (folder / "stand_in.sv").write_text(stub(design, build))
    (folder / "design.sv").write_text(shared_text(design))
    (folder / FILE).write_bytes(text.encode("utf-8", "surrogateescape"))


def _link(tools: Toolchain, work: Path) -> Finished:
    """Compile the generated code as one file and make the shared object of it."""
    folder, obj = tools.harness_folder, work / "obj"
    includes = [f'#include "{path.name}"\n' for path in sorted(obj.glob("Vbench*.cpp"))]
    (obj / "all.cpp").write_text("".join(includes) + f'#include "{folder}/model.cpp"\n')
    compiled = tools.compile(
        "-DLLM4COV_CLASS=Vbench",
        "-I.",
        "-include",
        folder / "model.h",
        "-c",
        "all.cpp",
        "-o",
        "all.o",
        cwd=obj,
        cpu_s=CPU_S,
    )
    if compiled.returncode != 0:
        return compiled
    linked = tools.link("-shared", "-o", "../testbench.so", "all.o", cwd=obj)
    return replace(linked, cpu_s=compiled.cpu_s + linked.cpu_s)


def _failed(finished: Finished) -> Prepared:
    output = "\n".join(line for line in finished.output.strip().split("\n") if not _SAYS_NOTHING.match(line))
    if finished.limited:
        return _beyond_limits(finished)
    codes = {match["code"] for match in _ERROR.finditer(output)}
    unsupported = "-UNSUPPORTED" in codes and not codes - {"-UNSUPPORTED", None}
    if finished.signal or "Internal Error" in output:
        output = f"Verilator itself fails on this testbench:\n{output}"
        unsupported = True
    return Prepared(None, "unsupported" if unsupported else "compile_error", output[-8000:], cpu_s=finished.cpu_s)


def _beyond_limits(finished: Finished) -> Prepared:
    limits = f"{CPU_S} s of CPU time, {TOOL_MEMORY_MB >> 10} GiB of memory"
    return Prepared(
        None, "resource_limit", f"compiling the testbench takes more than it may ({limits})", cpu_s=finished.cpu_s
    )
