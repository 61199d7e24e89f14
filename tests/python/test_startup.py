"""The closed form of a job's start, beside what was read off the sockets of Hydra and PRRTE (docs/model/startup.md);
tests/mpi/test_run_startup.py holds what ranks say against real runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dryfly.base.errors import UserError
from dryfly.oracle import startup
from dryfly.oracle.startup import Costs, Job
from dryfly.predict import ask
from dryfly.predict.answer import Answer
from dryfly.predict.question import Question

COSTS = Costs(latency=30e-6, rate=1.25e9, serve=10e-6, local=5e-6, spawn=0.2, at_once=128, fork=1e-3, init=0.05,
              arp=1e-4, fabric_message=3e-6, fabric_rate=25e9)  # fmt: skip


def asked(*parameters: tuple[str, str], **given: Any) -> Answer:
    question = Question(**{"workload": "startup", "nodes": 1024, "ppn": 12, "parameters": parameters, **given})
    ask.check(question)
    return ask.ask(question)


def between_nodes(job: Job) -> tuple[int, int]:
    """Without MPICH's own exchange over the fabric."""
    found = [part for name, part in startup.parts(job, COSTS).items() if name != "addresses"]
    messages = sum(part.messages - part.local_messages for part in found)
    return messages, sum(part.bytes - part.local_bytes for part in found)


@pytest.mark.parametrize(("rank", "text"), [(0, "[8]"), (1, "80[7]"), (2, "0001[6]"), (3, "8001[6]"), (248, "007C[6]")])
def test_an_address_is_written_as_mpich_writes_bytes(rank: int, text: str) -> None:
    assert startup.written(rank) == len(text)


def test_a_tree_has_its_levels() -> None:
    assert vars(startup.tree(8, 2)) == {"links": 7, "depth": 3, "sum_of_depths": 2 + 8 + 3, "children": 2}
    assert vars(startup.tree(66, 64)) == {"links": 65, "depth": 2, "sum_of_depths": 66, "children": 64}
    assert vars(startup.tree(1, 64)) == {"links": 0, "depth": 0, "sum_of_depths": 0, "children": 0}


# Read off the sockets between hydra_pmi_proxy and mpiexec.hydra of MPICH 5.0.2, a message being a header and what
# follows it.
@pytest.mark.parametrize(
    ("nodes", "ppn", "messages", "size"),
    [(4, 4, 96, 16_682), (8, 8, 320, 43_120), (32, 8, 1_280, 191_084), (32, 16, 2_304, 263_226)],
)
def test_proxies_of_hydra_say_as_much(nodes: int, ppn: int, messages: int, size: int) -> None:
    found = between_nodes(Job(nodes=nodes, ppn=ppn, launcher="hydra", pmi="pmi1"))
    assert found == (messages, pytest.approx(size, rel=0.02))


# And between prted and prterun of Open MPI 5.0.11; the third one with rml_base_radix 2.
@pytest.mark.parametrize(
    ("nodes", "ppn", "radix", "messages", "size"),
    [(4, 4, 64, 66, 52_602), (8, 1, 64, 154, 116_440), (8, 1, 2, 172, 128_506), (8, 8, 64, 154, 155_989),
     (16, 8, 64, 330, 334_053), (32, 1, 64, 682, 701_742), (32, 8, 64, 682, 743_400), (66, 1, 64, 1_433, 1_727_345)],
)  # fmt: skip
def test_daemons_of_prrte_say_as_much(nodes: int, ppn: int, radix: int, messages: int, size: int) -> None:
    name = len("x4000c0s0b0n0" if nodes > 32 else "t0")
    found = between_nodes(Job(nodes=nodes, ppn=ppn, launcher="prterun", pmi="pmix", radix=radix, node_name=name))
    assert found == (messages, pytest.approx(size, rel=0.03))


def test_a_tree_takes_less_long_than_a_star() -> None:
    job = Job(nodes=4096, ppn=8, launcher="pals", pmi="pmi2", radix=32)
    for name in ("job", "fence"):
        flat = startup.parts(replace(job, radix=4095), COSTS)[name].seconds
        assert startup.parts(job, COSTS)[name].seconds < flat / 3


def test_all_addresses_by_pmi_are_more_than_those_of_a_rank_of_each_node() -> None:
    """Each of N nodes with p ranks: N x N gets, or p x N x p x N."""
    roots, everyone = asked(), asked(("exchange", "all"))
    assert everyone.figures["get_messages"] == 12**2 * roots.figures["get_messages"] == 2 * (12 * 1024) ** 2
    assert "addresses_messages" not in everyone.figures
    assert roots.figures["addresses_messages"] == 1024 * 10  # by doubling


@pytest.mark.parametrize("nodes", [16, 20, 600])
def test_addresses_go_by_the_allgather_that_mpich_chooses(nodes: int) -> None:
    """By doubling, by Bruck and around a ring: as many messages and bytes as the skeleton of the collective."""
    found = asked(nodes=nodes).figures
    block = str(12 * (startup.ADDRESS + 4))
    question = Question(workload="allgatherv", nodes=nodes, ppn=1, level="latency", parameters=(("bytes", block),))
    skeleton = ask.ask(question)
    assert (found["addresses_messages"], found["addresses_bytes"]) == (skeleton.messages, skeleton.bytes)


def test_a_direct_fence_is_short_and_asks_later() -> None:
    whole, direct = asked(("pmi", "pmix")), asked(("pmi", "pmix"), ("fence", "direct"))
    assert direct.figures["fence_bytes"] < whole.figures["fence_bytes"] / 3
    assert direct.phases["get"] > whole.phases["get"] == 0.0


def test_arp_costs_only_where_tables_are_not_complete() -> None:
    assert asked().phases["arp"] == 0.0
    found = asked(("arp", "dynamic"), ("contacts", "100"))
    assert found.figures["arp_messages"] == 2 * 1024 * 100
    assert found.phases["arp"] == pytest.approx(100 * 100e-6)


def test_the_time_is_all_phases_but_the_end_and_is_said_to_be_assumed() -> None:
    answer = asked(("launcher", "prterun"))
    assert answer.virtual_time_s == pytest.approx(sum(answer.phases.values()))
    assert "end" not in answer.phases
    assert answer.messages == sum(each["messages"] for each in answer.details["phases"].values())
    assert answer.content()["assumed"].startswith("every cost of time")


@pytest.mark.parametrize("launcher", ["dryfly", "hydra", "prterun", "pals"])
def test_a_node_alone_and_a_rank_alone_start_too(launcher: str) -> None:
    for nodes, ppn in ((1, 1), (1, 8), (2, 1)):
        assert asked(("launcher", launcher), nodes=nodes, ppn=ppn).virtual_time_s > 0.05


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ((("launcher", "hydra"), ("pmi", "pmix")), "pmi=pmix: hydra speaks pmi1 and pmi2"),
        ((("launcher", "hydra"), ("radix", "8")), "radix=8 has no effect: launcher=hydra has no tree of daemons"),
        ((("fence", "direct"),), "fence=direct has no effect: pmi=pmi2 has one kind of fence; leave it out"),
        ((("pmi", "pmix"), ("exchange", "all")), "exchange=all has no effect: the ranks of pmi=pmix"),
        ((("contacts", "8"),), "contacts=8 has no effect: arp=static asks for no address"),
        ((("launcher", "ssh"),), "launcher=ssh: accepted is pals or hydra or prterun or dryfly"),
        ((("radix", "1"),), "radix=1: out of range; accepted is 2 to 1000000"),
    ],
)
def test_what_has_no_effect_is_refused(parameters: tuple[tuple[str, str], ...], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        asked(*parameters)
