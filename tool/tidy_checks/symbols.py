"""Names in backquotes on the pages that explain the code exist in the code."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from tidy_checks import cpp
from tidy_checks.tree import CPP, Rules, Tree, within

_SYMBOL = re.compile(r"`([A-Za-z_][A-Za-z0-9_]*(?:(?:::|\.)[A-Za-z_][A-Za-z0-9_]*)*)(?:\(\))?`")
_PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*)`")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)


def check(tree: Tree, rules: Rules) -> list[str]:
    pages = [path for path in tree.having(".md") if within(path, rules["symbols"]["pages"])]
    foreign: list[str] = rules["symbols"].get("foreign", [])
    words: set[str] = set()
    for path in tree.having(*CPP, ".py", ".toml", ".cmake", ".txt"):
        if path.suffix != ".toml" or path.is_relative_to("data"):
            text = cpp.blanked(tree.text(path)) if path.suffix in (".hpp", ".cpp", ".h", ".c") else tree.text(path)
            words.update(re.findall(r"\w+", text))
    findings = []
    for page in pages:
        text = _FENCE.sub("", tree.text(page))
        for symbol in sorted(set(_SYMBOL.findall(text))):
            if (
                words.issuperset(re.split(r"::|\.", symbol))
                or symbol in foreign
                or tree.has(symbol)
                or _is_file(tree, symbol)
            ):
                continue
            findings.append(f"{page} names `{symbol}`, which the code does not have")
        for name in sorted(set(_PATH.findall(text))):
            placeholder = re.search(r"\b[A-Z]{3,}\b", name)
            if PurePosixPath(name).parts[0] in _roots(tree) and not placeholder and not tree.has(name):
                findings.append(f"{page} names `{name}`, which is not there")
    return findings


def _is_file(tree: Tree, name: str) -> bool:
    return any(path.name == name for path in tree.files)


def _roots(tree: Tree) -> set[str]:
    return {path.parts[0] for path in tree.files if len(path.parts) > 1}
