"""File lists are read as the tools do that they were written for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.formats import filelist, listed, reader
from sim.assembly import assemble
from sim.design import Design, DesignError

LEAF = "module leaf(input logic a, output logic y); assign y = ~a; endmodule\n"
BOX = "module box(input logic a, output logic y); leaf u_leaf(.a, .y); endmodule\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with box, which needs leaf, and a current folder elsewhere."""
    write(tmp_path / "p" / "rtl" / "box.sv", BOX)
    write(tmp_path / "p" / "rtl" / "leaf.v", LEAF)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "p"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def design(path: Path) -> Design:
    """The one design of a list."""
    candidates, count = reader(str(path))
    [candidate] = candidates()
    assert count == 1 and candidate.name == path.stem
    return assemble(candidate.gather())


def read(project: Path, text: str, name: str = "soc.f") -> Design:
    return design(write(project / name, text))


def paths(found: Design) -> list[str]:
    return [f.path for f in found.sources]


def refusal(project: Path, text: str) -> str:
    with pytest.raises(DesignError) as error:
        read(project, text)
    return str(error.value)


def test_a_list_is_one_design_named_after_it_whose_root_is_the_folder_that_holds_its_files(project: Path) -> None:
    found = read(project, "rtl/box.sv\nrtl/leaf.v\n")
    assert (found.name, found.top, paths(found)) == ("soc", "box", ["box.sv", "leaf.v"])
    assert read(project / "lists", "../rtl/leaf.v ../rtl/box.sv").rtl_id != found.rtl_id  # the order is kept


def test_the_identity_of_a_design_does_not_depend_on_where_it_lies(project: Path, tmp_path: Path) -> None:
    text = "+incdir+inc+/usr/include\nrtl/box.sv\nrtl/leaf.v\nrtl/user.sv"
    for place in (project, tmp_path / "deep" / "copy"):
        write(place / "inc" / "w.svh", "`define W 2\n")
        write(place / "rtl" / "user.sv", '`include "w.svh"\n')
        write(place / "rtl" / "box.sv", BOX)
        write(place / "rtl" / "leaf.v", LEAF)
    found, moved = read(project, text), read(tmp_path / "deep" / "copy", text)
    assert found == moved and found.rtl_id == moved.rtl_id
    assert ([f.path for f in found.includes], found.include_dirs) == (["inc/w.svh"], ("inc",))


@pytest.mark.parametrize(
    "text",
    [
        "// first\nrtl/box.sv // a comment\n# another\nrtl/leaf.v # and one\n",
        "/* a\n comment */ rtl/box.sv /* x */ rtl/leaf.v",
        "\"rtl/box.sv\"\r\n'rtl/leaf.v'\r\n",
        "rtl/box.sv \\\nrtl/leaf.v \\\n",
        "\ufeffrtl/box.sv rtl/leaf.v",
        "$RTL/box.sv ${RTL}/leaf.v",
        "$(RTL)/box.sv\n$(RTL)/./leaf.v",
        "rtl//box.sv rtl/../rtl/leaf.v rtl/leaf.v",
        "-sverilog +v2k +lint=all -timescale 1ns/1ps -full64 rtl/box.sv -work lib --Mdir out rtl/leaf.v +nospecify",
        "--cc --exe --Mdir . -CFLAGS '-O2 -g' --timing --x-assign fast rtl/box.sv rtl/leaf.v sim/main.cpp",
        "rtl/box.sv rtl/leaf.v sim/main.cpp constraints.xdc",
    ],
)
def test_ways_to_write_the_same_list(project: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("RTL", str(project / "rtl"))
    write(project / "sim" / "main.cpp", "int main() {}\n")
    write(project / "constraints.xdc", "create_clock\n")
    found = read(project, text)
    assert (paths(found), found.top) == (["box.sv", "leaf.v"], "box")


def test_paths_with_spaces_are_quoted_or_escaped(project: Path) -> None:
    write(project / "my rtl" / "leaf.v", LEAF)
    for text in ('rtl/box.sv "my rtl/leaf.v"', r"rtl/box.sv my\ rtl/leaf.v"):
        assert paths(read(project, text)) == ["rtl/box.sv", "my rtl/leaf.v"]


def test_macros_parameters_and_top_are_taken_over(project: Path) -> None:
    write(project / "rtl" / "wide.sv", "module wide #(parameter W = 1)(input logic [W-1:0] a); endmodule\n")
    texts = [
        "+define+A=1+B -DC=x -D D -top wide -GW=8 rtl/wide.sv rtl/leaf.v",
        "-define A=1 +define+B +define+C=x+D --top-module wide -pvalue+wide.W=8 rtl/wide.sv rtl/leaf.v",
        "--top wide -defparam wide.W=8 rtl/wide.sv +define+A=1 +define+B -D C=x +define+D rtl/leaf.v -top glbl",
    ]
    for text in texts:
        found = read(project, text)
        assert found.defines == (("A", "1"), ("B", ""), ("C", "x"), ("D", ""))
        assert (found.top, found.parameters) == ("wide", (("W", "8"),))


@pytest.mark.parametrize("switch", ["+incdir+none+inc", "-Iinc", "-I inc", "-incdir inc", "--include-directory inc"])
def test_included_files_are_found_and_belong_to_the_design(project: Path, switch: str) -> None:
    write(project / "inc" / "a.svh", '`include "deep/b.svh"\n')
    write(project / "inc" / "deep" / "b.svh", "`define NOT(x) ~x\n")
    write(project / "inc" / "unused.svh", "")
    write(project / "rtl" / "leaf.v", '`include "a.svh"\n' + LEAF.replace("~a", "`NOT(a)"))
    found = read(project, f"{switch} rtl/box.sv rtl/leaf.v")
    assert ([f.path for f in found.includes], found.include_dirs) == (["inc/a.svh", "inc/deep/b.svh"], ("inc",))


def test_lists_in_lists(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project / "ip" / "leaf" / "leaf.v", LEAF)
    own = write(project / "ip" / "leaf" / "own.f", "leaf.v")
    write(project / "ip" / "leaf" / "first.f", "ip/leaf/leaf.v")
    for text in ("-F ip/leaf/own.f rtl/box.sv", "-f ip/leaf/own.f rtl/box.sv", "-f ip/leaf/first.f\nrtl/box.sv"):
        assert paths(read(project, text)) == ["ip/leaf/leaf.v", "rtl/box.sv"]
    assert "there is no file 'ip/leaf/leaf.v'" in refusal(project, "-F ip/leaf/first.f rtl/box.sv")
    monkeypatch.chdir(project)  # where a tool would be started
    own.write_text("ip/leaf/leaf.v")
    assert paths(read(project / "lists", "-f ip/leaf/own.f\nrtl/box.sv")) == ["ip/leaf/leaf.v", "rtl/box.sv"]


def test_library_modules_are_taken_where_they_are_missing(project: Path) -> None:
    write(project / "lib" / "low.v", "module low(input logic a, output logic y); assign y = a; endmodule\n")
    write(project / "lib" / "leaf.sv", LEAF.replace("assign y = ~a;", "low u_low(.a, .y);"))
    write(project / "lib" / "unused.v", "module unused(input logic a); endmodule\n")
    assert paths(read(project, "rtl/box.sv -y lib +libext+.v+.sv")) == ["rtl/box.sv", "lib/leaf.sv", "lib/low.v"]
    assert paths(read(project, "rtl/box.sv rtl/leaf.v -y lib")) == ["box.sv", "leaf.v"]
    assert "unknown module 'leaf'" in refusal(project, "rtl/box.sv -y lib +libext+.v")
    cells = write(project / "cells.v", LEAF + "module other(input logic a); endmodule\n")
    found = read(project, f"rtl/box.sv -v {cells}")
    assert (paths(found), found.top) == (["rtl/box.sv", "cells.v"], "box")  # other is a root too, but of the library


def test_a_text_beside_the_list_is_the_specification(project: Path) -> None:
    write(project / "soc.md", "It inverts.\n")
    assert read(project, "rtl/box.sv rtl/leaf.v").specification == "It inverts.\n"


def test_vhdl_is_named_where_it_is_missed(project: Path) -> None:
    write(project / "rtl" / "leaf.vhd", "entity leaf is end;\n")
    assert "is it in leaf.vhd? VHDL is not read" in refusal(project, "rtl/box.sv rtl/leaf.vhd")


def test_the_lists_at_the_top_of_a_folder_are_designs_unless_others_read_them(project: Path) -> None:
    write(project / "box.f", "-f common.f\nrtl/box.sv")
    write(project / "common.f", "rtl/leaf.v")
    write(project / "leaf.f", "rtl/leaf.v")
    candidates, count = reader(str(project), "filelist")
    assert [c.name for c in candidates()] == ["box", "leaf"] and count == 2
    with pytest.raises(UserError, match="no file list"):
        reader(str(project / "rtl"), "filelist")


def test_messages_name_list_line_and_mend(project: Path) -> None:
    start = f"{project}/soc.f"
    message = refusal(project, "rtl/box.sv\n\nrtl/none.v none2.v\n-f none.f\n")
    assert message.startswith(f"{start}:3: there is no file 'rtl/none.v'; it is looked for below {project} and ")
    assert message.endswith("(and 2 more are missing)")
    assert refusal(project, "rtl/*.sv").startswith(f"{start}:1: there is no file 'rtl/*.sv'; wildcards")
    assert "write paths with /" in refusal(project, r"rtl\box.sv")
    assert "if it is the value of -strange, leave both out" in refusal(project, "-strange value rtl/box.sv rtl/leaf.v")
    message = refusal(project, "rtl/box.sv /* a\n*/\n$(NOT_SET_ANYWHERE)/x.v")
    assert message.startswith(f"{start}:3: the environment has no variable NOT_SET_ANYWHERE; set it")
    write(project / "inner.f", "rtl/leaf.v\nrtl/gone.v")
    assert refusal(project, "-f inner.f").startswith(f"{project}/inner.f:2: there is no file 'rtl/gone.v'")


def test_a_hundred_thousand_lines_are_read(project: Path) -> None:
    text = "// nothing\n" * 95_000 + "rtl/leaf.v\n" * 4_999 + "rtl/box.sv\n"
    assert paths(read(project, text)) == ["leaf.v", "box.sv"]


PIECES = st.sampled_from(
    ["-f ", "-F a.f", "-v ", "-y ", "+incdir+", "+define+", "+libext+", "-G", "-top ", "rtl/leaf.v", "rtl/box.sv", ".",
     "/", "//", "/*", "*/", "#", "\\", "\n", "\r\n", " ", '"', "'", "$", "${", "$(HOME)", "${HOME}", "=", "+", "-", "~",
     "\0", "\ufeff", "\x1b", "\ud7ff", "\u2028", "*", "[", "é", "a" * 300]
)  # fmt: skip


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=30).map("".join))
def test_whatever_a_list_holds_it_is_a_design_or_refused_in_one_line(project: Path, text: str) -> None:
    path = project / "any.f"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    [candidate] = reader(str(path))[0]()
    try:
        found = candidate.gather()
    except DesignError as error:
        assert str(error).isprintable() and str(error).startswith(str(project)) and "; " in str(error)
    else:
        assert found.sources and all(".." not in f.path.split("/") for f in found.sources)


def test_a_file_named_again_and_again_is_looked_for_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Path] = []
    monkeypatch.setattr(filelist, "kind", lambda path: looked.append(path) or listed.kind(path))
    found = read(project, "rtl/box.sv\n" * 1_000 + "rtl/leaf.v")
    assert paths(found) == ["box.sv", "leaf.v"]
    assert sum(path.name == "box.sv" for path in looked) == 1


@pytest.mark.parametrize("text", ["rtl/box.sv\n" * 1_000_000, "+incdir" + "+rtl" * 1_000_000, "-f inner.f\n" * 500])
def test_a_list_without_end_is_too_large(project: Path, text: str) -> None:
    write(project / "inner.f", "rtl/leaf.v\n" * 1_000)
    assert "more than 200,000 words" in refusal(project, text)
