"""Of a GOAL file what is asked before the engine reads it (core/motif/goal)."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from dryfly.base.errors import UserError

_BEFORE = rb"(?:[\s;]|//[^\n]*(?:\n|\Z)|/\*.*?\*/)*"  # all that may stand before it
_COUNT = re.compile(_BEFORE + rb"num_ranks[ \t]+(\d+)", re.DOTALL)
_HEAD = 1 << 20
_RANKS_MAX = 1 << 32


def ranks_of(path: str | Path) -> int:
    """Its `num_ranks`. Raises UserError."""
    try:
        with Path(path).open("rb") as file:
            found = _COUNT.match(file.read(_HEAD))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    if found is None or not 0 < int(found[1][:12]) < _RANKS_MAX:
        raise UserError(f"{path}: accepted is a GOAL file, which begins with num_ranks and a number")
    return int(found[1])


def digest(path: str | Path) -> str:
    """Raises UserError."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
