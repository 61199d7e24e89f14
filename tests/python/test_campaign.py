"""Drawn histories of a long job: against Daly's theory where failures are simple, by hand where they are not."""

from __future__ import annotations

import math
import random
import re
import statistics
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dryfly.base.errors import RunError, UserError
from dryfly.oracle import campaign
from dryfly.oracle.campaign import Job, Policy, Rates
from dryfly.predict import ask, sweep
from dryfly.predict.question import Question
from dryfly.predict.sweep import Axis, Folder

JOB = Job(work=50_000.0, nodes=100, spare=10, interval=1_000.0, checkpoint=50.0, restart=80.0)
SIMPLE = Rates(
    failure=400_000.0, intermittent=0.0, permanent=0.0, recurs=3_600.0, burst=0.0, burst_nodes=0, burst_for=0.0,
    flaps=0.0, stall=0.0,
)  # fmt: skip
POLICY = Policy(strikes=3, within=1e9, at_once=True, recycle=True, repair=86_400.0)


def histories(job: Job, rates: Rates, policy: Policy = POLICY, count: int = 4_000) -> list[campaign.History]:
    draw = random.Random(7)
    return [campaign.history(job, rates, policy, draw) for _ in range(count)]


def mean(job: Job, rates: Rates, policy: Policy = POLICY, count: int = 4_000) -> float:
    return statistics.fmean(each.elapsed for each in histories(job, rates, policy, count))


def asked(*parameters: tuple[str, str], **given: Any) -> Question:
    return Question(**{"workload": "campaign", "nodes": 9_000, "parameters": parameters, **given})


@pytest.mark.parametrize("interval", [0.0, 300.0, 1_000.0, 5_000.0])
def test_simple_failures_take_as_long_as_daly_says(interval: float) -> None:
    """Within 2 %: his last interval is kept too, and ours is not."""
    job = replace(JOB, interval=interval, work=50_000.0 if interval else 8_000.0)
    between = campaign.time_between_failures(job, SIMPLE, POLICY)
    assert between == 4_000.0
    assert mean(job, SIMPLE) == pytest.approx(campaign.expected(job, between), rel=0.02)


def test_no_failure_is_as_likely_as_poisson_says() -> None:
    found = histories(replace(JOB, interval=0.0, work=4_000.0), SIMPLE)
    share = sum(not each.failures for each in found) / len(found)
    assert share == pytest.approx(math.exp(-1), abs=0.025)


def test_dalys_interval_is_better_than_its_half_and_its_double() -> None:
    best = campaign.best_interval(4_000.0, JOB.checkpoint)
    times = [mean(replace(JOB, interval=best * factor), SIMPLE) for factor in (0.4, 1.0, 2.5)]
    assert times[1] < min(times[0], times[2])


def test_where_time_went_adds_up() -> None:
    rates = replace(SIMPLE, intermittent=0.3, permanent=0.3, burst=20_000.0, burst_nodes=30, burst_for=600.0,
                    flaps=0.01, stall=6.0)  # fmt: skip
    for each in histories(JOB, rates, count=50):
        assert each.completed
        assert each.elapsed == pytest.approx(JOB.work + sum(each.lost.values()))
        moving = each.elapsed - each.lost["waiting for nodes"]
        assert each.lost["stalls by flaps"] == pytest.approx(moving * 0.06 / 1.06)


def test_an_intermittent_node_fails_until_it_is_taken_out() -> None:
    rates = replace(SIMPLE, intermittent=1.0)
    failures = [
        statistics.fmean(each.failures for each in histories(JOB, rates, replace(POLICY, strikes=strikes), count=300))
        for strikes in (1, 3, 6)
    ]
    assert failures[0] < failures[1] < failures[2]
    stays = histories(JOB, rates, replace(POLICY, at_once=False), count=10)
    assert statistics.fmean(each.failures for each in stays) > failures[2]
    assert not any(each.taken_out for each in stays)


def test_without_spare_nodes_a_job_waits_for_the_repair() -> None:
    rates = replace(SIMPLE, permanent=1.0)
    slow = histories(replace(JOB, spare=0), rates, replace(POLICY, repair=10_000.0), count=200)
    fast = histories(replace(JOB, spare=0), rates, replace(POLICY, repair=10_000.0 / 84), count=200)
    waited = [statistics.fmean(each.lost["waiting for nodes"] for each in found) for found in (slow, fast)]
    assert waited[0] > 20 * waited[1] > 0
    assert all(each.completed for each in slow)


def test_without_spare_and_repaired_nodes_it_is_given_up() -> None:
    rates = replace(SIMPLE, permanent=1.0)
    found = histories(replace(JOB, spare=2), rates, replace(POLICY, recycle=False), count=50)
    assert not any(each.completed for each in found)
    assert all(each.taken_out == 3 for each in found)


@pytest.mark.parametrize(("down", "tries"), [(0.5, 1), (4.0, 2), (7.0, 3), (16.0, 4)])
def test_a_flap_stalls_until_the_first_try_after_it(down: float, tries: int) -> None:
    delays = (0.0, 4.0, 8.0, 12.0)
    assert campaign.stall_of_flap(down, 1.0, delays) == sum(delays[:tries]) + tries


def test_the_same_question_has_the_same_answer() -> None:
    first, second = (ask.ask(asked(("histories", "200"))) for _ in range(2))
    assert first.virtual_time_s == second.virtual_time_s
    other = ask.ask(asked(("histories", "200"), seed=2))
    assert other.virtual_time_s != first.virtual_time_s
    assert abs(other.virtual_time_s / first.virtual_time_s - 1) < 2 * (first.error_bound or 0)


def test_flaps_without_end_are_refused_as_what_they_are(tmp_path: Path) -> None:
    """585 an hour of each of 9,234 * 8 links are not 585 of all."""
    file = tmp_path / "flaps.toml"
    flap = '[[flap]]\nlink = "edge"\nper_hour = {}\n'
    file.write_text(flap.format("585"), encoding="utf-8")
    sentence = r"per_hour is of each link, of which the job has 73,872: 43,215,120 flaps an hour .* up to (\S+) tog"
    with pytest.raises(UserError, match=sentence) as refused:
        ask.check(Question(workload="campaign", nodes=9234, faults=str(file)))
    accepted = re.search(sentence, str(refused.value))
    assert accepted is not None
    for share, is_refused in ((0.99, False), (1.01, True)):
        file.write_text(flap.format(f"{float(accepted[1]) * share:.6f}"), encoding="utf-8")
        question = Question(workload="campaign", nodes=9234, faults=str(file))
        with pytest.raises(UserError) if is_refused else nullcontext():
            ask.check(question)


def test_flaps_of_a_file_slow_the_job_and_expose_it_to_failures(tmp_path: Path) -> None:
    file = tmp_path / "flaps.toml"
    file.write_text('[[flap]]\nlink = "edge"\nper_hour = 0.01\n', encoding="utf-8")
    never = (("histories", "100"), ("failure", "1000000000 s"), ("interval", "0 s"), ("permanent", "0 %"))
    without, with_flaps = (ask.ask(asked(*never, faults=each)) for each in (None, str(file)))
    rate = round(0.01 * 10**9 / 3600) / 10**9 * 9_000 * 8  # a spec has it in billionths
    stall = 2 * 1.073741824 + 4
    assert with_flaps.figures["stall_of_a_flap_s"] == pytest.approx(stall)
    longer = with_flaps.figures["tenth_shortest_s"] / without.figures["tenth_shortest_s"]
    assert longer == pytest.approx(1 + rate * stall, rel=1e-6)
    usual = [ask.ask(asked(("histories", "500"), faults=each)).figures["failures"] for each in (None, str(file))]
    assert usual[1] > 1.5 * usual[0]


def test_a_long_job_fails_as_often_as_the_mean_of_a_long_time_says() -> None:
    """It begins on a machine that has been in use: no sooner and no later than in its middle."""
    rates = replace(SIMPLE, failure=4e6, intermittent=0.5, recurs=3_000.0)
    for work in (20_000.0, 400_000.0):
        job = replace(JOB, work=work, restart=0.0, checkpoint=0.0, interval=10.0)
        found = histories(job, rates, count=1_500 if work < 1e5 else 200)
        per_s = sum(each.failures for each in found) / sum(each.elapsed for each in found)
        assert per_s * campaign.time_between_failures(job, rates, POLICY) == pytest.approx(1, abs=0.06)


def test_a_burst_meets_a_job_as_often_as_it_reaches_its_nodes() -> None:
    rates = replace(SIMPLE, failure=1e15, burst=1_000.0, burst_nodes=20, burst_for=10.0)
    job = replace(JOB, nodes=10, spare=90, checkpoint=0.0, interval=10.0, restart=0.0)
    assert campaign.bursts_that_meet(job, rates) == pytest.approx(0.29 / 1_000)
    found = histories(job, rates, count=200)
    per_s = sum(each.failures for each in found) / sum(each.elapsed for each in found)
    assert per_s == pytest.approx(0.29 / 1_000, rel=0.05)
    assert campaign.bursts_that_meet(job, replace(rates, burst_nodes=0)) == 0


def test_checkpoints_that_cost_nothing_are_kept_often() -> None:
    times = [
        ask.ask(asked(("histories", "300"), ("checkpoint", each))).virtual_time_s for each in ("0 s", "1 s", "3 min")
    ]
    assert times[0] <= times[1] < times[2]


def test_what_was_given_up_counts_for_no_time(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("recycle = false\n", encoding="utf-8")
    answer = ask.ask(asked(("policy", str(policy)), nodes=10_624))
    assert 0 < answer.figures["completed_share"] < 1
    assert "were given up" in answer.warnings[0]
    assert answer.figures["tenth_shortest_s"] > 15_714
    assert sum(answer.phases.values()) == pytest.approx(answer.virtual_time_s)
    with pytest.raises(RunError, match="none of 10 histories came to its end"):
        ask.ask(asked(("failure", "1 s"), ("histories", "10"), nodes=100))


@pytest.mark.parametrize("machine", ["testbed", "frontier", "perlmutter-cpu", "lumi-g"])
def test_it_is_there_for_every_machine(machine: str) -> None:
    bursts = (("burst", "20 h"), ("histories", "50"), ("failure", "200000 h"))
    answer = ask.ask(asked(*bursts, machine=machine, nodes=4))
    assert answer.virtual_time_s > 15_714


def test_an_answer_is_kept_for_what_its_policy_says(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    keys = []
    for text in ("strikes = 2", "# the same\nstrikes=2\n", "strikes = 4"):
        policy.write_text(text, encoding="utf-8")
        keys.append(ask.key(asked(("policy", str(policy)))))
    assert keys[0] == keys[1] != keys[2]


def test_it_is_swept_over_times_that_64_bits_do_not_hold(tmp_path: Path) -> None:
    axes = [Axis(name="failure", kind="parameter", values=("20000 h", "2000 h"))]
    base = {"workload": "campaign", "nodes": 100, "parameters": (("histories", "20"), ("restart", "1 s"))}
    made = sweep.cases(base, axes)
    answers = {case.key: ask.ask(case.question).content() for case in made}
    assert len(answers) == 2
    Folder(str(tmp_path)).write_table(axes, made, answers)
    parquet = pytest.importorskip("pyarrow.parquet")
    found = parquet.read_table(tmp_path / sweep.TABLE).to_pydict()
    assert found["parameter.failure"] == [7.2e19, 7.2e18]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("strikes = 0", "strikes = 0: accepted is a number from 1 to 1000"),
        ("strikes = '3'", "strikes = '3': accepted is a number"),
        ("isolat = 1", "unknown word isolat; accepted are strikes, within, isolate, recycle, repair"),
        ('isolate = "never"', 'isolate = "never": accepted is at once or after the job'),
        ("isolate = [1]", r"isolate = "),
        ("recycle = 1", "recycle = 1: accepted is true or false"),
        ('repair = "soon"', 'repair = "soon": '),
        ('within = "0 s"', "accepted is more than 0"),
        ("strikes = ", "not valid TOML"),
    ],
)
def test_a_policy_that_says_what_nobody_knows_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        ask.check(asked(("policy", str(file))))


@pytest.mark.parametrize(
    ("parameters", "given", "message"),
    [
        ((("intermittent", "60 %"), ("permanent", "50 %")), {}, "accepted is 100 % or less together"),
        ((("failure", "0 s"),), {}, "failure=0 s: out of range"),
        ((("burst_nodes", "99999"),), {}, "burst_nodes=99999: accepted is up to the machine's 10624 nodes"),
        ((), {"ppn": 24}, "--ppn 24 has no effect on campaign"),
        ((("policy", "no-such-file"),), {}, "policy=no-such-file cannot be read"),
        ((), {"noise": "machine"}, "--noise has no effect on --model drawn"),
        ((), {"model": "closed"}, "campaign has drawn"),
    ],
)
def test_what_cannot_be_is_refused(
    parameters: tuple[tuple[str, str], ...], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        ask.check(asked(*parameters, **given))


@pytest.mark.parametrize(
    "text",
    [
        '[[lanes]]\nlink = "edge"\nlanes = 2\n',
        '[[flap]]\nlink = "all"\nper_hour = 1\n',
        '[[flap]]\nlink = "edge"\nper_hour = 1\nfor = "10 s"\n',
        '[[flap]]\nlink = "n3"\nat = "1 s"\n',
    ],
)
def test_faults_that_are_not_drawn_here_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "faults.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="campaign takes"):
        ask.check(asked(faults=str(file)))
