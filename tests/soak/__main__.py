"""`script/soak NAME`: runs that take too long for script/test. Exit code 1 when what they check does not hold."""

from __future__ import annotations

import argparse
import logging
import sys
from types import ModuleType

from tests.soak import corpus, decontamination, engine, equal, equal_sv, evaluations, fuzz, million, warehouse

SOAKS: dict[str, ModuleType] = {
    "corpus": corpus, "decontamination": decontamination, "engine": engine, "equal": equal, "equal-sv": equal_sv,
    "evaluations": evaluations, "fuzz": fuzz, "million": million, "warehouse": warehouse,
}  # fmt: skip
"""Each module has a line about itself (the first of its docstring), `add_options` and `run`."""


def line(module: ModuleType) -> str:
    return (module.__doc__ or "").partition("\n")[0]


def main() -> None:
    parser = argparse.ArgumentParser(prog="script/soak", description="Long acceptance runs.")
    names = parser.add_subparsers(dest="name", metavar="NAME")
    for name, module in SOAKS.items():
        module.add_options(names.add_parser(name, help=line(module), description=module.__doc__))
    options = parser.parse_args()
    if options.name is None:
        print("\n".join(f"{name:15} {line(module)}" for name, module in SOAKS.items()))
        return
    logging.disable(logging.CRITICAL)
    if not SOAKS[options.name].run(options):
        sys.exit(f"script/soak {options.name}: FAILED")
    print(f"script/soak {options.name}: holds")


if __name__ == "__main__":
    main()
