"""What a report says of noise, and of several seeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dryfly.base.errors import UserError
from dryfly.report import noise, seeds_report
from dryfly.report.report import report


def _result(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "program": ["a.out"], "machine": "testbed", "ranks": 2, "nodes": 2, "placement": {"policy": "packed"},
        "seed": 1, "mpi": {"name": "mpich"}, "virtual_time_s": 1.0, "time": {"mean": {"waiting_s": 0.2}},
        "noise": {"of": "none", "detours": 0, "interrupted_s": 0.0, "delayed_s": 0.0},
    }  # fmt: skip
    return {**base, **changes}


_NOISY = _result(
    virtual_time_s=1.1,
    time={"mean": {"waiting_s": 0.27}},
    noise={"of": "x", "detours": 8, "interrupted_s": 0.04, "delayed_s": 0.02},
)


def test_what_a_run_has_lost_is_the_sum_of_its_parts() -> None:
    """Of two ranks: detours take 20 ms of each while it works and 10 ms at the end of its waits; each waits 70 ms more,
    10 of them for its own detours; so 10 of the 100 ms that are lost are left."""
    calls = {"call": ["MPI_Allreduce", "MPI_Recv", "MPI_Allreduce"], "waiting_s": [0.3, 0.04, 0.2]}
    silent = {"call": ["MPI_Allreduce", "MPI_Recv"], "waiting_s": [0.35, 0.05]}
    found = noise.cost(_NOISY, _result(), calls, silent)
    assert found.lost_s == pytest.approx(0.1)
    assert (found.interrupted_s, found.delayed_s) == (0.02, 0.01)
    assert found.waited_s == pytest.approx(0.06)
    assert found.rest_s == pytest.approx(0.01)
    assert [(call.name, call.count, round(call.more_s, 6)) for call in found.calls] == [
        ("MPI_Allreduce", 2, 0.15), ("MPI_Recv", 1, -0.01)
    ]  # fmt: skip
    said = noise._summary(found, _NOISY)
    assert "The run lost 100 ms of 1 s (10.00%)" in said
    assert "amplified 3.3 times" in said
    assert "60 ms (22.2%) are for the noise of others" in said
    assert "100% of the additional waiting is in collectives" in said


@pytest.mark.parametrize(
    ("last", "said", "amplified"),
    [
        (0.0, "(10.00%); 8 detours took 30 ms from a rank itself, as a mean, so noise is amplified 3.3 times", 10 / 3),
        (0.04, "(10.00%), 60 ms of it beyond the 40 ms by which the last rank left MPI_Init late; 8 detours took 30 ms "
               "from a rank itself, as a mean, so beyond the start these are amplified 2.0 times. Of", 2.0),
        (0.08, "(10.00%), 20 ms of it beyond the 80 ms by which the last rank left MPI_Init late; 8 detours took 30 ms "
               "from a rank itself, as a mean. Of", None),
        (0.1, "(10.00%), no more than the 100 ms by which the last rank left MPI_Init late; 8 detours took 30 ms from "
              "a rank itself, as a mean. Of", None),
    ],
)  # fmt: skip
def test_a_start_skew_is_no_amplified_detour(last: float, said: str, amplified: float | None) -> None:
    """Ranks begin half of it late, as a mean, which is not in the rest then."""
    counted = {**_NOISY["noise"], "start_skew_s": 0.1, "last_start_s": last, "mean_start_s": last / 2}
    noisy = {**_NOISY, "noise": counted, "virtual_time_s": 1.1 if last < 0.1 else 1.09999999}
    found = noise.cost(noisy, _result(), {"call": [], "waiting_s": []}, {"call": [], "waiting_s": []})
    assert said in noise._summary(found, noisy)
    assert found.amplified == (None if amplified is None else pytest.approx(amplified))
    assert found.rest_s == pytest.approx(0.01 - last / 2, abs=1e-6)


def test_an_earlier_result_tells_how_late_ranks_may_have_left() -> None:
    earlier = {**_NOISY, "noise": {**_NOISY["noise"], "start_skew_s": 0.2}}
    found = noise.cost(earlier, _result(), {"call": [], "waiting_s": []}, {"call": [], "waiting_s": []})
    assert (found.last_start_s, found.late_s, found.amplified) == (0.2, 0.0, None)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("MPI_Iallreduce", True), ("MPI_Reduce_scatter_block", True), ("MPI_Allgatherv", True), ("MPI_Init", False),
     ("MPI_Isend", False), ("MPI_Waitall", False)],
)  # fmt: skip
def test_collectives_are_known_by_name(name: str, is_one: bool) -> None:
    assert noise.Call(name=name, count=1, silent_s=0, noisy_s=0).is_collective is is_one


@pytest.mark.parametrize(
    ("noisy", "silent", "message"),
    [
        (_NOISY, _NOISY, r"this run has noise \(x\); accepted is one without"),
        (_result(), _result(), "the run of the report has no noise to compare"),
        (_NOISY, _result(seed=2), "another seed than the run of the report has: 2, not 1"),
        (_NOISY, None, "is no recorded run; run the same command with --noise none --seed 1"),
    ],
)
def test_another_run_is_refused(
    noisy: dict[str, Any], silent: dict[str, Any] | None, message: str, tmp_path: Path
) -> None:
    if silent is not None:
        (tmp_path / "result.json").write_text(json.dumps(silent))
    with pytest.raises(UserError, match=message):
        noise.load_silent(tmp_path, noisy)


_MADE: dict[str, Any] = {
    "network": "packet", "provider": "cxi", "settings": {}, "software": {"table": "mpich-5.0.2", "charged_s": 0.1},
    "compute": {"mode": "none", "factor": 1.0, "measured_s": 0.1}, "storage": [], "binding": [{"bound": False}],
    "mpi": {"name": "mpich-5.0.2", "libmpi": ["/a/libmpi.so"]}, "dryfly": "1", "spec": "host.match_ps 5\nrun.seed 1\n",
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"network": "flow"}, "network than the run of the report has: flow, not packet"),
        ({"program": ["a.out", "7"]}, r"program\.1 than the run of the report has: 7, not none"),
        ({"compute": {"mode": "measured"}}, r"compute\.mode than the run of the report has: measured, not none"),
        ({"software": {"table": ""}}, r"software\.table than the run of the report has: none, not mpich-5\.0\.2"),
        ({"mpi": {"name": "mpich-5.0.2", "libmpi": ["/b"]}}, r"mpi\.libmpi\.0 .*: /b, not /a/libmpi\.so"),
        ({"provider": "linkx"}, "provider than the run of the report has: linkx, not cxi"),
        ({"settings": {"FI_CXI_X": "1"}}, r"settings\.FI_CXI_X than the run of the report has: 1, not none"),
        ({"storage": [{"direction": "read", "bytes": 5}]}, r"storage\.0\.direction .*: read, not none"),
        ({"binding": [{"bound": True}]}, r"binding\.0\.bound than the run of the report has: true, not false"),
        ({"spec": "host.match_ps 6\nrun.seed 1\n"}, r"host\.match_ps than the run of the report has: 6, not 5"),
        ({"spec": "run.seed 1\n"}, r"host\.match_ps than the run of the report has: none, not 5"),
        ({"dryfly": "2"}, "another dryfly than the run of the report has: 2, not 1"),
    ],
)
def test_a_run_that_differs_in_more_than_noise_is_refused(changes: dict[str, Any], named: str, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps(_result(**_MADE | changes)))
    with pytest.raises(UserError, match=named):
        noise.load_silent(tmp_path, {**_NOISY, **_MADE})


def test_what_came_of_a_run_may_differ_and_so_may_the_noise_of_its_spec(tmp_path: Path) -> None:
    silent = _MADE | {
        "compute": {"mode": "none", "factor": 1.0, "measured_s": 0.2},
        "software": {"table": "mpich-5.0.2", "charged_s": 0},
    }
    (tmp_path / "result.json").write_text(json.dumps(_result(**silent)))
    spec = f"{_MADE['spec']}noise.sources 1\n"
    assert noise.load_silent(tmp_path, {**_NOISY, **_MADE, "spec": spec})["seed"] == 1
    earlier = {name: value for name, value in _MADE.items() if name not in ("provider", "settings")}
    assert noise.load_silent(tmp_path, {**_NOISY, **earlier})["seed"] == 1


def _seeds(**changes: Any) -> dict[str, Any]:
    def figure(*values: float) -> dict[str, Any]:
        low, median, high = sorted(values)
        return {"median": median, "interval": [low, high], "least": low, "most": high, "values": list(values)}

    base: dict[str, Any] = {
        "format": 1, "kind": "seeds", "program": ["osu"], "seeds": [4, 5, 6], "confidence": None,
        "figures": {"16": figure(2, 3, 4), "8": figure(1, 2, 3), "16, figure 2": figure(5, 6, 7),
                    "8, figure 2": figure(5, 6, 7), "virtual time": figure(1e-3, 2e-3, 3e-3)},
        "figures_without_noise": {"8": 1.5, "16": 2.5},
        "runs": [{"result": _NOISY}], "without_noise": {"result": _result()}, "noise_cost": {"text": "noise took 1 s"},
    }  # fmt: skip
    return {**base, **changes}


def test_figures_of_seeds_are_curves_by_size() -> None:
    first, second = seeds_report.curves(_seeds())
    assert (first.name, first.sizes, first.without) == ("figure 1", (8, 16), (1.5, 2.5))
    assert [figure["median"] for figure in first.figures] == [2, 3]
    assert (second.name, second.sizes, second.without) == ("figure 2", (8, 16), None)


def test_a_page_of_seeds_is_drawn_and_what_is_none_is_refused(tmp_path: Path) -> None:
    file, page = tmp_path / "seeds.json", tmp_path / "page.html"
    file.write_text(json.dumps(_seeds()))
    report(str(file), str(page))
    shown = page.read_text()
    assert "Too few seeds for an interval" in shown
    assert shown.count("<svg") == 3
    assert "noise took 1 s." in shown
    file.write_text(json.dumps(_seeds(runs=[])))
    with pytest.raises(UserError, match="is no complete --json of dryfly run --seeds"):
        report(str(file), str(page))
    with pytest.raises(UserError, match="--silent goes with a recorded run"):
        report(str(file), str(page), silent=str(tmp_path))
    file.write_text(json.dumps(_seeds()))
    with pytest.raises(UserError, match=r"accepted is a name that ends with \.html"):
        report(str(file), str(tmp_path / "page.png"))
