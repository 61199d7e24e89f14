"""Loads what a case names, places its ranks and resolves it: the only way from a Case to a spec or a library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dryfly.base import words
from dryfly.base.errors import UserError
from dryfly.binding.ranks import RankBinding, Wishes
from dryfly.binding.ranks import bind as bind_ranks
from dryfly.case import environment, gpus, on_node, program
from dryfly.case.case import SEED_MAX, Case
from dryfly.case.on_node import Choice, OnNode
from dryfly.case.placement import Placement, RankPlace, place
from dryfly.case.resolve import ComputeSpec, resolve
from dryfly.machine.load import load
from dryfly.machine.machine import Machine
from dryfly.machine.names import NodeNames
from dryfly.machine.node import node_of
from dryfly.mpi import launchers, libraries, linkx
from dryfly.mpi.libraries import MpiLibrary
from dryfly.mpi.starter import Starter
from dryfly.scenario import faults
from dryfly.scenario import noise as noise_files
from dryfly.scenario import service as service_files
from dryfly.scenario import storage as storage_files
from dryfly.scenario.noise import Noise
from dryfly.scenario.storage import Storage


@dataclass(frozen=True, kw_only=True)
class BoundCase:
    """A case with everything that it names."""

    case: Case
    machine: Machine
    placement: Placement
    compute: ComputeSpec
    on_node: Choice
    storage: Storage | None
    spec: str  # docs/reference/resolved-spec.md
    noise: Noise | None = None
    bindings: tuple[RankBinding, ...] = ()  # by rank; empty: the launcher binds nobody
    software: str = ""  # the library whose own code is charged as counted (mpi/software.py); empty: none


def load_machine(case: Case) -> Machine:
    """The machine, with storage servers where the case has storage; raises UserError."""
    check_seed(case.seed)
    machine = load(case.machine, sets=case.sets)
    return storage_files.with_servers(machine) if case.storage is not None else machine


def check_seed(seed: int) -> None:
    if not 0 <= seed <= SEED_MAX:
        raise UserError(f"--seed {seed}: accepted is 0 to {SEED_MAX}")


def wishes_of(case: Case) -> Wishes:
    return Wishes(cpu=case.cpu_bind, mem=case.mem_bind, gpu=case.gpu_bind, nic=case.nic_bind, depth=case.depth)


def _bindings(case: Case, machine: Machine, placement: Placement) -> tuple[RankBinding, ...]:
    wishes = wishes_of(case)
    if not wishes:
        return ()
    names = NodeNames(machine)
    per_node = Counter(place.node for place in placement.ranks)
    known: dict[tuple[int, int], tuple[RankBinding, ...]] = {}
    found = []
    for rank in placement.ranks:
        nics, count = names.nics(rank.node), per_node[rank.node]
        if (nics, count) not in known:
            known[nics, count] = bind_ranks(wishes, node_of(machine, nics=nics), ranks=count)
        found.append(known[nics, count][rank.local])
    return tuple(found)


def bind(case: Case, *, compute_record: str | None = None, scenario: faults.Scenario | None = None) -> BoundCase:
    """Raises UserError for what cannot be used. `compute_record`: where what is measured will be written. `scenario`:
    in place of the case's faults."""
    machine = load_machine(case)
    placement = place(machine, nodes=case.nodes, ppn=case.ppn, ranks=case.ranks, policy=case.place, seed=case.seed)
    if scenario is None and case.faults is not None:
        scenario = faults.load(case.faults, machine, seed=case.seed)
    streams = None
    if case.storage is not None:
        streams = storage_files.load(case.storage, machine, job=placement.nodes, seed=case.seed)
    noise = noise_files.load(case.noise, machine)
    compute = ComputeSpec.parse(case.compute, record_file=compute_record, skip_numerics=case.skip_numerics)
    asked = OnNode.parse(case.on_node)
    of_ranks = OnNode.PROVIDER if asked is OnNode.AUTO else asked
    bindings = _bindings(case, machine, placement)
    spec = resolve(
        machine, placement, seed=case.seed, compute=compute, scenario=scenario, network=case.network, on_node=of_ranks,
        storage=streams, noise=noise,
        service=service_files.load(case.service) if case.service is not None else None,
    )  # fmt: skip
    spec += gpus.spec_lines(machine)
    return BoundCase(
        case=case,
        machine=machine,
        placement=placement,
        compute=compute,
        on_node=Choice(on_node=of_ranks),
        storage=streams,
        spec=spec,
        noise=noise,
        bindings=bindings,
    )


def settled(bound: BoundCase, library: MpiLibrary) -> BoundCase:
    """With the way on a node chosen where the case leaves it to dryfly: it depends on the library and the program."""
    case, places = bound.case, bound.placement.ranks
    with environment.applied(case.environment):
        choice = on_node.choose(
            case.on_node,
            files=program.files_of(case.program),
            mpi=library,
            provider=case.provider,
            several_ranks=len({each.node for each in places}) < len(places),
        )
    spec = bound.spec.replace("run.on_node provider\n", f"run.on_node {choice.on_node.value}\n")
    return replace(bound, on_node=choice, spec=spec)


def bind_served(case: Case, *, processes: int) -> BoundCase:
    """A fabric that processes join later, `processes` of them at most: their places get nodes then."""
    machine = load_machine(case)
    names = NodeNames(machine)
    down = faults.down_nodes(machine)
    nodes = [node for node in range(machine.nodes_max) if node not in down]
    places = tuple(RankPlace(rank=rank, node=nodes[0], local=rank, nic=0) for rank in range(processes))
    placement, compute = Placement(policy="served", ranks=places), ComputeSpec(mode="none")
    text = resolve(machine, placement, seed=case.seed, compute=compute, network=case.network)
    others = "".join(f"run.node.{names.number(node)}.name {names.name(node)}\n" for node in nodes[1:])
    return BoundCase(
        case=case,
        machine=machine,
        placement=placement,
        compute=compute,
        on_node=Choice(on_node=OnNode.PROVIDER),
        storage=None,
        spec=f"{text}{others}run.served 1\n",
    )


def starter_of(bound: BoundCase, library: MpiLibrary) -> Callable[[Path, Mapping[str, str]], Starter | None]:
    """Of the case's launcher; raises UserError where it cannot start this job."""
    names = NodeNames(bound.machine)
    nodes = tuple(names.name(each.node) for each in bound.placement.ranks)
    options = words.split("--launcher-options", bound.case.launcher_options)
    _check_one_binds(bound.case, options)
    return launchers.prepare(bound.case.launcher, library, node_of_rank=nodes, options=options)


def _check_one_binds(case: Case, options: Sequence[str]) -> None:
    """A launcher binds a rank before dryfly would, which then finds it bound."""
    theirs = launchers.binding_words(options)
    bound = case.cpu_bind is not None and case.cpu_bind not in ("none", "no", "user")
    ours = f"--cpu-bind {case.cpu_bind}" if bound else f"--depth {case.depth}"
    if theirs is not None and (bound or (case.cpu_bind is None and case.depth is not None)):
        raise UserError(
            f"{ours} and --launcher-options {theirs}: both bind ranks to cores; accepted is one of the two, or "
            "--cpu-bind none"
        )


def library_of(case: Case, *, needed: str = "") -> MpiLibrary:
    """`needed`: the family that the program asks for. Raises UserError where it is not there, or does not go with the
    case."""
    library = libraries.select(case.mpi, needed=needed)
    on_node.check(library, OnNode.parse(case.on_node))
    if case.provider == "linkx":
        linkx.settings(library, provider_path="", inherited={}, seed=case.seed)
    with environment.applied(case.environment):
        environment.check_settings_of(library)
        on_node.check_settings(library, OnNode.parse(case.on_node))
        environment.check_provider_settings()
    return library
