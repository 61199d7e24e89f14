"""Names of the provider's settings, and what is said of one that nobody reads."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from dryfly.base import toml
from dryfly.base.errors import UserError
from dryfly.case import provider_settings
from dryfly.case.bind import bind
from dryfly.case.case import Case
from dryfly.case.resolve import with_counted_software
from dryfly.machine.schema import COSTS_OF_CALLS
from dryfly.mpi.libraries import MpiLibrary
from dryfly.result import result

ROOT = Path(__file__).parents[2]


def test_whatever_the_provider_reads_and_the_page_names_is_known() -> None:
    source = (ROOT / "provider" / "environment.cpp").read_text()
    own = re.findall(r'reader\.(?:size|flag|word|text)\("([A-Z_]+)"', source.partition("bool read_environment")[2])
    assert len(own) > 10
    assert {f"FI_CXI_{name}" for name in own} - provider_settings.NAMES == set()
    page = (ROOT / "docs" / "reference" / "provider-settings.md").read_text()
    first = page.partition("\n## ")[0]
    cells = "\n".join(row.split("|")[1] for row in first.splitlines() if "|" in row)
    named = re.findall(r"`([A-Z][A-Z_]+[A-Z])`", cells)
    assert {f"FI_CXI_{name}" for name in named} - provider_settings.NAMES == set()


def test_a_mistyped_name_is_told_with_the_nearest_one() -> None:
    found = provider_settings.unknown({"FI_CXI_DEFALT_CQ_SIZE": "9", "FI_CXI_ODP": "1", "FI_CXI_XYZ": "", "HOME": "/"})
    assert found == {"FI_CXI_DEFALT_CQ_SIZE": "FI_CXI_DEFAULT_CQ_SIZE", "FI_CXI_XYZ": ""}


def _health(environment: dict[str, str]) -> dict[str, str]:
    case = Case(machine="testbed", nodes=2, ppn=1, compute="none", program=("./program",))
    library = MpiLibrary(name="mpich", family="mpich", version="5.0.2", libmpi="/a", libfabric="/c", prefix="/b")
    content = result.build(bind(case), {}, mpi=library, wall_time_s=1.0, findings=(), environment=environment)
    return {row["name"]: row["text"] for row in content["health"]}


def test_settings_that_nobody_reads_have_a_health_row() -> None:
    rows = _health({"FI_CXI_DEFALT_CQ_SIZE": "9", "MPICH_OFI_NIC_MAPPING": "0:0"})
    assert "FI_CXI_DEFALT_CQ_SIZE (meant is perhaps FI_CXI_DEFAULT_CQ_SIZE)" in rows["unknown_setting"]
    assert "MPICH_OFI_NIC_MAPPING=0:0 has no effect with MPICH_OFI_NIC_POLICY=BLOCK" in rows["unused_mapping"]
    unused = _health({"MPICH_SMP_SINGLE_COPY_MODE": "CMA", "MPIR_CVAR_CH4_XPMEM_ENABLE": "1"})["unused_setting"]
    assert unused.startswith("MPICH_SMP_SINGLE_COPY_MODE=CMA, MPIR_CVAR_CH4_XPMEM_ENABLE=1 have no effect")
    assert "unused_mapping" not in _health({"MPICH_OFI_NIC_MAPPING": "0:0", "MPICH_OFI_NIC_POLICY": "user"})


def _unused_field(*sets: str, counted: str = "", how: str | None = None) -> dict[str, str]:
    case = Case(machine="testbed", nodes=2, ppn=1, compute="none", program=("./p",), sets=sets, software=how)
    library = MpiLibrary(name="mpich-9.9", family="mpich", version="9.9", libmpi="/a", libfabric="/c", prefix="/b")
    bound = replace(bind(case), software=counted)
    content = result.build(bound, {}, mpi=library, wall_time_s=1.0, findings=(), environment={})
    return {row["name"]: row["text"] for row in content["health"]}


def test_a_cost_that_the_way_of_charging_software_does_not_read_is_named_with_what_would() -> None:
    counted = _unused_field("host.send=1 us", "host.poll=2 ns", "host.wake=1 ns", counted="mpich-9.9")["unused_field"]
    assert counted.startswith("--set host.send, host.poll have no effect: the code of mpich-9.9 is charged as counted")
    assert counted.endswith("they count with --software none")
    plain = _unused_field("host.provider.sent=7", "host.send=1 us", how="none")["unused_field"]
    assert plain.startswith("--set host.provider.sent has no effect: the code of mpich-9.9 is not charged as counted")
    assert "it counts with --software measured, after " in plain
    assert '"dryfly mpi add mpich==9.9 && dryfly mpi measure mpich-9.9"' in plain
    assert "unused_field" not in _unused_field("host.instruction=1 ns", counted="mpich-9.9")
    assert "unused_field" not in _unused_field("host.rma=1 ns", "host.match=1 ns")


def test_what_counts_only_without_counts_is_what_they_replace() -> None:
    bound = bind(Case(machine="testbed", nodes=2, ppn=1, compute="none", program=("./program",)))
    lines = set(bound.spec.splitlines()) - set(with_counted_software(bound.spec, bound.machine, "mpich").splitlines())
    assert {f"{path}_ps" for path in COSTS_OF_CALLS} == {line.partition(" ")[0] for line in lines}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("id = 3\nvnis = [1\n", "line 2, `vnis = [1`, opens a bracket that is not closed"),
        ('id = 3\nname = """x\n', 'the last value begins in line 2, `name = """x`'),
    ],
)
def test_what_is_open_at_the_end_of_a_file_is_named(content: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text(content)
    with pytest.raises(UserError) as refused:
        toml.read(file, "--service service.toml")
    assert str(refused.value).startswith("--service service.toml: not valid TOML: ")
    assert sentence in str(refused.value)
