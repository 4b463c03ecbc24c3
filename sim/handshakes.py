"""Pairs of ports that agree on a transfer: valid and ready, request and acknowledge, push and full.

Two kinds of evidence. Names: a valid-like and a ready-like port in opposite directions whose names are otherwise
equal (`s_axi_awvalid`, `s_axi_awready`; `req_i`, `gnt_o`). Structure: the design tests an input and an output
together (`push && !full`), so that both must hold for something to happen; this counts where the names say at least
which of them asks and which answers, because an enable tested with a status bit is no handshake.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from sim.elaborate import Analysis, Port
from sim.expressions import Expression
from sim.frames import Memory


@dataclass(frozen=True)
class Handshake:
    """A transfer happens when `valid` and `ready` are both active; each is active low if so marked (`full` is a ready
    that is).

    `drives` is the port that the testbench drives: `valid` (the design receives) or `ready` (the design sends).
    `payload` are the ports that `valid` goes with, in its direction. `evidence` is names, structure, or both.
    """

    valid: str
    ready: str
    drives: str
    payload: tuple[str, ...] = ()
    valid_low: bool = False
    ready_low: bool = False
    evidence: str = "names"


_VALID = {"valid", "vld", "valids", "req", "request", "stb", "strobe", "cyc", "push", "wr", "write", "we", "enq",
          "enqueue", "send", "start", "put", "penable"}  # fmt: skip
_READY = {"ready", "rdy", "ack", "acknowledge", "gnt", "grant", "accept", "pop", "rd", "read", "re", "deq", "dequeue",
          "get", "take"}  # fmt: skip
_READY_LOW = {"full", "busy", "stall"}
"""Outputs that refuse what `_VALID` inputs ask for."""
_VALID_LOW = {"empty"}
"""Outputs that say that there is nothing to take for `_READY` inputs."""

_PARTNERS = {
    **dict.fromkeys(("valid", "vld"), ("ready", "rdy", "ack", "accept", "gnt", "grant")),
    **dict.fromkeys(("req", "request"), ("ack", "acknowledge", "gnt", "grant", "ready", "rdy", "accept")),
    **dict.fromkeys(("stb", "strobe"), ("ack", "ready", "rdy")),
    "cyc": ("ack",),
    **dict.fromkeys(("send", "start", "push", "put"), ("ready", "rdy", "ack")),
    "penable": ("pready",),
}
"""Which answers go with which question by name alone, the likeliest first."""

_ROLES = sorted({*_VALID, *_READY, *_READY_LOW, *_VALID_LOW}, key=lambda role: -len(role))
_ROLE = re.compile(rf"({'|'.join(_ROLES)})(?![a-z])", re.IGNORECASE)
_SIDE = re.compile(r"^(?:[io]_)+|(?:_(?:[io]|in|out|input|output))+$", re.IGNORECASE)
"""Marks of direction, which the two ports of a pair do not share."""
_LOW = re.compile(r"_n[io]?$|_b$", re.IGNORECASE)
_SMALL_PAYLOAD = re.compile(r"(^|_)t?(last|first|sop|eop|write|we|rw|wr|user|keep|strb|mode|sel|id|dest|data|bit)(_|$)",
                            re.IGNORECASE)  # fmt: skip
"""Single bits that go with a transfer although no part of their name says with which."""

Stem = tuple[str, str]


@dataclass(frozen=True)
class _Name:
    """A port's name taken apart: its role and what is before and after that."""

    role: str
    stem: Stem


def handshakes(analysis: Analysis) -> tuple[Handshake, ...]:
    """The handshakes of the top, in the order of their `valid` ports."""
    interface = analysis.interface
    control = {*interface.clocks, *(r.port for r in interface.resets)}
    ports = {p.name: p for p in interface.ports if p.name not in control and p.direction != "inout"}
    tested = set(_tested_together(analysis))
    chosen: dict[str, Handshake] = {}
    taken: set[str] = set()
    for pair in (*_by_name(ports, tested), *_by_structure(ports, tested)):
        if pair.valid not in taken and pair.ready not in taken:
            chosen[pair.valid] = pair
            taken |= {pair.valid, pair.ready}
    order = list(ports)
    return tuple(sorted(_with_payload(list(chosen.values()), ports), key=lambda h: order.index(h.valid)))


def _split(name: str) -> list[_Name]:
    """The ways to read a port's name as a role within a stem, the last word first."""
    bare = _LOW.sub("", _SIDE.sub("", name)).lower()
    found = [_Name(m[1], (bare[: m.start()], bare[m.end() :])) for m in reversed(list(_ROLE.finditer(bare)))]
    if found and found[0].role == "ready" and found[0].stem[0].endswith("p"):
        found.append(_Name("pready", (found[0].stem[0].removesuffix("p"), found[0].stem[1])))  # of APB
    return found


def _role(name: str) -> str:
    """The role that the last word of a port's name gives it; empty if it has none."""
    return next((n.role for n in _split(name)), "")


def _by_name(ports: dict[str, Port], tested: set[tuple[str, str]]) -> Iterator[Handshake]:
    asking: dict[Stem, dict[str, str]] = {}
    answering: dict[Stem, dict[str, str]] = {}
    for port in ports.values():
        for name in _split(port.name):
            asking.setdefault(name.stem, {}).setdefault(name.role, port.name)
            answering.setdefault(name.stem, {}).setdefault(name.role, port.name)
    for role, partners in _PARTNERS.items():
        for stem, found in asking.items():
            for partner in partners:
                valid, ready = found.get(role), answering[stem].get(partner)
                if valid is None or ready is None:
                    continue
                if ports[valid].direction != ports[ready].direction and ports[valid].width == ports[ready].width:
                    yield _pair(valid, ready, ports, tested)


def _by_structure(ports: dict[str, Port], tested: set[tuple[str, str]]) -> Iterator[Handshake]:
    found: list[tuple[int, Handshake]] = []
    for driven, answer in tested:
        if driven not in ports or answer not in ports:
            continue
        inward, outward = _role(driven), _role(answer)
        likeness = len(_beginning(driven, answer))
        if inward in _VALID and outward in _READY | _READY_LOW:
            found.append((likeness, _pair(driven, answer, ports, tested)))
        elif inward in _READY and outward in _VALID_LOW | {"valid", "vld"}:
            found.append((likeness, _pair(answer, driven, ports, tested)))
    found.sort(key=lambda item: (-item[0], len(item[1].valid + item[1].ready), item[1].valid, item[1].ready))
    return (h for _, h in found)


def _pair(valid: str, ready: str, ports: dict[str, Port], tested: set[tuple[str, str]]) -> Handshake:
    inward = ports[valid].direction == "in"
    both = (valid, ready) if inward else (ready, valid)
    roles = [{n.role for n in _split(name)} for name in (valid, ready)]
    named = any(r in _PARTNERS and roles[1] & set(_PARTNERS[r]) for r in roles[0])
    return Handshake(
        valid,
        ready,
        "valid" if inward else "ready",
        valid_low=(_role(valid) in _VALID_LOW) != bool(_LOW.search(valid)),
        ready_low=(_role(ready) in _READY_LOW) != bool(_LOW.search(ready)),
        evidence=("both" if named else "structure") if both in tested else "names",
    )


# structure


def _tested_together(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """Pairs of an input and an output, one bit each, that stand in one conjunction of the design or on the way to one
    of its branches."""
    netlist = analysis.netlist
    inputs: dict[int, str] = {}
    outputs: dict[int, str] = {}
    for port, signal in netlist.ports:
        if isinstance(signal, Memory) or signal.width != 1:
            continue
        number = netlist.x.signal(signal).number
        (inputs if signal.kind == "input" else outputs)[number] = port.name
        if signal.kind == "wire" and signal.driver is not None and not signal.driver.is_const:
            outputs.setdefault(signal.driver.number, port.name)
    if not inputs or not outputs:
        return
    ways = [[c.expression for c in path] for point in netlist.points for path in point.paths]
    roots = [s.driver for s in netlist.signals if s.driver is not None] + [e for way in ways for e in way]
    for conjunction in (*_conjunctions(roots), *ways):
        terms = [inner for term in conjunction for inner in _terms(term)]
        asked = {name for term in terms if (name := _port(term, inputs))}
        answers = {name for term in terms if (name := _port(term, outputs))} if asked else ()
        yield from ((i, o) for i in asked for o in answers)


def _conjunctions(roots: Iterable[Expression]) -> Iterator[list[Expression]]:
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.number in seen:
            continue
        seen.add(node.number)
        if node.op == "and" and node.width == 1:
            yield [node]
        stack += node.args


def _terms(node: Expression, depth: int = 0) -> Iterator[Expression]:
    """What a condition is made of: through conjunctions, and one level of alternatives (`push && (!full || pop)`)."""
    if node.op in ("and", "or") and node.width == 1 and depth < 8:
        for argument in node.args:
            yield from _terms(argument, depth + 1)
    else:
        yield node


def _port(node: Expression, ports: dict[int, str]) -> str | None:
    """The port that a term is, perhaps negated or passed on through wires."""
    for _ in range(20):
        if node.number in ports:
            return ports[node.number]
        if node.op == "not":
            node = node.args[0]
        elif node.signal is not None and node.signal.kind == "wire" and node.signal.driver is not None:
            node = node.signal.driver
        else:
            return None
    return None


# payload


def _with_payload(pairs: list[Handshake], ports: dict[str, Port]) -> Iterator[Handshake]:
    """Every pair with the ports that share the longest stem with it. Ports that share none go with the pair of their
    direction whose own names are roles alone (`push`, `full`), if there is one."""
    control = {name for pair in pairs for name in (pair.valid, pair.ready)}
    owned: dict[str, list[str]] = {pair.valid: [] for pair in pairs}
    for port in ports.values():
        if port.name in control:
            continue
        same = [p for p in pairs if ports[p.valid].direction == port.direction]
        scored = [(_shared(port.name, p), p) for p in same]
        best = max((score for score, _ in scored), default=0)
        if best:
            chosen = [p for score, p in scored if score == best]
        else:
            chosen = [p for p in same if ports[p.valid].width == 1 and not any(any(stem) for stem in _stems(p))]
            chosen = chosen if port.width > 1 or _SMALL_PAYLOAD.search(port.name) else []
        if len(chosen) == 1:
            owned[chosen[0].valid].append(port.name)
    for pair in pairs:
        yield Handshake(
            pair.valid, pair.ready, pair.drives, tuple(owned[pair.valid]), pair.valid_low, pair.ready_low, pair.evidence
        )


def _stems(pair: Handshake) -> Iterator[Stem]:
    """What the ports of a pair's transfer may begin and end with; a leading `wr_` is the stem of `wr_en`."""
    common = _beginning(pair.valid.lower(), pair.ready.lower())
    if common.endswith("_"):
        yield _SIDE.sub("", common), ""
    for name in (*_split(pair.valid)[:1], *_split(pair.ready)[:1]):
        if not name.stem[0] and name.stem[1].startswith("_"):
            yield f"{name.role}_", ""
        elif any(name.stem):
            yield name.stem


def _shared(name: str, pair: Handshake) -> int:
    """How much of a stem of the pair a port's name has: the whole of it, or nothing."""
    bare = _SIDE.sub("", name).lower()
    lengths = [len(a) + len(b) for a, b in _stems(pair) if bare.startswith(a) and bare.endswith(b)]
    return max(lengths, default=0)


def _beginning(a: str, b: str) -> str:
    """What both texts begin with."""
    return "".join(x for x, _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
