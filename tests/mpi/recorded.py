"""What a recording (`dryfly run --record`) has of a program's messages, for tests that hold a skeleton against it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as parquet

# Of the protocols: inline, eager, rendezvous.
_LARGEST = (192, 18_433)


def by_class(sizes: Iterable[int]) -> tuple[list[int], list[int]]:
    """Messages and bytes of each protocol."""
    messages, content = [0, 0, 0], [0, 0, 0]
    for size, count in Counter(sizes).items():
        kind = sum(size > largest for largest in _LARGEST)
        messages[kind] += count
        content[kind] += size * count
    return messages, content


def sizes_between(folder: Path, call: str) -> list[int]:
    """Of all messages and accesses from a rank's first such call to its last one's end."""
    begun: dict[int, float] = {}
    ended: dict[int, float] = {}
    for each in parquet.read_table(folder / "calls.parquet").to_pylist():
        if each["call"] == call:
            begun[each["rank"]] = min(begun.get(each["rank"], each["entered_s"]), each["entered_s"])
            ended[each["rank"]] = max(ended.get(each["rank"], 0.0), each["left_s"])
    messages = parquet.read_table(folder / "messages.parquet").to_pylist()
    return [each["bytes"] for each in messages if begun[each["source"]] <= each["called_s"] <= ended[each["source"]]]


def sizes_within(folder: Path, call: str) -> list[int]:
    """Of all messages between a rank's first two such calls, from the end of one to the beginning of the other."""
    times: dict[int, list[float]] = {}
    for each in parquet.read_table(folder / "calls.parquet").to_pylist():
        if each["call"] == call:
            times.setdefault(each["rank"], []).extend((each["entered_s"], each["left_s"]))
    within = {rank: sorted(of_rank)[1:3] for rank, of_rank in times.items()}
    messages = parquet.read_table(folder / "messages.parquet").to_pylist()
    return [
        each["bytes"] for each in messages if within[each["source"]][0] <= each["called_s"] < within[each["source"]][1]
    ]
