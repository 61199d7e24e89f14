"""What docs/tutorial shows is what happens: each page's files are written, its commands run, its output compared.

A block `page` names an HTML page that a command before it has written, and lines of it.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from pathlib import Path

import pytest

TUTORIALS = Path(__file__).resolve().parents[2] / "docs" / "tutorial"
_SLOW = ("slow-collective.md",)
PAGES = [
    pytest.param(page.name, marks=[pytest.mark.slow] if page.name in _SLOW else [])
    for page in sorted(TUTORIALS.glob("*.md"))
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"^(?://|#) ([\w.-]+\.\w+)$")


def steps(block: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that it prints."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def matches(shown: list[str], printed: str) -> bool:
    """As in doctest: a line of three dots stands for any lines, three dots in a line for any text."""
    pattern = ""
    for line in shown:
        pattern += r"(?:.*\n)*?" if line == "..." else ".*".join(re.escape(part) for part in line.split("...")) + r"\n"
    lines = [line.rstrip() for line in printed.splitlines()]
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


def test_dots_stand_for_anything_and_all_else_for_itself() -> None:
    assert matches(["a", "...", "b ... d"], "a\nx\ny\nb c d\n")
    assert not matches(["a", "b"], "a\nx\nb\n")
    assert not matches(["a."], "ab\n")


def words(page: str) -> str:
    """The text of an HTML page without its pictures, a space between words."""
    text = re.sub(r"<(svg|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def test_a_line_of_a_page_is_its_words_without_tags_and_pictures() -> None:
    page = "<table><tr><td>g0&gt;g1</td><td>31 %</td></tr></table><svg><text>axis</text></svg>"
    assert words(page) == "g0>g1 31 %"


@pytest.mark.parametrize("name", PAGES)
def test_a_tutorial_shows_what_happens(name: str, tmp_path: Path) -> None:
    text = (TUTORIALS / name).read_text(encoding="utf-8")
    commands = 0
    for language, block in BLOCK.findall(text):
        file_name = FILE_NAME.match(block.split("\n", 1)[0])
        if file_name:
            (tmp_path / file_name[1]).write_text(block)
        if language == "page":
            page, *lines = block.splitlines()
            text_of_page = words((tmp_path / page).read_text(encoding="utf-8"))
            assert [line for line in lines if " ".join(line.split()) not in text_of_page] == []
        if language != "console":
            continue
        for command, shown in steps(block):
            ran = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=120,
            )
            commands += 1
            assert matches(shown, ran.stdout), f"{name}: $ {command}\n{ran.stdout}\ninstead of\n" + "\n".join(shown)
    assert commands > 0
    shutil.rmtree(tmp_path)
