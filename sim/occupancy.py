"""Who uses the caches of a home: many at a time may add to them and read them, or one may remove from them."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_LOCK = Path("cache", "in-use.lock")


def occupy(home: Path) -> BinaryIO | None:
    """Use the caches of `home` until the returned file is closed (or the process ends). None where no lock can be
    made, as on a disk that cannot be written: nobody removes anything there. Waits while somebody removes."""
    path = home / _LOCK
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
        fcntl.flock(file, fcntl.LOCK_SH)
    except OSError:
        return None
    return file


@contextlib.contextmanager
def in_use(home: Path) -> Iterator[None]:
    """Use the caches of `home` during the block: what it finds there stays there."""
    file = occupy(home)
    try:
        yield
    finally:
        if file is not None:
            file.close()


@contextlib.contextmanager
def alone(home: Path) -> Iterator[bool]:
    """Whether nobody uses the caches of `home`; if so, whoever wants to waits for the end of the block."""
    path = home / _LOCK
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def users(home: Path) -> list[int]:
    """Ids of the processes that use the caches of `home`, as far as the system tells (Linux: /proc/locks)."""
    try:
        wanted = os.stat(home / _LOCK).st_ino
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return []
    found = set()
    for line in lines:  # 1: FLOCK  ADVISORY  READ 4711 fd:00:131074 0 EOF
        fields = line.replace("->", "").split()
        if len(fields) > 5 and fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == str(wanted):
            found.add(int(fields[4]))
    return sorted(found - {-1})
