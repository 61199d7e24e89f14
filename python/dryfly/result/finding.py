"""What the user should know about a run that goes on."""

from __future__ import annotations

from dataclasses import dataclass

LET_GO = "let_go"  # name of the finding


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something the user should know about a run that goes on: a row of the health table."""

    name: str
    text: str
    severity: str = "warning"
