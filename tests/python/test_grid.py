"""Tables in a narrow console: rows and columns change places or are dealt out, and nothing is ever cut."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from dryfly.base.grid import Grid
from dryfly.base.printer import Printer
from dryfly.result import summary

HUGE = 987_654_321_098_765


def shown(grid: Grid, width: int = 80) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False)
    console.print(grid, soft_wrap=True)
    return out.getvalue().splitlines()


def words(lines: Iterable[str]) -> list[str]:
    return [word for line in lines for word in line.replace("┃", " ").replace("│", " ").split()]


def protocols(count: int, names: Sequence[str] = ("eager", "rendezvous", "restricted get")) -> dict[str, Any]:
    return {
        "protocols": [
            {
                "protocol": name,
                "messages_by_hops": [count + hops for hops in range(6)],
                "bytes_by_hops": [count] * 6,
                "messages_on_node": count + 10 * place,
                "bytes_on_node": count,
            }
            for place, name in enumerate(names, 2)
        ]
    }


def test_a_table_that_fits_keeps_its_rows() -> None:
    lines = shown(Grid(heads=("name", "count"), rows=[("a", "1"), ("b", "22")], indent="  "))
    assert [line.rstrip() for line in lines] == ["  name   count", "  a          1", "  b         22"]


def test_the_protocol_table_changes_rows_and_columns_at_80_columns() -> None:
    count = 629_145_600
    lines = shown(summary._protocol_table(protocols(count)))
    assert lines[0].split() == ["protocol", "eager", "rendezvous", "restricted", "get"]
    assert lines[-1].split() == ["5", "hops", *[f"{count + 5:,}"] * 3]
    assert [line[2:].split("   ")[0].strip() for line in lines[1:4]] == ["messages", "bytes", "on node"]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 200])
def test_no_figure_of_the_protocol_table_is_cut_at_any_width(width: int) -> None:
    names = ("eager", "rendezvous", "restricted_get", "on_node_copy", "fetch_atomic")
    result = protocols(HUGE, names)
    found = words(shown(summary._protocol_table(result), width))
    for row in result["protocols"]:
        assert row["protocol"] in found
        assert f"{row['messages_on_node']:,}" in found
        assert f"{sum(row['messages_by_hops']) + row['messages_on_node']:,}" in found
        assert all(f"{value:,}" in found for value in row["messages_by_hops"])
    assert "…" not in "".join(found)


def test_columns_are_dealt_out_where_neither_way_fits() -> None:
    heads = ("size", *(f"setting-number-{place}" for place in range(9)))
    rows = [(f"{size} B", *(f"{size * 1000 + place:,}.25" for place in range(9))) for size in range(1000, 1030)]
    lines = shown(Grid(heads=heads, rows=rows, boxed=True))
    assert max(map(len, lines)) <= 80
    found = words(lines)
    assert [word for word in found if word.startswith("setting")] == list(heads[1:])
    assert all(cell in found for row in rows for cell in row[1:])
    assert found.count("size") == sum(line.startswith("┏") for line in lines) > 1


def test_a_single_column_wider_than_the_console_is_printed_whole() -> None:
    long = "x" * 120
    lines = shown(Grid(heads=("name", long), rows=[("a", "1"), ("b", "2")]))
    assert long in words(lines)
    assert max(map(len, lines)) > 80


def test_prose_is_broken_between_words_only() -> None:
    text = "cannot be tested: " + "a" * 50 + " 123,456,789,012 is not what was expected of this benchmark"
    lines = shown(Grid(heads=("", "figure", ""), rows=[("first", "1,234.5 us", text)], prose=frozenset({2})))
    assert max(map(len, lines)) <= 80
    assert [word for word in words(lines) if word in text.split()] == text.split()
    short = "cannot be tested: the build ended with status 3"
    assert short in shown(Grid(heads=("", ""), rows=[("first", short)], prose=frozenset({1})))[1]


def test_brackets_in_a_label_are_not_markup() -> None:
    grid = Grid(heads=("size", "[bold]mpich[/]"), rows=[("1 B", Text("7 [us]", style="bold"))])
    assert "[bold]mpich[/]" in shown(grid)[0]
    assert "7 [us]" in shown(grid)[1]


def test_what_a_run_prints_is_whole_at_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = protocols(HUGE)
    Printer(quiet=False).show(summary._protocol_table(result))
    found = words(capsys.readouterr().err.splitlines())
    assert all(f"{value:,}" in found for row in result["protocols"] for value in row["messages_by_hops"])
