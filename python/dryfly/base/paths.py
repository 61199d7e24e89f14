"""Where the installed parts are: data files, the simulator's programs and libraries, the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

from dryfly.base.errors import UserError

CONDUCTOR = "dryfly-conductor"
LAUNCHER = "dryfly-launch"
COUNTER = "dryfly-count"
PROVIDER = "libcxi-fi.so"
NODE_PROVIDER = "linkx/libshm-fi.so"
PRELOAD = "libdryfly-preload.so"
GPU_CORE = "gpu/libdryfly-gpu.so"
GPU_CUDART = "gpu/libcudart.so.12"
GPU_CUDA = "gpu/libcuda.so.1"
GPU_HIP = "gpu/hip/libamdhip64.so.6"
GPU_LEVEL_ZERO = "gpu/level_zero/libze_loader.so.1"
GPU_FOR_OPENMPI = "gpu/libdryfly-gpu-openmpi.so"
GENERATOR = "dryfly-generator"
MOTIF = "dryfly-motif"

_PACKAGE = Path(__file__).resolve().parent.parent


def data_folder() -> Path:
    """In an installed package data/ lies inside it, in a checkout beside python/."""
    inside = _PACKAGE / "data"
    return inside if inside.is_dir() else _PACKAGE.parents[1] / "data"


def programs_folder() -> Path:
    """The sources of the programs that are compiled with the user's MPI."""
    inside = _PACKAGE / "programs"
    return inside if inside.is_dir() else _PACKAGE.parents[1] / "programs"


def include_folder() -> Path:
    """The headers that programs include, as <dryfly/NAME.h>."""
    inside = _PACKAGE / "include"
    return inside if inside.is_dir() else _PACKAGE.parents[1] / "include"


def native(name: str) -> Path:
    """A part that is built from C++. DRYFLY_NATIVE names another folder to take it from, for developers."""
    folder = Path(os.environ.get("DRYFLY_NATIVE") or _PACKAGE / "_native")
    path = folder / name
    if not path.is_file():
        raise UserError(f'{name} is not in {folder}; install dryfly with "pip install ." to build it')
    return path


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "dryfly"
