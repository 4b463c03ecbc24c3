"""FuseSoC core files are read with FuseSoC, and nothing of them is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.formats import reader
from sim import reasons
from sim.assembly import assemble
from sim.design import Design, DesignError

LEAF = "module leaf #(parameter W = 1)(input logic [W-1:0] a, output logic y); assign y = ^a; endmodule\n"
BOX = '`include "w.svh"\nmodule box(input logic [`W-1:0] a, output logic y); leaf #(.W(`W)) u(.a, .y); endmodule\n'

LEAF_CORE = """\
CAPI=2:
name: acme:lib:leaf:1.2
filesets:
  rtl:
    files: [leaf.v]
    file_type: verilogSource
targets:
  default: &default
    filesets: [rtl]
  lint:
    <<: *default
    toplevel: leaf
"""
BOX_CORE = """\
CAPI=2:
name: acme:soc:box:0
description: A box.
filesets:
  rtl:
    depend: [">=acme:lib:leaf:1.0"]
    files:
      - inc/w.svh: {is_include_file: true, include_path: inc}
      - rtl/box.sv
      - tool_icarus ? (rtl/icarus.sv)
      - data/init.hex: {file_type: user}
      - waiver.vlt: {file_type: vlt}
    file_type: systemVerilogSource
  tb:
    files: [tb/tb.sv]
    file_type: systemVerilogSource
parameters:
  W: {datatype: int, paramtype: vlogdefine, default: 3}
  FAST: {datatype: bool, paramtype: vlogdefine, default: true}
  SLOW: {datatype: bool, paramtype: vlogdefine, default: false}
  DEPTH: {datatype: int, paramtype: vlogparam, default: 4}
  MODE: {datatype: str, paramtype: vlogparam, default: thin}
  seed: {datatype: int, paramtype: plusarg, default: 1}
targets:
  sim:
    filesets: [rtl, tb]
    toplevel: tb
  default:
    filesets: [rtl]
    parameters: [W, W=5, FAST, SLOW, seed]
    toplevel: ["is_toplevel ? (box)"]
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A library with a leaf and a box that depends on it."""
    write(tmp_path / "p" / "lib" / "leaf.core", LEAF_CORE)
    write(tmp_path / "p" / "lib" / "leaf.v", LEAF)
    write(tmp_path / "p" / "soc" / "box.core", BOX_CORE)
    write(tmp_path / "p" / "soc" / "rtl" / "box.sv", BOX)
    write(tmp_path / "p" / "soc" / "inc" / "w.svh", "`ifndef W\n`define W 2\n`endif\n")
    write(tmp_path / "p" / "soc" / "tb" / "tb.sv", "module tb; endmodule\n")
    return tmp_path / "p"


def read(source: Path) -> dict[str, Design | DesignError]:
    found: dict[str, Design | DesignError] = {}
    for candidate in reader(str(source), "fusesoc")[0]():
        try:
            found[candidate.name] = assemble(candidate.gather())
        except DesignError as error:
            assert str(error).isprintable()
            found[candidate.name] = error
    return found


def refusal(source: Path) -> DesignError:
    [error] = read(source).values()
    assert isinstance(error, DesignError)
    return error


def test_a_folder_gives_each_core_with_a_top_module(project: Path) -> None:
    found = read(project)
    assert list(found) == ["leaf", "box"]
    box = found["box"]
    assert isinstance(box, Design)
    assert (box.name, box.top, box.specification) == ("box", "box", "A box.")
    assert [f.path for f in box.sources] == ["lib/leaf.v", "soc/rtl/box.sv"]
    assert ([f.path for f in box.includes], box.include_dirs) == (["soc/inc/w.svh"], ("soc/inc",))
    assert box.defines == (("FAST", "1"), ("W", "5"))
    assert box.parameters == ()


def test_parameters_of_the_target_are_those_of_the_design(project: Path) -> None:
    core = project / "lib" / "leaf.core"
    parameters = "parameters:\n  W: {datatype: int, paramtype: vlogparam, default: 2}\n" \
                 "  N: {datatype: str, paramtype: vlogparam, default: x}\n"  # fmt: skip
    core.write_text(LEAF_CORE.replace("toplevel: leaf", "toplevel: leaf\n    parameters: [W=6, N]") + parameters)
    leaf = read(core)["leaf"]
    assert isinstance(leaf, Design) and leaf.parameters == (("N", '"x"'), ("W", "6"))


def test_one_core_finds_what_it_depends_on_below_the_folder_with_fusesoc_conf(project: Path) -> None:
    core = project / "soc" / "box.core"
    error = refusal(core)
    assert error.reason == reasons.UNREADABLE
    assert str(error).startswith(
        f"{core}: depends on acme:lib:leaf:1.0 or later, which no core file below {project}/soc provides"
    )
    write(project / "fusesoc.conf", "[main]\n")
    assert isinstance(read(core)["box"], Design)


def test_versions_count(project: Path) -> None:
    core = write(project / "soc" / "box.core", BOX_CORE.replace(":1.0", ":2.0"))
    error = read(project)["box"]
    assert isinstance(error, DesignError) and str(error).startswith(f"{core}: depends on acme:lib:leaf:2.0 or later")
    assert "(but acme:lib:leaf:1.2)" in str(error)


def test_a_core_without_a_top_module_is_read_when_it_is_named(project: Path) -> None:
    core = write(project / "lib" / "leaf.core", LEAF_CORE.replace("    toplevel: leaf\n", ""))
    assert list(read(project)) == ["box"]
    leaf = read(core)["leaf"]
    assert isinstance(leaf, Design) and leaf.top == "leaf"


def test_nothing_is_run_and_nothing_is_fetched(project: Path) -> None:
    mark = project / "was_run"
    script = write(project / "gen" / "gen.sh", f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o755)
    write(
        project / "gen" / "gen.core",
        "CAPI=2:\nname: acme:gen:gen:0\ngenerators:\n  g: {command: gen.sh}\n"
        "generate:\n  one: {generator: g}\nscripts:\n  s: {cmd: [./gen.sh]}\n"
        "targets:\n  default: {generate: [one], toplevel: made}\n",
    )
    write(project / "far" / "far.core", "CAPI=2:\nname: acme:far:far:0\nprovider: {name: git, repo: nowhere}\n"
          "filesets: {rtl: {files: [far.v], file_type: verilogSource}}\n"
          "targets: {default: {filesets: [rtl], toplevel: far}}\n")  # fmt: skip
    write(
        project / "lib" / "leaf.core",
        LEAF_CORE + "    hooks: {pre_build: [s]}\nscripts:\n  s: {cmd: [sh, ../gen/gen.sh]}\n",
    )
    found = read(project)
    generated, far = found["gen"], found["far"]
    assert isinstance(generated, DesignError) and "generator g, which is not run here" in str(generated)
    assert isinstance(far, DesignError) and "fetched (git), and nothing is fetched here" in str(far)
    assert isinstance(found["leaf"], Design)  # a hook changes no RTL
    assert not mark.exists()


def test_hidden_and_ignored_folders_hold_no_cores(project: Path) -> None:
    write(project / ".old" / "leaf.core", LEAF_CORE)
    write(project / "build" / "leaf.core", LEAF_CORE)
    write(project / "build" / "FUSESOC_IGNORE", "")
    assert set(read(project)) == {"box", "leaf"}


def test_the_same_core_twice_is_told(project: Path) -> None:
    twin = write(project / "twin" / "leaf.core", LEAF_CORE)
    candidates = {c.place: c for c in reader(str(project), "fusesoc")[0]()}
    with pytest.raises(DesignError) as error:
        candidates[str(twin)].gather()
    assert error.value.reason == reasons.NAME_TAKEN and str(project / "lib" / "leaf.core") in str(error.value)


def test_files_that_are_not_there_and_vhdl_are_named(project: Path) -> None:
    core = project / "lib" / "leaf.core"
    core.write_text(LEAF_CORE.replace("[leaf.v]", "[leaf.v, gone.v]"))
    assert "names 'gone.v', which is not there" in str(refusal(core))
    core.write_text(LEAF_CORE.replace("[leaf.v]", "[leaf.vhd]").replace("verilogSource", "vhdlSource-2008"))
    assert refusal(core).reason == reasons.VHDL


def test_bad_core_files_are_refused_each_by_itself(project: Path) -> None:
    cases = [
        ("CAPI=1\n[main]\n", ":1: CAPI1"),
        ("name: x\n", ":1: not a FuseSoC core file"),
        ("", ":1: not a FuseSoC core file"),
        ("CAPI=2:\nname: ::x:1\nfilesets: {rtl: [\n", ":3: "),
        ("CAPI=2:\nname: ::x:1\ntargets: 3\n", "targets"),
        ("CAPI=2:\n- a\n", "not a core file"),
        ("CAPI=2:\n", "not a core file"),
        ("CAPI=2:\nname: 'a b c'\n", "Illegal character in core name"),
        ("CAPI=2:\nname: ::x:1\nfilesets: {rtl: {files: ['a ? (']}}\n", "not a core file"),
        ("CAPI=2:\nname: ::x:1\ndescription: *nowhere\n", "undefined alias"),
        ("CAPI=2:\nname: ::x:1\ntargets: {default: {filesets: [none], toplevel: x}}\n", "none"),
    ]
    files = [write(project / f"bad{i}.core", text.replace("::x", f"::x{i}")) for i, (text, _) in enumerate(cases)]
    found = {c.place: c for c in reader(str(project), "fusesoc")[0]()}
    assert len(found) == len(cases) + 2
    for file, (_, said) in zip(files, cases, strict=True):
        with pytest.raises(DesignError) as error:
            found[str(file)].gather()
        message = str(error.value)
        assert message.startswith(str(file)) and said in message and message.isprintable()
        assert error.value.reason == reasons.MALFORMED


@pytest.mark.parametrize("key", ["description", "x_unused"])
def test_a_core_whose_yaml_repeats_itself_is_refused_by_itself(project: Path, key: str) -> None:
    levels = "".join(f"  k{i}: &k{i} [{', '.join([f'*k{i - 1}'] * 9)}]\n" for i in range(1, 10))
    write(project / "bad.core", f"CAPI=2:\nname: ::x:1\n{key}:\n  k0: &k0 [a]\n{levels}")
    found = read(project)
    error = found["bad"]
    assert isinstance(error, DesignError) and error.reason == reasons.MALFORMED
    assert "/bad.core:10: YAML of more than 200,000 values" in str(error)
    assert isinstance(found["leaf"], Design)  # which has an anchor and an alias, too


def test_a_core_whose_yaml_holds_itself_is_refused(project: Path) -> None:
    core = write(project / "bad.core", "CAPI=2:\nname: ::x:1\nx: &x\n  - [*x]\n")
    assert "/bad.core:4: the alias 'x' lies in what it repeats" in str(refusal(core))


def test_reading_core_files_without_end_ends(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llm4cov_assets.ingest.formats.fusesoc.CPU_S", 1)
    monkeypatch.setattr("llm4cov_assets.ingest.formats.fusesoc.CPU_S_A_CORE", 0)
    for i in range(60):
        write(project / f"long{i}.core", f"CAPI=2:\nname: ::long{i}:1\nx: [{'a, ' * 90_000}]\n")
    with pytest.raises(UserError, match="more than 1 s") as error:
        read(project)
    assert str(error.value).isprintable()


def test_a_folder_without_cores_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no core files"):
        read(tmp_path)
    with pytest.raises(UserError, match="no such file"):
        read(tmp_path / "none.core")


def test_cores_of_real_packages_import_with_their_tops() -> None:
    serv = Path(pytest.importorskip("pythondata_cpu_serv").__file__).parent / "verilog"
    picorv32 = Path(pytest.importorskip("pythondata_cpu_picorv32").__file__).parent / "verilog"
    found = read(serv)
    assert {n: d.top for n, d in found.items() if isinstance(d, Design)} == {
        "serv": "serv_rf_top", "servant": "servant", "serving": "serving",
    }  # fmt: skip
    core = read(picorv32 / "picorv32.core")["picorv32"]
    assert isinstance(core, Design) and core.top == "picorv32_axi"


@pytest.mark.slow
def test_ibex_lacks_what_its_generator_makes_and_the_message_says_what_to_do() -> None:
    ibex = Path(pytest.importorskip("pythondata_cpu_ibex").__file__).parent / "system_verilog"
    found = read(ibex / "ibex_icache.core")
    # the package lies in no project of its own, so that everything beside the core file counts
    assert isinstance(found["ibex_icache"], Design) and found["ibex_icache"].top == "ibex_icache"
    error = refusal(ibex / "ibex_top.core")
    assert "generator primgen, which is not run here" in str(error) and ".vc" in str(error)
