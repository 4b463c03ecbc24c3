"""Reading designs from files and folders, and what is said when they cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import sim.trial
from sim import reasons
from sim.design import DesignError
from sim.load import load_design
from sim.violations import violations

LEAF = "module leaf(input logic a, output logic y); assign y = ~a; endmodule\n"
TOP = "module box(input logic a, output logic y); leaf u_leaf(.a, .y); endmodule\n"


def folder(tmp_path: Path, **files: str) -> Path:
    """A folder `box` with files; `__` in a name stands for a folder, the last `_` for the dot."""
    for name, text in files.items():
        path = tmp_path / "box" / Path(*name.split("__"))
        path = path.with_name(".".join(path.name.rsplit("_", 1)))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "box"


def refusal(path: Path, **options: object) -> str:
    with pytest.raises(DesignError) as error:
        load_design(path, **options)  # type: ignore[arg-type]
    message = str(error.value)
    assert "\n" not in message
    return message


def test_a_file_is_a_design_named_after_it(tmp_path: Path) -> None:
    path = tmp_path / "leaf.sv"
    path.write_text(LEAF)
    design = load_design(path)
    assert (design.name, design.top, [s.path for s in design.sources]) == ("leaf", "leaf", ["leaf.sv"])


def test_a_folder_is_searched_for_sources_headers_and_text(tmp_path: Path) -> None:
    path = folder(
        tmp_path,
        rtl__box_sv='`include "w.svh"\n' + TOP,
        rtl__deep__leaf_v=LEAF,
        inc__w_svh="`define W 3\n",
        README_md="It inverts.\n",
    )
    design = load_design(path)
    assert (design.name, design.top) == ("box", "box")
    assert {s.path for s in design.sources} == {"rtl/box.sv", "rtl/deep/leaf.v"}
    assert [s.path for s in design.includes] == ["inc/w.svh"]
    assert design.include_dirs == ("inc",)
    assert design.specification == "It inverts."


def test_packages_come_before_their_users(tmp_path: Path) -> None:
    path = folder(
        tmp_path,
        a_sv="module box(output logic [b_pkg::W-1:0] y); assign y = b_pkg::K; endmodule\n",
        b_sv="package b_pkg; import c_pkg::*; localparam W = V; localparam K = 1; endpackage\n",
        c_sv="package c_pkg; localparam V = 4; endpackage\n",
    )
    assert [s.path for s in load_design(path).sources] == ["c.sv", "b.sv", "a.sv"]


def test_design_toml_gives_what_the_files_do_not_say(tmp_path: Path) -> None:
    path = folder(
        tmp_path,
        box_sv="module box #(parameter W = 1)(input logic [W-1:0] c); endmodule\n",
        tb_sv="module tb; box u_box(.c(1'b0)); endmodule\n",
        notes_txt="not the specification\n",
        spec_md="The specification.\n",
        design_toml='name = "crate"\nsources = ["box.sv"]\nspec = "spec.md"\nclock = "c"\nreset = "!r"\n'
        "[defines]\nFAST = 1\n[parameters]\nW = 8\n[targets]\nline = 0.9\n",
    )
    design = load_design(path)
    assert (design.name, design.top, design.clock, design.reset) == ("crate", "box", "c", "!r")
    assert design.defines == (("FAST", "1"),)
    assert design.parameters == (("W", "8"),)
    assert design.targets == (("line", 0.9),)
    assert design.specification == "The specification.\n"


def test_arguments_win_over_design_toml(tmp_path: Path) -> None:
    path = folder(tmp_path, box_sv=TOP, leaf_sv=LEAF, design_toml='top = "box"\n[defines]\nA = 1\n')
    design = load_design(path, name="mine", top="leaf", defines={"A": "2"})
    assert (design.name, design.top, design.defines) == ("mine", "leaf", (("A", "2"),))


TESTBENCH = "module tb; logic a, y; leaf dut(.a, .y); endmodule\n"


def test_a_root_without_ports_is_a_testbench_and_not_the_top(tmp_path: Path) -> None:
    found = folder(tmp_path, tb_sv="module tb; logic a; endmodule\n", leaf_sv=LEAF)
    assert load_design(found).top == "leaf"


def test_a_testbench_around_the_design_is_refused_naming_the_design(tmp_path: Path) -> None:
    found = folder(tmp_path, tb_sv=TESTBENCH, leaf_sv=LEAF)
    message = refusal(found)
    assert "tb has no ports" in message
    assert "--top: leaf" in message
    assert load_design(found, top="leaf").top == "leaf"
    assert "no ports" in refusal(found, top="tb")


def test_the_module_named_like_the_folder_is_the_top_among_several(tmp_path: Path) -> None:
    path = folder(tmp_path, box_sv=TOP, leaf_sv=LEAF, other_sv="module other; endmodule\n")
    assert load_design(path).top == "box"


def test_a_single_file_brings_the_headers_it_includes(tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "deep.vh").write_text("`define N 2\n")
    (tmp_path / "near.vh").write_text('`include "deep.vh"\n')
    (tmp_path / "unused.vh").write_text("")
    (tmp_path / "m.v").write_text('`include "near.vh"\nmodule m(output [`N-1:0] y); assign y = 0; endmodule\n')
    design = load_design(tmp_path / "m.v", include_dirs=[tmp_path / "inc"])
    assert [f.path for f in design.includes] == ["inc/deep.vh", "near.vh"]
    assert design.include_dirs == ("inc",)


def test_line_ends_marks_and_letters_of_other_systems_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "leaf.sv"
    path.write_bytes(b"\xef\xbb\xbf// Gr\xc3\xb6\xc3\x9fe, and latin-1: \xe4\r\n" + LEAF.replace("\n", "\r\n").encode())
    assert load_design(path).top == "leaf"


def test_errors_name_the_place_and_the_mend(tmp_path: Path) -> None:
    assert "no such file or folder" in refusal(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    assert "no RTL found" in refusal(tmp_path / "empty")
    (tmp_path / "notes.txt").write_text("hello")
    assert "name a *.v or *.sv file" in refusal(tmp_path / "notes.txt")

    broken = tmp_path / "broken.sv"
    broken.write_text("module broken(input a);\n  assign = a;\nendmodule\n")
    assert refusal(broken).startswith(f"{broken}:2: expected expression in `assign = a;`")

    lonely = tmp_path / "lonely.sv"
    lonely.write_text(TOP)
    message = refusal(lonely)
    assert message.startswith(f"{lonely}:1: unknown module 'leaf'") and "add the file that defines it" in message

    header = tmp_path / "header.v"
    header.write_text('`include "missing.vh"\nmodule header; endmodule\n')
    assert "header.v:1:" in refusal(header) and "--include" in refusal(header)

    several = tmp_path / "several.sv"
    several.write_text("module a(input logic x); endmodule\nmodule b(input logic x); endmodule\n")
    assert "(a, b); choose one with --top" in refusal(several)
    assert "no module 'c'" in refusal(several, top="c")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name = \n", "not valid TOML"),
        ('tpo = "box"\n', "unknown key 'tpo'; known: name, top"),
        ("top = 3\n", "top has the wrong type"),
        ('sources = ["*.vhd"]\n', "no such file is there"),
        ('spec = "none.md"\n', "which is not a file"),
        ('spec = "/etc/hostname"\n', "which is not a file in there"),
        ('spec = "../box/leaf.sv"\n', "which is not a file in there"),
        ('sources = ["/etc/*"]\n', "name files below the design's folder"),
        ('sources = ["../*"]\n', "name files below the design's folder"),
        ('sources = [""]\n', "name files below the design's folder"),
        ("sources = [3]\n", "name files below the design's folder"),
        ("include_dirs = [3]\n", "which is not a folder"),
        ("[parameters]\nW = " + "9" * 5000 + "\n", "not valid TOML"),
        ("name = " + "[" * 5000 + "\n", "nested too deeply"),
        ("[targets]\nline = nan\n", "targets.line must be a number between 0 and 1"),
        ("[targets]\nline = 90\n", "targets.line must be a number between 0 and 1"),
        ('[targets]\nline = "high"\n', "targets.line must be a number"),
    ],
)
def test_a_bad_design_toml_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = folder(tmp_path, leaf_sv=LEAF, design_toml=text)
    message = refusal(path)
    assert "design.toml" in message and complaint in message


def test_real_designs_load() -> None:
    import pythondata_cpu_picorv32
    import pythondata_cpu_serv

    picorv32 = load_design(Path(pythondata_cpu_picorv32.data_location) / "picorv32.v")
    assert (picorv32.name, picorv32.top) == ("picorv32", "picorv32")
    rtl = Path(pythondata_cpu_serv.data_location) / "rtl"
    assert "--top" in refusal(rtl)
    assert load_design(rtl, top="serv_rf_top").top == "serv_rf_top"


@pytest.mark.parametrize("path", ["/etc/hostname", "../../../../../../../../../../etc/hostname"])
def test_an_include_that_leads_out_of_the_design_is_refused(tmp_path: Path, path: str) -> None:
    top = folder(tmp_path, rtl__box_sv=f'`include "{path}"\n' + LEAF)
    for place in (top, top / "rtl" / "box.sv"):
        assert "box.sv:1: " in (message := refusal(place)) and "--include" in message


def test_an_include_that_stays_inside_is_fine(tmp_path: Path) -> None:
    top = folder(tmp_path, rtl__box_sv='`include "../inc/w.svh"\n' + LEAF, inc__w_svh="`define W 3\n")
    assert load_design(top).top == "leaf"


@pytest.mark.parametrize("name", ["-box.sv", "+box.sv", '"box".sv', "b\nox.sv", "b\\ox.sv"])
def test_a_file_name_that_the_simulator_would_misread_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(LEAF)
    assert "rename it" in refusal(tmp_path)
    assert "rename it" in refusal(tmp_path / name)


@pytest.mark.parametrize(
    "content", ["module a(" + "(" * 5000 + ");\n", '`include "\x00\x1b[2J"\n', "\x01\x1b[2J\x00" * 100 + "\n"]
)
def test_a_message_quotes_no_endless_line_and_no_control_characters(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.sv").write_text(content)
    message = refusal(tmp_path / "a.sv")
    assert len(message) < 500 and message.isprintable()


@pytest.mark.parametrize("name", [b"l\xe9", b"b\nox"])
def test_a_folder_whose_name_is_no_text_is_refused(tmp_path: Path, name: bytes) -> None:
    place = tmp_path / os.fsdecode(name)
    place.mkdir()
    (place / "leaf.sv").write_text(LEAF)
    assert "rename it" in refusal(place)
    (place / "design.toml").write_text('name = "leaf"\n')
    assert load_design(place).name == "leaf"


def test_settings_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = folder(tmp_path, leaf_sv=LEAF)
    (path / "design.toml").write_bytes(b'name = "\xe9"\n')
    assert "design.toml: not UTF-8 text (byte 8)" in refusal(path)


@pytest.mark.slow
def test_a_design_that_breaks_the_parser_is_refused_and_others_of_that_look_are_read(tmp_path: Path) -> None:
    path = tmp_path / "leaf.sv"
    for terms, readable in ((15_000, True), (200_000, False)):
        path.write_text("module leaf(input a, output b); assign b = a" + "+a" * terms + "; endmodule\n")
        if readable:
            assert load_design(path).top == "leaf"
        else:
            assert "break up long expressions" in refusal(path)


def test_the_current_folder_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = '`ifndef W\n`include "../inc/v.svh"\n`define W `V\n`endif\n'
    path = folder(
        tmp_path,
        rtl__box_sv='`include "w.svh"\nmodule box(output logic [`W-1:0] y); assign y = 0; endmodule\n',
        inc__w_svh=header,
        inc__v_svh="`define V 3\n",
    )
    there = load_design(path)
    monkeypatch.chdir(path)  # where a person stands who imports `.`
    assert load_design(Path(".")) == there
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "v.svh").write_text("`define V 5\n")
    monkeypatch.chdir(tmp_path)  # folders of the same names that are no part of the design
    assert load_design(path) == there
    testbench = f'`include "{tmp_path / "inc" / "v.svh"}"\n`include "w.svh"\nmodule tb; box u_box(.y()); endmodule\n'
    assert [v.line for v in violations(testbench, there)] == [1]


@pytest.mark.parametrize("special", ["device", "fifo"])
@pytest.mark.parametrize("place", ["source", "header", "angle brackets"])
def test_a_device_or_fifo_that_is_included_by_an_absolute_path_is_refused_unread(
    tmp_path: Path, special: str, place: str
) -> None:
    named = "/dev/zero" if special == "device" else str(tmp_path / "fifo")
    os.mkfifo(tmp_path / "fifo")
    directive = f"// before\n`include <{named}>\n" if place == "angle brackets" else f'// before\n`include "{named}"\n'
    if place == "header":
        path = folder(tmp_path, leaf_sv='`include "w.svh"\n' + LEAF, w_svh=directive)
        file = "w.svh"
    else:
        path = folder(tmp_path, leaf_sv=directive + LEAF)
        file = "leaf.sv"
    message = refusal(path)
    assert f"{path}/{file}:2: {named!r} lies outside the design" in message


def test_a_fifo_of_the_current_folder_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder(tmp_path, rtl__leaf_sv='`include "../../w.svh"\n' + LEAF)
    os.mkfifo(tmp_path / "w.svh")
    monkeypatch.chdir(path)
    assert "rtl/leaf.sv:1: '../../w.svh' lies outside the design" in refusal(path)


@pytest.mark.parametrize(
    "text",
    [
        '`define F "FIFO"\n`include `F\n',
        '`define I `include\n`I "FIFO"\n',
        '`define I `inc``lude "FIFO"\n`I\n',
        '`define I(x) `x "FIFO"\n`I(include)\n',
        '`include /* there */ "FIFO"\n',
    ],
)
def test_reading_a_fifo_that_a_macro_includes_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sim.trial, "INCLUDE_WALL_S", 1.0)
    os.mkfifo(tmp_path / "fifo")
    path = folder(tmp_path, leaf_sv=text.replace("FIFO", str(tmp_path / "fifo")) + LEAF)
    message = refusal(path)
    assert message.startswith(f"{path}/leaf.sv:") and "include ordinary files of the design alone" in message


def test_a_device_that_a_macro_includes_ends_at_the_limit_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sim.trial, "MEMORY_BYTES", 1 << 29)
    path = folder(tmp_path, leaf_sv='`define F "/dev/zero"\n`include `F\n' + LEAF)
    assert f"{path}/leaf.sv:2: reading it takes the parser more than" in refusal(path)


def test_a_file_elsewhere_that_a_macro_includes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w.svh").write_text("`define W 3\n")
    path = folder(tmp_path, leaf_sv=f'`define F "{tmp_path / "w.svh"}"\n`include `F\n' + LEAF)
    assert f"leaf.sv:2: '{tmp_path / 'w.svh'}' lies outside the design" in refusal(path)


def test_an_include_in_a_comment_or_a_string_is_none(tmp_path: Path) -> None:
    text = '// `include "/dev/zero"\n/* `include "/dev/zero"\n*/ `define S "`include </dev/zero>"\n'
    assert load_design(folder(tmp_path, leaf_sv=text + LEAF)).top == "leaf"


def test_a_header_that_a_macro_names_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sim.trial, "MEMORY_BYTES", 1 << 29)  # enough for what is no device
    path = folder(tmp_path, leaf_sv='`define F "w.svh"\n`include `F\n' + LEAF, w_svh="`define W 3\n")
    assert [f.path for f in load_design(path).includes] == ["w.svh"]


@pytest.mark.parametrize("kind", ["defines", "parameters"])
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("X", '1\n`include "/dev/zero"', "line break"),
        ("X", "1\r2", "line break"),
        ("X", "1\x1b", "control character"),
        ("X Y", "1", "no name that Verilog can use"),
        ("", "1", "no name that Verilog can use"),
        ("X\n", "1", "no name that Verilog can use"),
        ("X", "inf", "no number"),
    ],
)
def test_macros_and_parameters_are_one_name_and_one_line(
    tmp_path: Path, kind: str, name: str, value: str, said: str
) -> None:
    path = folder(tmp_path, leaf_sv=LEAF)
    with pytest.raises(DesignError, match=said) as error:
        load_design(path, **{kind: {name: value}})  # type: ignore[arg-type]
    assert error.value.reason == reasons.MALFORMED


def test_settings_give_no_lines_of_verilog_either(tmp_path: Path) -> None:
    path = folder(tmp_path, leaf_sv=LEAF, design_toml='defines = {X = "1\\n`include \\"/dev/zero\\""}\n')
    assert "the value of the define X has a line break" in refusal(path)
    (path / "design.toml").write_text("parameters = {P = inf}\n")
    assert "the value of the parameter P is inf" in refusal(path)


def test_the_value_of_a_macro_that_includes_a_device_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sim.trial, "MEMORY_BYTES", 1 << 29)
    path = folder(tmp_path, leaf_sv="`X\n" + LEAF)
    assert "reading it takes the parser more than" in refusal(path, defines={"X": '`include "/dev/zero"'})


def test_a_top_whose_parameter_has_no_value_is_told_so(tmp_path: Path) -> None:
    path = folder(tmp_path, leaf_sv="// one\nmodule leaf #(parameter W = 1, parameter P)(input a); endmodule\n")
    assert f"{path}/leaf.sv:2: the parameter P of leaf has no value; give it one with --param" in refusal(
        path, top="leaf"
    )
    assert load_design(path, top="leaf", parameters={"P": "3"}).parameters == (("P", "3"),)
    (path / "box.sv").write_text("module above #(parameter Q)(input a); leaf #(.P(Q)) u_leaf(.a); endmodule\n")
    assert f"{path}/box.sv:1: the parameter Q of above has no value" in refusal(path)
    assert load_design(path, parameters={"Q": "3"}).top == "above"


def test_a_top_with_an_escaped_name_is_told_so(tmp_path: Path) -> None:
    path = folder(tmp_path, leaf_sv="module \\a.b (input a); endmodule\n")
    assert f"{path}/leaf.sv:1: the escaped module name 'a.b' cannot be that of a top" in refusal(path, top="a.b")


def test_settings_that_are_no_ordinary_file_are_refused(tmp_path: Path) -> None:
    path = folder(tmp_path, leaf_sv=LEAF)
    settings = path / "design.toml"
    for make in (
        lambda: os.mkfifo(settings),
        lambda: settings.symlink_to("/dev/zero"),
        lambda: settings.symlink_to(path / "nothing"),
    ):
        make()
        with pytest.raises(DesignError, match=r"design\.toml: not an ordinary file") as error:
            load_design(path)
        assert error.value.reason == reasons.UNREADABLE
        settings.unlink()
