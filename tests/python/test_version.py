"""The version stands in three files, which CONTRIBUTING's release procedure changes together."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import dryfly

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    cmake = re.search(
        r"^project\(dryfly VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert cmake is not None
    assert project == cmake[1] == dryfly.__version__
    assert f"## {project} - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
