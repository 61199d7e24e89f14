"""Files of noise (--noise), and what they become in the resolved spec."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dryfly.base.errors import UserError
from dryfly.base.paths import data_folder
from dryfly.case.bind import bind
from dryfly.case.case import Case
from dryfly.machine.load import load, shipped_machines
from dryfly.machine.spec_fields import problems
from dryfly.scenario import noise

TESTBED = load("testbed")
EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "example" / "noise.toml"


def _spec(given: str | Mapping[str, object]) -> dict[str, str]:
    text = bind(Case(nodes=2, compute="none", noise=given)).spec
    assert problems(text) == []
    return dict(line.split(" ", 1) for line in text.splitlines() if line.startswith("noise."))


def test_without_noise_the_spec_says_nothing_of_it() -> None:
    assert _spec("none") == {}


def test_a_file_is_resolved_with_what_it_leaves_out() -> None:
    spec = _spec(str(EXAMPLE))
    assert spec["noise.sources"] == "3"
    assert spec["noise.start_skew_ps"] == "20000000"
    assert spec["noise.cores"] == "128"
    tick = {name: spec[f"noise.0.{name}"] for name in ("on", "instants", "period_ps", "least_ps", "most_ps")}
    assert tick == {"on": "each core", "instants": "regular", "period_ps": "1000000000", "least_ps": "2000000",
                    "most_ps": "2000000"}  # fmt: skip
    assert (spec["noise.0.chance_ppb"], spec["noise.1.chance_ppb"]) == ("1000000000", "300000000")
    assert "noise.0.node" not in spec
    assert spec["noise.2.node"] == "0"


@pytest.mark.parametrize("machine", shipped_machines())
def test_each_machine_has_noise_of_its_own(machine: str) -> None:
    found = noise.load("machine", load(machine))
    assert found is not None
    assert 0 < sum(each.mean_share(64) for each in found.sources) < 0.01


def test_what_data_has_says_where_it_is_from() -> None:
    for path in sorted((data_folder() / "noise").glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["detour"]:
            assert entry["source"], path
            assert entry["certainty"], path


_GOOD = {"every": "1 ms", "length": "2 us"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "noise: no noise: give at least one table"),
        ({"detours": []}, r"unknown key detours; accepted are \[\[detour\]\] and start_skew"),
        ({"detour": {"every": "1 ms"}}, "detour is a list of tables"),
        ({"detour": [{"length": "1 us"}]}, "detour 1: every is missing"),
        ({"detour": [{"every": "1 ms"}]}, "detour 1: length is missing"),
        ({"detour": [{**_GOOD, "often": 1}]}, "detour 1: unknown key often; accepted are name, on"),
        ({"detour": [{**_GOOD, "length": "2 ms"}]}, 'length = "2 ms": accepted is 1 ps to 1 ms'),
        ({"detour": [{**_GOOD, "length": ["2 us"]}]}, "accepted is a time, or two"),
        ({"detour": [{**_GOOD, "length": ["3 us", "2 us"]}]}, "the second must not be shorter"),
        ({"detour": [{**_GOOD, "length": "0.6 ms"}]}, "together take 60% of a core; accepted is up to 50%"),
        ({"detour": [{**_GOOD, "share": 0}]}, "share = 0: accepted is a number above 0 and up to 1"),
        ({"detour": [{**_GOOD, "share": 1e-12}]}, "no less than a billionth"),
        ({"detour": [{**_GOOD, "share": "1"}]}, "share = '1': accepted is a number"),
        ({"detour": [{**_GOOD, "on": "cores"}]}, "on = 'cores': accepted are each core, one core, all cores"),
        ({"detour": [{**_GOOD, "instants": 3}]}, "instants = 3: accepted are regular, random"),
        ({"detour": [{**_GOOD, "node": "nowhere"}]}, "node = 'nowhere': testbed has no such node; its nodes are t0 to"),
        ({"start_skew": "2 s"}, 'start_skew = "2 s": accepted is 0 ps to 1 s'),
        ({"start_skew": 5}, "start_skew = 5: "),
        ({"detour": [{**_GOOD, "every": 1}]}, "detour 1: every = 1: "),
        ({"detour": [{**_GOOD, "every": "1"}]}, 'detour 1: every = "1": '),
        ({"detour": [_GOOD] * 33}, "33 tables"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(content: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        noise.parse(content, TESTBED)


def test_a_file_that_is_not_there_or_not_toml(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--noise nothing cannot be read: .*; accepted is none, machine or a file"):
        noise.load("nothing", TESTBED)
    broken = tmp_path / "broken.toml"
    broken.write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"broken.toml: not valid TOML"):
        noise.load(str(broken), TESTBED)
    with pytest.raises(UserError, match=r'host\.noise = "x": accepted are linux, linux-reserved'):
        noise.load("machine", load("testbed", sets=("host.noise=x",)))
