"""What MPICH's releases are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from dryfly.case import on_node
from dryfly.mpi import mpich
from dryfly.mpi.libraries import MpiLibrary


def _library(folder: Path, version: str) -> MpiLibrary:
    return MpiLibrary(name="mpich", family="mpich", version=version, prefix=str(folder),
                      libmpi=str(folder / "lib/libmpi.so.12"), libfabric="")  # fmt: skip


@pytest.mark.parametrize(("version", "told"), [("4.0.3", True), ("4.1.3", False), ("5.0.2", False), ("", False)])
def test_releases_before_4_1_ask_for_tags_that_the_nic_matches(version: str, told: bool, tmp_path: Path) -> None:
    values = mpich.settings(_library(tmp_path, version), {})
    assert bool(values) is told
    if told:
        bits = sum(int(values[f"MPIR_CVAR_CH4_OFI_{part}_BITS"]) for part in ("CONTEXT_ID", "RANK", "TAG"))
        assert bits + 4 <= 48  # four are for its protocols


def test_of_a_library_that_the_user_has_built_the_note_for_pkg_config_tells(tmp_path: Path) -> None:
    note = tmp_path / "lib/pkgconfig/mpich.pc"
    note.parent.mkdir(parents=True)
    note.write_text("Name: mpich\nVersion: 4.0.2\n", encoding="utf-8")
    assert mpich.settings(_library(tmp_path, ""), {})
    note.write_text("Name: mpich\nVersion: 4.3.0\n", encoding="utf-8")
    assert mpich.settings(_library(tmp_path, ""), {}) == {}


def test_what_the_user_has_set_stays(tmp_path: Path) -> None:
    values = mpich.settings(_library(tmp_path, "4.0.3"), {"MPIR_CVAR_CH4_OFI_TAG_BITS": "20"})
    assert "MPIR_CVAR_CH4_OFI_TAG_BITS" not in values
    assert values["MPIR_CVAR_CH4_OFI_RANK_BITS"] == "0"


def test_a_release_that_is_too_old_to_share_memory_is_known_by_the_note_too(tmp_path: Path) -> None:
    assert on_node.can_share(_library(tmp_path, ""))
    note = tmp_path / "lib/pkgconfig/mpich.pc"
    note.parent.mkdir(parents=True)
    note.write_text("Version: 4.0.2\n", encoding="utf-8")
    assert not on_node.can_share(_library(tmp_path, ""))
    note.write_text("Version: 4.3.0\n", encoding="utf-8")
    assert on_node.can_share(_library(tmp_path, ""))
