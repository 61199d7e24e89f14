"""Runs a scenario and compares what it prints with the scenario's table.

run.py FABRIC_TRAFFIC SCENARIO.toml   each case: a machine, settings, streams (fabric_traffic.cpp), `storage` as in a
                                      --storage file (empty: only the servers are there), and a table of bounds; a
                                      bound may be a multiple of what an earlier case has printed:
                                      "0.95 x alone:victim.gbps"; where the scenario says `flows_within`, each case
                                      runs with the network as flows too, and what is in its table is within that
                                      part of the packets'
run.py CHANNEL_GRAPH --machines       each shipped machine: no deadlock (channel_graph.cpp)
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from dryfly.case.placement import place  # noqa: E402
from dryfly.case.resolve import ComputeSpec, resolve  # noqa: E402
from dryfly.machine.load import load, shipped_machines  # noqa: E402
from dryfly.scenario import storage  # noqa: E402


def spec_of(
    machine_name: str, sets: list[str], streams: dict[str, object] | None = None, network: str = "packet"
) -> str:
    """With `streams` of a --storage file the storage groups have their servers."""
    machine = load(str(ROOT / machine_name) if machine_name.endswith(".toml") else machine_name, sets=sets)
    found = None
    if streams is not None:
        machine = storage.with_servers(machine)
        found = storage.parse(streams, machine, job=[0], seed=1) if streams else None
    return resolve(
        machine, place(machine, nodes=1), seed=1, compute=ComputeSpec(mode="none"), storage=found, network=network
    )


def printed(program: str, spec: str, streams: str = "") -> dict[str, float]:
    with tempfile.NamedTemporaryFile("w", suffix=".spec") as file:
        file.write(spec)
        file.flush()
        output = subprocess.run([program, file.name], input=streams, check=True, capture_output=True, text=True).stdout
    return {name: float(value) for name, value in (line.split() for line in output.splitlines())}


def bound(text: float | str, measured: dict[str, dict[str, float]]) -> float:
    if not isinstance(text, str):
        return float(text)
    factor, _, where = text.partition(" x ")
    case, _, name = where.partition(":")
    return float(factor) * measured[case][name]


def run_scenario(program: str, path: Path) -> bool:
    scenario = tomllib.loads(path.read_text(encoding="utf-8"))
    print(scenario["title"])
    measured: dict[str, dict[str, float]] = {}
    good = True
    for case in scenario["case"]:
        name = case["name"]
        beside = case.get("storage", scenario.get("storage"))
        sets = [*scenario.get("set", []), *case.get("set", [])]
        spec = spec_of(scenario["machine"], sets, beside)
        shown = ["trackers"] if any(what.startswith("trackers.") for what in case["expect"]) else []
        times = f"time {scenario['warm_up_us']}000000 {scenario['end_us']}000000"
        streams = "\n".join([times, *shown, *case["streams"], ""])
        measured[name] = printed(program, spec, streams)
        for what, (least, most) in case["expect"].items():
            value = measured[name][what]
            low, high = bound(least, measured), bound(most, measured)
            verdict = "" if low <= value <= high else "   <-- not as expected"
            good = good and not verdict
            print(f"  {name:28} {what:20} {value:12.2f}   expected {low:.2f} to {high:.2f}{verdict}")
        if "flows_within" not in scenario:
            continue
        as_flows = printed(program, spec_of(scenario["machine"], sets, beside, network="flow"), streams)
        for what in case["expect"]:
            off = as_flows[what] / measured[name][what] - 1
            verdict = "" if abs(off) <= scenario["flows_within"] else "   <-- not as packets"
            good = good and not verdict
            print(f"  {'':28} {what:20} {as_flows[what]:12.2f}   as flows, {100 * off:+.1f} %{verdict}")
    return good


def run_machines(program: str) -> bool:
    good = True
    for name in shipped_machines():
        result = printed(program, spec_of(name, []))
        good = good and result["acyclic"] == 1 and result["longest_way"] <= 5
        print(f"{name:16} buffers in use {result['buffers']:9.0f}   longest way {result['longest_way']:.0f} links")
    return good


if __name__ == "__main__":
    ok = run_machines(sys.argv[1]) if sys.argv[2] == "--machines" else run_scenario(sys.argv[1], Path(sys.argv[2]))
    sys.exit(0 if ok else 1)
