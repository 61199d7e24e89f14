"""A recorded run as a workload of `dryfly predict`: what it is asked without being told, and what is refused.

The engine is a stand-in; tests/mpi/test_run_skeleton.py predicts with the engine.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from test_predict import stand_in  # noqa: F401
from test_skeleton import Row, recorded

from dryfly.base.errors import UserError
from dryfly.predict import ask, predict, skeleton
from dryfly.predict.find import find
from dryfly.predict.question import Question

_SENT: list[Row] = [(0, "send", 10, 0, 8, "1", 1), (1, "receive", 5, 1, 8, "1", 0), (1, "arrived", 30, 1, 8, "1", 0)]
_NODES = [7, 7, 3, 3]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of four ranks on two nodes of `testbed`."""
    (tmp_path / "run").mkdir()
    return recorded(tmp_path / "run", _SENT, [], [50_000_000] * 4, nodes=_NODES)


def asked(folder: Path, *words: str, written: dict[str, Any] | None = None, **how: Any) -> dict[str, Any]:
    """What the command writes as JSON."""
    usual = {"machine": "aurora", "place": "packed", "seed": 1, "sets": ()}
    given = {**usual, **(written or {})}
    file = folder.parent / "answer.json"
    ways = predict.How(json_file=str(file), quiet=True, written=frozenset(written or ()), **how)
    assert predict.predict(str(folder), words, given, ways) == 0
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


@pytest.mark.usefixtures("stand_in")
def test_what_is_not_said_is_as_it_was_recorded(folder: Path) -> None:
    found = asked(folder)
    assert {name: found[name] for name in ("machine", "nodes", "ppn", "placement", "seed", "level")} == {
        "machine": "testbed", "nodes": 2, "ppn": 2, "placement": "packed", "seed": 1, "level": "links",
    }  # fmt: skip
    assert found["parameters"] == {"on_node": "nic"}
    assert found["details"]["recorded"] == {"virtual_time_s": pytest.approx(50e-6), "machine": "testbed"}


@pytest.mark.usefixtures("stand_in")
def test_another_machine_and_placement_are_those_that_are_given(folder: Path) -> None:
    found = asked(folder, "on_node=memory", written={"machine": "aurora", "place": "spread", "ppn": 1})
    assert (found["machine"], found["nodes"], found["ppn"], found["placement"]) == ("aurora", 4, 1, "spread")
    assert "'on': '0,64,128,192', 'on_node': 'memory'" in found["warnings"][0]
    assert "what they took on testbed" in found["warnings"][-1]


@pytest.mark.usefixtures("stand_in")
def test_a_recording_is_swept_as_any_other_workload(folder: Path) -> None:
    found = asked(folder, sweeps=("machine=testbed,aurora",), seeds=2)
    assert [case["values"] for case in found["cases"]] == [
        ["testbed", "1"], ["testbed", "2"], ["aurora", "1"], ["aurora", "2"],
    ]  # fmt: skip


@pytest.mark.usefixtures("stand_in")
def test_what_calls_cost_is_not_charged_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = []
    monkeypatch.setattr(skeleton.motif, "ask", lambda spec, *_, **__: specs.append(spec) or {"virtual_ps": 7})
    skeleton.answer(Question(workload=str(folder), machine="testbed"))
    assert "\nhost.send_ps 0\n" in specs[0]


@pytest.mark.usefixtures("stand_in")
def test_what_the_recorded_run_was_given_and_this_one_is_not_is_told(tmp_path: Path) -> None:
    made = recorded(tmp_path, _SENT, [], [50, 50], more="fabric.link.rate_bytes_per_s 1\nfaults.count 2\n")
    answer = skeleton.answer(Question(workload=str(made), machine="testbed"))
    assert answer.warnings[-1].startswith("recorded with another fabric.link.rate_bytes_per_s, faults, of which")


@pytest.mark.usefixtures("stand_in")
def test_the_key_is_of_what_is_replayed(tmp_path: Path) -> None:
    keys = []
    for size in (8, 8, 9):
        made = tmp_path / str(len(keys))
        made.mkdir()
        recorded(made, [(*_SENT[0][:4], size, *_SENT[0][5:]), *_SENT[1:]], [], [50, 50])
        keys.append(json.loads(json.dumps(ask.file.digest(Question(workload=str(made), machine="testbed")))))
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"nodes": 1, "ppn": 2}, "run has 4 ranks, and 1 nodes with 2 ranks are 2; accepted are at least as many"),
        ({"sets": ("host.send=1 us",)}, "host.send has no effect on"),
        ({"model": "closed"}, "run is skeleton"),
        ({"parameters": (("bytes", "8"),)}, "recording has no parameter bytes; there are on_node"),
        ({"software": "measured"}, "was counted for messages of one size, and"),
        ({"machine": "nowhere"}, "nowhere"),
    ],
)
def test_what_a_replay_cannot_take_is_refused(given: dict[str, Any], sentence: str, folder: Path) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        ask.check(Question(**{"workload": str(folder), "machine": "testbed", **given}))


def test_a_folder_that_no_replay_can_be_made_of_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no recording; accepted is a folder that dryfly run --record"):
        find(str(tmp_path))
    (folder / "rank_waits.parquet").write_bytes(b"no table")
    with pytest.raises(UserError, match="the recording is damaged"):
        ask.check(Question(workload=str(folder), machine="testbed"))
    (folder / "result.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=r"result\.json is damaged; record the run again"):
        find(str(folder))
    (folder / "result.json").write_text('{"ranks": 4}', encoding="utf-8")
    with pytest.raises(UserError, match=r"result\.json: KeyError.*; record the run again with this version"):
        find(str(folder))


def test_ranks_here_and_there_are_refused(tmp_path: Path) -> None:
    recorded(tmp_path, _SENT, [], [50] * 3, nodes=[7, 7, 3])
    with pytest.raises(
        UserError, match="ranks in a row on a node: 2, 1; accepted is a run with as many ranks on each node"
    ):
        find(str(tmp_path))
