"""dryfly-mxp: its solutions against LAPACK's in FP64, its test, and its refusals, natively and under dryfly run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import OWN_KERNELS, Dryfly, Native, skip_without_processor_for
from harness import kill_when_kept

from dryfly.apps import solver
from dryfly.mpi import libraries as mpi

NAME = "dryfly-mxp"
SEED = 100
ENOUGH = 1.0  # the scaled residual at which the refinement ends
pytestmark = pytest.mark.usefixtures("program")  # compiled before the first run is timed


@pytest.fixture(scope="session")
def program(library: mpi.MpiLibrary) -> Path:
    return solver.build(NAME, mpi=library)


def system(order: int) -> tuple[np.ndarray, np.ndarray]:
    """A and b, made here in Python's own whole numbers: A's diagonal is the sum of the rest of its row in magnitude."""
    state, elements = SEED, []
    for _ in range(order * (order + 1)):
        state = (6364136223846793005 * state + 1) % 2**64
        elements.append(0.5 - float(state) * 2.0**-64)
    both = np.array(elements).reshape(order + 1, order).T
    matrix = both[:, :order].copy()
    np.fill_diagonal(matrix, 0)
    np.fill_diagonal(matrix, np.abs(matrix).sum(axis=1))
    return matrix, both[:, order]


def skip_without(kernel: str) -> None:
    """Some kernels need what not every computer has; a refusal for any other reason is a failure."""
    if kernel in OWN_KERNELS:
        skip_without_processor_for(kernel)
    if kernel == "mkl" and not any("mkl" in path for path in solver.blas_libraries()):
        pytest.skip("oneMKL is an extra (dryfly[hpl]) that the tests do not install")


def require_fp64(file: Path, orders: list[int]) -> None:
    """The file holds x of so many runs, each within what the residual at which a refinement ends allows.

    |x - y| <= |A^-1| |b - A x| with y by LAPACK, and |b - A x| <= ENOUGH eps N (|A| |x| + |b|); 1.1 for y's own error.
    """
    found = np.fromfile(file)
    assert found.size == sum(orders)
    systems = {order: system(order) for order in set(orders)}
    for order in orders:
        x, found = found[:order], found[order:]
        matrix, b = systems[order]
        size = np.abs(matrix).sum(axis=1).max() * np.abs(x).max() + np.abs(b).max()
        residual = np.abs(b - matrix @ x).max() / (2.0**-53 * order * size)
        assert residual < ENOUGH, f"order {order}: the residual is {residual:.2e}"
        expected = np.linalg.solve(matrix, b)
        allowed = 1.1 * ENOUGH * np.abs(np.linalg.inv(matrix)).sum(axis=1).max() * 2.0**-53 * order * size
        assert np.abs(x - expected).max() <= allowed, f"order {order}"
        assert allowed < 1e-9 * np.abs(expected).max(), "or this test would allow FP32"


def simulated(dryfly: Dryfly, ranks: int, *arguments: str | Path) -> str:
    command = ("run", "--compute", "none", "-n", str(ranks), "--", NAME, "--progress", "none", *arguments)
    return dryfly(*command, limit_s=240.0).succeeded().stdout


@pytest.mark.parametrize("grid", ["2x3", "1x6", "6x1"])
def test_solutions_on_a_grid_agree_with_lapack(dryfly: Dryfly, tmp_path: Path, grid: str) -> None:
    orders, blocks = [7, 64, 101], [1, 8, 33, 200]
    x = tmp_path / "x"
    arguments = ["-N", ",".join(map(str, orders)), "--nb", ",".join(map(str, blocks)), "--solution", str(x)]
    assert simulated(dryfly, 6, "--grid", grid, *arguments).count("PASSED") == 12
    require_fp64(x, [order for order in orders for _ in blocks])


def test_gmres_on_a_grid_agrees_with_lapack(dryfly: Dryfly, tmp_path: Path) -> None:
    x = tmp_path / "x"
    options = ("-N", "40,101", "--nb", "16", "--grid", "2x2", "--refine", "gmres", "--pmap", "column")
    output = simulated(dryfly, 4, *options, "--solution", x)
    assert output.count("PASSED") == 2
    require_fp64(x, [40, 101])
    assert len(re.findall(r"[2-6] steps, residuals \S+ \S+$", output, re.M)) == 2, "one cycle reaches FP64"


def test_aurora_solves_a_system_on_its_ranks_in_virtual_time(dryfly: Dryfly) -> None:
    command = ("run", "--machine", "aurora", "-N", "2", "--ppn", "2", "--", NAME, "-N", "1000", "--grid", "2x2")
    ended = dryfly(*command, limit_s=240.0).succeeded()
    assert "...... PASSED" in ended.stdout
    assert ended.results["virtual_time_s"] > 0


@pytest.mark.parametrize(
    ("machine", "options"),
    [
        ("perlmutter-gpu", ("--grid", "2x2", "--nb", "16", "--gpu-transfers", "device")),
        ("frontier", ("--grid", "4x1", "--nb", "33", "--gpu-transfers", "device", "--kernel", "sgemm")),
        ("frontier", ("--grid", "1x4", "--nb", "16", "--gpu-transfers", "staged", "--refine", "gmres")),
        ("aurora", ("--grid", "2x2", "--nb", "16", "--gpu-transfers", "staged", "--refine", "gmres")),
        ("aurora", ("--grid", "1x4", "--nb", "33", "--gpu-transfers", "staged", "--kernel", "sgemm")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_matrices_in_the_memory_of_gpus_agree_with_lapack(
    dryfly: Dryfly, tmp_path: Path, machine: str, options: tuple[str, ...]
) -> None:
    mpi_name = "mpich" if machine == "aurora" else "openmpi"
    solver.build(NAME, mpi=mpi.select(mpi_name))
    x, result = tmp_path / "x", tmp_path / "result.json"
    start = ("run", "--machine", machine, "--mpi", mpi_name, "-N", "2", "--ppn", "2", "--compute", "none", "--", NAME)
    command = (*start, "--progress", "none", "-N", "101", "--memory", "gpu", *options, "--solution", x)
    ended = dryfly(*command, f"--json={result}", limit_s=240.0).succeeded()
    assert "...... PASSED" in ended.stdout
    require_fp64(x, [101])
    assert all(rank["gpu_s"] > 0 for rank in ended.results["ranks_detail"])
    steps = json.loads(result.read_text(encoding="utf-8"))["runs"][0]["steps_mean_s"]
    for step, wall in enumerate(steps["wall"]):
        assert sum(times[step] for name, times in steps.items() if name != "wall") <= wall
    assert (sum(steps["to_gpu"][1:]) > 0) == (sum(steps["to_host"]) > 0)
    if "staged" in options:
        # The rows of L and their products travel, and each process but the owner copies them into its GPU.
        assert sum(steps["to_gpu"]) > sum(steps["to_host"]) > 0


# Those that this computer has; sgemm needs a BLAS, which the tests of dryfly-hpl need too.
@pytest.mark.parametrize(
    "options",
    [
        ("--kernel", "amx"),
        ("--kernel", "avx512-bf16"),
        ("--kernel", "avx2"),
        ("--kernel", "mkl"),
        ("--kernel", "sgemm"),
        ("--precision", "fp16"),
        ("--precision", "fp32"),
        ("--precision", "fp32", "--refine", "gmres"),
    ],
    ids=lambda options: " ".join(options),
)
def test_every_kernel_gives_the_solution_of_fp64(program: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    # 301 and 97 divide neither the own kernel's tiles nor each other; 48 and 8 are its tiles.
    x = tmp_path / "x"
    command = [program, "-N", "301,240", "--nb", "97,48,301", "--solution", x, *options]
    skip_without(options[-1])
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("PASSED") == 6, ended.stdout
    require_fp64(x, [301] * 3 + [240] * 3)


@pytest.mark.parametrize("own", OWN_KERNELS)
def test_the_first_residual_is_what_the_stored_precision_costs_whoever_multiplies(program: Path, own: str) -> None:
    first = {}
    for kernel in (own, "sgemm", "fp16", "fp32"):
        options = ("--precision", kernel) if kernel.startswith("fp") else ("--kernel", kernel)
        command = [program, "-N", "600", "--nb", "64", "--progress", "none", *options]
        skip_without(kernel)
        ended = subprocess.run(command, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        found = re.search(r"residuals ([^\s]+) ", ended.stdout)
        assert found is not None, ended.stdout
        first[kernel] = float(found[1])
    # That for AVX2 multiplies whole numbers of steps, and loses a little more.
    assert first[own] == pytest.approx(first["sgemm"], rel=0.15 if own == "avx2" else 0.1)
    assert first[own] > 10 * first["fp32"], "else A is not stored in BF16"
    # Three bits more than BF16, but for those that the factors' smallest numbers lose below FP16's normal ones.
    assert first[own] > 3 * first["fp16"] > 6 * first["fp32"], "else A is not stored in FP16"


def test_two_ranks_find_the_solution_of_one_and_say_so_in_json(program: Path, native: Native, tmp_path: Path) -> None:
    x, result = tmp_path / "x", tmp_path / "result.json"
    options = ("-N", "300", "--nb", "32", "--grid", "1x2", "--solution", str(x), "--json", str(result))
    output = native(2, program, *options, "--progress", "all").stdout
    require_fp64(x, [300])
    run = json.loads(result.read_text())["runs"][0]
    assert (run["order"], run["block"], run["grid"], run["passed"]) == (300, 32, [1, 2], True)
    assert len(run["steps_max_s"]["wall"]) == len(run["steps_max_s"]["gemm"]) == 10
    assert run["gflops"] == pytest.approx((2 / 3 * 300 + 1.5) * 300**2 / run["time_s"] / 1e9)
    assert run["refinement_steps"] == len(run["residuals"]) - 1
    assert re.findall(r"^ +(\d+) +[\d.]+%", output, re.M) == [str(step) for step in range(1, 11)]


def test_spare_ranks_are_measured_and_the_slowest_are_left_out(dryfly: Dryfly, tmp_path: Path) -> None:
    # Two ranks on one node share its processors and two have a node each, so in the model the shared ones are slowest.
    places = tmp_path / "places"
    places.write_text("t0\nt1\nt1\nt2\n")
    x, result = tmp_path / "x", tmp_path / "result.json"
    start = ("run", "--compute", "model", "--place", str(places), "-n", "4", "--", NAME, "--progress", "none")
    options = ("-N", "64", "--spare", "2", "--screen", "yes", "--solution", x, "--json", result)
    output = dryfly(*start, *options, limit_s=240).succeeded().stdout
    assert re.findall(r"left out: rank (\d)", output) == ["1", "2"]
    assert "factors in BF16, on 2 ranks (grid 1x2)" in output
    # All that are left have a node of their own: none is slow.
    assert re.findall(r"screening (\w+): product", output) == ["before", "after"]
    assert "slow: rank" not in output
    assert all(rate > 0 for rate in json.loads(result.read_text())["runs"][0]["screening_gflops"])
    require_fp64(x, [64])


BAD_INPUT = [
    (("-N", "100", "--spare", "1"), "--spare 1: there are 1 ranks"),
    (("-N", "0"), "-N 0: accepted is a whole number from 1 to"),
    (("-N", "100", "--nb", "0"), "--nb 0: accepted is a whole number from 1 to"),
    (("-N", "100", "--grid", "2x3"), "grid 2x3: it needs 6 ranks, and there are 1"),
    (("-N", "100", "--grid", "4"), "--grid 4: accepted is PxQ"),
    (("-N", "2e9"), "GB, and"),
    (("-N", "100", "--kernel", "vnni"), "--kernel vnni: accepted is amx, auto, avx2, avx512-bf16, mkl, sgemm"),
    (("-N", "100", "--precision", "fp8"), "--precision fp8: accepted is bf16, fp16, fp32"),
    (("-N", "100", "--precision", "fp16", "--kernel", "avx512-bf16"), "its kernels are sgemm and mkl"),
    (("-N", "100", "--restart", "yes"), "--restart yes: it needs --checkpoint FOLDER"),
    (("-N", "100", "--precision", "fp32", "--kernel", "mkl"), "--precision fp32: its kernel is sgemm"),
    (("-N", "100", "--refine", "cg"), "--refine cg: accepted is classic, gmres"),
    (("-N", "100", "--colour", "red"), "unknown option --colour"),
    (("-N", "100", "--kernel", "sgemm", "--blas", "/no/such.so"), "/no/such.so"),
    (("-N", "100", "--memory", "gpu"), "--memory gpu: no GPU runtime is found here; accepted are machines with CUDA"),
    (("-N", "100", "--memory", "gpu", "--checkpoint", "kept"), "--checkpoint kept: accepted is --memory host beside"),
    (("-N", "100", "--gpu-transfers", "staged"), "--gpu-transfers: it is for --memory gpu"),
    (("-N", "100", "--json", "/no/such/file"), "--json /no/such/file: No such file or directory"),
]


@pytest.mark.parametrize(("arguments", "sentence"), BAD_INPUT, ids=lambda value: " ".join(value)[:30])
def test_what_cannot_be_run_is_one_sentence_and_status_2(
    program: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    ended = subprocess.run([program, *arguments], capture_output=True, text=True)
    assert ended.returncode == 2, ended.stdout
    assert sentence in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stdout == ""


def test_what_is_wrong_on_the_first_rank_ends_all_of_them(program: Path, native: Native) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        native(2, program, "-N", "50", "--json", "/no/such/file")
    assert "dryfly-mxp: --json /no/such/file: No such file or directory\n" in refused.value.stderr


def test_ranks_bound_to_the_same_core_are_refused_and_the_map_is_printed(program: Path, native: Native) -> None:
    core = min(os.sched_getaffinity(0))
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("a computer with one core cannot bind ranks wrongly")
    bound = ("taskset", "-c", str(core), program, "-N", "64", "--warm-up", "yes")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        native(2, *bound)
    assert f"ranks 0, 1 are bound to cores {core} of " in refused.value.stderr
    output = native(2, *bound, "--binding", "any").stdout
    assert re.search(rf"^place: rank 0-1 on \S+, cores {core}, NUMA node 0, memory of 0, NIC none$", output, re.M)
    assert "PASSED" in output


@pytest.mark.parametrize(("own", "name"), [("avx512-bf16", "AVX512-BF16"), ("avx2", "AVX2")])
def test_threads_that_the_own_kernel_would_not_use_are_refused(program: Path, own: str, name: str) -> None:
    skip_without(own)
    command = [program, "-N", "64", "--kernel", own, "--threads", "2"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        f"dryfly-mxp: --threads 2: dryfly's own for {name} takes one core for each rank; accepted is 1, "
        "or --kernel mkl or sgemm\n"
    )


def test_amx_where_there_is_none_is_one_sentence_and_status_2(program: Path) -> None:
    if "amx_bf16" in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        pytest.skip("this processor has AMX")
    ended = subprocess.run([program, "-N", "100", "--kernel", "amx"], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(
        r"dryfly-mxp: --kernel amx: this processor has no AMX-BF16; accepted here are .*mkl and sgemm\n", ended.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("-N", "1"), "nan"),  # the matrix is zero
        (("-N", "200", "--steps", "0"), "e+"),  # what BF16 alone gives is far from FP64
        (("-N", "200", "--threshold", "1e-9"), "e-"),
    ],
    ids=["nan", "without refinement", "threshold"],
)
def test_a_test_that_is_not_passed_is_failed_and_status_1(program: Path, arguments: tuple[str, ...], why: str) -> None:
    ended = subprocess.run([program, *arguments], capture_output=True, text=True)
    assert ended.returncode == 1
    assert re.search(rf"N\)= +\S*{re.escape(why)}\S* \.\.\.\.\.\. FAILED", ended.stdout), ended.stdout
    assert "0 of 1 runs passed the test" in ended.stdout


def test_a_run_that_was_killed_goes_on_and_ends_with_the_same_bits(tmp_path: Path) -> None:
    def command(solution: str, *more: str) -> list[str]:
        start = [sys.executable, "-m", "dryfly", "mxp", "-n", "2", "-N", "1500", "--nb", "24", "--grid", "1x2"]
        start += ["--progress", "none", "--kernel", "sgemm", "--json", str(tmp_path / f"{solution}.json")]
        return [*start, "--solution", str(tmp_path / solution), *more]

    subprocess.run(command("whole"), check=True, capture_output=True)
    kept = ("--checkpoint", str(tmp_path / "kept"), "--checkpoint-every", "0")
    kill_when_kept(command("killed", *kept), tmp_path / "kept" / "mxp-current", step=3)
    ended = subprocess.run(command("resumed", *kept, "--restart", "yes"), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
    whole, resumed = (json.loads((tmp_path / f"{name}.json").read_text())["runs"][0] for name in ("whole", "resumed"))
    assert (whole["residuals"], whole["residual"]) == (resumed["residuals"], resumed["residual"])
    assert len(resumed["steps_max_s"]["wall"]) <= len(whole["steps_max_s"]["wall"]) - 3, "it has begun anew"
    assert not list((tmp_path / "kept").glob("mxp-*")), "what was kept is removed at the end"


@pytest.mark.parametrize(("ranks", "grid"), [(8, "2x4"), (9, "3x3")])
def test_open_mpi_finds_the_same_solution(dryfly: Dryfly, tmp_path: Path, ranks: int, grid: str) -> None:
    x = tmp_path / "x"
    solver.build(NAME, mpi=mpi.select("openmpi"))
    start = ("run", "--mpi", "openmpi", "--compute", "none", "-n", str(ranks), "--", NAME, "--progress", "none")
    ended = dryfly(*start, "-N", "101", "--nb", "16", "--grid", grid, "--solution", x, limit_s=240.0).succeeded()
    assert ended.stdout.count("PASSED") == 1
    assert ended.results["mpi"]["name"].startswith("openmpi")
    require_fp64(x, [101])
