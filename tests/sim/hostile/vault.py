"""The design that the hostile testbenches attack, and what every one of them is made of.

Some of its lines no honest testbench reaches: behind a key that nobody can guess, after the limit of simulated time,
after `$finish`. Registers that only a write from outside could change show at an output in mode 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sim.simulation import Limits, Testbench
from tests.sim.conftest import HEAD

VAULT = """\
`timescale 1ns/1ps
module lock #(parameter logic [63:0] KEY = 64'h5ca1ab1e_0ddba11d) (
  input logic clk, input logic rst_n, input logic [63:0] guess, output logic unlocked
);
  always_ff @(posedge clk) if (!rst_n) unlocked <= 0; else if (guess == KEY) unlocked <= 1;
endmodule

module vault (
  input logic clk, input logic rst_n, input logic en, input logic [1:0] mode, output logic [3:0] q
);
  typedef struct packed { logic [3:0] high; logic [3:0] low; } pair_t;
  logic [63:0] guess;
  logic [7:0] loot;
  logic [7:0] mem [4];
  pair_t pair;
  logic unlocked, late, halted, beyond;
  lock u_lock (.clk(clk), .rst_n(rst_n), .guess(guess), .unlocked(unlocked));
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) begin
      guess <= 1; q <= 0;
    end else if (en) begin
      guess <= guess * 64'd6364136223846793005 + 64'(mode);
      q <= mode == 2 ? q ^ pair.low ^ mem[1][3:0] : q + 1;
    end
  always_ff @(posedge clk)
    if (!rst_n) begin
      pair <= 0; loot <= 0; late <= 0; halted <= 0; beyond <= 0;
      for (int i = 0; i < 4; i++) mem[i] <= 0;
    end else begin
      if (unlocked) loot <= loot + 1;
      if ($time > 64'd2_000_000) late <= 1;
      if (mode == 3) begin halted <= 1; $finish; end
      if (halted) beyond <= 1;
    end
endmodule
"""

MARK = "hostile-mark"
"""Part of the name of every file that an attack tries to leave somewhere."""

_TOOLS = f"""\
import ctypes, errno, mmap, re, shutil, signal, socket, struct, subprocess, threading
MARK = {MARK!r}
HOME = os.environ.get("HOSTILE_HOME", "")

def attempt(*actions):
    for action in actions:
        try:
            print("DID", action())
        except Exception as error:
            print("refused:", type(error).__name__, str(error)[:100])

def system_call(number, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(number, *(ctypes.c_long(a) if type(a) is int else a for a in arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def record():
    # the inputs that the harness will replay: Record of sim/harness/simulation.h
    for line in open("/proc/self/maps"):
        span, access, _, _, _, *name = line.split()
        low, high = (int(x, 16) for x in span.split("-"))
        if access == "rw-s" and high - low == 256 << 20:
            print("record found")
            return low
    raise LookupError("record")

def peek(address):
    return ctypes.c_uint64.from_address(address)

def varint(value):
    out = b""
    while value >= 0x80:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])

def append(*entries):
    # each: picoseconds since the last evaluation, then the ports that change
    at = record()
    data = b""
    for step, ports in entries:
        data += varint(step) + varint(len(ports))
        for name, value in ports.items():
            data += varint(["clk", "en", "mode", "rst_n"].index(name)) + bytes([value])
    ctypes.memmove(at + 56 + peek(at + 48).value, data, len(data))
    hash_of_outputs = peek(at + 24 + 8 * (peek(at + 16).value % 2)).value
    peek(at + 24).value = peek(at + 32).value = hash_of_outputs
    peek(at + 48).value += len(data)
    peek(at + 16).value += len(entries)

def leave_as_passed():
    ctypes.c_uint32.from_address(record()).value = 1
    told = '{{"loaded": true, "total": 1, "passed": 1, "failed": 0, "skipped": 0, "errors": []}}'
    open("tests.json", "w").write(told)
    sys.stdout.flush()
    os._exit(0)

"""
_BEFORE = ("await ClockCycles(dut.clk, 40)",)
_AFTER = (
    "dut.mode.value = 2",
    "await ClockCycles(dut.clk, 4)",
    "dut.mode.value = 0",
    "await ClockCycles(dut.clk, 4)",
)

RAN = frozenset({"passed", "test_failed"})
CHANGED = RAN | {"forged"}
"""Writes to internals are `forged` where an output shows them."""
LEFT = frozenset({"early_exit", "crashed"})
STOPPED = frozenset({"resource_limit", "timeout"})
REFUSED = frozenset({"policy_violation"})
NOT_COMPILED = frozenset({"compile_error", "policy_violation", "unsupported", "resource_limit"})


@dataclass(frozen=True)
class Attack:
    """What one hostile testbench does between two honest parts, and which statuses it may get.

    `ports` is the driving of ports that it does besides: an honest testbench that does the same earns the same points.
    The log has `says` if the attack was carried out, so that no attack passes because of a mistake in it. `top` stands
    outside of the test (cocotb) or of the testbench's module (SystemVerilog).
    """

    statuses: frozenset[str]
    lines: tuple[str, ...]
    ports: tuple[str, ...] = ()
    says: str = ""
    top: str = ""
    limits: Limits = field(default_factory=lambda: Limits(wall_s=8, processes=12, memory_mb=512, disk_mb=40, files=400))
    slow: bool = False


def cocotb(lines: tuple[str, ...], *, top: str = "", before: tuple[str, ...] = _BEFORE) -> Testbench:
    """The honest parts with `lines` between them; `top` stands before the test."""
    body = "\n".join(f"    {line}" for line in (*before, *lines, *_AFTER))
    return Testbench(f"{HEAD}{_TOOLS}{top}\n@cocotb.test()\nasync def body(dut):\n    await start(dut)\n{body}\n")


def systemverilog(lines: tuple[str, ...], *, top: str = "") -> Testbench:
    """A module that drives the vault honestly, with `lines` beside that."""
    text = f"""\
{top}
module tb;
  logic clk = 0, rst_n = 0, en = 0;
  logic [1:0] mode = 0;
  wire [3:0] q;
  vault dut(.*);
  always #5 clk = ~clk;
  initial begin
    #22 rst_n = 1; en = 1;
    repeat (40) @(negedge clk);
    mode = 2;
    repeat (4) @(negedge clk);
    mode = 0;
    repeat (4) @(negedge clk);
    $finish;
  end
"""
    return Testbench(text + "".join(f"  {line}\n" for line in lines) + "endmodule\n", "systemverilog")


def quick(**limits: float) -> Limits:
    """Limits for an attack on resources, small enough for a small machine."""
    return replace(Limits(wall_s=6, processes=12, memory_mb=512, disk_mb=40, files=400), **limits)  # type: ignore[arg-type]
