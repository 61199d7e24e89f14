"""dryfly.simulate, in a process of its own: it has to be called from a main thread, with the signals of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from harness import MICRO

_PINGPONG = str(MICRO / "pingpong.c")


def _python(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    script = folder / "study.py"
    script.write_text(f"import dryfly, json\nPINGPONG = {_PINGPONG!r}\n{text}")
    return subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=os.environ, check=False, cwd=folder
    )


def test_a_run_gives_its_result_and_faults_are_a_dict_like_their_file(tmp_path: Path) -> None:
    done = _python(
        """
options = {"machine": "testbed", "nodes": 2, "compute": "none"}
well = dryfly.simulate([PINGPONG, "count=100"], **options)
faults = {"replays": [{"link": "all", "at": "0 s", "rate": 0.2}]}
ill = dryfly.simulate([PINGPONG, "count=100"], faults=faults, **options)
print("RESULT", json.dumps([well, ill]))
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    well, ill = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("RESULT"))[7:])
    assert well["machine"] == ill["machine"] == "testbed"
    assert well["messages"] == ill["messages"] > 200
    assert ill["virtual_time_s"] > well["virtual_time_s"] > 0
    assert [nic["mac"] for nic in well["nics"]] == sorted({nic["mac"] for nic in well["nics"]})
    assert all(nic["mac"].startswith("02:00:00:0") for nic in well["nics"])


def test_what_cannot_be_used_and_what_fails_are_exceptions_with_their_exit_status(tmp_path: Path) -> None:
    done = _python(
        """
from dryfly.base.errors import DryflyError
attempts = {"machine": "arora"}, {"node": 2}, {"faults": {"flip": []}}, {"nodes": 2, "timeout_s": 0.001}
for options in attempts:
    try:
        dryfly.simulate([PINGPONG, "count=100000000"], **options)
    except DryflyError as error:
        print("RAISED", error.exit_status, error)
""",
        tmp_path,
    )
    raised = [line.split(maxsplit=2)[1:] for line in done.stdout.splitlines() if line.startswith("RAISED")]
    assert [status for status, _ in raised] == ["2", "2", "2", "124"], done.stderr
    for (_, sentence), part in zip(raised, ("arora", "node: accepted are", "flip", "--timeout 0.001 s"), strict=True):
        assert part in sentence


def test_a_result_has_types_and_a_failure_has_its_sentence(tmp_path: Path) -> None:
    done = _python(
        """
from dataclasses import replace
case = dryfly.Case(program=(PINGPONG, "count=10"), nodes=2, compute="none")
try:
    dryfly.run_case(replace(case, environment=(("FI_CXI_RX_MATCH_MODE", "x"),)))
except dryfly.UserError as error:
    print("REFUSED", error)
result = dryfly.run_case(case)
assert result.case is case and result.output is None
assert (result.nodes, result.ranks, len(result.each_rank), len(result.nics)) == (2, 2, 2, 2)
assert min(call.count for call in result.profile if call.call in ("MPI_Send", "MPI_Recv")) >= 20
assert sum(protocol.messages for protocol in result.protocols) == result.messages > 20
total = result.mean.computing_s + result.mean.communicating_s + result.mean.waiting_s
assert 0 < total <= result.virtual_time_s
assert result.each_rank[1].node == "t1" and result.health == ()
try:
    dryfly.run_case(dryfly.Case(program=("sh", "-c", "exit 7"), nodes=2, compute="none"))
except dryfly.RunFailed as error:
    print("FAILED", error.exit_status, error, error.details)
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    refused, failed = [line for line in done.stdout.splitlines() if line.startswith(("REFUSED", "FAILED"))]
    assert "FI_CXI_RX_MATCH_MODE" in refused
    assert failed.startswith("FAILED 7 ")


def test_a_sweep_runs_what_is_not_in_the_cache_and_stops_at_a_failure(tmp_path: Path) -> None:
    done = _python(
        """
from dataclasses import replace
def cases():
    first = dryfly.Case(program=(PINGPONG, "count=10"), nodes=2, compute="none")
    ill = replace(first, faults={"replays": [{"link": "all", "at": "0 s", "rate": 0.2}]})
    return [first, ill, replace(first, environment=(("FI_CXI_RDZV_THRESHOLD", "2048"),)), first]
plain, ill, older, again = dryfly.sweep(cases(), parallel=2, cache="cache")
assert plain == again and plain.fingerprint == older.fingerprint
assert ill.virtual_time_s > plain.virtual_time_s
assert plain.output and plain.case == cases()[0]
assert plain.fingerprint == dryfly.run_case(cases()[0]).fingerprint
for before, now in zip((plain, ill, older), dryfly.sweep(cases()[:3], cache="cache"), strict=True):
    assert before.raw == now.raw and before.output == now.output  # process ids and wall time too: nothing has run
assert dryfly.sweep(cases()[:1])[0].raw["ranks_detail"][0]["pid"] != plain.raw["ranks_detail"][0]["pid"]
try:
    dryfly.sweep([replace(cases()[0], program=("sh", "-c", "exit 7"))])
except dryfly.RunFailed as error:
    print("FAILED", error.exit_status, error)
for options, how in (({"compute": "measured"}, {"cache": "cache"}), ({}, {"parallel": 0}), ({"program": ()}, {})):
    try:
        dryfly.sweep([replace(cases()[0], **options)], **how)
    except dryfly.UserError as error:
        print("REFUSED", error)
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith(("REFUSED", "FAILED"))]
    assert said[0].startswith("FAILED 7 sh -c exit 7: ")
    for line, part in zip(said[1:], ("not repeatable", "parallel=0", "no program"), strict=True):
        assert part in line


def test_a_kept_result_is_not_taken_when_a_header_of_the_program_has_changed(tmp_path: Path) -> None:
    (tmp_path / "app.c").write_text(
        '#include <mpi.h>\n#include "turns.h"\nint main(int c, char** v) { MPI_Init(&c, &v);\n'
        "for (int i = 0; i < TURNS; ++i) MPI_Barrier(MPI_COMM_WORLD);\nreturn MPI_Finalize(); }\n",
        encoding="utf-8",
    )
    ran = _python(
        """
import dryfly
from pathlib import Path

def count(turns: int) -> int:
    Path("turns.h").write_text(f"#define TURNS {turns}\\n", encoding="utf-8")
    case = dryfly.Case(program=("app.c",), ranks=2, compute="none")
    (result,) = dryfly.sweep([case], cache="cache")
    return result.messages

first, more = count(1), count(5)
assert more == 5 * first, (first, more)
assert count(1) == first
print("ended")
""",
        tmp_path,
    )
    assert ran.stdout.endswith("ended\n"), ran.stderr


def test_the_example_of_a_sweep_prints_a_row_for_each_case() -> None:
    script = Path(__file__).parents[2] / "docs" / "tutorial" / "sweep.py"
    done = subprocess.run(
        [sys.executable, str(script), _PINGPONG], capture_output=True, text=True, env=os.environ, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(("testbed ", "aurora "))]
    assert [(row[0], int(row[1])) for row in rows] == [(m, n) for m in ("testbed", "aurora") for n in (10, 100)]
    times = [float(row[2]) for row in rows]
    assert times[0] < times[1]
    assert times[2] < times[3]
