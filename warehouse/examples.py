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
    """The questions by name; the first line of a file is the question, as a comment."""
    examples: dict[str, Example] = {}
    for path in sorted(folder.glob("*.sql")):
        text = path.read_text()
        examples[path.stem] = Example(path.stem, text.splitlines()[0].removeprefix("--").strip(), text)
    return examples
