"""`--record FOLDER`: a recorded run as tables (Parquet), with the result beside them. See docs/guide/recording.md."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dryfly.base.errors import RunError, UserError
from dryfly.result.capture import Capture, Link
from dryfly.result.capture import check_target as check_place
from dryfly.result.counters import is_wanted

RESULT = "result.json"
PS = 1e-12
PERCENTILES = (50, 90, 99, 99.9, 100)

Columns = dict[str, Any]
Json = dict[str, Any]


def need_tables(flag: str) -> None:
    """Raises UserError without pyarrow."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise UserError(f'{flag} needs pyarrow: pip install "dryfly[record]"') from None


def check_target(target: str) -> None:
    """Before the start: is pyarrow there, and would nothing of the user's be lost?"""
    need_tables("--record")
    check_place("--record", target, folder=True)
    path = Path(target)
    if path.is_dir() and any(path.iterdir()) and not (path / RESULT).is_file():
        raise UserError(f"--record {target}: that folder has other files in it; a new one, or one of a run, is needed")


def write(
    capture: Capture, result: Json, target: str, *, software: Columns | None = None, counted: Sequence[str] = ()
) -> None:
    """In one piece: the folder is either the old one or the whole new one. `counted`: the counters that are wanted;
    none: all."""
    path = Path(target).absolute()
    part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        for name, columns in {
            **_tables(capture, result, counted),
            **({"software": software} if software else {}),
        }.items():
            _write_table(part / f"{name}.parquet", columns)
        (part / RESULT).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o777 & ~umask)
        if path.exists():
            shutil.rmtree(path)
        part.rename(path)
    except OSError as error:
        raise RunError(f"the tables cannot be written to {target}: {error.strerror or error}", exit_status=1) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _write_table(file: Path, columns: Columns) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), file, compression="zstd")


def read(folder: Path, name: str) -> Columns:
    import pyarrow.parquet

    columns: Columns = pyarrow.parquet.read_table(folder / f"{name}.parquet").to_pydict()
    return columns


def _tables(capture: Capture, result: Json, counted: Sequence[str]) -> dict[str, Columns]:
    duration_s = result["virtual_time_s"]
    messages = _messages(capture)
    return {
        "messages": messages,
        "latency": _latency(messages),
        "latency_percentiles": _latency_percentiles(messages),
        "calls": _calls(capture, len(result["ranks_detail"])),
        "operations": _operations(capture, len(result["ranks_detail"])),
        "rank_waits": _rank_waits(capture),
        "links": _links(capture, duration_s),
        "link_steps": _link_steps(capture),
        "groups": _groups(capture, duration_s),
        "group_steps": _group_steps(capture),
        "waits": _waits(capture),
        "counters": _counters(capture, counted),
        "switch_ports": _switch_ports(capture),
    }


def _messages(capture: Capture) -> Columns:
    columns: Columns = {
        name: [] for name in ("called_s", "latency_s", "bytes", "source", "target", "protocol", "hops", "on_node")
    }
    for message in capture.messages():
        columns["called_s"].append(message.called_ps * PS)
        columns["latency_s"].append((message.delivered_ps - message.called_ps) * PS)
        columns["bytes"].append(message.bytes)
        columns["source"].append(message.source)
        columns["target"].append(message.target)
        columns["protocol"].append(message.protocol)
        columns["hops"].append(-1 if message.on_node else message.hops)
        columns["on_node"].append(message.on_node)
    return columns


def _by_kind(messages: Columns) -> dict[tuple[str, int], list[float]]:
    kinds: dict[tuple[str, int], list[float]] = {}
    for protocol, hops, latency in zip(messages["protocol"], messages["hops"], messages["latency_s"], strict=True):
        kinds.setdefault((protocol, hops), []).append(latency)
    return dict(sorted(kinds.items()))


def _latency(messages: Columns) -> Columns:
    """A histogram: eight bins for each factor of two."""
    rows = []
    for (protocol, hops), latencies in _by_kind(messages).items():
        bins: dict[int, int] = {}
        for latency in latencies:
            place = math.floor(8 * math.log2(latency / PS)) if latency > 0 else 0
            bins[place] = bins.get(place, 0) + 1
        for place, count in sorted(bins.items()):
            rows.append((protocol, hops, 2 ** (place / 8) * PS, 2 ** ((place + 1) / 8) * PS, count))
    return _columns(("protocol", "hops", "from_s", "to_s", "messages"), rows)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest value that `percent` % of them do not exceed."""
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1]


def _latency_percentiles(messages: Columns) -> Columns:
    rows = []
    for (protocol, hops), latencies in _by_kind(messages).items():
        latencies.sort()
        rows.append((protocol, hops, len(latencies), *(percentile(latencies, percent) for percent in PERCENTILES)))
    return _columns(("protocol", "hops", "messages", *(f"p{percent:g}_s" for percent in PERCENTILES)), rows)


def _calls(capture: Capture, ranks: int) -> Columns:
    rows = (
        (rank, call.name, call.entered_ps * PS, call.left_ps * PS, call.waited_ps * PS, call.bytes)
        for rank in range(ranks)
        for call in capture.calls(rank)
    )
    return _columns(("rank", "call", "entered_s", "left_s", "waiting_s", "bytes"), rows)


def _operations(capture: Capture, ranks: int) -> Columns:
    """Rows of a rank are in the order of its clock."""
    rows = (
        (rank, one.kind, max(one.at_ps, -1), one.number, one.bytes, f"{one.tag:x}", one.peer)
        for rank in range(ranks)
        for one in capture.operations(rank)
    )
    return _columns(("rank", "kind", "at_ps", "operation", "bytes", "tag", "peer"), rows)


def _rank_waits(capture: Capture) -> Columns:
    by_rank = sorted(capture.waits().items())
    rows = ((rank, max(begin, 0), end) for rank, waits in by_rank for begin, end in waits if end > 0)
    return _columns(("rank", "from_ps", "to_ps"), rows)


def _links(capture: Capture, duration_s: float) -> Columns:
    rows = []
    for number, link in enumerate(capture.links):
        busy_s = sum(link.busy_ps) * PS
        waiting = sum(link.waiting_byte_ps) * PS
        rows.append(
            (number, link.name, link.kind, link.from_group, link.to_group, sum(link.data_bytes), busy_s,
             _share(busy_s, duration_s), _share(waiting, duration_s), link.longest_wait_ps * PS)
        )  # fmt: skip
    names = ("link", "name", "kind", "from_group", "to_group", "data_bytes", "busy_s", "utilisation")
    return _columns((*names, "mean_queue_bytes", "longest_wait_s"), rows)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _link_steps(capture: Capture) -> Columns:
    step_s = capture.step_ps * PS
    rows = (
        (number, step * step_s, step_s, link.data_bytes[step], busy / capture.step_ps,
         link.waiting_byte_ps[step] / capture.step_ps)
        for number, link in enumerate(capture.links)
        for step, busy in enumerate(link.busy_ps)
    )  # fmt: skip
    return _columns(("link", "time_s", "step_s", "data_bytes", "utilisation", "queue_bytes"), rows)


def _between_groups(capture: Capture) -> dict[tuple[int, int], list[Link]]:
    """Links between switches by their groups; those inside a group have it on both sides."""
    pairs: dict[tuple[int, int], list[Link]] = {}
    for link in capture.links:
        if link.kind in ("local", "global"):
            pairs.setdefault((link.from_group, link.to_group), []).append(link)
    return dict(sorted(pairs.items()))


def _groups(capture: Capture, duration_s: float) -> Columns:
    rows = []
    for (source, target), links in _between_groups(capture).items():
        busy = sum(sum(link.busy_ps) for link in links) * PS / len(links)
        rows.append((source, target, len(links), sum(sum(link.data_bytes) for link in links), _share(busy, duration_s)))
    return _columns(("from_group", "to_group", "links_used", "data_bytes", "utilisation"), rows)


def _group_steps(capture: Capture) -> Columns:
    rows = []
    step_s = capture.step_ps * PS
    for (source, target), links in _between_groups(capture).items():
        for step in range(max(len(link.busy_ps) for link in links)):
            there = [link for link in links if step < len(link.busy_ps)]
            busy = sum(link.busy_ps[step] for link in there) / len(links) / capture.step_ps
            rows.append((source, target, step * step_s, step_s, sum(link.data_bytes[step] for link in there), busy))
    return _columns(("from_group", "to_group", "time_s", "step_s", "data_bytes", "utilisation"), rows)


def _waits(capture: Capture) -> Columns:
    """How long frames waited at the outputs of switches."""
    sums: dict[str, list[int]] = {}
    for link in capture.links:
        if link.kind != "injection":
            total = sums.setdefault(link.kind, [0] * len(link.waits))
            for place, count in enumerate(link.waits):
                total[place] += count
    rows = [
        (kind, 0.0 if place == 0 else 2 ** (place - 1) * PS, 2**place * PS if place else 0.0, count)
        for kind, total in sorted(sums.items())
        for place, count in enumerate(total)
        if count
    ]
    return _columns(("kind", "from_s", "to_s", "frames"), rows)


def _counters(capture: Capture, wanted: Sequence[str]) -> Columns:
    step_s = capture.counter_step_ps * PS
    shown = {name for name in capture.counter_names if is_wanted(name, wanted)}
    rows = (
        (each.node, each.index, each.counter, each.step * step_s, step_s, each.grown)
        for each in capture.counted()
        if each.counter in shown
    )
    return _columns(("node", "nic", "counter", "time_s", "step_s", "grown"), rows)


def _switch_ports(capture: Capture) -> Columns:
    step_s = capture.counter_step_ps * PS
    rows = (
        (port.switch, port.port, port.leads_to, port.kind, each.step * step_s, step_s, each.bytes_in, each.bytes_out,
         each.frames_in, each.frames_out)
        for port in capture.ports
        for each in port.steps
    )  # fmt: skip
    names = ("switch", "port", "leads_to", "kind", "time_s", "step_s", "IfInOctets", "IfOutOctets")
    return _columns((*names, "frames_in", "frames_out"), rows)


def _columns(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Columns:
    columns: Mapping[str, list[Any]] = {name: [] for name in names}
    append: list[Callable[[Any], None]] = [column.append for column in columns.values()]
    for row in rows:
        for add, value in zip(append, row, strict=True):
            add(value)
    return dict(columns)
