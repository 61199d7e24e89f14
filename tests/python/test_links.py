"""Every relative link on a page leads to a file, and every anchor to a heading of that file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "programs/**/*.md", "packaging/**/*.md", "data/**/*.md", "bench/**/*.md")
    for page in ROOT.glob(pattern)
)


def _anchors(page: Path) -> set[str]:
    """The names that headings get on GitHub: lower case, punctuation dropped, a hyphen for each space."""
    names: dict[str, int] = {}
    anchors = set()
    for heading in _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        seen = names.setdefault(name, 0)
        names[name] += 1
        anchors.add(f"{name}-{seen}" if seen else name)
    return anchors


def _broken(page: Path, text: str) -> list[str]:
    broken = []
    for target in _LINK.findall(_CODE.sub("", _FENCE.sub("", text))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and (file.suffix != ".md" or anchor not in _anchors(file))):
            broken.append(target)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert _broken(page, page.read_text(encoding="utf-8")) == []


def test_a_broken_link_and_a_broken_anchor_are_found() -> None:
    text = (
        "[a](nowhere.md) [b](#nothing-here) [c](STYLE.md#glossary-one-word-for-one-thing) [d](https://example.org/x.md)"
    )
    assert _broken(ROOT / "README.md", text) == ["nowhere.md", "#nothing-here"]


def test_the_index_leads_to_every_page_but_those_with_an_index_of_their_own() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / target.partition("#")[0]).resolve() for target in _LINK.findall(index)}
    folders = ("tutorial", "guide", "reference", "develop")
    pages = {page for folder in folders for page in (ROOT / "docs" / folder).glob("*.md")}
    assert sorted(str(page) for page in pages - linked) == []
