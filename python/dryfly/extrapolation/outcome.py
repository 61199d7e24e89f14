"""What an extrapolation comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dryfly.extrapolation.recording import Recording
from dryfly.extrapolation.writing import Written
from dryfly.skeleton import Played, Where


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """`again`: what the skeleton gives at the sizes of the recordings, in ascending order as these are; `played`: what
    it gives at the size that was asked for."""

    recordings: Sequence[Recording]
    written: Written
    again: Sequence[Played]
    where: Where
    ranks: int
    played: Played

    @property
    def work_in_doubt_s(self) -> float:
        """Of a rank: the errors of all fits of work, if all were wrong the same way."""
        fits = (one for phase in self.written.phases for one in phase.fits if one.what == "work")
        return sum(one.doubt(self.ranks) for one in fits)
