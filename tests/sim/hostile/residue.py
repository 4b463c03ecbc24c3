"""What a testbench could have left behind: processes, files, changed bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import cocotb

from sim.engine import HARNESS_LOG
from tests.sim.hostile.vault import MARK

_OWN = ("cache/run", "cache/simulations", "cache/ccache")
"""Below a home, what every simulation changes; the first is looked at by itself."""
_KERNEL = ("core_pattern", "hostname", "pid_max")


@dataclass(frozen=True)
class Surroundings:
    """All that must be the same after a hostile testbench as before it."""

    files: tuple[tuple[str, int, int, int], ...]
    settings: tuple[str, ...]


def surroundings(home: Path) -> Surroundings:
    """What is there now. Files count by size, mode and the time of their last change, which nobody can set."""
    return Surroundings(
        tuple(sorted(_files(home))),
        tuple(Path(f"/proc/sys/kernel/{name}").read_text() for name in _KERNEL),
    )


def _files(home: Path) -> Iterator[tuple[str, int, int, int]]:
    installed = Path(cocotb.__file__).parent
    for top in (home, installed):
        for folder, names, files in os.walk(top):
            if any(Path(folder) == home / own for own in _OWN):
                names.clear()
                continue
            if Path(folder).name == "__pycache__":
                continue
            for name in files:
                with suppress(FileNotFoundError):
                    about = os.lstat(f"{folder}/{name}")
                    yield f"{folder}/{name}", about.st_size, about.st_mode, about.st_ctime_ns


def processes(home: Path) -> Iterator[int]:
    """Running processes that were started for a home: by their arguments, their environment or their folder."""
    wanted = str(home).encode()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(process.name) == os.getpid():
                continue
            told = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            if wanted in told or os.readlink(process / "cwd").encode().startswith(wanted):
                yield int(process.name)


def left_in_run_folders(home: Path) -> list[str]:
    """What lies in the folders of the engines beside their logs."""
    return [
        str(path)
        for folder in (home / "cache" / "run").iterdir()
        for path in folder.iterdir()
        if path.name != HARNESS_LOG
    ]


def marked_files(home: Path) -> list[str]:
    """Files of an attack that lie where testbenches cannot write."""
    folders = {Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path("/run"), Path.home(), Path.cwd(), home,
               *home.parents, home / "builds", home / "cache", Path(cocotb.__file__).parents[1]}  # fmt: skip
    return [name for folder in folders if folder.is_dir() for name in os.listdir(folder) if MARK in name]
