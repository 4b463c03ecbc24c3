"""Ports of the top that no testbench can drive or read: found before the design is built, with what to do about it."""

from __future__ import annotations

from typing import Any

from pyslang import ast

from sim.slang import Elaboration

_WRAP = "wrap the design in a module with plain ports that has it inside, and choose that as the top"


def unusable_port(elaboration: Elaboration) -> str | None:
    """`file:line: why` of the first port of the top that a simulation cannot reach from outside; None if all will do.

    Vectors, packed and enumerated types, real numbers, unpacked arrays of these, and inout ports will do.
    """
    tops = elaboration.compilation.getRoot().topInstances
    for port in tops[0].body.portList if len(tops) else ():
        why = _objection(port)
        if why:
            file, line = elaboration.file_line(port.location)
            return f"{file}:{line}: port {port.name} of {tops[0].name} is {why}"
    return None


def _objection(port: Any) -> str | None:
    if isinstance(port, ast.InterfacePortSymbol):
        return f"an interface, which a testbench cannot connect; {_WRAP}"
    if not isinstance(port, ast.PortSymbol) or port.isNullPort:
        return None
    if port.direction == ast.ArgumentDirection.Ref:
        return f"a ref port, which the simulator does not support at the top; {_WRAP}"
    kind = port.type.canonicalType
    while isinstance(kind, ast.FixedSizeUnpackedArrayType):
        kind = kind.elementType.canonicalType
    if kind.isIntegral or kind.isFloating or kind.isError:
        return None
    if isinstance(kind, ast.UnpackedStructType | ast.UnpackedUnionType):
        return f"an unpacked struct or union, whose members a testbench cannot reach; declare it packed, or {_WRAP}"
    return f"of type {port.type}, which a testbench cannot drive; {_WRAP}"
