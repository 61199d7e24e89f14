"""The CXI service that a job runs under: `--service FILE`; see docs/model/services.md.

The file is the YAML that `cxi_service create --yaml-file` takes, or TOML with the same keys. What it says becomes
entries `service.*` of the resolved spec.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dryfly.base import toml
from dryfly.base.errors import UserError
from dryfly.machine.schema import TRAFFIC_CLASSES

# What a NIC has of each, and the name of the limit in the resolved spec; list entries are those of each engine.
_TOTALS = {"ACs": 1022, "CTs": 2047, "EQs": 2047, "LEs": 16384, "PTEs": 2048, "TGQs": 512, "TXQs": 1024, "TLEs": 2048}
_LIMITS = {
    "PTEs": "portal_entries", "TXQs": "transmit_queues", "TGQs": "target_queues", "EQs": "event_queues",
    "CTs": "counters",
}  # fmt: skip
_CLASSES = {
    "DEDICATED_ACCESS": "dedicated", "LOW_LATENCY": "low_latency", "BULK_DATA": "bulk_data",
    "BEST_EFFORT": "best_effort",
}  # fmt: skip
_FLAGS = ("resource_limits", "restricted_members", "restricted_vnis", "restricted_tcs", "exclusive_cp")
_KEYS = ("svc_id", *_FLAGS, "limits", "vnis", "members", "tcs")
_VNIS_MAX = 4
_VNI_MAX = 65535
_TLES_OF_PROVIDER = 8
_TLES_LEAST = 8
_FIRST_ID = 2  # 1 is the default service
_ID_MAX = 2**31 - 1

Entry = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Service:
    number: int
    vnis: tuple[int, ...]  # empty: the range
    vni_range: tuple[int, int]
    classes: frozenset[str]  # of TRAFFIC_CLASSES
    limits: Mapping[str, int] | None  # most of each of _TOTALS; None: no limits


def load(path: str | Entry) -> Service:
    """Of a file, or of a dict of the same form; raises UserError."""
    if not isinstance(path, str):
        return parse(path, "service")
    origin = f"--service {path}"
    if path.endswith(".toml"):
        return parse(toml.read(path, origin), origin)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{origin}: cannot be read: {error}") from None
    return parse(_read_yaml(text, origin), origin)


def parse(content: Entry, origin: str) -> Service:
    for key in content:
        if key not in _KEYS:
            raise UserError(f"{origin}: unknown key {key}; accepted are {', '.join(_KEYS)}")
    flags = {name: _number(content.get(name, 0), f"{origin}: {name}", 0, 1) for name in _FLAGS}
    _check_members(_entries(content, "members", origin), origin)
    limits = _limits(_entries(content, "limits", origin), origin)
    vnis, vni_range = _vnis(content.get("vnis", []), origin)
    if flags["restricted_vnis"] and not vnis:
        raise UserError(f"{origin}: restricted_vnis: no VNI is listed; accepted are 1 to {_VNIS_MAX} under vnis")
    return Service(
        number=_number(content.get("svc_id", _FIRST_ID), f"{origin}: svc_id", 1, _ID_MAX),
        vnis=vnis,
        vni_range=vni_range,
        classes=_classes(content, origin) if flags["restricted_tcs"] else frozenset(TRAFFIC_CLASSES),
        limits=limits if flags["resource_limits"] else None,
    )


def with_service(lines: Sequence[tuple[str, int | str]], service: Service) -> list[tuple[str, int | str]]:
    """The lines of a resolved spec, held to the service."""
    found = dict(lines)
    own = int(found["nic.list_entries"]) * int(found["nic.list_entries_share_ppm"]) // 10**6
    if service.limits is not None:
        entries = max(1, min(own, service.limits["LEs"]))
        changed = {"nic.list_entries": entries, "nic.list_entries_share_ppm": 10**6}
        lines = [(name, changed.get(name, value)) for name, value in lines]
    return [*lines, *_lines(service)]


def _lines(service: Service) -> list[tuple[str, int | str]]:
    bits = sum(1 << TRAFFIC_CLASSES.index(name) for name in service.classes)
    found: list[tuple[str, int | str]] = [("service.id", service.number), ("service.vni_count", len(service.vnis))]
    found += [(f"service.vni.{number}", vni) for number, vni in enumerate(service.vnis)]
    found += [("service.vni.least", service.vni_range[0]), ("service.vni.most", service.vni_range[1])]
    found.append(("service.classes", bits))
    if service.limits is None:
        return found
    found += [(f"service.{name}", service.limits[limit]) for limit, name in _LIMITS.items()]
    found.append(("service.triggered_operations", service.limits["TLEs"] - _TLES_OF_PROVIDER))
    return found


def _number(value: object, where: str, least: int, most: int) -> int:
    if isinstance(value, bool):
        value = int(value)
    if not isinstance(value, int) or not least <= value <= most:
        raise UserError(f"{where} = {value}: accepted is {least} to {most}")
    return value


def _entries(content: Entry, key: str, origin: str) -> Sequence[Entry]:
    entries = content.get(key, [])
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise UserError(f"{origin}: {key}: accepted is a list of entries, each with its keys")
    return entries


def _check_members(members: Sequence[Entry], origin: str) -> None:
    for entry in members:
        if set(entry) != {"type", "id"} or entry["type"] not in ("uid", "gid", "netns"):
            raise UserError(f"{origin}: members: {dict(entry)}: accepted is a type, uid, gid or netns, and an id")


def _vnis(value: object, origin: str) -> tuple[tuple[int, ...], tuple[int, int]]:
    """As `vni: N` up to four times, or vni_min and vni_max; in TOML a list of numbers or a table of these two."""
    where, everything = f"{origin}: vnis", (1, _VNI_MAX)
    pairs = _pairs(value, "vni", where)
    numbers = [_number(number, f"{where}: {name}", 1, _VNI_MAX) for name, number in pairs]
    names = [name for name, _ in pairs]
    if not pairs:
        return (), everything
    if names == ["vni_min", "vni_max"]:
        least, most = numbers
        size = most - least + 1
        if size < 1 or size & (size - 1) or least % size:
            raise UserError(
                f"{where}: vni_min = {least} and vni_max = {most}: accepted is a range of 1, 2, 4, 8 ... VNIs that "
                "begins at a multiple of its length"
            )
        return (), (least, most)
    if set(names) != {"vni"} or len(numbers) > _VNIS_MAX or len(set(numbers)) != len(numbers):
        raise UserError(f"{where}: accepted are up to {_VNIS_MAX} different VNIs, or vni_min and vni_max")
    return tuple(numbers), everything


def _classes(content: Entry, origin: str) -> frozenset[str]:
    names = [name for _, name in _pairs(content.get("tcs", []), "tc", f"{origin}: tcs")]
    if not names:
        raise UserError(f"{origin}: restricted_tcs: no class is listed; accepted under tcs are {', '.join(_CLASSES)}")
    for name in names:
        if name not in _CLASSES:
            raise UserError(f"{origin}: tcs: {name}: accepted are {', '.join(_CLASSES)}")
    granted = {_CLASSES[str(name)] for name in names}
    # What libfabric calls scavenger the machine's provider sends as best effort.
    return frozenset(granted | ({"scavenger"} if "best_effort" in granted else set()))


def _pairs(value: object, name: str, where: str) -> list[tuple[str, object]]:
    if isinstance(value, Mapping):
        return list(value.items())
    if not isinstance(value, list):
        raise UserError(f"{where}: accepted is a list")
    found: list[tuple[str, object]] = []
    for item in value:
        found += list(item.items()) if isinstance(item, Mapping) else [(name, item)]
    if any(key != name and not key.startswith(f"{name}_") for key, _ in found):
        raise UserError(f"{where}: {found[0][0]}: accepted is {name}")
    return found


def _limits(entries: Sequence[Entry], origin: str) -> dict[str, int]:
    """Of what is not listed a service has nothing."""
    limits = dict.fromkeys(_TOTALS, 0)
    for entry in entries:
        name = entry.get("name")
        if set(entry) != {"name", "max", "res"} or name not in _TOTALS:
            raise UserError(
                f"{origin}: limits: {dict(entry)}: accepted is a name, one of {', '.join(_TOTALS)}, with max and res"
            )
        where = f"{origin}: limits: {name}"
        most = _number(entry["max"], f"{where}: max", 0, _TOTALS[str(name)])
        reserved = _number(entry["res"], f"{where}: res", 0, most)
        limits[str(name)] = reserved if name == "TLEs" else most
    limits["TLEs"] = max(limits["TLEs"], _TLES_LEAST)  # as the driver does
    return limits


_KEY = re.compile(r"(?P<dash>- +)?(?P<key>\w+):(?: +(?P<value>\S.*))?$")


def _read_yaml(text: str, origin: str) -> dict[str, object]:
    """Of YAML what the template of cxi_service uses: keys with a value, and below a key without one either entries that
    begin with a dash, or keys that may come again."""
    content: dict[str, object] = {}
    block: list[dict[str, object]] | None = None  # below a key without a value
    dashed = False
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#")[0].rstrip()
        if not line or line == "---":
            continue
        found = _KEY.fullmatch(line.strip())
        inside = line[0] in " \t-"
        if found is None or (not inside and found["key"] in content) or (inside and block is None):
            raise UserError(
                f'{origin}: line {number}: "{line.strip()}": accepted is a file as "cxi_service create" takes it, such '
                "as share/cxi/cxi_service_template.yaml"
            )
        if not inside:
            block, dashed = ([] if found["value"] is None else None), False
            content[found["key"]] = block if found["value"] is None else _scalar(found["value"])
            continue
        assert block is not None
        pair = {found["key"]: _scalar(found["value"] or "")}
        dashed = dashed or found["dash"] is not None
        if dashed and found["dash"] is None and found["key"] not in block[-1]:
            block[-1].update(pair)
        else:
            block.append(pair)
    return content


def _scalar(text: str) -> object:
    text = text.strip().strip("\"'")
    return int(text) if re.fullmatch(r"-?\d+", text) else text
