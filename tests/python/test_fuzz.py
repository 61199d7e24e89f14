"""Whatever a user writes into a file or a flag, the answer is what it means or one sentence (UserError), never a crash.

The inputs are drawn by hypothesis, always the same ones; most are valid ones with something changed.
"""

from __future__ import annotations

import contextlib
import io
import zipfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dryfly.base import units
from dryfly.base.errors import UserError
from dryfly.base.paths import data_folder
from dryfly.case.placement import place
from dryfly.case.resolve import ComputeSpec, resolve
from dryfly.machine.load import load
from dryfly.machine.machine import Machine
from dryfly.result import compute_recording as recording
from dryfly.scenario import faults

repeatable = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

_TESTBED = load("testbed")
_EXAMPLE = (Path(__file__).parents[2] / "docs" / "example" / "faults.toml").read_text(encoding="utf-8")
_DIMENSIONS = [units.TIME, units.SIZE, units.RATE, units.RATIO, units.COUNT]
_UNITS = ["ns", "s", "ps", "h", "GB/s", "Gb/s", "KiB", "B", "%", "x", "ppm", "", "furlong"]

anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12), st.lists(st.integers(), max_size=2)
)
quantities = st.builds(
    lambda number, space, unit: f"{number}{space}{unit}",
    st.one_of(st.integers(-3, 10**21), st.floats(), st.sampled_from(["", "1e400", "0x1f", "1_000", "٣"])),
    st.sampled_from(["", " ", "  "]),
    st.sampled_from(_UNITS),
)
values = st.one_of(quantities, anything, st.sampled_from(["minimal", "valiant", "off", "on", "s0-s1", "n5", "t1"]))


def mutated(text: str) -> st.SearchStrategy[str]:
    """The text with a piece of it taken out, doubled or replaced."""

    def change(begin: int, length: int, times: int, instead: str) -> str:
        return text[:begin] + text[begin : begin + length] * times + instead + text[begin + length :]

    positions = st.integers(0, len(text))
    return st.builds(change, positions, st.integers(0, 40), st.sampled_from([0, 2]), st.text(max_size=4))


@repeatable
@given(text=st.one_of(quantities, anything), dimension=st.sampled_from(_DIMENSIONS))
def test_a_quantity(text: object, dimension: units.Dimension) -> None:
    try:
        value = units.parse(text, dimension)
    except UserError:
        return
    assert isinstance(value, int)


def _use(machine: Machine) -> None:
    placement = place(machine, ranks=2)
    resolve(machine, placement, seed=1, compute=ComputeSpec.parse("none"), scenario=None)


@repeatable
@given(field=st.one_of(st.sampled_from(sorted(_TESTBED.facts)), st.text(max_size=20)), value=values)
def test_a_set_flag(field: str, value: object) -> None:
    with contextlib.suppress(UserError):
        _use(load("testbed", sets=[f"{field}={value}"]))


@repeatable
@given(text=mutated((data_folder() / "machines" / "testbed.toml").read_text(encoding="utf-8")))
def test_a_machine_file(text: str, tmp_path: Path) -> None:
    file = tmp_path / "machine.toml"
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    with contextlib.suppress(UserError):
        _use(load(str(file)))


numbers = st.sampled_from(
    [0, 1, 2.0, 0.5, True, -1, 10**400, float("nan"), float("inf"), "1 ppm", "4 s", "1e-30 s", "0"]
)
places = st.sampled_from([("node", "t1"), ("node", 1), ("link", "s0-s1"), ("link", "global"), ("link", "s0>s1.9"),
                          ("switch", "s3"), ("switch", ""), ("nic", "n5"), ("nic", "n99")])  # fmt: skip
amounts = st.dictionaries(
    st.sampled_from(["at", "for", "per_hour", "rate", "lanes", "until"]),
    st.one_of(numbers, quantities, anything),
    min_size=1,
)
entries = st.builds(lambda place, amount: dict([place]) | amount, places, amounts)


@repeatable
@given(
    kind=st.sampled_from(["flap", "lanes", "replays", "loss", "drain", "seed", "storm"]),
    tables=st.one_of(st.lists(entries, min_size=1, max_size=2), anything),
)
def test_a_scenario_of_faults(kind: str, tables: Any) -> None:
    try:
        scenario = faults.parse({kind: tables}, _TESTBED, seed=1)
        resolve(_TESTBED, place(_TESTBED, ranks=2), seed=1, compute=ComputeSpec.parse("none"), scenario=scenario)
    except UserError:
        pass


@repeatable
@given(place_of=places, value=numbers, kind=st.sampled_from(["lanes", "replays", "flap"]))
def test_a_fault_with_an_odd_number(place_of: tuple[str, object], value: object, kind: str) -> None:
    key = {"lanes": "lanes", "replays": "rate", "flap": "per_hour"}[kind]
    with contextlib.suppress(UserError):
        faults.parse({kind: [dict([place_of]) | {key: value}]}, _TESTBED, seed=1)


@repeatable
@given(text=mutated(_EXAMPLE))
def test_a_file_of_faults(text: str, tmp_path: Path) -> None:
    file = tmp_path / "faults.toml"
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    with contextlib.suppress(UserError):
        faults.load(str(file), _TESTBED, seed=1)


@repeatable
@given(content=st.one_of(st.binary(max_size=40), mutated("t0\nt1\n# the third\nt2\n").map(lambda text: text.encode())))
def test_a_file_of_places(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "places"
    file.write_bytes(content)
    with contextlib.suppress(UserError):
        place(_TESTBED, ranks=2, policy=str(file))


@repeatable
@given(mode=st.one_of(st.text(max_size=12), st.builds("measured:{}".format, values), st.just("replay:")))
def test_a_compute_mode(mode: str) -> None:
    with contextlib.suppress(UserError):
        ComputeSpec.parse(mode)


@repeatable
@given(about=st.binary(max_size=30), cut=st.integers(0, 200))
def test_a_recording(about: bytes, cut: int, tmp_path: Path) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("about.json", about)
    file = tmp_path / "recording"
    file.write_bytes(whole.getvalue()[: len(whole.getvalue()) - cut])
    with contextlib.suppress(UserError):
        recording.check_source(str(file), ranks=2)
