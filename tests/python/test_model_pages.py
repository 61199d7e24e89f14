"""Each fact of docs/model says where it is from and how far to trust it, and the tests that a page names exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(page for page in (ROOT / "docs" / "model").glob("*.md") if page.name != "index.md")
SOURCES = tomllib.loads((ROOT / "data" / "sources.toml").read_text(encoding="utf-8"))["sources"]
CERTAINTIES = {"H", "M+", "M", "D", "L", "calibrated", "assumed"}
_LAST_LINE = re.compile(r"^Source: (?P<keys>[\w ;]+)\. Certainty: (?P<certainty>.+)\.$")
_TEST = re.compile(r'^\* `(?P<file>[^`]+)`(?:: "(?P<name>.+)")?')


def _part(page: Path, title: str) -> str:
    return page.read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def _facts(page: Path) -> dict[str, str]:
    parts = re.split(r"^### ", _part(page, "Facts"), flags=re.MULTILINE)[1:]
    return {part.splitlines()[0]: part.strip().splitlines()[-1] for part in parts}


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "model" / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\((\w[\w-]*\.md)\)", index)) == {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_fact_has_a_known_source_and_a_certainty(page: Path) -> None:
    facts = _facts(page)
    assert facts, "a page without a fact"
    for heading, last_line in facts.items():
        found = _LAST_LINE.match(last_line)
        assert found is not None, f"{heading}: {last_line}"
        assert set(found["keys"].split("; ")) <= set(SOURCES), f"{heading}: {found['keys']}"
        assert found["certainty"].split(",")[0] in CERTAINTIES, f"{heading}: {found['certainty']}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_what_is_assumed_and_left_out_and_names_tests_that_exist(page: Path) -> None:
    assert _part(page, "Assumed").strip()
    assert _part(page, "Left out").strip()
    lines = [line for line in _part(page, "Tests").splitlines() if line.startswith("* ")]
    assert lines, "a page without a test"
    for line in lines:
        for file in re.findall(r"`([^`]+)`", line.partition(': "')[0]):
            assert (ROOT / file).exists(), line
        found = _TEST.match(line)
        assert found is not None, line
        if found["name"] is not None:
            assert found["name"] in (ROOT / found["file"]).read_text(encoding="utf-8"), line
