"""Recordings and traces of the runs of a study: --record FOLDER and --trace FOLDER, in which each run has an entry of
its own name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dryfly.result import capture

_NO_NAME = re.compile(r"[^A-Za-z0-9.+=_]+")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Of one run; None: it is not wanted."""

    record: Path | None = None
    trace: Path | None = None

    @property
    def is_there(self) -> bool:
        return all(path is None or path.exists() for path in (self.record, self.trace))


@dataclass(frozen=True, kw_only=True)
class Kept:
    record: str | None = None
    trace: str | None = None

    def check(self) -> None:
        """Before the first run; makes the folders. Raises UserError."""
        for flag, folder in (("--record", self.record), ("--trace", self.trace)):
            if folder is None:
                continue
            capture.check_target(flag, folder, folder=True)
            Path(folder).mkdir(exist_ok=True)
        if self.record is not None:
            from dryfly.result import tables

            tables.check_target(str(Path(self.record) / "run"))

    def entries(self, names: Sequence[Sequence[str]]) -> list[Entry]:
        """By the words that name each run. Names that come out alike get a number."""
        made: list[Entry] = []
        seen: dict[str, int] = {}
        for words in names:
            stem = "-".join(_NO_NAME.sub("-", word).strip("-") for word in words)
            seen[stem] = seen.get(stem, 0) + 1
            name = stem if seen[stem] == 1 else f"{stem}-{seen[stem]}"
            made.append(
                Entry(
                    record=None if self.record is None else (Path(self.record) / name).absolute(),
                    trace=None if self.trace is None else (Path(self.trace) / f"{name}.json").absolute(),
                )
            )
        return made


NOTHING = Kept()
