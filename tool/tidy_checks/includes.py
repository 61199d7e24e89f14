"""Which folder may include from which: the table [includes] of tool/tidy.toml, the only copy of the truth."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tidy_checks.tree import CPP, Rules, Tree, is_test, longest_owner, within

_INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')


def check(tree: Tree, rules: Rules) -> list[str]:
    table: dict[str, list[str]] = rules["includes"]
    findings = [f"tool/tidy.toml: [includes] has {room}, which is no folder" for room in table if not tree.has(room)]
    for path in tree.having(*CPP):
        if is_test(path):
            continue
        room = longest_owner(path, table)
        if room is None:
            findings.append(f"{path}: its folder is not in the table [includes] of tool/tidy.toml")
            continue
        for number, target in included(tree, path):
            if longest_owner(target, table) != room and not within(target, table[room]):
                findings.append(f"{path}:{number}: {room} must not include {target}")
    return findings


def included(tree: Tree, path: PurePosixPath) -> Iterator[tuple[int, PurePosixPath]]:
    """Line and file of what a file includes of this repository."""
    for number, line in enumerate(tree.text(path).splitlines(), 1):
        if (found := _INCLUDE.match(line)) and (target := _target(tree, path, found[1])) is not None:
            yield number, target


def _target(tree: Tree, path: PurePosixPath, name: str) -> PurePosixPath | None:
    """The file of this repository that is meant; None for a header of the system."""
    for candidate in (tree.root / path.parent / name, tree.root / name, tree.root / "include" / name):
        if candidate.is_file():
            return PurePosixPath(candidate.resolve().relative_to(tree.root.resolve()).as_posix())
    return None
