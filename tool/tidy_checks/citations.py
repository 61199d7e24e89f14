"""Every citation leads somewhere: a page and its anchor, a file of data and its row; and none leaves the repository."""

from __future__ import annotations

import re
import tomllib
from pathlib import PurePosixPath
from typing import Any

from tidy_checks import ratchet
from tidy_checks.tree import CPP, Rules, Tree

_PAGE = re.compile(r"(?<![\w/.-])((?:docs/[\w./-]+|[A-Z]+)\.md)(?:#([\w-]+))?")
_ROW = re.compile(r"(?<![\w/.-])(data/[\w./-]+\.toml)(?:#([\w.-]+))?")
_FOLDER = re.compile(r"(?<![\w/.-])(docs/(?:decision|model)/[\w-]+)(?![\w/-]|\.\w)")
_PLACEHOLDER = re.compile(r"/(?:NAME|FILE|SUBJECT|PAGE|NNNN|X|N)\.\w+$")  # data/machines/NAME.toml
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
_NAMED = re.compile(r"<a\s+(?:id|name)=\"([\w.-]+)\"")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)


def check(tree: Tree, rules: Rules) -> list[str]:
    settings = rules["citations"]
    named = [*tree.having(*CPP, ".py", ".toml", ".md", ".txt", ".cmake", ".sh"), PurePosixPath("Makefile")]
    sources = [path for path in named if tree.has(path.as_posix()) and not _left_out(path, settings)]
    findings = []
    for path in sources:
        text = tree.text(path)
        for number, line in enumerate(text.splitlines(), 1):
            findings += [f"{path}:{number}: {sentence}" for sentence in _cited(tree, line)]
        if path.suffix == ".md":
            findings += _links(tree, path, text)
    return findings + _outside(tree, settings)


def _left_out(path: PurePosixPath, settings: Rules) -> bool:
    return path.as_posix() in settings["left_out"]


def anchors(text: str) -> set[str]:
    """As GitHub makes them: lower case, spaces to hyphens, punctuation gone; a repeated one gets a number."""
    names: set[str] = set(_NAMED.findall(text))
    seen: dict[str, int] = {}
    for title in _HEADING.findall(_FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        names.add(slug if count == 0 else f"{slug}-{count}")
    return names


def _cited(tree: Tree, line: str) -> list[str]:
    findings = []
    for page, anchor in _PAGE.findall(line):
        if _PLACEHOLDER.search(page):
            continue
        if "/" not in page and not tree.has(page):
            continue  # a file in capitals of another's
        if not tree.has(page):
            findings.append(f"cites {page}, which is not there")
        elif anchor and anchor not in anchors(tree.text(PurePosixPath(page))):
            findings.append(f"cites {page}#{anchor}, but the page has no such heading")
    for file, row in _ROW.findall(line):
        if _PLACEHOLDER.search(file):
            continue
        if not tree.has(file):
            findings.append(f"cites {file}, which is not there")
        elif row and not _has_row(tomllib.loads(tree.text(PurePosixPath(file))), row.rstrip(".")):
            findings.append(f"cites {file}#{row}, but the file has no such row")
    for folder in _FOLDER.findall(line):
        if not tree.has(folder) and not list((tree.root / folder).parent.glob(f"{PurePosixPath(folder).name}*")):
            findings.append(f"cites {folder}, which is not there")
    return findings


def _has_row(content: Any, row: str) -> bool:
    """A dotted path of tables, or the `id` or `name` of an entry of an array of tables."""
    at = content
    for part in row.split("."):
        if not isinstance(at, dict) or part not in at:
            break
        at = at[part]
    else:
        return True
    arrays = [value for value in content.values() if isinstance(value, list)]
    return any(isinstance(entry, dict) and row in (entry.get("id"), entry.get("name")) for a in arrays for entry in a)


def _links(tree: Tree, path: PurePosixPath, text: str) -> list[str]:
    findings = []
    for target in _LINK.findall(_FENCE.sub("", text)):
        if re.match(r"[a-z]+:", target) or target.startswith("<"):
            continue
        name, _, anchor = target.partition("#")
        file = (tree.root / path.parent / name).resolve() if name else (tree.root / path).resolve()
        if not file.exists():
            findings.append(f"{path}: links to {target}, which is not there")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
            findings.append(f"{path}: links to {target}, but the page has no such heading")
    return findings


def _outside(tree: Tree, settings: Rules) -> list[str]:
    """How many files cite what is not in the repository."""
    pattern = re.compile("|".join(settings["never"]), re.IGNORECASE)
    counts = {}
    for path in tree.files:
        if _left_out(path, settings) or path.suffix in (".png", ".svg", ".gz"):
            continue
        if hits := len(pattern.findall(tree.text(path))):
            counts[path.as_posix()] = hits
    what = "citations of what is not in this repository"
    return ratchet.over(counts, most=0, exceptions=settings.get("exceptions", {}), what=what)
