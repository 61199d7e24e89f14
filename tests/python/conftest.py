"""Shared by the tests of the Python side; none of them needs the simulator to be built."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def compile_c(tmp_path: Path) -> Callable[..., Path]:
    """Compiles C text with the system's compiler; keyword `name` is the output, further arguments are flags."""

    def build(text: str, *flags: str, name: str = "program") -> Path:
        source, target = tmp_path / f"{name}.src.c", tmp_path / name
        source.write_text(text, encoding="utf-8")
        subprocess.run(["cc", str(source), "-o", str(target), *flags], check=True)
        return target

    return build


@pytest.fixture
def dryfly(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line in a folder of its own, with an empty cache."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}
        variables["PYTHONPATH"] = str(ROOT / "python")
        variables |= environment
        return subprocess.run(
            [sys.executable, "-m", "dryfly", *arguments],
            cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    return run
