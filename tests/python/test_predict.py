"""`dryfly predict`: what is asked, what is refused, and what is made of an engine's answer.

The engine is a stand-in here, since these tests go without the simulator: it prints what dryfly-motif prints.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dryfly.base.deadline import within
from dryfly.base.errors import RunError, UserError
from dryfly.base.paths import data_folder
from dryfly.case import placement
from dryfly.cli.main import cli
from dryfly.machine.listing import source_keys
from dryfly.oracle.hpl import Problem
from dryfly.predict import ask, closed_hpl, facts, figure, skeleton, standing, worker
from dryfly.predict.find import find
from dryfly.predict.predict import pairs
from dryfly.predict.question import Question, of_content
from dryfly.predict.workloads import OPTIONS, OTHER_OPTIONS, ROWS

Run = Callable[..., subprocess.CompletedProcess[str]]

_PUBLISHED = (("n", "28773888"), ("grid", "162x342"))

_STAND_IN = """#!{python}
import json, sys
words = dict(word.split("=", 1) for word in sys.argv[3:])
if words.get("count") == "13":
    print("dryfly-motif: count = 13: not that one", file=sys.stderr)
    sys.exit(2)
ranks = int(words["nodes"]) * int(words["ppn"])
spec = dict(line.split(" ", 1) for line in open(sys.argv[1]).read().splitlines())
said = f"seed {{spec['run.seed']}}, {{words}}, {{spec['run.ranks']}}"
if "selection" in words:
    said = f"rules {{open(words['selection']).read()!r}}"
print(json.dumps({{"workload": sys.argv[2], "ranks": ranks, "virtual_ps": 10**6 * ranks, "messages": ranks * 3,
    "bytes": ranks * 24, "events": ranks * 7, "phases": {{"work": 4 * 10**5}}, "sampled": ranks > 100,
    "error_bound": 0.02 if ranks > 100 else 0, "figures": {{"bytes_per_s": 2e9}}, "wall_s": 0.5,
    "fingerprint": "ab", "warnings": [said]}}))
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "native"
    folder.mkdir()
    engine = folder / "dryfly-motif"
    engine.write_text(_STAND_IN.format(python=sys.executable), encoding="utf-8")
    engine.chmod(engine.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("DRYFLY_NATIVE", str(folder))
    return folder


def hpl(**given: Any) -> Question:
    return Question(**{"workload": "hpl", "nodes": 9234, "model": "closed", **given})


def test_every_parameter_of_data_has_a_source() -> None:
    content = tomllib.loads((data_folder() / "predict" / "hpl.toml").read_text(encoding="utf-8"))
    for name, fact in {**content["parameter"], "node_rate": content["published"]["node_rate"]}.items():
        assert {key.strip() for key in fact["source"].split(";")} <= set(source_keys()), name
        assert fact["note"], name
    assert [name for name, fact in content["parameter"].items() if fact["certainty"] == "calibrated"] == [
        "gemm_exposed"
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_defaults_are_accepted(row: Any) -> None:
    for model in row.models:
        values = row.values({}, model)
        assert set(values) == {each.name for each in row.of_model(model) if each.default is not None}


def test_the_published_run_comes_out_as_it_was_calibrated() -> None:
    """One parameter, set so that this row agrees: it has to. 1,012 PF/s, 78.84 %; 4 h 21 m 54 s follow from these."""
    answer = closed_hpl.answer(hpl(parameters=_PUBLISHED))
    assert answer.figures["rate_flop_per_s"] == pytest.approx(1012e15, rel=0.001)
    assert answer.figures["efficiency_share"] == pytest.approx(0.7884, abs=0.001)
    assert answer.virtual_time_s == pytest.approx(15_714, rel=0.002)
    assert answer.calibrated.startswith("gemm_exposed")
    assert answer.figures["panels"] == 74_932


def test_another_value_of_the_calibrated_parameter_is_not_called_calibrated() -> None:
    answer = closed_hpl.answer(hpl(parameters=(*_PUBLISHED, ("gemm_exposed", "0 %"))))
    assert answer.calibrated == ""
    assert answer.figures["rate_flop_per_s"] > 1100e15


def test_a_whole_machine_packet_by_packet_is_refused_before_it_begins() -> None:
    with pytest.raises(
        UserError,
        match=r"^--level packet: the first \d+ messages have more than 500000000 packets, .*: accepted are up to "
        r"500000000 in all, .* --timeout$",
    ):
        ask.ask(Question(workload="halo", ppn=8, level="packet", parameters=(("bytes", "1 MiB"),)))


def test_who_gives_a_time_may_have_more_packets() -> None:
    question = Question(workload="halo", ppn=8, level="packet", parameters=(("bytes", "1 MiB"),))
    with pytest.raises(RunError, match=r"halo has not ended after 2 s"):
        ask.ask(question, timeout_s=2)


def test_packets_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """8 ranks, two steps, each with 26 messages of three packets of 2,048 bytes and a shorter one."""
    parameters = (("bytes", "6400"), ("steps", "2"), ("neighbours", "26"))
    question = Question(workload="halo", nodes=8, ppn=1, level="packet", parameters=parameters)
    monkeypatch.setattr(skeleton, "MOST_PACKETS", 2 * 8 * 26 * 4)
    assert ask.ask(question).messages == 2 * 8 * 26
    monkeypatch.setattr(skeleton, "MOST_PACKETS", 2 * 8 * 26 * 4 - 1)
    with pytest.raises(UserError, match=r"the first 416 messages have more than 1663 packets"):
        ask.ask(question)
    assert ask.ask(replace(question, level="links")).messages == 2 * 8 * 26


@pytest.mark.parametrize(
    ("workload", "parameters"),
    [
        ("halo", (("bytes", "8"), ("neighbours", "26"), ("steps", "4"))),
        ("halo", (("bytes", "2000"), ("steps", "4"))),
        ("allreduce", (("bytes", "8"),)),
        ("alltoall", (("bytes", "64"),)),
    ],
)
def test_a_second_core_changes_nothing_but_time(workload: str, parameters: tuple[tuple[str, str], ...]) -> None:
    question = Question(workload=workload, nodes=64, ppn=8, parameters=parameters)
    one, two = (skeleton.answer(question, cores=cores) for cores in (1, 2))
    assert (one.virtual_time_s, one.fingerprint) == (two.virtual_time_s, two.fingerprint)
    assert (one.messages, one.bytes, one.events) == (two.messages, two.bytes, two.events)


@pytest.mark.parametrize(
    ("workload", "of_closed"),
    [
        ("hpl", {"swap_above_gemm_from_panel", "gemm_bounds_until_panel"}),
        ("hplmxp", {"gemm_bounds_until_panel"}),
    ],
)
def test_models_of_a_workload_have_one_name_for_a_figure(workload: str, of_closed: set[str]) -> None:
    """Of P that is no multiple of a node's ranks the closed form alone has a doubt."""
    closed, engine = (
        ask.ask(Question(workload=workload, model=model, nodes=4, ppn=6, parameters=(("n", "5000"), ("grid", "4x6"))))
        for model in ("closed", "skeleton")
    )
    assert set(closed.figures) - set(engine.figures) == of_closed
    assert not set(engine.figures) - set(closed.figures)
    assert engine.figures["matrix_bytes_of_node"] == closed.figures["matrix_bytes_of_node"]
    assert figure.of_all([closed.figures, engine.figures])[:2] == ["rate_flop_per_s", "of_gemm_rate_share"]
    for one in (closed, engine):
        rate = one.figures["rate_flop_per_s"]
        assert rate * one.virtual_time_s == pytest.approx(2 / 3 * 5000**3, rel=0.01)
        assert rate / one.figures["of_gemm_rate_share"] == pytest.approx(
            closed.figures["rate_flop_per_s"] / closed.figures["of_gemm_rate_share"]
        )
    assert engine.warnings == ()


def test_what_a_librarys_rules_chose_is_said() -> None:
    """4 nodes of 2 ranks: within nodes, and between their leaders by the rule for other sizes."""
    question = Question(workload="allreduce", nodes=4, ppn=2, parameters=(("bytes", "4096"),))
    assert list(ask.ask(question).content()["chosen"]) == [
        "allreduce of 4096 B on 8 ranks: hierarchical (mpich: hierarchy=yes)",
        "allreduce of 4096 B on 4 ranks: rabenseifner (mpich)",
    ]
    named = replace(question, parameters=(("bytes", "4096"), ("algorithm", "ring")))
    assert ask.ask(named).chosen == ()


def test_what_a_tuning_file_chose_is_said_without_its_place(tmp_path: Path) -> None:
    file = tmp_path / "rules.conf"
    file.write_text("1\n2 # allreduce\n1\n0 # ranks\n1\n0 4 0 0\n", encoding="utf-8")
    given = (("library", "openmpi"), ("selection", str(file)), ("on_node", "nic"))
    chosen = ask.ask(Question(workload="allreduce", nodes=4, parameters=given)).chosen
    assert len(chosen) == 1
    assert "(tuning file" in chosen[0]
    assert str(tmp_path) not in chosen[0]


def test_too_many_ranks_for_the_memory_are_one_sentence() -> None:
    """Of 884,736 ranks in 400 MB."""
    limited = ["bash", "-c", 'ulimit -v 400000; exec "$@"', "-", sys.executable, "-m", "dryfly", "predict", "halo"]
    done = subprocess.run([*limited, "-N", "9216", "--ppn", "96"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    said = done.stderr.strip()
    assert said.startswith("dryfly: halo: 884,736 ranks at level links need more memory than there is (ulimit -v: 390.")
    assert said.endswith(
        "accepted are fewer nodes or ranks of a node (--nodes, --ppn), or at a level that needs less (--level latency)"
    )
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "def program(me):\n    while True:\n        pass\n",
        "def program(me):\n    while True:\n        me.compute(1e-6)\n",
        "while True:\n    try:\n        pass\n    except Exception:\n        pass\n",
    ],
)
@pytest.mark.parametrize("more", [[], ["--sweep", "ppn=1,2"]])
def test_a_program_that_never_ends_is_ended(text: str, more: list[str], tmp_path: Path, dryfly: Run) -> None:
    file = tmp_path / "endless.py"
    file.write_text(text, encoding="utf-8")
    done = dryfly("predict", str(file), "-N", "2", "--timeout", "1", *more)
    assert done.returncode == 1
    assert done.stderr == f"dryfly: {file}: writing down what its ranks do has not ended after 1 s\n"


def test_what_ends_in_time_is_not_disturbed() -> None:
    with within(60, "nothing"):
        pass
    with pytest.raises(RunError, match=r"that has not ended after 0\.05 s"), within(0.05, "that"):
        for _ in itertools.count():
            pass


@pytest.mark.usefixtures("stand_in")
def test_each_question_of_many_has_one_core() -> None:
    """There are as many at a time as cores."""
    question = Question(workload="halo", nodes=64, ppn=2)
    assert "'cores': '1'" in worker.outcome(question.content(), None)["answer"]["warnings"][0]
    assert "cores" not in ask.ask(question).warnings[0]


@pytest.mark.parametrize("workload", ["hpl", "hplmxp"])
def test_registration_of_each_buffer_is_called_assumed(workload: str) -> None:
    """Its costs are, on any Slingshot machine; a user's own are not."""
    own = tuple(f"host.registration.{way}{of}=1 us" for way in ("map", "unmap") for of in ("", "_page"))
    each = Question(workload=workload, nodes=9234, ppn=6, model="closed", parameters=(("registration", "each"),))
    found = ask.ask(each)
    assert found.assumed.startswith("what registration=each adds to each message (host.registration.map, ")
    assert found.calibrated
    assert ask.ask(replace(each, sets=own)).assumed == ""
    assert ask.ask(replace(each, parameters=())).assumed == ""


@pytest.mark.parametrize("undone", [("registration", "each"), ("gpu_mpi", "on"), ("staging", "ddr")])
def test_with_a_choice_undone_no_row_is_called_calibrated(undone: tuple[str, str]) -> None:
    rows = standing.standings(hpl(parameters=(undone,)))
    assert {row.kind for row in rows} == {"predicted"}


def test_the_published_rows_are_held_against_one_calibrated_one() -> None:
    rows = standing.standings(hpl())
    assert [row.nodes for row in rows] == [9234, 8748, 8632, 8109, 8058, 7200, 6888, 6273, 5439]
    assert [row.kind for row in rows] == ["calibrated", *["predicted"] * 8]
    assert max(abs(row.error) for row in rows) < 0.025
    assert max(abs(row.constant_error) for row in rows) == pytest.approx(0.0201, abs=0.0002)


def test_rows_of_another_machine_are_not_shown() -> None:
    assert standing.is_known(hpl())
    assert not standing.is_known(hpl(nodes=64))
    assert not standing.is_known(hpl(machine="frontier", nodes=64))
    assert not standing.is_known(hpl(sets=("fabric.link.rate=100 Gb/s",)))


def test_published_rates_and_efficiencies_agree_on_the_rate_of_a_node() -> None:
    published = facts.hpl_published()
    for row in published.rows:
        assert row.rate / row.nodes / row.efficiency == pytest.approx(published.node_rate, rel=0.0005)


def test_a_matrix_on_the_host_would_take_far_longer_than_was_published() -> None:
    answer = closed_hpl.answer(hpl(parameters=(*_PUBLISHED, ("matrix", "host"))))
    assert answer.virtual_time_s > 4 * 15_714
    assert "PCIe" in answer.warnings[0]


def test_fit_fills_the_memory_and_takes_the_grid_that_it_finds_fastest() -> None:
    answer = closed_hpl.answer(hpl(fit=True))
    n, block = int(answer.values["n"]), int(answer.values["nb"])
    assert n % block == 0
    assert 0.9 * 9234 * 768 * 2**30 * 0.95 < 8 * n * n < 9234 * 768 * 2**30 * 0.95
    best = max(answer.details["candidates"], key=lambda row: row[3])
    assert [block, answer.values["grid"], n] == best[:3]
    assert [sentence.split(" ")[0] for sentence in answer.chosen] == ["n", "nb", "grid"]


def test_fit_keeps_what_is_given() -> None:
    answer = closed_hpl.answer(hpl(fit=True, parameters=(("nb", "256"), ("grid", "162x342"))))
    assert (answer.values["nb"], answer.values["grid"]) == ("256", "162x342")


@pytest.mark.parametrize(
    ("machine", "memory"), [("frontier", 8 * 65520), ("perlmutter-gpu", 4 * 40339), ("alps", 4 * 96768)]
)
def test_the_order_follows_from_the_memory_of_each_machines_gpus(machine: str, memory: int) -> None:
    answer = closed_hpl.answer(hpl(machine=machine, nodes=64))
    assert 0.85 * memory < answer.figures["matrix_bytes_of_node"] / 2**20 < 0.95 * memory


def test_without_gpus_the_memory_of_the_processors_counts() -> None:
    answer = closed_hpl.answer(hpl(machine="perlmutter-cpu", nodes=64))
    assert "DDR4" in answer.chosen[0]


def test_a_matrix_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UserError, match=r"n=40000000: a process needs 2\d\d\.\d GiB for .* what fits 128 GiB "):
        closed_hpl.check(hpl(parameters=(("n", "40000000"), ("grid", "162x342"))))


@pytest.mark.parametrize(
    ("workload", "parameter", "value"),
    [("alltoall", "bytes", "1GiB"), ("hacc", "local", "2048x2048x2048"), ("lammps", "atoms", "1000000000")],
)
def test_what_does_not_fit_the_memory_of_processors_is_refused(workload: str, parameter: str, value: str) -> None:
    question = Question(workload=workload, nodes=16, ppn=8, parameters=((parameter, value),))
    with pytest.raises(UserError, match=f"{parameter}=.*: 8 ranks of a node need .* TiB; accepted is what fits 1 TiB"):
        ask.check(question)


def test_nics_that_phases_share_swap_faster_and_carry_both() -> None:
    """A rank has a NIC for itself then, instead of a third of one."""
    own, shared = (
        closed_hpl.answer(hpl(parameters=(*_PUBLISHED, ("swap_nics", nics)))).details["parts_s"] for nics in ("1", "0")
    )
    assert shared["swap"] < own["swap"] / 2
    assert own["nics"] == 0
    assert shared["nics"] > 0


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"nodes": 20_000}, "aurora has 10624 nodes; 20000 are asked for"),
        ({"nodes": 0}, "--nodes 0: accepted is 1 or more"),
        ({"ppn": 1000}, "--ppn 1000: a node of aurora has 104 cores of 2 threads"),
        ({"nodes": 10, "parameters": (("grid", "7x9"),)}, "grid=7x9 has 63 processes, and 10 nodes with"),
        ({"parameters": (("grid", "sixty"),)}, "grid=sixty: accepted is PxQ, such as 4x4"),
        ({"parameters": (("nb", "0"),)}, "nb=0: out of range; accepted is 1 to 65536"),
        ({"parameters": (("xb", "0"),)}, "hpl has no parameter xb; there are n, nb, grid"),
        ({"parameters": (("bcast", "ring"),)}, "bcast=ring: accepted is 1ring or 1ringM"),
        ({"parameters": (("swap_nics", "4"),)}, "swap_nics=4: a socket of aurora has 4 NICs"),
        ({"level": "links"}, "--level has no effect on --model closed: leave it out"),
        ({"noise": "machine"}, "--noise has no effect on --model closed: leave it out"),
        ({"model": "oracle"}, "--model oracle: hpl has "),
        ({"workload": "hpk"}, '"hpk" is no workload; there are hpl, alltoall, allreduce, barrier, bcast'),
        ({"machine": "nowhere"}, 'unknown machine "nowhere"'),
        ({"workload": "halo", "model": None, "place": "nowhere"}, '--place "nowhere": neither packed,'),
        ({"machine": "perlmutter-cpu", "nodes": 8, "parameters": (("matrix", "gpu"),)},
         "matrix=gpu: perlmutter-cpu says nothing of GPUs"),
        ({"workload": "halo", "model": None, "faults": "nowhere.toml"}, "--faults nowhere.toml cannot be read"),
        ({"workload": "halo", "model": None, "mpi": "mpich-5.0.2"}, "--mpi mpich-5.0.2: with --software none no"),
        ({"mpi": "mpich-5.0.2"}, "--mpi mpich-5.0.2: with --software none no library"),
        ({"workload": "halo", "model": None, "level": "atoms"}, "--level atoms: accepted is latency, links"),
        ({"workload": "halo", "model": None, "nodes": 27, "parameters": (("grid", "3x3x4"),)},
         "grid=3x3x4 has 36 processes"),
        ({"workload": "alltoall", "model": None, "parameters": (("bytes", "1 s"),)}, 'bytes=1 s: "s" is no unit of'),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_with_a_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)) as refused:
        ask.check(hpl(**given))
    assert "\n" not in str(refused.value)


def test_parameters_are_written_in_three_ways() -> None:
    row = find("alltoall")
    assert pairs(["bytes=1 KiB", "--stretch", "3", "--full", "--stretches=8"], row) == (
        ("bytes", "1 KiB"), ("stretch", "3"), ("full", "1"), ("stretches", "8")
    )  # fmt: skip
    with pytest.raises(UserError, match='"8": accepted is NAME=VALUE'):
        pairs(["8"], row)
    with pytest.raises(UserError, match="parameter bytes is given twice"):
        pairs(["bytes=8", "--bytes", "9"], row)
    with pytest.raises(UserError, match="--bytes: its value is missing"):
        pairs(["--bytes"], row)


@pytest.mark.parametrize(
    ("machine", "nodes", "least", "most"),
    [("frontier", 9216, 1.10, 1.20), ("lumi-g", 2916, 1.10, 1.20), ("perlmutter-gpu", 1536, 1.15, 1.22),
     ("alps", 2600, 1.00, 1.06)],
)  # fmt: skip
def test_listed_results_of_other_machines_stand_beside_the_closed_form(
    machine: str, nodes: int, least: float, most: float
) -> None:
    """Nothing was set to them: docs/model/hpl.md has the errors, which this notices when they change."""
    answer = closed_hpl.answer(hpl(machine=machine, nodes=nodes))
    assert least < answer.figures["of_published_share"] < most
    other = closed_hpl.answer(hpl(machine=machine, nodes=nodes - 16))
    assert "of_published_share" not in other.figures
    assert other.figures["rate_flop_per_s"] < other.question.ranks * 60e12


def test_a_machines_own_solver_is_said_and_can_be_undone() -> None:
    asked = hpl(machine="frontier", nodes=64)
    own = closed_hpl.answer(asked)
    assert own.chosen[0] == "as rocHPL does it: nb=512, pmap=row, panel_cores=node, gpu_mpi=on"
    undone = closed_hpl.answer(
        hpl(machine="frontier", nodes=64, parameters=(("panel_cores", "own"), ("pmap", "column"), ("nb", "384")))
    )
    assert undone.chosen[0] == "as rocHPL does it: gpu_mpi=on"
    assert undone.phases["bound by PFACT + BCAST"] > own.phases["bound by PFACT + BCAST"]
    assert undone.virtual_time_s > own.virtual_time_s
    assert hpl(machine="aurora", nodes=64).parameter("pmap") == "column"


@pytest.mark.parametrize(
    ("pmap", "rows", "columns", "together"),
    [("column", 4, 16, 4), ("column", 16, 4, 8), ("row", 4, 16, 1), ("row", 16, 4, 2)],
)
def test_ranks_of_a_node_in_one_column_factor_together(pmap: str, rows: int, columns: int, together: int) -> None:
    problem = Problem(order=10_000, block=100, rows=rows, columns=columns)
    assert closed_hpl.panels_at_once({"pmap": pmap}, 8, problem) == together


def test_a_question_survives_json() -> None:
    question = hpl(parameters=_PUBLISHED, sets=("fabric.link.rate=100 Gb/s",))
    assert of_content(json.loads(json.dumps(question.content()))) == question


def test_the_key_is_of_all_that_the_answer_depends_on() -> None:
    assert ask.key(hpl()) == ask.key(hpl())
    changed = [
        hpl(nodes=9233), hpl(parameters=_PUBLISHED), hpl(sets=("compute.gpu.fp64=21 TF/s",)), hpl(fit=True),
        hpl(machine="alps", nodes=100),
    ]  # fmt: skip
    keys = {ask.key(question) for question in (hpl(), *changed)}
    assert len(keys) == 6


def test_the_key_does_not_depend_on_how_values_are_written() -> None:
    once = hpl(parameters=(("nb", "384"), ("panel_share", "50 %")), sets=("fabric.link.rate=200 Gb/s",))
    again = hpl(parameters=(("panel_share", "0.5 x"), ("nb", "384")), sets=("fabric.link.rate=25 GB/s",))
    assert ask.key(once) == ask.key(again)
    assert ask.key(hpl()) == ask.key(hpl(parameters=(("nb", "384"),)))
    # With --fit a block that is given stays, and one that is not is chosen.
    assert ask.key(hpl(fit=True)) != ask.key(hpl(fit=True, parameters=(("nb", "384"),)))


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("name", ["oracle/hpl", "predict/closed_hpl", "predict/fit", "predict/skeleton_hpl"])
@pytest.mark.parametrize("model", ["closed", "skeleton"])
def test_the_key_of_hpl_is_of_the_code_that_computes_it(
    model: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a copy of the package in which one file differs; other workloads have nothing of it."""
    package = tmp_path / "dryfly"
    for folder in ("oracle", "predict"):
        shutil.copytree(ask._PACKAGE / folder, package / folder)
    ask._own_digest.cache_clear()
    before = [ask.key(question) for question in (hpl(model=model), Question(workload="halo"))]
    monkeypatch.setattr(ask, "_PACKAGE", package)
    with (package / f"{name}.py").open("a") as file:
        file.write("# another formula\n")
    ask._own_digest.cache_clear()
    after = [ask.key(question) for question in (hpl(model=model), Question(workload="halo"))]
    ask._own_digest.cache_clear()
    assert after[0] != before[0]
    assert after[1] == before[1]


def test_the_engine_is_given_the_spec_and_parameters_in_base_units(stand_in: Path) -> None:
    question = Question(
        workload="halo", nodes=64, ppn=2, seed=7, parameters=(("grid", "4x4x8"), ("work", "3 us"), ("bytes", "8 KiB"))
    )
    answer = skeleton.answer(question)
    assert answer.virtual_time_s == pytest.approx(128e-6)
    said = answer.warnings[0]
    assert said.startswith("seed 7, ")
    assert said.endswith(", 128")
    words = {"nodes": "64", "ppn": "2", "level": "links", "x": "4", "y": "4", "z": "8", "bytes": "8192",
             "neighbours": "26", "steps": "10", "work_ps": "3000000", "on_node": "memory"}  # fmt: skip
    assert str(words) in said
    assert (answer.messages, answer.bytes, answer.events) == (384, 3072, 896)
    assert (answer.sampled, answer.error_bound) == (True, 0.02)
    assert answer.phases == {"work": 4e-7}
    assert answer.content()["figures"] == {"bytes_per_s": 2e9}
    assert stand_in.is_dir()


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(("place", "on"), [("packed", None), ("spread", "0,64,128"), ("random", "")])
def test_ranks_are_where_a_run_would_place_them(place: str, on: str | None) -> None:
    """Aurora's groups have 64 nodes; the drawn ones are those of `dryfly run --place random`."""
    question = Question(workload="halo", nodes=3, place=place)
    if place == "random":
        on = ",".join(map(str, placement.place(question.loaded, nodes=3, ppn=1, policy=place).nodes))
    said = skeleton.answer(question).warnings[0]
    assert ("'on': " in said) == (on is not None)
    assert on is None or f"'on': '{on}'" in said


@pytest.mark.usefixtures("stand_in")
def test_a_file_of_places_says_how_many_nodes_there_are(tmp_path: Path) -> None:
    file = tmp_path / "places"
    file.write_text("x4000c0s1b0n0 2\nx4000c0s0b0n0 2\n", encoding="utf-8")
    question = Question(workload="halo", ppn=2, place=str(file))
    assert "'nodes': '2', 'ppn': '2', 'level': 'links', 'on': '1,0'" in skeleton.answer(question).warnings[0]
    with pytest.raises(UserError, match=r"^--ppn 1 contradicts .*places, which gives 2$"):
        ask.check(Question(workload="halo", place=str(file)))


@pytest.mark.usefixtures("stand_in")
def test_nodes_that_are_down_are_passed_over() -> None:
    question = Question(workload="halo", nodes=3, level="packet", sets=("fabric.down=x4000c0s1b0n0",))
    ask.check(question)
    assert "'on': '0,2,3'" in skeleton.answer(question).warnings[0]


@pytest.mark.usefixtures("stand_in")
def test_the_engine_is_given_hpls_problem_and_what_follows_from_the_machine() -> None:
    """Of 8 NICs the first of each socket swaps. 257 GB/s of copies over 6 ranks; 0.516 x 8 x 20.83e12 / 2e12 = 43.0."""
    question = Question(workload="hpl", model="skeleton", nodes=9234, parameters=(("n", "28773888"), ("nbmin", "16")))
    answer = skeleton.answer(question)
    said = answer.warnings[0]
    for word in (
        "'n': '28773888', 'nb': '384', 'p': '228', 'q': '243'", "'bcast': '1ringM'", "'depth': '1'", "'gpu': 'beside'",
        "'nbmin': '16'", "'swap_nics': '0,4', 'bcast_nics': '1,2,3,5,6,7'", "'pcie_bytes_per_s': '42833333333'",
        "'gpus': '6'", "'gemm_tile': '256', 'gemm_units': '128', 'gemm_fill': '43'",
    ):  # fmt: skip
        assert word in said, word
    assert "memory_share" not in said
    assert answer.values["grid"] == "228x243"
    assert answer.chosen[0].startswith("grid = 228x243: fastest of ")
    assert answer.chosen[1].startswith(
        "of more than 8,192 ranks a short sample: stretches=6, stretch=2, warm=1, rounds=4"
    )
    part = 8 * 384 * (28773888 // 228) // 16
    assert f"'stretches': '6', 'stretch': '2', 'warm': '1', 'rounds': '4', 'part': '{part}'" in said
    assert answer.details["closed_time_s"] == pytest.approx(15_650, rel=0.01)


@pytest.mark.usefixtures("stand_in")
def test_a_sample_of_hpl_is_shortened_only_of_many_ranks_and_where_nobody_says_otherwise() -> None:
    few = skeleton.answer(Question(workload="hpl", model="skeleton", nodes=1024))
    assert "stretches" not in few.warnings[0]
    given = (("rounds", "0"), ("part", "1 MiB"))
    said = skeleton.answer(Question(workload="hpl", model="skeleton", nodes=9234, parameters=given)).warnings[0]
    assert "'rounds': '0'" in said
    assert "'part': '1048576'" in said
    assert said.count("'part'") == said.count("'rounds'") == 1
    whole = Question(workload="hpl", model="skeleton", nodes=9234, parameters=(("full", "1"),))
    assert "stretches" not in skeleton.answer(whole).warnings[0]


_RING = """
import sys
print("written down for", 1)


def program(me):
    me.wait(me.irecv((me.rank - 1) % me.size), me.isend((me.rank + 1) % me.size, 8))
"""


@pytest.mark.usefixtures("stand_in")
def test_a_skeleton_in_python_is_written_down_for_all_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it prints is not among the answers, which a process of a sweep writes there."""
    program = tmp_path / "ring.py"
    program.write_text(_RING, encoding="utf-8")
    question = Question(workload=str(program), nodes=4, ppn=2, place="spread", parameters=(("on_node", "nic"),))
    ask.check(question)
    answer = skeleton.answer(question)
    said = answer.warnings[0]
    assert "'nodes': '4', 'ppn': '2', 'level': 'links', 'on': '0,64,128,192', 'on_node': 'nic', 'file': '" in said
    assert answer.content()["workload"] == str(program)
    assert capsys.readouterr() == ("", "written down for 1\n")


@pytest.mark.usefixtures("stand_in")
def test_what_a_program_takes_is_a_parameter(tmp_path: Path) -> None:
    """Whole numbers may be sizes; what is not given is as the file has it. The engine learns nothing of them."""
    program = tmp_path / "some.py"
    program.write_text(
        "import sys\ndef program(me, size=1, share=0.5, how='ring', steps=3):\n"
        "    print(size, share, how, steps, file=sys.stderr)\n    me.compute(size * 1e-9)\n",
        encoding="utf-8",
    )
    given = (("size", "8 KiB"), ("share", "1e-2"), ("how", "tree"))
    question = Question(workload=str(program), nodes=1, parameters=given)
    assert dict(question.values) == {
        "size": "8192", "share": "0.01", "how": "tree", "steps": "3", "on_node": "memory"
    }  # fmt: skip
    assert "size" not in skeleton.answer(question).warnings[0]
    assert ask.key(question) != ask.key(Question(workload=str(program), nodes=1))


@pytest.mark.usefixtures("stand_in")
def test_a_program_may_be_run_on_fewer_ranks(tmp_path: Path) -> None:
    """Then as many nodes as these need, if nobody says. What the program itself calls so is the program's."""
    file = tmp_path / "ring.py"
    file.write_text(_RING, encoding="utf-8")
    question = Question(workload=str(file), ppn=2, parameters=(("ranks", "5"), ("library", "openmpi")))
    ask.check(question)
    said = skeleton.answer(question).warnings[0]
    assert "'nodes': '3'" in said
    assert "'library': 'openmpi'" in said
    assert "'ranks'" not in said
    file.write_text("def program(me, ranks=7):\n    assert me.size == 2\n    me.compute(ranks)\n", encoding="utf-8")
    ask.check(Question(workload=str(file), nodes=2))


@pytest.mark.usefixtures("stand_in")
def test_costs_of_calls_may_be_others_than_the_machines(tmp_path: Path) -> None:
    file = tmp_path / "ring.py"
    file.write_text(_RING, encoding="utf-8")
    question = Question(workload=str(file), nodes=2, charged=(("host.send_ps", 5), ("host.sent_ps", 6)))
    assert of_content(json.loads(json.dumps(question.content()))) == question
    lines = skeleton.spec_of(question).splitlines()
    assert [line for line in lines if line.startswith(("host.send_ps", "host.sent_ps"))] == [
        "host.send_ps 5", "host.sent_ps 6",
    ]  # fmt: skip


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("table", "place", "reason"),
    [
        ("gpu", 'node = "x4000c0s0b0n0"\nrate = 0.5', "links of GPUs in skeletons are as the machine's"),
        ("memory", 'node = "x4000c0s0b0n0"\nrate = 0.5', None),
        ("memory", 'node = "x4000c0s7b0n0"\nrate = 0.5', "no rank is on that node"),
        ("cpu", 'node = "x4000c0s0b0n0"\nrate = 0.5', None),
        ("loss", 'nic = "n0"\nat = "1 s"', None),
        ("loss", 'nic = "n4"\nat = "1 s"', None),
        ("loss", 'nic = "n1"\nat = "1 s"', "no rank uses that NIC"),
        ("flap", 'link = "n12"\nat = "1 s"', "no rank uses that NIC"),  # of the second node, which has one rank
        ("nic", 'node = "x4000c0s7b0n0"\nrate = 0.5', "no rank uses one of these NICs"),
        ("loss", 'link = "s0-s1"\nat = "1 s"', None),
    ],
)
def test_a_fault_that_nothing_meets_is_told(table: str, place: str, reason: str | None, tmp_path: Path) -> None:
    """Three ranks on two nodes with places for two, at NICs 0, 4 and 8."""
    program, file = tmp_path / "ring.py", tmp_path / "f.toml"
    program.write_text(_RING, encoding="utf-8")
    file.write_text(f"[[{table}]]\n{place}\n", encoding="utf-8")
    question = Question(workload=str(program), nodes=2, ppn=2, faults=str(file), parameters=(("ranks", "3"),))
    said = [sentence for sentence in skeleton.answer(question).warnings if sentence.startswith(str(file))]
    assert len(said) == int(reason is not None)
    if reason is not None:
        assert f"{file}: {table} 1: " in said[0]
        assert said[0].endswith(f": nothing of this workload meets it: {reason}")


@pytest.mark.usefixtures("stand_in")
def test_a_goal_file_is_on_as_many_nodes_as_it_needs(tmp_path: Path) -> None:
    file = tmp_path / "f.goal"
    file.write_text("num_ranks 7\n", encoding="utf-8")
    question = Question(workload=str(file), ppn=2, parameters=(("calc", "1500 ps"),))
    ask.check(question)
    said = skeleton.answer(question).warnings[0]
    assert (
        f"'nodes': '4', 'ppn': '2', 'level': 'links', 'on_node': 'memory', 'file': '{file}', 'calc_ns': '1.5'" in said
    )


@pytest.mark.usefixtures("stand_in")
def test_the_key_of_a_file_is_of_what_it_says(tmp_path: Path) -> None:
    """Of a skeleton as it is written down: a remark changes nothing, another module that it reads would."""
    for name, text, remark, other in (
        ("f.goal", "num_ranks 2\n", None, "num_ranks 1\n"),
        ("ring.py", _RING, _RING + "# a remark\n", _RING.replace("8)", "9)")),
    ):
        file = tmp_path / name
        keys = []
        for time_s, content in enumerate((text, remark or text, other), 1):
            file.write_text(content, encoding="utf-8")
            os.utime(file, (time_s, time_s))
            keys.append(ask.key(Question(workload=str(file), nodes=2)))
        assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("name", "text", "given", "sentence"),
    [
        ("f.goal", "num_ranks 9\n", {"nodes": 4, "ppn": 2},
         "f.goal has 9 ranks, and 4 nodes with 2 ranks are 8; accepted are at least as many"),
        ("f.goal", "rank 0\n", {}, "f.goal: accepted is a GOAL file, which begins with num_ranks"),
        ("f.goal", "num_ranks 2\n", {"parameters": (("bytes", "8"),)}, "GOAL file has no parameter bytes; there are"),
        ("s.py", "def program(me):\n    me.send(9, 8)\n", {"nodes": 2}, "s.py, line 2, rank 0: peer = 9: accepted"),
        ("s.py", "import os\n\n\ndef program(me):\n    os._exit(3)\n", {"nodes": 2},
         "s.py, line 5, rank 0: SystemExit: os._exit(3)"),
        ("s.py", "from os import _exit\n_exit(3)\n", {"nodes": 2}, "s.py: it cannot be run: SystemExit: os._exit(3)"),
        ("s.py", "", {"nodes": 2}, "s.py: there is no function program(me) in it"),
        ("s.py", "def program(me):\n    pass\n", {"nodes": 2, "model": "closed"},
         "--model closed: accepted for s.py is skeleton"),
        ("s.py", "def program(me, size=8):\n    pass\n", {"nodes": 2, "parameters": (("sizes", "8"),)},
         "s.py: skeleton in Python has no parameter sizes; there are size, on_node, library, ranks"),
        ("s.py", "def program(me, size=8):\n    pass\n", {"nodes": 2, "parameters": (("size", "8.5"),)},
         "size=8.5: accepted is a whole number, or a size such as 8 KiB"),
        ("s.py", "def program(me, size=8):\n    me.send(1 - me.rank, size)\n",
         {"nodes": 2, "parameters": (("size", "-1"),)}, "s.py, line 2, rank 0: size = -1: accepted is"),
        ("s.py", "def program(me, size):\n    pass\n", {"nodes": 2},
         "s.py: parameter size of program has no default; accepted is one that is a whole number, a number or text"),
        ("s.py", "def program(me, *sizes):\n    pass\n", {"nodes": 2},
         "s.py: parameter sizes of program has no default; accepted are parameters by name with a default"),
        ("s.py", "def program(me, on_node=1):\n    pass\n", {"nodes": 2},
         "s.py: parameter on_node of program: the name"),
        ("s.py", "def program(me):\n    pass\n", {"nodes": 2, "parameters": (("ranks", "3"),)},
         "s.py has 3 ranks, and 2 nodes with 1 ranks are 2; accepted are at least as many"),
        ("s.py", "def program(me, nodes=3):\n    pass\n", {"nodes": 2},
         "s.py: parameter nodes of program: the name is taken"),
        ("s.py", "def program(me, timeout=8192):\n    pass\n", {"nodes": 2},
         "s.py: parameter timeout of program: the name is taken"),
        ("s.py", "def program(me, share=0.5):\n    pass\n", {"nodes": 2, "parameters": (("share", "nan"),)},
         "share=nan: accepted is a number"),
        ("s.py", "def program(me):\n    pass\n", {"nodes": 2, "software": "measured"},
         "--software measured: a library's own code was counted for messages of one size, and s.py has several"),
        ("s.txt", "", {}, "files in .goal and files in .py"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_run_is_refused(
    name: str, text: str, given: dict[str, Any], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(sentence)):
        ask.check(Question(workload=name, **given))
    with pytest.raises(UserError, match=r"none.(py: there is no such file|goal cannot be read|txt. is no workload)"):
        ask.check(Question(workload=f"none{Path(name).suffix}", nodes=2))


def test_names_that_are_taken_are_those_of_the_command() -> None:
    with cli.make_context("dryfly", [], resilient_parsing=True) as context:
        command = cli.get_command(context, "predict")
        assert command is not None
        long = {name[2:] for each in command.params for name in each.opts if name.startswith("--")}
    assert set(OPTIONS) | OTHER_OPTIONS == long | {"help"}


def test_more_ranks_than_a_run_may_have_are_one_line_of_the_spec() -> None:
    spec = skeleton.spec_of(Question(workload="halo", nodes=9216, ppn=96))
    assert "run.ranks 884736\n" in spec
    assert "run.rank." not in spec
    assert "node.nics 8\n" in spec


def test_counted_software_takes_the_place_of_the_machines_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A send: what the provider executes, and 100 instructions of the library."""
    monkeypatch.setattr(skeleton.libraries, "select", lambda _: SimpleNamespace(family="mpich"))
    monkeypatch.setattr(skeleton.software, "charged", lambda *_: "a table")
    monkeypatch.setattr(skeleton.software, "of_messages", lambda _, size: {"send": 100.0 * size})
    question = Question(workload="halo", nodes=8, software="measured", parameters=(("bytes", "2 B"),))
    costs = dict(line.split(" ", 1) for line in skeleton.spec_of(question).splitlines())
    machine = question.loaded
    executed = machine.number("host.provider.send") + 200
    assert int(costs["host.send_ps"]) == round(machine.number("host.instruction") * executed)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"workload": "hpl", "model": "skeleton"},
            "--software measured: a library's own code was counted for messages",
        ),
        (
            {"workload": "allreduce", "parameters": (("bytes", "193"),)},
            "--software measured: bytes=193: a library's own",
        ),
        ({"workload": "allreduce", "parameters": (("algorithm", "ring"),)}, "--software measured: algorithm=ring: a"),
        (
            {"workload": "allreduce", "parameters": (("library", "openmpi"),)},
            "--software measured: library=openmpi chooses ring (openmpi: ranks<8): a library's own code was counted "
            "for an allreduce by recursive_doubling; accepted is algorithm=recursive_doubling, without library",
        ),
        (
            {"workload": "allreduce", "mpi": "openmpi-5.0.11"},
            "--mpi openmpi-5.0.11: without algorithm the choice is MPICH's, and the code that is charged Open MPI's; "
            "accepted is algorithm=recursive_doubling",
        ),
        (
            {"workload": "gpcnet", "mpi": "openmpi", "parameters": (("test", "allreduce"),)},
            "accepted is --mpi mpich",
        ),
        (
            {"workload": "gpcnet"},
            "accepted is one test of gpcnet (test=latency, bandwidth or allreduce) with library=mpich",
        ),
    ],
)
def test_software_is_refused_where_it_was_not_counted(
    given: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"virtual_ps": 7, "chosen": ["allreduce of 8 B on 8 ranks: ring (openmpi: ranks<8)"]}
    monkeypatch.setattr(skeleton.motif, "ask", lambda *_, **__: said)
    question = Question(nodes=8, software="measured", **given)
    with pytest.raises(UserError, match=re.escape(sentence)):
        ask.check(question)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("workload", ["bcast", "alltoall"])
def test_a_tuning_file_becomes_rules_that_the_engine_reads(workload: str, tmp_path: Path) -> None:
    """As MPICH has it in JSON, and Open MPI in numbers: 3 is alltoall, 7 bcast; of any size on any communicator."""
    mpich, openmpi = tmp_path / "tuning.json", tmp_path / "rules.conf"
    leaf = {"bcast": "MPIR_Bcast_intra_binomial", "alltoall": "MPIR_Alltoall_intra_brucks"}[workload]
    ours = {"bcast": "binomial", "alltoall": "bruck"}[workload]
    mpich.write_text(json.dumps({f"collective={workload}": {f"algorithm={leaf}": {}}}), encoding="utf-8")
    openmpi.write_text("1\n{} 1 2 1 0 1 0 0\n".format({"bcast": 7, "alltoall": 3}[workload]), encoding="utf-8")
    for given, rules in (
        ((("selection", str(mpich)),), f"{workload} {ours}\n"),
        ((("selection", str(openmpi)), ("library", "openmpi")),
         {"bcast": "bcast linear\n", "alltoall": "alltoall scattered\n"}[workload]),
    ):  # fmt: skip
        question = Question(workload=workload, nodes=8, parameters=given)
        ask.check(question)
        assert skeleton.answer(question).warnings == (f"rules {rules!r}",)
    before = ask.key(question)
    openmpi.write_text("1\n7 1 2 1 0 2 0 0\n", encoding="utf-8")
    assert ask.key(question) != before


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((("selection", "none.json"),), "none.json cannot be read: No such file or directory"),
        ((("selection", "tuning.json"),), "tuning.json is no JSON"),
        (
            (("selection", "tuning.json"), ("algorithm", "ring")),
            "selection=tuning.json: with algorithm=ring nothing is",
        ),
        ((("library", "mpich"), ("algorithm", "ring")), "library=mpich: with algorithm=ring nothing is chosen"),
    ],
)
def test_a_choice_without_effect_or_sense_is_refused(
    given: tuple[tuple[str, str], ...], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tuning.json").write_text("1 2 3", encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(sentence)):
        ask.check(Question(workload="allreduce", nodes=8, parameters=given))
    with pytest.raises(UserError, match=r"^full=1: with library=mpich all of it is run; accepted is one of the two$"):
        ask.check(Question(workload="alltoall", nodes=8, parameters=(("full", "1"), ("library", "mpich"))))


@pytest.mark.usefixtures("stand_in")
def test_a_sentence_of_the_engine_is_the_users() -> None:
    with pytest.raises(UserError, match=r"^count = 13: not that one$"):
        skeleton.answer(Question(workload="allreduce", nodes=4, parameters=(("count", "13"),)))


def test_an_engine_that_fails_is_not_the_users_fault(stand_in: Path) -> None:
    (stand_in / "dryfly-motif").write_text("#!/bin/sh\necho out of memory >&2; exit 134\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"^out of memory$"):
        skeleton.answer(Question(workload="allreduce", nodes=4))


def test_the_command_prints_what_is_simulated_and_what_came_out(dryfly: Run, tmp_path: Path) -> None:
    ended = dryfly("predict", "hpl", "--model", "closed", "-N", "9234", "n=28773888", "--grid", "162x342",
                   "--json", "out.json")  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    for line in (
        "job       55,404 ranks on 9,234 of 10,624 nodes, 6 each, packed; seed 1",
        "workload  hpl: n=28,773,888, grid=162x342",
        "hpl: virtual time 15,69",
        "kind      predicted; one parameter is calibrated: gemm_exposed on 9,234 nodes of aurora",
        "consistent with them, not predictive",
    ):
        assert line in ended.stdout, line
    content = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert content["kind"] == "prediction"
    assert content["parameters"]["grid"] == "162x342"
    assert [row["nodes"] for row in content["published"]][-1] == 5439
    assert content["steps"][0]["bound"] == "gemm"


def test_json_on_standard_output_is_alone_there(dryfly: Run) -> None:
    ended = dryfly("predict", "hpl", "--machine", "alps", "-N", "8", "--json", "-")
    assert json.loads(ended.stdout)["machine"] == "alps"
    assert "virtual time" in ended.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["hpl", "-N", "20000"], "dryfly: aurora has 10624 nodes; 20000 are asked for"),
        (["hpk"], 'dryfly: "hpk" is no workload'),
        (["halo", "--fit"], "dryfly: --fit: halo has nothing to fit; accepted with hpl"),
        (["hpl", "--jsn", "x"], "dryfly: hpl has no parameter jsn; there are n, nb"),
        (["hpl", "-N", "8", "--timeout", "5"], "dryfly: --timeout has no effect on --model closed: leave it out"),
        (["hpl", "-N", "8", "--sweep", "nb=8,9", "--timeout", "5"], "dryfly: --timeout has no effect on --model clo"),
        (["hpl", "-N", "8", "--jobs", "0"], "dryfly: --jobs 0: accepted is 1 or more"),
    ],
)
def test_bad_input_is_one_sentence_and_status_two(dryfly: Run, words: list[str], sentence: str) -> None:
    ended = dryfly("predict", *words)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith(sentence)
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("workload", "parameter", "sentence"),
    [
        (
            "hpcg",
            ("local", "5000x5000x5000"),
            r"local=5000x5000x5000: 1 ranks of a node need .* the memory of its GPUs",
        ),
        ("nekbone", ("local", "1000x1000x1000"), r"local=1000x1000x1000: .*accepted is what fits 768 GiB"),
        ("amrwind", ("local", "2048x1024x1024"), r"local=2048x1024x1024: 1 ranks .*accepted is what fits 768 GiB"),
        ("graph500", ("scale", "37"), r"scale=37: .*accepted is what fits 1 TiB, the memory of its processors"),
    ],
)
def test_what_does_not_fit_into_the_memory_is_refused(workload: str, parameter: tuple[str, str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        ask.check(Question(workload=workload, nodes=8, ppn=1, parameters=(parameter,)))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("what", "swap", "what=swap: accepted is get or put"),
        ("ops", "0", "ops"),
        ("boxes", "3", "boxes = 3: accepted is a number from 4, two for each of the ranks along a side"),
        ("groups", "3", "groups = 3: accepted is a number that divides the 8 ranks"),
    ],
)
def test_an_exchange_of_fmm_that_cannot_be_is_refused(name: str, value: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        ask.ask(Question(workload="fmm", nodes=8, ppn=1, parameters=((name, value),)))


def test_groups_of_fmm_on_nodes_of_their_own_take_as_long_as_one() -> None:
    few = (("boxes", "8"), ("ops", "500"))
    one = ask.ask(Question(workload="fmm", nodes=8, ppn=1, parameters=few))
    two = ask.ask(Question(workload="fmm", nodes=16, ppn=1, parameters=(*few, ("groups", "2"))))
    assert two.figures["operations"] == one.figures["operations"] == 3584
    assert two.virtual_time_s == pytest.approx(one.virtual_time_s, rel=0.02)


def test_help_names_every_workload(dryfly: Run) -> None:
    said = " ".join(dryfly("predict", "--help").stdout.split())
    named = said[said.index("WORKLOAD is ") : said.index("Its parameters are ")]
    for row in ROWS:
        assert re.search(rf"\b{row.name}\b", named), row.name


def test_parameters_are_listed(dryfly: Run) -> None:
    ended = dryfly("predict", "halo", "--parameters")
    for name in ("grid", "bytes", "edge", "corner", "neighbours", "steps", "work"):
        assert re.search(rf"^ +{name} ", ended.stdout, re.MULTILINE), name


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("rate_flop_per_s", 1.012e18, "1.012 EF/s"),
        ("bytes_per_s", 2.5e12, "2.5 TB/s"),
        ("of_gemm_rate_share", 0.8769, "87.69%"),
        ("mean_ps", 2_500_000, "2.5 us"),
        ("panels", 74_932.0, "74,932"),
    ],
)
def test_a_figure_is_written_by_the_end_of_its_name(name: str, value: float, shown: str) -> None:
    assert figure.value_text(name, value) == shown
