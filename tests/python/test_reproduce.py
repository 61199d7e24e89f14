from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from dryfly.base.errors import RunError, UserError
from dryfly.base.paths import data_folder
from dryfly.evidence import measure, prediction, published, reproduce
from dryfly.evidence.measure import source_of
from dryfly.evidence.published import Measurement, Registry, Row
from dryfly.predict import facts
from dryfly.study.kept import Entry

REGISTRY = published.load("fabric")
AURORA = published.load("aurora")
POLARIS = published.load("polaris")
ABLATION = published.load("aurora/hpl-ablation")
KNOWN = "known are aurora, aurora/gpu, aurora/hpl-ablation, cray-mpt, crusher, fabric, fmm, polaris"
STUDIES = {name: published.load(name) for name in ("aurora/gpu", "cray-mpt", "crusher", "fmm")}


def row(**changes: object) -> Row:
    base: dict[str, object] = {
        "id": "", "constant": None, "judgement": "", "accepts": None,
        "quantity": "x", "kind": "predicted", "unit": "us", "least": 2.0, "most": 2.0, "figure": "run/8", "minus": "",
        "over": "", "scale": 1.0, "reference": "provider-diagnostics", "source": "SHS", "certainty": "H", "note": "",
    }  # fmt: skip
    return Row(**{**base, **changes})  # type: ignore[arg-type]


def test_every_row_says_where_its_figure_comes_from() -> None:
    sources = tomllib.loads((data_folder() / "sources.toml").read_text(encoding="utf-8"))["sources"]
    studies = [row for study in STUDIES.values() for row in study.rows]
    for each in (*REGISTRY.rows, *AURORA.rows, *ABLATION.rows, *studies):
        assert all(key.strip() in sources for key in each.source.split(";")), each.quantity
        assert each.certainty in ("H", "M+", "M", "D"), each.quantity


@pytest.mark.parametrize(
    "registry", [REGISTRY, AURORA, ABLATION, *STUDIES.values()], ids=["fabric", "aurora", "ablation", *STUDIES]
)
def test_every_measurement_is_used_and_names_what_exists(registry: Registry) -> None:
    used = {figure.split("/")[0] for each in registry.rows for figure in each.figures}
    assert used == set(registry.measurements)
    for measurement in registry.measurements.values():
        ways = (measurement.program, measurement.pattern, measurement.predict)
        assert sum(bool(way) for way in ways) == 1, measurement.name
        if measurement.predict:
            prediction.check(measurement, {})
        if measurement.program:
            assert source_of(measurement.program).is_file(), measurement.name


def test_every_row_cites_a_heading_of_the_page_of_measurements() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "model" / "measurements.md").read_text(encoding="utf-8")
    headings = {line[4:].lower().replace(" ", "-") for line in page.splitlines() if line.startswith("### ")}
    studies = [row for study in STUDIES.values() for row in study.rows]
    assert {each.reference for each in (*REGISTRY.rows, *AURORA.rows, *POLARIS.rows, *studies)} == headings - {
        "not-used"
    }


def test_every_row_of_a_study_has_a_verdict_or_is_untested() -> None:
    for study in STUDIES.values():
        assert all(each.accepts is not None or each.kind == "untested" for each in study.rows)


def test_no_row_of_the_network_that_was_published_for_gpus_is_measured_with_the_hosts_memory() -> None:
    assert not [each.quantity for each in REGISTRY.rows if each.kind == "device"]
    for each in REGISTRY.rows:
        if "device buffers" in each.quantity and each.figures:
            measured = REGISTRY.measurements[each.figure.split("/")[0]]
            assert "-d" in measured.arguments, each.quantity


def test_a_verdict_is_by_what_the_row_accepts_and_verdicts_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    rows = tuple(
        row(quantity=name, kind="ordering", judgement="above", least=None, most=None, figure=f"run/{name}",
            accepts=(1.5, 3.0))
        for name in ("least", "most", "below", "above")
    )  # fmt: skip
    untested = row(quantity="none", kind="untested", figure="", note="it is not to be had")
    registry = Registry(measurements={"run": Measurement(name="run", machine="testbed")}, rows=(*rows, untested))
    figures = {"run": [{"least": 1.5, "most": 3.0, "below": 1.49, "above": 3.01}]}
    results = [reproduce._result(registry, each, figures) for each in registry.rows]
    assert [each["verdict"] for each in results] == ["comes out"] * 2 + ["does not"] * 2 + ["cannot be tested"]
    summary = reproduce.summarise(results)
    assert summary["verdicts"] == {"comes out": 2, "does not": 2, "cannot be tested": 1}
    reproduce._show(results, [""] * len(results), summary)
    assert "5 rows with a verdict: 2 come out, 2 do not, 1 cannot be tested" in capsys.readouterr().out


def test_where_no_row_has_a_verdict_none_is_given_or_counted() -> None:
    registry = Registry(measurements={}, rows=(row(kind="untested", figure="", note="why"),))
    result = reproduce._result(registry, registry.rows[0], {})
    assert result["verdict"] is None
    assert set(reproduce.summarise([result])["verdicts"].values()) == {0}


def test_rows_of_a_library_that_is_not_set_up_are_untested_and_say_how_it_is_had() -> None:
    rare = Measurement(name="rare", machine="testbed", program="latency", mpi="none-such-1.0", needs="build it")
    usual = Measurement(name="run", machine="testbed", program="latency", mpi="mpich")
    rows = (row(figure="run/8", over="rare/8", note="a note"), row())
    known = reproduce.of_this_computer(Registry(measurements={"rare": rare, "run": usual}, rows=rows))
    assert [(each.kind, each.figures, each.note) for each in known.rows] == [
        ("untested", (), "build it"), ("predicted", ("run/8",), "")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"kind": "ordering", "least": None, "most": None, "judgement": "above"}, "an ordering has `accepts`"),
        ({"accepts": (3.0, 1.0)}, r"accepts = \[3.0, 1.0\]: accepted is the least and the most"),
    ],
)
def test_a_row_whose_verdict_has_no_sense_is_refused(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        published._check("x.toml", row(**changes), {"run": Measurement(name="run", machine="testbed")})


def test_a_measurement_binds_its_ranks_and_refuses_other_keys() -> None:
    bound = Measurement(name="run", machine="frontier", program="latency", mpi="openmpi", run={"gpu_bind": "map_gpu:1"})
    assert measure.case_of(bound, {}).gpu_bind == "map_gpu:1"
    wrong = replace(bound, run={"seed": 3})
    with pytest.raises(UserError, match='run has "seed"; accepted are provider, on_node'):
        published._check("x.toml", row(), {"run": wrong})


@pytest.mark.parametrize("may_fail", [True, False])
def test_a_program_that_was_published_to_fail_may(may_fail: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RunError("ended with status 1", exit_status=1)

    monkeypatch.setattr(measure, "_run_program", fails)
    measurement = Measurement(name="run", machine="testbed", program="latency", mpi="mpich", may_fail=may_fail)
    if may_fail:
        found = measure.measure(measurement, given={}, entry=Entry())
        assert (found.figures, found.warnings) == ({"right": 0.0}, ("ended with status 1",))
        return
    with pytest.raises(RunError, match="ended with status 1"):
        measure.measure(measurement, given={}, entry=Entry())


def test_rows_of_aurora_neither_go_nor_change_their_kind_unseen() -> None:
    kinds = {each.id.removeprefix("aurora/"): each.kind for each in AURORA.rows}
    hpl = {f"hpl/{nodes}": "consistent" for nodes in (8748, 8632, 8109, 8058, 7200, 6888, 6273, 5439)}
    machine = dict.fromkeys(("injection", "global", "bisection", "fabric-ports"), "calibrated")
    without = (
        "fmm/get-1x8-hmem", "fmm/get-1x32-hmem",
        *(f"fmm/put-1x{nodes}-hmem" for nodes in (8, 16, 32)),
    )  # fmt: skip
    assert kinds == {
        **{f"machine/{name}": kind for name, kind in machine.items()},
        "hpl/9234": "calibrated",
        **hpl,
        "hpl/time": "calibrated",
        "alltoall/9658": "predicted",
        "graph500/8192": "predicted",
        "hpcg/4096": "predicted",
        "amrwind/8192": "judged",
        "amrwind/8192-above": "judged",
        "hacc/1024": "predicted",
        "hacc/8192": "predicted",
        "lammps/9216": "predicted",
        "nekbone/4096-nx9": "predicted",
        "nekbone/4096-nx12": "predicted",
        **{
            f"gpcnet/{load}-{test}{tail}": "predicted"
            for load in ("isolated", "congested", "impact")
            for test in ("latency", "bandwidth", "allreduce")
            for tail in ("", "-99")
        },
        **{f"fmm/{what}-1x{nodes}": "device" for what in ("get", "put") for nodes in (8, 16, 32)},
        **dict.fromkeys(("fmm/get-1x16-hmem", "fmm/get-9x16-hmem", "fmm/nine-over-one"), "device"),
        **{f"hplmxp/{name}": "predicted" for name in ("9500", "9500-fp16", "9234")},
        "hplmxp/growth": "consistent",
        "hpl/crossover": "judged",
        **{f"mbw_mr/{name}": "judged" for name in ("10262", "nodes", "ppn")},
        "hplmxp/ratio": "predicted",
        **dict.fromkeys(without, "untested"),
    }


def test_rates_of_hpl_are_those_that_predict_has_beside_its_own() -> None:
    of_predict = {row.nodes: row.rate / 1e15 for row in facts.hpl_published().rows}
    of_rows = {int(nodes): each.least for each in AURORA.rows if (nodes := each.id.partition("/hpl/")[2]).isdecimal()}
    assert of_rows == of_predict
    first = of_predict[9234]
    for each in AURORA.rows:
        if each.constant is not None and each.id.startswith("aurora/hpl/"):
            nodes = AURORA.measurements[each.figure.split("/")[0]].nodes
            assert each.constant == pytest.approx(first * nodes / 9234, abs=0.005)


def test_a_row_may_be_named_in_place_of_its_subject(capsys: pytest.CaptureFixture[str]) -> None:
    assert published.divided("aurora/hpl/9234") == ("aurora", "aurora/hpl/9234")
    assert published.divided("aurora/hpl-ablation/hpl/amx") == ("aurora/hpl-ablation", "aurora/hpl-ablation/hpl/amx")
    assert published.divided("aurora/hpl-ablation") == ("aurora/hpl-ablation", "")
    assert published.divided("nonsense/hpl") == ("nonsense/hpl", "")
    options = reproduce.Options(only=("aurora/hplmxp/growth",), json_file="-", quiet=True)
    assert reproduce.reproduce("aurora", options) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["id"] == "aurora/hplmxp/growth"


def test_what_a_prediction_cannot_take_is_refused() -> None:
    measurement = AURORA.measurements["hpl-9234"]
    with pytest.raises(
        UserError, match="--compute: measurement hpl-9234 is a prediction; accepted are --machine, --set"
    ):
        prediction.check(measurement, {"compute": "model"})
    with pytest.raises(UserError, match="-N: measurement hpl-9234 is a prediction"):
        prediction.check(measurement, {"nodes": 64})
    with pytest.raises(UserError, match="--noise"):
        prediction.check(measurement, {"noise": "machine"})
    with pytest.raises(UserError, match="--noise: measurement machine is a prediction; accepted are --machine, --set"):
        prediction.check(AURORA.measurements["machine"], {"noise": "machine"})


def test_hpl_is_reproduced_beside_what_was_published(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    options = reproduce.Options(only=("aurora/hpl/*", "aurora/machine/*"), json_file=str(file), quiet=True)
    assert reproduce.reproduce("aurora", options) == 0
    content = json.loads(file.read_text(encoding="utf-8"))
    rows = {each["id"]: each for each in content["rows"]}
    assert len(rows) == 15
    (picture,) = [each["id"] for each in rows.values() if each["error"] is None]
    assert picture == "aurora/hpl/crossover"
    assert all(abs(each["error"]) < 0.025 for each in rows.values() if each["error"] is not None)
    assert rows["aurora/hpl/7200"]["constant_error"] == pytest.approx(-0.0201, abs=1e-4)
    assert content["wall_time_s"]["hpl-7200"] > 0
    assert content["summary"]["rows"]["consistent"] == 8


@pytest.mark.parametrize(
    ("changes", "value", "error"),
    [
        ({}, 2.2, 0.1),
        ({}, 1.5, -0.25),
        ({"least": 1.85, "most": 1.91}, 1.9, 0.0),  # inside a published range
        ({"least": 1.0, "most": 2.0}, 2.5, 0.25),  # against its nearer end
    ],
)
def test_an_error_is_taken_from_the_published_figure(changes: dict[str, object], value: float, error: float) -> None:
    assert reproduce._error(row(**changes), value) == pytest.approx(error)


def test_figures_are_subtracted_divided_and_scaled() -> None:
    figures = {"run": {"8": 6.0, "4": 2.0}}
    assert reproduce._value(row(minus="run/4"), figures) == 4.0
    assert reproduce._value(row(over="run/4"), figures) == 3.0
    assert reproduce._value(row(scale=1e-3), figures) == pytest.approx(0.006)
    with pytest.raises(UserError, match="has no figure 16"):
        reproduce._value(row(figure="run/16"), figures)


def test_the_median_counts_every_predicted_row_and_no_other() -> None:
    registry = Registry(measurements={"run": Measurement(name="run", machine="testbed", program="latency")}, rows=())
    figures = {"run": [{"8": 2.1, "16": 3.0, "32": 2.0}]}
    rows = [
        reproduce._result(registry, each, figures)
        for each in (
            row(),
            row(figure="run/16"),
            row(figure="run/32"),
            row(figure="run/16", kind="device"),
            row(figure="run/32", kind="calibrated", note="n"),
            row(figure="", kind="untested", note="n"),
        )
    ]
    summary = reproduce.summarise(rows)
    assert summary["predicted_median_absolute_error"] == pytest.approx(0.05)  # of 5 %, 50 % and 0
    assert summary["predicted_within_10_percent"] == 2
    assert summary["predicted_and_device_median_absolute_error"] == pytest.approx(0.275)  # 0, 5, 50, 50
    assert summary["rows"] == {
        "predicted": 3,
        "calibrated": 1,
        "consistent": 0,
        "device": 1,
        "judged": 0,
        "ordering": 0,
        "untested": 1,
    }
    assert len(rows) == 6


def test_a_row_of_several_seeds_is_the_median_of_what_each_gives() -> None:
    runs = {name: Measurement(name=name, machine="testbed", program="latency") for name in ("run", "other")}
    figures = {"run": [{"8": 6.0}, {"8": 2.0}, {"8": 3.0}], "other": [{"8": 2.0}]}
    found = reproduce._result(
        Registry(measurements=runs, rows=()), row(over="other/8"), figures, {"run": "machine (linux)", "other": "none"}
    )
    assert found["dryfly"] == 1.5
    assert found["seeds"] == {"count": 3, "least": 1.0, "most": 3.0}
    assert found["noise"] == "machine (linux)"
    assert reproduce._shown_kind(found) == "predicted, noise"


def test_what_noise_decides_is_measured_with_several_seeds() -> None:
    noisy = Measurement(name="x", machine="testbed", pattern="ring", noise="machine", seeds=5)
    assert reproduce.seeds_of(noisy, reproduce.Options()) == range(1, 6)
    assert reproduce.seeds_of(noisy, reproduce.Options(given={"noise": "none"})) == range(1, 2)
    assert reproduce.seeds_of(noisy, reproduce.Options(given={"seed": 7}, seeds=2)) == range(7, 9)
    assert {each.name for each in REGISTRY.measurements.values() if each.noise != "none"} == {
        "ring", "ring-bandwidth", "ring-of-64", "ring-bandwidth-of-64", "ring-barrier-of-64", "allreduce",
        "cxi-send-latency-noise", "cxi-read-latency-noise",
    }  # fmt: skip


def test_what_is_not_there_is_said_in_one_sentence() -> None:
    with pytest.raises(UserError, match=KNOWN):
        published.load("weather")
    with pytest.raises(UserError, match="no row has such"):
        reproduce.reproduce("fabric", reproduce.Options(only=("zebra",)))


def test_each_choice_of_the_campaigns_is_undone_beside_its_class() -> None:
    classes = {each.id.removeprefix("aurora/hpl-ablation/"): each.judgement for each in ABLATION.rows}
    assert classes == {
        **{f"hpl/{name}": "critical" for name in ("nb-192", "nb-768", "grid-square", "grid-flat", "pinning", "staging",
                                                  "overlap", "look-ahead")},
        **{f"hplmxp/{name}": "critical" for name in ("nb-768", "nb-3072", "ppn-6", "pinning", "overlap", "amx")},
        **{f"{solver}/gpu-mpi": "incremental" for solver in ("hpl", "hplmxp")},
        **{f"{solver}/nic-map": "correctness" for solver in ("hpl", "hplmxp")},
        "hpl/nics-of-phases": "incremental",
        "hplmxp/storage": "enabling",
        **{f"hybrid/{name}": "correctness" for name in ("collective", "p2p", "hybrid-panel")},
        "completion-queue": "correctness",
        **{f"{solver}/registration": "not classed" for solver in ("hpl", "hplmxp")},
        "hpl/matrix": "not classed",
    }  # fmt: skip
    assert {each.kind for each in ABLATION.rows} == {"judged", "untested"}


def test_what_is_undone_in_closed_forms_has_the_sign_that_its_mechanism_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Worse places, one queue and no look-ahead cannot make a run faster."""
    file = tmp_path / "ablation.json"
    options = reproduce.Options(only=("hpl/*", "hplmxp/*"), json_file=str(file), quiet=True)
    assert reproduce.reproduce("aurora/hpl-ablation", options) == 0
    capsys.readouterr()
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    effects = {each["id"].removeprefix("aurora/hpl-ablation/"): each["dryfly"] for each in rows}
    assert len(effects) == 23
    worse = ("nic-map", "pinning", "overlap", "registration")
    assert all(effects[f"{solver}/{name}"] < 0 for solver in ("hpl", "hplmxp") for name in worse)
    assert all(effects[name] < 0 for name in ("hpl/staging", "hpl/look-ahead", "hplmxp/storage", "hplmxp/amx"))
    on_gpus = [name for name in effects if name.startswith("hpl/") and name != "hpl/matrix"]
    assert effects["hpl/matrix"] < effects["hpl/look-ahead"] == min(effects[name] for name in on_gpus)


def test_a_row_that_is_judged_has_an_effect_and_no_error() -> None:
    effect = {"figure": "run/9", "minus": "run/8", "over": "run/8", "scale": 100.0}
    judged = row(kind="judged", judgement="critical", least=None, most=None, unit="%", **effect)
    registry = Registry(
        measurements={"run": Measurement(name="run", machine="testbed", pattern="ring")}, rows=(judged,)
    )
    found = reproduce._result(registry, judged, {"run": [{"8": 4.0, "9": 3.0}]})
    assert (found["published"], found["dryfly"], found["error"]) == ("critical", -25.0, None)
    summary = reproduce.summarise([found])
    assert summary["rows"]["judged"] == 1
    assert summary["predicted_median_absolute_error"] is None


def test_a_row_without_a_number_is_judged_or_untested() -> None:
    with pytest.raises(UserError, match="without a published number is judged"):
        published._check("x", row(least=None, most=None), {"run": Measurement(name="run", machine="testbed")})


@pytest.mark.parametrize("subject", ["aurora/nothing", "../published/aurora", "aurora/", ""])
def test_only_what_is_there_is_a_subject(subject: str) -> None:
    with pytest.raises(UserError, match=KNOWN):
        published.load(subject)


def test_a_prediction_that_is_kept_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def table(*, jobs: int) -> object:
        file = tmp_path / f"{jobs}.json"
        options = reproduce.Options(only=("*hpl/nb-192", "*hpl/staging"), json_file=str(file), jobs=jobs, quiet=True,
                                    out=str(tmp_path / "kept"))  # fmt: skip
        assert reproduce.reproduce("aurora/hpl-ablation", options) == 0
        return json.loads(file.read_text(encoding="utf-8"))["rows"]

    first = table(jobs=1)
    assert len(list((tmp_path / "kept").iterdir())) == 3
    monkeypatch.setattr(prediction.ask, "ask", lambda *_, **__: pytest.fail("asked again"))
    assert table(jobs=2) == first
    capsys.readouterr()


def test_what_a_prediction_warns_of_stands_below_the_table_and_in_the_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kept answers have their warnings too."""
    warned = (Measurement(name="tight", machine="aurora", predict="hpl", nodes=64, ppn=6,
                          parameters=(("matrix", "host"), ("pmap", "row")),),)  # fmt: skip
    registry = Registry(
        measurements={each.name: each for each in warned},
        rows=(row(figure="tight/s", quantity="too much"), row(figure="tight/us", quantity="the same")),
    )
    for _ in range(2):
        file = tmp_path / "rows.json"
        options = reproduce.Options(json_file=str(file), out=str(tmp_path / "kept"), quiet=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reproduce, "load", lambda _: registry)
            assert reproduce.reproduce("made up", options) == 0
        shown = capsys.readouterr().out
        assert shown.count("predicted [1]") == 2
        assert "warnings of predictions\n  [1] matrix=host: " in shown
        rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
        assert all(len(each["warnings"]) == 1 and each["warnings"][0].startswith("matrix=host: ") for each in rows)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_measurement_that_fails_is_marked_and_the_others_are_shown(
    jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = [
        Measurement(
            name="slow", machine="testbed", predict="hpcg", nodes=8, ppn=1, parameters=(("iterations", "1000000"),)
        ),
        Measurement(name="quick", machine="aurora", predict="hpl", model="closed", nodes=16, ppn=6),
    ]
    rows = (
        row(figure="slow/s", quantity="an iteration"),
        row(figure="quick/s", over="slow/s", quantity="how many"),
        row(figure="quick/s", quantity="a run"),
    )
    registry = Registry(measurements={each.name: each for each in made}, rows=rows)
    monkeypatch.setattr(reproduce, "load", lambda _: registry)
    file = tmp_path / "rows.json"
    options = reproduce.Options(json_file=str(file), jobs=jobs, quiet=True, timeout_s=0.2)
    assert reproduce.reproduce("made up", options) == 1
    shown = capsys.readouterr()
    assert "dryfly: slow: hpcg has not ended after 0.2 s" in shown.err
    assert shown.out.count("predicted, failed") == 2
    assert "failed\n  an iteration and 1 more: slow: hpcg has not ended after 0.2 s" in shown.out
    assert "1 predicted rows: " in shown.out
    assert "2 rows without a figure, for its measurement failed" in shown.out
    written = json.loads(file.read_text(encoding="utf-8"))
    assert [each["failure"] is None for each in written["rows"]] == [False, False, True]
    assert [each["dryfly"] is None for each in written["rows"]] == [True, True, False]
    assert (written["summary"]["rows_failed"], written["summary"]["rows"]["predicted"]) == (2, 1)


def test_seeds_are_refused_where_nothing_is_drawn() -> None:
    with pytest.raises(UserError, match="--seeds 3 has no effect: closed forms and what a machine's file adds up to"):
        reproduce.reproduce("aurora", reproduce.Options(only=("aurora/hpl/9234",), seeds=3))
    with pytest.raises(UserError, match="--seed: measurement hpl-9234 is a prediction; accepted are --machine, --set"):
        prediction.check(AURORA.measurements["hpl-9234"], {"seed": 3})
    closed = Measurement(name="x", machine="aurora", predict="hpl", model="closed")
    assert reproduce.seeds_of(closed, reproduce.Options(seeds=5)) == range(1, 2)
    drawn = Measurement(name="x", machine="aurora", predict="halo")
    assert reproduce.seeds_of(drawn, reproduce.Options(seeds=5)) == range(1, 6)


def test_flaps_of_a_measurement_count_by_what_they_are(tmp_path: Path) -> None:
    measurement = ABLATION.measurements["flaps-p2p"]
    other = replace(measurement, faults=({"link": "edge", "per_hour": 5},))
    keys = []
    for number, each in enumerate((measurement, measurement, other)):
        folder = tmp_path / str(number)
        folder.mkdir()
        keys.append(prediction._key(each, prediction.question_of(each, {}, folder)))
    assert keys[0] == keys[1] != keys[2]
