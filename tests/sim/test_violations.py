"""What a SystemVerilog testbench is refused for, and what it is not."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sim.checker import Checker
from sim.design import Design, SourceFile
from sim.load import load_design
from sim.sandbox import Plain, kill_tree
from sim.toolchain import ToolError, find_toolchain
from sim.violations import Violation, place, violations
from tests.sim.conftest import COUNTER, design

CORPUS = Path(__file__).resolve().parents[2] / "llm4cov_assets" / "corpus"

PACKAGE = """\
package types;
  typedef enum logic [1:0] {UP, DOWN, XOR, SHIFT} mode_t;
  parameter int WIDTH = 4;
  int seen;
  function automatic logic [3:0] twice(logic [3:0] a); return a << 1; endfunction
endpackage
"""
HEADER = "`define LIMIT 9\n"
CORE = """\
module core (input logic clk, input logic [3:0] d, output logic [3:0] s);
  logic [3:0] deep;
  if (1) begin : g_stage
    logic inner;
    always_ff @(posedge clk) inner <= ^d;
  end
  task poke(input logic [3:0] v); deep = v; endtask
  always_ff @(posedge clk) begin : shift deep <= d; s <= deep; end
endmodule
"""
TOP = """\
`include "limits.svh"
`define IN_SOURCES
module top import types::*; #(parameter W = 4, parameter int K = 2 * W) (
  input logic clk, input logic rst_n, input mode_t mode, input logic [W-1:0] d, output logic [W-1:0] q
);
  logic [3:0] secret;
  event done;
  core u_core (.clk(clk), .d(d[3:0]), .s(secret));
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) q <= 0;
    else if (mode == UP && q < `LIMIT) q <= q + 1;
    else q <= secret + K;
endmodule
"""
SHARED = Design(
    name="top",
    sources=(SourceFile("types.sv", PACKAGE.encode()), SourceFile("core.sv", CORE.encode()),
             SourceFile("top.sv", TOP.encode())),
    includes=(SourceFile("include/limits.svh", HEADER.encode()),),
    include_dirs=("include",),
    top="top",
)  # fmt: skip


@pytest.fixture(scope="module")
def checker(home: Path) -> Iterator[Checker]:
    with Checker(find_toolchain(home).sandbox) as opened:
        yield opened


def bench(*body: str, before: str = "", dut: str = "top dut (.*);") -> str:
    """A testbench of `SHARED` with `body` beside the design's instance."""
    head = "module tb;\n  import types::*;\n  logic clk = 0, rst_n; mode_t mode; logic [3:0] d; wire [3:0] q;\n"
    return before + head + f"  {dut}\n  always #5 clk = ~clk;\n" + "\n".join(body) + "\nendmodule\n"


def initial(*statements: str) -> str:
    return bench("initial begin", *statements, "#10 $finish; end")


# the rule, and a testbench whose offending line begins with /*!*/
ATTACKS: dict[str, tuple[str, str]] = {
    # names that lead into the design
    "reads a register": ("hierarchical", initial('/*!*/ $display("%0d", dut.secret);')),
    "reads an output by its path": ("hierarchical", initial("/*!*/ if (dut.q == 3) $finish;")),
    "writes a register": ("hierarchical", initial("/*!*/ dut.secret = 3;")),
    "writes a register with <=": ("hierarchical", initial("/*!*/ dut.u_core.deep <= 3;")),
    "forces a register": ("hierarchical", initial("/*!*/ force dut.secret = 3;")),
    "releases a register": ("hierarchical", initial("/*!*/ release dut.secret;")),
    "assigns procedurally": ("hierarchical", initial("/*!*/ assign dut.secret = 3;")),
    "deassigns": ("hierarchical", initial("/*!*/ deassign dut.secret;")),
    "drives a net by assign": ("hierarchical", bench("/*!*/ assign dut.u_core.d = 3;")),
    "from the root": ("hierarchical", initial("/*!*/ $root.tb.dut.secret = 1;")),
    "from the testbench's name": ("hierarchical", initial("/*!*/ tb.dut.secret = 1;")),
    "upward from a module of its own": (
        "hierarchical", "module spy;\n/*!*/ initial #1 $display(dut.secret);\nendmodule\n" + bench("spy s();")),
    "upward from a nested module": (
        "hierarchical", bench("module spy;\n/*!*/ initial #1 $display(dut.secret);\nendmodule", "spy s();")),
    "from another root": (
        "hierarchical", bench() + "module other;\n/*!*/ initial #1 tb.dut.secret = 1;\nendmodule\n"),
    "from a class": (
        "hierarchical", bench("class spy;", "task go();", "/*!*/ dut.secret = 1;", "endtask", "endclass",
                              "spy s = new;", "initial s.go();")),
    "from a class that nobody specialises": (
        "hierarchical", bench("class spy #(type T = int);", "task go();", "/*!*/ dut.secret = 1;", "endtask",
                              "endclass")),
    "from a subroutine nobody calls": (
        "hierarchical", bench("function automatic int peek();", "/*!*/ return dut.secret;", "endfunction")),
    "in an event control": ("hierarchical", initial("/*!*/ @(dut.secret);")),
    "in a wait": ("hierarchical", initial("/*!*/ wait (dut.secret == 3);")),
    "in a sensitivity list": ("hierarchical", bench("/*!*/ always @(posedge dut.u_core.clk) ;")),
    "in an assertion": ("hierarchical", bench("/*!*/ assert property (@(posedge clk) dut.secret < 9);")),
    "in a property": (
        "hierarchical", bench("property p;", "/*!*/ @(posedge clk) dut.secret < 9;", "endproperty",
                              "assert property (p);")),
    "in a covergroup": (
        "hierarchical", bench("covergroup cg @(posedge clk);", "/*!*/ coverpoint dut.secret;", "endgroup",
                              "cg c = new;")),
    "in a clocking block": (
        "hierarchical", bench("clocking cb @(posedge clk);", "/*!*/ input s = dut.secret;", "endclocking")),
    "in a constraint": (
        "hierarchical", bench("class c;", "rand int a;", "/*!*/ constraint k { a == dut.secret; }", "endclass",
                              "c o = new;")),
    "in a let": ("hierarchical", bench("/*!*/ let peek = dut.secret;", "initial $display(peek);")),
    "in a checker": (
        "hierarchical", bench("checker chk(input clk);", "/*!*/ assert property (@(posedge clk) dut.secret < 9);",
                              "endchecker", "chk c(clk);")),
    "in the size of a type": ("hierarchical", bench("/*!*/ logic [dut.W-1:0] wide;")),
    "in a parameter": ("hierarchical", bench("/*!*/ localparam int P = dut.K;")),
    "in the type of a variable": ("hierarchical", bench("/*!*/ type(dut.secret) copy;")),
    "in a port connection": (
        "hierarchical", "module spy (input logic [3:0] i); endmodule\n" + bench("/*!*/ spy s (.i(dut.secret));")),
    "in a gate": ("hierarchical", bench("wire w;", "/*!*/ buf (w, dut.u_core.g_stage.inner);")),
    "in an alias": ("hierarchical", bench("wire [3:0] w;", "/*!*/ alias w = dut.u_core.s;")),
    "in an argument of a task": ("hierarchical", initial("/*!*/ $monitor(dut.secret);")),
    "deposits": ("hierarchical", initial("/*!*/ $deposit(dut.secret, 3);")),
    "loads a memory of the design": ("hierarchical", initial('/*!*/ $readmemh("m.hex", dut.secret);')),
    "in a default argument": ("hierarchical", bench("/*!*/ task t(int a = dut.secret); endtask")),
    "in the default of a macro's argument": (
        "hierarchical", "`define P(x = dut.secret) x\n" + initial("/*!*/ d = `P();")),
    "in a package": (
        "hierarchical", "package spy;\n/*!*/ function int f(); return tb.dut.secret; endfunction\nendpackage\n"
        + bench()),
    "in a modport": (
        "hierarchical", "interface spy;\n/*!*/ modport m (input .x(tb.dut.secret));\nendinterface\n"
        + bench("spy s();")),
    "in an extern method": (
        "hierarchical", bench("class c; extern task t(); endclass", "/*!*/ task c::t(); dut.secret = 1; endtask")),
    "in a random sequence": (
        "hierarchical", initial("randsequence(main)", "main: one := 1;", "/*!*/ one: { d = dut.secret; };",
                                "endsequence")),
    "in a stream": ("hierarchical", initial("/*!*/ {>>{dut.secret}} = 3;")),
    "in a condition of generate": ("hierarchical", bench("/*!*/ if (dut.K == 8) initial d = 1;")),
    "in $typename": ("hierarchical", initial("/*!*/ $display($typename(dut.secret));")),
    "by an escaped name of the module": (
        "hierarchical", bench("/*!*/ initial \\dut .secret = 1;", dut="\\top \\dut (.*);")),
    "by a generate block": ("hierarchical", initial("/*!*/ dut.u_core.g_stage.inner = 1;")),
    "inside a generate block of its own": (
        "hierarchical", bench("initial begin", "/*!*/ g[0].u.secret = 1;", "end",
                              dut="for (genvar i = 0; i < 1; i++) begin : g top u (.*); end")),
    "through an array of instances": (
        "hierarchical", bench("initial begin", "/*!*/ dut[0].secret = 1;", "end", dut="top dut [0:0] (.*);")),
    "calls a task of the design": ("hierarchical", initial("/*!*/ dut.u_core.poke(3);")),
    "disables a block of the design": ("hierarchical", initial("/*!*/ disable dut.u_core.shift;")),
    "triggers an event of the design": ("hierarchical", initial("/*!*/ -> dut.done;")),
    "waits for an event of the design": ("hierarchical", initial("/*!*/ @dut.done;")),
    "names what is not there": ("hierarchical", initial("/*!*/ dut.no_such_thing = 1;")),
    "names what the stand-in has": ("hierarchical", initial("/*!*/ dut.\\secret = 1;")),
    "with escaped identifiers": ("hierarchical", initial("/*!*/ \\dut .\\secret = 1;")),
    "with comments inside": ("hierarchical", initial("/*!*/ dut/* */./* */secret = 1;")),
    "over two lines": ("hierarchical", initial("/*!*/ dut", ".secret = 1;")),
    "pasted by a macro": (
        "hierarchical", "`define IN(x) d``ut.x\n" + initial("/*!*/ `IN(secret) = 1;")),
    "macro renames the instance": (
        "hierarchical", "`define u dut\n`define s secret\n" + initial("/*!*/ `u.`s = 1;")),
    "beside an error": ("hierarchical", initial("no_such_thing();", "/*!*/ dut.secret = 1;", "bad = = 3;")),
    "beside a local of the same name": (
        "hierarchical", bench("function int f(); int dut; return dut; endfunction", "/*!*/ initial dut.secret = 1;")),
    "behind a macro of the checker": (
        "hierarchical", initial("`ifdef __slang__", "`else", "/*!*/ dut.secret = 1;", "`endif")),
    "behind a macro of the simulator": (
        "hierarchical", initial("`ifdef VERILATOR", "/*!*/ dut.secret = 1;", "`endif")),
    "behind a macro of the design": (
        "hierarchical", initial("`ifdef IN_SOURCES", "`else", "/*!*/ dut.secret = 1;", "`endif")),
    "switches the design's assertions": ("hierarchical", initial("/*!*/ $assertkill(0, dut);")),
    # other ways to change or double the design
    "bind to the module": ("bind", "module spy; endmodule\n" + bench("/*!*/ bind top spy s();")),
    "bind outside of modules": ("bind", "module spy; endmodule\n/*!*/ bind core spy s();\n" + bench()),
    "bind to the instance": ("bind", "module spy; endmodule\n" + bench("/*!*/ bind tb.dut.u_core spy s();")),
    "defparam": ("defparam", bench("/*!*/ defparam dut.W = 8;")),
    "config": ("config", bench() + "/*!*/ config c; design tb; default liblist work; endconfig\n"),
    "other value by name": ("parameter", bench(dut="/*!*/ top #(.W(8)) dut (.*);")),
    "other value by position": ("parameter", bench(dut="/*!*/ top #(4, 9) dut (.*);")),
    "other value by expression": ("parameter", bench(dut="/*!*/ top #(.K(types::WIDTH + 1)) dut (.*);")),
    "second instance": ("second_instance", bench("/*!*/ top again (.*);")),
    "second instance in a loop": (
        "second_instance", bench(dut="for (genvar i = 0; i < 2; i++)\n/*!*/ top u (.*);")),
    "array of instances": ("second_instance", bench(dut="/*!*/ top dut [1:0] (.*);")),
    "instance of a part": ("design_module", bench("/*!*/ core mine (.clk(clk), .d(d), .s());")),
    "no instance": ("no_instance", "/*!*/ module tb; initial $finish; endmodule\n"),
    "instance that is not generated": ("no_instance", "/*!*/ " + bench(dut="if (0) top dut (.*);")),
    "redefines the top": ("redefinition", "/*!*/ module top; endmodule\n" + bench(dut="top dut ();")),
    "redefines a part": ("redefinition", bench() + "/*!*/ module core; endmodule\n"),
    "redefines a part inside": ("redefinition", bench("/*!*/ module core; endmodule")),
    "redefines by a macro": (
        "redefinition", "`define NAME(a, b) a``b\n" + bench() + "/*!*/ module `NAME(co, re); endmodule\n"),
    "redefines the package": ("redefinition", "/*!*/ package types; endpackage\n" + bench()),
    "redefines as a primitive": (
        "redefinition", bench()
        + "/*!*/ primitive core (o, i);\noutput o; input i; table 0 : 1; endtable endprimitive\n"),
    "declares the top as extern": ("redefinition", "/*!*/ extern module top (input clk);\n" + bench()),
    "writes a variable of the package": ("package_variable", initial("/*!*/ types::seen = 1;")),
    "writes an imported variable": ("package_variable", initial("/*!*/ seen++;")),
    "passes a variable of the package": (
        "package_variable", initial('/*!*/ void\'($value$plusargs("n=%d", types::seen));')),
    # programs, C++ and files
    "runs a program": ("system_task", initial('/*!*/ $system("id");')),
    "runs a program in an expression": ("system_task", initial('/*!*/ if ($system("id") == 0) $finish;')),
    "runs a program by a macro": (
        "system_task", "`define SYS(x) $sys``x\n" + initial('/*!*/ `SYS(tem)("id");')),
    "runs a program by a macro over lines": (
        "system_task", "`define RUN(a) \\\n  $system \\\n  (a)\n" + initial('/*!*/ `RUN("id");')),
    "runs a program where it is left out": (
        "system_task", initial("`ifdef NEVER", '/*!*/ $system("id");', "`endif")),
    "C++ in a statement": ("raw_code", initial('/*!*/ $c("exit(0);");')),
    "C++ in an expression": ("raw_code", initial('/*!*/ d = $c32("1");')),
    "pure C++": ("raw_code", initial('/*!*/ d = $cpure("1");')),
    "C++ by a macro": ("raw_code", "`define J(a, b) a``b\n" + initial('/*!*/ `J($, c)("exit(0);");')),
    "section of C++": ("directive", "/*!*/ `systemc_header\nint x;\n`verilog\n" + bench()),
    "section of C++ by a macro's argument": ("directive", "/*!*/ `define X(a) `a\n`X(systemc_header)\n" + bench()),
    "section of C++ by pasting": ("directive", "/*!*/ `define X(a) `sys``a\n`X(temc_header)\n" + bench()),
    "import from C": ("dpi", bench('/*!*/ import "DPI-C" function int getpid();')),
    "import from C with another name": ("dpi", bench('/*!*/ import "DPI-C" context system = task run(string s);')),
    "import from C where it is left out": (
        "dpi", bench("`ifdef NEVER", '/*!*/ import "DPI-C" function int f();', "`endif")),
    "export to C": ("dpi", bench("function void f(); endfunction", '/*!*/ export "DPI-C" function f;')),
    "user's system task": ("system_task", initial("/*!*/ $my_pli_task(d);")),
    "coverage of the simulator": ("system_task", initial('/*!*/ $set_coverage_db_name("x");')),
    "control of coverage": ("system_task", initial("/*!*/ void'($coverage_control(0, 0, 0, \"\"));")),
    "delays from a file": ("system_task", initial('/*!*/ $sdf_annotate("x.sdf");')),
    "saved state": ("system_task", initial('/*!*/ $restart("x");')),
    "absolute file": ("file", initial("int f;", '/*!*/ f = $fopen("/etc/passwd", "r");')),
    "file above": ("file", initial('/*!*/ $readmemh("../../x.hex", d);')),
    "absolute file in a constant": (
        "file", bench('localparam string P = {"/etc", "/passwd"};', "initial begin", "int f;",
                      '/*!*/ f = $fopen({P, ""}, "r");', "end")),
    "absolute file, escaped": ("file", initial("int f;", '/*!*/ f = $fopen("\\057etc/passwd");')),
    "absolute wave file": ("file", initial('/*!*/ $dumpfile("/tmp/x.vcd");')),
    "includes a file of the machine": ("include", '/*!*/ `include "/etc/passwd"\n' + bench()),
    "includes a file above": ("include", '/*!*/ `include "../secret.svh"\n' + bench()),
    "includes a source of the design": ("include", '/*!*/ `include "core.sv"\n' + bench()),
    "includes what is not there": ("include", '/*!*/ `include "other.svh"\n' + bench()),
    "includes what a macro names": ("include", '`define FILE "/etc/passwd"\n/*!*/ `include `FILE\n' + bench()),
    "includes from a macro": ("include", '/*!*/ `define IN `include "/etc/passwd"\n`IN\n' + bench()),
    # pragmas and directives
    "switches coverage off": ("pragma", bench("/*!*/ /*verilator coverage_off*/")),
    "switches coverage off in a line comment": ("pragma", bench("/*!*/ //  verilator   coverage_off")),
    "switches coverage off, written large": ("pragma", bench("/*!*/ /* Verilator coverage_off */")),
    "switches coverage off in a macro": ("pragma", "/*!*/ `define OFF /*verilator coverage_off*/\n`OFF\n" + bench()),
    "switches coverage off by a macro's argument": (
        "pragma", "/*!*/ `define OFF(x) /*x coverage_off*/\n`OFF(verilator)\n" + bench()),
    "switches coverage off by pasting": (
        "pragma", "/*!*/ `define OFF /``*verilator coverage_off*``/\n`OFF\n" + bench()),
    "makes signals public": ("pragma", bench("/*!*/ logic a /*verilator public_flat_rw*/;")),
    "makes a signal public": ("pragma", bench("/*!*/ logic a /*verilator public*/;")),
    "keeps a module": ("pragma", bench("/*!*/ /*verilator no_inline_module*/")),
    "makes a clock of SystemC": ("pragma", bench("/*!*/ logic a /*verilator sc_clock*/;")),
    "isolates assignments": ("pragma", bench("/*!*/ logic a /*verilator isolate_assignments*/;")),
    "unknown pragma": ("pragma", bench("/*!*/ /*verilator new_in_next_version 3*/")),
    "attribute of the simulator": ("pragma", bench("/*!*/ (* verilator_public *) logic a;")),
    "block of no coverage": ("directive", initial("begin", "/*!*/ `coverage_block_off", "end")),
    "control file inside": ("directive", bench() + "/*!*/ `verilator_config\ncoverage_off\n`verilog\n"),
    "false lines": ("directive", '/*!*/ `line 1 "top.sv" 0\n' + bench()),
    "false lines of the stand-in": ("directive", '/*!*/ `line 1 "stand_in.sv" 0\n' + bench()),
    "asks what compilers answer differently": ("directive", initial("/*!*/ `ifdef __LINE__", "`endif")),
    "lines of a macro": ("directive", '`define N 7\n/*!*/ `line `N "x.sv" 0\n' + bench()),
    "encrypted text": ("directive", bench("/*!*/ `pragma protect begin_protected")),
    "protected text": ("directive", bench("/*!*/ `protected", "`endprotected")),
    "keywords of another language": ("directive", '/*!*/ `begin_keywords "VAMS-2.3"\n`end_keywords\n' + bench()),
    "lone carriage return": ("characters", bench("/*!*/ // comment \r initial $finish;")),
    "null character": ("characters", bench("/*!*/ // \0")),
    "name of the stand-in": ("reserved_name", bench("/*!*/ function void llm4cov_step(); endfunction")),
    "backdoor of UVM": ("reserved_name", initial('/*!*/ uvm_hdl_deposit("tb.dut.secret", 3);')),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_is_refused_at_its_line(name):
    rule, text = ATTACKS[name]
    line = next(i for i, t in enumerate(text.split("\n"), 1) if "/*!*/" in t)
    found = violations(text, SHARED)
    assert (rule, line) in {(v.rule, v.line) for v in found}
    told = next(v for v in found if (v.rule, v.line) == (rule, line))
    assert "\n" not in told.message and "/*!*/" in told.source


def test_lines_count_through_macros_headers_and_false_line_directives():
    text = '`include "limits.svh"\n`line 100 "x.sv" 0\n`define A(x) \\\n  x\n' + initial("`A(", "dut.secret = 1;", ")")
    wanted = next(i for i, t in enumerate(text.split("\n"), 1) if t == "`A(")
    assert ("hierarchical", wanted) in {(v.rule, v.line) for v in violations(text, SHARED)}


def test_place_of_a_violation_follows_line_directives():
    text = '`line 1 "tb/a.sv" 0\npackage mine; endpackage\n`line 5 "tb/b.sv" 0\n\nmodule tb;\n'
    assert [place(text, n) for n in (2, 4, 5)] == [("tb/a.sv", 1), ("tb/b.sv", 5), ("tb/b.sv", 6)]
    assert place("module tb;\nendmodule\n", 2) == ("", 2)


def test_violations_come_by_line_and_tell_what_to_do():
    found = violations(initial("dut.secret = 1;", '$system("id");', "force dut.secret = 1;"), SHARED)
    assert [(v.rule, v.line) for v in found] == [("hierarchical", 7), ("system_task", 8), ("hierarchical", 9)]
    assert found[0] == Violation(
        "hierarchical", 7, "dut.secret lies inside the design; drive and observe the design through its ports",
        "dut.secret = 1;",
    )  # fmt: skip


CLEAN: dict[str, str] = {
    "plain": initial("rst_n = 0; mode = UP; d = 0;", "repeat (3) @(posedge clk);", "rst_n = 1;",
                     'for (int i = 0; i < 20; i++) begin d = $random; @(posedge clk); $display("%0d", q); end'),
    "equal parameters": bench("initial #10 $finish;", dut="top #(.W(types::WIDTH), .K(8)) dut (.*);"),
    "equal parameters by position": bench("initial #10 $finish;", dut="top #(8 / 2) dut (.*);"),
    "parameter left at its value": bench("initial #10 $finish;", dut="top #(.W()) dut (.*);"),
    "waves": initial('$dumpfile("wave.vcd");', "$dumpvars(0, tb);", "$dumpvars(1, tb.dut);", "$dumpvars(0, dut, clk);"),
    "waves of the inside": initial('$dumpfile("wave.vcd");', "$dumpvars(0, dut.u_core);"),
    "own modules and paths into them": (
        "module driver (input clk, output logic [3:0] o);\n  logic [3:0] state = 0;\n"
        "  always @(posedge clk) state <= state + 1;\n  assign o = state;\nendmodule\n"
        + bench("wire [3:0] o;", "driver drv (.clk(clk), .o(o));",
                "initial begin #20 if (tb.drv.state != 0 && $root.tb.drv.state > 0) drv.state = 0; $finish; end")),
    "interface, class and virtual interface": (
        "interface bus (input logic clk);\n  logic [3:0] d;\n  clocking cb @(posedge clk); output d; endclocking\n"
        "endinterface\n"
        "class driver;\n  virtual bus dut;\n  rand bit [3:0] a;\n  constraint c { a < 12; }\n"
        "  function new(virtual bus b); dut = b; endfunction\n"
        "  task go(); repeat (4) begin dut.d = a; @(posedge dut.clk); end endtask\nendclass\n"
        "module tb;\n  logic clk = 0; always #5 clk = ~clk;\n  bus b (clk);\n  wire [3:0] q; driver v;\n"
        "  top dut (.clk(clk), .rst_n(1'b1), .mode(types::UP), .d(b.d), .q(q));\n"
        "  initial begin v = new(b); v.go(); $finish; end\nendmodule\n"),
    "class with a member named as the instance": bench(
        "class item; int secret; endclass", "class env; item dut; function new(); dut = new; endfunction",
        "task go(); dut.secret = 3; this.dut.secret++; endtask", "endclass", "env e;",
        "initial begin e = new; e.go(); e.dut.secret = 4; #10 $finish; end"),
    "parameterised class": bench(
        "class queue_of #(type T = int); T items[$]; function void put(T t); items.push_back(t); endfunction endclass",
        "queue_of #(logic [3:0]) seen = new;", "always @(posedge clk) seen.put(q);", "initial #100 $finish;"),
    "interface port named as the instance": (
        "interface bus; logic d; endinterface\nmodule drv (bus dut); initial dut.d = 1; endmodule\n"
        + bench("bus b();", "drv x (b);", "initial #10 $finish;")),
    "struct named as the instance": bench(
        "function automatic int f(); typedef struct { int secret; } s_t; s_t dut; dut.secret = 2; return dut.secret;",
        "endfunction", "initial begin $display(f()); #10 $finish; end"),
    "own package": "package mine;\n  int count;\n  task automatic bump(); count++; endtask\nendpackage\n"
    + initial("mine::count = 3;", "mine::bump();", "$display(mine::count);"),
    "types, parameters and functions of the design's package": initial(
        "mode = types::XOR;", "d = types::twice(types::WIDTH);", "foreach (d[i]) d[i] = ~d[i];"),
    "header of the design": '`include "limits.svh"\n' + initial("d = `LIMIT;"),
    "macros": "`timescale 1ns / 1ps\n`define CHECK(name, got) \\\n  if (got === 'x) $display(`\"name is x`\"); \\\n"
    "  else $display(\"name``_ok\");\n`define CLK_PERIOD 10\n"
    + initial("`CHECK(q, q)", "#(`CLK_PERIOD) d = 1;", "`ifdef XCELIUM", "$shm_open(\"x\");", "`endif"),
    "forces its own signals": initial("force d = 3;", "#10 release d;"),
    "assertions": bench(
        "property p; @(posedge clk) disable iff (!rst_n) $rose(q[0]) |-> ##1 $stable(rst_n) || $past(d) == d;",
        "endproperty",
        "a_p: assert property (p) else $error(\"bad\");", "initial begin $assertoff; #10 $asserton; $finish; end"),
    "clocking block and program": bench(
        "clocking cb @(posedge clk); default input #1step output #1; input q; output d; endclocking",
        "initial begin repeat (3) @(cb); cb.d <= 3; @(cb) $display(cb.q); $finish; end",
        ),
    "program": bench("initial #100 $finish;", "stim s (.clk(clk), .d(d));")
    + "program automatic stim (input logic clk, output logic [3:0] d);\n"
    "  initial begin repeat (4) begin @(posedge clk); d = $urandom_range(0, 15); end end\nendprogram\n",
    "covergroup": bench(
        "covergroup cg @(posedge clk); option.per_instance = 1;",
        "cp: coverpoint q { bins low = {[0:7]}; bins high = default; }",
        "endgroup", "cg c = new;", "initial begin #100 $display(\"%0.2f\", c.get_coverage()); $finish; end"),
    "harmless comments": "/* verilator lint_off WIDTH */\n// verilator lint_on WIDTH\n// verilator tracing_off\n"
    "// see verilator coverage_off in the manual\n/* a testbench\n// verilator coverage_off is not used\n*/\n"
    + initial('$display("// verilator coverage_off, $system and `line");'),
    "several files put together": '`line 1 "tb/a.sv" 0\npackage mine; int a; endpackage\n`line 1 "tb/b.sv" 0\n'
    + initial("mine::a = 1;"),
    "files of its own": bench(
        "int f; string name;", "initial begin",
        'f = $fopen("out/log.txt", "w"); if (f) begin $fwrite(f, "x"); $fclose(f); end',
        'if (!$value$plusargs("f=%s", name)) name = "in.txt";', 'f = $fopen(name, "r"); $fclose(f);',
        'if ($test$plusargs("v")) $display("%s", $sformatf("%0t", $time)); $finish;', "end"),
    "generate loops": bench(
        "genvar i;", "generate for (i = 0; i < 4; i = i + 1) begin : watch",
        "logic last; always @(posedge clk) last <= q[i]; end endgenerate",
        "initial begin #100 $display(watch[2].last); $finish; end"),
    "tasks, fork and queues": bench(
        "logic [3:0] expected[$]; event go; semaphore s = new(1); mailbox #(int) box = new();",
        "task automatic drive(input logic [3:0] v, input int n = 1);",
        "repeat (n) begin @(negedge clk); d = v; end endtask",
        "initial begin : main fork drive(3); begin @(go); box.put(1); end -> go; join_any disable fork;",
        "expected.push_back(q); #10 $finish; end", "initial begin #1000 $display(\"time-out\"); disable main; end"),
    "non-ASCII comments": "// Prüfstand für den Zähler — Übergänge\n" + initial("// naïve", "d = 1;"),
    "CRLF and byte order mark": "\ufeff" + initial("d = 1;").replace("\n", "\r\n"),
    "Verilog-95": "module t;\n  reg clk, rst_n; reg [1:0] mode; reg [3:0] d; wire [3:0] q;\n"
    "  top u1 (clk, rst_n, types::mode_t'(mode), d, q);\n  initial begin clk = 0; forever #5 clk = !clk; end\n"
    "  initial begin rst_n = 0; #20 rst_n = 1; mode = 2; d = $random % 16; #50 $stop; end\nendmodule\n",
    "virtual methods": bench(
        "virtual class base; pure virtual function int next(); endclass",
        "class up extends base; int n; virtual function int next(); n++; return n; endfunction",
        "function new(); super.new(); endfunction endclass",
        "base b; initial begin up u; u = new; b = u; d = b.next(); #10 $finish; end"),
    "randomize with": bench(
        "class t; rand bit [3:0] a; rand bit b; constraint k { b -> a > 3; } endclass", "t o = new;",
        "initial begin repeat (3) begin void'(o.randomize() with { a < 9; }); d = o.a; @(posedge clk); end",
        "if (!std::randomize(d) ) $display(\"no\"); $finish; end"),
    "cell defines and net types": "`default_nettype none\n`celldefine\n`endcelldefine\n" + initial("d = 1;").replace(
        "`default_nettype none", ""),
    "library functions": initial(
        "$display(\"%0d %0d %s\", $clog2(9), $countones(d), mode.name());", "$timeformat(-9, 2, \" ns\", 10);",
        "if ($isunknown(q)) $warning(\"x\");", "$write(\"%b\", $signed(d)); $fflush;"),
}  # fmt: skip


@pytest.mark.parametrize("name", CLEAN)
def test_ordinary_testbench_has_no_violation(name):
    assert violations(CLEAN[name], SHARED) == ()


@pytest.mark.parametrize("name", CLEAN)
def test_ordinary_testbench_is_one_for_verilator_too(name, home, tmp_path):
    tools = find_toolchain(home)
    SHARED.write_to(tmp_path)
    (tmp_path / "testbench.sv").write_text(CLEAN[name])
    command = [tools.verilator, "--lint-only", "--timing", "-Wno-fatal", "-Iinclude", *(s.path for s in SHARED.sources),
               "testbench.sv"]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, env={"VERILATOR_ROOT": str(tools.verilator_root)}, capture_output=True,
                          text=True, timeout=60)  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", sorted(p.name for p in CORPUS.iterdir()))
def test_generated_connections_to_bundled_designs_are_clean(path):
    """Every port by name, every parameter with its own value."""
    loaded = load_design(CORPUS / path)
    from sim.elaborate import analyse

    ports = analyse(loaded).interface.ports
    signals = "".join(f"  {'wire' if p.direction != 'in' else 'logic'} [{p.width - 1}:0] {p.name};\n" for p in ports)
    connections = ", ".join(f".{p.name}({p.name})" for p in ports)
    text = f"module tb;\n{signals}  {loaded.top} dut ({connections});\n  initial #10 $finish;\nendmodule\n"
    assert violations(text, loaded) == ()
    peek = text.replace("#10", f"if (dut.{ports[0].name}) #10")
    assert [v.rule for v in violations(peek, loaded)] == ["hierarchical"]


def test_parameters_are_compared_with_those_the_design_is_built_with():
    wide = design(COUNTER, parameters=(("W", "8"),))
    signals = "logic clk, rst_n, en, hit; logic [1:0] mode; wire [7:0] q;"
    text = f"module tb; {signals} counter #(.W(%s)) dut (.*); endmodule\n"
    assert violations(text % "8", wide) == ()
    assert violations(text % "4 + 4", wide) == ()
    assert [v.rule for v in violations(text % "4", wide)] == ["parameter"]
    assert violations(text.replace("#(.W(%s)) ", ""), wide) == ()


KINDS = """\
package pk; typedef enum {A, B} e_t; typedef struct packed {logic [3:0] a; logic b;} s_t; endpackage
module kinds #(parameter type T = logic [7:0], parameter string S = "ab", parameter real R = 1.5,
  parameter pk::e_t E = pk::B, parameter pk::s_t P = '{a: 3, b: 1}, parameter int U [2] = '{1, 2},
  parameter [3:0] X = 4'b1x0z, parameter signed N = -1) (input T d, output T q);
  assign q = d;
endmodule
"""


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        (".T(logic [7:0])", False), (".T(byte)", True), ("logic [7:0]", False), ("byte", True),
        ('.S({"a", "b"})', False), ('.S("ac")', True), (".R(3.0 / 2)", False), (".R(2)", True),
        (".E(pk::B)", False), (".E(pk::A)", True), (".P(5'b00111)", False), (".P('0)", True),
        (".U('{1, 2})", False), (".U('{1, 3})", True), (".X(4'b1x0z)", False), (".X(4'b1x00)", True),
        (".N(32'hffffffff)", False), (".N(1)", True), (".N(undeclared)", False), (".M(1)", False),
    ],
)  # fmt: skip
def test_parameters_of_every_kind_are_compared(given, refused):
    text = f"module tb; logic [7:0] d, q; kinds #({given}) dut (.*); endmodule"
    assert [v.rule for v in violations(text, design(KINDS, "kinds"))] == ["parameter"] * refused


LAYERED = """\
`timescale 1ns/1ps
interface fifo_if #(parameter WIDTH = 8) (input logic clk);
  logic rst_n, push, pop, full, empty, almost_full, almost_empty, overflow, underflow, marked, draining;
  logic [WIDTH-1:0] din, dout;
  logic [7:0] flush_key;
  clocking drv_cb @(posedge clk);
    default input #1step output #1;
    output push, pop, din, flush_key;
    input full, empty, dout;
  endclocking
  modport DRV (clocking drv_cb, input clk, output rst_n);
endinterface

class transaction;
  rand bit push, pop;
  rand bit [7:0] din;
  constraint some { push || pop; din dist {0 := 1, [1:254] :/ 8, 255 := 1}; }
  function string text(); return $sformatf("push=%0b pop=%0b din=%0h", push, pop, din); endfunction
endclass

class driver;
  virtual fifo_if dut;
  mailbox #(transaction) box;
  function new(virtual fifo_if dut, mailbox #(transaction) box);
    this.dut = dut;
    this.box = box;
  endfunction
  task reset();
    dut.rst_n = 0; dut.push = 0; dut.pop = 0; dut.din = 0; dut.flush_key = 0;
    repeat (2) @(posedge dut.clk);
    dut.rst_n = 1;
  endtask
  task run(int n);
    transaction t;
    repeat (n) begin
      box.get(t);
      @(dut.drv_cb);
      dut.drv_cb.push <= t.push; dut.drv_cb.pop <= t.pop; dut.drv_cb.din <= t.din;
    end
  endtask
endclass

class scoreboard;
  bit [7:0] model[$];
  int errors = 0;
  function void write(bit push, bit pop, bit [7:0] din, bit [7:0] dout);
    if (pop && model.size() > 0 && model.pop_front() !== dout) errors++;
    if (push) model.push_back(din);
  endfunction
endclass

class env;
  driver drv;
  scoreboard sb;
  mailbox #(transaction) box = new();
  function new(virtual fifo_if vif); drv = new(vif, box); sb = new(); endfunction
  task run(int n);
    drv.reset();
    fork
      repeat (n) begin transaction t = new(); void'(t.randomize()); box.put(t); end
      drv.run(n);
    join
    $display("errors %0d at %0t", sb.errors, $time);
  endtask
endclass

module tb_top;
  parameter WIDTH = 8;
  logic clk = 0;
  always #5 clk = ~clk;
  fifo_if #(WIDTH) bus (clk);
  sync_fifo #(.WIDTH(WIDTH), .DEPTH(16)) dut (
    .clk(clk), .rst_n(bus.rst_n), .push(bus.push), .pop(bus.pop), .din(bus.din), .flush_key(bus.flush_key),
    .dout(bus.dout), .full(bus.full), .empty(bus.empty), .almost_full(bus.almost_full),
    .almost_empty(bus.almost_empty), .overflow(bus.overflow), .underflow(bus.underflow), .marked(bus.marked),
    .draining(bus.draining));
  env e;
  initial begin
    $dumpfile("fifo.vcd"); $dumpvars(0, tb_top);
    e = new(bus);
    e.run(200);
    $finish;
  end
  a_full: assert property (@(posedge clk) disable iff (!bus.rst_n) !(bus.full && bus.empty)) else $error("both");
  initial begin #100000 $fatal(1, "time-out"); end
endmodule
"""


def test_layered_testbench_whose_handles_are_named_as_the_instance_is_clean():
    fifo = load_design(CORPUS / "sync_fifo")
    assert violations(LAYERED, fifo) == ()
    peeks = LAYERED.replace("@(dut.drv_cb);", "@(dut.drv_cb); $display(tb_top.dut.level);")
    assert [v.rule for v in violations(peeks, fifo)] == ["hierarchical"]


def test_interface_of_the_design_may_be_instantiated():
    text = """\
interface link (input logic clk); logic [3:0] d; logic v; modport in (input d, v); endinterface
module sink (input logic clk, link.in i, output logic [3:0] q); logic s; always_ff @(posedge clk) if (i.v) q <= i.d;
endmodule
"""
    tb = """\
module tb; logic clk = 0; wire [3:0] q; link l (clk);
  sink u (.clk(clk), .i(l), .q(q));
  initial begin l.v = 1; l.d = 3; @(posedge clk); $display(q, tb.l.d); %s $finish; end
endmodule
"""
    sink = design(text, "sink")
    assert violations(tb % "", sink) == ()
    assert [v.rule for v in violations(tb % "u.i.d = 3;", sink)] == ["hierarchical"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Here is a testbench for the design.",
        "module tb; top dut (.*)",
        "module tb; toop dut (); endmodule",
        "module tb; logic [3:0 a; endmodule",
        "\ud800 \x00",
        "`define A `B\n`define B `A\nmodule tb; `A endmodule",
        "`include",
        "`define",
        "/* open",
        '"open',
    ],
)
def test_text_that_does_not_compile_raises_nothing(text):
    assert {v.rule for v in violations(text, SHARED)} <= {"no_instance", "characters", "include"}


def test_what_does_not_compile_is_left_to_the_compiler():
    assert violations("module tb; top dut (.*)", SHARED) == ()
    assert violations("module tb; toop dut (); endmodule", SHARED) == ()
    assert violations(initial("d = undeclared;"), SHARED) == ()


def test_check_gives_the_same_answer_in_its_own_process(checker):
    text = initial("dut.secret = 1;", '$system("id"); // ü')
    assert checker.check(text, SHARED) == violations(text, SHARED)
    assert len(checker.check(text, SHARED)) == 2
    assert checker.check(CLEAN["plain"], SHARED) == ()


BOMBS = {
    "macros": "".join(f"`define M{i} `M{i - 1} `M{i - 1}\n" for i in range(1, 34)).replace("`M0", "x=1;")
    + bench("initial begin", "`M33", "end"),
    "nesting": bench("initial d = " + "(" * 100_000 + "1" + ")" * 100_000 + ";"),
    "literal": bench("localparam logic [16777214:0] big = {16777215{1'b1}};" * 100),
    "parameter": bench("localparam int P = f(1);",
                       "function automatic int f(int n); forever n++; return n; endfunction"),
    "generate": bench("genvar i, j, k;",
                      "for (i = 0; i < 100000; i++) for (j = 0; j < 100000; j++) begin logic [i:0] a; end"),
    "recursion": "module r #(parameter N = 0); r #(N + 1) a (); r #(N + 1) b (); endmodule\n" + bench("r x ();"),
    "classes": "class c #(int N = 0); c #(N + 1) n; static c #(N + 2) m; endclass\n" + bench("c #(0) o;"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_bomb_is_stopped(name, checker):
    """Refused, or known to be harmless: in any case the answer comes."""
    assert {v.rule for v in checker.check(BOMBS[name], SHARED)} <= {"resource"}


def test_process_that_does_not_start_is_no_fault_of_the_testbench():
    class Broken(Plain):
        def wrap(self, command, **_):
            return ["/bin/sh", "-c", "echo no such kernel >&2; exit 1"]

    with Checker(Broken()) as broken, pytest.raises(ToolError, match=r"does not start .*no such kernel"):
        broken.check(CLEAN["plain"], SHARED)


def test_process_that_was_ended_is_started_again(checker):
    assert checker.check(CLEAN["plain"], SHARED) == ()
    kill_tree(checker._process.pid)
    assert checker.check(CLEAN["plain"], SHARED) == ()


@pytest.mark.parametrize("tier", ["landlock", "plain"])
def test_check_works_in_every_tier(tier, home, monkeypatch):
    monkeypatch.setenv("LLM4COV_SANDBOX", tier)
    try:
        sandbox = replace(find_toolchain(home)).sandbox
    except ToolError:
        pytest.skip(f"no {tier} here")
    assert sandbox.name == tier
    with Checker(sandbox) as opened:
        assert opened.check(CLEAN["plain"], SHARED) == ()


def test_text_that_crashes_the_process_is_refused_for_its_resources(checker):
    [found] = checker.check(bench("initial d = " + "1 + " * 200_000 + "1;"), SHARED)
    assert found.rule == "resource" and "within limits" in found.message
    assert checker.check(CLEAN["plain"], SHARED) == ()
