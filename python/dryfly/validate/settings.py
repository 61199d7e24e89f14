"""What data/validate.toml says."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from dryfly.base.paths import data_folder
from dryfly.validate.judge import Limits
from dryfly.validate.plan import Sizes


@dataclass(frozen=True, kw_only=True)
class Settings:
    sizes: Sizes
    limits: Limits
    again: int
    flaps: tuple[tuple[int, int], ...]  # hours, and how many in them are too many
    replays: float  # of the frames of a link

    def too_many_flaps(self, instants: Sequence[float]) -> tuple[int, int, int] | None:
        """Of a link that went down at these, in seconds since now: in so many hours so many, and the limit."""
        for hours, limit in self.flaps:
            count = sum(at_s > -3600 * hours for at_s in instants)
            if count >= limit:
                return hours, count, limit
        return None


@cache
def _known() -> dict[str, dict[str, Any]]:
    content = tomllib.loads((data_folder() / "validate.toml").read_text(encoding="utf-8"))
    return {name: {row: facts["value"] for row, facts in rows.items()} for name, rows in content.items()}


def settings() -> Settings:
    known = _known()
    limit = known["limit"]
    return Settings(
        sizes=Sizes(**known["size"]),
        limits=Limits(tolerance=known["tolerance"], sigmas=float(limit["sigmas"])),
        again=int(limit["again"]),
        flaps=((1, int(limit["flaps_per_hour"])), (10, int(limit["flaps_per_10_hours"]))),
        replays=float(limit["replays"]),
    )
