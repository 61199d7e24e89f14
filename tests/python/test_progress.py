"""What a run says of its progress while it lasts."""

from __future__ import annotations

import io

import pytest

from dryfly.run.progress import Progress, wanted


class _Stream(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


class _Wall:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_every_ten_seconds_with_the_rate_since_the_last() -> None:
    out, wall = io.StringIO(), _Wall()
    progress = Progress(lines=True, stream=out, clock=wall)
    progress.reached(5)  # before the start: nobody knows since when
    progress.start()
    for second in range(1, 26):
        wall.now = 100.0 + second
        progress.reached(second * 10**9 if second <= 10 else 10**10 + (second - 10) * 2 * 10**9)
    progress.clear()
    assert out.getvalue() == (
        "dryfly: 10 ms of virtual time in 10 s, now 1 ms per second\n"
        "dryfly: 30 ms of virtual time in 20 s, now 2 ms per second\n"
    )


def test_a_line_that_is_written_over_is_gone_at_the_end() -> None:
    out, wall = io.StringIO(), _Wall()
    progress = Progress(lines=False, stream=out, clock=wall)
    progress.start()
    for second in range(1, 5):
        wall.now = 100.0 + second
        progress.reached(second * 10**6)
    progress.clear()
    progress.clear()
    assert out.getvalue() == (
        "\r\033[Kdryfly: 3 us of virtual time in 3 s, now 1 us per second"
        "\r\033[Kdryfly: 4 us of virtual time in 4 s, now 1 us per second"
        "\r\033[K"
    )


def test_unasked_lines_become_rarer() -> None:
    out, wall = io.StringIO(), _Wall()
    progress = Progress(lines=True, rarer=True, stream=out, clock=wall)
    progress.start()
    for second in range(1, 200):
        wall.now = 100.0 + second
        progress.reached(second * 10**6)
    assert [line.split(" in ")[1].split(",")[0] for line in out.getvalue().splitlines()] == [
        "10 s",
        "30 s",
        "70 s",
        "150 s",
    ]


@pytest.mark.parametrize(
    ("asked", "quiet", "error_is_terminal", "output_is_terminal", "expected"),
    [
        (False, False, False, False, None),
        (True, True, False, False, (True, 1)),
        (False, False, True, True, (True, 2)),
        (True, False, True, True, (True, 1)),
        (False, True, True, True, None),
        (False, False, True, False, (False, 1)),
    ],
)
def test_who_sees_it(
    asked: bool,
    quiet: bool,
    error_is_terminal: bool,
    output_is_terminal: bool,
    expected: tuple[bool, int] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stderr", _Stream(error_is_terminal))
    monkeypatch.setattr("sys.stdout", _Stream(output_is_terminal))
    found = wanted(asked=asked, quiet=quiet)
    assert (None if found is None else (found._lines, found._growth)) == expected


def test_a_short_run_says_nothing() -> None:
    out, wall = io.StringIO(), _Wall()
    progress = Progress(lines=False, stream=out, clock=wall)
    progress.start()
    wall.now += 2
    progress.reached(10**6)
    progress.clear()
    assert out.getvalue() == ""
