"""tool/mpich_tests.py, on a small suite of our own in the format of MPICH's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from harness import ROOT

_TOOL = ROOT / "tool" / "mpich_tests.py"

_GOOD = """
#include "mpitestconf.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef WANTED
#define WANTED "nothing"
#endif
int main(int argc, char** argv) {
  int rank, size;
  const char* setting = getenv("SETTING");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int good = argc < 2 || atoi(argv[1]) == size;
  if (strcmp(WANTED, "file") == 0) good = setting != NULL && fopen(setting, "r") != NULL;
  if (strcmp(WANTED, "setting") == 0) good = setting != NULL && strcmp(setting, "a=b") == 0;
  if (rank == 0 && good) printf(" No Errors\\n");
  MPI_Finalize();
  return 0;
}
"""
_ENDS_BADLY = """
#include <mpi.h>
int main(int argc, char** argv) { MPI_Init(&argc, &argv); MPI_Abort(MPI_COMM_WORLD, 3); }
"""
_ONLY_NATIVELY = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && getenv("DRYFLY_CHANNEL") == NULL) printf("No Errors\\n");
  MPI_Finalize();
  return 0;
}
"""
_SKIPPED = _ENDS_BADLY.replace("MPI_Abort(MPI_COMM_WORLD, 3);", 'puts("Test Skipped"); MPI_Finalize(); return 0;')
_FILES = {
    "testlist.in": "# a comment\nfirst\n@rmadir@\n@cxxdir@\n",
    "first/testlist": "good 3 arg=3   # ranks and an argument\ngood\nbad 2 resultTest=TestErrFatal\nbad 2\n"
    "other 2 env=SETTING=a=b\nexpected 2 xfail=ticket1\nreads 2 env=SETTING=data.txt\nmany 64\n"
    "secret 2\nskipped 1\nnot_there 1\n",
    "first/Makefile.am": "other_CPPFLAGS = \\\n  -DWANTED='\"setting\"' $(AM_CPPFLAGS)\nother_SOURCES = good.c\n"
    "reads_CPPFLAGS = -DWANTED='\"file\"'\nreads_SOURCES = good.c\n",
    "first/data.txt": "",
    "first/good.c": _GOOD,
    "first/bad.c": _ENDS_BADLY,
    "first/skipped.c": "#include <stdio.h>\n" + _SKIPPED,
    "rma/testlist.in": "@comm_overlap@ only_natively 2\n@spawndir@\n",
    "rma/only_natively.c": _ONLY_NATIVELY,
    "cxx/testlist": "nothing 1\n",
    "exclude": "# ours\nsecret  # nobody may know\n",
}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    for name, text in _FILES.items():
        path = tmp_path / "test" / "mpi" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def _run(suite: Path, *words: str) -> tuple[int, dict[str, str], dict[str, str], str]:
    """Exit status, standing and reason of each test, output."""
    target = suite / "rows.json"
    command = [sys.executable, str(_TOOL), str(suite), "--exclude", str(suite / "test/mpi/exclude")]
    done = subprocess.run(
        [*command, "--json", str(target), *words], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.stderr == "", done.stderr
    rows = json.loads(target.read_text())
    standing = {row["test"]: row["standing"] for row in rows}
    return done.returncode, standing, {row["test"]: row["reason"] for row in rows}, done.stdout


def test_each_test_is_run_both_ways_and_judged_by_the_suites_rules(suite: Path) -> None:
    status, standing, reason, out = _run(suite)
    assert standing == {
        "first/good 3 3": "both",
        "first/good 2": "both",
        "first/bad 2": "neither",  # the later of two lines with one name: without resultTest
        "first/other 2 SETTING=a=b": "both",
        "first/reads 2 SETTING=data.txt": "both",
        "first/expected 2": "left out",
        "first/many 64": "left out",
        "first/secret 2": "left out",
        "first/skipped 1": "both",
        "first/not_there 1": "not built",
        "rma/only_natively 2": "ONLY NATIVELY",
    }
    assert reason["first/expected 2"] == "its list expects it to fail: ticket1"
    assert reason["first/many 64"] == "64 ranks (--most-ranks)"
    assert reason["first/secret 2"] == "nobody may know"
    assert reason["first/not_there 1"].endswith("not_there.c")
    assert "1 ONLY NATIVELY, 6 both, 3 left out, 1 neither, 1 not built\n" in out  # the other `bad` is among the six
    assert status == 1


def test_a_part_of_the_suite_under_dryfly_only(suite: Path) -> None:
    status, standing, _, out = _run(suite, "--lists", "first", "--only", "good", "--no-native")
    assert standing == {"first/good 3 3": "passes", "first/good 2": "passes"}
    assert "2 passes\n" in out
    assert status == 0


def test_a_folder_without_a_list_is_refused(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(_TOOL), str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "it has no testlist" in done.stderr
