"""Lists of nodes in the forms that Slurm takes (`--nodelist`, `--exclude`) and that PBS takes (`-l select`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

_Name = tuple[str, ...]  # text and numbers in turn, beginning with text
_ANY_DIGITS = -1
_MOST_OF_RUN = 10**6


def slurm(names: Sequence[str]) -> str:
    """`crusher[001-003,007]`, `x4000c[0-7]s[0-7]b0n0`: from the last number to the first, names that differ in that one
    only become one."""
    folded: list[_Name] = [tuple(re.split(r"(\d+)", name)) for name in names]
    for place in reversed(range(1, max((len(name) for name in folded), default=0), 2)):
        split = [(name[:place], name[place + 1 :], name[place] if place < len(name) else "") for name in folded]
        padded = {(before, after, len(number)) for before, after, number in split if number[1:] and number[0] == "0"}
        by_rest: dict[tuple[_Name, _Name, int], list[str]] = {}
        for before, after, number in split:
            # Slurm pads all of a range as its first, so numbers without zeros before them may have any digits.
            own = not number or (before, after, len(number)) in padded
            by_rest.setdefault((before, after, len(number) if own else _ANY_DIGITS), []).append(number)
        folded = [(*before, _runs(numbers), *after) if numbers != [""] else before
                  for (before, after, _), numbers in by_rest.items()]  # fmt: skip
    return ",".join("".join(name) for name in folded)


def _runs(numbers: Sequence[str]) -> str:
    """Of numbers with as many digits or without zeros before them: `7`, or `[001-003,007]`."""
    if len(numbers) == 1:
        return numbers[0]
    runs: list[list[str]] = []
    for number in sorted(numbers, key=int):
        if runs and int(number) == int(runs[-1][-1]) + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return "[" + ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs) + "]"


def pbs(names: Sequence[str]) -> str:
    """`1:host=crusher001+1:host=crusher002`."""
    return "+".join(f"1:host={name}" for name in names)


def names(text: str) -> list[str]:
    """Of a list as Slurm has it: `a[01-04,7],b7`. Raises ValueError with the part that is none."""
    found: list[str] = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\]?)+|(?<=,)(?=,|$)", text):
        pieces = re.split(r"\[([^\]]*)\]", part)
        if not re.fullmatch(r"[\w.:-]*(\[[\d,-]+\][\w.:-]*)*", part) or not part:
            raise ValueError(part)
        choices = [_numbers(piece, part) if place % 2 else [piece] for place, piece in enumerate(pieces)]
        found += ["".join(chosen) for chosen in product(*choices)]
    return found


def _numbers(text: str, part: str) -> list[str]:
    """`01-04,7`."""
    found: list[str] = []
    for run in text.split(","):
        ends = re.fullmatch(r"(\d+)(?:-(\d+))?", run)
        if ends is None:
            raise ValueError(part)
        first, last = ends[1], ends[2] or ends[1]
        if not int(first) <= int(last) < int(first) + _MOST_OF_RUN:
            raise ValueError(part)
        found += [f"{number:0{len(first)}}" for number in range(int(first), int(last) + 1)]
    return found
