"""Extrapolation without the simulator: grids, fits, loops, and made-up recordings."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.extrapolation.extrapolate import Asked, command, extrapolate
from dryfly.extrapolation.fits import OF_COLLECTIVE, fit, rounds
from dryfly.extrapolation.fold import Loop, fold
from dryfly.extrapolation.grid import Grid, Shape, balanced
from dryfly.extrapolation.recording import MisfitError, Recording, read
from dryfly.extrapolation.structure import Leaf, Repeat, structure_of
from dryfly.extrapolation.writing import write
from dryfly.skeleton import program_of, record

SIZES = (9, 16, 25)
_US = 10**6


@pytest.mark.parametrize(
    ("ranks", "dimensions", "sides"),
    [(64, 3, (4, 4, 4)), (12, 3, (3, 2, 2)), (32, 2, (8, 4)), (7, 2, (7, 1)), (1, 3, (1, 1, 1)), (24, 3, (4, 3, 2))],
)
def test_a_grid_is_as_even_as_mpi_dims_create_makes_it(ranks: int, dimensions: int, sides: tuple[int, ...]) -> None:
    assert balanced(ranks, dimensions) == sides


def test_a_neighbour_is_found_round_a_closed_side_and_not_beyond_an_open_one() -> None:
    grid = Grid(sides=(3, 4))
    assert grid.place(7) == (1, 3)
    assert grid.neighbour(7, (0, 1), (0, 1)) == 4  # the first of its row
    assert grid.neighbour(7, (0, 1), (0, 0)) is None
    assert grid.offset(7, 4) == ((0, 1), (0, 1))
    assert Shape(dimensions=2, ascending=True).of(8).sides == (2, 4)


def test_what_repeats_is_a_loop_once() -> None:
    assert fold("abbbabbbc") == (Loop(body=(0, Loop(body=(1,), count=3)), count=2), 8)
    assert fold("abc") == (0, 1, 2)
    assert fold("") == ()


@pytest.mark.parametrize(
    ("law", "text"),
    [
        (lambda p: 21.0 * p / p, "21"),
        (lambda p: 4096 * p ** (-2 / 3), "4096 * p ** (-2/3)"),
        (lambda p: 3.0 * p, "3 * p"),
        (lambda p: 2.0 + 5.0 * p**0.5, "2 + 5 * p ** (1/2)"),
    ],
)
def test_a_law_of_the_form_is_found_and_carried_on(law: Callable[[int], float], text: str) -> None:
    found = fit({ranks: law(ranks) for ranks in (8, 27, 64, 125)})
    assert found.error == 0.0
    assert found.text() == text
    assert found.at(4096) == pytest.approx(law(4096))


def test_the_error_of_a_fit_is_that_at_a_size_left_out() -> None:
    """Farthest off where 27 is left out: the others say 1.0."""
    found = fit({8: 1.0, 27: 1.1, 64: 1.0})
    assert found.term is None
    assert found.error == pytest.approx(0.1 / 1.1, rel=1e-6)


def test_work_in_a_collective_grows_with_its_rounds() -> None:
    assert [rounds(ranks) for ranks in (1, 2, 3, 8, 9, 1024)] == [0, 1, 2, 3, 4, 10]
    found = fit({8: 3e-6, 27: 5e-6, 64: 6e-6}, OF_COLLECTIVE)
    assert found.error == 0.0
    assert found.at(125) == pytest.approx(7e-6)


# Made-up recordings.


class _Made:
    """A recording in which a rank writes down its calls and what they ask of libfabric."""

    def __init__(self, folder: Path, ranks: int, **changed: object) -> None:
        self.folder = folder
        self.ranks = ranks
        self._changed = changed
        self._calls: list[tuple[int, str, float, float, float, int]] = []
        self._operations: list[tuple[int, str, int, int, int, str, int]] = []
        self._now = [0] * ranks
        self._numbers = [0] * ranks

    def call(self, rank: int, name: str, *operations: tuple[str, int, int, int], size: int = 0) -> None:
        """Each takes a microsecond. An operation: kind, number, bytes, peer."""
        entered = self._now[rank]
        for kind, number, its_size, peer in operations:
            self._now[rank] += _US
            self._operations.append((rank, kind, self._now[rank], number, its_size, "100001", peer))
        self._now[rank] += _US
        self._calls.append((rank, name, entered * 1e-12, self._now[rank] * 1e-12, 0.0, size))

    def exchange(self, rank: int, to: Sequence[int], size: int) -> None:
        """With all of these ranks."""
        first = self._numbers[rank]
        for place, peer in enumerate(to):
            self.call(rank, "MPI_Irecv", ("receive", first + 2 * place + 1, size, peer), size=size)
            self.call(rank, "MPI_Isend", ("send", first + 2 * place + 2, size, peer), size=size)
        done = [("arrived", first + 2 * place + 1, size, peer) for place, peer in enumerate(to)]
        self.call(rank, "MPI_Waitall", *done, *(("sent", first + 2 * place + 2, size, 0) for place in range(len(to))))
        self._numbers[rank] += 2 * len(to)

    def allreduce(self, rank: int, size: int) -> None:
        """Enough for the ranks to be seen together: a message to the next one."""
        right, left = (rank + 1) % self.ranks, (rank - 1) % self.ranks
        self._numbers[rank] += 1
        number = self._numbers[rank]
        posted = ("receive", number, size, left), ("send", 0, size, right)
        self.call(rank, "MPI_Allreduce", *posted, ("arrived", number, size, left), size=size)

    def write(self) -> str:
        parquet = pytest.importorskip("pyarrow.parquet")
        import pyarrow

        self.folder.mkdir()
        calls = ("rank", "call", "entered_s", "left_s", "waiting_s", "bytes")
        operations = ("rank", "kind", "at_ps", "operation", "bytes", "tag", "peer")
        for name, heads, rows in (
            ("calls", calls, self._calls),
            ("operations", operations, self._operations),
            ("rank_waits", ("rank", "from_ps", "to_ps"), []),
        ):
            columns = {head: [row[place] for row in rows] for place, head in enumerate(heads)}
            parquet.write_table(pyarrow.table(columns), self.folder / f"{name}.parquet")
        ends = [{"rank": one, "node": f"n{one}", "virtual_time_s": 1.0} for one in range(self.ranks)]
        content = {
            "machine": "testbed", "ranks": self.ranks, "program": ["/x/made"], "virtual_time_s": 1.0,
            "mpi": {"name": "mpich-5.0.2"}, "compute": {"mode": "none"}, "ranks_detail": ends,
            "spec": "run.on_node provider\nhost.send_ps 100000\nhost.receive_ps 100000\nhost.completion_ps 100000\n",
        } | self._changed  # fmt: skip
        (self.folder / "result.json").write_text(json.dumps(content), encoding="utf-8")
        return str(self.folder)


def _neighbours(rank: int, ranks: int, *, closed: bool) -> list[int]:
    grid = Shape(dimensions=2).of(ranks)
    ends = (1, 1) if closed else (0, 0)
    found = [grid.neighbour(rank, step, ends) for step in ((-1, 0), (1, 0), (0, -1), (0, 1))]
    return [one for one in found if one is not None]


def _halo(folder: Path, ranks: int, *, closed: bool = False, steps: int = 4, **changed: object) -> str:
    """Strong scaling: 1440 bytes divided by the side of a square grid."""
    made = _Made(folder / f"r{ranks}", ranks, **changed)
    for rank in range(ranks):
        for _ in range(steps):
            made.exchange(rank, _neighbours(rank, ranks, closed=closed), 1440 // round(ranks**0.5))
            made.allreduce(rank, 8)
    return made.write()


def _all(folder: Path, sizes: Sequence[int] = SIZES, **changed: object) -> list[Recording]:
    return [read(_halo(folder, ranks, **changed)) for ranks in sizes]


@pytest.mark.parametrize("closed", [False, True])
def test_an_exchange_in_a_grid_becomes_one_loop_of_steps(closed: bool, tmp_path: Path) -> None:
    recordings = _all(tmp_path, closed=closed)
    (loop,) = structure_of(recordings).nodes
    assert isinstance(loop, Repeat)
    assert {ranks: set(counts) for ranks, counts in loop.counts.items()} == {ranks: {4} for ranks in SIZES}
    sends = [one for one in loop.body if isinstance(one, Leaf) and one.kind == "send"]
    assert {one.step.offset for one in sends if one.step} == {(-1, 0), (1, 0), (0, -1), (0, 1)}
    assert all(one.step is not None and one.step.closed == tuple(map(abs, one.step.offset)) for one in sends) == closed


def test_what_is_written_sends_what_the_program_would_at_a_size_that_was_not_recorded(tmp_path: Path) -> None:
    """7 x 7 ranks, open: 2 * 2 * 7 * 6 messages a step, of 1440 / 7 bytes, and a collective."""
    recordings = _all(tmp_path)
    written = write(structure_of(recordings), recordings)
    file = tmp_path / "made.py"
    file.write_text(written.text)
    schedule = record(program_of(file), ranks=49)
    words = b"".join(schedule.lists[number][0] for number in schedule.list_of)
    numbers = [int.from_bytes(words[at : at + 8], "little") for at in range(0, len(words), 8)]
    verbs = [(numbers[at] & 255, numbers[at + 2]) for at in range(0, len(numbers), 3)]
    sent = [size for verb, size in verbs if verb == 1]
    assert len(sent) == 4 * 2 * 2 * 7 * 6
    assert set(sent) == {round(1440 / 7)}
    assert sum(verb == 14 for verb, _ in verbs) == 4 * 49  # allreduce
    assert [one.fit.text() for phase in written.phases for one in phase.fits if one.what == "counts"] == ["4"]


def test_a_count_that_grows_with_the_ranks_is_carried_on(tmp_path: Path) -> None:
    recordings = [read(_halo(tmp_path, ranks, steps=ranks)) for ranks in SIZES]
    written = write(structure_of(recordings), recordings)
    assert "for _ in range(whole(1 * p)):" in written.text


def test_work_is_the_time_that_was_not_waited_without_what_calls_cost(tmp_path: Path) -> None:
    """A send comes 2 us behind the receive, the rest of that call and its own, of which 0.1 is the machine's."""
    recording = read(_halo(tmp_path, 9))
    sends = [one for sequence in recording.sequences for one in sequence if one.kind == "send"]
    assert {(one.before_ps, one.after_ps, one.waits) for one in sends} == {(1_900_000, 0, 0)}


def test_the_same_recordings_give_the_same_skeleton(tmp_path: Path) -> None:
    recordings = _all(tmp_path)
    assert write(structure_of(recordings), recordings).text == write(structure_of(recordings), recordings).text


def test_a_program_that_does_something_else_at_a_size_is_refused_by_call_and_rank(tmp_path: Path) -> None:
    folders = [_halo(tmp_path, ranks) for ranks in SIZES[1:]]
    made = _Made(tmp_path / "other", 9)
    for rank in range(9):
        made.exchange(rank, _neighbours(rank, 9, closed=False), 480)
        made.call(rank, "MPI_Barrier", ("send", 0, 0, (rank + 1) % 9), ("arrived", 0, 0, (rank - 1) % 9))
    with pytest.raises(
        MisfitError, match=r"other, rank 0 of 9, before the first collective: MPI_Barrier where .* have"
    ) as it:
        structure_of([read(made.write()), *map(read, folders)])
    assert "MPI_Allreduce" in str(it.value)
    assert it.value.exit_status == 1


def test_grids_in_which_both_neighbours_are_one_rank_are_named(tmp_path: Path) -> None:
    """In closed grids of 2 x 2, 3 x 2 and 4 x 2 nothing tells which way round the short side a message goes."""
    with pytest.raises(MisfitError, match=r"or a grid of .*2.* is too narrow to tell neighbours apart"):
        structure_of(_all(tmp_path, (4, 6, 8), closed=True))


def test_a_call_that_no_skeleton_has_is_refused_by_name(tmp_path: Path) -> None:
    made = _Made(tmp_path / "made", 2)
    made.call(0, "MPI_Put", ("write", 1, 8, 1), size=8)
    with pytest.raises(MisfitError, match=r"rank 0: MPI_Put is one-sided"):
        read(made.write())
    made = _Made(tmp_path / "later", 2)
    made.call(1, "MPI_Ibarrier", ("send", 0, 0, 0))
    with pytest.raises(MisfitError, match=r"rank 1: MPI_Ibarrier sends messages"):
        read(made.write())


def test_recordings_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    nine, sixteen, other = (_halo(tmp_path / name, ranks) for name, ranks in _places(tmp_path, "abc", (9, 16, 16)))
    (strange,) = (
        _halo(tmp_path / name, ranks, program=["/x/strange"]) for name, ranks in _places(tmp_path, "d", (25,))
    )
    (frontier,) = (_halo(tmp_path / name, ranks, machine="frontier") for name, ranks in _places(tmp_path, "e", (25,)))
    for folders, sentence in (
        ((nine, sixteen), "recordings = 2: accepted are three and more"),
        ((nine, sixteen, other), "both have 16 ranks; accepted are different sizes"),
        ((nine, sixteen, strange), "different programs, made and strange"),
        ((nine, sixteen, frontier), "different machines, testbed and frontier"),
        ((nine, sixteen, _Made(tmp_path / "one", 1).write()), "one: it has 1 rank, which sends nothing"),
        ((nine, sixteen, str(tmp_path)), "there is no recording; accepted is a folder that dryfly run --record"),
    ):
        with pytest.raises(UserError, match=sentence):
            extrapolate(Asked(folders=folders, ranks=64))


@pytest.mark.parametrize("table", ["operations", "calls", "rank_waits"])
def test_a_damaged_recording_is_refused_by_its_name(table: str, tmp_path: Path) -> None:
    folders = tuple(_halo(tmp_path, ranks) for ranks in SIZES)
    file = Path(folders[1]) / f"{table}.parquet"
    file.write_bytes(file.read_bytes()[:99])
    damaged = rf"^{folders[1]}: the recording is damaged \(.*\); record the run again$"
    with pytest.raises(UserError, match=damaged):
        extrapolate(Asked(folders=folders, ranks=64))
    file.unlink()
    with pytest.raises(UserError, match="there is no recording" if table == "operations" else damaged):
        extrapolate(Asked(folders=folders, ranks=64))


def _places(folder: Path, names: str, sizes: Sequence[int]) -> list[tuple[str, int]]:
    for name in names:
        (folder / name).mkdir()
    return list(zip(names, sizes, strict=True))


def test_a_size_that_the_machine_has_no_place_for_is_refused(tmp_path: Path) -> None:
    folders = tuple(_halo(tmp_path, ranks) for ranks in SIZES)
    for asked, sentence in (
        (Asked(folders=folders, ranks=0), "--ranks 0: accepted is 1 to"),
        (Asked(folders=folders, ranks=33), "--ranks 33: accepted is at most 32, 1 on each of the 32 nodes of testbed"),
        (Asked(folders=folders, ranks=9, nodes=2, ppn=4), "--ranks 9: accepted is at most 8, 4 on each of 2 nodes"),
        (Asked(folders=folders, ranks=9, level="fast"), "--level fast: accepted is one of latency, links"),
    ):
        with pytest.raises(UserError, match=sentence):
            extrapolate(asked)


def test_what_is_swept_is_refused_before_anything_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the names that the user gave, with nothing printed."""
    monkeypatch.setenv("DRYFLY_NATIVE", str(tmp_path))
    (tmp_path / "dryfly-motif").write_text("no engine, only what a key is made of", encoding="utf-8")
    folders = tuple(_halo(tmp_path, ranks) for ranks in SIZES)
    for ranks, swept, sentence in (
        (16, "ranks=16,0", f"--sweep the skeleton of {', '.join(folders)}: ranks=0: out of range; accepted is"),
        (16, "level=links,fast", "--sweep level=fast: accepted is latency, links, packet, flow"),
        (16, "ranks=16,33", "--sweep ranks=33: testbed has 32 nodes; 33 are asked for"),
        (None, "ranks=many,9", "--sweep ranks=many: "),
        (None, "level=links,packet", "how many ranks is missing: give -n R, or --sweep ranks=R1,R2,..."),
    ):
        with pytest.raises(UserError) as refused:
            command({"folders": folders, "ranks": ranks}, out=None, json_file=None, quiet=False, sweeps=(swept,))
        assert str(refused.value).startswith(sentence)
    assert capsys.readouterr().out == ""


def test_the_command_ends_with_2_for_input_that_it_cannot_use(
    dryfly: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = dryfly("extrapolate", "a", "b", "-n", "8")
    assert done.returncode == 2
    assert done.stderr == "dryfly: recordings = 2: accepted are three and more, of as many sizes\n"
