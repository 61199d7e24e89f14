"""What data/validate.toml says."""

from __future__ import annotations

import tomllib
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
    flaps_per_hour: int
    flaps_per_10_hours: int
    replays: float  # of the frames of a link


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
        flaps_per_hour=int(limit["flaps_per_hour"]),
        flaps_per_10_hours=int(limit["flaps_per_10_hours"]),
        replays=float(limit["replays"]),
    )
