"""Random transfers as stimulus: what they need to know of a design, and how that is written into a testbench.

Other stimulus is open loop: it drives values whatever the design answers. Transfers look at the answers: what is
offered is held until it is accepted. A file that has any gets the tables and the functions below; the others do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Offer:
    """An input that offers: it holds, with the inputs that go with it, until the output `ready` has the level
    `accepts` (bit by bit, where both are wider)."""

    valid: str
    ready: str
    accepts: int
    payload: tuple[str, ...]


@dataclass(frozen=True)
class Traffic:
    """How a design wants to be talked to. `receivers` are inputs that accept what the design offers; `values` are, by
    port, (value, bits that matter) of what the design compares it with."""

    offers: tuple[Offer, ...]
    receivers: tuple[str, ...]
    values: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]


@dataclass(frozen=True)
class Transfers:
    """Drive seeded random transfers for `cycles` clock cycles, all other inputs at random beside them."""

    seed: int
    cycles: int
    traffic: Traffic


def tables(traffic: Traffic) -> str:
    """The constants that hold `traffic` in a file."""
    lines = ["OFFERS = {  # valid: the ready that accepts it, at which level, and what goes with it"]
    for offer in traffic.offers:
        payload = ", ".join(_quote(name) for name in offer.payload)
        lines.append(f"    {_quote(offer.valid)}: ({_quote(offer.ready)}, {offer.accepts}, [{payload}]),")
    lines += ["}", f"RECEIVERS = [{', '.join(_quote(name) for name in traffic.receivers)}]  # accept what is offered"]
    lines.append("VALUES = {  # port: (value, bits that matter) of what the design compares it with")
    for name, values in traffic.values:
        lines.append(f"    {_quote(name)}: [")
        lines += [f"        ({value:#x}, {mask:#x})," for value, mask in values]
        lines.append("    ],")
    return "\n".join([*lines, "}", ""])


def read_tables(constants: Mapping[str, Any]) -> Traffic | None:
    """What `tables` wrote, from the constants of a file; None when it is not that."""
    match constants:
        case {"OFFERS": dict(offers), "RECEIVERS": list(receivers), "VALUES": dict(values)}:
            pass
        case _:
            return None
    try:
        return Traffic(
            tuple(Offer(valid, ready, accepts, tuple(names)) for valid, (ready, accepts, names) in offers.items()),
            tuple(receivers),
            tuple((name, tuple((value, mask) for value, mask in pairs)) for name, pairs in values.items()),
        )
    except (TypeError, ValueError):
        return None


def common(traffics: Iterable[Traffic]) -> Traffic | None:
    """The traffic of a file, None without any. Raises ValueError for several: a file has one design's tables."""
    found = list(dict.fromkeys(traffics))
    if len(found) > 1:
        raise ValueError("transfers for several interfaces do not fit into one file")
    return found[0] if found else None


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


PICK = '''
def pick(rng, name, ones):
    """As often as not a value that the design compares the port with, else a biased random one."""
    value = draw(rng, INPUTS[name], ones)
    if name in VALUES and rng.random() < 0.5:
        wanted, bits = rng.choice(VALUES[name])
        value = value & ~bits | wanted
    return value

'''

ANSWERS = """        self.middle = FallingEdge(self.clocks[0].signal)
        self.answers = {{name: dut[{path}] for name, _, _ in OFFERS.values()}}
"""

METHOD = '''
    async def transfers(self, seed, cycles):
        """Random transfers: what is offered holds until it is accepted. Each port has its own pace and share of ones,
        each receiver its own patience, down to none at all."""
        rng = random.Random(seed)
        pace = {name: rng.choice((1, 1, 2, 4, 12)) for name in INPUTS}
        ones = {name: rng.choice((0.5, 0.5, 0.15, 0.85)) for name in INPUTS}
        patience = {name: rng.choice((0, 0.1, 0.5, 0.9, 1)) for name in RECEIVERS}
        paired = {*OFFERS, *RECEIVERS, *(name for _, _, payload in OFFERS.values() for name in payload)}
        offered = dict.fromkeys(OFFERS, 0)
        for _ in range(cycles):
            for valid, (_, _, payload) in OFFERS.items():
                if rng.random() * pace[valid] < 1 and not (offered[valid] and payload):
                    offered[valid] |= draw(rng, INPUTS[valid], 1)
                    for name in payload:
                        self.put(name, pick(rng, name, ones[name]))
                self.put(valid, offered[valid])
            for name in RECEIVERS:
                self.put(name, sum((rng.random() < patience[name]) << bit for bit in range(INPUTS[name])))
            for name in INPUTS:
                if name not in paired and rng.random() * pace[name] < 1:
                    self.put(name, pick(rng, name, ones[name]))
{accept}            await {tick}
'''

ACCEPT = """            await self.middle  # outputs have settled
            for valid, (ready, level, _) in OFFERS.items():
                accepted = int(self.answers[ready].value)
                offered[valid] &= ~accepted if level else accepted
"""
