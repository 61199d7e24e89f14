"""--service: the file of `cxi_service create`, and what becomes of it in the resolved spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.scenario import service
from dryfly.scenario.service import Service, with_service

_FILE = """\
# Valid Values are 0 or 1
resource_limits: 1
restricted_members: 1
restricted_tcs: 1
exclusive_cp: 1

limits:
  - name: ACs
    max: 1
    res: 1
  - name: CTs
    max: 3
    res: 1
  - name: LEs
    max: 100
    res: 16
  - name: TLEs
    max: 9
    res: 9
vnis:
  vni: 2
  vni: 3
members:
  - type: uid
    id: 1
  - type: gid
    id: 2
tcs:
  tc: LOW_LATENCY
  tc: BEST_EFFORT
"""


def _load(folder: Path, text: str, name: str = "service.yaml") -> Service:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return service.load(str(path))


def test_a_file_as_cxi_service_takes_it_becomes_lines_of_the_spec(tmp_path: Path) -> None:
    """What is not listed there is none: of a NIC's 2,047 event queues too. Of nine TLEs the provider keeps eight."""
    found = with_service([("nic.list_entries", 16384), ("nic.list_entries_share_ppm", 10**6)], _load(tmp_path, _FILE))
    assert found == [
        ("nic.list_entries", 100), ("nic.list_entries_share_ppm", 10**6),
        ("service.id", 2), ("service.vni_count", 2), ("service.vni.0", 2), ("service.vni.1", 3),
        ("service.vni.least", 1), ("service.vni.most", 65535),
        ("service.classes", 1 << 1 | 1 << 3 | 1 << 4),
        ("service.portal_entries", 0), ("service.transmit_queues", 0), ("service.target_queues", 0),
        ("service.event_queues", 0), ("service.counters", 3), ("service.triggered_operations", 1),
    ]  # fmt: skip


def test_the_machines_own_share_of_list_entries_stays_where_the_service_has_more() -> None:
    limits = [{"name": "LEs", "max": 16384, "res": 16}]
    held = service.load({"resource_limits": 1, "limits": limits})
    found = dict(with_service([("nic.list_entries", 16384), ("nic.list_entries_share_ppm", 250_000)], held))
    assert found["nic.list_entries"] * found["nic.list_entries_share_ppm"] // 10**6 == 4096  # type: ignore[operator]


def test_toml_and_a_dict_have_the_same_keys(tmp_path: Path) -> None:
    text = 'restricted_tcs = 1\ntcs = ["BULK_DATA"]\nvnis = [7, 8]\nsvc_id = 5\n'
    expected = Service(number=5, vnis=(7, 8), vni_range=(1, 65535), classes=frozenset({"bulk_data"}), limits=None)
    assert _load(tmp_path, text, "service.toml") == expected
    assert service.load({"restricted_tcs": 1, "tcs": ["BULK_DATA"], "vnis": [7, 8], "svc_id": 5}) == expected


def test_a_range_of_vnis(tmp_path: Path) -> None:
    found = _load(tmp_path, "vnis:\n  vni_min: 64\n  vni_max: 127\n")
    assert (found.vnis, found.vni_range, found.limits) == ((), (64, 127), None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("restricted: 1\n", "unknown key restricted; accepted are svc_id, resource_limits"),
        ("restricted_tcs: 2\n", "restricted_tcs = 2: accepted is 0 to 1"),
        ("restricted_tcs: 1\n", "restricted_tcs: no class is listed"),
        ("restricted_tcs: 1\ntcs:\n  tc: FAST\n", "tcs: FAST: accepted are DEDICATED_ACCESS, LOW_LATENCY"),
        ("restricted_vnis: 1\n", "restricted_vnis: no VNI is listed"),
        ("vnis:\n  vni: 70000\n", "vnis: vni = 70000: accepted is 1 to 65535"),
        ("vnis:\n" + "".join(f"  vni: {n}\n" for n in range(1, 6)), "accepted are up to 4 different VNIs"),
        ("vnis:\n  vni_min: 64\n  vni_max: 126\n", "accepted is a range of 1, 2, 4, 8 ... VNIs"),
        ("vnis:\n  network: 3\n", "vnis: network: accepted is vni"),
        ("resource_limits: 1\nlimits:\n  - name: CTs\n    max: 4000\n    res: 1\n", "max = 4000: accepted is 0 to 20"),
        ("resource_limits: 1\nlimits:\n  - name: CTs\n    max: 4\n    res: 5\n", "CTs: res = 5: accepted is 0 to 4"),
        ("resource_limits: 1\nlimits:\n  - name: QPs\n    max: 4\n    res: 1\n", "accepted is a name, one of ACs, CTs"),
        ("limits: 3\n", "limits: accepted is a list of entries"),
        ("members:\n  - type: host\n    id: 3\n", "accepted is a type, uid, gid or netns, and an id"),
        ("svc_id: 0\n", "svc_id = 0: accepted is 1 to"),
        ("a line\n", 'line 1: "a line": accepted is a file as "cxi_service create" takes it'),
        ("tcs:\n  tc: BULK_DATA\ntcs:\n", "line 3"),
        ("  svc_id: 3\n", "line 1"),
        ("restricted_tcs: 0\n  tc: BULK_DATA\n", 'line 2: "tc: BULK_DATA": accepted is a file as'),
        ("vnis:\n  vni: 5\nsvc_id: 3\n  - vni: 6\n", "line 4"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UserError) as error:
        _load(tmp_path, text)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        service.load(str(tmp_path / "none.yaml"))
