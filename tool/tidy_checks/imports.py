"""Which package of python/dryfly may import from which, and what other folders' Python may import of dryfly.

The tables [imports] (packages, those above first) and [imports.of] (other folders) are in tool/tidy.toml. Imports
inside functions count as well: they are late, not free.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from tidy_checks.tree import Rules, Tree, within

_ROOT = PurePosixPath("python/dryfly")


def check(tree: Tree, rules: Rules) -> list[str]:
    table = rules["imports"]
    order: list[str] = table["packages"]
    exceptions: list[str] = table.get("exceptions", [])
    findings: list[str] = []
    used: set[str] = set()
    for path in tree.having(".py"):
        if path.is_relative_to(_ROOT):
            findings += [f"{path}:{line}: import it by its whole name" for line in _relative(tree.text(path))]
        for line, module in modules_named(tree.text(path)):
            if module.split(".")[0] != "dryfly":
                continue
            finding = (
                _inside(tree, path, module, order) if path.is_relative_to(_ROOT) else _outside(path, module, table)
            )
            if finding is None:
                continue
            if f"{path} -> {module}" in exceptions:
                used.add(f"{path} -> {module}")
                continue
            if (sentence := f"{path}:{line}: {finding}") not in findings:
                findings.append(sentence)
    findings += [f"[imports] exception {name!r} is no longer needed" for name in exceptions if name not in used]
    return findings


def modules_named(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _relative(text: str) -> Iterator[int]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level > 0:
            yield node.lineno


def _package(tree: Tree, module: str) -> str | None:
    """The package of a dotted name below dryfly; None for dryfly itself and for modules that lie in no package."""
    parts = module.split(".")
    if len(parts) > 1 and (tree.root / _ROOT / parts[1]).is_dir():
        return parts[1]
    return None


def _inside(tree: Tree, path: PurePosixPath, module: str, order: list[str]) -> str | None:
    inner = path.relative_to(_ROOT)
    if len(inner.parts) < 2:  # dryfly/__init__.py, __main__.py: the way in, which may name everything
        return None
    own, target = inner.parts[0], _package(tree, module)
    if own not in order:
        return f"the package {own} is not in the table [imports] of tool/tidy.toml"
    if target is None or target == own:
        return None
    if target not in order:
        return f"the package {target} is not in the table [imports] of tool/tidy.toml"
    if order.index(target) > order.index(own):
        return f"{own} must not import {_shown(module)}: {target} is below it"
    return None


def _shown(module: str) -> str:
    """The module, without what is taken from it."""
    return ".".join(module.split(".")[:3])


def _outside(path: PurePosixPath, module: str, table: Rules) -> str | None:
    for folder, allowed in table.get("of", {}).items():
        if within(path, [folder]):
            if any(module == name or module.startswith(f"{name}.") for name in allowed):
                return None
            return f"{folder} must not import {_shown(module)}"
    return None
