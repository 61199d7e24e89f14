"""How a job starts, by its closed form (dryfly/oracle/startup.py): which launcher, which PMI, and what each costs.

docs/model/startup.md has what each figure stands for.
"""

from __future__ import annotations

import time

from dryfly.base.errors import UserError
from dryfly.machine.names import NodeNames
from dryfly.oracle import startup
from dryfly.oracle.startup import Costs, Job, Part
from dryfly.predict import facts
from dryfly.predict.answer import Answer
from dryfly.predict.closed_hpl import message_s, nics_of
from dryfly.predict.question import Question

_PS = 1e-12
# What each launcher speaks; the first is what it speaks unless it is told.
_SPOKEN = {"dryfly": ("pmi1", "pmix"), "hydra": ("pmi1", "pmi2"), "prterun": ("pmix",), "pals": ("pmi2", "pmix")}
_READ_OFF = (("dryfly", "pmi1"), ("dryfly", "pmix"), ("hydra", "pmi1"), ("prterun", "pmix"))
_TREES = ("prterun", "pals")
_KEY_SPACE = {"dryfly": 27}  # characters; of others with Hydra's name, which has the host's in it
_NOT_COUNTED = "end"  # phases that are over after MPI_Init


def check(question: Question) -> None:
    """Raises UserError for what a launcher does not speak, and for what would have no effect."""
    launcher, given = str(question.parameter("launcher")), dict(question.parameters)
    pmi = _pmi(question)
    if pmi not in _SPOKEN[launcher]:
        raise UserError(f"pmi={pmi}: {launcher} speaks {' and '.join(_SPOKEN[launcher])}")
    useless = {
        "radix": (launcher not in _TREES, f"launcher={launcher} has no tree of daemons"),
        "exchange": (pmi == "pmix", "the ranks of pmi=pmix tell their addresses in its fence"),
        "card": (pmi == "pmix", "pmi=pmix sends addresses as bytes"),
        "fence": (pmi != "pmix", f"pmi={pmi} has one kind of fence"),
        "topology": (pmi != "pmix", f"pmi={pmi} hands none out"),
        "environment": (pmi == "pmix" or launcher == "dryfly", "there it is not handed on over the network"),
        "arp_time": (question.parameter("arp") == "static", "arp=static asks for no address"),
        "contacts": (question.parameter("arp") == "static" and question.parameter("fence") == "collect",
                     "arp=static asks for no address, and fence=collect for no peer"),
    }  # fmt: skip
    for name, (is_useless, why) in useless.items():
        if name in given and is_useless:
            raise UserError(f"{name}={given[name]} has no effect: {why}; leave it out")


def _pmi(question: Question) -> str:
    return question.parameter("pmi") or _SPOKEN[str(question.parameter("launcher"))][0]


def answer(question: Question) -> Answer:
    began = time.monotonic()
    job = job_of(question)
    parts = startup.parts(job, costs_of(question))
    seconds = {name: part.seconds for name, part in parts.items() if name != _NOT_COUNTED}
    return Answer(
        question=question,
        virtual_time_s=sum(seconds.values()),
        phases=seconds,
        figures=_figures(parts),
        values={**dict(question.values), "pmi": job.pmi, "contacts": str(job.contacts)},
        chosen=_chosen(question, job),
        assumed="every cost of time, for none is published; sweep latency, serve, spawn, fork and init",
        messages=sum(part.messages for part in parts.values()),
        bytes=sum(part.bytes for part in parts.values()),
        details={"phases": {name: vars(parts[name]) for name in startup.PHASES}},
        wall_s=time.monotonic() - began,
    )


def _figures(parts: dict[str, Part]) -> dict[str, float]:
    figures: dict[str, float] = {
        "busiest_process_messages": float(max(part.busiest for part in parts.values())),
        "of_ranks_and_servers_messages": float(sum(part.local_messages for part in parts.values())),
        "of_ranks_and_servers_bytes": float(sum(part.local_bytes for part in parts.values())),
    }
    for name in startup.PHASES:
        if parts[name].messages:
            figures[f"{name}_messages"] = float(parts[name].messages)
            figures[f"{name}_bytes"] = float(parts[name].bytes)
    return figures


def _chosen(question: Question, job: Job) -> list[str]:
    sentences = []
    if (job.launcher, job.pmi) not in _READ_OFF:
        sentences.append(
            f"messages of {job.launcher} with {job.pmi} are assumed to be Hydra's or PRRTE's on its own tree: these "
            "two, and dryfly-launch's, were read off their sockets"
        )
    if question.parameter("card") is None and job.pmi != "pmix":
        sentences.append("addresses are as short as those of dryfly's provider; card=16 is one without zeros")
    return sentences


def job_of(question: Question) -> Job:
    assert question.nodes is not None
    assert question.ppn is not None
    launcher = str(question.parameter("launcher"))
    radix = question.parameter("radix") or (facts.text("startup", f"radix_{launcher}") if launcher in _TREES else "2")
    job = Job(
        nodes=question.nodes,
        ppn=question.ppn,
        launcher=launcher,
        pmi=_pmi(question),
        roots=question.parameter("exchange") == "roots",
        collect=question.parameter("fence") == "collect",
        radix=int(radix),
        static_arp=question.parameter("arp") == "static",
        card=_count(question, "card"),
        environment=_count(question, "environment"),
        topology=_count(question, "topology"),
        node_name=len(NodeNames(question.loaded).name(0)),
        key_space=_KEY_SPACE.get(launcher, 25),
        contacts=_count(question, "contacts"),
    )
    if question.parameter("contacts") is not None:
        return job
    return Job(**{**vars(job), "contacts": startup.first_contacts(job)})


def costs_of(question: Question) -> Costs:
    machine = question.loaded
    return Costs(
        latency=_seconds(question, "latency"),
        rate=float(_count(question, "rate")),
        serve=_seconds(question, "serve"),
        local=_seconds(question, "local"),
        spawn=_seconds(question, "spawn"),
        at_once=_count(question, "at_once"),
        fork=_seconds(question, "fork"),
        init=_seconds(question, "init"),
        arp=_seconds(question, "arp_time"),
        fabric_message=message_s(machine, question),
        fabric_rate=nics_of(machine, {}).rate,
    )


def _count(question: Question, name: str) -> int:
    return int(question.parameter(name) or 0)


def _seconds(question: Question, name: str) -> float:
    return _count(question, name) * _PS
