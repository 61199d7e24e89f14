"""Options that hold a piece of a command line."""

from __future__ import annotations

import shlex

from dryfly.base.errors import UserError


def split(option: str, text: str | None) -> tuple[str, ...]:
    """As a shell splits `text`. Raises UserError, naming the option, where a quotation or an escape does not end."""
    try:
        return tuple(shlex.split(text or ""))
    except ValueError:
        raise UserError(f"{option} {text}: accepted are words as a shell has them, with quotations that end") from None
