"""`dryfly report RUN -o FILE.html`: a recorded run, or the results of several seeds, as one page that needs nothing
beside it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from dryfly.base.errors import RunError, UserError
from dryfly.base.files import write_whole
from dryfly.base.units import size_text, time_text
from dryfly.report import counted, noise, seeds_report, software, solver_report, sweep_report
from dryfly.report.page import document, section, table
from dryfly.result import binding, tables
from dryfly.result.capture import check_target

_PS_PER_S = 10**12
_RANKS_SHOWN = 256


def report(run: str, target: str, *, silent: str | None = None) -> int:
    """`silent`: the same run without noise, recorded too."""
    source = Path(run)
    if source.is_file():
        if silent is not None:
            raise UserError(f"--silent goes with a recorded run; {source} is a file")
        _check_libraries(target)
        if seeds_report.is_one(source):
            content = seeds_report.write(source, target)
        else:
            content = solver_report.write(source, target)
    elif sweep_report.is_one(source):
        if silent is not None:
            raise UserError(f"--silent goes with a recorded run; {source} is a sweep")
        _check_page(target)
        content = sweep_report.page(source).encode()
    else:
        _check(source, target)
        result = json.loads((source / tables.RESULT).read_text(encoding="utf-8"))
        content = _page(source, result, None if silent is None else Path(silent)).encode()
    try:
        write_whole(Path(target), content)
    except OSError as error:
        raise RunError(f"the report cannot be written to {target}: {error.strerror}", exit_status=1) from None
    return 0


def _check(folder: Path, target: str) -> None:
    if not (folder / tables.RESULT).is_file():
        raise UserError(
            f'{folder} is no recorded run and no sweep; "dryfly run --record FOLDER" and "dryfly predict --out FOLDER" '
            "make one"
        )
    _check_page(target)


def _check_page(target: str) -> None:
    if Path(target).suffix.lower() not in (".html", ".htm"):
        raise UserError(f"-o {target}: of a folder a page is made: accepted is a name that ends with .html")
    _check_libraries(target)


def _check_libraries(target: str) -> None:
    check_target("-o", target, folder=False)
    try:
        import matplotlib as _  # noqa: F401
        import pyarrow.parquet as _p  # noqa: F401
    except ImportError as error:
        raise UserError(f'dryfly report needs {error.name}: pip install "dryfly[record]"') from None


def _page(folder: Path, result: Mapping[str, Any], silent: Path | None) -> str:
    from dryfly.report import pictures

    links, steps = tables.read(folder, "links"), tables.read(folder, "link_steps")
    groups, messages = tables.read(folder, "groups"), tables.read(folder, "messages")
    parts = [_head(result), _split(result)]
    if result.get("binding"):
        rows = [binding.cells(row) for row in result["binding"][:_RANKS_SHOWN]]
        note = "Cores, memory, GPU and NIC of each rank, as the rank itself told it at its end."
        note = " ".join(filter(None, (note, binding.assumption(result["binding"]))))
        if len(result["binding"]) > len(rows):
            note += f" The first {len(rows)} of {len(result['binding']):,}: result.json has all."
        parts.append(section("Where the ranks were", table(binding.HEADS, rows), note))
    parts.append(section("Time per MPI call", pictures.time_per_call(result["profile"])))
    parts.append(noise.shown(folder, result, silent))
    parts.append(software.shown(result))
    if steps["link"]:
        parts.append(
            section(
                "Bandwidth over time",
                pictures.bandwidth(links, steps),
                "Data frames on all links of a kind together: NICs into the network, inside groups, between groups.",
            )
        )
    if groups["from_group"]:
        note = "Bytes of data frames on the links from group to group; the diagonal is the links inside a group."
        parts.append(section("Traffic between groups", pictures.heat_map(groups), note))
    if messages["latency_s"]:
        parts.append(section("Latency of messages", pictures.latencies(messages) + _percentiles(folder)))
    if steps["link"]:
        note = "By the share of the run in which a link was busy, acknowledgements included."
        parts.append(
            section("Busiest links between switches", pictures.busiest_over_time(links, steps) + _busiest(links), note)
        )
        note = "From the instant at which a frame's head could leave a switch until it did."
        parts.append(section("Waiting at switches", pictures.waits(tables.read(folder, "waits")), note))
    parts.append(counted.shown(folder))
    return document(f"dryfly: {shlex.join(result['program'])}", parts)


def _head(result: Mapping[str, Any]) -> str:
    repeatable = "repeatable" if result["repeatable"] else "not repeatable"
    facts = [
        ("machine", f"{result['machine']}, {result['ranks']:,} ranks on {result['nodes']:,} nodes, "
                    f"{result['placement']['policy']}"),
        ("virtual time", _time(result["virtual_time_s"])),
        ("messages", f"{result['messages']:,}, {size_text(result['bytes'])}; "
                     f"{result['packet_hops']:,} packet-hops, {result['network_timeouts']} network time-outs"),
        ("MPI", f"{result['mpi']['name']}; compute {result['compute']['mode']}"),
        ("fingerprint", f"{result['fingerprint']} ({repeatable}), seed {result['seed']}"),
    ]  # fmt: skip
    rows = "".join(f"<tr><td>{name}</td><td style='text-align:left'>{escape(text)}</td></tr>" for name, text in facts)
    health = "".join(
        f'<p class="warning">{escape(row["severity"])} ({escape(row["name"])}): {escape(row["text"])}</p>'
        for row in result["health"]
    )
    return f"<h1><code>{escape(shlex.join(result['program']))}</code></h1>\n<table>{rows}</table>{health}"


def _time(seconds: float) -> str:
    return time_text(seconds * _PS_PER_S) if seconds > 0 else "0 s"


def _split(result: Mapping[str, Any]) -> str:
    total = result["virtual_time_s"] or 1.0
    slowest = result["time"]["slowest"]
    rows = []
    for name in ("computing", "communicating", "waiting"):
        both = (result["time"]["mean"][f"{name}_s"], slowest[f"{name}_s"])
        rows.append([name, *(text for part in both for text in (_time(part), f"{part / total:.1%}"))])
    return section("Where the time went", table(["", "mean", "", f"rank {slowest['rank']}, the slowest", ""], rows))


def _percentiles(folder: Path) -> str:
    found = tables.read(folder, "latency_percentiles")
    names = [f"p{percent:g}_s" for percent in tables.PERCENTILES]
    rows = []
    for at in range(len(found["protocol"])):
        hops = found["hops"][at]
        where = "on node" if hops < 0 else f"{hops} hops"
        times = [_time(found[name][at]) for name in names]
        rows.append([f"{found['protocol'][at]}, {where}", f"{found['messages'][at]:,}", *times])
    heads = ["", "messages", *("longest" if percent == 100 else f"{percent:g} %" for percent in tables.PERCENTILES)]
    return table(heads, rows)


def _busiest(links: Mapping[str, Any]) -> str:
    from dryfly.report.pictures import BUSIEST

    order = sorted(
        (at for at, kind in enumerate(links["kind"]) if kind in ("local", "global")),
        key=lambda at: (-links["utilisation"][at], links["name"][at]),
    )[:BUSIEST]
    rows = [
        [
            links["name"][at],
            links["kind"][at],
            f"{links['utilisation'][at]:.1%}",
            size_text(links["data_bytes"][at]),
            size_text(links["mean_queue_bytes"][at]),
            _time(links["longest_wait_s"][at]),
        ]
        for at in order
    ]
    return table(["link (g group, s switch)", "kind", "busy", "data", "mean queue", "longest wait"], rows)
