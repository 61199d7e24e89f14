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
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=os.environ, check=False)


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
    for (_, sentence), part in zip(raised, ("arora", "node: accepted are", "flip", "124"), strict=True):
        assert part in sentence


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
