"""The preload has a wrapper only for what the MPI library has."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from dryfly.base.paths import PRELOAD, native
from dryfly.mpi import preload


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _library(folder: Path, *functions: str) -> Path:
    path = folder / "libmpi.so.12"
    path.write_bytes(b"\0" + b"\0".join(name.encode() for name in functions) + b"\0")
    return path


def test_a_function_that_the_library_lacks_is_not_found_in_the_preload(tmp_path: Path) -> None:
    path = preload.for_library(_library(tmp_path, "PMPI_Send", "PMPI_Wtime"))
    code = ctypes.CDLL(str(path))
    assert code.MPI_Send is not None
    assert code.mpi_wtime_ is not None  # Fortran's spelling
    assert code.clock_gettime is not None
    with pytest.raises(AttributeError):
        _ = code.MPI_Send_c
    assert preload.for_library(tmp_path / "libmpi.so.12") == path  # kept


def test_a_library_with_every_function_gets_the_preload_as_it_is(tmp_path: Path) -> None:
    every = [f"P{name}" for name in preload.wrappers(native(PRELOAD))]
    assert len(every) > 300
    assert preload.for_library(_library(tmp_path, *every)).read_bytes() == native(PRELOAD).read_bytes()
