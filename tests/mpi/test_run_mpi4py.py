"""mpi4py's own test suite on 4 ranks: what passes natively passes under dryfly (mpi4py_excluded.txt says what is left
out, and why)."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest
from conftest import Dryfly

from dryfly.base.paths import cache_folder

_EXCLUDED = Path(__file__).parent / "mpi4py_excluded.txt"
_OPENMPI_EXCLUDED = Path(__file__).parent / "mpi4py_openmpi_excluded.txt"
# Not with --compute none: some tests count on ten calls in a row taking longer than an acknowledgement.
_OPENMPI = ("--mpi", "openmpi", "-N", "2")


@pytest.fixture(scope="module")
def suite() -> Path:
    """test/main.py of the source distribution of the installed mpi4py, which pip fetches once."""
    name = f"mpi4py-{version('mpi4py')}"
    folder = cache_folder() / "test"
    main = folder / name / "test" / "main.py"
    if not main.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--no-binary", "mpi4py", name.replace("-", "=="), "--dest", str(folder)]
        fetched = subprocess.run(command, capture_output=True, text=True, check=False)
        assert fetched.returncode == 0, f"pip cannot fetch the sources of {name}:\n{fetched.stderr}"
        with tarfile.open(folder / f"{name}.tar.gz") as archive:
            # Debian 12's Python 3.11.2 has no filters yet; from 3.12 on one has to be named.
            filters = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(folder, **filters)
    return main


def _excluded(list_of: Path = _EXCLUDED) -> list[str]:
    lines = [line.split(maxsplit=1) for line in list_of.read_text().splitlines() if line and not line.startswith("#")]
    return [pattern for pattern, _reason in lines]


def _without(*patterns: str) -> list[str]:
    return [word for pattern in patterns for word in ("-x", pattern)]


def _passes(
    suite: Path,
    dryfly: Dryfly,
    *chosen: str,
    ranks: int,
    tests: int,
    options: tuple[str, ...] = (),
    limit_s: float = 900,
) -> None:
    command = ("run", "--machine", "testbed", "-n", str(ranks), *options, "--", suite, "--no-builddir", *chosen)
    run = dryfly(*command, cwd=suite.parent, limit_s=limit_s)
    counts = [int(count) for count in re.findall(r"Ran (\d+) tests", run.stderr)]
    failed = re.findall(r"^(?:FAIL|ERROR): .*", run.stderr, flags=re.MULTILINE)
    assert not failed, "\n".join(sorted(set(failed)))
    run.succeeded()
    # Each rank runs them all.
    assert len(counts) == ranks
    assert min(counts) >= tests


# Left to few ranks: collective reading and windows, whose messages grow with the square of the ranks and take most of
# the suite's time on 4; the nonblocking and persistent forms of collectives; and what computes without a message.
_ON_FEW_RANKS = (
    *("test_io.*", "test_rma*.*", "test_cco_nb_*.*", "test_cco_pr_*.*"),
    *("test_datatype.*", "test_msgspec.*", "test_util_dtlib.*"),
)
# The same tests once more, on duplicates of the communicators.
_DUPLICATES = "*Dup.*"


def test_its_tests_of_messages_and_communicators_pass_on_4_ranks(suite: Path, dryfly: Dryfly) -> None:
    chosen = (*_without(*_excluded(), _DUPLICATES), "-i", "test_(p2p_buf|p2p_obj|comm|cco_obj)\\..*")
    _passes(suite, dryfly, *chosen, ranks=4, tests=140)


@pytest.mark.slow
def test_mpi4pys_own_suite_passes_on_4_ranks(suite: Path, dryfly: Dryfly) -> None:
    _passes(suite, dryfly, *_without(*_excluded(), *_ON_FEW_RANKS, _DUPLICATES), ranks=4, tests=1150)


@pytest.mark.whole
def test_the_rest_of_it_passes_on_2_ranks(suite: Path, dryfly: Dryfly) -> None:
    chosen = (word for pattern in _ON_FEW_RANKS for word in ("-i", pattern))
    _passes(suite, dryfly, *_without(_DUPLICATES), *chosen, ranks=2, tests=500)


def test_its_tests_of_communicators_pass_on_open_mpi_over_two_nodes(suite: Path, dryfly: Dryfly) -> None:
    chosen = (*_without(*_excluded(_OPENMPI_EXCLUDED)), "-i", "test_comm.*")
    _passes(suite, dryfly, *chosen, ranks=4, tests=150, options=_OPENMPI)


@pytest.mark.whole
def test_the_whole_of_it_passes_on_4_ranks(suite: Path, dryfly: Dryfly) -> None:
    _passes(suite, dryfly, *_without(*_excluded()), ranks=4, tests=2050)


# In parts, so that a failure in one leaves the others to be run: modules that are taken (-i) or left out (-e), and how
# many tests they have at least.
_PARTS = [
    pytest.param(("-i", "test_cco_.*"), 520, id="collectives"),
    pytest.param(("-i", "test_rma.*"), 50, id="windows"),
    pytest.param(("-e", "test_cco_.*", "-e", "test_rma.*"), 1440, id="everything-else"),
]


@pytest.mark.whole
@pytest.mark.parametrize(("modules", "tests"), _PARTS)
def test_the_whole_of_it_passes_on_open_mpi_over_two_nodes(
    modules: tuple[str, ...], tests: int, suite: Path, dryfly: Dryfly
) -> None:
    chosen = (*_without(*_excluded(_OPENMPI_EXCLUDED)), *modules)
    _passes(suite, dryfly, *chosen, ranks=4, tests=tests, options=_OPENMPI, limit_s=7200)


@pytest.mark.parametrize("machine", ["perlmutter-gpu", "frontier"])
def test_arrays_in_a_gpus_memory_need_no_cupy(machine: str, dryfly: Dryfly) -> None:
    """By __cuda_array_interface__ and by DLPack, on two GPUs of each node."""
    options = ("--machine", machine, "--mpi", "openmpi", "-N", "2", "--ppn", "2", "--compute", "none")
    example = Path(__file__).parents[2] / "docs" / "example" / "gpu_arrays.py"
    run = dryfly("run", *options, "--", example, limit_s=120).succeeded()
    assert "ok gpu_arrays\n" in run.stdout
    assert re.search(r"gpus +[1-9]\d* calls of the GPU runtime", run.stderr)
