"""What a command prints for people."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console

from dryfly.base.fitted import fitted

if TYPE_CHECKING:
    from rich.console import RenderableType


class Printer:
    """On standard error where standard output is a program's, or is for the result; `on_stdout`: it is for this."""

    def __init__(self, *, quiet: bool = False, on_stdout: bool = False) -> None:
        self._stream = sys.stdout if on_stdout else sys.stderr
        self._console = Console(stderr=not on_stdout, highlight=False, soft_wrap=True)
        self._quiet = quiet

    def say(self, text: str) -> None:
        """Shown even when quiet: warnings and errors."""
        self._console.print(f"dryfly: {text}", markup=False)

    def show(self, *parts: RenderableType) -> None:
        if not self._quiet:
            for part in parts:
                self._console.print(part)

    def line_always(self, text: str) -> None:
        """A further line of what `say` said."""
        self._console.print(text, markup=False)

    def line(self, text: str) -> None:
        if not self._quiet:
            self._console.print(fitted(text, self._stream), markup=False)
