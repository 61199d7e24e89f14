"""Faults: a scenario file (`--faults`), and what a machine file says is down. docs/reference/cli.md describes both.

What is said here in names of nodes and text with units becomes entries `faults.N` of the resolved spec, for links, and
`slow.N`, for parts of nodes. The simulator knows the wiring; it refuses a link that is not there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from dryfly.base import toml, units
from dryfly.base.errors import UserError
from dryfly.machine.machine import Machine
from dryfly.machine.names import NodeNames
from dryfly.machine.node import most_nics, node_of

_CABLE = re.compile(r"[sn]\d+[->][sn]\d+(\.\d+)?|n\d+")
_KINDS_OF_CABLES = ("all", "edge", "local", "global")
_PLACES = ("link", "switch", "nic", "node")
_INSTANT_MAX = 10**18  # ps, 11 days
_BILLION = 10**9
_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One entry of the resolved spec, for each place it names."""

    kind: str
    places: tuple[str, ...]
    from_ps: int = 0
    until_ps: int | None = None
    more: tuple[tuple[str, int], ...] = ()
    said: str = field(default="", compare=False)  # where its author has


@dataclass(frozen=True, kw_only=True)
class Slow:
    """A part of a node that is slower than the machine's, for as long as the machine is looked at."""

    kind: str  # nic, memory, cpu or gpu
    number: int  # of the NIC, node or GPU, over the machine
    share_ppb: int  # what is left: of the rate of a NIC's link, of a GPU's, of the part's own speed


@dataclass(frozen=True, kw_only=True)
class Said:
    """One table of a scenario, as its author has it: what an operator's log would know of it."""

    kind: str
    place: str
    where: str  # of the file it stands, with the place
    places: tuple[str, ...]  # links and NICs as the spec names them, GPUs as gpu_place does
    node: int | None = None  # over the machine
    from_ps: int = 0
    until_ps: int | None = None
    values: tuple[tuple[str, float], ...] = ()
    draw: int = 0  # what chance makes of it is drawn from that

    def value(self, name: str) -> float | None:
        return dict(self.values).get(name)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    faults: tuple[Fault, ...] = ()
    seed: int | None = None  # None: the run's
    slow: tuple[Slow, ...] = ()
    said: tuple[Said, ...] = ()


# Keys of an entry besides the place: those it must have, and those it may have.
_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "flap": ((), ("at", "for", "per_hour")),
    "loss": (("at",), ()),
    "lanes": (("lanes",), ("at", "for")),
    "replays": (("rate",), ("at", "for")),
    "drain": (("at",), ("for",)),
    "load": (("share",), ("at", "for")),
    "miscabled": (("with",), ()),
    "pcie": ((), ("width", "speed", "replays")),
    "nic": (("rate",), ()),
    "gpu": (("rate",), ()),
    "memory": (("rate",), ()),
    "cpu": (("rate",), ()),
    "node": ((), ("at",)),
}
# What each kind may be about; those not named here: any place of _PLACES.
_PLACES_OF: dict[str, tuple[str, ...]] = {
    "miscabled": ("link",),
    "pcie": ("nic", "node"),
    "memory": ("node",),
    "cpu": ("node",),
    "gpu": ("gpu", "node"),
}
_CABLE_OF_SWITCHES = re.compile(r"s\d+-s\d+(\.\d+)?")
_PCIE_WIDTHS = (1, 2, 4, 8, 16)
_PCIE_SPEEDS = (2.5, 5, 8, 16, 32)  # of its versions 1 to 5, in GT/s


def load(path: str | Mapping[str, object], machine: Machine, *, seed: int) -> Scenario:
    """The scenario of a file, or of a dict of the same form."""
    if not isinstance(path, str):
        return parse(path, machine, seed=seed)
    content = toml.read(path, f"--faults {path}")
    return parse(content, machine, seed=seed, origin=path)


def parse(content: Mapping[str, object], machine: Machine, *, seed: int, origin: str = "faults") -> Scenario:
    """The scenario that a file's content, or a dict of the same form, describes."""
    chosen = content.get("seed")
    if chosen is not None and (not isinstance(chosen, int) or isinstance(chosen, bool) or not 0 <= chosen < 2**63):
        raise UserError(f"{origin}: seed = {chosen}: accepted is 0 to {2**63 - 1}")
    scenario = Scenario(seed=chosen)
    for kind, entries in content.items():
        if kind == "seed":
            continue
        if kind not in _KEYS:
            raise UserError(f"{origin}: unknown table [[{kind}]]; accepted are {', '.join(_KEYS)}, and seed")
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise UserError(f"{origin}: {kind} is a list of tables: write [[{kind}]]")
        for number, entry in enumerate(entries, start=1):
            where = f"{origin}: {kind} {number}"
            draw = _draw(chosen if chosen is not None else seed, f"{kind} {number}")
            faults, slow, said = _entry(machine, where, kind, entry, draw)
            scenario = replace(
                scenario,
                faults=(*scenario.faults, *(replace(fault, said=said.where) for fault in faults)),
                slow=(*scenario.slow, *slow),
                said=(*scenario.said, said),
            )
    return scenario


def _draw(seed: int, name: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"faults {seed} {name}".encode(), digest_size=8).digest(), "big")


def _entry(
    machine: Machine, where: str, kind: str, entry: Mapping[str, object], draw: int
) -> tuple[list[Fault], list[Slow], Said]:
    """What it is to links and to parts of nodes, and what its author has said."""
    needed, optional = _KEYS[kind]
    accepted = _PLACES_OF.get(kind, _PLACES)
    for key in entry:
        if key not in (*accepted, *needed, *optional):
            raise UserError(f"{where}: unknown key {key}; accepted are {', '.join((*accepted, *needed, *optional))}")
    for key in needed:
        if key not in entry:
            raise UserError(f"{where}: {key} is missing")
    given = [key for key in accepted if key in entry]
    if len(given) != 1:
        raise UserError(f"{where}: name one place by one of the keys {', '.join(accepted)}")
    if kind == "gpu":
        return _slow_gpus(machine, where, entry, given[0], draw)
    places = _places(machine, where, entry, given[0])
    node = None
    if given[0] == "node":
        index = NodeNames(machine).index(str(entry["node"]))
        assert index is not None
        node = NodeNames(machine).number(index)
    place = str(entry[given[0]])
    about = f'{where}: {given[0]} = "{place}"'
    said = Said(kind=kind, place=place, where=about, places=places, node=node, draw=draw)
    if kind == "miscabled":
        return _miscabled(machine, where, entry, said)
    if kind in ("pcie", "nic", "memory", "cpu"):
        return _slow(machine, where, entry, said)
    if kind == "node":
        if given[0] != "node":
            raise UserError(f"{where}: unknown key {given[0]}; accepted are node, at")
        at = _time(where, entry, "at", least=0) if "at" in entry else 0
        return [Fault(kind="down", places=places, from_ps=at)], [], replace(said, from_ps=at)
    fault = _link_fault(machine, where, kind, entry, places, draw)
    values = {name: float(value) for name, value in fault.more}
    return [fault], [], replace(
        said, from_ps=fault.from_ps, until_ps=fault.until_ps, values=tuple(values.items())
    )  # fmt: skip


def _miscabled(
    machine: Machine, where: str, entry: Mapping[str, object], said: Said
) -> tuple[list[Fault], list[Slow], Said]:
    """Of two cables that are swapped the fabric manager uses neither: it finds neighbours that it does not expect."""
    other = str(entry["with"])
    for key, text in (("link", said.place), ("with", other)):
        if _CABLE_OF_SWITCHES.fullmatch(text) is None:
            raise UserError(f'{where}: {key} = "{text}": accepted is a cable between switches, "s0-s4"')
        _check_numbers(machine, f'{where}: {key} = "{text}"', text)
    ends = [(set(re.findall(r"s(\d+)", text)), text.partition(".")[2]) for text in (said.place, other)]
    if ends[0] == ends[1]:
        raise UserError(f'{where}: with = "{other}": accepted is another cable than link')
    return [Fault(kind="absent", places=(said.place, other))], [], replace(said, places=(said.place, other))


def _slow(
    machine: Machine, where: str, entry: Mapping[str, object], said: Said
) -> tuple[list[Fault], list[Slow], Said]:
    if said.kind in ("memory", "cpu"):
        assert said.node is not None
        share = _share(where, "rate", entry["rate"])
        slow = Slow(kind=said.kind, number=said.node, share_ppb=share)
        return [], [slow], replace(said, values=(("rate", share / _BILLION),))
    if said.kind == "nic":
        share = _share(where, "rate", entry["rate"])
        values = [("rate", share / _BILLION)]
    else:
        share, values = _pcie(machine, where, entry)
    if not all(re.fullmatch(r"n\d+", place) for place in said.places):
        raise UserError(f'{where}: "{said.place}": accepted is a NIC, "n0" and so on, or a node')
    slows = [Slow(kind="nic", number=int(place[1:]), share_ppb=share) for place in said.places]
    return [], slows, replace(said, values=tuple(values))


def gpu_place(node: int, gpu: int) -> str:
    """A GPU by the number of its node over the machine and its own on it."""
    return f"node {node} gpu{gpu}"


def _slow_gpus(
    machine: Machine, where: str, entry: Mapping[str, object], key: str, draw: int
) -> tuple[list[Fault], list[Slow], Said]:
    """The links of one GPU, `crusher001 gpu3`, or of all of a node."""
    about, text = f'{where}: {key} = "{entry[key]}"', str(entry[key])
    if machine.optional("node.gpu_runtime") is None:
        raise UserError(f"{about}: {machine.name} has no GPUs that are simulated")
    count = len(node_of(machine, nics=most_nics(machine)).gpu_domains)
    name, number = text, None
    if key == "gpu":
        found = re.fullmatch(r"(\S+) gpu(\d+)", text)
        if found is None or int(found[2]) >= count:
            raise UserError(f"{about}: accepted is a node and one of its GPUs gpu0 to gpu{count - 1}, as in "
                            f'"{NodeNames(machine).name(0)} gpu0"')  # fmt: skip
        name, number = found[1], int(found[2])
    node = NodeNames(machine).number(_index_of(machine, about, name))
    share = _share(where, "rate", entry["rate"])
    gpus = range(count) if number is None else [number]
    places, values = tuple(gpu_place(node, gpu) for gpu in gpus), (("rate", share / _BILLION),)
    said = Said(kind="gpu", place=text, where=about, places=places, node=node, draw=draw, values=values)
    return [], [Slow(kind="gpu", number=node * count + gpu, share_ppb=share) for gpu in gpus], said


def _index_of(machine: Machine, about: str, name: str) -> int:
    """Of a node, among those of jobs."""
    names = NodeNames(machine)
    index = names.index(name)
    if index is None:
        first, last = names.name(0), names.name(machine.nodes_max - 1)
        raise UserError(f"{about}: {machine.name} has no such node; its nodes are {first} to {last}")
    return index


def _pcie(machine: Machine, where: str, entry: Mapping[str, object]) -> tuple[int, list[tuple[str, float]]]:
    """What is left of the rate of a link, of a NIC whose PCIe has fewer lanes, a lower speed, or replays."""
    if not any(key in entry for key in ("width", "speed", "replays")):
        raise UserError(f"{where}: width, speed or replays is missing")
    usual_width, usual_speed = machine.number("nic.pcie.width"), machine.number("nic.pcie.speed")
    width = entry.get("width", usual_width)
    if isinstance(width, bool) or not isinstance(width, int) or width not in _PCIE_WIDTHS or width > usual_width:
        raise UserError(f"{where}: width = {width}: accepted is 1, 2, 4, 8 or 16 lanes, up to {usual_width}")
    speed = entry.get("speed", usual_speed)
    if isinstance(speed, bool) or speed not in _PCIE_SPEEDS or float(str(speed)) > usual_speed:
        raise UserError(f"{where}: speed = {speed}: accepted is 2.5, 5, 8, 16 or 32 GT/s, up to {usual_speed:g}")
    replays = _rate(where, entry["replays"], "replays") / _BILLION if "replays" in entry else 0.0
    if replays >= 1:
        raise UserError(f'{where}: replays = "{entry["replays"]}": accepted is less than all packets')
    rate = machine.number("nic.pcie.rate") * (width / usual_width) * (speed / usual_speed) * (1 - replays)
    share = min(1.0, rate / machine.number("fabric.link.rate"))
    degraded = float(width < usual_width or speed < usual_speed)
    values = [("width", float(width)), ("speed", float(speed)), ("degraded", degraded), ("replays", replays),
              ("rate", share)]  # fmt: skip
    return max(1, round(share * _BILLION)), values


def _share(where: str, key: str, value: object) -> int:
    """What is left, in billionths: 0.5, or "50 %"."""
    try:
        share = value if isinstance(value, int | float) else units.parse(value, units.RATIO) / 10**6
    except UserError as error:
        raise UserError(f'{where}: {key} = "{value}": {error}') from None
    if isinstance(value, bool) or not 0.001 <= share <= 1:
        raise UserError(f"{where}: {key} = {value}: accepted is 0.001 to 1 of what is usual")
    return round(share * _BILLION)


def _link_fault(
    machine: Machine, where: str, kind: str, entry: Mapping[str, object], places: tuple[str, ...], draw: int
) -> Fault:
    from_ps = _time(where, entry, "at", least=0) if "at" in entry else 0
    until_ps = from_ps + _time(where, entry, "for", least=1) if "for" in entry else None
    if kind == "flap":
        return _flap(machine, where, entry, places, from_ps, until_ps, draw)
    if kind == "lanes":
        lanes = entry["lanes"]
        if not isinstance(lanes, int) or isinstance(lanes, bool) or lanes not in (1, 2, 3):
            raise UserError(f"{where}: lanes = {lanes}: accepted is 1 to 3 of the 4 (a link without lanes is a loss)")
        return Fault(kind="lanes", places=places, from_ps=from_ps, until_ps=until_ps, more=(("lanes", lanes),))
    if kind == "load":
        share = _share(where, "share", entry["share"])
        if share >= _BILLION:
            raise UserError(f"{where}: share = {entry['share']}: accepted is less than all of the link")
        return Fault(kind="load", places=places, from_ps=from_ps, until_ps=until_ps, more=(("rate_ppb", share),))
    if kind == "replays":
        rate = _rate(where, entry["rate"])
        return Fault(kind="replays", places=places, from_ps=from_ps, until_ps=until_ps, more=(("rate_ppb", rate),))
    return Fault(kind="down" if kind == "loss" else kind, places=places, from_ps=from_ps, until_ps=until_ps)


def _flap(
    machine: Machine,
    where: str,
    entry: Mapping[str, object],
    places: tuple[str, ...],
    from_ps: int,
    until_ps: int | None,
    draw: int,
) -> Fault:
    """At an instant, for a time or for a retune that is drawn; or at random, so many in an hour on each link."""
    least, most = machine.number("fabric.link.retune.least"), machine.number("fabric.link.retune.most")
    if "per_hour" not in entry:
        if "at" not in entry:
            raise UserError(f"{where}: at or per_hour is missing")
        until = until_ps if until_ps is not None else from_ps + least + draw % (most - least + 1)
        return Fault(kind="down", places=places, from_ps=from_ps, until_ps=until)
    per_hour = entry["per_hour"]
    if isinstance(per_hour, bool) or not isinstance(per_hour, int | float) or not 0 < per_hour <= _SECONDS_PER_HOUR:
        raise UserError(f"{where}: per_hour = {per_hour}: accepted is more than 0 and at most {_SECONDS_PER_HOUR}")
    rate = max(1, round(per_hour * _BILLION / _SECONDS_PER_HOUR))
    more = (("rate_ppb", rate), ("least_ps", least), ("most_ps", most))
    return Fault(kind="flaps", places=places, from_ps=from_ps, until_ps=until_ps, more=more)


def _time(where: str, entry: Mapping[str, object], key: str, *, least: int) -> int:
    try:
        value = units.parse(entry[key], units.TIME)
    except UserError as error:
        raise UserError(f'{where}: {key} = "{entry[key]}": {error}') from None
    if not least <= value <= _INSTANT_MAX:
        raise UserError(f'{where}: {key} = "{entry[key]}": accepted is {least} ps to {_INSTANT_MAX // 10**12} s')
    return value


def _rate(where: str, value: object, key: str = "rate") -> int:
    """A share of packets in billionths: 1e-6, or "1 ppm"."""
    try:
        share = value if isinstance(value, int | float) else units.parse(value, units.RATIO) / 10**6
    except UserError as error:
        raise UserError(f'{where}: {key} = "{value}": {error}') from None
    if isinstance(value, bool) or not 1 / _BILLION <= share <= 1:
        raise UserError(f"{where}: {key} = {value}: accepted is 1e-9 to 1 of the packets")
    return round(share * _BILLION)


def _places(machine: Machine, where: str, entry: Mapping[str, object], key: str) -> tuple[str, ...]:
    text = entry[key]
    if not isinstance(text, str):
        raise UserError(f"{where}: {key} = {text}: accepted is text")
    if key == "node":
        return _nics_of_node(machine, f'{where}: node = "{text}"', text)
    accepted = {
        "link": '"s0-s4" for cables, "s0>s4" for one direction, "s0-s4.1" for the second of parallel ones, "n5" for '
        "a NIC's, or " + ", ".join(_KINDS_OF_CABLES),
        "switch": '"s0" and so on',
        "nic": '"n0" and so on',
    }[key]
    fits = {
        "link": _CABLE.fullmatch(text) is not None or text in _KINDS_OF_CABLES,
        "switch": re.fullmatch(r"s\d+", text) is not None,
        "nic": re.fullmatch(r"n\d+", text) is not None,
    }[key]
    if not fits:
        raise UserError(f'{where}: {key} = "{text}": accepted is {accepted}')
    _check_numbers(machine, f'{where}: {key} = "{text}"', text)
    return (text,)


def _check_numbers(machine: Machine, about: str, text: str) -> None:
    from dryfly.machine.topology import summarise

    counts = summarise(machine)
    for letter, count, what in (("s", counts.switches, "switches"), ("n", counts.nics, "NICs")):
        for number in re.findall(rf"{letter}(\d+)", text if text not in _KINDS_OF_CABLES else ""):
            if int(number) >= count:
                raise UserError(f"{about}: {machine.name} has the {what} {letter}0 to {letter}{count - 1}")


def _nics_of_node(machine: Machine, about: str, name: str) -> tuple[str, ...]:
    names, index = NodeNames(machine), _index_of(machine, about, name)
    first = first_nic(machine, names.number(index))
    return tuple(f"n{first + nic}" for nic in range(names.nics(index)))


def first_nic(machine: Machine, node: int) -> int:
    nics = 0
    for kind in machine.kinds:
        if node < kind.nodes_in_all:
            return nics + node * kind.nics_per_node
        node -= kind.nodes_in_all
        nics += kind.nodes_in_all * kind.nics_per_node
    raise IndexError(node)


def down_nodes(machine: Machine) -> frozenset[int]:
    """The job's nodes that the machine file says are down."""
    names = NodeNames(machine)
    found = (names.index(place) for place in _down(machine))
    listed = frozenset(names.listed_down())
    return listed | frozenset(index for index in found if index is not None)


def absent(machine: Machine) -> tuple[Fault, ...]:
    """What the machine file says is down, as faults that have always been there."""
    names = NodeNames(machine)
    faults: list[Fault] = []
    for place in _down(machine):
        about = f'machine {machine.name}: fabric.down: "{place}"'
        if names.index(place) is not None:
            faults.append(Fault(kind="absent", places=_nics_of_node(machine, about, place)))
        elif _CABLE.fullmatch(place) or re.fullmatch(r"s\d+", place):
            _check_numbers(machine, about, place)
            faults.append(Fault(kind="absent", places=(place,)))
        else:
            raise UserError(f'{about}: accepted are cables such as "s0-s4", "s3", "n5", and names of nodes')
    if machine.cabling is not None and machine.cabling.absent:
        faults.append(Fault(kind="absent", places=machine.cabling.absent))
    return tuple(faults)


def _down(machine: Machine) -> list[str]:
    text = machine.optional("fabric.down")
    places = [place.strip() for place in str(text).split(",")] if text else []
    cabling = machine.optional("fabric.cabling")
    if cabling is None:
        return places
    try:
        lines = Path(str(cabling)).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise UserError(f'machine {machine.name}: fabric.cabling = "{cabling}": no file that can be read') from None
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if words and (len(words) != 2 or words[1] not in ("up", "down")):
            raise UserError(f"{cabling}, line {number}: accepted is a cable or node, and up or down")
        if words and words[1] == "down":
            places.append(words[0])
    return places


def _rows(machine: Machine, scenario: Scenario | None) -> list[tuple[Fault, str]]:
    """In the order of the spec's entries."""
    faults = [*absent(machine), *(scenario.faults if scenario is not None else ())]
    return [(fault, place) for fault in faults for place in fault.places]


def as_said(sentence: str, machine: Machine, scenario: Scenario | None) -> str:
    """A sentence about an entry of the spec, `faults.0: ...`, with the place where its author has written it."""
    found = re.match(r"faults\.(\d+)(?=: )", sentence)
    rows = _rows(machine, scenario)
    if found is None or int(found[1]) >= len(rows):
        return sentence
    fault, place = rows[int(found[1])]
    return (fault.said or f"machine {machine.name}: {place} is down") + sentence[found.end() :]


def resolved(machine: Machine, scenario: Scenario | None, *, seed: int) -> list[tuple[str, int | str]]:
    """The lines of the spec; none but the count where nothing is wrong."""
    rows = _rows(machine, scenario)
    lines: list[tuple[str, int | str]] = [("faults.count", len(rows))]
    if rows:
        lines.append(("faults.seed", scenario.seed if scenario is not None and scenario.seed is not None else seed))
    for number, (fault, place) in enumerate(rows):
        name = f"faults.{number}"
        lines += [(f"{name}.kind", fault.kind), (f"{name}.where", place), (f"{name}.from_ps", fault.from_ps)]
        if fault.until_ps is not None:
            lines.append((f"{name}.until_ps", fault.until_ps))
        lines += [(f"{name}.{leaf}", value) for leaf, value in fault.more]
    return lines + _slow_lines(scenario)


def _slow_lines(scenario: Scenario | None) -> list[tuple[str, int | str]]:
    if scenario is None or not scenario.slow:
        return []
    lines: list[tuple[str, int | str]] = [("slow.count", len(scenario.slow))]
    for number, part in enumerate(scenario.slow):
        name = f"slow.{number}"
        lines += [(f"{name}.kind", part.kind), (f"{name}.number", part.number), (f"{name}.share_ppb", part.share_ppb)]
    return lines


def retry_lines(machine: Machine) -> list[tuple[str, int | str]]:
    """The schedule of the NIC's retries."""
    lines: list[tuple[str, int | str]] = []
    items = [item.strip() for item in machine.text("nic.retry.delays").split(",")]
    for number, item in enumerate(items):
        try:
            delay = units.parse(item, units.TIME)
        except UserError as error:
            raise UserError(f'machine {machine.name}: nic.retry.delays: "{item}": {error}') from None
        lines.append((f"nic.retry.delay.{number}.ps", delay))
    if len(items) > 7:
        raise UserError(f"machine {machine.name}: nic.retry.delays: {len(items)} retries; accepted are up to 7")
    return [("nic.retry.count", len(items)), *lines]
