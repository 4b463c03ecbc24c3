"""Writes one SystemVerilog module from a seeded description: names, port order, reset style, spelling of constants."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

NAMES: dict[str, tuple[str, ...]] = {
    "data": ("data", "value", "word", "payload", "bus", "opnd", "field", "num", "arg"),
    "sample": ("sample", "level", "adc", "temp", "reading", "volt", "meas", "speed"),
    "code": ("code", "key", "digit", "token", "pin", "tag", "secret", "ident"),
    "symbol": ("sym", "nibble", "chunk", "letter", "bits", "piece", "mark"),
    "valid": ("valid", "en", "strobe", "vld", "go", "fire", "take", "tick", "ready"),
    "clear": ("clear", "clr", "ack", "flush", "dismiss", "wipe", "cancel"),
    "op": ("op", "opcode", "cmd", "func", "instr", "order", "sel"),
    "mode": ("mode", "cfg", "ctl", "variant", "how", "profile"),
    "up": ("up", "inc", "push", "rise", "plus", "more", "fill"),
    "down": ("down", "dec", "pop", "fall", "minus", "less", "drain"),
    "request": ("req", "irq", "want", "pending", "ask", "lines", "events"),
    "mask": ("mask", "gate", "filter", "allow", "block"),
    "address": ("addr", "index", "slot", "where", "regno", "offset"),
    "write": ("write", "wr", "we", "store", "put", "set"),
    "start": ("start", "begin_tx", "launch", "kick", "arm", "open_req"),
    "reply": ("reply", "resp", "answer", "rsp", "done_in", "back"),
    "button": ("button", "press", "touch", "switch_in", "lever", "pad"),
    "serial": ("rx", "line", "sdi", "serial", "bit_line"),
    "flag": ("flag", "hit", "seen", "match", "found", "note", "mark_q"),
    "done": ("done", "ok", "finished", "complete", "pass", "good"),
    "error": ("error", "err", "fault", "bad", "fail", "trouble"),
    "alarm": ("alarm", "alert", "trip", "warn", "siren", "panic"),
    "unlock": ("unlocked", "opened", "granted", "released", "access"),
    "state": ("state", "st", "fsm", "phase", "stage"),
    "count": ("count", "cnt", "ctr", "tally", "n_seen", "total"),
    "timer": ("timer", "wait_cnt", "age", "ticks", "elapsed", "delay"),
    "tries": ("tries", "fails", "misses", "strikes", "retries", "errors"),
    "result": ("result", "out", "acc", "res", "y", "answer_q"),
    "zone": ("zone", "band", "class_q", "region", "grade", "bucket"),
    "busy": ("busy", "active", "running", "engaged", "open_q"),
    "full": ("full", "max_hit", "at_top", "limit_hit", "sat"),
    "empty": ("empty", "zero", "at_bottom", "none_left", "idle_q"),
    "near": ("near_full", "almost", "high_mark", "soon", "watermark"),
    "grant": ("grant", "winner", "gnt", "pick", "served", "choice"),
    "position": ("position", "gear", "floor_q", "spot", "notch", "place"),
    "credit": ("credit", "quota", "budget", "points", "coins", "stock"),
}
"""Plausible names by the role a signal plays."""

CLOCKS = ("clk", "clock", "clk_i", "sys_clk", "aclk")
RESETS_LOW = ("rst_n", "resetn", "reset_n", "rst_ni", "aresetn")
RESETS_HIGH = ("rst", "reset", "rst_i", "sys_rst", "clear_all")


_FIRST_STATE = -1


@dataclass(frozen=True)
class _Signal:
    name: str
    width: int
    reset: int = 0


class Module:
    """One module in the making. Families declare signals and add statements; `text` puts it together.

    Every register is reset in one clocked block. Widths are in bits, constants are unsigned.
    """

    def __init__(self, rng: random.Random, name: str, about: str, *, clocked: bool = True) -> None:
        self.rng = rng
        self.name = name
        self.about = about
        self._used = {name}
        self._ports: list[str] = []
        self._inputs: set[str] = set()
        self._registers: list[_Signal] = []
        self._internal: list[_Signal] = []
        self._localparams: list[str] = []
        self._typedef: list[str] = []
        self._blocks: list[list[str]] = []
        self._assigns: list[str] = []
        self._clocked: list[list[str]] = []
        self._first_state = ""
        self._sv = rng.random() < 0.7
        self._input_style = rng.choice(("{}", "{}", "{}_i", "i_{}", "{}_in"))
        self._output_style = rng.choice(("{}", "{}", "{}_o", "o_{}", "{}_out"))
        self._named_constants = rng.choice((0.0, 0.5, 1.0))
        self._radix = rng.choice("hhdb")
        if clocked:
            self._clock = self._reserve(rng.choice(CLOCKS))
            self._active_low = rng.random() < 0.5
            self._synchronous = rng.random() < 0.5
            self._reset = self._reserve(rng.choice(RESETS_LOW if self._active_low else RESETS_HIGH))
            self._ports += [f"input  {self._net} {self._clock}", f"input  {self._net} {self._reset}"]

    @property
    def _net(self) -> str:
        return "logic" if self._sv else "wire "

    @property
    def _var(self) -> str:
        return "logic" if self._sv else "reg"

    def _reserve(self, name: str) -> str:
        unique, n = name, 1
        while unique in self._used:
            n += 1
            unique = f"{name}{n}"
        self._used.add(unique)
        return unique

    def _pick(self, role: str, style: str = "{}") -> str:
        free = [n for n in NAMES[role] if style.format(n) not in self._used]
        return self._reserve(style.format(self.rng.choice(free or NAMES[role])))

    @staticmethod
    def _range(width: int) -> str:
        return "" if width == 1 else f"[{width - 1}:0] "

    def input(self, role: str, width: int = 1) -> str:
        """A data input; returns its name."""
        name = self._pick(role, self._input_style)
        self._ports.append(f"input  {self._net} {self._range(width)}{name}")
        return name

    def output(self, role: str, width: int = 1) -> str:
        """An output driven by `assign`."""
        name = self._pick(role, self._output_style)
        self._ports.append(f"output {self._net} {self._range(width)}{name}")
        return name

    def output_register(self, role: str, width: int = 1, reset: int = 0) -> str:
        """An output that is a register."""
        name = self._pick(role, self._output_style)
        self._ports.append(f"output {'logic' if self._sv else 'reg  '} {self._range(width)}{name}")
        self._registers.append(_Signal(name, width, reset))
        return name

    def register(self, role: str, width: int = 1, reset: int = 0) -> str:
        """A register that is seen inside only."""
        name = self._pick(role)
        self._registers.append(_Signal(name, width, reset))
        self._internal.append(_Signal(name, width))
        return name

    def states(self, names: Sequence[str], *, visible: bool = False) -> tuple[str, list[str]]:
        """A state register with these states, the first one after reset; returns its name and the states' names."""
        width = max(1, (len(names) - 1).bit_length())
        prefix = self.rng.choice(("", "S_", "ST_"))
        labels = [self._reserve(prefix + n) for n in names]
        codes = list(range(len(names)))
        if self.rng.random() < 0.3 and len(names) > 2:
            # another encoding; the state after reset stays 0 so that reset style and state order are independent
            rest = codes[1:]
            self.rng.shuffle(rest)
            codes = [0, *rest]
        if self._sv and self.rng.random() < 0.5 and not visible:
            name = self._pick("state")
            kind = self._reserve(f"{name}_t")
            items = ", ".join(f"{label} = {width}'d{code}" for label, code in zip(labels, codes, strict=True))
            self._typedef.append(f"typedef enum logic {self._range(width)}{{{items}}} {kind};")
            self._typedef.append(f"{kind} {name};")
            self._registers.append(_Signal(name, width, _FIRST_STATE))
            self._first_state = labels[0]
        else:
            name = self.output_register("state", width) if visible else self.register("state", width)
            for label, code in zip(labels, codes, strict=True):
                self._localparams.append(f"localparam {self._range(width)}{label} = {width}'d{code};")
        return name, labels

    def value(self, width: int, value: int) -> str:
        """A sized literal."""
        if width == 1:
            return f"1'b{value}"
        radix = "d" if self._radix == "b" and width > 4 else self._radix
        digits = {"h": f"{value:0{(width + 3) // 4}X}", "d": str(value), "b": f"{value:0{width}b}"}[radix]
        return f"{width}'{radix}{digits}"

    def constant(self, label: str, width: int, value: int) -> str:
        """A literal, or a local parameter called like `label`."""
        if self.rng.random() >= self._named_constants:
            return self.value(width, value)
        name = self._reserve(label.upper())
        self._localparams.append(f"localparam {self._range(width)}{name} = {self.value(width, value)};")
        return name

    def constants(self, labels: Sequence[str], width: int) -> list[str]:
        """Distinct constants with these labels, neither 0 nor all ones."""
        return [self.constant(n, width, v) for n, v in zip(labels, self.numbers(width, len(labels)), strict=True)]

    def numbers(self, width: int, count: int, low: int = 1, high: int | None = None) -> list[int]:
        """Distinct random numbers of `width` bits, by default neither 0 nor all ones."""
        top = (1 << width) - 2 if high is None else high
        return self.rng.sample(range(low, top + 1), count)

    def clocked(self, *lines: str) -> None:
        """Statements of the clocked block, outside reset. Lines are indented by `begin`, `case` and `end`."""
        self._clocked.append(list(lines))

    def combinational(self, *lines: str) -> None:
        """A combinational block."""
        self._blocks.append(list(lines))

    def assign(self, target: str, expression: str) -> None:
        self._assigns.append(f"assign {target} = {expression};")

    def shuffled(self, blocks: Sequence[Sequence[str]]) -> list[str]:
        """The lines of `blocks` in a random order of blocks."""
        order = list(blocks)
        self.rng.shuffle(order)
        return [line for block in order for line in block]

    def text(self) -> str:
        """The whole file."""
        ports = list(self._ports)
        self.rng.shuffle(ports)
        out = [f"// {self.about}", f"module {self.name} ("]
        out += [f"    {p}{',' if i < len(ports) - 1 else ''}" for i, p in enumerate(ports)]
        out.append(");")
        body = [*self._typedef]
        body += [f"{self._var} {self._range(s.width)}{s.name};" for s in self._internal]
        blocks: list[list[str]] = [[a] for a in self._assigns]
        blocks += [[f"{'always_comb' if self._sv else 'always @*'} begin", *b, "end"] for b in self._blocks]
        if self._clocked:
            blocks.append(self._clocked_block())
        self.rng.shuffle(blocks)
        for block in blocks:
            body += ["", *block]
        words = set(re.findall(r"\w+", "\n".join(body)))
        body = [*(p for p in self._localparams if p.split(" = ")[0].split()[-1] in words), *body]
        return "\n".join([*out, *_indent(body), "endmodule", ""])

    def _reset_value(self, signal: _Signal) -> str:
        return self._first_state if signal.reset == _FIRST_STATE else self.value(signal.width, signal.reset)

    def _clocked_block(self) -> list[str]:
        edge = f"posedge {self._clock}"
        if not self._synchronous:
            edge += f" or {'negedge' if self._active_low else 'posedge'} {self._reset}"
        resets = [f"{s.name} <= {self._reset_value(s)};" for s in self._registers]
        lines = [line for part in self._clocked for line in part]
        test = f"!{self._reset}" if self._active_low else self._reset
        kind = "always_ff" if self._sv else "always"
        return [f"{kind} @({edge}) begin", f"if ({test}) begin", *resets, "end else begin", *lines, "end", "end"]


def _indent(lines: Sequence[str]) -> list[str]:
    out, depth = [], 1
    for line in lines:
        if line.startswith("end"):
            depth -= 1
        out.append("    " * depth + line if line else "")
        if line.endswith("begin") or line.startswith(("case (", "case(", "casez (")):
            depth += 1
    return out
