"""Plain lines for a terminal of any width, without rich, which takes longer to import than `dryfly machines` to run."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from typing import TextIO

_LEAST = 24
_COLUMN = re.compile(r" {2,}(?=\S)")


def fitted(text: str, to: TextIO | None = None) -> str:
    """Lines that are wider than the terminal are broken between words and go on under their last column. In a pipe
    they stay whole. `to`: standard output, unless another is given."""
    stream = to if to is not None else sys.stdout
    if stream is None or not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(_broken(line, width) for line in text.split("\n"))


def _broken(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    starts = [found.end() for found in _COLUMN.finditer(line)]
    indent = max((start for start in starts if width - start >= _LEAST), default=2)
    return textwrap.fill(
        line, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False,
        replace_whitespace=False, drop_whitespace=True,
    )  # fmt: skip
