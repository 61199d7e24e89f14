"""Which rank runs on which node, and which NIC it uses first.

Ranks are numbered node by node. `packed` takes the machine's first nodes; `spread` deals them over the groups in
turn, and over each group's switches; `random` draws nodes by the seed; anything else is a file with one node name
(or x-name) per line and rank, `NAME COUNT` standing for COUNT ranks.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.machine.machine import Machine
from dryfly.machine.names import NodeNames
from dryfly.scenario.faults import down_nodes

RANKS_MAX = 16384  # wire::rank_count_max
_SKELETON_RANKS_MAX = 1 << 24  # that a file may place
_POLICIES = ("packed", "spread", "random")


@dataclass(frozen=True, kw_only=True)
class RankPlace:
    rank: int
    node: int  # index among the job's nodes
    local: int  # rank on its node
    nic: int


@dataclass(frozen=True, kw_only=True)
class Placement:
    policy: str
    ranks: tuple[RankPlace, ...]

    @property
    def nodes(self) -> list[int]:
        """The nodes used, in the order of their first rank."""
        return list(dict.fromkeys(place.node for place in self.ranks))


def place(
    machine: Machine,
    *,
    nodes: int | None = None,
    ppn: int | None = None,
    ranks: int | None = None,
    policy: str = "packed",
    seed: int = 1,
) -> Placement:
    for flag, value in (("-N", nodes), ("--ppn", ppn), ("-n", ranks)):
        if value is not None and value < 1:
            raise UserError(f"{flag} {value}: accepted is 1 or more")
    names = NodeNames(machine)
    if policy not in _POLICIES:
        chosen = _from_file(machine, names, Path(policy), nodes=nodes, ppn=ppn, ranks=ranks)
    else:
        counts = _counts_per_node(machine, nodes=nodes, ppn=ppn, ranks=ranks)
        order = _up(machine, names, len(counts), policy=policy, seed=seed)
        chosen = [node for node, count in zip(order, counts, strict=True) for _ in range(count)]
    _check_cores(machine, names, chosen)
    return Placement(policy=policy, ranks=_with_nics(names, chosen))


def node_blocks(machine: Machine, *, nodes: int, ppn: int, policy: str = "packed", seed: int = 1) -> list[int]:
    """For skeletons, which may have a million ranks: the machine-wide numbers of the nodes that `place` would choose,
    each with `ppn` ranks in a row. Raises UserError, also for a file that does not give each node as many in a row."""
    names = NodeNames(machine)
    if policy in _POLICIES:
        order = _up(machine, names, nodes, policy=policy, seed=seed)
    else:
        chosen = _from_file(machine, names, Path(policy), nodes=nodes, ppn=ppn, most=_SKELETON_RANKS_MAX)
        order = chosen[::ppn]
        if chosen != [node for node in order for _ in range(ppn)]:
            raise UserError(
                f"--place {policy}: accepted for skeletons is a file with {ppn} ranks in a row on each node"
            )
    return [names.number(node) for node in order]


def nodes_listed(machine: Machine, policy: str) -> int | None:
    """How many nodes a file gives; None: the policy is no file. Raises UserError."""
    if policy in _POLICIES:
        return None
    names = NodeNames(machine)
    return len(set(_from_file(machine, names, Path(policy), most=_SKELETON_RANKS_MAX)))


def _up(machine: Machine, names: NodeNames, count: int, *, policy: str, seed: int) -> list[int]:
    """So many nodes that are not down, in the policy's order. Raises UserError where there are fewer."""
    down = down_nodes(machine)
    if count + len(down) > machine.nodes_max:
        less = f", of which {len(down)} are down" if down else ""
        raise UserError(f"{machine.name} has {machine.nodes_max} nodes{less}; {count} are asked for")
    order = _node_order(machine, names, count + len(down), policy=policy, seed=seed)
    return [node for node in order if node not in down][:count]


def _counts_per_node(machine: Machine, *, nodes: int | None, ppn: int | None, ranks: int | None) -> list[int]:
    """Ranks of each node in turn. With -n alone one rank a node as long as the machine has nodes."""
    if nodes is None and ppn is None and ranks is None:
        nodes, ppn = 2, 1
    if ranks is None:
        nodes, ppn = nodes or 1, ppn or 1
        ranks = nodes * ppn
    elif nodes is None:
        nodes = -(-ranks // ppn) if ppn else min(ranks, machine.nodes_max)
    elif ppn is not None and ranks > nodes * ppn:
        raise UserError(f"-n {ranks}: {nodes} nodes with {ppn} ranks each hold {nodes * ppn}")
    if nodes > machine.nodes_max:
        raise UserError(f"{machine.name} has {machine.nodes_max} nodes, {nodes} are asked for")
    if ranks > machine.nodes_max * machine.cores_per_node:
        held = machine.nodes_max * machine.cores_per_node
        raise UserError(f"{machine.name} holds {held} ranks (one a core), {ranks} are asked for")
    if ranks > RANKS_MAX:
        raise UserError(f"{ranks} ranks: at most {RANKS_MAX} real processes can be run")
    if nodes > ranks:
        raise UserError(f"-N {nodes}: more nodes than ranks ({ranks})")
    if ppn is not None:
        full, rest = divmod(ranks, ppn)
        return ([ppn] * full + [rest])[:nodes] if rest and full < nodes else [ppn] * full
    return [ranks // nodes + (1 if node < ranks % nodes else 0) for node in range(nodes)]


def _node_order(machine: Machine, names: NodeNames, count: int, *, policy: str, seed: int) -> list[int]:
    if policy == "packed":
        return list(range(count))
    if policy == "random":
        return heapq.nsmallest(count, range(machine.nodes_max), key=lambda node: _draw(seed, node))
    return _spread(machine, names, count)


def _draw(seed: int, node: int) -> bytes:
    return hashlib.blake2b(f"placement {seed} {node}".encode(), digest_size=16).digest()


def _spread(machine: Machine, names: NodeNames, count: int) -> list[int]:
    sizes: list[int] = []
    for size in names.group_sizes():
        sizes.append(min(size, machine.nodes_max - sum(sizes)))
    shares = [0] * len(sizes)
    dealt: list[int] = []
    while len(dealt) < count:
        for group, size in enumerate(sizes):
            if shares[group] < size and len(dealt) < count:
                shares[group] += 1
                dealt.append(group)
    starts = [sum(sizes[:group]) for group in range(len(sizes))]
    taken = [0] * len(sizes)
    order: list[int] = []
    for group in dealt:
        order.append(starts[group] + taken[group] * sizes[group] // shares[group])
        taken[group] += 1
    return order


def _from_file(
    machine: Machine,
    names: NodeNames,
    path: Path,
    *,
    nodes: int | None = None,
    ppn: int | None = None,
    ranks: int | None = None,
    most: int = RANKS_MAX,
) -> list[int]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise UserError(f'--place "{path}": neither packed, spread or random, nor a file that can be read') from None
    down = down_nodes(machine)
    chosen: list[int] = []
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        node = names.index(words[0])
        if node is None:
            has = f"its nodes are {names.name(0)} to {names.name(machine.nodes_max - 1)}"
            raise UserError(f'{path}, line {number}: {machine.name} has no node "{words[0]}"; {has}')
        if node in down:
            raise UserError(f"{path}, line {number}: node {words[0]} of {machine.name} is down")
        if len(words) > 2 or (len(words) == 2 and not (words[1].isdecimal() and 0 < int(words[1]) <= most)):
            raise UserError(f"{path}, line {number}: accepted is a node name, optionally with a number of ranks")
        chosen += [node] * (int(words[1]) if len(words) == 2 else 1)
    if not 0 < len(chosen) <= most:
        raise UserError(f"{path} places {len(chosen)} ranks; accepted is 1 to {most}")
    per_node = Counter(chosen)
    for flag, asked, found in (
        ("-n", ranks, len(chosen)),
        ("-N", nodes, len(per_node)),
        ("--ppn", ppn, max(per_node.values())),
    ):
        if asked is not None and asked != found:
            raise UserError(f"{flag} {asked} contradicts {path}, which gives {found}")
    return chosen


def _check_cores(machine: Machine, names: NodeNames, chosen: list[int]) -> None:
    node, most = Counter(chosen).most_common(1)[0]
    if most > machine.cores_per_node:
        raise UserError(
            f"{most} ranks on node {names.name(node)}: a node of {machine.name} has {machine.cores_per_node} cores"
        )


def _with_nics(names: NodeNames, chosen: list[int]) -> tuple[RankPlace, ...]:
    """Local rank L of P takes NIC L x K / P of K: in blocks when P >= K, apart when P < K."""
    per_node = Counter(chosen)
    seen: Counter[int] = Counter()
    places: list[RankPlace] = []
    for rank, node in enumerate(chosen):
        local = seen[node]
        seen[node] += 1
        places.append(RankPlace(rank=rank, node=node, local=local, nic=local * names.nics(node) // per_node[node]))
    return tuple(places)
