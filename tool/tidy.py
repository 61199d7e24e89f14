#!/usr/bin/env python3
"""The repository's own test: layers, classes, citations, words, and names on pages that the code must have.

Run from anywhere; prints one line per finding and exits 1 if there is any. The rules are in tool/tidy.toml, the
checks in tool/tidy_checks/, their test is tests/python/test_tidy.py.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tool"))

from tidy_checks import CHECKS, Tree  # noqa: E402
from tidy_checks.tree import read_rules  # noqa: E402


def main() -> int:
    tree = Tree(ROOT)
    rules = read_rules(ROOT / "tool" / "tidy.toml")
    findings = [finding for check in CHECKS for finding in check(tree, rules)]
    print("\n".join(findings) if findings else f"tidy: {len(tree.files)} files, nothing found")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
