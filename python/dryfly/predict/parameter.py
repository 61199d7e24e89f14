"""A parameter of a workload: what is accepted, in text with units, and what it is without being given."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dryfly.base import units
from dryfly.base.errors import UserError
from dryfly.machine.field import Field, value_text

_GRID = re.compile(r"[1-9]\d*(x[1-9]\d*)+")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """`field`: its dimension, range or words, and meaning. `default`: as a user would write it; None: it follows from
    others, or the model of the workload has one. `grid`: so many numbers joined by x."""

    name: str
    field: Field
    default: str | None = None
    grid: int = 0
    argument: str = ""  # its name to the engine, if that is another; of a grid a name for each side
    models: tuple[str, ...] = ()  # that take it; empty: all

    @property
    def is_switch(self) -> bool:
        """0 or 1: named alone it is 1."""
        return self.field.dimension is units.COUNT and (self.field.least, self.field.most) == (0, 1)

    def arguments(self, value: str) -> list[str]:
        """Of a value in base units, for the engine."""
        names = (self.argument or self.name).split()
        sides = value.split("x") if len(names) > 1 else [value]
        return [f"{name}={side}" for name, side in zip(names, sides, strict=True)]

    @property
    def accepted(self) -> str:
        if self.grid:
            return "x".join("PQRST"[: self.grid]) + f", such as {'x'.join(['4'] * self.grid)}"
        return self.field.accepted()

    def value(self, text: str) -> str:
        """In base units: a whole number, a word or a grid. Raises UserError."""
        if self.grid:
            text = text.lower()
            if not _GRID.fullmatch(text) or text.count("x") != self.grid - 1:
                raise self._refused(text, "")
            return text
        if self.field.dimension is None:
            if self.field.choices and text not in self.field.choices:
                raise self._refused(text, "")
            return text
        try:
            # How many bytes is as plain as how many of anything.
            plain = self.field.dimension is units.SIZE and text.strip().removeprefix("-").isdecimal()
            number = int(text) if plain else units.parse(text, self.field.dimension)
        except UserError as error:
            raise UserError(f"{self.name}={text}: {error}") from None
        if not self.field.least <= number <= self.field.most:
            raise self._refused(text, "out of range; ")
        return str(number)

    def _refused(self, text: str, why: str) -> UserError:
        return UserError(f"{self.name}={text}: {why}accepted is {self.accepted}")

    def shown(self, value: str) -> str:
        """A value in base units, for people."""
        dimension = self.field.dimension
        if dimension is None or dimension is units.COUNT:
            return f"{int(value):,}" if dimension is units.COUNT else value
        return value_text(int(value), dimension)
