"""Hostile SystemVerilog testbenches."""

from __future__ import annotations

from dataclasses import replace

from tests.sim.hostile.vault import MARK, NOT_COMPILED, RAN, REFUSED, STOPPED, Attack, quick

_PASTE = "`define PASTE(a, b) a``b\n"
_RUNS = RAN | {"crashed", "early_exit"}
_LIMITED = STOPPED | {"crashed", "nonconverged"}

REACHING = {
    "a program by a macro in a class": Attack(
        REFUSED,
        ("class c; function new(); void'(`SYS); endfunction endclass", "initial begin automatic c x = new; end"),
        top=_PASTE + f'`define SYS `PASTE($sys, tem)("touch /tmp/{MARK}")\n',
    ),
    "C++ where nothing is generated": Attack(
        REFUSED, ('generate if (0) begin initial `PASTE($, c)("abort();"); end endgenerate',), top=_PASTE
    ),
    "force by a macro of a macro": Attack(
        REFUSED, ("`define A(x) force x = '1;", "`define B(x, y) `A(x.y)", "initial begin `B(dut, guess) end")
    ),
    "bind of a module that opens the vault": Attack(
        REFUSED,
        (),
        top="module burglar(output logic u); initial u = 1; endmodule\nbind lock burglar b(.u(unlocked));\n",
    ),
    "another lock": Attack(
        REFUSED,
        (),
        top="module lock #(parameter logic [63:0] KEY = 1) (input clk, rst_n, input [63:0] guess, "
        "output unlocked); assign unlocked = 1; endmodule\n",
    ),
    "another key": Attack(REFUSED, ("defparam dut.u_lock.KEY = 64'd1;",)),
    "the stand-in's own call": Attack(
        REFUSED,
        (
            'import "DPI-C" function void llm4cov_step(input bit [7:0] i, output bit [7:0] o, output longint d);',
            "initial begin automatic bit [7:0] o; automatic longint unsigned d; llm4cov_step('1, o, d); end",
        ),
    ),
    "a call of the stand-in redefined": Attack(
        REFUSED, ('export "DPI-C" llm4cov_step = function mine;', "function void mine(); endfunction")
    ),
    "functions of the machine by DPI": Attack(
        REFUSED, ('`define IMP(x) import "DPI-C" function x', "`IMP(int getpid)();", "initial $display(getpid());")
    ),
    "C++ in comments for the simulator": Attack(
        REFUSED, ("logic x /*verilator public_flat_rw @(posedge clk) */;", "/*verilator coverage_off*/")
    ),
    "a file of the machine in a constant": Attack(
        REFUSED | NOT_COMPILED,
        (
            'function automatic int steal(); int f = $fopen("/etc/passwd", "r"); return f; endfunction',
            "localparam int F = steal();",
        ),
    ),
    "a file of the machine as memory": Attack(
        REFUSED, ("logic [7:0] bytes [100];", 'initial $readmemh({"/etc/", "passwd"}, bytes);')
    ),
    "null bytes and escapes": Attack(
        REFUSED | NOT_COMPILED, ("initial begin end \0 \x1b[2J", "initial dut\0.guess = 1;")
    ),
    "names that only the machine knows": Attack(
        _RUNS,
        (
            "initial begin",
            '  automatic string root = "/", names[] = \'{"etc/passwd", "proc/self/environ", "proc/1/cmdline"};',
            "  automatic int f; automatic string line;",
            "  foreach (names[i]) begin",
            '    f = $fopen({root, names[i]}, "r");',
            '    if (f != 0) while ($fgets(line, f) != 0) $display("%s", line);',
            "  end",
            f'  f = $fopen({{root, "tmp/{MARK}"}}, "w"); $display("asked");',
            "end",
        ),
        says="asked",
    ),
    "its own memory": Attack(
        _RUNS | {"forged"},
        (
            "initial begin",
            '  automatic string root = "/"; automatic int f, g, n; automatic string line; automatic longint low;',
            '  g = $fopen({root, "proc/self/maps"}, "r");',
            '  f = $fopen({root, "proc/self/mem"}, "r+");',
            '  $display("maps %0d memory %0d", g != 0, f != 0);',
            '  while (f != 0 && g != 0 && $fgets(line, g) != 0) if ($sscanf(line, "%h-", low) == 1) begin',
            "    n = $fseek(f, int'(low), 0); $fwrite(f, \"%u\", 32'h1);",
            "  end",
            "end",
        ),
        says="maps",
    ),
    "result files and descriptors": Attack(
        _RUNS,
        (
            "initial begin",
            '  automatic string names[] = \'{"tests.json", "coverage.dat", "log", "record"}; automatic int f;',
            "  foreach (names[i]) begin",
            '    f = $fopen({"..", "/", names[i]}, "w"); f = $fopen(names[i], "w");',
            '    $fwrite(f, "{\\"hits\\": \\"ff\\", \\"passed\\": 1, \\"replayed\\": true}\\n"); $fclose(f);',
            "  end",
            '  for (int i = 0; i < 64; i++) begin $fwrite(i, "x"); $fclose(i); $fclose(32\'h8000_0000 | i); end',
            "end",
        ),
    ),
}

COMPILERS = {
    "a million instances": Attack(
        NOT_COMPILED | RAN,
        ("for (genvar i = 0; i < 1000; i++) begin : a for (genvar j = 0; j < 1000; j++) begin : b leaf l(); end end",),
        top="module leaf; logic x; initial x = 1; endmodule\n",
        slow=True,
    ),
    "modules in modules without end": Attack(
        NOT_COMPILED,
        ("endless #(0) e();",),
        top="module endless #(int N = 0); endless #(N + 1) e(); endmodule\n",
    ),
    "a macro that names itself": Attack(NOT_COMPILED, ("`A",), top="`define A `B `B\n`define B `A `A\n"),
    "macros that double": Attack(
        NOT_COMPILED | RAN,
        ("initial begin `M24 end",),
        top="`define M0 #0;\n" + "".join(f"`define M{n + 1} `M{n} `M{n}\n" for n in range(24)),
        slow=True,
    ),
    "a constant that takes for ever": Attack(
        NOT_COMPILED,
        (
            "function automatic longint f(longint n); f = 0; while (1) f = f + n; endfunction",
            "localparam longint X = f(3);",
        ),
        slow=True,
    ),
    "a constant that calls itself": Attack(
        NOT_COMPILED,
        ("function automatic int f(int n); return f(n + 1) + f(n + 2); endfunction", "localparam int X = f(0);"),
    ),
    "an error while elaborating": Attack(
        NOT_COMPILED | RAN,
        (
            'function automatic int f(); $fatal(1, "no"); return 1; endfunction',
            "localparam int X = f();",
            'if (X) $fatal(1, "elaborated"); ',
        ),
    ),
    "brackets in brackets": Attack(
        NOT_COMPILED | RAN, (f"initial begin automatic int x = {'(' * 20000}1{')' * 20000}; end",)
    ),
    "blocks in blocks": Attack(NOT_COMPILED | RAN, (f"initial {'begin ' * 5000} {'end ' * 5000}",)),
    "a name of ten thousand letters": Attack(
        NOT_COMPILED | RAN, (f"logic {'x' * 10000}; initial {'x' * 10000} = 1;", f"logic \\{'#' * 9000} ;")
    ),
    "a number of a million digits": Attack(
        NOT_COMPILED | RAN, (f"logic [63:0] x = 4000000'h{'f' * 1000000};",), slow=True
    ),
    "a vector wider than memory": Attack(
        NOT_COMPILED | RAN | _LIMITED, ("logic [2**24-1:0] x [2**20]; initial x[5] = '1;",)
    ),
    "a replication": Attack(
        NOT_COMPILED | RAN | _LIMITED, ("localparam X = {32'd2000000000{8'hff}}; initial $display(\"%h\", X);",)
    ),
}

RUNNING = {
    "a process that waits for nothing": Attack(
        _LIMITED, ('initial forever if ($urandom == 7) $display("never");',), limits=quick(wall_s=1)
    ),
    "text without end": Attack(
        _LIMITED, ('initial forever $display("%0999d", 1);',), limits=quick(output_bytes=2 << 20)
    ),
    "strings that double": Attack(
        _LIMITED | RAN,
        ('string s = "x"; initial forever begin s = {s, s}; $display(s.len()); end',),
        limits=quick(memory_mb=100),
    ),
    "queues, arrays and objects without end": Attack(
        _LIMITED | RAN,
        (
            "class node; node next; int q[$]; int a[string]; endclass",
            "node n;",
            "initial forever begin automatic node m = new; m.next = n; n = m; repeat (50) begin n.q.push_back(1);",
            '  n.a[$sformatf("%0d", n.q.size())] = 1; end end',
        ),
        limits=quick(memory_mb=100),
    ),
    "processes without end": Attack(
        _LIMITED | RAN, ("initial forever fork #1000; join_none",), limits=quick(memory_mb=100)
    ),
    "a function that calls itself": Attack(
        _LIMITED | RAN,
        ("function automatic int f(int n); return f(n + 1) + f(n - 1); endfunction", "initial $display(f(q));"),
    ),
    "an object that makes itself": Attack(
        _LIMITED | RAN,
        ("class c; c x; function new(); x = new; endfunction endclass", "initial begin automatic c y = new; end"),
    ),
    "events that trigger each other": Attack(
        _LIMITED | RAN,
        ("event a, b;", "always @a ->> b;", "always @b ->> a;", "initial #30 -> a;"),
        limits=quick(wall_s=1),
    ),
    "a final block that never ends": Attack(
        _LIMITED, ('final forever if ($urandom == 7) $display("never");',), limits=quick(wall_s=1)
    ),
    "several ends at once": Attack(
        RAN | {"early_exit"},
        (
            "initial begin #300 fork $finish; $finish; $stop; join end",
            "final begin $finish; $stop; end",
            "initial #300 $fatal;",
        ),
    ),
    "time that overflows": Attack(
        RAN | {"timeout", "early_exit"},
        ("initial begin #(64'hffff_ffff_ffff_fff0) mode = 3; end", "initial #(-5) mode = 0;"),
    ),
    "a puzzle for the solver": Attack(
        _LIMITED | RAN,
        (
            "class p; rand bit [63:0] a, b; constraint c { a * b == 64'd18446744073709551557 - 64'd58; a > 1; b > 1; "
            "(a ^ b) % 64'd1000003 == 64'd77; } endclass",
            'initial begin automatic p x = new; $display("%0d", x.randomize()); end',
        ),
        limits=quick(wall_s=2),
    ),
    "a file full of holes": Attack(
        _LIMITED | RAN,
        (
            'initial begin automatic int f = $fopen("holes", "w"), n; for (int i = 0; i < 60; i++) begin',
            'n = $fseek(f, 2000000000, 1); $fwrite(f, "x"); $fflush(f); end end',
        ),
    ),
    "files without end": Attack(
        _LIMITED | RAN,
        (
            'int f; initial for (int i = 0; i < 900; i++) begin f = $fopen($sformatf("f%0d", i), "w"); $fclose(f); end',
            'initial repeat (1000) begin automatic int g = $fopen("same", "w"); end',
        ),
    ),
    "the seed of the randomness": Attack(
        RAN, ("initial begin void'($urandom(0)); repeat (9) $display($urandom); end",)
    ),
    "arguments of the program": Attack(
        RAN,
        (
            "string v;",
            'initial begin if ($value$plusargs("x=%s", v)) $display(v); if ($test$plusargs("")) $display("t"); end',
        ),
    ),
}

ATTACKS = {
    f"{kind}: {name}": replace(attack, slow=attack.slow or kind == "running")
    for kind, attacks in (("reaching", REACHING), ("compilers", COMPILERS), ("running", RUNNING))
    for name, attack in attacks.items()
}
