"""HPL by its closed form (dryfly/oracle/hpl.py): what a process of it has of a machine's node, and the answer.

docs/model/hpl.md has what each figure stands for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dryfly.base.errors import UserError
from dryfly.case import near
from dryfly.machine.machine import Machine
from dryfly.machine.node import most_nics
from dryfly.oracle import hpl
from dryfly.predict import facts, fit, workloads
from dryfly.predict.answer import Answer
from dryfly.predict.question import Question

_PS = 1e-12
_SHARE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Nics:
    """Of a node. `rate`: payload of one, each way."""

    rate: float
    count: int
    swap: int  # for the exchange of rows alone; 0: phases share all
    broadcast: int

    def of_rank(self, nics: int, ranks: int) -> float:
        """A rank uses one NIC at a time."""
        return self.rate * min(1.0, nics / ranks)


def check(question: Question) -> None:
    """Raises UserError for what the machine or the memory does not allow."""
    check_choices(question)
    process_of(question.loaded, question, fit.any_problem(question))
    fit.check_memory(question)


def answer(question: Question) -> Answer:
    began = time.monotonic()
    machine, values = question.loaded, dict(question.values)
    chosen = fit.choose(question, lambda problem: process_of(machine, question, problem))
    problem = chosen.problem
    process = process_of(machine, question, problem)
    found = hpl.outcome(problem, process)
    rate = problem.operations / found.time
    assert question.ppn is not None
    peak = process.gemm_rate * question.ranks
    figures = {
        "rate_flop_per_s": rate,
        "of_gemm_rate_share": rate / peak,
        "panels": float(problem.panels),
        **figures_beside(question, problem, rate),
        "swap_above_gemm_from_panel": float(found.swap_from),
        "gemm_bounds_until_panel": float(found.unhidden_from),
    }
    return Answer(
        question=question,
        virtual_time_s=found.time,
        phases={**{f"bound by {_NAMES[name]}": took for name, took in found.bound.items() if took},
                "first panel": found.first, "back substitution": found.solve},
        figures=figures,
        values={**values, "n": str(problem.order), "nb": str(problem.block),
                "grid": f"{problem.rows}x{problem.columns}"},
        chosen=(*solver_reason(question), *chosen.reasons),
        warnings=tuple(warnings(machine, question, chosen)),
        calibrated=calibrated(question),
        assumed=assumed(question),
        steps=_steps(found),
        details={"parts_s": found.sums, "candidates": [list(row) for row in chosen.candidates]},
        wall_s=time.monotonic() - began,
    )  # fmt: skip


def solver_reason(question: Question) -> list[str]:
    """What the machine's own solver chose, of what nobody gave."""
    solver = facts.hpl_solver(question.loaded.name)
    taken = {name: text for name, text in solver.choices.items() if name not in dict(question.parameters)}
    known = {each.name for each in question.row.of_model(str(question.model))}
    shown = ", ".join(f"{name}={text}" for name, text in taken.items() if name in known)
    return [f"as {solver.name} does it: {shown}"] if shown else []


def figures_beside(question: Question, problem: hpl.Problem, rate: float) -> dict[str, float]:
    """What either model says beside its rate: the matrix, and the rate as published efficiencies have it."""
    assert question.nodes is not None
    found = {"matrix_bytes_of_node": hpl.WORD * problem.order**2 / question.nodes}
    listed = None if question.sets else facts.hpl_listed(question.loaded.name, question.nodes)
    if listed is not None:
        found |= {"published_flop_per_s": listed, "of_published_share": rate / listed}
    published = facts.hpl_published()
    if question.loaded.name == published.machine:
        found["efficiency_share"] = rate / (published.node_rate * question.nodes)
    return found


_NAMES = {
    "gemm": "GEMM", "panel": "PFACT + BCAST", "swap": "SWAP", "copies": "copies of the matrix",
    "nics": "NICs that phases share",
}  # fmt: skip


def calibrated(question: Question) -> str:
    published = facts.hpl_published()
    if question.parameter("gemm_exposed") != _default(question, "gemm_exposed"):
        return ""
    return f"gemm_exposed on {published.calibrated:,} nodes of {published.machine}"


def undone(question: Question) -> list[str]:
    """Choices of the run that gemm_exposed was set on, which this one does not make."""
    chosen = [each.name for each in workloads.OF_CAMPAIGNS] + ["staging"]
    known = {each.name for each in question.row.parameters}
    return [name for name in chosen if name in known and question.parameter(name) != _default(question, name)]


def assumed(question: Question) -> str:
    """What an undone choice rests on, where that is no published number."""
    costs = [f"host.registration.{way}{of}" for way in ("map", "unmap") for of in ("", "_page")]
    facts_of = question.loaded.facts
    unknown = [path for path in costs if path in facts_of and facts_of[path].certainty == "assumed"]
    if question.parameter("registration") != "each" or not unknown:
        return ""
    return f"what registration=each adds to each message ({', '.join(unknown)}), for none of it was found"


def _default(question: Question, name: str) -> str | None:
    parameter = next(each for each in question.row.parameters if each.name == name)
    return None if parameter.default is None else parameter.value(parameter.default)


def process_of(machine: Machine, question: Question, problem: hpl.Problem) -> hpl.Process:
    values, ranks = dict(question.values), question.ppn
    assert ranks is not None
    gpus = int(machine.optional("compute.gpu.count") or 0)
    place = "gpu" if gpus else "cpu"
    of_node = float(gpus or _number(machine, "compute.cpu.count"))
    gemm_rate = of_node * _number(machine, f"compute.{place}.fp64") / ranks
    on_gpu = bool(gpus) and values["pfact"] == "gpu"
    if values["pfact"] == "gpu" and not gpus:
        raise UserError(f"pfact=gpu: {machine.name} says nothing of GPUs (compute.gpu.count); accepted is cpu")
    nics = nics_of(machine, values)
    call = _number(machine, f"compute.{place}.latency") * _PS
    by_column = values["pmap"] == "column"
    at_once = panels_at_once(values, ranks, problem)
    on_other = values.get("pinning") == "other"
    return hpl.Process(
        gemm_rate=gemm_rate,
        gemm_memory=of_node * _number(machine, f"compute.{place}.memory_rate") / ranks,
        gemm_exposed=_share(values, "gemm_exposed"),
        gemm_tile=int(values["gemm_tile"]),
        gemm_tiles=int(values["gemm_tiles"]),
        call=call,
        triangle_share=_share(values, "triangle_share"),
        panel_rate=gemm_rate * _share(values, "panel_share_gpu")
        if on_gpu
        else _cpu_rate(machine, values) * _cores(machine, values, ranks, at_once),
        panel_memory=gpus * _number(machine, "compute.gpu.memory_rate") / ranks
        if on_gpu
        else _panel_memory(machine, values, ranks, at_once),
        host_memory=_processors_memory(machine, values) / ranks,
        panel_base=int(values["panel_base"]),
        panel_cache=0.0 if on_gpu else _caches(machine) * _cores(machine, values, ranks, at_once),
        panel_call=2 * call if on_gpu else 0.0,
        message=message_s(machine, question),
        swap_rate=nics.of_rank(nics.swap or nics.count, ranks),
        swap_off_node=_off_node(ranks, problem.rows) if by_column else 1.0,
        broadcast_rate=_broadcast_rate(machine, nics, ranks, by_column=by_column),
        nic_rate=0.0 if nics.swap else nics.of_rank(nics.count, ranks),
        copy_in=copies(machine, "in", gpus, on_other=on_other) / ranks if gpus else math.inf,
        copy_out=copies(machine, "out", gpus, on_other=on_other) / ranks if gpus else math.inf,
        direct=values.get("gpu_mpi") == "on",
        panel_on_gpu=on_gpu,
        one_queue=values.get("queues") == "one",
        mapping=mapping_of(machine, values),
    )


def panels_at_once(values: Mapping[str, str], ranks: int, problem: hpl.Problem) -> int:
    """Of a node's ranks, those in one column of processes: they factor a panel together."""
    if values["pmap"] == "column":
        return min(ranks, problem.rows)
    return -(-ranks // problem.columns)


def _cores(machine: Machine, values: Mapping[str, str], ranks: int, at_once: int) -> float:
    """Share of a node's that a rank factors with: its own, or those of ranks that wait too, but one of each."""
    if values["panel_cores"] == "own":
        return 1 / ranks
    left = (ranks - at_once) / machine.cores_per_node
    return max(1 / ranks, (1 - left) / at_once)


def _caches(machine: Machine) -> float:
    """Bytes of a node's last caches; 0: not known."""
    return float(machine.optional("node.l3_size") or 0) * float(machine.optional("node.l3") or 0)


def check_choices(question: Question) -> None:
    """Raises UserError for what a machine has no place for."""
    machine, given = question.loaded, dict(question.parameters)
    if given.get("pinning") == "other" and int(machine.optional("node.sockets") or 1) < 2:
        raise UserError(f"pinning=other: a node of {machine.name} has one socket; accepted is own")
    if given.get("gpu_mpi") == "on" and not machine.optional("compute.gpu.count"):
        raise UserError(f"gpu_mpi=on: {machine.name} says nothing of GPUs (compute.gpu.count); accepted is off")
    if given.get("queues") == "one" and not machine.optional("compute.gpu.count"):
        raise UserError(f"queues=one: {machine.name} says nothing of GPUs (compute.gpu.count); accepted is several")
    if "staging" in given and "node.coreless.rate" not in machine.facts:
        raise UserError(f"staging={given['staging']}: processors of {machine.name} have one memory; leave it out")
    if given.get("nic_map") == "first" and "swap_nics" in given:
        raise UserError("nic_map=first: all phases have that NIC; leave swap_nics out")


def _number(machine: Machine, path: str) -> float:
    if path not in machine.facts:
        raise UserError(f"{path} is needed, and machine {machine.name} has none; --set {path}=... gives one")
    return float(machine.number(path))


def _share(values: Mapping[str, str], name: str) -> float:
    return int(values[name]) * _SHARE


def _cpu_rate(machine: Machine, values: Mapping[str, str]) -> float:
    """Of a node's processors, while they factor panels."""
    peak = _number(machine, "compute.cpu.count") * _number(machine, "compute.cpu.fp64")
    return peak * _share(values, "panel_share")


def _panel_memory(machine: Machine, values: Mapping[str, str], ranks: int, at_once: int) -> float:
    """Of a rank, in its domain beside those ranks there that factor too, whatever cores it has."""
    rate = _processors_memory(machine, values)
    domains = max(1, int(machine.optional("node.numa") or 1))
    if ranks <= domains:
        return rate / ranks
    return rate / domains / min(at_once, -(-ranks // domains))


def _processors_memory(machine: Machine, values: Mapping[str, str]) -> float:
    """Of a node: its processors', the faster one where there are two."""
    rate = _number(machine, "compute.cpu.count") * _number(machine, "compute.cpu.memory_rate")
    domains = int(machine.optional("node.coreless.domains") or 0)
    if domains and "node.coreless.rate" in machine.facts and values.get("staging") != "ddr":
        rate = domains * _number(machine, "node.coreless.rate")
    return min(rate, _across(machine)) if values.get("pinning") == "other" else rate


def _across(machine: Machine) -> float:
    """Bytes a second between a node's sockets, both ways together: what each socket's processes read of the other's."""
    return 2 * _number(machine, "node.socket_rate")


def copies(machine: Machine, way: str, gpus: int, *, on_other: bool) -> float:
    """Between all GPUs of a node and its processors, one way. `on_other`: those of the other socket."""
    links = gpus * _number(machine, "node.gpu_rate")
    measured = machine.optional(f"node.gpus_{way}_rate")
    rate = min(links, float(measured)) if isinstance(measured, int) else links
    return min(rate, _across(machine)) if on_other else rate


def nics_of(machine: Machine, values: Mapping[str, str]) -> Nics:
    sockets = int(machine.optional("node.sockets") or 1)
    count = most_nics(machine)
    of_socket = max(1, count // sockets)
    payload, header = _number(machine, "fabric.packet.payload"), _number(machine, "fabric.packet.header")
    rate = _number(machine, "fabric.link.rate") * payload / (payload + header)
    shared = machine.optional("node.pcie_rate")
    in_use = 1 if values.get("nic_map") == "first" else of_socket
    if isinstance(shared, int):
        rate = min(rate, shared / in_use)
    of_gpus = machine.optional("node.gpus_nic_rate")  # not where each NIC hangs off a GPU
    if values.get("gpu_mpi") == "on" and isinstance(of_gpus, int):
        rate = min(rate, of_gpus / in_use)
    if values.get("pinning") == "other":
        rate = min(rate, _number(machine, "node.socket_rate") / in_use)
    if in_use == 1 < of_socket:
        return Nics(rate=rate, count=1, swap=0, broadcast=1)
    given = values.get("swap_nics")
    swap = int(given) if given is not None else int(of_socket > 1)
    if swap >= of_socket and swap:
        raise UserError(
            f"swap_nics={swap}: a socket of {machine.name} has {of_socket} NICs, of which one at least is for "
            f"broadcasts; accepted is 0 to {of_socket - 1}"
        )
    return Nics(rate=rate, count=count, swap=swap * sockets, broadcast=(of_socket - swap) * sockets)


def _broadcast_rate(machine: Machine, nics: Nics, ranks: int, *, by_column: bool) -> float:
    """With ranks numbered along rows, only the last one of a node sends out of it, and the others copy."""
    if by_column:
        return nics.of_rank(nics.broadcast, ranks)
    return min(nics.rate, _number(machine, "node.near.memory_rate" if near.counts(machine) else "node.local_rate"))


def _off_node(ranks: int, rows: int) -> float:
    """Of what a process exchanges with all others of its column."""
    beside = min(ranks, rows) - 1
    return 1.0 - beside / (rows - 1) if rows > 1 else 1.0


def message_s(machine: Machine, question: Question) -> float:
    """Of a small message between nodes, with nothing else on the network: the longest minimal way of the job."""
    kind = machine.kinds[machine.job_kinds[0]]
    assert question.nodes is not None
    one_group = question.nodes <= kind.nodes
    switches, local, between = (2, 1, 0) if one_group else (4, 2, 1)
    times = {
        "host.send": 1, "nic.command_latency": 1, "nic.egress_latency": 1, "fabric.link.edge_flight": 2,
        "fabric.switch.latency": switches, "fabric.link.local_flight": local, "fabric.link.global_flight": between,
        "nic.ingress_latency": 1, "nic.completion_latency": 1, "host.completion": 1,
    }  # fmt: skip
    return sum(often * machine.number(path) for path, often in times.items()) * _PS


def mapping_of(machine: Machine, values: Mapping[str, str]) -> hpl.Mapping:
    """docs/model/registration.md#costs; with `each` as FI_MR_CACHE_MONITOR=disabled leaves it."""
    if values.get("registration") != "each":
        return hpl.KEPT
    both = ("map", "unmap")
    return hpl.Mapping(
        call=sum(_number(machine, f"host.registration.{way}") for way in both) * _PS,
        of_page=sum(_number(machine, f"host.registration.{way}_page") for way in both) * _PS,
        page=int(_number(machine, "node.page")),
    )


def warnings(machine: Machine, question: Question, chosen: fit.Choice) -> list[str]:
    found = []
    if chosen.problem.on_host and machine.optional("compute.gpu.count"):
        found.append("matrix=host: every product reads and writes its part of the matrix over PCIe")
    if question.parameter("pmap") == "column" and chosen.problem.rows % (question.ppn or 1):
        found.append(
            f"grid {chosen.problem.rows}x{chosen.problem.columns}: P is no multiple of the {question.ppn} ranks of a "
            "node, so that columns share nodes; it is taken as if they did not"
        )
    return found


def _steps(found: hpl.Outcome, most: int = 240) -> list[dict[str, Any]]:
    """Some of them, for pictures: seconds by part."""
    every = max(1, len(found.steps) // most)
    return [
        {"panel": first, "gemm": step.gemm, "factor": step.factor, "broadcast": step.broadcast, "swap": step.swap,
         "copies": step.copies, "took": step.took, "bound": step.bound}
        for first, _, step in found.steps[::every]
    ]  # fmt: skip
