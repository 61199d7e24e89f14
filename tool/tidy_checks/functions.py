"""A function fits a screen or two."""

from __future__ import annotations

from tidy_checks import cpp, ratchet
from tidy_checks.tree import Rules, Tree, is_test, within


def check(tree: Tree, rules: Rules) -> list[str]:
    limits = rules["functions"]
    lines: dict[str, int] = {}
    for path in tree.having(".cpp"):
        if is_test(path) or not within(path, limits["folders"]):
            continue
        for function in cpp.functions(tree.text(path)):
            name = f"{path}: {function.name}"
            lines[name] = max(lines.get(name, 0), function.lines)
    return ratchet.over(lines, most=limits["lines"], exceptions=limits.get("exceptions", {}), what="lines")
