"""Which designs there are: the bundled corpus, the generated sets of a profile, imported ones, and any path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from llm4cov_assets.errors import UserError
from llm4cov_assets.ingest.canonical import canonical_content
from llm4cov_assets.ingest.formats import reader
from llm4cov_assets.ingest.generator import HELD_OUT, GeneratedDesign, by_name, families, generate
from llm4cov_assets.ingest.kept import kept_designs, newest_kept, retired
from llm4cov_assets.ingest.records import (
    HAND_WRITTEN,
    HAND_WRITTEN_FRESH,
    HELD_OUT_FAMILIES,
    SEEN_FAMILIES,
    DesignRecord,
)
from llm4cov_assets.ingest.reference import CORPUS, reference
from llm4cov_assets.profiles import Profile, profile
from sim.assembly import Gathered, assemble
from sim.design import Design
from sim.load import gather, load_design

EVALUATION_SEED = 0
EVALUATION_STREAM = "e"


@lru_cache(maxsize=1)
def corpus_designs() -> tuple[Design, ...]:
    """The bundled hand-written designs, by name."""
    folders = sorted(p for p in CORPUS.iterdir() if p.is_dir() and not p.name.startswith((".", "_")))
    return tuple(load_design(folder) for folder in folders)


def development_designs() -> list[Design]:
    """The bundled designs that profiles evaluate on. The fresh ones stand apart: nobody tunes on them."""
    return [d for d in corpus_designs() if reference(d.name).collection == "development"]


def _hand_written(design: Design) -> DesignRecord:
    benchmark = HAND_WRITTEN if reference(design.name).collection == "development" else HAND_WRITTEN_FRESH
    return DesignRecord(design, "eval", "hand_written", design.name, benchmark, f"corpus:{design.name}")


def _record(generated: GeneratedDesign, split: str, benchmark: str = "") -> DesignRecord:
    return DesignRecord(generated.design, split, "generated", generated.family, benchmark, generated.source)


def training_families(profile: Profile) -> list[str]:
    """Families that the profile trains on: those that match its glob, held-out ones never."""
    found = [f for f in families(profile.train_families) if f not in HELD_OUT]
    if not found:
        raise UserError(f"train_families {profile.train_families!r} leaves only held-out ones ({', '.join(HELD_OUT)})")
    return found


def training_set(profile: Profile) -> list[DesignRecord]:
    """The generated training designs of `profile`. None has the RTL of an evaluation design.

    A larger `train_designs` only adds designs at the end.
    """
    names = training_families(profile)
    glob = ",".join(names)
    taken = {canonical_content(g.design) for g in _evaluation(profile, names)}
    spare = len(taken)
    drawn = generate(profile.train_designs + spare, glob, profile.seed)
    kept = [g for g in drawn if canonical_content(g.design) not in taken][: profile.train_designs]
    return [_record(g, "train") for g in kept if fnmatchcase(g.design.name, profile.designs_glob)]


def _evaluation(profile: Profile, names: Sequence[str]) -> list[GeneratedDesign]:
    return [
        g for family in names for g in generate(profile.eval_per_family, family, EVALUATION_SEED, EVALUATION_STREAM)
    ]


def evaluation_set(profile: Profile) -> list[DesignRecord]:
    """The evaluation designs of `profile`: hand-written ones, then unseen parameters of the families it trains on,
    then the families that it never trains on. They are the same for every seed of the profile."""
    records = [_hand_written(d) for d in development_designs()[: profile.eval_hand_written]]
    records += [_record(g, "eval", SEEN_FAMILIES) for g in _evaluation(profile, training_families(profile))]
    records += [_record(g, "eval", HELD_OUT_FAMILIES) for g in _evaluation(profile, HELD_OUT)]
    return [r for r in records if fnmatchcase(r.name, profile.designs_glob)]


def generated_records(count: int, families_glob: str, seed: int, split: str) -> list[DesignRecord]:
    """`count` generated designs for a split. Training leaves out the held-out families; evaluation designs differ
    from the training designs of the same seed."""
    if split not in ("train", "eval"):
        raise UserError(f"no split {split!r}; there are train and eval")
    if split == "eval":
        found = generate(count, families_glob, seed, EVALUATION_STREAM)
        return [_record(g, split, HELD_OUT_FAMILIES if g.family in HELD_OUT else SEEN_FAMILIES) for g in found]
    names = [f for f in families(families_glob) if f not in HELD_OUT]
    if not names:
        raise UserError(f"{families_glob!r} names only families held out of training ({', '.join(HELD_OUT)}); "
                        "use --split eval")  # fmt: skip
    return [_record(g, split) for g in generate(count, ",".join(names), seed)]


def fresh_records() -> list[DesignRecord]:
    """The hand-written designs that no profile evaluates on: for confirming what was found on the others."""
    return [r for r in map(_hand_written, corpus_designs()) if r.benchmark == HAND_WRITTEN_FRESH]


def reference_targets() -> dict[tuple[str, str], dict[str, float]]:
    """The targets that bundled designs bring along, {metric: fraction} by design id and simulator. Those of an RTL that
    has changed since are left out."""
    return {
        (design.design_id, found.simulator): dict(found.targets)
        for design in corpus_designs()
        for found in reference(design.name).targets
        if found.rtl_id == design.rtl_id
    }


def bundled_records(profile: Profile) -> list[DesignRecord]:
    """Every design that has a name without having been imported: the corpus, then the generated sets of the profile."""
    generated = [r for r in (*evaluation_set(profile), *training_set(profile)) if r.kind == "generated"]
    return [*(_hand_written(d) for d in corpus_designs()), *generated]


def known_records(home: Path, profile: Profile) -> list[DesignRecord]:
    """Every design that has a name: the profile's sets and what was imported, by kind and name."""
    return [*bundled_records(profile), *(d.load() for designs in kept_designs(home).values() for d in designs)]


def known_names(home: Path, profile: Profile) -> list[str]:
    """The names of all of them."""
    kept = [d.name for designs in kept_designs(home).values() for d in designs]
    return [*(r.name for r in bundled_records(profile)), *kept]


def find_design(
    text: str,
    home: Path,
    *,
    top: str | None = None,
    defines: Mapping[str, str] = {},
    include_dirs: Sequence[Path] = (),
    parameters: Mapping[str, str] = {},
) -> Design:
    """The design that a person means by `text`: a name (bundled, generated or imported), a folder or an RTL file.

    A name wins over a path of the same spelling unless `text` has a slash or an RTL suffix; the name of what was only
    simulated never does, or the RTL that someone edits there would not be what is simulated. The other arguments
    override what the design says itself. Raises UserError or DesignError.
    """
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:
        raise UserError(f"{text}: {error} Name a folder or an RTL file") from None
    if not ("/" in text or path.suffix in (".v", ".sv", *LIST_SUFFIXES)):
        record = record_by_name(text, home)
        named = record and record.design
        if record and record.split == "adhoc" and _holds_rtl(path):
            named = None
        if named is not None:
            if include_dirs:
                raise UserError(f"--include does not apply to the stored design {text!r}; name its folder or file")
            return replace(
                named,
                top=top or named.top,
                defines=tuple(sorted({**dict(named.defines), **defines}.items())),
                parameters=tuple(sorted({**dict(named.parameters), **parameters}.items())),
            )
        if not path.exists():
            gone = [why for design, why in retired(home) if design.name == text]
            if gone:
                raise UserError(f"{text} is retired: {gone[-1]}; `llm4cov designs restore {text}` takes it back")
            raise UserError(
                f"no design {text!r}: neither a known name (`llm4cov designs list`) nor a file or folder"
                f"{did_you_mean(text, known_names(home, profile('demo')))}"
            )
    found = _listed(path) if path.suffix in LIST_SUFFIXES and path.is_file() else gather(path)
    return assemble(found, top=top, defines=defines, include_dirs=include_dirs, parameters=parameters)


LIST_SUFFIXES = (".f", ".vc", ".core")
"""Of files that name the files of one design."""


def _listed(path: Path) -> Gathered:
    """The design of a file list or core file."""
    candidates, _ = reader(str(path))
    found = [c.gather() for c in candidates()]
    if len(found) != 1:
        raise UserError(f"{path}: {len(found)} designs in it; import it and name one of them")
    return found[0]


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """The end of a message about an unknown name: up to three of `names` that look like it, or nothing."""
    close = get_close_matches(name.lower().replace("-", "_"), names, n=3, cutoff=0.7)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def overlooked(text: str, home: Path) -> Path | None:
    """The folder with RTL that `text` also spells, when `find_design` takes the design of that name instead."""
    record = record_by_name(text, home) if text and "/" not in text else None
    return Path(text) if record and record.split != "adhoc" and _holds_rtl(Path(text)) else None


def _holds_rtl(path: Path) -> bool:
    return path.is_dir() and any(f.suffix in (".v", ".sv") for f in path.rglob("*"))


def bundled(name: str) -> Design | None:
    """The hand-written or generated design that a name means, whatever was imported; None if it means neither."""
    generated = by_name(name)
    return generated.design if generated else next((d for d in corpus_designs() if d.name == name), None)


def record_by_name(name: str, home: Path) -> DesignRecord | None:
    """What the name stands for, whatever lies in the current folder."""
    if (CORPUS / name).is_dir() and name:
        return next((_hand_written(d) for d in corpus_designs() if d.name == name), None)
    generated = by_name(name)
    if generated is not None:
        return _record(generated, "train")
    return newest_kept(home, name)
