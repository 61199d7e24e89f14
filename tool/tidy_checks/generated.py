"""Files that a program writes from one declaration are as it would write them now."""

from __future__ import annotations

import subprocess
import sys

from tidy_checks.tree import Rules, Tree


def check(tree: Tree, rules: Rules) -> list[str]:
    findings = []
    for command in rules.get("generated", {}).get("commands", []):
        done = subprocess.run(
            [sys.executable, *command, "--check"], cwd=tree.root, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            findings += (done.stdout + done.stderr).strip().splitlines()
    return findings
