"""Loads what a case names, places its ranks and resolves it: the only way from a Case to a spec."""

from __future__ import annotations

from dataclasses import dataclass

from dryfly.base.errors import UserError
from dryfly.case.case import SEED_MAX, Case
from dryfly.case.placement import Placement, place
from dryfly.case.resolve import ComputeSpec, OnNode, resolve
from dryfly.machine.machine import Machine, load
from dryfly.scenario import faults
from dryfly.scenario import storage as storage_files
from dryfly.scenario.storage import Storage


@dataclass(frozen=True, kw_only=True)
class BoundCase:
    """A case with everything that it names."""

    case: Case
    machine: Machine
    placement: Placement
    compute: ComputeSpec
    on_node: OnNode
    storage: Storage | None
    spec: str  # docs/reference/resolved-spec.md


def load_machine(case: Case) -> Machine:
    """The machine, with storage servers where the case has storage; raises UserError."""
    check_seed(case.seed)
    machine = load(case.machine, sets=case.sets)
    return storage_files.with_servers(machine) if case.storage is not None else machine


def check_seed(seed: int) -> None:
    if not 0 <= seed <= SEED_MAX:
        raise UserError(f"--seed {seed}: accepted is 0 to {SEED_MAX}")


def bind(case: Case, *, compute_record: str | None = None) -> BoundCase:
    """Raises UserError for what cannot be used. `compute_record`: where what is measured will be written."""
    machine = load_machine(case)
    placement = place(machine, nodes=case.nodes, ppn=case.ppn, ranks=case.ranks, policy=case.place, seed=case.seed)
    scenario = faults.load(case.faults, machine, seed=case.seed) if case.faults is not None else None
    streams = None
    if case.storage is not None:
        streams = storage_files.load(case.storage, machine, job=placement.nodes, seed=case.seed)
    compute = ComputeSpec.parse(case.compute, record_file=compute_record, skip_numerics=case.skip_numerics)
    on_node = OnNode.parse(case.on_node)
    spec = resolve(
        machine, placement, seed=case.seed, compute=compute, scenario=scenario, on_node=on_node, storage=streams
    )
    return BoundCase(
        case=case,
        machine=machine,
        placement=placement,
        compute=compute,
        on_node=on_node,
        storage=streams,
        spec=spec,
    )
