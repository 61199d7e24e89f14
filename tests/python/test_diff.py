from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from dryfly.base.errors import UserError
from dryfly.study import diff
from dryfly.study.diff import Difference

US = 1e-6
MESSAGE = {"latency_s": 2 * US, "bytes": 8, "source": 0, "target": 1, "protocol": "inline", "hops": 1, "on_node": False}
CALL = {"rank": 0, "call": "MPI_Send", "left_s": 3 * US, "waiting_s": 0.0, "bytes": 8}
STEP = {"link": 0, "step_s": 1 * US, "data_bytes": 0, "utilisation": 0.0, "queue_bytes": 0.0}
LINK = {"kind": "local", "data_bytes": 8, "busy_s": US, "mean_queue_bytes": 0.0, "longest_wait_s": 0.0}
WAIT = {"kind": "local", "from_s": 0.0, "to_s": 0.0, "frames": 1}
RESULT: dict[str, Any] = {
    "machine": "testbed", "ranks": 2, "nodes": 2, "placement": {}, "program": ["p"], "seed": 1, "spec": "a.ps 1\n",
    "virtual_time_s": 5e-6, "messages": 2, "network_timeouts": 0, "fingerprint": "f",
}  # fmt: skip

Rows = Sequence[dict[str, Any]]


def message(called_us: float, **changed: Any) -> dict[str, Any]:
    return {"called_s": called_us * US, **MESSAGE, **changed}


def call(entered_us: float, **changed: Any) -> dict[str, Any]:
    return {"entered_s": entered_us * US, **CALL, **changed}


def steps(*data_bytes: int, link: int = 0, step_us: float = 1) -> list[dict[str, Any]]:
    return [
        {**STEP, "time_s": n * step_us * US, "step_s": step_us * US, "data_bytes": size, "link": link}
        for n, size in enumerate(data_bytes)
    ]


MESSAGES = (message(1), message(2))
CALLS = (call(1), call(2))


def recorded(
    folder: Path,
    *,
    messages: Rows = MESSAGES,
    calls: Rows = CALLS,
    links: Rows = ({"name": "g0s0>g0s1", **LINK},),
    link_steps: Rows = (),
    waits: Rows = (WAIT,),
    **result: Any,
) -> Path:
    folder.mkdir()
    (folder / "result.json").write_text(json.dumps({**RESULT, **result}))
    empty = {"calls": call(0), "messages": message(0), "link_steps": steps(0)[0], "links": {"name": "", **LINK}}
    for name, rows in (
        ("messages", messages), ("calls", calls), ("links", links), ("link_steps", link_steps), ("waits", waits)
    ):  # fmt: skip
        names = rows[0] if rows else empty[name]
        table = {column: [row[column] for row in rows] for column in names}
        pyarrow.parquet.write_table(pyarrow.table(table), folder / f"{name}.parquet")
    return folder


def difference(a: Path, b: Path) -> Difference | None:
    return diff.first_difference(diff.load(a), diff.load(b))


def between(tmp_path: Path, a: dict[str, Any], b: dict[str, Any]) -> Difference:
    found = difference(recorded(tmp_path / "a", **a), recorded(tmp_path / "b", **b))
    assert found is not None
    return found


def test_equal_runs_have_no_difference_whatever_the_order_of_delivery(tmp_path: Path) -> None:
    a = recorded(tmp_path / "a", link_steps=steps(1, 2))
    b = recorded(tmp_path / "b", link_steps=steps(1, 2), messages=(message(2), message(1)))
    assert difference(a, b) is None


def test_a_later_delivery_is_a_difference_at_the_earlier_of_the_two(tmp_path: Path) -> None:
    late = message(1, latency_s=2.001 * US)
    found = between(tmp_path, {}, {"messages": (late, message(2))})
    assert (found.table, found.instant_ps, found.ranks) == ("messages", 3_000_000, (0, 1))
    assert found.differing == ("delivered",)


def test_a_picosecond_counts(tmp_path: Path) -> None:
    base = 3600.0  # seconds, where a float still tells picoseconds apart
    a, b = ({**message(0), "called_s": base + extra} for extra in (0.0, 1e-12))
    found = between(tmp_path, {"messages": (a,)}, {"messages": (b,)})
    assert found.instant_ps == 3600 * 10**12
    assert found.b is not None
    assert found.b[0] == 3600 * 10**12 + 1


def test_the_row_that_was_called_later_may_differ_first(tmp_path: Path) -> None:
    # The message called at 1 us is delivered at 11 us or at 12 us; that called at 2 us has another size at once.
    a = {"messages": (message(1, latency_s=10 * US), message(2))}
    b = {"messages": (message(1, latency_s=11 * US), message(2, bytes=16))}
    found = between(tmp_path, a, b)
    assert (found.instant_ps, found.differing) == (2_000_000, ("bytes",))
    assert found.before == ((1_000_000, 0, 1, 11_000_000, 8, "inline", 1, False),)


def test_a_stream_that_ends_early_is_a_difference(tmp_path: Path) -> None:
    found = between(tmp_path, {}, {"messages": (message(1),)})
    assert (found.instant_ps, found.b, found.ranks) == (2_000_000, None, (0, 1))
    assert found.differing == found.fields


def test_a_call_that_is_left_later_differs_where_it_is_left(tmp_path: Path) -> None:
    # Rank 0 enters at 1 us and leaves at 9 us or 8 us; rank 1 enters its first call at 4 us or at 5 us.
    a = {"calls": (call(1, left_s=9 * US), call(4, rank=1, left_s=9 * US))}
    b = {"calls": (call(1, left_s=8 * US), call(5, rank=1, left_s=9 * US))}
    found = between(tmp_path, a, b)
    assert (found.table, found.ranks, found.instant_ps, found.differing) == ("calls", (1,), 4_000_000, ("entered",))


def test_calls_of_one_instant_are_compared_in_their_order(tmp_path: Path) -> None:
    one, other = call(1, call="MPI_Isend"), call(1, call="MPI_Irecv")
    found = between(tmp_path, {"calls": (one, other)}, {"calls": (other, one)})
    assert (found.instant_ps, found.differing) == (1_000_000, ("call",))


def test_an_event_inside_a_step_comes_before_the_step(tmp_path: Path) -> None:
    a = {"link_steps": steps(5, 6), "messages": (message(1.5),)}
    inside = {"link_steps": steps(5, 7), "messages": (message(1.5, bytes=9),)}
    assert between(tmp_path, a, inside).table == "messages"
    after = recorded(tmp_path / "after", link_steps=steps(5, 7), messages=(message(1.5, latency_s=0.5 * US),))
    found = difference(recorded(tmp_path / "c", link_steps=steps(5, 6), messages=(message(1.5),)), after)
    assert found is not None  # delivered at 2 us, when the step from 1 us on has ended
    assert (found.table, found.instant_ps, found.link) == ("link_steps", 1_000_000, "g0s0>g0s1")


def test_links_go_by_their_names_and_an_idle_link_is_no_difference(tmp_path: Path) -> None:
    names = ("a", "b")
    links = [{"name": name, **LINK} for name in names]
    a = recorded(tmp_path / "a", links=links, link_steps=[*steps(5, link=0), *steps(0, 7, link=1)])
    b = recorded(tmp_path / "b", links=links[::-1], link_steps=[*steps(0, 7, link=0), *steps(5, 0, link=1)])
    assert difference(a, b) is None
    c = recorded(tmp_path / "c", links=links[:1], link_steps=steps(5, link=0))
    found = difference(a, c)
    assert found is not None
    assert (found.link, found.instant_ps, found.b) == ("b", 1_000_000, None)


def test_steps_of_unequal_length_are_left_out_and_that_is_said(tmp_path: Path) -> None:
    a = recorded(tmp_path / "a", link_steps=steps(5, 6))
    b = recorded(tmp_path / "b", link_steps=steps(11, step_us=2), spec="a.ps 2\n")
    assert difference(a, b) is None
    assert diff.conditions(diff.load(a), diff.load(b)) == [
        "the spec differs in a.ps",
        "the steps of links are not equally long and are not compared",
    ]


@pytest.mark.parametrize(
    ("changed", "table"),
    [
        ({"links": ({"name": "g0s0>g0s1", **LINK, "longest_wait_s": 1e-9},)}, "links"),
        ({"waits": ({**WAIT, "frames": 2},)}, "waits"),
        ({"fingerprint": "g"}, "result"),
    ],
)
def test_totals_count_where_all_events_are_equal(changed: dict[str, Any], table: str, tmp_path: Path) -> None:
    found = between(tmp_path, {}, changed)
    assert (found.table, found.instant_ps, len(found.differing)) == (table, None, 1)


def test_the_command_ends_with_0_1_or_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recorded(Path("a"))
    recorded(Path("b"), messages=(message(1), message(2, target=0)))
    assert diff.diff("a", "a") == 0
    assert capsys.readouterr().out == "the runs are equal: 2 messages and 2 MPI calls\n"
    assert diff.diff("a", "b") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "The runs differ first at 2.000000 us, in a message from rank 0 to rank 0."
    assert "* target     1            0" in lines
    assert "  source     0            0" in lines
    assert max(map(len, lines)) <= 80


def test_what_is_no_recorded_run_is_refused(tmp_path: Path) -> None:
    good = recorded(tmp_path / "good")
    with pytest.raises(UserError, match="is no recorded run"):
        diff.diff(str(good), str(tmp_path))
    with pytest.raises(UserError, match="runs of as many are compared"):
        diff.diff(str(good), str(recorded(tmp_path / "other", ranks=3)))


@pytest.mark.parametrize("name", ["result.json", "messages.parquet", "link_steps.parquet", "waits.parquet"])
@pytest.mark.parametrize("how", ["gone", "cut", "noise", "other columns"])
def test_a_damaged_recording_is_refused_in_one_sentence(name: str, how: str, tmp_path: Path) -> None:
    file = recorded(tmp_path / "a", link_steps=steps(1)) / name
    content = file.read_bytes()
    if how == "gone":
        file.unlink()
    elif how == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif how == "noise":
        file.write_bytes(bytes(range(256)))
    elif name.endswith(".json") or name.startswith("waits"):
        file.write_text("[]")
    else:
        pyarrow.parquet.write_table(pyarrow.table({"x": [1]}), file)
    with pytest.raises(UserError, match=f"{tmp_path}/a"):
        diff.load(tmp_path / "a")
