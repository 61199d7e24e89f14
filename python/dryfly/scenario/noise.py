"""Noise: detours of the operating system on the cores of the job's nodes: `--noise machine|FILE`; docs/model/noise.md.

What is said here in text with units becomes entries `noise.*` of the resolved spec. `machine` takes the file in
data/noise that the machine names by host.noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dryfly.base import toml, units
from dryfly.base.errors import UserError
from dryfly.base.paths import data_folder
from dryfly.machine.machine import Machine
from dryfly.machine.names import NodeNames

NONE, OF_MACHINE = "none", "machine"
REACHES = ("each core", "one core", "all cores")
INSTANTS = ("regular", "random")
SOURCES_MAX = 32
_KEYS = ("name", "on", "every", "instants", "length", "share", "node", "source", "certainty", "note")
_WORDS = ("name", "source", "certainty", "note")
_NEEDED = ("every", "length")
_PERIOD_MAX = 10**16  # ps, some hours
_SKEW_MAX = 10**12
_CERTAIN = 10**9
# Of a core's time, if each detour were as long as it may be: a rank has to come on in between.
_SHARE_MAX = 0.5


@dataclass(frozen=True, kw_only=True)
class Source:
    """Detours: in each period one, or none."""

    reach: str
    instants: str
    period: int  # ps, as all times
    least: int
    most: int
    chance: int  # of a billion, that a period has one
    node: int | None  # by index; None: on all

    def mean_share(self, cores: int) -> float:
        """Of a core's time."""
        share = (self.least + self.most) / 2 / self.period * self.chance / _CERTAIN
        return share / cores if self.reach == "one core" else share


@dataclass(frozen=True, kw_only=True)
class Noise:
    name: str  # as --noise has it
    start_skew: int = 0
    sources: tuple[Source, ...] = ()


def load(given: str | Mapping[str, object], machine: Machine) -> Noise | None:
    """None: a silent machine. Raises UserError."""
    if given == NONE:
        return None
    if not isinstance(given, str):
        return parse(given, machine)
    if not given:
        raise UserError(f'--noise "": accepted is {NONE}, {OF_MACHINE} or a file')
    path, name = Path(given), given
    if given == OF_MACHINE:
        named = machine.optional("host.noise")
        if named is None:
            raise UserError(f"--noise machine: machine {machine.name} names no noise by host.noise; accepted is a file")
        path, name = data_folder() / "noise" / f"{named}.toml", f"machine ({named})"
        if not path.is_file():
            known = ", ".join(sorted(each.stem for each in path.parent.glob("*.toml")))
            raise UserError(f'machine {machine.name}: host.noise = "{named}": accepted are {known}')
    content = toml.read(path, f"--noise {given}", accepted=f"{NONE}, {OF_MACHINE} or a file")
    return parse(content, machine, origin=str(path), name=name)


def parse(content: Mapping[str, object], machine: Machine, *, origin: str = "noise", name: str = "as given") -> Noise:
    """What a file's content, or a dict of the same form, describes."""
    for key in content:
        if key not in ("detour", "start_skew"):
            raise UserError(f"{origin}: unknown key {key}; accepted are [[detour]] and start_skew")
    skew = _time(origin, content, "start_skew", least=0, most=_SKEW_MAX) if "start_skew" in content else 0
    entries = content.get("detour", [])
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise UserError(f"{origin}: detour is a list of tables: write [[detour]]")
    if not entries and not skew:
        raise UserError(f"{origin}: no noise: give at least one table [[detour]], or start_skew")
    if len(entries) > SOURCES_MAX:
        raise UserError(f"{origin}: {len(entries)} tables [[detour]]; accepted are up to {SOURCES_MAX}")
    sources = tuple(_source(machine, f"{origin}: detour {at}", entry) for at, entry in enumerate(entries, start=1))
    share = sum(source.most / source.period for source in sources)
    if share > _SHARE_MAX:
        raise UserError(
            f"{origin}: the longest detours of all tables together take {share:.0%} of a core; accepted is up to "
            f"{_SHARE_MAX:.0%}"
        )
    return Noise(name=name, start_skew=skew, sources=sources)


def _source(machine: Machine, where: str, entry: Mapping[str, object]) -> Source:
    for key in entry:
        if key not in _KEYS:
            raise UserError(f"{where}: unknown key {key}; accepted are {', '.join(_KEYS)}")
    for key in _WORDS:
        if not isinstance(entry.get(key, ""), str):
            raise UserError(f"{where}: {key} = {entry[key]!r}: accepted is text")
    for key in _NEEDED:
        if key not in entry:
            raise UserError(f"{where}: {key} is missing")
    period = _time(where, entry, "every", least=1000, most=_PERIOD_MAX)
    least, most = _lengths(where, entry, period)
    chance = _CERTAIN
    if "share" in entry:
        chance = _ratio(where, entry["share"])
    return Source(
        reach=_choice(where, entry, "on", REACHES),
        instants=_choice(where, entry, "instants", INSTANTS),
        period=period,
        least=least,
        most=most,
        chance=chance,
        node=_node(machine, where, entry["node"]) if "node" in entry else None,
    )


def _lengths(where: str, entry: Mapping[str, object], period: int) -> tuple[int, int]:
    given = entry["length"]
    ends = given if isinstance(given, list) else [given, given]
    if len(ends) != 2:
        raise UserError(f"{where}: length = {given}: accepted is a time, or two for the shortest and the longest")
    least, most = (_time(where, {"length": end}, "length", least=1, most=period) for end in ends)
    if least > most:
        raise UserError(f"{where}: length = {given}: the second must not be shorter than the first")
    return least, most


def _ratio(where: str, given: object) -> int:
    """Of the periods, in billionths."""
    shown = f"{where}: share = {given!r}: accepted is a number above 0 and up to 1"
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= 1:
        raise UserError(shown)
    chance = round(given * _CERTAIN)
    if chance == 0:
        raise UserError(f"{shown}, no less than a billionth")
    return chance


def _choice(where: str, entry: Mapping[str, object], key: str, accepted: tuple[str, ...]) -> str:
    value = entry.get(key, accepted[0])
    if not isinstance(value, str) or value not in accepted:
        raise UserError(f"{where}: {key} = {value!r}: accepted are {', '.join(accepted)}")
    return value


def _time(where: str, entry: Mapping[str, object], key: str, *, least: int, most: int) -> int:
    given = entry[key]
    shown = f"{where}: {key} = " + (f'"{given}"' if isinstance(given, str) else f"{given}")
    try:
        value = units.parse(given, units.TIME)
    except UserError as error:
        raise UserError(f"{shown}: {error}") from None
    if not least <= value <= most:
        raise UserError(f"{shown}: accepted is {units.time_text(least)} to {units.time_text(most)}")
    return value


def _node(machine: Machine, where: str, given: object) -> int:
    names = NodeNames(machine)
    index = names.index(given) if isinstance(given, str) else None
    if index is None:
        first, last = names.name(0), names.name(machine.nodes_max - 1)
        raise UserError(f"{where}: node = {given!r}: {machine.name} has no such node; its nodes are {first} to {last}")
    return index


def lines(machine: Machine, noise: Noise) -> list[tuple[str, int | str]]:
    """Of the resolved spec."""
    found: list[tuple[str, int | str]] = [
        ("noise.sources", len(noise.sources)),
        ("noise.start_skew_ps", noise.start_skew),
        ("noise.cores", machine.number("job.cores_per_node")),
    ]
    names = NodeNames(machine)
    for number, source in enumerate(noise.sources):
        name = f"noise.{number}"
        found += [
            (f"{name}.on", source.reach),
            (f"{name}.instants", source.instants),
            (f"{name}.period_ps", source.period),
            (f"{name}.least_ps", source.least),
            (f"{name}.most_ps", source.most),
            (f"{name}.chance_ppb", source.chance),
        ]
        if source.node is not None:
            found.append((f"{name}.node", names.number(source.node)))
    return found
