"""Files and folders that others may have touched, or that a killed process leaves behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def make_own_folder(parent: Path) -> Path:
    """Make a new folder in `parent` that is named after this process, for `remove_stale_folders`."""
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=parent))


@contextlib.contextmanager
def own_folder(parent: Path) -> Iterator[Path]:
    """Such a folder until the block ends, unless it was renamed by then; others may read it."""
    folder = make_own_folder(parent)
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_stale_folders(parent: Path) -> None:
    """Remove the folders of processes that are gone (killed before they could clean up)."""
    for folder in parent.glob("*-*"):
        pid = folder.name.partition("-")[0]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            remove(folder)


def remove(path: Path) -> None:
    """Remove a file, a link or a folder that a testbench made, as far as that is possible."""
    with contextlib.suppress(OSError):
        if path.is_symlink() or not path.is_dir():
            path.unlink()
            return
        try:
            shutil.rmtree(path, ignore_errors=True)
        except RecursionError:  # folders in folders, thousands deep
            subprocess.run(["rm", "-rf", "--", str(path)], stderr=subprocess.DEVNULL, check=False)


def open_untouched(path: Path) -> BinaryIO:
    """Open a file to read so that it does not count as used (its access time stays), where the system allows that."""
    try:
        return open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOATIME), "rb")
    except PermissionError:  # somebody else's file
        return path.open("rb")


@contextlib.contextmanager
def open_ordinary(path: Path, *, follow: bool = False) -> Iterator[BinaryIO]:
    """Open a file to read that somebody could have replaced: OSError for a pipe, which hangs, and for anything else
    that is no ordinary file; for a link too, unless that is to be followed."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    with open(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path} is no ordinary file")
        yield file


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to `path`, whole or not at all, in a folder that is made when missing. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
