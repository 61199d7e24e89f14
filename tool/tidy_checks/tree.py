"""The files that are looked at, and the rules they are held to."""

from __future__ import annotations

import subprocess
import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

Rules = dict[str, Any]

CPP = (".hpp", ".cpp", ".h", ".c", ".def")


def read_rules(path: Path) -> Rules:
    return tomllib.loads(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Tree:
    """A repository: the files that git would take along, or all files where there is no git (in tests)."""

    root: Path
    _texts: dict[PurePosixPath, str] = field(default_factory=dict)

    @cached_property
    def files(self) -> list[PurePosixPath]:
        if (self.root / ".git").exists():
            names = subprocess.run(
                ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                cwd=self.root, check=True, capture_output=True, text=True,
            ).stdout.split("\0")  # fmt: skip
        else:
            names = [path.relative_to(self.root).as_posix() for path in self.root.rglob("*")]
        return sorted(PurePosixPath(name) for name in names if name and (self.root / name).is_file())

    def having(self, *suffixes: str) -> list[PurePosixPath]:
        return [path for path in self.files if path.suffix in suffixes]

    def text(self, path: PurePosixPath) -> str:
        if path not in self._texts:
            self._texts[path] = (self.root / path).read_text(encoding="utf-8", errors="replace")
        return self._texts[path]

    def has(self, name: str) -> bool:
        return (self.root / name).exists()


def is_test(path: PurePosixPath) -> bool:
    return path.stem.endswith("_test") or path.parts[0] in ("tests", "testing") or "conformance" in path.parts


def longest_owner(path: PurePosixPath, owners: dict[str, Any]) -> str | None:
    """The innermost of these folders that a file lies in; a file may be named itself."""
    for candidate in (path, *path.parents):
        if candidate.as_posix() in owners:
            return candidate.as_posix()
    return None


def within(path: PurePosixPath, allowed: list[str]) -> bool:
    return any(path.as_posix() == name or path.is_relative_to(name) for name in allowed)
