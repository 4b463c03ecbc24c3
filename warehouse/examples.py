"""The questions of `queries/*.sql`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

QUERIES = Path(__file__).parent / "queries"


@dataclass(frozen=True)
class Example:
    """One question with its SQL, comments included."""

    name: str
    question: str
    sql: str


def load_examples(folder: Path = QUERIES) -> dict[str, Example]:
    """The questions by name; the comment on top of a file is the question."""
    examples: dict[str, Example] = {}
    for path in sorted(folder.glob("*.sql")):
        text = path.read_text()
        top: list[str] = []
        for line in text.splitlines():
            if not line.startswith("--"):
                break
            top.append(line[2:].strip())
        examples[path.stem] = Example(path.stem, " ".join(top), text)
    return examples
