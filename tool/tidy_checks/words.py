"""Taken words: each row of [[words]] in tool/tidy.toml is a pattern that only some files may have.

The glossary of STYLE.md says what the words mean; here is what of it can be checked.
"""

from __future__ import annotations

import re

from tidy_checks import cpp
from tidy_checks.tree import CPP, Rules, Tree, within


def check(tree: Tree, rules: Rules) -> list[str]:
    findings = []
    for row in rules.get("words", []):
        pattern = re.compile(row["pattern"])
        for path in tree.having(*row.get("files", CPP)):
            if not within(path, row["in"]) or within(path, row.get("except", [])):
                continue
            text = tree.text(path)
            if row.get("code_only") and path.suffix in CPP:
                text = cpp.blanked(text)
            for number, line in enumerate(text.splitlines(), 1):
                if found := pattern.search(line):
                    findings.append(f'{path}:{number}: "{found[0]}": {row["because"]}')
    return findings
