"""What each level measures: steps, in each of which every NIC or rank is in one pair at most.

A schedule of disjoint pairs covers all pairs of a level: that of a round-robin tournament, n - 1 rounds for n players.
Pure functions of the wiring; nothing here knows what is wrong with the machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dryfly.scenario.faults import gpu_place
from dryfly.validate.wiring import Cable, Wiring, nic_place, node_place

RANKS_OF_NIC = 2  # of a node's level


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What a pair of a step measures, and of whom: `places` are the parts that its time tells of."""

    a: int  # NIC, or of a node's level the node's rank, see Step.on_node
    b: int
    places: tuple[str, ...]
    gpu: int | None = None  # of the node, in whose memory the buffers of both are; None: in the host's


@dataclass(frozen=True, kw_only=True)
class Step:
    """`kind`: pingpong, stream, send or work, as programs/benchmark/probe.c and `dryfly-motif probe` have them.
    `size` in bytes; `count`: messages, or nanoseconds of work."""

    measure: str
    kind: str
    size: int
    count: int
    probes: tuple[Probe, ...]
    rank: int = 1  # of a send's times the one that counts, from the fastest on
    on_node: str = ""  # of the node's level: the ranks of a node talk by `memory` or by `nic`


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Bytes and counts of the measures; data/validate.toml says why."""

    memory_bytes: int
    memory_count: int
    loopback_bytes: int
    loopback_count: int
    gpu_bytes: int
    gpu_count: int
    work_ns: int
    latency_count: int
    nic_bytes: int
    nic_count: int
    link_bytes: int
    link_count: int
    sends_of_cable: int
    sends_of_trunk: int
    pair_bytes: int
    pair_count: int
    system_bytes: int


def tournament(players: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """Rounds in which everybody meets everybody once; of an odd number one rests in each."""
    ring: list[int | None] = [*players] if len(players) % 2 == 0 else [*players, None]
    size = len(ring)
    for _ in range(size - 1):
        met = [(ring[i], ring[size - 1 - i]) for i in range(size // 2)]
        yield [(a, b) for a, b in met if a is not None and b is not None]
        ring = [ring[0], ring[-1], *ring[1:-1]]


def _merged(schedules: Iterable[Iterable[list[tuple[int, int]]]]) -> list[list[tuple[int, int]]]:
    """Schedules of disjoint players at once: their first rounds together, and so on."""
    rounds: list[list[tuple[int, int]]] = []
    for schedule in schedules:
        for number, met in enumerate(schedule):
            if number == len(rounds):
                rounds.append([])
            rounds[number] += met
    return rounds


def node_level(wiring: Wiring, nodes: Sequence[int], sizes: Sizes, *, turn: int = 0) -> list[Step]:
    """RANKS_OF_NIC for each NIC: 2 i and 2 i + 1 of a node have its i-th. All nodes at once, since they share nothing.
    In another `turn` GPUs are measured by other NICs of their node."""
    ranks_of: dict[int, range] = {}
    first = 0
    for node in nodes:
        count = RANKS_OF_NIC * len(wiring.nics_of_node[node])
        ranks_of[node] = range(first, first + count)
        first += count
    copies, work = [], []
    loops: defaultdict[int, list[Probe]] = defaultdict(list)
    for node, ranks in ranks_of.items():
        for place, nic in enumerate(wiring.nics_of_node[node]):
            a, b = ranks[2 * place], ranks[2 * place + 1]
            copies.append(Probe(a=a, b=b, places=(node_place(node),)))
            loops[place].append(Probe(a=a, b=b, places=(nic_place(nic),)))
        work += [Probe(a=rank, b=rank, places=(node_place(node),)) for rank in ranks]
    steps = [
        Step(measure="memory", kind="stream", size=sizes.memory_bytes, count=sizes.memory_count, probes=tuple(copies),
             on_node="memory"),
        Step(measure="cpu", kind="work", size=0, count=sizes.work_ns, probes=tuple(work), on_node="memory"),
    ]  # fmt: skip
    steps += [
        Step(measure="loopback", kind="stream", size=sizes.loopback_bytes, count=sizes.loopback_count,
             probes=tuple(probes), on_node="nic")
        for probes in loops.values()
    ]  # fmt: skip
    return steps + _gpu_steps(wiring, ranks_of, sizes, turn)


def _gpu_steps(wiring: Wiring, ranks_of: Mapping[int, range], sizes: Sizes, turn: int) -> list[Step]:
    """A NIC to itself out of each GPU's memory and back into it, of a node as many at once as it has NICs: by the
    nearest, in another turn by the next ones."""
    waiting = list(enumerate(wiring.gpus))
    steps: list[Step] = []
    while waiting:
        busy: set[int] = set()
        chosen: list[tuple[int, int]] = []
        rest = []
        for gpu, nics in waiting:
            nic = nics[turn % len(nics)]
            if nic in busy:
                rest.append((gpu, nics))
                continue
            chosen.append((gpu, nic))
            busy.add(nic)
        probes = tuple(
            Probe(a=ranks[2 * nic], b=ranks[2 * nic + 1], places=(gpu_place(node, gpu),), gpu=gpu)
            for node, ranks in ranks_of.items()
            for gpu, nic in chosen
        )
        steps.append(Step(measure="gpu", kind="stream", size=sizes.gpu_bytes, count=sizes.gpu_count, probes=probes,
                          on_node="nic"))  # fmt: skip
        waiting = rest
    return steps


def switch_level(wiring: Wiring, nodes: Sequence[int], sizes: Sizes) -> list[Step]:
    """Each two NICs of a switch that are of different nodes; a NIC that has none such with one of another switch."""
    of_switches = wiring.nics_of_switches(nodes)
    rounds = _merged(tournament(nics) for nics in of_switches.values())
    steps = []
    for met in rounds:
        probes = tuple(
            Probe(a=a, b=b, places=(nic_place(a), nic_place(b)))
            for a, b in met
            if wiring.node_of_nic[a] != wiring.node_of_nic[b]
        )
        if probes:
            steps.append(_stream("nic", sizes.nic_bytes, sizes.nic_count, probes))
            steps.append(Step(measure="latency", kind="pingpong", size=8, count=sizes.latency_count, probes=probes))
    alone = [nics for nics in of_switches.values() if len({wiring.node_of_nic[nic] for nic in nics}) == 1]
    return steps + cross_pairs([nic for nics in alone for nic in nics], wiring, nodes, sizes, turn=0)


def cross_pairs(nics: Sequence[int], wiring: Wiring, nodes: Sequence[int], sizes: Sizes, turn: int) -> list[Step]:
    """Each of them with another NIC each turn, and at a time one of a node only, for NICs of a node share its PCIe. The
    others are none of these if there is such a one, and of its switch, for what lies between switches may be slow."""
    suspected, node_of, switch_of = set(nics), wiring.node_of_nic, wiring.switch_of_nic
    all_nics = [nic for node in nodes for nic in wiring.nics_of_node[node]]
    good = [nic for nic in all_nics if nic not in suspected]
    near: dict[int, list[int]] = {}
    for nic in all_nics:
        near.setdefault(switch_of[nic], []).append(nic)
    found: list[Step] = []
    waiting = list(nics)
    while waiting:
        busy: set[int] = set()  # nodes
        probes, rest = [], []
        for place, nic in enumerate(waiting):
            own = node_of[nic]
            around = [each for each in near[switch_of[nic]] if node_of[each] not in busy and node_of[each] != own]
            free = [each for each in around if each not in suspected]
            other = free[turn % len(free)] if free else None
            for far in (good, around, nics):
                if other is None and own not in busy:
                    # Each begins at another place of a list that may be as long as the machine has NICs.
                    turned = (far[(place + turn + n) % len(far)] for n in range(len(far)))
                    other = next((each for each in turned if node_of[each] not in busy and node_of[each] != own), None)
            if own in busy or other is None:
                rest.append(nic)
                continue
            busy |= {own, node_of[other]}
            probes.append(Probe(a=nic, b=other, places=(nic_place(nic),)))
        if not probes:
            break
        some = tuple(probes)
        found.append(Step(measure="nic", kind="stream", size=sizes.nic_bytes, count=sizes.nic_count, probes=some))
        found.append(Step(measure="latency", kind="pingpong", size=8, count=sizes.latency_count, probes=some))
        waiting = rest
    return found


def _stream(measure: str, size: int, count: int, probes: tuple[Probe, ...]) -> Step:
    return Step(measure=measure, kind="stream", size=size, count=count, probes=probes)


def group_level(wiring: Wiring, nodes: Sequence[int], sizes: Sizes) -> list[Step]:
    """Each cable between two switches of a group by one pair of NICs at its ends; then each two nodes of a group."""
    cables = [cable for cable in wiring.cables if not cable.is_global]
    by_group: defaultdict[int, list[int]] = defaultdict(list)
    for node in nodes:
        by_group[wiring.group_of_node(node)].append(node)
    rounds = _merged(tournament(members) for members in by_group.values())
    return link_steps(wiring, nodes, cables, sizes) + [
        _node_pairs(wiring, met, "pair", sizes.pair_bytes, sizes.pair_count) for met in rounds
    ]


def pair_level(wiring: Wiring, nodes: Sequence[int], sizes: Sizes) -> list[Step]:
    """Each cable between two groups by one pair of NICs at its ends; then the nodes of each two groups, n-th with n-th:
    those of other places meet in the system's level."""
    cables = [cable for cable in wiring.cables if cable.is_global]
    by_group: defaultdict[int, list[int]] = defaultdict(list)
    for node in nodes:
        by_group[wiring.group_of_node(node)].append(node)
    steps = link_steps(wiring, nodes, cables, sizes)
    for met in tournament(sorted(by_group)):
        pairs = [pair for g, h in met for pair in zip(by_group[g], by_group[h], strict=False)]
        if pairs:
            steps.append(_node_pairs(wiring, pairs, "groups", sizes.pair_bytes, sizes.pair_count))
    return steps


def system_level(wiring: Wiring, nodes: Sequence[int], sizes: Sizes) -> list[Step]:
    """Each two nodes of different groups, in rounds in which all nodes are busy."""
    steps = []
    for met in tournament(_dealt(wiring, nodes)):
        apart = [(a, b) for a, b in met if wiring.group_of_node(a) != wiring.group_of_node(b)]
        if apart:
            steps.append(_node_pairs(wiring, apart, "system", sizes.system_bytes, sizes.pair_count))
    return steps


def _dealt(wiring: Wiring, nodes: Sequence[int]) -> list[int]:
    """In the order in which a tournament has partners of many groups in each round: group by group in turn."""
    by_group: defaultdict[int, list[int]] = defaultdict(list)
    for node in nodes:
        by_group[wiring.group_of_node(node)].append(node)
    longest = max((len(members) for members in by_group.values()), default=0)
    return [members[i] for i in range(longest) for members in by_group.values() if i < len(members)]


def _node_pairs(wiring: Wiring, met: Sequence[tuple[int, int]], measure: str, size: int, count: int) -> Step:
    probes = tuple(
        Probe(a=a, b=b, places=(nic_place(a), nic_place(b)))
        for left, right in met
        for a, b in zip(wiring.nics_of_node[left], wiring.nics_of_node[right], strict=False)
    )
    return _stream(measure, size, count, probes)


def link_steps(
    wiring: Wiring, nodes: Sequence[int], cables: Sequence[Cable], sizes: Sizes, *, turn: int = 0
) -> list[Step]:
    """Each of these cables, both ways, between two NICs at its ends, of which another `turn` takes others.

    An eager message is ordered: all of it goes by one way, and what says that it has come goes back by the same. Within
    a group that is the cable between the two switches; between groups it is one of all the minimal ways, and the
    fastest of many messages has had the direct one. Of parallel cables one that is slow makes as many of the direct
    messages slow as its share of them is: so the time counts that the first half of that share would have.
    """
    of_switch = wiring.nics_of_switches(nodes)
    trunks = {cable.trunk: cable for cable in cables if cable.a in of_switch and cable.b in of_switch}
    waiting = list(trunks.values())
    steps: list[Step] = []
    number = turn
    while waiting:
        busy: set[int] = set()
        probes, rest = [], []
        for cable in waiting:
            if cable.a in busy or cable.b in busy:
                rest.append(cable)
                continue
            busy |= {cable.a, cable.b}
            ends = [
                (a, b)
                for a in of_switch[cable.a]
                for b in of_switch[cable.b]
                if wiring.node_of_nic[a] != wiring.node_of_nic[b]
            ]
            if ends:
                a, b = ends[(number * 7) % len(ends)]
                probes.append((cable, Probe(a=a, b=b, places=(cable.trunk,))))
        steps += _link_probes(wiring, probes, sizes)
        waiting = rest
        number += 1
    return steps


def _link_probes(wiring: Wiring, probes: Sequence[tuple[Cable, Probe]], sizes: Sizes) -> list[Step]:
    by_way: defaultdict[tuple[str, int, int], list[Probe]] = defaultdict(list)
    for cable, probe in probes:
        groups = wiring.group_of_switch[cable.a], wiring.group_of_switch[cable.b]
        ways = wiring.links_between(*groups) if cable.is_global else cable.siblings
        by_way["cable" if cable.is_global else "link", cable.siblings, ways].append(probe)
    steps = []
    for (measure, siblings, ways), there in by_way.items():
        count, rank = _sends(siblings, ways, sizes)
        back = [Probe(a=probe.b, b=probe.a, places=probe.places) for probe in there]
        steps += [
            Step(measure=measure, kind="send", size=sizes.link_bytes, count=count, rank=rank, probes=tuple(way))
            for way in (there, back)
        ]
    return steps


def _sends(siblings: int, ways: int, sizes: Sizes) -> tuple[int, int]:
    """How many messages, and the rank of the time that counts. A switch looks at two of the ways that there are."""
    if ways == 1:
        return sizes.link_count, 1
    if siblings == 1:
        return sizes.sends_of_cable * ways, 1
    count = sizes.sends_of_trunk * ways
    direct = count * (1 - (1 - siblings / ways) ** 2)
    return count, max(1, round(direct * (1 - 0.5 / siblings)))


def level_steps(level: str, wiring: Wiring, nodes: Sequence[int], sizes: Sizes) -> list[Step]:
    makers = {
        "node": node_level, "switch": switch_level, "group": group_level, "pair": pair_level, "system": system_level
    }  # fmt: skip
    return [step for step in makers[level](wiring, nodes, sizes) if step.probes]
