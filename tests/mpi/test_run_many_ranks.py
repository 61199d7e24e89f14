"""Jobs in which MPICH's table of addresses is kept once for all ranks (rank/common_table.hpp: from 400 ranks on)."""

from __future__ import annotations

import re

import pytest
from conftest import Dryfly, Programs

# MPICH has an entry for each rank, 32 KiB apart, and all but a rank's own come from the common table.
_ENTRY_BYTES = 32 * 1024


# A run of each kind is enough: together they take minutes on a busy computer.
@pytest.mark.whole
@pytest.mark.parametrize(("ranks", "is_shared"), [(400, True), (392, False)])
def test_every_rank_reaches_every_other_and_the_table_is_common_from_400_on(
    ranks: int, is_shared: bool, dryfly: Dryfly, programs: Programs
) -> None:
    command = ("run", "--machine", "aurora", "-N", str(ranks // 8), "--ppn", "8", "--compute", "none")
    run = dryfly(*command, "--", programs.check("many.c"), limit_s=900).succeeded()
    assert "ok many\n" in run.stdout
    assert run.results["ranks"] == ranks
    mapped = re.search(r"^mapped (\d+)$", run.stdout, flags=re.MULTILINE)
    assert mapped is not None
    assert int(mapped[1]) >= (ranks - 1) * _ENTRY_BYTES if is_shared else int(mapped[1]) == 0
