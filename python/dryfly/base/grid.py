"""Tables for a console of any width, in which no label and no figure is ever cut or broken over two lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

_UNLIMITED = 1_000_000
_LEAST_PROSE = 32

Cell = str | Text


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The first column names the rows. Print it with soft_wrap, or rich cuts what is wider than the console.

    A table that is too wide for the console changes its rows and columns. If that does not fit either, its columns are
    dealt out to several tables, each with the first column. A single column that is too wide is printed as it is.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    left: frozenset[int] = frozenset({0})  # the columns that are not flush right
    prose: frozenset[int] = frozenset()  # the columns whose cells are broken between words where that helps
    indent: str = ""
    boxed: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width
        bare = self._width(console, options, self._columns(prose_width=0))
        width = max(_LEAST_PROSE, (room - bare) // max(1, len(self.prose)))
        for whole in (self._columns(), self._columns(prose_width=width)):
            if self._width(console, options, whole) <= room or not self.rows:
                yield self._table(console, options, whole)
                return
        swapped = [list(row) for row in zip(*whole, strict=True)]
        if self._width(console, options, swapped) <= room:
            yield self._table(console, options, swapped, left=frozenset({0}))
            return
        names, rest = whole[0], list(range(1, len(whole)))
        while rest:
            count = 1
            while count < len(rest):
                more = [names, *(whole[column] for column in rest[: count + 1])]
                if self._width(console, options, more) > room:
                    break
                count += 1
            left = frozenset(place for place, column in enumerate([0, *rest[:count]]) if column in self.left)
            yield self._table(console, options, [names, *(whole[column] for column in rest[:count])], left=left)
            rest = rest[count:]

    def _columns(self, *, prose_width: int | None = None) -> list[list[Text]]:
        """With 0 for the width of prose, all but the prose."""
        lines = [self.heads, *self.rows]
        widths = [prose_width if place in self.prose else None for place in range(len(self.heads))]
        return [[_text(line[place], width) for line in lines] for place, width in enumerate(widths)]

    def _build(self, columns: Iterable[Sequence[Text]], left: frozenset[int]) -> Table:
        table = Table() if self.boxed else Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
        lines: list[list[Text]] = []
        for place, column in enumerate(columns):
            cells = [Text(self.indent) + cell for cell in column] if place == 0 else list(column)
            table.add_column(cells[0], justify="left" if place in left else "right", no_wrap=True)
            lines = [[*line, cell] for line, cell in zip(lines or [[] for _ in cells[1:]], cells[1:], strict=True)]
        for line in lines:
            table.add_row(*line)
        return table

    def _width(self, console: Console, options: ConsoleOptions, columns: Sequence[Sequence[Text]]) -> int:
        table = self._build(columns, self.left)
        return console.measure(table, options=options.update(max_width=_UNLIMITED)).maximum

    def _table(
        self,
        console: Console,
        options: ConsoleOptions,
        columns: Sequence[Sequence[Text]],
        *,
        left: frozenset[int] | None = None,
    ) -> Table:
        table = self._build(columns, self.left if left is None else left)
        table.width = self._width(console, options, columns)  # its own, whatever the console's is
        return table


def _text(cell: Cell, width: int | None) -> Text:
    if width is None:
        return cell if isinstance(cell, Text) else Text(cell)
    if width == 0:
        return Text("")
    return Text("\n".join(textwrap.wrap(str(cell), width, break_long_words=False, break_on_hyphens=False)))
