"""A git repository as a source of designs: what is committed, never what lies in the working tree.

Only `rev-parse`, `ls-tree` and `cat-file` are called, which read objects. Settings of the repository could start
programs (hooks, filters, file system monitors, transports of a partial clone): none of these is used by them, and all
are switched off besides. Submodules and symbolic links are left out.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from llm4cov_assets.ingest.formats.directory import SOURCE_FOLDERS
from llm4cov_assets.ingest.looking import spelt
from sim.assembly import HEADER_SUFFIXES, MOST_BYTES, MOST_FILES, SOURCE_SUFFIXES
from sim.files import open_ordinary
from sim.identity import content_id
from sim.load import SETTINGS_FILE

MOST_TREE_FILES = 200_000
"""Files of a commit; OpenTitan has a tenth of them."""

_TREE_BYTES = 64 << 20
_TIMEOUT_S = 5
_OFF = (
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.untrackedCache=false", "core.pager=cat",
    "core.sshCommand=false", "core.askPass=true", "credential.helper=", "protocol.allow=never",
    "fetch.recurseSubmodules=false", "submodule.recurse=false", "log.showSignature=false", "core.commitGraph=false",
)  # fmt: skip
_MODES = ("100644", "100755", "100664")
_USEFUL = (*SOURCE_SUFFIXES, *HEADER_SUFFIXES, ".toml", ".md", ".txt", ".vhd", ".vhdl", ".inc", ".mem", ".hex")
_READ_FIRST = ("HEAD", "config", "config.worktree", "packed-refs", "commondir", "shallow", "objects/info/alternates")
"""Files of a repository that git reads before anything else; it waits for ever for what is a pipe."""

_CHANGES = ("HEAD", "config", "index", "packed-refs", "refs", "refs/heads", "logs/HEAD")
_ODD_NAME = (errno.ENAMETOOLONG, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.EILSEQ, errno.EINVAL)
_OBJECT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class GitError(Exception):
    """The repository cannot be read; one line that says why and what to do."""


class GitSlow(GitError):
    """Git ran into its time limit: the repository is broken, or the machine is busy."""


@dataclass(frozen=True)
class Commit:
    """A commit: its full id, and the first line of its message."""

    id: str
    subject: str

    @property
    def short(self) -> str:
        """The first digits of its id."""
        return self.id[:9]


@dataclass(frozen=True)
class TreeFile:
    """A file of a commit: path from the root of the tree, id of its content, bytes."""

    path: str
    blob: str
    size: int


def commit_id(repository: Path, branch: str = "") -> str:
    """The id of the commit that `branch` (by default HEAD) is at. Raises GitError."""
    if not repository.is_dir():
        raise GitError(f"{repository}: no such folder; correct the path")
    _refuse_odd(repository)
    name = f"refs/heads/{branch}" if branch else "HEAD"
    found = _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", check=False)
    text = found.stdout.decode(errors="replace").strip()
    if _OBJECT.fullmatch(text):
        return text
    said = found.stderr.decode(errors="replace").strip()
    if "not a git repository" in said:
        raise GitError(f"{repository}: not a git repository; correct the path, or leave out git = true")
    if said:
        raise GitError(f"{repository}: {said.splitlines()[0]}")
    raise GitError(f"{repository}: " + (f"no branch {branch!r}" if branch else "nothing is committed yet"))


def state(repository: Path, branch: str = "") -> str:
    """Changes when commits, branches or settings of the repository do, as far as sizes, times and inodes tell; without
    git, so it is there for a repository that git cannot read."""
    found: list[object] = [str(repository), branch]
    for name in (*_CHANGES, *([f"refs/heads/{branch}"] if branch else [])):
        for folder in _git_folders(repository):
            with suppress(OSError):
                s = (folder / name).stat()
                found.append([name, str(folder), s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino])
    return content_id("git state", found)


def _git_folders(repository: Path) -> list[Path]:
    """Where objects, branches and settings are: `.git`, the folder itself of a bare repository, or what the `.git` of a
    working tree of another one names, and the common folder that this names."""
    inside = repository / ".git"
    if inside.is_dir():
        found = inside
    elif named := _named(inside, "gitdir: "):
        found = repository / named
    else:
        found = repository
    common = _named(found / "commondir", "")
    return [found, found / common] if common else [found]


def _named(file: Path, prefix: str) -> str:
    """The path in a file that holds nothing else; empty when there is none."""
    with suppress(OSError, ValueError), open_ordinary(file, follow=True) as opened:
        text = opened.read(4096).decode()
        if text.startswith(prefix) and "\0" not in text:
            return text.removeprefix(prefix).strip()
    return ""


def _refuse_odd(repository: Path) -> None:
    """GitError for a repository with a pipe or a device where git reads a file."""
    for file in (folder / name for folder in _git_folders(repository) for name in _READ_FIRST):
        try:
            mode = file.stat().st_mode
        except OSError:
            continue
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise GitError(f"{repository}: {file} is no ordinary file; mend the repository, or clone it anew")


def read_commit(repository: Path, commit: str) -> Commit:
    """The commit with this id. Raises GitError."""
    text = _git(repository, "cat-file", "commit", commit).stdout[:_TREE_BYTES].decode("utf-8", errors="replace")
    message = text.partition("\n\n")[2].strip()
    subject = "".join(c for c in message.split("\n", 1)[0] if c.isprintable())
    return Commit(commit, subject[:100])


def tree_files(repository: Path, commit: str, subfolder: str = "") -> list[TreeFile]:
    """The ordinary files of a commit that are not hidden, below `subfolder`, paths from there. Raises GitError."""
    where = f"{commit}:{subfolder.strip('/')}" if subfolder.strip("/") else commit
    listed = _git(repository, "ls-tree", "-r", "-l", "-z", "--full-tree", where, check=False)
    if listed.returncode:
        if subfolder:
            raise GitError(f"{repository}: no folder {subfolder!r} in commit {commit[:9]}")
        raise GitError(f"{repository}: commit {commit[:9]} cannot be read; try git fsck")
    lines = listed.stdout.split(b"\0")
    if len(lines) > MOST_TREE_FILES or len(listed.stdout) >= _TREE_BYTES:
        raise GitError(f"{repository}: more than {MOST_TREE_FILES:,} files; name a subfolder")
    return list(_files(repository, lines))


def _files(repository: Path, lines: Iterable[bytes]) -> Iterator[TreeFile]:
    for line in lines:
        head, tab, name = line.partition(b"\t")
        fields = head.decode("ascii", errors="replace").split()
        if not tab or len(fields) != 4 or fields[0] not in _MODES or fields[1] != "blob":
            continue
        if not fields[3].isdecimal():
            raise GitError(f"{repository}: {spelt(os.fsdecode(name))} is missing; fetch all of it, or try git fsck")
        try:
            path = name.decode("utf-8")
        except UnicodeDecodeError:
            continue
        parts = path.split("/")
        # git makes no such trees, but other programs can
        if all(p and not p.startswith(".") and p.isprintable() for p in parts):
            yield TreeFile(path, fields[2], int(fields[3]))


def design_folders(files: Sequence[TreeFile], globs: Sequence[str] = ()) -> dict[str, list[TreeFile]]:
    """The files of each design by its folder ("" is the root): the folders that `globs` name, else the whole tree when
    it is one design, else its folders with RTL. Only files that a design may be made of are told."""
    useful = useful_files(files)
    rtl = [f.path for f in useful if f.path.endswith(SOURCE_SUFFIXES)]
    if globs:
        folders = sorted({"/".join(f.split("/")[: g.strip("/").count("/") + 1]) for f in rtl for g in globs
                          if f.count("/") > g.strip("/").count("/")})  # fmt: skip
        chosen = [f for f in folders if any(_fits(f, g) for g in globs)]
    else:
        tops = {f.split("/", 1)[0] for f in rtl if "/" in f}
        at_root = any("/" not in f.path and _marks_design(f.path) for f in useful)
        chosen = [""] if at_root or any(t.lower() in SOURCE_FOLDERS for t in tops) else sorted(tops)
    found: dict[str, list[TreeFile]] = {folder: [] for folder in chosen}
    for file in useful:
        for folder in _above(file.path):
            if folder in found:
                found[folder].append(file)
    return found


def useful_files(files: Iterable[TreeFile]) -> list[TreeFile]:
    """Those of the files that a design may be made of."""
    return [f for f in files if f.path.endswith(_USEFUL)]


def _marks_design(path: str) -> bool:
    return path == SETTINGS_FILE or path.endswith((*SOURCE_SUFFIXES, *HEADER_SUFFIXES))


def _fits(folder: str, glob: str) -> bool:
    """Whether a folder fits a glob, part by part: `*` does not cross a slash."""
    parts, wanted = folder.split("/"), glob.strip("/").split("/")
    return len(parts) == len(wanted) and all(fnmatchcase(p, w) for p, w in zip(parts, wanted, strict=True))


def _above(path: str) -> list[str]:
    """The folders that a path lies in, the root first."""
    parts = path.split("/")[:-1]
    return ["", *("/".join(parts[: i + 1]) for i in range(len(parts)))]


def content_hash(files: Sequence[TreeFile], folder: str) -> str:
    """Hash of paths (below the design's folder) and contents: another commit with the same files has the same."""
    skip = len(folder) + 1 if folder else 0
    return content_id("inbox git", sorted([f.path[skip:], f.blob] for f in files))


def too_large(files: Sequence[TreeFile]) -> str:
    """Why these files are too much for one design; empty when they are not."""
    size = sum(f.size for f in files)
    if len(files) <= MOST_FILES and size <= MOST_BYTES:
        return ""
    most = f"a design has at most {MOST_FILES:,} files and {MOST_BYTES >> 20} MiB"
    return f"too large ({len(files):,} files, {size >> 20} MiB; {most})"


def export(repository: Path, files: Sequence[TreeFile], target: Path) -> None:
    """Write files of a commit below `target`, which is made. Raises GitError."""
    if why := too_large(files):
        raise GitError(f"{repository}: {why}")
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile() as wanted, tempfile.TemporaryFile() as given:
        wanted.write("".join(f"{f.blob}\n" for f in files).encode())
        wanted.seek(0)
        _git(repository, "cat-file", "--batch", stdin=wanted, stdout=given)
        given.seek(0)
        for file in files:
            head = given.readline(200).split()
            if len(head) != 3 or head[1] != b"blob" or int(head[2]) != file.size:
                raise GitError(f"{repository}: {file.path} cannot be read from the commit; try git fsck")
            content = given.read(file.size)
            given.read(1)
            _write(repository, file, target / file.path, content)


def _write(repository: Path, file: TreeFile, path: Path, content: bytes) -> None:
    """Write one file of a commit. GitError for a name that a tree can have and a folder cannot."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        if error.errno not in _ODD_NAME:
            raise
        shown = file.path if len(file.path) <= 100 else f"{file.path[:60]}...{file.path[-30:]}"
        raise GitError(f"{repository}: {shown} cannot be written out ({error.strerror}); rename it") from None


def _git(
    repository: Path, *arguments: str, check: bool = True, stdin: object = subprocess.DEVNULL, stdout: object = None
) -> subprocess.CompletedProcess[bytes]:
    """Run git on a repository. Raises GitError when it is missing, hangs, or (with `check`) fails."""
    settings = [word for setting in (*_OFF, f"safe.directory={repository}") for word in ("-c", setting)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    environment |= {
        "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_ALLOW_PROTOCOL": "",
        "GIT_CEILING_DIRECTORIES": str(repository.parent),
    }  # fmt: skip
    command = ["git", "--no-pager", "--no-optional-locks", *settings, "-C", str(repository), *arguments]
    try:
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                command, stdin=stdin, stdout=stdout or output, stderr=subprocess.PIPE, timeout=_TIMEOUT_S,  # type: ignore[call-overload]
                check=False, env=environment,
            )  # fmt: skip
            output.seek(0)
            text = b"" if stdout else output.read(_TREE_BYTES)
    except FileNotFoundError:
        raise GitError("git is not installed, which this source needs") from None
    except subprocess.TimeoutExpired:
        raise GitSlow(f"{repository}: git takes longer than {_TIMEOUT_S} s; try git fsck") from None
    except OSError as error:
        raise GitError(f"{repository}: cannot be read ({error.strerror})") from None
    if check and done.returncode:
        said = done.stderr.decode(errors="replace").strip() or f"git {arguments[0]} failed"
        raise GitError(f"{repository}: {said.splitlines()[0]}")
    return subprocess.CompletedProcess(command, done.returncode, text, done.stderr)
