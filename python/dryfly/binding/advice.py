"""The good binding of so many ranks to a node, the words of each launcher for it, and why it is good.

Each rank gets as many whole cores as all can have, next to each other and in one NUMA domain or one L3 region where the
domain has room for its ranks; sockets and their domains get ranks evenly, and the GPUs where ranks and GPUs go
into each other are their neighbours'. NICs and GPUs are the nearest, in turn; more ranks than GPUs of several tiles
have a tile each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dryfly.base.errors import UserError
from dryfly.binding import sets
from dryfly.binding.device_forms import closest_nics, gpu_number
from dryfly.binding.doubts import Doubt, doubts, seats
from dryfly.binding.ranks import RankBinding
from dryfly.machine.node import Node


@dataclass(frozen=True, kw_only=True)
class Advice:
    node: Node
    bindings: tuple[RankBinding, ...]  # by local rank

    def doubts(self) -> list[Doubt]:
        return doubts(self.node, seats(self.bindings))


def good(node: Node, *, ranks: int) -> Advice:
    """Raises UserError where a node has fewer cores than ranks."""
    usable = [core for core in range(node.cores) if core not in node.reserved]
    if not 1 <= ranks <= len(usable):
        raise UserError(
            f"--ppn {ranks}: accepted is 1 to {len(usable)}, the cores that a job gets of a node of {node.machine}"
        )
    blocks = [[core for core in block if core not in node.reserved] for block in _blocks(node, ranks)]
    counts = _spread(node, ranks, blocks)
    each = min(len(block) // count for block, count in zip(blocks, counts, strict=True) if count)
    cores: list[list[int]] = []
    for block, count in zip(blocks, counts, strict=True):
        cores += [block[place * each : (place + 1) * each] for place in range(count)]
    domains = [node.domain_of(mine[0]) for mine in cores]
    gpus = _gpus(node, cores, domains)
    nics = _nics(node, domains)
    bindings = tuple(
        RankBinding(
            processors=frozenset(mine),
            memories=frozenset((domain,)),
            gpus=(gpus[local],) if gpus else None,
            nic=nics[local],
        )
        for local, (mine, domain) in enumerate(zip(cores, domains, strict=True))
    )
    return Advice(node=node, bindings=bindings)


def _blocks(node: Node, ranks: int) -> list[range]:
    """What ranks are not to reach across: L3 regions where they have room for all, else domains; a few ranks get
    sockets."""
    regions = [node.region(number) for number in range(node.l3_regions)]
    domains = [domain.cores for domain in node.with_cores]
    if regions and ranks >= len(regions):
        return regions
    if ranks >= len(domains):
        return domains
    per_socket = [[d.cores for d in node.with_cores if d.socket == socket] for socket in range(node.sockets)]
    return [range(cores[0].start, cores[-1].stop) for cores in per_socket]


def _spread(node: Node, ranks: int, blocks: Sequence[Sequence[int]]) -> list[int]:
    """As even as it goes among sockets, among the domains of each and among the blocks of each; those that get one more
    are the first, and no block gets more ranks than cores."""
    counts = [0] * len(blocks)
    of_domain, of_socket = Counter[int](), Counter[int]()
    domains = [node.domain_of(block[0]) if block else 0 for block in blocks]
    sockets = [node.socket(domain) for domain in domains]
    for _ in range(ranks):
        place = min(
            (place for place in range(len(blocks)) if counts[place] < len(blocks[place])),
            key=lambda at: (of_socket[sockets[at]], of_domain[domains[at]], counts[at]),
        )
        counts[place] += 1
        of_domain[domains[place]] += 1
        of_socket[sockets[place]] += 1
    return counts


def _gpus(node: Node, cores: Sequence[Sequence[int]], domains: Sequence[int]) -> list[str]:
    """The nearest GPU of each rank, of equally near ones that with the fewest; `2.1` for a tile, where ranks would else
    share GPUs that have several."""
    count = len(node.gpu_domains)
    if not count:
        return []
    tiles = node.gpu_tiles if len(cores) > count else 1
    most = -(-len(cores) // count)
    taken = [0] * count
    found = []
    for mine, domain in zip(cores, domains, strict=True):
        near = min(
            (gpu for gpu in range(count) if taken[gpu] < most),
            key=lambda gpu: (_gpu_distance(node, mine[0], domain, gpu), taken[gpu], gpu),
        )
        found.append(near)
        taken[near] += 1
    if tiles == 1:
        return [str(gpu) for gpu in found]
    found = _in_order(found, domains)
    return [f"{gpu}.{found[:local].count(gpu) % tiles}" for local, gpu in enumerate(found)]


def _in_order(gpus: Sequence[int], domains: Sequence[int]) -> list[int]:
    """The same GPUs for the ranks of each domain, with neighbours on one GPU."""
    found = list(gpus)
    for domain in set(domains):
        ranks = [local for local, at in enumerate(domains) if at == domain]
        for local, gpu in zip(ranks, sorted(gpus[local] for local in ranks), strict=True):
            found[local] = gpu
    return found


def _gpu_distance(node: Node, core: int, domain: int, gpu: int) -> int:
    at = node.gpu_domains[gpu]
    if node.gpu_regions and node.gpu_regions[gpu] == node.region_of(core):
        return 0
    return 1 if at == domain else 2 if node.socket(at) == node.socket(domain) else 3


def _nics(node: Node, domains: Sequence[int]) -> list[int]:
    """The nearest; ranks of a domain that share its NICs have neighbouring ones in blocks."""
    turns = closest_nics(node, domains)
    found: list[int] = list(turns)
    for domain in set(domains):
        ranks = [local for local, at in enumerate(domains) if at == domain]
        near = sorted({turns[local] for local in ranks})
        for place, local in enumerate(ranks):
            found[local] = near[place * len(near) // len(ranks)]
    return found


def commands(advice: Advice) -> dict[str, str]:
    """Options of each launcher by its name, for a node's ranks; `dryfly run` takes PALS' and srun's as well."""
    cpus = [sets.text(each.processors or ()) for each in advice.bindings]
    memories = [sets.text(each.memories or ()) for each in advice.bindings]
    gpus = [each.gpus[0] for each in advice.bindings if each.gpus]
    nics = [str(each.nic) for each in advice.bindings]
    ranks = len(cpus)
    masks = ",".join(sets.mask(each.processors or ()) for each in advice.bindings)
    pals = f"mpiexec --ppn {ranks} --cpu-bind list:{':'.join(cpus)} --mem-bind list:{':'.join(memories)}"
    slurm = f"srun --ntasks-per-node={ranks} --cpu-bind=mask_cpu:{masks} --mem-bind=map_mem:{','.join(memories)}"
    # Flux binds no memories; its map's sets are Linux's numbers, as srun's and PALS' are.
    flux = f"flux run --tasks-per-node={ranks} --exclusive -o cpu-affinity='map:{';'.join(cpus)}'"
    if gpus:
        pals += f" --gpu-bind list:{':'.join(gpus)}"
        numbers = [str(gpu_number(gpu)) for gpu in gpus]
        slurm += f" --gpu-bind=map_gpu:{','.join(numbers)}"
        flux += f" -o gpu-affinity='map:{';'.join(numbers)}'"
    hydra = f"mpiexec.hydra -ppn {ranks} -bind-to user:{','.join(cpu.replace(',', '+') for cpu in cpus)}"
    mapping = ";".join(f"{nic}:{sets.text(_users(nics, nic))}" for nic in dict.fromkeys(nics))
    own = pals.replace(f"mpiexec --ppn {ranks}", f"dryfly run --machine {advice.node.machine} --ppn {ranks}")
    return {
        "PALS' mpiexec": pals,
        "srun": slurm,
        "flux run": flux,
        "MPICH's mpiexec": hydra,
        "NICs, with each of them": f'export MPICH_OFI_NIC_POLICY=USER MPICH_OFI_NIC_MAPPING="{mapping}"',
        "dryfly run": f"{own} --nic-bind list:{':'.join(nics)}",
    }


def _users(nics: Sequence[str], nic: str) -> list[int]:
    return [local for local, each in enumerate(nics) if each == nic]


def reasons(advice: Advice) -> list[str]:
    """What is true of it, and only that."""
    node, bindings = advice.node, advice.bindings
    each = len(bindings[0].processors or ())
    found = [f"every rank has {each} core{'s' if each > 1 else ''} of its own, and none is reserved for the system"]
    if not node.reserved:
        found = [f"every rank has {each} core{'s' if each > 1 else ''} of its own"]
    doubted = {doubt.name for doubt in advice.doubts()}
    cores = [sorted(map(node.core_of, binding.processors or ())) for binding in bindings]
    domains = [{node.domain_of(core) for core in mine} for mine in cores]
    if all(len(at) == 1 for at in domains):
        found.append("no rank reaches across NUMA domains, and each has its memory in its own")
    if node.l3_regions and all(len({node.region_of(core) for core in mine}) == 1 for mine in cores):
        found.append("no rank reaches across L3 regions")
    beside = [domain for domain in node.domains if not domain.cores]
    if beside:
        numbers = " and ".join(sets.text([domain.number]) for domain in beside)
        size = f" of {beside[0].size >> 30} GiB each" if beside[0].size else ""
        found.append(
            f"memory is that beside the cores; what fits into {beside[0].kind or 'memory'}{size} may lie there "
            f"(--mem-bind, domains {numbers}), which a rank of many cores reads faster"
        )
    counts = [sum(1 for at in domains if domain.number in at) for domain in node.with_cores]
    if len(counts) > 1 and len(set(counts)) == 1:
        found.append(f"each NUMA domain has {counts[0]} of the ranks")
    elif max(counts) - min(counts) == 1:
        found.append(f"each NUMA domain has {min(counts)} or {max(counts)} of the ranks, as even as it goes")
    if node.sockets > 1 and "binding_far_nic" not in doubted:
        found.append("every rank's NIC is on the rank's socket")
    elif node.sockets == 1 and all(
        node.nic_domains[binding.nic or 0] in at for binding, at in zip(bindings, domains, strict=True)
    ):
        found.append("every rank's NIC is in the rank's NUMA domain")
    nics = [sum(1 for binding in bindings if binding.nic == nic) for nic in range(len(node.nic_domains))]
    if len(nics) > 1 and min(nics) > 0:
        spread = f"{min(nics)} to {max(nics)}" if min(nics) != max(nics) else str(nics[0])
        found.append(f"all {len(nics)} NICs are used, by {spread} rank{'s' if max(nics) > 1 else ''} each")
    if bindings[0].gpus and not doubted & {"binding_far_gpu", "binding_far_region"}:
        near = "L3 region" if node.gpu_regions else "socket"
        found.append(f"every rank's GPU is next to the rank's {near}")
    names = [gpu for binding in bindings for gpu in binding.gpus or ()]
    if len(names) > 1 and len(set(names)) == len(names):
        found.append(f"every rank has a {'tile' if '.' in names[0] else 'GPU'} of its own")
    return found
