"""Source files of the inbox, `NAME.toml`: they point at designs that lie elsewhere.

path = "/home/me/rtl"   # a folder, an RTL file, a file list, an archive, a data set
designs = "ip/*"        # optional: each folder that fits is an entry of its own, NAME.FOLDER; or a list of globs
subfolder = "hw"        # optional: look only below this folder
git = true              # optional: what is committed, not what lies in the working tree; an entry for each design
branch = "main"         # optional, with git: else HEAD
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from llm4cov_assets.errors import UserError
from sim.files import open_ordinary

_MOST_BYTES = 64 << 10
_KEYS: dict[str, tuple[type, ...]] = {
    "path": (str,), "git": (bool,), "branch": (str,), "subfolder": (str,), "designs": (str, list),
}  # fmt: skip


@dataclass(frozen=True)
class Pointer:
    """Where the designs of an entry are."""

    path: Path
    git: bool = False
    branch: str = ""
    subfolder: str = ""
    designs: tuple[str, ...] = ()

    def as_toml(self) -> str:
        """The content of a source file that says the same."""
        lines = [f"path = {json.dumps(str(self.path), ensure_ascii=False)}"]
        lines += ["git = true"] if self.git else []
        lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in
                  (("branch", self.branch), ("subfolder", self.subfolder)) if value]  # fmt: skip
        lines += [f"designs = {json.dumps(list(self.designs), ensure_ascii=False)}"] if self.designs else []
        return "\n".join(lines) + "\n"


def read_pointer(file: Path) -> Pointer:
    """Read a source file; a relative path is one from its folder. UserError, which names the key, for a bad one."""
    name = file.name
    try:
        with open_ordinary(file, follow=True) as opened:
            content = opened.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise UserError(f"{name} is no source file: too large")
        found = tomllib.loads(content.decode())
    except OSError as error:
        raise UserError(f"{name} cannot be read ({error.strerror or 'no ordinary file'})") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}: not valid TOML: {error}") from None
    return pointer(found, name, file.parent)


def pointer(found: dict[str, Any], name: str, folder: Path) -> Pointer:
    """What the keys of a source file say. UserError."""
    for key, value in found.items():
        if key not in _KEYS:
            raise UserError(f"{name}: unknown key {key!r}; there are {', '.join(_KEYS)}")
        if not isinstance(value, _KEYS[key]):
            raise UserError(f"{name}: {key} is of the wrong type; write for example {_EXAMPLES[key]}")
    if not found.get("path"):
        raise UserError(f"{name} names no path; write {_EXAMPLES['path']}")
    git, branch, subfolder = found.get("git", False), found.get("branch", ""), found.get("subfolder", "")
    designs = found.get("designs", [])
    globs = [designs] if isinstance(designs, str) else designs
    if branch and not git:
        raise UserError(f"{name}: branch is for git sources; write git = true")
    for text in (subfolder, *globs):
        if not isinstance(text, str) or not _is_inside(text):
            raise UserError(f"{name}: {text!r} is no path below the source; write for example {_EXAMPLES['designs']}")
    try:
        path = Path(found["path"]).expanduser()
    except RuntimeError as error:
        raise UserError(f"{name}: {error}") from None
    if "\0" in found["path"]:
        raise UserError(f"{name}: path holds a null byte")
    return Pointer(folder / path, git, branch, subfolder.strip("/"), tuple(globs))


_EXAMPLES = {
    "path": 'path = "/home/me/rtl"', "git": "git = true", "branch": 'branch = "main"', "subfolder": 'subfolder = "hw"',
    "designs": 'designs = "ip/*"',
}  # fmt: skip


def _is_inside(text: str) -> bool:
    named = PurePosixPath(text)
    return not named.is_absolute() and ".." not in named.parts and "**" not in named.parts and "\0" not in text
