"""dryfly-hpl: its solutions against LAPACK's, its lines, its refusals, and a restart, natively and under dryfly run."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from conftest import Dryfly, Native
from harness import Ended, kill_when_kept

from dryfly.apps import solver
from dryfly.mpi import libraries as mpi

NAME = "dryfly-hpl"
SEED = 100
pytestmark = pytest.mark.usefixtures("program")  # compiled before the first run is timed
WR = re.compile(r"^WR(\d)(\d)([LCR])(\d)([LCR])(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +[\d.]+ +\d\.\d{4}e[+-]\d\d$", re.M)

DATA_FILE = """HPLinpack benchmark input file
of the tests
{output}      output file name (if any)
{device}            device out (6=stdout,7=stderr,file)
2            # of problems sizes (N)
60 41        Ns
1            # of NBs
8            NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
2            Qs
16.0         threshold
1            # of panel fact
0            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
2            # of broadcast
1 3          BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
"""


@pytest.fixture(scope="session")
def program(library: mpi.MpiLibrary) -> Path:
    return solver.build(NAME, mpi=library)


def lapack(order: int) -> np.ndarray:
    """x by LAPACK, of the matrix made here in Python's own whole numbers."""
    state, elements = SEED, []
    for _ in range(order * (order + 1)):
        state = (6364136223846793005 * state + 1) % 2**64
        elements.append(0.5 - float(state) * 2.0**-64)
    system = np.array(elements).reshape(order + 1, order).T
    return np.linalg.solve(system[:, :order], system[:, order])


def require_lapack(file: Path, orders: list[int]) -> None:
    """The file holds x of so many runs; each agrees with LAPACK's, for any order of the pivots' operations."""
    found = np.fromfile(file)
    assert found.size == sum(orders)
    expected = {order: lapack(order) for order in set(orders)}
    for order in orders:
        x, found = found[:order], found[order:]
        error = np.abs(x - expected[order]).max() / np.abs(expected[order]).max()
        assert error < 1e-9, f"order {order}: the solution is off by {error:.2e}"


def simulated(dryfly: Dryfly, ranks: int, *arguments: str | Path) -> str:
    command = ("run", "--compute", "none", "-n", str(ranks), "--", NAME, "--progress", "none", *arguments)
    return dryfly(*command, limit_s=240.0).succeeded().stdout


def test_solutions_agree_with_lapack_for_orders_and_blocks_that_do_not_divide(dryfly: Dryfly, tmp_path: Path) -> None:
    orders, blocks, grids, depths = [1, 7, 64, 101], [1, 8, 200], ["1x6", "3x2", "6x1"], [0, 2]
    x = tmp_path / "x"
    arguments = ["-N", ",".join(map(str, orders)), "--nb", ",".join(map(str, blocks)), "--grid", ",".join(grids)]
    arguments += ["--depth", ",".join(map(str, depths)), "--solution", str(x)]
    output = simulated(dryfly, 6, *arguments)
    runs = [order for _ in grids for order in orders for _ in blocks for _ in depths]
    assert output.count("PASSED") == len(runs)
    require_lapack(x, runs)


def test_every_panel_factorisation_and_broadcast_agrees_with_lapack(dryfly: Dryfly, tmp_path: Path) -> None:
    x = tmp_path / "x"
    kinds = "left,crout,right"
    arguments = ["-N", "75", "--nb", "16", "--grid", "2x3", "--depth", "1", "--solution", str(x), "--pmap", "column"]
    arguments += ["--pfact", kinds, "--rfact", kinds, "--nbmin", "1,4", "--ndiv", "3"]
    assert simulated(dryfly, 6, *arguments).count("PASSED") == 18
    require_lapack(x, [75] * 18)
    arguments = ["-N", "90", "--nb", "8", "--grid", "1x7,7x1", "--depth", "0,2", "--solution", str(x)]
    arguments += ["--bcast", "1ring,1ringM,2ring,2ringM,long,longM", "--pivot", "hybrid-panel"]
    assert simulated(dryfly, 7, *arguments).count("PASSED") == 24
    require_lapack(x, [90] * 24)


@pytest.mark.parametrize(
    "options",
    [
        ("--swap", "binary", "--l1", "transposed", "--pivot", "collective"),
        ("--swap", "spread", "--u", "transposed", "--split", "1", "--pivot", "hybrid-column"),
        ("--swap", "spread", "--equil", "no", "--split", "3", "--l1", "transposed", "--u", "transposed"),
        ("--swap", "mix", "--swap-threshold", "20", "--split", "4", "--align", "1"),
    ],
    ids=lambda options: " ".join(options),
)
def test_every_exchange_of_rows_agrees_with_lapack(dryfly: Dryfly, tmp_path: Path, options: tuple[str, ...]) -> None:
    x = tmp_path / "x"
    arguments = ["-N", "100,57", "--nb", "8,20", "--grid", "5x1,1x5", "--depth", "0,1", "--solution", str(x)]
    assert simulated(dryfly, 5, *arguments, *options).count("PASSED") == 16
    require_lapack(x, ([100] * 4 + [57] * 4) * 2)


def test_aurora_solves_a_system_on_its_ranks_in_virtual_time(dryfly: Dryfly) -> None:
    command = ("run", "--machine", "aurora", "-N", "4", "--ppn", "6", "--", NAME, "-N", "1000", "--grid", "4x6")
    ended = dryfly(*command, limit_s=240.0).succeeded()
    assert "...... PASSED" in ended.stdout
    assert ended.results["virtual_time_s"] > 0


@pytest.mark.parametrize(("ranks", "grids"), [(8, "2x4,4x2"), (9, "3x3,9x1")])
@pytest.mark.parametrize("library_name", ["mpich", "openmpi"])
def test_more_ranks_and_open_mpi_agree_with_lapack(
    dryfly: Dryfly, tmp_path: Path, library_name: str, ranks: int, grids: str
) -> None:
    solver.build(NAME, mpi=mpi.select(library_name))
    x = tmp_path / "x"
    start = ("run", "--mpi", library_name, "--compute", "none", "-n", str(ranks), "--", NAME, "--progress", "none")
    options = ("-N", "90,41", "--nb", "8", "--grid", grids, "--depth", "0,1", "--solution", x)
    ended = dryfly(*start, *options, limit_s=240.0).succeeded()
    assert ended.results["mpi"]["name"].startswith(library_name)
    assert ended.stdout.count("PASSED") == 8
    require_lapack(x, [90, 90, 41, 41] * 2)


def test_spare_ranks_are_measured_and_the_slowest_are_left_out(dryfly: Dryfly, tmp_path: Path) -> None:
    # Two ranks on one node share its processors and two have a node each, so in the model the shared ones are slowest.
    places = tmp_path / "places"
    places.write_text("t0\nt1\nt1\nt2\n")
    x = tmp_path / "x"
    start = ("run", "--compute", "model", "--place", str(places), "-n", "4", "--", NAME, "--progress", "none")
    ended = dryfly(*start, "-N", "64", "--spare", "2", "--warm-up", "yes", "--solution", x, limit_s=240).succeeded()
    assert re.findall(r"left out: rank (\d)", ended.stdout) == ["1", "2"]
    assert "A x = b in FP64 on 2 ranks" in ended.stdout
    require_lapack(x, [64])


def test_hints_about_nics_reach_mpi_and_its_answer_is_printed(dryfly: Dryfly) -> None:
    start = ("run", "--compute", "none", "-n", "2", "--", NAME, "-N", "64", "--progress", "none")
    output = dryfly(*start, "--swap-nic", "0", "--bcast-nic", "1,2").succeeded().stdout
    assert "NIC for the exchange of rows: asked for 0 on the first rank, MPI takes 0\n" in output
    assert "NIC for broadcasts: asked for 1 on the first rank, MPI takes " in output


def test_phases_travel_over_the_nics_that_they_are_given(dryfly: Dryfly) -> None:
    # A process row is on nodes 0 and 1, and on 2 and 3; a column on 0 and 2, and on 1 and 3.
    start = ("run", "--machine", "aurora", "-N", "4", "--ppn", "1", "--compute", "none", "--", NAME)
    options = ("-N", "256", "--nb", "32", "--grid", "2x2", "--progress", "none")

    def packets(*hints: str) -> list[dict[int, int]]:
        """Of more than a kilobyte: panels and rows. For each node, by its NICs."""
        sent: dict[str, dict[int, int]] = {}
        for row in dryfly(*start, *options, *hints, limit_s=240.0).succeeded().results["nics"]:
            names = ("hni_tx_ok_1024_to_2047", "hni_tx_ok_2048_to_4095")
            large = sum(row["counters"].get(name, 0) for name in names)
            if large > 0:
                sent.setdefault(row["node"], {})[row["index"]] = large
        return list(sent.values())

    assert [list(node) for node in packets()] == [[0]] * 4
    apart = packets("--swap-nic", "5", "--bcast-nic", "6")
    assert [list(node) for node in apart] == [[5, 6]] * 4
    changed = packets("--swap-nic", "7", "--bcast-nic", "6,4,3,2")  # the ranks take them in turn
    assert [sorted(node) for node in changed] == [[6, 7], [4, 7], [3, 7], [2, 7]]
    for before, after, nic in zip(apart, changed, (6, 4, 3, 2), strict=True):
        assert (after[7], after[nic]) == (before[5], before[6])


def test_part_of_the_nics_with_hints_is_refused_because_mpich_would_crash(dryfly: Dryfly) -> None:
    job = ("run", "--compute", "none", "-n", "2", "--", NAME, "-N", "64", "--swap-nic", "1")
    ended = dryfly(*job, environment={"MPIR_CVAR_CH4_OFI_MAX_NICS": "2"})
    assert ended.exit_status == 2
    assert "MPIR_CVAR_CH4_OFI_MAX_NICS=2: with --swap-nic or --bcast-nic accepted is -1, all NICs" in ended.stderr


def on_gpus(
    dryfly: Dryfly,
    machine: str,
    ranks: int,
    *arguments: str | Path,
    mpi_name: str = "openmpi",
    settings: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """On two ranks of a node, or fewer."""
    solver.build(NAME, mpi=mpi.select(mpi_name))
    start = ["run", "--machine", machine, "--mpi", mpi_name, "-n", str(ranks), "--compute", "none", *settings]
    start += ["--ppn", str(min(ranks, 2))] if "--ppn" not in settings else []
    command = (*start, "--", NAME, "--progress", "none", "--memory", "gpu", *arguments)
    return dryfly(*command, limit_s=240.0, environment=environment or {})


@pytest.mark.parametrize("transfers", ["device", "staged"])
@pytest.mark.parametrize("machine", ["perlmutter-gpu", "frontier"])
def test_matrices_in_the_memory_of_gpus_agree_with_lapack(
    dryfly: Dryfly, tmp_path: Path, machine: str, transfers: str
) -> None:
    x = tmp_path / "x"
    options = ["-N", "90,41", "--nb", "8", "--grid", "2x2,1x4,4x1", "--depth", "0,1", "--solution", str(x)]
    options += ["--gpu-transfers", transfers]
    if machine == "frontier":
        options += ["--swap", "spread", "--split", "3", "--u", "transposed", "--l1", "transposed"]
    ended = on_gpus(dryfly, machine, 4, *options).succeeded()
    assert ended.stdout.count("PASSED") == 12
    require_lapack(x, ([90] * 2 + [41] * 2) * 3)
    assert f"matrix: in the memory of GPUs ({'HIP' if machine == 'frontier' else 'CUDA'})" in ended.stdout
    assert all(rank["gpu_s"] > 0 for rank in ended.results["ranks_detail"])
    assert "knows nothing of GPUs" not in ended.stderr


# Level Zero's tiles by an MPI that knows nothing of them, and with Intel MPI in test_run_intel_mpi.py.
@pytest.mark.parametrize(
    ("mpi_name", "hierarchy", "ranks"), [("mpich", "FLAT", 12), ("mpich", "COMPOSITE", 4), ("openmpi", "FLAT", 4)]
)
def test_matrices_in_the_memory_of_tiles_agree_with_lapack(
    dryfly: Dryfly, tmp_path: Path, mpi_name: str, hierarchy: str, ranks: int
) -> None:
    x = tmp_path / "x"
    grids = "3x4,12x1" if ranks == 12 else "2x2,1x4"
    options = ["-N", "90,41", "--nb", "8", "--grid", grids, "--depth", "0,1", "--solution", str(x)]
    options += ["--gpu-transfers", "staged", "--swap", "spread" if ranks == 12 else "mix"]
    ended = on_gpus(
        dryfly,
        "aurora",
        ranks,
        *options,
        mpi_name=mpi_name,
        settings=("--ppn", str(ranks)) if ranks == 12 else (),
        environment={"ZE_FLAT_DEVICE_HIERARCHY": hierarchy},
    ).succeeded()
    assert ended.stdout.count("PASSED") == 8
    require_lapack(x, ([90] * 2 + [41] * 2) * 2)
    assert "matrix: in the memory of GPUs (Level Zero)" in ended.stdout
    assert all(rank["gpu_s"] > 0 for rank in ended.results["ranks_detail"])


def test_the_factors_are_the_same_whichever_runtime_has_the_matrix(dryfly: Dryfly, tmp_path: Path) -> None:
    solutions = []
    for machine in ("perlmutter-gpu", "aurora"):
        x = tmp_path / machine
        options = ("-N", "150", "--nb", "16", "--grid", "2x2", "--solution", x, "--gpu-transfers", "staged")
        on_gpus(dryfly, machine, 4, *options).succeeded()
        solutions.append(x.read_bytes())
    assert solutions[0] == solutions[1]


@pytest.mark.parametrize(
    ("machine", "link_gb_per_s", "mpi_name"), [("perlmutter-gpu", 27, "openmpi"), ("aurora", 54, "mpich")]
)
def test_a_staged_panel_takes_its_copies_and_the_phases_add_up(
    dryfly: Dryfly, tmp_path: Path, machine: str, link_gb_per_s: int, mpi_name: str
) -> None:
    order, block = 256, 64
    result = tmp_path / "result.json"
    options = ["-N", str(order), "--nb", str(block), "--grid", "1x2", "--depth", "0", f"--json={result}"]
    fingerprints = []
    for _ in range(2):
        ended = on_gpus(dryfly, machine, 2, *options, "--gpu-transfers", "staged", mpi_name=mpi_name).succeeded()
        fingerprints.append(ended.fingerprint)
    assert fingerprints[0] == fingerprints[1]
    run = json.loads(result.read_text(encoding="utf-8"))["runs"][0]
    mean, most = run["steps_mean_s"], run["steps_max_s"]
    for step, wall in enumerate(mean["wall"]):
        # Triangle, pivots and the rows below come to the process that has not factored them by one copy: a call of
        # 2 us, a latency of 3 us, a step of 2.2 us, its bytes, and 25 ns for a reading of the clock. The owner takes
        # longer, for U goes back into the matrix beside them.
        rows = order - block * (step + 1)
        stride = max(rows, 8)  # a multiple of 8, and of 512 doubles none
        copy_s = 7.225e-6 + 8 * (block * block + block + stride * block) / (1e9 * link_gb_per_s)
        assert 2 * mean["to_gpu"][step] - most["to_gpu"][step] == pytest.approx(copy_s, rel=1e-3)
        assert most["to_gpu"][step] > copy_s + 2.2e-6
        phases = sum(times[step] for name, times in mean.items() if name != "wall")
        assert 0.98 * wall < phases <= wall
    assert sum(run["phases_mean_s"].values()) < run["time_s"]


@pytest.mark.parametrize(
    ("machine", "ranks", "mpi_name", "settings", "sentence"),
    [
        (
            "perlmutter-gpu",
            2,
            "mpich",
            (),
            "--gpu-transfers device: this MPI library says that it does not take CUDA's",
        ),
        ("perlmutter-gpu", 5, "openmpi", ("--ppn", "5"), "--memory gpu: ranks 0 and 4 have the same GPU, nid001000 20"),
        (
            "perlmutter-gpu",
            1,
            "openmpi",
            ("--set", "compute.gpu.memory=100 kB"),
            "need 0.3812 MB of a GPU, and 0.0983 MB are free",
        ),
        ("testbed", 1, "openmpi", (), "--memory gpu: no GPU runtime is found here; accepted are machines with CUDA, "),
        (
            "aurora",
            2,
            "mpich",
            (),
            "--gpu-transfers device: this MPI library says that it does not take Level Zero's memory; "
            "accepted is staged\n",
        ),
        (
            "aurora",
            13,
            "mpich",
            ("--ppn", "13"),
            "--memory gpu: ranks 0 and 12 have the same GPU, x4000c0s0b0n0 2000:01:00.0 tile 0; accepted is",
        ),
        (
            "aurora",
            2,
            "mpich",
            ("--gpu-bind", "list:3.1:3.1"),
            "--memory gpu: ranks 0 and 1 have the same GPU, x4000c0s0b0n0 2000:04:00.0 tile 1; accepted is",
        ),
    ],
    ids=[
        *("an MPI without GPUs", "more ranks than GPUs", "little memory", "no GPUs"),
        *("an MPI without Level Zero", "more ranks than tiles", "ranks bound to one tile"),
    ],
)
def test_what_gpus_or_mpi_do_not_have_is_one_sentence_and_status_2(
    dryfly: Dryfly, machine: str, ranks: int, mpi_name: str, settings: tuple[str, ...], sentence: str
) -> None:
    ended = on_gpus(dryfly, machine, ranks, "-N", "200", mpi_name=mpi_name, settings=settings)
    assert ended.exit_status == 2
    assert sentence in ended.stderr
    assert "A x = b" not in ended.stdout


def test_a_matrix_that_is_larger_than_a_tile_is_refused_and_half_of_the_gpu_is_a_tiles(dryfly: Dryfly) -> None:
    settings = ("--set", "compute.gpu.memory=100 kB")
    options = ("-N", "200", "--gpu-transfers", "staged")
    ended = on_gpus(dryfly, "aurora", 1, *options, mpi_name="mpich", settings=settings)
    assert ended.exit_status == 2
    assert "need 0.3812 MB of a GPU, and 0.05 MB are free; accepted is a smaller -N, or more ranks" in ended.stderr


REAL_DRIVER = """
#include <stdint.h>
#define CALL(name) int name() { return 0; }
CALL(zeInit) CALL(zeDeviceGetProperties) CALL(zeDeviceGetMemoryProperties) CALL(zeDevicePciGetPropertiesExt)
CALL(zeContextCreate) CALL(zeMemAllocDevice) CALL(zeMemAllocHost) CALL(zeMemFree) CALL(zeEventPoolCreate)
CALL(zeEventCreate) CALL(zeEventHostSynchronize) CALL(zeCommandListCreateImmediate) CALL(zeCommandListHostSynchronize)
CALL(zeCommandListAppendSignalEvent) CALL(zeCommandListAppendWaitOnEvents) CALL(zeCommandListAppendMemoryCopy)
CALL(zeCommandListAppendMemoryCopyRegion)
int zeDriverGet(uint32_t* count, void** to) { *count = 1; *to = count; return 0; }
int zeDeviceGet(void* driver, uint32_t* count, void** to) { *count = 1; return 0; }
int zeDriverGetExtensionFunctionAddress(void* driver, const char* name, void** to) { return 0x78000003; }
"""


def test_a_driver_of_level_zero_that_runs_no_functions_is_refused(program: Path, tmp_path: Path) -> None:
    source = tmp_path / "driver.c"
    source.write_text(REAL_DRIVER)
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", source, "-o", tmp_path / "libze_loader.so.1"], check=True)
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    command = [program, "-N", "50", "--memory", "gpu"]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.returncode == 2
    assert ended.stderr == (
        "dryfly-hpl: --memory gpu: Level Zero's driver has no dryflyCommandListAppendHostKernel; "
        "accepted are the GPUs that dryfly run simulates\n"
    )


def test_ranks_bound_to_the_same_core_are_refused_and_the_map_is_printed(program: Path, native: Native) -> None:
    core = min(os.sched_getaffinity(0))
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("a computer with one core cannot bind ranks wrongly")
    bound = ("taskset", "-c", str(core), program, "-N", "64")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        native(2, *bound)
    assert refused.value.returncode != 0
    assert f"ranks 0, 1 are bound to cores {core} of " in refused.value.stderr
    output = native(2, *bound, "--binding", "any").stdout
    assert re.search(rf"^place: rank 0-1 on \S+, cores {core}, NUMA node 0, memory of 0, NIC none$", output, re.M)
    with pytest.raises(subprocess.CalledProcessError) as refused:
        native(1, *bound, "--threads", "2")
    assert f"--threads 2: rank 0 may use 1 cores ({core})" in refused.value.stderr


def test_one_rank_needs_no_launcher_and_two_ranks_find_the_same_solution(
    program: Path, native: Native, tmp_path: Path
) -> None:
    x = tmp_path / "x"
    alone = subprocess.run([program, "-N", "300,301", "--nb", "64", "--solution", x], capture_output=True, text=True)
    assert alone.returncode == 0, alone.stderr
    assert alone.stdout.count("PASSED") == 2
    require_lapack(x, [300, 301])
    for ranks in (2, 3):
        assert native(ranks, program, "-N", "300", "--solution", x).stdout.count("PASSED") == 1
        require_lapack(x, [300])


def test_an_hpl_dat_gives_hpls_lines(program: Path, native: Native, tmp_path: Path) -> None:
    (tmp_path / "HPL.dat").write_text(DATA_FILE.format(output="HPL.out", device=6))
    output = native(2, program, cwd=tmp_path).stdout
    lines = [found.groups() for found in WR.finditer(output)]
    expected = [("1", bcast, "C", "2", "L", "4", order, "8", "1", "2") for order in ("60", "41") for bcast in "13"]
    assert lines == expected
    assert len(re.findall(r"^\|\|Ax-b\|\|_oo/\(eps.*\)= +\d\.\d+e-\d\d \.\.\.\.\.\. PASSED$", output, re.M)) == 4
    assert "     4 tests completed and passed residual checks," in output
    (tmp_path / "HPL.dat").write_text(DATA_FILE.format(output="HPL.out", device=8))
    assert native(2, program, cwd=tmp_path).stdout == ""
    assert len(WR.findall((tmp_path / "HPL.out").read_text())) == 4


def test_without_a_wish_the_blas_is_openblas_on_amd_and_onemkl_on_other_x86(program: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DRYFLY_BLAS"}
    ended = subprocess.run([program, "-N", "20"], capture_output=True, text=True, env=environment, check=True)
    blas = re.search(r"^BLAS: (.*)$", ended.stdout, re.M)
    assert blas is not None
    amd = "AuthenticAMD" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    installed = {name for name in ("mkl", "openblas") if any(name in path for path in solver.blas_libraries())}
    if platform.machine() != "x86_64" or not installed:
        pytest.skip("there is nothing to choose")
    first, second = ("openblas", "mkl") if amd else ("mkl", "openblas")
    assert blas[1].startswith({"mkl": "oneMKL", "openblas": "OpenBLAS"}[first if first in installed else second])
    assert ("is not installed" in blas[1]) == (first not in installed)
    for name in installed:
        named = subprocess.run([program, "-N", "20", "--blas", name], capture_output=True, text=True, check=True)
        assert re.search(rf"^BLAS: {'oneMKL' if name == 'mkl' else 'OpenBLAS'}", named.stdout, re.M)


BAD_INPUT = [
    (("-N", "0"), "-N 0: accepted is a whole number from 1 to"),
    (("-N", "100", "--nb", "0"), "--nb 0: accepted is a whole number from 1 to"),
    (("-N", "100", "--grid", "2x3"), "grid 2x3: it needs 6 ranks, and there are 1"),
    (("-N", "100", "--grid", "4"), "--grid 4: accepted is PxQ"),
    (("-N", "2e9"), "GB, and"),
    (("-N", "100", "--bcast", "3ring"), "--bcast 3ring: accepted is 1ring, 1ringM"),
    (("-N", "100", "--colour", "red"), "unknown option --colour"),
    (("-N", "100", "--blas", "/no/such.so"), "/no/such.so"),
    (("--dat", "HPL.dat", "-N", "9"), "-N with --dat HPL.dat: the file says it itself; give one of the two"),
    (("--dat", "/no/HPL.dat"), "--dat /no/HPL.dat: the file cannot be read"),
    (("-N", "100", "--spare", "1"), "--spare 1: there are 1 ranks"),
    (("-N", "100", "--swap-nic", "64"), "--swap-nic or --bcast-nic 64: accepted is a whole number from 0 to 63"),
    (("-N", "100", "--binding", "some"), "--binding some: accepted is any, check"),
    (("-N", "100", "--restart", "yes"), "--restart yes: it needs --checkpoint FOLDER"),
    (("-N", "100", "--memory", "gpu"), "--memory gpu: no GPU runtime is found here; accepted are machines with CUDA"),
    (("-N", "100", "--memory", "disk"), "--memory disk: accepted is gpu, host"),
    (("-N", "100", "--gpu-transfers", "staged"), "--gpu-transfers: it is for --memory gpu"),
    (("-N", "100", "--memory", "gpu", "--checkpoint", "kept"), "--checkpoint kept: accepted is --memory host beside"),
    (("-N", "100", "--memory", "gpu", "--screen", "yes"), "--screen yes: it is of the processors' kernels; accepted"),
    (("-N", "100", "--json", "/no/such/file"), "--json /no/such/file: No such file or directory"),
]


@pytest.mark.parametrize(
    ("arguments", "sentence"), BAD_INPUT, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_what_cannot_be_run_is_one_sentence_and_status_2(
    program: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    ended = subprocess.run([program, *arguments], capture_output=True, text=True)
    assert ended.returncode == 2, ended.stdout
    assert sentence in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stdout == ""


def test_what_is_wrong_on_the_first_rank_ends_all_of_them() -> None:
    command = [sys.executable, "-m", "dryfly", "hpl", "-n", "2", "-N", "50", "--json", "/no/such/file"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert ended.stderr == "dryfly-hpl: --json /no/such/file: No such file or directory\n"


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("60 41        Ns", "60           Ns", "HPL.dat line 6 (Ns): has 1 values, and 2 are announced"),
        ("8            NBs", "-8           NBs", "HPL.dat line 8 (NBs): -8: accepted is a whole number from 1"),
        ("1 3          BCASTs", "1 6          BCASTs", "line 23 (BCASTs): 6: accepted is a whole number from 0 to 5"),
        ("16.0         threshold", "16.0x        threshold", "line 13 (threshold): 16.0x: accepted is a number"),
        ("\n8            memory alignment in double (> 0)\n", "\n", "line 31 (memory alignment) is missing"),
    ],
    ids=["fewer", "negative", "unknown", "no number", "missing"],
)
def test_a_wrong_hpl_dat_is_one_sentence(program: Path, tmp_path: Path, before: str, after: str, sentence: str) -> None:
    text = DATA_FILE.format(output="HPL.out", device=6)
    assert before in text
    (tmp_path / "HPL.dat").write_text(text.replace(before, after))
    ended = subprocess.run([program], capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_flags_that_an_hpl_dat_covers_are_refused_beside_it(program: Path, tmp_path: Path) -> None:
    (tmp_path / "HPL.dat").write_text(DATA_FILE.format(output="HPL.out", device=6))
    ended = subprocess.run([program, "--split", "2", "--nb=16"], capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 2
    assert (
        "--nb with HPL.dat: the file says it itself; give one of the two (with -N the file is not read)\n"
        in ended.stderr
    )
    for file in ((), ("--dat", "HPL.dat")):
        command = [program, "--split", "2", *file]  # which it does not cover
        ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert "grid 1x2: it needs 2 ranks" in ended.stderr, "the file was not read"


@pytest.mark.parametrize("threshold", ["0.0", "-16.0"])
def test_a_threshold_that_is_not_above_0_leaves_the_test_out_as_in_hpl(
    program: Path, tmp_path: Path, threshold: str
) -> None:
    text = DATA_FILE.format(output="HPL.out", device=6).replace("2            Qs", "1            Qs")
    (tmp_path / "HPL.dat").write_text(text.replace("16.0         threshold", f"{threshold} threshold"))
    command = [program, "--json", "result.json"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "     4 tests completed without checking,\n" in ended.stdout
    assert "PASSED" not in ended.stdout
    assert "passed" not in ended.stdout
    runs = json.loads((tmp_path / "result.json").read_text())["runs"]
    assert [(run["solved"], run["passed"], run["residual"]) for run in runs] == [(True, None, None)] * 4


def test_a_residual_over_the_threshold_is_failed_and_status_1(program: Path) -> None:
    ended = subprocess.run([program, "-N", "50", "--threshold", "1e-9"], capture_output=True, text=True)
    assert ended.returncode == 1
    assert "...... FAILED" in ended.stdout
    assert "1 tests completed and failed residual checks" in ended.stdout
    assert "||A||_oo . . ." in ended.stdout


NAN_BLAS = """
#include <math.h>
typedef const char* word;
typedef const int* number;
typedef const double* input;
void dgemm_(word a, word b, number m, number n, number k, input alpha, input x, number sx, input y, number sy,
            input beta, double* c, number sc) { c[0] = NAN; }
void dtrsm_(word a, word b, word c, word d, number m, number n, input alpha, input x, number sx, double* y,
            number sy) {}
void dtrsv_(word a, word b, word c, number n, input x, number sx, double* y, number one) { y[0] = NAN; }
"""


def test_a_solution_that_is_not_a_number_is_failed_and_status_1(program: Path, tmp_path: Path) -> None:
    source, library = tmp_path / "nan.c", tmp_path / "libnan.so"
    source.write_text(NAN_BLAS)
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", str(source), "-o", str(library)], check=True)
    command = [program, "-N", "50", "--nb", "16", "--blas", str(library), "--solution", tmp_path / "x"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1, ended.stdout
    assert re.search(r"= +\S*(inf|nan)\S* \.\.\.\.\.\. FAILED", ended.stdout), ended.stdout
    assert np.isnan(np.fromfile(tmp_path / "x")).any(), "or the residual was wrong for another reason"


def test_a_run_that_was_killed_goes_on_and_ends_with_the_same_bits(tmp_path: Path) -> None:
    def command(solution: str, *more: str) -> list[str]:
        start = [sys.executable, "-m", "dryfly", "hpl", "-n", "2", "-N", "1500", "--nb", "32", "--grid", "1x2"]
        return [*start, "--depth", "1", "--solution", str(tmp_path / solution), *more]

    subprocess.run(command("whole"), check=True, capture_output=True)
    kept = ("--checkpoint", str(tmp_path / "kept"), "--checkpoint-every", "0")
    kill_when_kept(command("killed", *kept), tmp_path / "kept" / "hpl-current", step=3)
    assert (tmp_path / "killed").stat().st_size == 0
    ended = subprocess.run(command("resumed", *kept, "--restart", "yes"), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "PASSED" in ended.stdout
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
    assert not list((tmp_path / "kept").glob("hpl-*-0")), "what was kept is removed at the end"
