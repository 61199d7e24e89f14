"""Names of the provider's settings, and what is said of one that nobody reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dryfly.base import toml
from dryfly.base.errors import UserError
from dryfly.case import provider_settings
from dryfly.case.bind import bind
from dryfly.case.case import Case
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
