"""How much of what is planted `dryfly validate` finds: precision and recall by kind and size of the defect.

Each case draws from its number a machine, how many nodes, and one to four faults of different kinds and sizes; the
operating system's noise is the machine's. A planted fault counts as found if a finding names its place, any other
finding as a false alarm. With every tenth case goes a machine in order, which must give none.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from dryfly.base.paths import data_folder
from dryfly.base.store import Store
from dryfly.case.placement import node_blocks
from dryfly.case.resolve import resolve_machine
from dryfly.machine.load import load
from dryfly.machine.names import NodeNames
from dryfly.skeleton import motif
from dryfly.validate import wiring
from dryfly.validate.asked import Asked
from dryfly.validate.procedure import of_simulated

# A machine, and the numbers of nodes of which a case takes one. All pairs of nodes are measured up to this many.
MACHINES = (("crusher", (64, 128, 192)), ("aurora", (64, 128, 256, 512)), ("frontier", (64, 128, 256)))
WHOLE_UP_TO = 192
MACHINES_OF_RANKS = (("crusher", (4, 8, 12)), ("aurora", (4, 6)))  # with --mpi: a process for each two of a NIC
SHARES = (0.05, 0.1, 0.15, 0.25, 0.5)
KINDS = ("lanes of a link", "lanes of a NIC", "nic", "pcie", "memory", "cpu", "load", "miscabled", "flap")
_OF_CABLES = ("lanes of a link", "load", "miscabled")
_FAULTS_MOST = 4
FLAPS_PER_HOUR = (2.0, 6.0)
AIMED_AT = 0.1  # defects of that size and more


@cache
def _machine(name: str) -> tuple[Any, Any]:
    machine = load(name)
    return machine, wiring.read(resolve_machine(machine, seed=1, ranks=1))


def planted(case: int, mpi: str | None = None) -> dict[str, Any]:
    """The machine of a case and what is wrong with it: for each fault its kind, its size, and the places that tell."""
    draw = random.Random(case)
    machines = MACHINES if mpi is None else MACHINES_OF_RANKS
    name, sizes = machines[draw.randrange(len(machines))]
    count = draw.choice(sizes)
    machine, wired = _machine(name)
    nodes = node_blocks(machine, nodes=count, ppn=1, policy="packed")
    names = NodeNames(machine)
    nics = [nic for node in nodes for nic in wired.nics_of_node[node]]
    of_switch = wired.nics_of_switches(nodes)
    cables = [cable for cable in wired.cables if cable.a in of_switch and cable.b in of_switch]
    free_nodes = draw.sample(range(count), 4)
    faults: dict[str, list[dict[str, Any]]] = {}
    truth: list[dict[str, Any]] = []
    kinds = KINDS if len(cables) > _FAULTS_MOST else tuple(kind for kind in KINDS if kind not in _OF_CABLES)
    for kind in draw.sample(kinds, draw.randint(1, _FAULTS_MOST)):
        share = draw.choice(SHARES)
        node = free_nodes.pop()
        nic = nics[node * len(wired.nics_of_node[nodes[0]]) + draw.randrange(len(wired.nics_of_node[nodes[0]]))]
        if kinds is KINDS:
            cable = cables.pop(draw.randrange(len(cables)))
        places = [f"n{nic}"]
        if kind == "lanes of a link":
            lanes = draw.choice((1, 2, 3))
            share, places = 1 - lanes / 4, [cable.name]
            faults.setdefault("lanes", []).append({"link": cable.name, "lanes": lanes})
        elif kind == "lanes of a NIC":
            lanes = draw.choice((1, 2, 3))
            share = 1 - lanes / 4
            faults.setdefault("lanes", []).append({"link": f"n{nic}", "lanes": lanes})
        elif kind == "nic":
            faults.setdefault("nic", []).append({"nic": f"n{nic}", "rate": 1 - share})
        elif kind == "pcie":
            width = draw.choice((8, 4))
            share = 1 - width / 16
            faults.setdefault("pcie", []).append({"nic": f"n{nic}", "width": width})
        elif kind in ("memory", "cpu"):
            places = [names.name(node)]
            faults.setdefault(kind, []).append({"node": names.name(node), "rate": 1 - share})
        elif kind == "load":
            places = [cable.name]
            faults.setdefault(kind, []).append({"link": cable.name, "share": share})
        elif kind == "miscabled":
            other = cables.pop(draw.randrange(len(cables)))
            share, places = 1.0, [cable.name, other.name]
            faults.setdefault(kind, []).append({"link": cable.name, "with": other.name})
        else:
            rate = draw.choice(FLAPS_PER_HOUR)
            share = 1.0
            faults.setdefault(kind, []).append({"link": f"n{nic}", "per_hour": rate})
        truth.append({"kind": kind, "share": round(share, 3), "places": places})
    return {"machine": name, "nodes": count, "faults": faults, "truth": truth}


def run(case: int, network: str | None, in_order: bool = False, mpi: str | None = None) -> dict[str, Any]:
    about = planted(case, mpi)
    began = time.monotonic()
    outcome = of_simulated(
        Asked(
            machine=about["machine"], nodes=about["nodes"], network=network, mpi=mpi, seed=case + 1, noise="machine",
            faults=None if in_order else about["faults"], level="system" if about["nodes"] <= WHOLE_UP_TO else "pair",
        )
    ).run()  # fmt: skip
    found = [(finding.kind, finding.place) for finding in outcome.findings]
    truth = [] if in_order else about["truth"]
    wanted = {place for fault in truth for place in fault["places"]}
    return {
        "case": case, "machine": about["machine"], "nodes": about["nodes"], "in_order": in_order,
        "truth": [{**fault, "found": [p for p in fault["places"] if any(q == p for _, q in found)]} for fault in truth],
        "kinds_named": sum(any(q in f["places"] and k == f["kind"].split()[0] for f in truth) for k, q in found),
        "false_alarms": [[k, p] for k, p in found if p not in wanted], "wall_s": time.monotonic() - began,
    }  # fmt: skip


def _digest() -> str:
    """Of what answers: the engine, and the procedure with its limits."""
    code = sorted(Path(__file__).parent.rglob("*.py"))
    parts = [motif.digest().encode(), *(file.read_bytes() for file in (*code, data_folder() / "validate.toml"))]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def report(rows: list[dict[str, Any]]) -> dict[str, Any]:
    total: Counter[tuple[str, float]] = Counter()
    found: Counter[tuple[str, float]] = Counter()
    for row in rows:
        for fault in row["truth"]:
            key = fault["kind"], fault["share"]
            total[key] += len(fault["places"])
            found[key] += len(fault["found"])
    alarms = sum(len(row["false_alarms"]) for row in rows)
    named = sum(row["kinds_named"] for row in rows)
    large = [key for key in total if key[1] >= AIMED_AT]
    hits = sum(found[key] for key in large)
    print(f"{'kind':18}{'defect':>8}{'planted':>9}{'found':>7}{'recall':>8}")
    for kind, share in sorted(total, key=lambda key: (KINDS.index(key[0]), key[1])):
        n, k = total[kind, share], found[kind, share]
        print(f"{kind:18}{share:8.0%}{n:9}{k:7}{k / n:8.2f}")
    recall = hits / max(1, sum(total[key] for key in large))
    precision = sum(found.values()) / max(1, sum(found.values()) + alarms)
    print(f"{named} of {sum(found.values())} that were found have their kind's name")
    order = [row for row in rows if row["in_order"]]
    print(f"defects of {AIMED_AT:.0%} and more: recall {recall:.3f}; precision {precision:.3f} ({alarms} false alarms)")
    print(f"{len(order)} machines in order: {sum(len(row['false_alarms']) for row in order)} false alarms")
    return {"recall": recall, "precision": precision}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--network", help="links, flow or packet; default: flow, with --mpi packet")
    parser.add_argument("--mpi", help="by real ranks of this library, on few nodes")
    parser.add_argument("--out", help="keep results there; what is there is not run again")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    asked = parser.parse_args()
    network = asked.network or ("flow" if asked.mpi is None else "packet")
    store = Store(Path(asked.out) if asked.out else None)
    about = _digest()
    began = time.monotonic()
    todo = [(case, False) for case in range(asked.first, asked.first + asked.cases)]
    todo += [(case, True) for case in range(asked.first, asked.first + asked.cases, 10)]
    rows = []
    with ProcessPoolExecutor(asked.jobs) as pool:
        running = {}
        for case, in_order in todo:
            key = f"{network}-{asked.mpi}-{case}-{in_order}-{about}"
            kept = store.get(key)
            running[key] = kept if kept is not None else pool.submit(run, case, network, in_order, asked.mpi)
        for key, row in running.items():
            if not isinstance(row, dict):
                row = row.result()
                store.put(key, row)
            rows.append(row)
            missed = [f"{f['kind']} {f['share']:.0%} {f['places']}" for f in row["truth"] if f["found"] != f["places"]]
            if missed or row["false_alarms"]:
                print(json.dumps({"case": row["case"], "on": f"{row['machine']} {row['nodes']}", "missed": missed,
                                  "false": row["false_alarms"]}), file=sys.stderr)  # fmt: skip
    found = report(rows)
    took = time.monotonic() - began
    print(f"{len(rows)} cases, {took:.0f} s, {sum(row['wall_s'] for row in rows):.0f} s of validations")
    print(
        f"figure {found['recall']:.3f} recall; anchor precision {found['precision']:.3f}; ratio {found['recall']:.3f}"
    )


if __name__ == "__main__":
    main()
