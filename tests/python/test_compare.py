"""`dryfly compare`: what is read from tables and files, who wins, where curves jump, and that results are kept."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dryfly.apps import benchmarks
from dryfly.base.errors import UserError
from dryfly.base.store import Store
from dryfly.case.bind import library_of
from dryfly.case.case import Case
from dryfly.mpi import libraries as mpi
from dryfly.mpi.libraries import MpiLibrary
from dryfly.study import changes, variant
from dryfly.study.changes import Change
from dryfly.study.comparison import Line, Section
from dryfly.study.plan import Flags, make
from dryfly.study.trial import Trial, run_all
from dryfly.study.variant import Variant, base_case
from dryfly.study.verdict import verdict

Cli = Callable[..., subprocess.CompletedProcess[str]]


def test_tables_of_osu_are_read() -> None:
    assert benchmarks.read("# OSU\n# Size   Avg Latency(us)\n1        2.34\n1048576      50.1\n") == {
        1: 2.34,
        1048576: 50.1,
    }
    many = "# [ pairs: 3 ]\n# Size   MB/s   Messages/s   Validation\n8    45.35     5669108.10    Pass\n"
    assert benchmarks.read(many) == {8: 45.35}
    assert benchmarks.read("# Avg Latency(us)   Min   Max  Iterations\n        7.91    7.50   8.28    5\n") == {0: 7.91}
    assert benchmarks.read("something went wrong\n") == {}


def test_options_of_a_benchmark_win_over_the_common_ones() -> None:
    common = ("-m", "1:64", "-i", "3", "-W", "8")
    assert benchmarks.parse("alltoall -m 8", common=common).options == ("-i", "3", "-m", "8")
    assert benchmarks.parse("bw", common=common).options == common
    assert benchmarks.parse("barrier", common=common).options == ("-i", "3")


def test_options_without_a_value_and_the_long_names_of_osu_are_taken() -> None:
    assert benchmarks.parse("alltoall -f -c -m 8").options == ("-f", "-c", "-m", "8")
    assert benchmarks.parse("latency", common=("-c", "-f", "-i", "3")).options == ("-c", "-i", "3")
    assert benchmarks.parse("bw --message-size=1:8 -i3 --warmup 0").options == ("-m", "1:8", "-i", "3", "-x", "0")
    for text in ("latency -m", "latency -x -1", "latency -f", "latency -cc", "bw --nothing 3", "bw -c=1"):
        with pytest.raises(UserError, match=r"accepted is|no option"):
            benchmarks.parse(text)


def test_a_mere_name_stands_for_the_plans_with_its_options(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text('nodes = 2\nbenchmarks = ["alltoall -m 1:8", "alltoall -m 1:64", "bcast"]\n', encoding="utf-8")

    def chosen(*names: str) -> list[tuple[str, ...]]:
        made = make(Flags(file=str(file), settings=("mpich",), benchmarks=names))
        return [(each.name, *each.options) for each in made.benchmarks]

    assert chosen("alltoall") == [("alltoall", "-m", "1:8"), ("alltoall", "-m", "1:64")]
    assert chosen("alltoall -m 1:2", "bw") == [("alltoall", "-m", "1:2"), ("bw",)]


def test_options_of_one_sided_benchmarks_and_of_threads_are_taken() -> None:
    put = benchmarks.parse("put_bw --fence-interval 8 -w create --sync-option=fence -W 16")
    assert put.options == ("--fence-interval", "8", "-w", "create", "-s", "fence", "-W", "16")
    assert benchmarks.parse("latency_mt -t 2:4").options == ("-t", "2:4")
    assert benchmarks.parse("igather", common=("-f", "-m", "8")).options == ("-m", "8")
    assert benchmarks.parse("alltoall --accelerator=rocm").options == ("-d", "rocm")
    for text, says in (
        ("put_bw -s often", "accepted is flush, flush_local, lock, lock_all, pscw, fence"),
        ("latency_mt -t 2:3", "accepted is R or S:R"),
        ("put_latency --fence-interval 0", "accepted is a whole number from 1"),
        ("bw -w create", 'there is no option "-w"'),
        ("bw -d gpu", "accepted is cuda, rocm, managed, sycl"),
        ("igather -d cuda", 'there is no option "-d"'),
    ):
        with pytest.raises(UserError, match=says):
            benchmarks.parse(text)


def test_behind_the_options_of_pairs_with_gpus_it_is_said_where_the_buffers_are() -> None:
    assert benchmarks.parse("bw -d rocm -m 8 H D").options == ("-d", "rocm", "-m", "8", "H", "D")
    assert benchmarks.parse("latency -d cuda D H", common=("-i", "3")).options == ("-i", "3", "-d", "cuda", "D", "H")
    for text, says in (
        ("bw H D", 'there is no option "H"'),
        ("alltoall -d cuda H D", 'there is no option "H"'),
        ("bw -d cuda H", "H: accepted behind the options are two of H, D and M"),
        ("bw -d cuda H X", "H X: accepted behind the options are two of H, D and M"),
        ("bw -d cuda D H D", "D H D: accepted behind the options are two of H, D and M"),
        ("bw -d cuda D H -m 8", "D H: accepted behind the options are two of H, D and M"),
    ):
        with pytest.raises(UserError, match=says):
            benchmarks.parse(text)


def test_with_f_the_fastest_and_the_slowest_rank_are_read() -> None:
    row = "1024        7.91        7.50        8.28         5          Pass\n"
    assert benchmarks.read_ranges(f"# Size\n{row}") == {1024: (7.5, 8.28)}
    assert benchmarks.read_ranges("8   45.35    Pass\n") == {}


# Jumps.


def test_a_smooth_curve_has_no_jump() -> None:
    for start, rate in ((2.0, 0.00004), (2.0, 0.01), (0.1, 1.0), (300.0, 0.04)):
        assert changes.from_curve({2**k: start + rate * 2**k for k in range(21)}) == []


def test_a_step_in_a_curve_is_found_at_its_sizes() -> None:
    curve = {2**k: 2.0 + 0.00004 * 2**k + (1.0 if 2**k >= 32768 else 0.0) for k in range(21)}
    found = changes.from_curve(curve)
    assert [(change.after, change.at, change.seen_in) for change in found] == [(16384, 32768, "curve")]
    down = {1: 2.0, 2: 2.0, 4: 2.0, 8: 1.5, 16: 1.5}
    assert [(change.after, change.at) for change in changes.from_curve(down)] == [(4, 8)]


def test_a_bandwidth_jumps_where_its_time_does() -> None:
    times = {2**k: 2.0 + 0.00004 * 2**k + (1.0 if 2**k >= 32768 else 0.0) for k in range(21)}
    rates = {size: size / time for size, time in times.items()}
    assert [change.at for change in changes.from_curve(changes.as_times(rates, rate=True))] == [32768]


def _counts(messages: int, **protocols: int) -> dict[str, Any]:
    return {"messages": messages, "bytes": 0, "protocols": protocols}


def test_counts_tell_protocol_from_algorithm() -> None:
    found = changes.from_counts(
        {
            64: _counts(100, inline=100),
            128: _counts(100, inline=100),
            256: _counts(100, eager=95, inline=5),  # five of a hundred do not name it
            512: _counts(900, eager=900),
            1024: _counts(450, eager=200, rendezvous=250),
        }
    )
    assert [(change.after, change.at, change.what, change.text) for change in found] == [
        (128, 256, "protocol", "inline -> eager"),
        (256, 512, "algorithm", "100 -> 900 messages"),
        (512, 1024, "protocol", "eager -> eager + rendezvous"),
        (512, 1024, "algorithm", "900 -> 450 messages"),
    ]


def test_messages_are_counted_for_the_size_whose_calls_they_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two ranks, two sizes, one warm-up each: after the second and the fourth barrier comes the timed Alltoall."""
    calls: dict[str, list[Any]] = {name: [] for name in ("rank", "call", "entered_s", "left_s")}
    for rank in (0, 1):
        at = 0.0
        for name in (
            "Barrier",
            "Alltoall",
            "Barrier",
            "Alltoall",
            "Reduce",
            "Barrier",
            "Alltoall",
            "Barrier",
            "Alltoall",
        ):
            for key, value in zip(calls, (rank, f"MPI_{name}", at, at + 1.0), strict=True):
                calls[key].append(value)
            at += 2.0
    times = [1.5, 2.5, 6.5, 6.6, 8.5, 16.5, 16.5, 16.5]  # 2.5 is a warm-up, 8.5 in the Reduce
    messages = {
        "called_s": times, "source": [0, 0, 0, 1, 0, 0, 0, 1], "bytes": [1, 1, 8, 8, 5, 16, 16, 16],
        "protocol": ["inline"] * 5 + ["eager"] * 3,
    }  # fmt: skip
    from dryfly.result import tables

    monkeypatch.setattr(tables, "read", lambda _, name: calls if name == "calls" else messages)
    counted = changes.count(tmp_path, calls=frozenset({"MPI_Alltoall"}), sizes=[8, 16], barriers=2, last=True)
    assert counted == {
        8: {"messages": 2, "bytes": 16, "protocols": {"inline": 2}},
        16: {"messages": 3, "bytes": 48, "protocols": {"eager": 3}},
    }


# Winners.


def test_the_best_is_the_lowest_time_and_the_highest_rate() -> None:
    figures = {"a": 2.0, "b": 3.0, "c": 2.01}
    assert verdict(figures, more_is_better=False).best == ("a", "c")  # within 1 %
    assert verdict(figures, more_is_better=False).ahead == pytest.approx(1.5)
    assert verdict(figures, more_is_better=True).best == ("b",)
    assert verdict(figures, more_is_better=True).ahead == pytest.approx(3.0 / 2.01)


# Settings and plans.


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "lib").touch()
    found = [
        MpiLibrary(
            name=f"{family}-{version}", family=family, version=version, prefix=str(tmp_path),
            libmpi=str(tmp_path / "lib"), libfabric=str(tmp_path / "lib"),
        )
        for family, version in (("mpich", "5.0.2"), ("openmpi", "5.0.11"), ("openmpi", "5.0.8"))
    ]  # fmt: skip
    monkeypatch.setattr(mpi, "installed", lambda: found)


@pytest.mark.usefixtures("libraries")
def test_a_setting_may_have_commas_in_its_values_and_fields_of_the_machine() -> None:
    base = base_case({"sets": ("fabric.link.rate=100 Gb/s",)})
    made = variant.parse("HAN off: openmpi,OMPI_MCA_coll=^sm,han,fabric.routing.algorithm=minimal,A=1", base)
    assert made.label == "HAN off"
    assert made.case.mpi == "openmpi-5.0.11"
    assert dict(made.case.environment) == {"OMPI_MCA_coll": "^sm,han", "A": "1"}
    assert made.case.sets == ("fabric.link.rate=100 Gb/s", "fabric.routing.algorithm=minimal")
    assert made.own_sets(base) == ["fabric.routing.algorithm=minimal"]
    assert variant.parse("openmpi==5.0.8", base).case.mpi == "openmpi-5.0.8"


@pytest.mark.usefixtures("libraries")
def test_a_setting_may_have_flags_of_dryfly_run(tmp_path: Path) -> None:
    base = base_case({})
    made = variant.parse("openmpi==5.0.11,--on-node=shared,A=1,--provider=linkx", base)
    assert made.own_flags(base) == {"--on-node": "shared", "--provider": "linkx"}
    assert made.shown(base) == "A=1, --on-node=shared, --provider=linkx"
    line = Trial(case=made.case).line(tmp_path / "json", None)
    assert line[line.index("--on-node") :][:4] == ["--on-node", "shared", "--provider", "linkx"]
    for text in ("mpich,--on-node=both", "mpich,--seed=2"):
        with pytest.raises(UserError, match=r"accepted is auto or provider or shared|--on-node and --provider"):
            variant.parse(text, base)
    with pytest.raises(UserError, match="does not use it"):
        library_of(variant.parse("mpich,--provider=linkx", base).case)


def test_those_that_change_alike_share_a_line_and_so_do_all_but_one_of_the_best() -> None:
    jump = Change(after=8, at=16, what="jump", text="time x 2.00", seen_in="curve")

    def line(label: str, last: float, *found: Change) -> Line:
        table = {8: 1.0, 16: last}
        return Line(variant=Variant(label=label, case=base_case({})), table=table, result={}, changes=found, ranges={})

    lines = (line("a", 2.0, jump), line("b", 2.0, jump), line("c", 3.0))
    section = Section(benchmark=benchmarks.parse("bcast"), ranks=4, nodes=2, lines=lines)
    assert section.changes == ["a, b, 8 -> 16: jump: time x 2.00 (seen in curve)"]
    assert (section.best_text(8), section.best_text(16)) == ("equal", "all but c")


@pytest.mark.usefixtures("libraries")
def test_flags_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(
        'machine = "aurora"\nnodes = 8\nppn = 4\nskip-numerics = true\noptions = "-i 2"\n'
        'benchmarks = ["latency", "bcast -m 1:64"]\n'
        '[[with]]\nlabel = "one"\nmpi = "mpich==5.0.2"\n'
        '[[with]]\nlabel = "two"\nmpi = "openmpi"\nenvironment = { OMPI_MCA_coll = "^sm" }\n'
    )
    plan = make(Flags(file=str(file), given={"nodes": 4}, options=("-i", "7")))
    assert (plan.base.machine, plan.base.nodes, plan.base.ppn, plan.base.skip_numerics) == ("aurora", 4, 4, True)
    assert [each.label for each in plan.variants] == ["one", "two"]
    latency, bcast = plan.benchmarks
    assert bcast.options == ("-i", "2", "-i", "7", "-m", "1:64")  # the last one counts
    pair, many = (plan.case_of(benchmark, plan.variants[1]) for benchmark in (latency, bcast))
    assert (pair.nodes, pair.ppn, pair.machine, pair.mpi) == (2, 1, "aurora", "openmpi-5.0.11")
    assert (many.nodes, many.ppn, many.environment) == (4, 4, (("OMPI_MCA_coll", "^sm"),))
    assert many.program == bcast.command()


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("nodes = 2.5", "a whole number is needed"),
        ("node = 2", 'unknown key "node"'),
        ("benchmarks = [1]", "each item is a text"),
        ('benchmarks = ["latency"]\nwith = ["mpich"]', "a table is needed"),
        ('benchmarks = ["latency"]\n[[with]]\nlabel = "x"', 'the key "mpi" is missing'),
        ('benchmarks = ["latency"]\n[[with]]\nmpi = "mpich"\nenvironment = { A = 1 }', "a text is needed"),
        ('benchmarks = ["latency"]\n[[with]]\nmpi = "mpich==4.0"', "dryfly mpi add mpich==4.0"),
        ('benchmarks = ["speed"]\n[[with]]\nmpi = "mpich"', 'benchmark "speed": accepted are'),
        ('benchmarks = ["latency"]\n[[with]]\nmpi = "mpich"\n[[with]]\nmpi = "mpich"', "there twice"),
        ('benchmarks = ["latency -q"]\n[[with]]\nmpi = "mpich"', 'no option "-q"'),
        ('benchmarks = ["latency -W 3"]\n[[with]]\nmpi = "mpich"', 'no option "-W"'),
        ('benchmarks = ["bw -m 64:1"]\n[[with]]\nmpi = "mpich"', "MAX or MIN:MAX"),
        ('benchmarks = ["bw -m 4G"]\n[[with]]\nmpi = "mpich"', "from 1 to 2\\^30"),
        ('benchmarks = ["bw -i 0"]\n[[with]]\nmpi = "mpich"', "a whole number"),
        ('options = "-c -q 3"', 'there is no option "-q"'),
        ("= 3", "no TOML"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_used_is_one_sentence(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(content)
    with pytest.raises(UserError, match=says):
        make(Flags(file=str(file)))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["compare", "latency"], "say --with LIBRARY"),
        (["compare", "--with", "mpich==5.0.2", "latency"], 'run "dryfly mpi add mpich==5.0.2" first'),
        (["compare", "--with", "mpich", "-o", "/no/such/folder/x", "latency"], 'unknown MPI library "mpich"'),
        (["compare", "--plan", "none.toml"], "none.toml cannot be read"),
        (["compare", "--timeout", "soon"], "--timeout soon"),
        (["bisect", "--over", "mpich==x..y", "--", "latency"], "--figure SIZE"),
        (["bisect", "--over", "A=1,2", "--threshold", "much", "--", "latency", "-m", "8:8"], "--threshold much"),
        (["bisect", "--over", "A=1,2", "--json", "/no/such/x", "--", "latency", "-m", "8:8"], "--json /no/such/x"),
        (["bisect", "--over", "A=1,2", "-N", "99", "--", "latency", "-m", "8:8"], "has 32 nodes"),
    ],
)
def test_bad_input_on_the_command_line(dryfly: Cli, arguments: list[str], says: str) -> None:
    result = dryfly(*arguments)
    assert result.returncode == 2, result.stderr
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


# What is kept.


def _trials(monkeypatch: pytest.MonkeyPatch, folder: Path, status: int = 0) -> list[Trial]:
    """Runs of a shell instead of `dryfly run`: each notes that it ran, and prints a row."""

    def line(self: Trial, json_file: Path, _: Path | None) -> list[str]:
        content = (
            '{"virtual_time_s":1,"messages":1,"bytes":1,"protocols":[],"fingerprint":"","repeatable":true,"health":[],'
            '"software":{}}'
        )
        script = (
            f"echo {self.case.program[0]} >> {folder}/ran; echo '{content}' > {json_file}; echo '8 2.5'; exit {status}"
        )
        return ["sh", "-c", script]

    monkeypatch.setattr(Trial, "line", line)
    monkeypatch.setattr(Trial, "key", lambda self: self.case.program[0])
    return [Trial(case=Case(program=(name,))) for name in ("a", "b", "c")]


def _ran(folder: Path) -> list[str]:
    file = folder / "ran"
    return sorted(file.read_text().split()) if file.exists() else []


def test_what_has_been_run_is_not_run_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trials, store = _trials(monkeypatch, tmp_path), Store(tmp_path / "runs")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(trials, store, jobs=1, done=interrupt)
    assert _ran(tmp_path) == ["a"]
    heard: list[bool] = []
    results = run_all(trials, store, jobs=2, done=lambda _, __, kept: heard.append(kept))
    assert _ran(tmp_path) == ["a", "b", "c"]
    assert heard == [True, False, False]
    assert all(benchmarks.read(result["output"]) == {8: 2.5} for result in results.values())


def test_a_run_that_failed_is_run_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    trials, store = _trials(monkeypatch, tmp_path, status=3)[:1], Store(tmp_path / "runs")
    for _ in range(2):
        results = run_all(trials, store, jobs=1, done=lambda *_: None)
        assert results[trials[0]]["failure"] == "dryfly run ended with status 3"
    assert _ran(tmp_path) == ["a", "a"]
