"""A long job on nodes that fail, by drawn histories (dryfly/oracle/campaign.py): its machine, rates and policy.

docs/model/resilience.md has what each figure stands for.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dryfly.base import toml, units
from dryfly.base.errors import RunError, UserError
from dryfly.machine.machine import Machine
from dryfly.oracle import campaign
from dryfly.oracle.campaign import History, Job, Policy, Rates
from dryfly.predict import facts
from dryfly.predict.answer import Answer
from dryfly.predict.question import Question
from dryfly.scenario import faults
from dryfly.scenario.faults import down_nodes

_PS = 1e-12
_SHARE = 1e-6
_THEORY_MOST = 100  # work, in times between failures: theory's time grows as their exponential
_LEAST_INTERVAL = 1.0  # seconds, where checkpoints are free
_ISOLATED = {"at once": True, "after the job": False}
_MOST_STRIKES = 1000
_GIVEN_UP = (
    f"nodes that do not come back are missing, or there were {campaign.LONGEST:g} times the work or "
    f"{campaign.MOST_FAILURES:,} failures without an end"
)


def check(question: Question) -> None:
    """Raises UserError."""
    policy_of(question)
    rates = rates_of(question)
    if question.ppn != 1:
        raise UserError(f"--ppn {question.ppn} has no effect on campaign, which has no ranks: leave it out")
    if rates.intermittent + rates.permanent > 1:
        raise UserError(
            f"intermittent={rates.intermittent:.0%} and permanent={rates.permanent:.0%} are shares of all failures; "
            "accepted is 100 % or less together"
        )
    _check_flaps(question, rates)


def _check_flaps(question: Question, rates: Rates) -> None:
    """Raises UserError where they alone make the job longer than a history may be."""
    slower = 1 + rates.flaps * rates.stall
    if slower <= campaign.LONGEST:
        return
    links = _links(question)
    most = (campaign.LONGEST - 1) / rates.stall * 3600 / links
    raise UserError(
        f"--faults {question.faults}: per_hour is of each link, of which the job has {links:,}: "
        f"{rates.flaps * 3600:,.0f} flaps an hour in all, each of which stops it for {rates.stall:.3g} s, make it "
        f"{slower:,.0f} times as long; accepted is per_hour up to {most:.3g} together"
    )


def _links(question: Question) -> int:
    """Of the job's NICs."""
    machine = question.loaded
    return (question.nodes or 0) * machine.kinds[machine.job_kinds[0]].nics_per_node


def answer(question: Question) -> Answer:
    began = time.monotonic()
    rates, policy = rates_of(question), policy_of(question)
    job = job_of(question, rates, policy)
    draw = random.Random(question.seed)
    drawn = [campaign.history(job, rates, policy, draw) for _ in range(int(question.parameter("histories") or 0))]
    completed = [each for each in drawn if each.completed]
    if not completed:
        raise RunError(f"campaign: none of {len(drawn):,} histories came to its end: {_GIVEN_UP}", exit_status=1)
    elapsed = [each.elapsed for each in completed]
    mean = statistics.fmean(elapsed)
    spread = statistics.stdev(elapsed) if len(elapsed) > 1 else 0.0
    return Answer(
        question=question,
        virtual_time_s=mean,
        phases={"work": job.work, **{cause: statistics.fmean(each.lost[cause] for each in completed)
                                     for cause in campaign.CAUSES}},
        figures=_figures(job, rates, campaign.time_between_failures(job, rates, policy), drawn),
        values=dict(question.values),
        chosen=_assumed(question),
        warnings=tuple(_warnings(drawn)),
        sampled=True,
        error_bound=2 * spread / len(elapsed) ** 0.5 / mean,
        details={"policy": vars(policy)},
        wall_s=time.monotonic() - began,
    )  # fmt: skip


def _assumed(question: Question) -> list[str]:
    if any(name == "failure" for name, _ in question.parameters):
        return []
    return ["how often a node fails is assumed, for it is not published: sweep failure"]


def _figures(job: Job, rates: Rates, between: float, drawn: list[History]) -> dict[str, float]:
    """Times are of the histories that came to their end."""
    ranked = sorted(each.elapsed for each in drawn if each.completed)
    figures = {
        "between_failures_s": between,
        "without_failure_share": sum(not each.failures for each in drawn) / len(drawn),
        "completed_share": len(ranked) / len(drawn),
        "tenth_shortest_s": ranked[len(ranked) // 10],
        "tenth_longest_s": ranked[-1 - len(ranked) // 10],
        "failures": statistics.fmean(each.failures for each in drawn),
        "nodes_taken_out": statistics.fmean(each.taken_out for each in drawn),
        "nodes_in_repair_at_first": statistics.fmean(each.missing_at_first for each in drawn),
        "checkpoint_interval_s": job.interval,
        "stall_of_a_flap_s": rates.stall,
    }
    if rates.flaps:
        figures["flaps_per_hour_of_all_links"] = rates.flaps * 3600
    if job.work / between < _THEORY_MOST:
        figures["by_theory_s"] = campaign.expected(job, between)
    return figures


def _warnings(drawn: list[History]) -> list[str]:
    left = sum(not each.completed for each in drawn)
    if not left:
        return []
    return [f"{left:,} of {len(drawn):,} histories were given up, and no time counts them: {_GIVEN_UP}"]


def job_of(question: Question, rates: Rates, policy: Policy) -> Job:
    assert question.nodes is not None
    machine = question.loaded
    job = Job(
        work=_seconds(question, "work"),
        nodes=question.nodes,
        spare=machine.nodes_max - len(down_nodes(machine)) - question.nodes,
        interval=0.0,
        checkpoint=_seconds(question, "checkpoint"),
        restart=_seconds(question, "restart"),
    )
    given = question.parameter("interval")
    if given is not None:
        return replace(job, interval=min(int(given) * _PS, job.work))
    best = campaign.best_interval(campaign.time_between_failures(job, rates, policy), job.checkpoint)
    return replace(job, interval=min(max(best, _LEAST_INTERVAL), job.work))


def rates_of(question: Question) -> Rates:
    machine = question.loaded
    down = (machine.number("fabric.link.retune.least") + machine.number("fabric.link.retune.most")) / 2 * _PS
    delays = [units.parse(each, units.TIME) * _PS for each in str(machine.facts["nic.retry.delays"].value).split(",")]
    return Rates(
        failure=_seconds(question, "failure"),
        intermittent=_share(question, "intermittent"),
        permanent=_share(question, "permanent"),
        recurs=_seconds(question, "recurs"),
        burst=_seconds(question, "burst"),
        burst_nodes=_burst_nodes(question),
        burst_for=_seconds(question, "burst_for"),
        flaps=_flaps(question, machine),
        stall=campaign.stall_of_flap(down, machine.number("nic.retry.timeout") * _PS, delays),
    )


def _burst_nodes(question: Question) -> int:
    """Raises UserError."""
    nodes, there = int(question.parameter("burst_nodes") or 0), question.loaded.nodes_max
    if nodes <= there:
        return nodes
    if "burst_nodes" in dict(question.parameters):
        raise UserError(f"burst_nodes={nodes}: accepted is up to the machine's {there} nodes")
    return there


def _flaps(question: Question, machine: Machine) -> float:
    """In a second, of all links of the job's NICs. Raises UserError for what stops no job, or is not drawn."""
    if question.faults is None:
        return 0.0
    accepted = 'campaign takes [[flap]] with link = "edge" and per_hour, all the time'
    links = _links(question)
    rate = 0.0
    scenario = faults.load(question.faults, machine, seed=question.seed)
    if scenario.slow:
        raise UserError(f"--faults {question.faults}: {accepted}, and no other fault")
    for each in scenario.faults:
        always = each.from_ps == 0 and each.until_ps is None
        if each.kind != "flaps" or each.places != ("edge",) or not always:
            raise UserError(f"--faults {question.faults}: {accepted}, and no other fault")
        rate += dict(each.more)["rate_ppb"] / 10**9 * links
    return rate


def policy_text(question: Question) -> str:
    """What the question's file of a policy says, however it is written; empty: it has none. Raises UserError."""
    path = question.parameter("policy")
    return "" if path is None else json.dumps(toml.read(path, f"policy={path}"), sort_keys=True, default=str)


def policy_of(question: Question) -> Policy:
    """Of the file, or as data/predict has it. Raises UserError."""
    path = question.parameter("policy")
    given = {} if path is None else toml.read(path, f"policy={path}")
    known = facts.table("campaign", "policy")
    where = f"policy={path}"
    for name in given:
        if name not in known:
            raise UserError(f"{where}: unknown word {name}; accepted are {', '.join(known)}")
    values = {name: given.get(name, fact["value"]) for name, fact in known.items()}
    strikes = values["strikes"]
    if not isinstance(strikes, int) or isinstance(strikes, bool) or not 1 <= strikes <= _MOST_STRIKES:
        raise UserError(f"{where}: strikes = {strikes!r}: accepted is a number from 1 to {_MOST_STRIKES}")
    if not isinstance(values["isolate"], str) or values["isolate"] not in _ISOLATED:
        raise UserError(f'{where}: isolate = "{values["isolate"]}": accepted is {" or ".join(_ISOLATED)}')
    if not isinstance(values["recycle"], bool):
        raise UserError(f"{where}: recycle = {values['recycle']}: accepted is true or false")
    return Policy(
        strikes=strikes,
        within=_time(where, values, "within"),
        at_once=_ISOLATED[str(values["isolate"])],
        recycle=values["recycle"],
        repair=_time(where, values, "repair"),
    )


def _time(where: str, values: Mapping[str, Any], name: str) -> float:
    try:
        found = units.parse(values[name], units.TIME) * _PS
    except UserError as error:
        raise UserError(f'{where}: {name} = "{values[name]}": {error}') from None
    if found <= 0:
        raise UserError(f'{where}: {name} = "{values[name]}": accepted is more than 0')
    return found


def _seconds(question: Question, name: str) -> float:
    return int(question.parameter(name) or 0) * _PS


def _share(question: Question, name: str) -> float:
    return int(question.parameter(name) or 0) * _SHARE
