"""Content identities: the same content has the same id on every machine and in every run."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(value: Any) -> bytes:
    """Return `value` as canonical JSON: sorted keys, no spaces, UTF-8; bytes values are not allowed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def sha256(value: Any) -> str:
    """SHA-256 (64 hex digits) of the canonical JSON of `value`, or of `value` itself if it is bytes."""
    return hashlib.sha256(value if isinstance(value, bytes) else canonical(value)).hexdigest()


def content_id(*parts: Any) -> str:
    """The id (32 hex digits, 16 bytes when stored) of `parts`: the head of the SHA-256 of their canonical JSON."""
    return sha256(list(parts))[:32]
