"""Records of VeriThoughts: `question`, `ground_truth` (the RTL) and `verified`.

Source: https://huggingface.co/datasets/wilyub/VeriThoughtsTrainSet. `verified` says that the question was shown to
describe the RTL; as in the LLM4Cov paper, the question of any other record is not taken for its specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm4cov_assets.ingest.formats.codev_r1 import FILE, plain_code
from llm4cov_assets.ingest.formats.fields import kind, refuse, text, with_rtl
from sim.assembly import Gathered

FIELDS = ("id", "question", "ground_truth", "verified")
ID = "id"


def gathered(row: Mapping[str, Any], place: str, name: str) -> Gathered:
    """The design of a record. Raises DesignError."""
    code = text(row.get("ground_truth"), "ground_truth", place)
    question = text(row.get("question"), "question", place)
    verified = row.get("verified")
    if verified is not None and not isinstance(verified, bool):
        refuse(place, f"verified is {kind(verified)}, not a boolean; write true or false")
    found = Gathered(place, name, name=name, specification=question.strip() if verified else "")
    return with_rtl(found, {FILE: plain_code(code, "ground_truth", place)})
