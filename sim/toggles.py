"""Ways to make the bits of a signal change: away from their value after reset, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sim.conditions import Step
from sim.domains import bits
from sim.elaborate import Analysis
from sim.expressions import Signal
from sim.frames import Memory

TOGGLE_WORK = 6_000
"""Steps of the solver for the bits of one signal, in each direction."""
MAX_TRIES = 4

Bit = tuple[Signal, int]


@dataclass(frozen=True)
class Toggling:
    """Steps from reset, and the indices of the bits that rise and that fall on the way."""

    steps: tuple[Step, ...]
    rising: frozenset[int]
    falling: frozenset[int]


def toggling(analysis: Analysis, name: str, indices: Iterable[int]) -> Toggling | None:
    """A way to toggle bits of the signal `name` (hierarchical: `top.u_core.data`, `top.mem[3]`); None if none is known.

    Indices are those of the source; the only bit of a scalar has index 0. Bits that cannot leave their reset value
    together are dropped by halves. The way back is a stimulus that works from any state, else a reset if that
    restores the bit, else another way from reset.
    """
    _ = analysis.branches  # the states that they reach shorten the search, whoever asks first
    wanted = _bits(analysis, name, indices)
    after_reset = {index: _after_reset(analysis, bit) for index, bit in wanted.items()}
    chosen = list(wanted)
    away: tuple[Step, ...] | None = None
    for _ in range(MAX_TRIES):
        away = _plan(analysis, [(wanted[i], after_reset[i] != 1) for i in chosen], anywhere=False)
        if away is not None or len(chosen) < 2:
            break
        chosen = chosen[: len(chosen) // 2]
    if away is None or not chosen:
        return None
    ones = frozenset(i for i in chosen if after_reset[i] != 1)
    back = _plan(analysis, [(wanted[i], i not in ones) for i in chosen], anywhere=True)
    if back is None:
        restart = analysis.planner.reset_steps
        unknown = [i for i in chosen if after_reset[i] is None]
        if restart and not unknown:
            back = restart
        elif restart and len(unknown) == len(chosen):
            again = _plan(analysis, [(wanted[i], False) for i in chosen], anywhere=False)
            back = None if again is None else restart + again
    there, returning = frozenset(chosen), frozenset(chosen if back is not None else ())
    return Toggling(away + (back or ()), ones | (returning - ones), (there - ones) | (returning & ones))


def _plan(analysis: Analysis, wanted: Sequence[tuple[Bit, bool]], anywhere: bool) -> tuple[Step, ...] | None:
    fixed: dict[Signal, int] = {}
    values: dict[Signal, int] = {}
    for (signal, bit), value in wanted:
        fixed[signal] = fixed.get(signal, 0) | 1 << bit
        values[signal] = values.get(signal, 0) | value << bit
    domains = [(analysis.netlist.x.signal(s), bits(s.width, m, values[s])) for s, m in fixed.items()]
    literals = [(e, d) for e, d in domains if d is not None]
    return analysis.planner.plan(literals, anywhere, TOGGLE_WORK)[0] if literals else None


def _after_reset(analysis: Analysis, bit: Bit) -> int | None:
    """The value of a bit after reset with all other inputs 0; None when it is not known."""
    signal, position = bit
    known = analysis.planner.at_reset.of(analysis.netlist.x.signal(signal))
    return known.value >> position & 1 if known.fixed >> position & 1 else None


def _bits(analysis: Analysis, name: str, indices: Iterable[int]) -> dict[int, Bit]:
    """The named bits as signals and positions, the highest first; what is not followed is left out."""
    names = analysis.netlist.names
    found = names.get(name)
    if found is None and name.endswith("]"):
        array, _, number = name[:-1].rpartition("[")
        memory = names.get(array)
        if isinstance(memory, Memory) and number.isdecimal():
            position = memory.position(int(number))
            found = memory.elements[position] if 0 <= position < len(memory.elements) else None
    result: dict[int, Bit] = {}
    for index in sorted(set(indices), reverse=True):
        if isinstance(found, Memory):
            position = found.position(index)
            if 0 <= position < len(found.elements) and found.elements[position].width == 1:
                result[index] = found.elements[position], 0
        elif found is not None:
            bit = index - analysis.netlist.lowest.get(name, 0)
            if 0 <= bit < found.width:
                result[index] = found, bit
    return result
