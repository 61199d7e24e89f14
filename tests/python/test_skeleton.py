"""Skeletons in Python become schedules, and recordings too; tests/mpi/test_run_skeleton.py runs them."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.machine.load import load
from dryfly.machine.names import NodeNames
from dryfly.skeleton import ANY, Rank, Schedule, Where, goal, program_of, record
from dryfly.skeleton.replay import replay, without_cpu

_NAMES = [
    "compute",
    "isend",
    "irecv",
    "put",
    "get",
    "send",
    "recv",
    "wait",
    "wait_all",
    "phase",
    "barrier",
    "fence",
    "bcast",
    "reduce",
    "allreduce",
    "alltoall",
    "allgather",
    "reduce_scatter",
    "gather",
    "scatter",
]
Call = tuple[str, int, int, int, int, int]  # verb, line, slot, peer, tag, size


def calls(schedule: Schedule, rank: int = 0) -> list[Call]:
    words, _ = schedule.lists[schedule.list_of[rank]]
    found = []
    for first, second, size in struct.iter_unpack("<QQQ", words):
        found.append((_NAMES[first & 255], first >> 8 & 0xFFFFFF, first >> 32, second & 0xFFFFFFFF, second >> 32, size))
    return found


def verbs(schedule: Schedule, rank: int = 0) -> list[str]:
    return [call[0] for call in calls(schedule, rank)]


def ring(me: Rank) -> None:
    received = me.irecv((me.rank - 1) % me.size, tag=3)
    sent = me.isend((me.rank + 1) % me.size, 100, tag=3)
    me.wait(received, sent)
    me.compute(2e-6)


def test_ranks_that_do_the_same_from_where_they_are_have_one_list() -> None:
    schedule = record(ring, ranks=16)
    assert len(schedule.lists) == 1
    assert schedule.operations == 16 * 4
    line = ring.__code__.co_firstlineno
    assert calls(schedule) == [
        ("irecv", line + 1, 0, 15, 3, 0),
        ("isend", line + 2, 1, 1, 3, 100),
        ("wait", line + 3, 0, 1, 0, 0),
        ("compute", line + 4, 0, 0, 0, 2_000_000),
    ]


def test_ranks_that_differ_have_lists_of_their_own() -> None:
    def program(me: Rank) -> None:
        if me.rank == 0:
            me.recv(ANY, ANY)
        elif me.rank == 3:
            me.send(0, 8)

    schedule = record(program, ranks=4)
    assert list(schedule.list_of) == [0, 1, 1, 2]
    any_word = 2**32 - 1
    assert calls(schedule)[0][3:5] == (any_word, any_word)


def test_slots_of_requests_are_used_again() -> None:
    def program(me: Rank) -> None:
        for _ in range(50):
            me.wait(me.put(me.rank, 8), me.get(me.rank, 8))
        for _ in range(3):
            me.isend(me.rank, 8)
            me.irecv(me.rank)
            me.wait_all()
        me.forget(me.put(me.rank, 8))

    assert record(program, ranks=1).lists[0][1] == 2


def test_groups_and_phases_are_shared_by_all_ranks() -> None:
    def program(me: Rank) -> None:
        row = me.group(range(me.rank // 2 * 2, me.rank // 2 * 2 + 2))
        me.phase("norm")
        me.bcast(64, root=row.ranks[1], group=row)
        me.phase("")

    schedule = record(program, ranks=4)
    assert schedule.groups == ((0, 1), (2, 3))
    assert schedule.phases == ("norm",)
    assert [call[:3] + call[3:4] for call in calls(schedule, 3)][1] == ("bcast", calls(schedule, 3)[1][1], 2, 1)


def test_every_verb_is_written() -> None:
    def program(me: Rank) -> None:
        other = 1 - me.rank
        me.sendrecv(other, 8, other)
        me.fence()
        me.barrier()
        me.bcast(8)
        me.reduce(8)
        me.allreduce(8)
        me.alltoall(8)
        me.allgather(8)
        me.reduce_scatter(8)
        me.gather(8)
        me.scatter(8)

    collectives = _NAMES[_NAMES.index("bcast") :]
    assert verbs(record(program, ranks=2)) == ["irecv", "isend", "wait", "wait_all", "fence", "barrier", *collectives]


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda me: me.isend(4, 8), "peer = 4: accepted is a rank from 0 to 3"),
        (lambda me: me.send(-1, 8), "peer = -1: accepted is a rank from 0 to 3"),
        (lambda me: me.isend(0, -8), "size = -8: accepted is a whole number of bytes from 0 to 2^40"),
        (lambda me: me.isend(0, 0.5), "size = 0.5: accepted is a whole number of bytes"),
        (lambda me: me.isend(0, 8, tag=ANY), "tag = -1: accepted is 0 to"),
        (lambda me: me.compute(-1), "compute(-1): accepted are 0 to 86400 seconds"),
        (lambda me: me.compute(float("nan")), "compute(nan): accepted are"),
        (lambda me: me.wait(7 << 32), "wait: this request is none of this rank's, or has been waited for already"),
        (lambda me: me.bcast(8, root=4), "root = 4: accepted is a rank from 0 to 3"),
        (lambda me: me.barrier(me.group([2, 3])), "barrier: this rank is not in the group"),
        (lambda me: me.bcast(8, 3, me.group([0, 1])), "root = 3: accepted is a rank of the group"),
        (lambda me: me.group([]), "group = []: accepted are different ranks from 0 to 3"),
        (lambda me: me.group([1, 1]), "group = [1, 1]: accepted are different ranks"),
        (lambda me: me.nothing(), "AttributeError: 'Rank' object has no attribute 'nothing'"),
    ],
)
def test_a_wrong_call_is_refused_by_line_and_rank(act: Callable[[Rank], None], sentence: str) -> None:
    with pytest.raises(UserError) as refused:
        record(act, ranks=4)
    line = act.__code__.co_firstlineno
    assert str(refused.value).startswith(f"{__file__}, line {line}, rank 0: {sentence}")


def test_a_request_is_waited_for_once() -> None:
    def program(me: Rank) -> None:
        request = me.isend(0, 8)
        me.wait(request)
        me.isend(0, 8)  # has the same slot
        me.wait(request)

    with pytest.raises(UserError, match="has been waited for already"):
        record(program, ranks=1)


def test_a_file_without_a_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file"):
        program_of(tmp_path / "none.py")
    for text, sentence in (("x = 1", "no function program"), ("1 / 0", "cannot be run: ZeroDivisionError"),
                           ("import sys\nsys.exit(3)", "cannot be run: SystemExit: 3")):  # fmt: skip
        file = tmp_path / "skeleton.py"
        file.write_text(text)
        with pytest.raises(UserError, match=sentence):
            program_of(file)


def test_a_digest_is_of_what_is_run_and_not_of_where_the_program_lies(tmp_path: Path) -> None:
    digests = {}
    for name, size in (("a", 8), ("b", 8), ("c", 9)):
        file = tmp_path / f"{name}.py"
        file.write_text(f"def program(me):\n    me.allreduce({size})\n")
        digests[name] = record(program_of(file), ranks=4).digest()
    assert digests["a"] == digests["b"] != digests["c"]
    assert record(program_of(tmp_path / "a.py"), ranks=5).digest() != digests["a"]


@pytest.mark.parametrize("head", ["", "// of 7\n", "/* num_ranks\n 8 */ ;\n\n"])
def test_a_goal_file_says_how_many_ranks_it_has(head: str, tmp_path: Path) -> None:
    file = tmp_path / "f.goal"
    file.write_text(f"{head}num_ranks 12\nrank 0 {{\n}}\n")
    assert goal.ranks_of(file) == 12


@pytest.mark.parametrize("text", ["", "rank 0 {\n}\n", "num_ranks x", "num_ranks 0", "num_ranks 99999999999999"])
def test_a_goal_file_that_does_not_say_so_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "f.goal").write_text(text)
    with pytest.raises(UserError, match=r"f\.goal: accepted is a GOAL file, which begins with num_ranks and a number"):
        goal.ranks_of(tmp_path / "f.goal")
    with pytest.raises(UserError, match=r"none\.goal cannot be read: No such file"):
        goal.ranks_of(tmp_path / "none.goal")


def test_what_is_written_is_what_the_engine_reads(tmp_path: Path) -> None:
    """The layout of core/motif/schedule/schedule.hpp."""

    def program(me: Rank) -> None:
        me.phase("one")
        me.barrier(me.group([0, 1]))

    record(program, ranks=2).write(tmp_path / "s")
    data = (tmp_path / "s").read_bytes()
    assert data[:8] == b"dfsched1"
    text = __file__.encode() + b"\0one\0"
    assert struct.unpack_from("<5I", data, 8) == (2, 1, 1, 1, len(text))
    assert data[28 : 28 + len(text)] == text
    # The group's size and members, each rank's list, the list's length and its requests.
    assert struct.unpack_from("<7I", data, 28 + len(text)) == (2, 0, 1, 0, 0, 2, 0)
    assert len(data) == 28 + len(text) + 7 * 4 + 2 * 24
    with pytest.raises(UserError, match="the schedule cannot be written"):
        record(program, ranks=2).write(tmp_path / "none" / "s")


# Replay.

Row = tuple[int, str, int, int, int, str, int]


def recorded(
    folder: Path,
    rows: list[Row],
    waits: list[tuple[int, int, int]],
    ends_ps: list[int],
    *,
    nodes: Sequence[int] | None = None,
    more: str = "",
) -> Path:
    """As `dryfly run --record` would have written it. `nodes`: of each rank, else one for each; `more`: of the spec."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    names = ("rank", "kind", "at_ps", "operation", "bytes", "tag", "peer")
    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    parquet.write_table(pyarrow.table(columns), folder / "operations.parquet")
    columns = {name: [wait[at] for wait in waits] for at, name in enumerate(("rank", "from_ps", "to_ps"))}
    parquet.write_table(pyarrow.table(columns), folder / "rank_waits.parquet")
    on = range(len(ends_ps)) if nodes is None else nodes
    places = "".join(f"run.rank.{rank}.node {node}\n" for rank, node in enumerate(on))
    result = {
        "machine": "testbed",
        "ranks": len(ends_ps),
        "seed": 1,
        "virtual_time_s": max(ends_ps) * 1e-12,
        "placement": {"policy": "packed"},
        "ranks_detail": [{"node": str(rank), "virtual_time_s": end * 1e-12} for rank, end in enumerate(ends_ps)],
        "spec": f"host.send_ps 385000\nhost.poll_ps 30000\n{places}run.on_node provider\n{more}",
    }
    (folder / "result.json").write_text(json.dumps(result))
    return folder


def short(schedule: Schedule, rank: int) -> list[tuple[str, int]]:
    """Verbs; of computing the time in ps, of others the size."""
    return [(call[0], call[5]) for call in calls(schedule, rank)]


def test_a_rank_computes_while_it_did_not_wait_and_waits_where_it_waited(tmp_path: Path) -> None:
    rows: list[Row] = [
        (0, "receive", 100, 7, 64, "5", 1),
        (0, "arrived", 900, 7, 64, "5", 1),
        (1, "send", 300, 9, 64, "5", 0),
        (1, "sent", 700, 9, 64, "0", 0),
    ]
    # Rank 0 waits from 150 to 800, works until 900, and on until 1000; rank 1 never waits.
    made = replay(recorded(tmp_path, rows, [(0, 150, 800)], [1000, 700]))
    assert short(made.schedule, 0) == [
        ("compute", 100), ("irecv", 0), ("compute", 50), ("wait", 0), ("compute", 100), ("compute", 100),
    ]  # fmt: skip
    assert short(made.schedule, 1) == [("compute", 300), ("isend", 64), ("compute", 400), ("wait", 0)]
    assert made.left_out == 0
    assert made.unexplained_s == 0
    assert made.warnings() == []


def test_a_receive_of_any_source_takes_the_message_that_it_got(tmp_path: Path) -> None:
    rows: list[Row] = [
        (0, "receive", 100, 1, 64, "ff", 0),  # what is posted says nothing of it
        (0, "arrived", 200, 1, 8, "6", 2),
        (2, "send", 50, 0, 8, "6", 0),
    ]
    made = replay(recorded(tmp_path, rows, [], [200, 200, 200]))
    assert [(call[0], call[3]) for call in calls(made.schedule, 0) if call[0] == "irecv"] == [("irecv", 2)]
    # A send that nobody waits for leaves its slot to others.
    assert made.schedule.lists[made.schedule.list_of[2]][1] == 1


def test_messages_of_which_one_side_is_missing_are_left_out_and_counted(tmp_path: Path) -> None:
    rows: list[Row] = [
        (0, "send", -50, 0, 8, "1", 1),  # under way when virtual time begins
        (0, "send", 10, 0, 8, "1", 1),
        (0, "send", 20, 0, 8, "1", 1),  # nobody receives it
        (1, "receive", -60, 1, 8, "1", 0),
        (1, "arrived", 30, 1, 8, "1", 0),
        (1, "receive", 35, 2, 8, "1", 0),
        (1, "arrived", 40, 2, 8, "1", 0),
    ]
    made = replay(recorded(tmp_path, rows, [], [50, 50]))
    assert verbs(made.schedule, 0).count("isend") == 1
    assert verbs(made.schedule, 1).count("irecv") == 1
    assert made.left_out == 2
    assert "2 messages are left out" in made.warnings()[0]


def test_a_buffer_for_several_messages_becomes_a_receive_for_each(tmp_path: Path) -> None:
    rows: list[Row] = [
        (0, "send", 10, 0, 8, "ffff", 1),
        (0, "send", 20, 0, 8, "ffff", 1),
        (1, "receive", -60, 1, 4096, "ffff", 0),
        (1, "arrived", 30, 1, 8, "ffff", 0),
        (1, "arrived", 40, 1, 8, "ffff", 0),
    ]
    made = replay(recorded(tmp_path, rows, [], [50, 50]))
    assert [verb for verb in verbs(made.schedule, 1) if verb != "compute"] == ["recv", "recv"]


def test_a_wait_that_nothing_recorded_has_ended_is_left_out_and_told(tmp_path: Path) -> None:
    rows: list[Row] = [
        (0, "send", 500, 0, 8, "1", 1),
        (1, "receive", 5, 3, 8, "1", 0),
        (1, "arrived", 900, 3, 8, "1", 0),
    ]
    made = replay(recorded(tmp_path, rows, [(0, 100, 400), (1, 10, 900)], [500, 900]))
    assert short(made.schedule, 0)[:3] == [("compute", 100), ("compute", 100), ("isend", 8)]
    assert made.unexplained_s == pytest.approx(300e-12)
    assert "for what is not recorded" in made.warnings()[0]


def test_what_calls_cost_is_in_the_recording() -> None:
    assert without_cpu("host.send_ps 5\nhost.poll_ps 6\nnic.x_ps 7\n") == "host.send_ps 0\nhost.poll_ps 6\nnic.x_ps 7\n"


_SENT: list[Row] = [(0, "send", 10, 0, 8, "1", 1), (1, "receive", 5, 1, 8, "1", 0), (1, "arrived", 30, 1, 8, "1", 0)]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[list[str], list[str]]]:
    """A stand-in of the engine; what it was given last: its words, and the lines of its spec."""
    folder = tmp_path / "native"
    folder.mkdir()
    text = f'#!/bin/sh\nprintf \'%s\\n\' "$@" > {folder}/words\ncp "$1" {folder}/spec\n'
    text += """echo '{"virtual_ps": 7, "messages": 1, "bytes": 8, "events": 3, "phases": {}, "figures": {}, '\n"""
    text += """echo '"fingerprint": "ab", "wall_s": 0.1}'\n"""
    (folder / "dryfly-motif").write_text(text)
    (folder / "dryfly-motif").chmod(0o755)
    monkeypatch.setenv("DRYFLY_NATIVE", str(folder))
    return lambda: ((folder / "words").read_text().splitlines()[1:], (folder / "spec").read_text().splitlines())


Engine = Callable[[], tuple[list[str], list[str]]]


def test_a_replay_is_where_the_recording_was(tmp_path: Path, engine: Engine) -> None:
    """By the recording's numbers of nodes, whatever the placement would be today."""
    made = replay(recorded(tmp_path, _SENT, [], [50, 50, 50, 50], nodes=[7, 7, 3, 3]))
    assert (made.where.nodes, made.where.ppn) == (2, 2)
    made.run()
    assert {"schedule", "nodes=2", "ppn=2", "on=7,3", "level=packet", "on_node=nic"} <= set(engine()[0])
    made.run(replace(made.where, place="spread"))
    assert "on=7,3" not in engine()[0]
    assert "on=0,8" in engine()[0]


@pytest.mark.parametrize("nodes", [[7, 7, 3], [7, 3, 7, 3], [7, 3, 3, 7]])
def test_a_recording_whose_nodes_have_ranks_here_and_there_is_refused(nodes: list[int], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="accepted is a run with as many ranks on each node, and those of a node in a"):
        replay(recorded(tmp_path, _SENT, [], [50] * len(nodes), nodes=nodes))


def test_a_recording_of_flows_is_replayed_as_flows(tmp_path: Path, engine: Engine) -> None:
    """And at the other level that has a network model of its own, by that one."""
    made = replay(recorded(tmp_path, _SENT, [], [50, 50], more="fabric.model flow\n"))
    assert made.where.level == "flow"
    for level, model in ((None, "flow"), ("packet", "packet"), ("links", "flow")):
        made.run(level=level)
        words, spec = engine()
        assert f"level={level or 'flow'}" in words
        assert [line for line in spec if line.startswith("fabric.model")] == [f"fabric.model {model}"]


@pytest.mark.parametrize(("level", "model"), [("flow", "flow"), ("packet", "packet"), ("links", "packet")])
def test_a_level_brings_the_model_of_the_network_that_it_needs(level: str, model: str) -> None:
    assert f"fabric.model {model}\n" in Where(machine="testbed", level=level).spec()


def test_a_job_is_on_the_nodes_that_are_for_jobs() -> None:
    """Perlmutter's 1,792 nodes with GPUs come first, and are another partition."""
    assert "on=1792,1793" in Where(machine="perlmutter-cpu", nodes=2).words()


def test_a_file_places_a_skeleton_if_it_gives_each_node_as_many_ranks(tmp_path: Path) -> None:
    file = tmp_path / "places"
    names = NodeNames(load("testbed"))
    file.write_text(f"{names.name(5)} 2\n{names.name(2)}\n{names.name(2)}\n")
    where = Where(machine="testbed", nodes=2, ppn=2, place=str(file))
    assert "on=5,2" in where.words()
    file.write_text(f"{names.name(5)}\n{names.name(2)} 2\n{names.name(5)}\n")
    with pytest.raises(UserError, match="accepted for skeletons is a file with 2 ranks in a row on each node"):
        where.words()
    with pytest.raises(UserError, match="-N 3 contradicts"):
        replace(where, nodes=3).words()


def test_a_folder_without_a_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no recording"):
        replay(tmp_path)
    with pytest.raises(UserError, match="the recording has no operations of ranks"):
        replay(recorded(tmp_path, [], [], [5]))
