"""Modules of python/dryfly that import each other in a circle, through however many between.

Imports inside functions and those for types only count as well: each says that one module cannot be understood without
the other. Only dryfly/__init__.py, the way in, may name what imports from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from tidy_checks.imports import modules_named
from tidy_checks.tree import Rules, Tree

_ROOT = PurePosixPath("python/dryfly")


def check(tree: Tree, rules: Rules) -> list[str]:  # noqa: ARG001
    files = {_module(path): path for path in tree.having(".py") if path.is_relative_to(_ROOT)}
    files.pop("dryfly", None)
    graph = {
        module: {found for _, name in modules_named(tree.text(path)) if (found := _existing(name, files)) is not None}
        for module, path in files.items()
    }
    return [f"{' -> '.join([*circle, circle[0]])}: these modules import each other" for circle in _circles(graph)]


def _module(path: PurePosixPath) -> str:
    inner = path.relative_to(_ROOT.parent).with_suffix("")
    return ".".join(inner.parent.parts if inner.name == "__init__" else inner.parts)


def _existing(name: str, files: Mapping[str, PurePosixPath]) -> str | None:
    """`from dryfly.base.units import parse` names dryfly.base.units."""
    return next((each for each in (name, name.rpartition(".")[0]) if each in files), None)


def _circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """One for each module that is the first of the alphabet in a circle, and the shortest of these."""
    circles = []
    in_one: set[str] = set()
    for start in sorted(graph):
        circle = _shortest(graph, start)
        if circle is not None and in_one.isdisjoint(circle):
            circles.append(circle)
            in_one.update(circle)
    return circles


def _shortest(graph: Mapping[str, set[str]], start: str) -> list[str] | None:
    """The modules on the shortest way from it back to itself."""
    came_from: dict[str, str] = {}
    waiting = [start]
    while waiting:
        module = waiting.pop(0)
        for other in sorted(graph[module]):
            if other == start:
                way = [module]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if other not in came_from:
                came_from[other] = module
                waiting.append(other)
    return None
