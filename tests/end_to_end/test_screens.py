"""What a user sees and gets, beyond the result of a run."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

from launched import PROGRAMS, Run

Start = Callable[..., Run]
EXCHANGE = str(PROGRAMS / "exchange.c")
MISBEHAVE = str(PROGRAMS / "misbehave.c")


def test_a_large_deadlock_is_explained_in_sixteen_lines_and_a_number(start: Start) -> None:
    status, _, errors = start("-N", "20", "--compute", "none", "--", MISBEHAVE, "deadlock").end()
    assert status == 3
    assert errors.count(": MPI_Recv\n") == 16
    assert errors.endswith("  rank 15 on t15: MPI_Recv\n  and 4 more\n")


def test_a_result_on_standard_output_is_alone_there(start: Start) -> None:
    status, output, errors = start("-N", "2", "--compute", "none", "--json", "-", "--", EXCHANGE).end()
    assert status == 0, errors
    assert json.loads(output)["ranks"] == 2
    assert "sum 1" in errors  # 0 + 1, said by the program


def test_quiet_leaves_the_program_s_words_alone(start: Start) -> None:
    status, output, errors = start("-N", "2", "--compute", "none", "--quiet", "--", EXCHANGE).end()
    assert (status, errors) == (0, "")
    assert "sum 1" in output


def test_a_recording_is_one_file_and_repeats_the_run(start: Start, tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    recording = folder / "exchange"
    recorded = start("-N", "2", "--compute-record", str(recording), "--", EXCHANGE)
    assert recorded.end()[0] == 0
    assert [file.name for file in folder.iterdir()] == ["exchange"]
    replays = [start("-N", "2", "--compute", f"replay:{recording}", "--", EXCHANGE) for _ in range(2)]
    assert [run.end()[0] for run in replays] == [0, 0]
    results = [run.result() for run in replays]
    assert results[0]["fingerprint"] == results[1]["fingerprint"] == recorded.result()["fingerprint"]
    assert results[0]["repeatable"]
    assert not recorded.result()["repeatable"]
    assert results[0]["health"] == []


def test_a_wrapper_starts_one_rank_and_no_other(start: Start, tmp_path: Path) -> None:
    wrapper = tmp_path / "wrapper"
    wrapper.write_text('#!/bin/sh\necho "wrapped rank $PMI_RANK"\nexec "$@"\n')
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    status, output, errors = start("-N", "3", "--compute", "none", "--debug", f"1:{wrapper}", "--", EXCHANGE).end()
    assert status == 0, errors
    assert [line for line in output.splitlines() if line.startswith("wrapped")] == ["wrapped rank 1"]
    assert "sum 3" in output  # 0 + 1 + 2
