"""Recordings of real programs, extrapolated to a size of which there is a recording that was not used."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import Dryfly, Programs

from dryfly.extrapolation.extrapolate import Asked, extrapolate
from dryfly.extrapolation.outcome import Outcome
from dryfly.extrapolation.recording import Recording, read


def _recorded(dryfly: Dryfly, folder: Path, program: Path, ranks: int, words: Sequence[str]) -> str:
    made = folder / f"{program.name}-{ranks}"
    flags = ("--machine", "aurora", "--compute", "none", "-n", str(ranks), "--on-node", "provider")
    dryfly("run", *flags, "--record", made, "--", program, *words).succeeded()
    return str(made)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words", "sizes", "held"),
    [
        ("halo.c", ("steps=8",), (8, 16, 27), 64),
        ("phases.c", (), (9, 16, 25), 64),
    ],
)
def test_a_size_that_was_not_recorded_is_met(
    name: str,
    words: tuple[str, ...],
    sizes: tuple[int, ...],
    held: int,
    dryfly: Dryfly,
    programs: Programs,
    tmp_path: Path,
) -> None:
    program = programs.check(name)
    folders = tuple(_recorded(dryfly, tmp_path, program, ranks, words) for ranks in sizes)
    kept = read(_recorded(dryfly, tmp_path, program, held, words))
    found = extrapolate(Asked(folders=folders, ranks=held))
    print(_said(name, found, kept))
    assert found.played.messages == pytest.approx(kept.messages, rel=0.05)
    assert found.played.bytes == pytest.approx(kept.bytes, rel=0.05)
    assert found.played.virtual_time_s == pytest.approx(kept.virtual_time_s, rel=0.10)
    for one, got in zip(found.recordings, found.again, strict=True):
        assert got.messages == pytest.approx(one.messages, rel=0.05)
    assert extrapolate(Asked(folders=folders, ranks=held)).played.fingerprint == found.played.fingerprint


def _said(name: str, found: Outcome, kept: Recording) -> str:
    played = found.played
    pairs = ((played.messages, kept.messages), (played.bytes, kept.bytes), (played.virtual_time_s, kept.virtual_time_s))
    apart = ", ".join(f"{100 * (got / recorded - 1):+.2f} %" for got, recorded in pairs)
    return f"{name} at {kept.ranks} ranks: messages, bytes and time {apart}"


def test_the_command_writes_a_skeleton_and_refuses_a_program_without_a_rule(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    program = programs.micro("allreduce.c")
    folders = [_recorded(dryfly, tmp_path, program, ranks, ("count=5",)) for ranks in (2, 4, 8)]
    out, answer = tmp_path / "skeleton.py", tmp_path / "answer.json"
    dryfly("extrapolate", *folders, "-n", "1024", "-o", out, "--json", answer).succeeded()
    assert 'rank.collective("allreduce", 8' in out.read_text()
    content = json.loads(answer.read_text())
    # A barrier and 5 sums, and another for the slowest rank's time: 7 times 10 rounds of 1,024 messages.
    assert content["messages"] == 7 * 10 * 1024
    # By the code of dryfly predict: half the barriers' rounds on 32 ranks, and later with noise.
    flags = (
        "--noise",
        "machine",
        "--sweep",
        "ranks=32,1024",
        "--sweep",
        "noise=none",
        "--sweep",
        "place=packed,spread",
    )
    assert "--noise machine and --sweep noise" in dryfly("extrapolate", *folders, "-n", "1024", *flags).stderr
    flags = ("--noise", "machine", "--sweep", "ranks=32,1024")
    dryfly("extrapolate", *folders, "-n", "1024", *flags, "--json", answer).succeeded()
    noisy = json.loads(answer.read_text())
    assert [case["answer"]["messages"] for case in noisy["sweep"]["cases"]] == [7 * 5 * 32, 7 * 10 * 1024]
    assert noisy["sweep"]["cases"][1]["answer"]["fingerprint"] == noisy["fingerprint"] != content["fingerprint"]
    # Without -n the first that is swept; the workload is what was given.
    swept = dryfly("extrapolate", *folders, "--sweep", "ranks=32,1024", "--json", answer)
    swept.succeeded()
    content = json.loads(answer.read_text())
    assert content["ranks"] == 32
    assert [case["answer"]["ranks"] for case in content["sweep"]["cases"]] == [32, 1024]
    named = f"the skeleton of {', '.join(folders)}"
    assert {case["answer"]["workload"] for case in content["sweep"]["cases"]} == {named}
    assert f"  workload  {named}" in swept.stdout
    unknown = dryfly("extrapolate", *folders, "-n", "1024", "--sweep", "nodez=2,3")
    assert unknown.exit_status == 2
    assert "did you mean nodes?" in unknown.stderr
    rings = [_recorded(dryfly, tmp_path, programs.micro("ring.c"), ranks, ()) for ranks in (4, 8, 16)]
    ended = dryfly("extrapolate", *rings, "-n", "64")
    assert ended.exit_status == 1
    assert "the program's structure is not the same at all sizes" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
