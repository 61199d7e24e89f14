"""Fixtures and tests stay out of what is shipped: [fixtures] of tool/tidy.toml says who may include them."""

from __future__ import annotations

import re

from tidy_checks.includes import included
from tidy_checks.tree import CPP, Rules, Tree, is_test, within


def check(tree: Tree, rules: Rules) -> list[str]:
    # What may include fixtures is not shipped either, or they would come in by way of it.
    users: list[str] = rules["fixtures"]["users"]
    findings = [
        f"tool/tidy.toml: [includes] lets {room} include testing, which only {', '.join(users)} may"
        for room, allowed in rules["includes"].items()
        if room not in users and any(re.match(r"testing(/|$)", name) for name in allowed)
    ]
    for path in tree.having(*CPP):
        if is_test(path) or within(path, users):
            continue
        findings += [
            f"{path}:{number}: {target} is for tests, and this is not"
            for number, target in included(tree, path)
            if is_test(target) or within(target, users)
        ]
    return findings
