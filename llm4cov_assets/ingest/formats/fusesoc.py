"""FuseSoC core files (CAPI2): one `.core` file, or all below a folder that name a top module.

Of the targets of a core the first one with a top module is taken, in the order `default`, `synth`, `lint`, `rtl`, the
others, those of simulations. Dependencies are looked for among the core files below the folder; for one core file below
the nearest folder above it with a `fusesoc.conf` or `.git`, else below its own. `FUSESOC_IGNORE` hides a folder.
Generators and hooks are not run and nothing is fetched.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.archives import unpacked_root
from llm4cov_assets.ingest.candidates import Candidate
from llm4cov_assets.ingest.formats.cores import CoreReading
from llm4cov_assets.ingest.formats.listed import Listed, canonical, gathered, is_below, kind, read_text
from sim import reasons
from sim.assembly import Gathered
from sim.design import DesignError
from sim.load import SPECIFICATION_SUFFIXES

MOST_BYTES = 1 << 20
"""Of a core file; the largest of OpenTitan has 20 KiB."""
MOST_CORES = 5_000
MOST_ENTRIES = 500_000
"""Files and folders to look at for core files."""
CPU_S = 10
CPU_S_A_CORE = 0.05
"""Seconds for reading the core files of one source, and more for each; the 212 of ibex take 2 in all."""
MEMORY_BYTES = 2 << 30


def candidates(source: str, format: str) -> Iterator[Candidate]:
    """The core at `source`, or those in the folder that name a top module or cannot be read."""
    path = Path(source).expanduser()
    is_kind = kind(path)
    if is_kind not in ("file", "folder"):
        raise UserError(f"{source}: no such file or folder; name a core file (*.core), or a folder with some")
    path = path.parent.resolve() / path.name if is_kind == "file" else path.resolve()
    root = path if is_kind == "folder" else _library_of(path)
    files = _core_files(root)
    if is_kind == "folder" and not files:
        raise UserError(f"{source}: no core files (*.core) below it")
    wanted = files if is_kind == "folder" else [path]
    refused = {file: error for file in files if (error := _refusal(file))}
    read = [file for file in dict.fromkeys([*files, *wanted]) if file not in refused]
    asked = [file for file in wanted if file not in refused]
    readings = {r.file: r for r in _read(source, read, asked, root, is_kind == "file")} if asked else {}
    for file in wanted:
        if file in refused:
            yield Candidate(file.stem, str(file), partial(_refuse, refused[file]))
            continue
        reading = readings[str(file)]
        if reading.reason or reading.sources or reading.top or is_kind == "file":
            yield Candidate(reading.name, reading.file, partial(_gather, reading))


def count(source: str, format: str) -> int | None:
    """Not known before the core files are read."""
    return 1 if Path(source).expanduser().is_file() else None


def _library_of(core: Path) -> Path:
    """The folder whose core files count for one core."""
    confined_to = unpacked_root(core)
    for folder in core.parents:
        if folder.name.startswith("."):
            break  # installed somewhere below a project that it is no part of
        if (folder / "fusesoc.conf").exists() or (folder / ".git").exists() or folder == confined_to:
            return folder
    return core.parent


def _core_files(root: Path) -> list[Path]:
    found: list[Path] = []
    seen = 0
    for folder, folders, files in os.walk(root):
        if "FUSESOC_IGNORE" in files:
            folders.clear()
            continue
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        seen += len(folders) + len(files)
        found += [Path(folder, f) for f in files if f.endswith(".core") and not f.startswith(".")]
        if seen > MOST_ENTRIES or len(found) > MOST_CORES:
            raise UserError(f"{root}: more than {MOST_ENTRIES:,} files or {MOST_CORES:,} core files below it; name a "
                            "folder with fewer, or put a file FUSESOC_IGNORE into what does not matter")  # fmt: skip
    return sorted(found)


def _refusal(file: Path) -> DesignError | None:
    """Why a core file cannot be read at all."""
    try:
        first = read_text(file, MOST_BYTES).partition("\n")[0].split()
    except DesignError as error:
        return error
    if first[:1] == ["CAPI=2:"]:
        return None
    if first[:1] == ["CAPI=1"]:
        return DesignError(f"{file}:1: CAPI1, which FuseSoC reads no more; write it as CAPI2 (the first line is then "
                           "CAPI=2:)", reasons.MALFORMED)  # fmt: skip
    return DesignError(f"{file}:1: not a FuseSoC core file; its first line must be CAPI=2:", reasons.MALFORMED)


def _refuse(error: DesignError) -> Gathered:
    raise DesignError(str(error), error.reason)


def _read(
    source: str, files: Sequence[Path], wanted: Sequence[Path], root: Path, without_top: bool
) -> list[CoreReading]:
    """Have the core files read in a process with limits."""
    cpu_s = int(CPU_S + CPU_S_A_CORE * len(files))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    request = {"files": [str(f) for f in files], "wanted": [str(f) for f in wanted], "root": str(root),
               "without_top": without_top}  # fmt: skip
    environment = {**os.environ, "PYTHONUTF8": "1", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "llm4cov_assets.ingest.formats.cores"], input=json.dumps(request).encode(),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, preexec_fn=limit,
            timeout=4 * cpu_s, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            return [CoreReading(**reading) for reading in json.loads(done.stdout)]
    except (subprocess.TimeoutExpired, ValueError):
        pass
    raise UserError(f"{source}: reading the core files takes FuseSoC more than {cpu_s} s or {MEMORY_BYTES >> 30} GiB, "
                    "or ends it; name one core file, and look for YAML that nests or repeats itself")  # fmt: skip


def _gather(reading: CoreReading) -> Gathered:
    if reading.reason:
        raise DesignError(reading.message, reading.reason)
    file = Path(reading.file)
    confined_to = unpacked_root(file)
    for path in (*reading.sources, *reading.include_dirs):
        if not is_below(Path(path), confined_to):
            raise DesignError(f"{file}: {path!r} leads out of the archive; put the file into it",
                              reasons.UNSAFE_ARCHIVE)  # fmt: skip
        if kind(Path(path)) == "other" or (kind(Path(path)) == "folder" and path in reading.sources):
            raise DesignError(f"{file}: {path!r} is no ordinary file; name RTL files", reasons.UNREADABLE)
    listed = Listed(
        list(dict.fromkeys(canonical(Path(p)) for p in reading.sources)),
        list(dict.fromkeys(Path(d).resolve() for d in reading.include_dirs)),
        [Path(p) for p in reading.others], reading.defines, reading.parameters, reading.top or None,
    )  # fmt: skip
    found = gathered(reading.file, reading.name, listed, confined_to)
    texts = [file.with_suffix(suffix) for suffix in SPECIFICATION_SUFFIXES if kind(file.with_suffix(suffix)) == "file"]
    found.specification = read_text(texts[0], MOST_BYTES) if texts else reading.description
    return found
