"""A machine file: TOML in, a checked Machine out.

Each fact is a table {value, source, certainty, note}; in a user's own file plain text does as well. A file may
include others (by the name of a shipped file, or by path); what it says itself overrides what it includes, and
--set overrides both.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from dryfly.base import units
from dryfly.base.errors import UserError
from dryfly.base.paths import data_folder
from dryfly.machine import cabling, qos
from dryfly.machine.field import Field
from dryfly.machine.machine import BY_USER, Fact, GroupKind, Machine
from dryfly.machine.schema import FIELDS, GLOBAL_LINKS, GROUP_FIELDS, QOS_FIELDS, TRAFFIC_CLASSES

_KIND_NAME = re.compile(r"[a-z][a-z0-9_]*")
_PORTS = FIELDS["topology.ports_per_switch"]
_FACT_KEYS = {"value", "source", "certainty", "note"}


def shipped_machines() -> list[str]:
    return sorted(path.stem for path in (data_folder() / "machines").glob("*.toml"))


def load(name_or_file: str, *, sets: Iterable[str] = ()) -> Machine:
    path = _machine_path(name_or_file)
    facts: dict[str, object] = {}
    title = _read_into(facts, path, seen=())
    for item in sets:
        _apply_set(facts, item)
    return _check(name=path.stem, title=title, raw=facts, folder=path.parent)


def _machine_path(name_or_file: str) -> Path:
    if "/" in name_or_file or name_or_file.endswith(".toml"):
        path = Path(name_or_file)
        if not path.is_file():
            reason = "is no ordinary file" if path.exists() else "does not exist"
            raise UserError(f'machine file "{name_or_file}" {reason}')
        return path
    path = data_folder() / "machines" / f"{name_or_file}.toml"
    if not path.is_file():
        known = ", ".join(shipped_machines())
        raise UserError(f'unknown machine "{name_or_file}"; known are {known}, or give the path of a TOML file')
    return path


def _included_path(name: object, *, by: Path) -> Path:
    if not isinstance(name, str):
        raise UserError(f'{by.name}: include is a list of names, such as ["slingshot11"]')
    for candidate in (
        data_folder() / "hardware" / f"{name}.toml",
        data_folder() / "machines" / f"{name}.toml",
        by.parent / name,
    ):
        if candidate.is_file():
            return candidate
    raise UserError(f'{by.name}: include "{name}" is neither a shipped file nor a file beside this one')


def _read_into(facts: dict[str, object], path: Path, *, seen: tuple[Path, ...]) -> str:
    """Adds the file's leaves, those of what it includes first; returns its title."""
    if path in seen:
        raise UserError(f"{path.name} includes itself")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # TOMLDecodeError, UnicodeDecodeError, or a number of more than 4,300 digits
        raise UserError(f"{path} is not valid TOML: {error}") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    title = content.pop("title", "")
    if not isinstance(title, str):
        raise UserError(f"{path.name}: title is text")
    includes = content.pop("include", [])
    if not isinstance(includes, list):
        raise UserError(f'{path.name}: include is a list of names, such as ["slingshot11"]')
    for include in includes:
        inherited = _read_into(facts, _included_path(include, by=path), seen=(*seen, path))
        title = title or inherited
    facts.update(_leaves(content, prefix=""))
    return title


def _leaves(table: Mapping[str, object], *, prefix: str) -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict) and "value" not in value:
            yield from _leaves(value, prefix=f"{path}.")
        else:
            yield path, value


def _apply_set(facts: dict[str, object], item: str) -> None:
    path, equals, text = item.partition("=")
    path, text = path.strip(), text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1]  # quotes that no shell has taken away
    if not equals or not path or not text:
        raise UserError(f'--set "{item}": accepted is path.to.field="value with unit"')
    if _field_of(path, _kind_names(facts)) is None:
        raise UserError(f'--set {path}: there is no such field; "dryfly machines show" lists them')
    facts[path] = {"value": text, "source": BY_USER, "certainty": "user"}


def _kind_names(facts: Mapping[str, object]) -> list[str]:
    """In the order of first appearance, which is the order groups are numbered in."""
    names: dict[str, None] = {}
    for path in facts:
        parts = path.split(".")
        if parts[:2] == ["topology", "group"] and len(parts) == 4:
            names[parts[2]] = None
    return list(names)


def _field_of(path: str, kinds: list[str]) -> Field | None:
    if path in FIELDS:
        return FIELDS[path]
    parts = path.split(".")
    if parts[:2] == ["topology", "group"] and len(parts) == 4 and parts[2] in kinds:
        return GROUP_FIELDS.get(parts[3])
    if parts[:2] == ["topology", "global"] and len(parts) == 3 and parts[2] in _pair_names(kinds):
        return GLOBAL_LINKS
    if parts[:2] == ["fabric", "qos"] and len(parts) == 5 and parts[3] in TRAFFIC_CLASSES:
        return QOS_FIELDS.get(parts[4])
    return None


def _pair_names(kinds: list[str]) -> dict[str, tuple[int, int]]:
    return {f"{first}-{second}": (i, j) for i, first in enumerate(kinds) for j, second in enumerate(kinds) if i <= j}


def _listed(name: str, raw: Mapping[str, object], folder: Path) -> cabling.Cabling | None:
    """The cables that topology.cabling lists, a file beside the machine's or in the current folder."""
    if "topology.cabling" not in raw:
        return None
    if any(path.startswith(("topology.group.", "topology.global.")) for path in raw):
        raise UserError(f"machine {name}: topology.cabling stands in place of topology.group and topology.global")
    text = str(_fact(name, "topology.cabling", raw["topology.cabling"], FIELDS["topology.cabling"]).value)
    ports = _fact(name, "topology.ports_per_switch", raw.get("topology.ports_per_switch", 64), _PORTS).value
    assert isinstance(ports, int)
    beside = folder / text
    return cabling.read(beside if beside.is_file() else Path(text), ports_max=ports)


def _check(*, name: str, title: str, raw: Mapping[str, object], folder: Path = Path()) -> Machine:
    listed = _listed(name, raw, folder)
    if listed is not None:
        raw = {**listed.facts, **raw}
    kind_names = _kind_names(raw)
    facts: dict[str, Fact] = {}
    for path, value in raw.items():
        expected = _field_of(path, kind_names)
        if expected is None:
            raise UserError(f"machine {name}: unknown field {path}{_suggestion(path, kind_names)}")
        facts[path] = _fact(name, path, value, expected)
    _check_complete(name, facts, kind_names)
    kinds = tuple(_group_kind(kind, facts) for kind in kind_names)
    links = {pair: _number(facts, f"topology.global.{key}") for key, pair in _pair_names(kind_names).items()}
    machine = Machine(name=name, title=title, facts=facts, kinds=kinds, global_links=links, cabling=listed)
    _check_together(machine)
    return machine


def _suggestion(path: str, kinds: list[str]) -> str:
    import difflib

    known = [*FIELDS, *(f"topology.group.{kind}.{leaf}" for kind in kinds for leaf in GROUP_FIELDS)]
    known += [f"topology.global.{pair}" for pair in _pair_names(kinds)]
    close = difflib.get_close_matches(path, known, n=1)
    return f"; did you mean {close[0]}?" if close else '; "dryfly machines show" lists the fields'


def _fact(machine: str, path: str, raw: object, expected: Field) -> Fact:
    about: dict[str, str] = {}
    value = raw
    if isinstance(raw, dict):
        unknown = sorted(set(raw) - _FACT_KEYS)
        if unknown:
            raise UserError(f"machine {machine}: {path} has the unknown key {unknown[0]}")
        value = raw["value"]
        about = {key: str(raw[key]) for key in ("source", "certainty", "note") if key in raw}
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    try:
        checked = _checked_value(value, expected)
    except UserError as error:
        raise UserError(f"machine {machine}: {path} = {shown}: {error}") from None
    return Fact(value=checked, text=str(value), **about)


def _checked_value(value: object, expected: Field) -> int | str:
    if expected.dimension is None:
        if not isinstance(value, str) or not expected.takes(value):
            raise UserError(f"accepted is {expected.accepted()}")
        return value
    number = units.parse(value, expected.dimension)
    if not expected.least <= number <= expected.most:
        raise UserError(f"out of range; accepted is {expected.accepted()}")
    return number


def _check_complete(name: str, facts: Mapping[str, Fact], kinds: list[str]) -> None:
    if not kinds:
        raise UserError(f"machine {name}: no group of switches; give at least one table [topology.group.KIND]")
    for kind in kinds:
        if not _KIND_NAME.fullmatch(kind):
            raise UserError(f"machine {name}: topology.group.{kind}: a kind is named by a-z, 0-9 and _")
    needed = [path for path, expected in FIELDS.items() if expected.required]
    needed += [f"topology.group.{kind}.{leaf}" for kind in kinds for leaf in GROUP_FIELDS]
    needed += [f"topology.global.{pair}" for pair in _pair_names(kinds)]
    if "names.style" in facts and facts["names.style"].value == "numbered":
        needed += ["names.prefix", "names.digits", "names.first"]
    for path in needed:
        if path not in facts:
            raise UserError(f"machine {name}: {path} is missing")


def _number(facts: Mapping[str, Fact], path: str) -> int:
    value = facts[path].value
    assert isinstance(value, int)
    return value


def _group_kind(kind: str, facts: Mapping[str, Fact]) -> GroupKind:
    def number(leaf: str) -> int:
        return _number(facts, f"topology.group.{kind}.{leaf}")

    return GroupKind(
        name=kind,
        groups=number("groups"),
        switches=number("switches"),
        nodes=number("nodes"),
        nics_per_node=number("nics_per_node"),
        attach=str(facts[f"topology.group.{kind}.attach"].value),
        local_links=number("local_links"),
    )


def _check_translation(machine: Machine) -> None:
    if machine.optional("nic.translation") == "on" and machine.optional("nic.registration") != "on":
        raise UserError(f"machine {machine.name}: nic.translation = on: accepted is off, or nic.registration = on too")
    pages = int(machine.optional("nic.atu.pages") or 1)
    if pages & (pages - 1):
        raise UserError(f"machine {machine.name}: nic.atu.pages = {pages}: accepted is a power of two up to 64")


def _check_together(machine: Machine) -> None:
    """What no field can be checked for alone."""
    name = machine.name
    known = [kind.name for kind in machine.kinds]
    for wanted in machine.text("job.kinds").split(","):
        if wanted.strip() not in known:
            raise UserError(f'machine {name}: job.kinds names "{wanted.strip()}"; accepted: {", ".join(known)}')
    for index in machine.job_kinds:
        kind = machine.kinds[index]
        if kind.nics_per_node == 0 or kind.nodes == 0:
            raise UserError(f"machine {name}: topology.group.{kind.name} is for jobs but has no nodes or no NICs")
    room = sum(machine.kinds[index].nodes_in_all for index in machine.job_kinds)
    if machine.nodes_max > room:
        raise UserError(f"machine {name}: job.nodes_max = {machine.nodes_max}: the groups have room for {room}")
    domains = int(machine.optional("node.numa") or 1)
    if domains > machine.cores_per_node:
        raise UserError(
            f"machine {name}: job.cores_per_node = {machine.cores_per_node}: accepted is at least a core for each of "
            f"the {domains} NUMA domains (node.numa)"
        )
    _check_translation(machine)
    head, eager = machine.number("nic.rendezvous_head"), machine.number("nic.eager")
    if machine.number("nic.pushed") > machine.number("nic.inline"):
        raise UserError(f"machine {name}: nic.pushed = {machine.number('nic.pushed')} B: accepted is up to nic.inline")
    if not machine.number("nic.inline") <= eager or not head <= eager:
        raise UserError(
            f"machine {name}: nic.eager = {eager} B: accepted is at least nic.inline and nic.rendezvous_head"
        )
    packet = machine.number("fabric.packet.payload") + machine.number("fabric.packet.header")
    if machine.number("fabric.switch.input_buffer") < packet:
        raise UserError(f"machine {name}: fabric.switch.input_buffer: accepted is at least one packet, {packet} B")
    if machine.number("fabric.switch.latency_spread") > machine.number("fabric.switch.latency"):
        raise UserError(f"machine {name}: fabric.switch.latency_spread: accepted is at most fabric.switch.latency")
    qos.check(machine)
    from dryfly.machine.topology import ports_needed

    for index, kind in enumerate(machine.kinds):
        needed, ports = ports_needed(machine, index), machine.number("topology.ports_per_switch")
        if needed > ports:
            raise UserError(
                f"machine {name}: a switch of topology.group.{kind.name} needs {needed} ports "
                f"but topology.ports_per_switch is {ports}"
            )
