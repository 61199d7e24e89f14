"""`dryfly predict --sweep`: what is asked, what is kept, what an interrupt leaves, and the page made of it."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from dryfly.base.errors import UserError
from dryfly.base.paths import MOTIF, native
from dryfly.predict import pool, sweep
from dryfly.predict.sweep import axis, cases
from dryfly.report import sweep_report

Run = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).resolve().parents[2]
_HPL = ("predict", "hpl", "--model", "closed")
_BASE: dict[str, Any] = {"workload": "hpl", "model": "closed", "nodes": 64}

# An engine that says in a folder that it was asked, and takes as long as it is told.
_STAND_IN = """#!{python}
import json, os, pathlib, sys, time
words = dict(word.split("=", 1) for word in sys.argv[3:])
spec = dict(line.split(" ", 1) for line in open(sys.argv[1]).read().splitlines())
asked = pathlib.Path({asked!r})
(asked / f"{{words['bytes']}}-{{words['nodes']}}-{{spec['run.seed']}}-{{os.getpid()}}").touch()
if words["bytes"] == "666":
    os.kill(os.getppid(), 9)  # as when memory runs out
if words["bytes"] == "667":
    print("dryfly-motif: nothing goes", file=sys.stderr)
    sys.exit(1)
time.sleep(int(words["bytes"]) - 1000 if int(words["bytes"]) > 1000 else 0)
print(json.dumps({{"virtual_ps": 10**6 * int(words["nodes"]) * (1 + int(spec["run.seed"])), "messages": 5, "bytes": 7,
    "events": 9, "phases": {{"all": 10**6}}, "figures": {{"bytes_per_s": 1e9 * int(words["nodes"])}}}}))
"""


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """The folder in which the stand-in tells of itself; `native` beside it has the stand-in."""
    told, folder = tmp_path / "asked", tmp_path / "native"
    told.mkdir()
    folder.mkdir()
    engine = folder / "dryfly-motif"
    engine.write_text(_STAND_IN.format(python=sys.executable, asked=str(told)), encoding="utf-8")
    engine.chmod(engine.stat().st_mode | stat.S_IXUSR)
    return told


def _rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parquet.read_table(folder / sweep.TABLE).to_pylist()
    return found


def test_every_combination_is_asked_once() -> None:
    axes = [axis("nb=192,384", "hpl"), axis("nodes=32,64", "hpl"), axis("compute.gpu.fp64=20 TF/s,21 TF/s", "hpl")]
    made = cases(_BASE, axes)
    assert [case.values for case in made] == [
        (nb, nodes, rate) for nb in ("192", "384") for nodes in ("32", "64") for rate in ("20 TF/s", "21 TF/s")
    ]
    assert len({case.key for case in made}) == 8
    last = made[-1].question
    assert (last.nodes, last.parameter("nb"), last.sets) == (64, "384", ("compute.gpu.fp64=21 TF/s",))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nbb=1,2", "--sweep nbb: that is neither a parameter of hpl (n, nb, "),
        ("nbb=1,2", "did you mean nb?"),
        ("fabric.link.rat=1,2", "did you mean fabric.link.rate?"),
        ("nb", '--sweep "nb": accepted is NAME=VALUE,VALUE,...'),
        ("nb=1,,2", '--sweep "nb=1,,2": accepted is NAME=VALUE,VALUE,...'),
        ("nb=1,1", '--sweep "nb=1,1": a value is there twice'),
        ("nb=1,x", "--sweep nb=x: a count is a whole number"),
        ("nodes=8,20000", "--sweep nodes=20000: aurora has 10624 nodes; 20000 are asked for"),
        ("nodes=8,many", "--sweep nodes=many: accepted is a whole number"),
        ("fabric.link.rate=200 Gb/s,3", '--sweep fabric.link.rate=3: machine aurora: fabric.link.rate = "3": a rate'),
        ("fabric.qos.llbe.bulk=1 %", "--sweep fabric.qos.llbe.bulk=1 %: --set fabric.qos.llbe.bulk: there is no such"),
        ("grid=8x48,7x7", "--sweep grid=7x7 has 49 processes"),
        ("level=links,packet", "--sweep level=links: --level has no effect on --model closed"),
    ],
)
def test_a_mistake_in_any_case_is_told_before_the_first(text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        cases(_BASE, [axis(text, "hpl")])


@pytest.mark.parametrize(
    ("names", "values", "error", "sentence"),
    [
        (["a", "b"], ["1", "2"], "b=2: no", "--sweep a=1: b=2: no"),
        (["seed"], ["-1"], "--seed -1: accepted is 0", "--sweep seed=-1: accepted is 0"),
        (["n"], ["1"], "n=12: no", "--sweep n=1: n=12: no"),
        (["size"], ["x"], "s.py: size=x: no", "--sweep s.py: size=x: no"),
        ([], [], "no", "no"),
    ],
)
def test_no_word_of_a_mistake_is_there_twice(names: list[str], values: list[str], error: str, sentence: str) -> None:
    assert sweep._refused(names, values, error) == sentence


def test_seeds_in_two_ways_are_named_both(dryfly: Run) -> None:
    done = dryfly("predict", "halo", "-N", "2", "--seeds", "3", "--sweep", "seed=1,2")
    assert (done.returncode, done.stderr) == (2, "dryfly: --seeds 3 and --sweep seed: accepted is one of the two\n")


def test_what_fails_in_all_cases_is_told_once(tmp_path: Path, dryfly: Run) -> None:
    file = tmp_path / "f.goal"
    file.write_text("num_ranks 2\nrank 0 {\n send 8b to 1\n}\n", encoding="utf-8")
    done = dryfly("predict", str(file), "--sweep", "seed=1,2,3", DRYFLY_NATIVE=str(native(MOTIF).parent))
    assert done.returncode == 2
    assert (done.stdout + done.stderr).count("line 3, rank 0: the send to rank 1 with tag 0 has no receive") == 1
    assert "dryfly: so for 2 other cases of 3\n" in done.stdout + done.stderr


def test_points_that_levels_do_not_divide_are_refused_before_the_first_case() -> None:
    base: dict[str, Any] = {"workload": "hpcg", "nodes": 2, "ppn": 1}
    sentence = r"^--sweep local=12x16x16: accepted are multiples of 8, which levels=4 asks for$"
    with pytest.raises(UserError, match=sentence):
        cases(base, [axis("local=16x16x16,12x16x16", "hpcg")])
    assert len(cases({**base, "parameters": (("levels", "3"),)}, [axis("local=16x16x16,12x16x16", "hpcg")])) == 2


def test_what_is_given_and_swept_is_refused() -> None:
    with pytest.raises(UserError, match="nb=384 and --sweep nb: accepted is one of the two"):
        cases({"workload": "hpl", "parameters": (("nb", "384"),)}, [axis("nb=192,768", "hpl")])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("-N", "4", "--sweep", "nodes=8,16"), "--nodes 4 and --sweep nodes: accepted is one of the two"),
        (("--machine", "aurora", "--sweep", "machine=aurora,frontier"), "--machine aurora and --sweep machine"),
        (("--sweep", "seed=1,2", "--seed", "1"), "--seed 1 and --sweep seed: accepted is one of the two"),
        (("--set", "fabric.link.rate=100 Gb/s", "--sweep", "fabric.link.rate=200 Gb/s"),
         "--set fabric.link.rate=100 Gb/s and --sweep fabric.link.rate: accepted is one of the two"),
    ],
)  # fmt: skip
def test_an_option_that_is_given_and_swept_is_refused(dryfly: Run, words: tuple[str, ...], sentence: str) -> None:
    ended = dryfly(*_HPL, *words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(f"dryfly: {sentence}")
    assert ended.stderr.count("\n") == 1


def test_an_option_of_which_only_the_default_is_there_is_swept(dryfly: Run) -> None:
    assert dryfly(*_HPL, "-N", "16", "--sweep", "machine=aurora,frontier").returncode == 0


def test_an_unknown_field_starts_nothing(dryfly: Run, tmp_path: Path) -> None:
    ended = dryfly(*_HPL, "--sweep", "nb=192,384", "--sweep", "speed=1,2", "--out", "out")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith("dryfly: --sweep speed: that is neither a parameter of hpl")
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_answers_are_one_table_and_a_page(dryfly: Run, tmp_path: Path) -> None:
    ended = dryfly(*_HPL, "--sweep", "nodes=16,64,256", "--sweep", "nb=192,384", "--sweep",
                   "fabric.link.rate=100 Gb/s,200 Gb/s", "--out", "out", "--json", "all.json")  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    rows = _rows(tmp_path / "out")
    assert len(rows) == 12
    assert [row["nodes"] for row in rows[::4]] == [16, 64, 256]
    assert {row["parameter.nb"] for row in rows} == {192, 384}
    assert {row["set.fabric.link.rate"] for row in rows} == {"100 Gb/s", "200 Gb/s"}
    assert all(row["figure.rate_flop_per_s"] > 0 and row["phase.bound by GEMM"] > 0 for row in rows)
    kept = {path.stem for path in (tmp_path / "out" / sweep.CASES).iterdir()}
    assert kept == {row["key"] for row in rows}
    content = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert [case["answer"]["virtual_time_s"] for case in content["cases"]] == [row["virtual_time_s"] for row in rows]
    drawn = dryfly("report", "out", "-o", "page.html")
    assert (drawn.returncode, drawn.stderr) == (0, "")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for heading in ("Scaling", "Where the time goes", "Sensitivity", "Panel by panel", "Cases"):
        assert f"<h2>{heading}</h2>" in page
    assert "bound by GEMM" in page


def test_the_order_of_answers_and_the_number_of_processes_change_nothing(dryfly: Run, tmp_path: Path) -> None:
    for jobs in ("1", "3"):
        dryfly(*_HPL, "--sweep", "nodes=16,64,256", "--sweep", "nb=192,384", "--out", f"with-{jobs}", "-j", jobs)
    found = [
        [{**row, "wall_time_s": 0} for row in _rows(tmp_path / f"with-{jobs}")] for jobs in (1, 3)
    ]  # fmt: skip
    assert found[0] == found[1]


def test_what_is_answered_is_not_asked_again(dryfly: Run, tmp_path: Path, asked: Path) -> None:
    words = ("predict", "allreduce", "--sweep", "bytes=8,64", "--out", "out")
    native = {"DRYFLY_NATIVE": str(tmp_path / "native")}
    assert dryfly(*words, "-N", "16", **native).returncode == 0
    assert len(list(asked.iterdir())) == 2
    again = dryfly(*words, "--sweep", "nodes=16,32", **native)
    assert "2 of 4 are answered already" in again.stdout
    assert len(list(asked.iterdir())) == 4
    half = next((tmp_path / "out" / sweep.CASES).iterdir())
    half.write_text(half.read_text(encoding="utf-8")[:100], encoding="utf-8")  # as a full disk leaves it
    assert dryfly(*words, "--sweep", "nodes=16,32", **native).returncode == 0
    assert len(list(asked.iterdir())) == 5
    assert len(_rows(tmp_path / "out")) == 4


def test_a_sweep_of_a_skeleton_in_python(dryfly: Run, tmp_path: Path, asked: Path) -> None:
    """The stand-in wants a parameter `bytes`, and finds none."""
    text = "print('hello')\n\n\ndef program(me):\n    print(me.rank)\n    me.allreduce(8)\n"
    (tmp_path / "sum.py").write_text(text, encoding="utf-8")
    native = tmp_path / "native" / "dryfly-motif"
    native.write_text(native.read_text(encoding="utf-8").replace("words['bytes']", "8"), encoding="utf-8")
    native.write_text(native.read_text(encoding="utf-8").replace('words["bytes"]', '"8"'), encoding="utf-8")
    words = ("predict", "sum.py", "--sweep", "nodes=2,4", "--sweep", "place=packed,spread", "--out", "out")
    ended = dryfly(*words, DRYFLY_NATIVE=str(tmp_path / "native"))
    assert ended.returncode == 0
    assert "hello" not in ended.stdout
    rows = _rows(tmp_path / "out")
    assert [(row["workload"], row["nodes"], row["placement"]) for row in rows] == [
        ("sum.py", nodes, place) for nodes in (2, 4) for place in ("packed", "spread")
    ]
    assert len(list(asked.iterdir())) == 4
    assert "4 of 4 are answered already" in dryfly(*words, DRYFLY_NATIVE=str(tmp_path / "native")).stdout


def test_one_case_that_fails_does_not_end_the_others(dryfly: Run, tmp_path: Path, asked: Path) -> None:
    """Neither does a process that dies under one."""
    ended = dryfly("predict", "allreduce", "-N", "16", "--sweep", "bytes=8,666,64,667,128", "--out", "out",
                   DRYFLY_NATIVE=str(tmp_path / "native"))  # fmt: skip
    assert ended.returncode == 1
    assert "dryfly: bytes=666: the process that computed it ended with status -9" in ended.stdout
    assert "dryfly: bytes=667: nothing goes" in ended.stdout
    assert [row["parameter.bytes"] for row in _rows(tmp_path / "out")] == [8, 64, 128]
    assert len(list(asked.iterdir())) == 5


def test_seeds_are_cases_with_a_median(dryfly: Run, tmp_path: Path, asked: Path) -> None:
    ended = dryfly("predict", "allreduce", "-N", "10", "--seeds", "3", DRYFLY_NATIVE=str(tmp_path / "native"))
    assert ended.returncode == 0
    assert re.search(r"median +least +most\n +30 us +20 us +40 us", ended.stdout)
    assert {path.name.split("-")[2] for path in asked.iterdir()} == {"1", "2", "3"}
    refused = dryfly(*_HPL, "-N", "16", "--seeds", "3")
    assert (refused.returncode, refused.stderr) == (
        2,
        "dryfly: --seeds has no effect on --model closed: leave it out\n",
    )
    for one in (("--seed", "2"), ("--sweep", "seed=1,2")):
        refused = dryfly(*_HPL, "-N", "16", *one)
        assert (refused.returncode, refused.stderr) == (
            2,
            "dryfly: --seed 2 has no effect on --model closed: leave it out\n",
        )


def _is_alive(name: str) -> bool:
    return Path(f"/proc/{name.rsplit('-', 1)[1]}").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupt_leaves_what_is_answered_and_no_process(tmp_path: Path, asked: Path, number: int) -> None:
    """bytes=1060: for a minute. SIGINT goes to the whole group, as from a terminal."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "DRYFLY_NATIVE": str(tmp_path / "native")}
    command = [sys.executable, "-m", "dryfly", "predict", "allreduce", "-N", "16", "--sweep", "bytes=8,1060,1061",
               "--out", "out", "-j", "2"]  # fmt: skip
    # A shell's job in the background has SIGINT ignored, and what it starts too.
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, start_new_session=True,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:  # fmt: skip
        deadline = time.monotonic() + 60
        while len(list(asked.iterdir())) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        _, said = process.communicate(timeout=30)
    while any(_is_alive(path.name) for path in asked.iterdir()):
        assert time.monotonic() < deadline, "an engine is still there"
        time.sleep(0.02)
    kept = [json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "out" / sweep.CASES).iterdir()]
    assert [answer["parameters"]["bytes"] for answer in kept] == ["8"]
    if number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 128 + number
        assert said.strip() == f"dryfly: interrupted by signal {number} ({signal.strsignal(number)})"


def test_a_folder_with_a_sweep_of_another_workload_is_left_alone(dryfly: Run, tmp_path: Path) -> None:
    assert dryfly("predict", "startup", "--sweep", "nodes=8,16", "--out", "kept").returncode == 0
    kept = (tmp_path / "kept" / "sweep.json").read_bytes()
    ended = dryfly(*_HPL, "--sweep", "nb=192,384", "--out", "kept")
    assert ended.returncode == 2
    assert "--out kept: a sweep of startup is there; a new folder, or one of hpl, is needed" in ended.stderr
    assert (tmp_path / "kept" / "sweep.json").read_bytes() == kept


def test_a_machine_without_faults_is_a_value_beside_those_of_files(tmp_path: Path) -> None:
    file = tmp_path / "slow.toml"
    file.write_text('[[nic]]\nnic = "n0"\nrate = "25 %"\n')
    made = cases({"workload": "alltoall", "nodes": 8, "ppn": 8}, [axis(f"faults=none,{file}", "alltoall")])
    assert [case.question.faults for case in made] == [None, str(file)]


def test_a_folder_of_something_else_is_left_alone(dryfly: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    ended = dryfly(*_HPL, "--sweep", "nb=192,384", "--out", "mine")
    assert ended.returncode == 2
    assert "that folder has other files in it" in ended.stderr
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


@pytest.mark.filterwarnings("default")
def test_dask_gives_the_same_table(dryfly: Run, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install dryfly[cluster]")
    words = (*_HPL, "--sweep", "nodes=16,64", "--sweep", "nb=192,384", "-j", "2")
    assert dryfly(*words, "--out", "here").returncode == 0
    ended = dryfly(*words, "--out", "there", "--dask", "local")
    assert ended.returncode == 0, ended.stderr
    found = [[{**row, "wall_time_s": 0} for row in _rows(tmp_path / folder)] for folder in ("here", "there")]
    assert found[0] == found[1]


def test_an_error_of_dasks_own_is_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what was asked until then is cancelled."""
    cancelled: list[str] = []

    class Client:
        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def submit(self, _: Any, question: dict[str, str], *__: Any, **___: Any) -> str:
            if question["name"] == "second":
                raise RuntimeError("the scheduler has gone")
            return question["name"]

        def cancel(self, futures: list[str]) -> None:
            cancelled.extend(futures)

        def close(self) -> None:
            pass

    distributed = types.SimpleNamespace(Client=Client, LocalCluster=None, as_completed=None)
    monkeypatch.setitem(sys.modules, "distributed", distributed)
    with pytest.raises(RuntimeError, match="the scheduler has gone"):
        list(pool.by_dask("there:8786", [{"name": "first"}, {"name": "second"}], jobs=1, timeout_s=None))
    assert cancelled == ["first"]


def test_without_dask_its_flag_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UserError, match=re.escape('--dask needs Dask: pip install "dryfly[cluster]"')):
        pool.check_dask()


def _case(nodes: int, rate: float, nb: str) -> tuple[tuple[str, ...], dict[str, Any]]:
    answer = {"nodes": nodes, "figures": {"rate_flop_per_s": rate}, "virtual_time_s": 1.0}
    return (str(nodes), nb), answer


def test_efficiency_is_a_nodes_rate_against_that_of_the_fewest() -> None:
    axes = [axis("nodes=1,4", "hpl"), axis("nb=1,2", "hpl")]
    found = sweep_report.curves(axes, [_case(1, 10.0, "1"), _case(4, 30.0, "1"), _case(4, 36.0, "2")])
    assert found == {"nb=1": [(1, 10.0, 1.0), (4, 30.0, 0.75)], "nb=2": [(4, 36.0, 1.0)]}


def test_sensitivity_is_the_median_over_everything_else() -> None:
    """1.2 and 1.4 times as fast."""
    axes = [axis("nodes=1,4", "hpl"), axis("nb=1,2", "hpl")]
    made = [_case(1, 10.0, "1"), _case(1, 12.0, "2"), _case(4, 30.0, "1"), _case(4, 42.0, "2")]
    ((name, medians),) = sweep_report.sensitivities(axes, made)
    assert name == "nb"
    assert medians == {"1": 1.0, "2": pytest.approx(1.3)}
