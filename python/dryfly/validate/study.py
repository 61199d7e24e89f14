"""How much of what is planted `dryfly validate` finds: precision and recall by kind and size of the defect.

Each case draws from its number a machine, how many nodes, and one to four faults of different kinds and sizes; the
operating system's noise is the machine's. A planted fault counts as found if a finding names its place, any other
finding as a false alarm. With every tenth case goes a machine in order, which must give none. On more than 192 nodes
the last level is `pair`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing.synchronize import Event
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from dryfly.base import signals
from dryfly.base.errors import DryflyError, UserError
from dryfly.base.paths import data_folder
from dryfly.base.store import Store
from dryfly.case.placement import node_blocks
from dryfly.case.resolve import resolve_machine
from dryfly.machine.load import load
from dryfly.machine.names import NodeNames
from dryfly.mpi import libraries as mpi_libraries
from dryfly.result.capture import check_target
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
NEVER_PLANTED = ("node", "loss", "replays", "drain", "gpu")  # of those that fault files have
_OF_CABLES = ("lanes of a link", "load", "miscabled")
_FAULTS_MOST = 4
FLAPS_PER_HOUR = (2.0, 6.0)
AIMED_AT = 0.1  # defects of that size and more
_NAME = "validate-study"
_END_WITHIN_S = 10.0  # for workers' own ranks


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


class Tally:
    """Places by kind and size of the defect, and findings that name none of them by their kind; of nodes with their
    NICs, or of links."""

    def __init__(self, rows: Sequence[dict[str, Any]], *, of_links: bool) -> None:
        self.planted: Counter[tuple[str, float]] = Counter()
        self.found: Counter[tuple[str, float]] = Counter()
        self.false: Counter[str] = Counter()
        names = {kind.split()[0]: kind for kind in KINDS if (kind in _OF_CABLES) == of_links}
        for row in rows:
            for fault in row["truth"]:
                if (fault["kind"] in _OF_CABLES) == of_links:
                    key = fault["kind"], fault["share"]
                    self.planted[key] += len(fault["places"])
                    self.found[key] += len(fault["found"])
            for kind, place in row["false_alarms"]:
                if ("-" in place and place.startswith("s")) == of_links:  # s3-s17, as cables are named
                    self.false[names.get(kind, kind)] += 1

    def lines(self, title: str) -> Iterator[str]:
        shares = sorted({share for _, share in self.planted})
        yield f"{title:18}" + "".join(f"{share:>8.0%}" for share in shares) + "  recall   false  precision"
        kinds = [kind for kind in KINDS if any(kind == planted for planted, _ in self.planted)]
        for kind in [*kinds, *sorted(set(self.false) - set(kinds))]:
            cells = [f"{self.found[kind, share]}/{n}" if (n := self.planted[kind, share]) else "" for share in shares]
            planted, found = (sum(of[kind, share] for share in shares) for of in (self.planted, self.found))
            parts = _part(found, planted), self.false[kind], _part(found, found + self.false[kind])
            yield f"{kind:18}" + "".join(f"{cell:>8}" for cell in cells) + "{:>8}{:>8}{:>11}".format(*parts)


def _part(some: int, of: int) -> str:
    return f"{some / of:.2f}" if of else "-"


def report(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    tallies = {"nodes and NICs": Tally(rows, of_links=False), "links": Tally(rows, of_links=True)}
    print("found/planted places by kind and size of the defect")
    for title, tally in tallies.items():
        print("\n".join(tally.lines(title)))
    print(f"never planted: {', '.join(NEVER_PLANTED)}")
    planted, found = (sum((of for of in each), Counter()) for each in (
        [tally.planted for tally in tallies.values()], [tally.found for tally in tallies.values()]))  # fmt: skip
    alarms = sum(len(row["false_alarms"]) for row in rows)
    named = sum(row["kinds_named"] for row in rows)
    large = [key for key in planted if key[1] >= AIMED_AT]
    recall = sum(found[key] for key in large) / max(1, sum(planted[key] for key in large))
    precision = found.total() / max(1, found.total() + alarms)
    print(f"{named} of {found.total()} that were found have their kind's name")
    order = [row for row in rows if row["in_order"]]
    print(f"defects of {AIMED_AT:.0%} and more: recall {recall:.3f}; precision {precision:.3f} ({alarms} false alarms)")
    print(f"{len(order)} machines in order: {sum(len(row['false_alarms']) for row in order)} false alarms")
    return {"recall": recall, "precision": precision}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{_NAME}: {message}\n")


def _asked(words: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser(prog=_NAME, description=__doc__)
    parser.add_argument("--cases", type=int, default=20, metavar="N", help="so many; default: %(default)s")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="from this one on; default: %(default)s")
    text = "links (not with --mpi), flow or packet; default: flow, with --mpi packet"
    parser.add_argument("--network", metavar="LEVEL", help=text)
    text = "by real ranks of this library, on few nodes; default: by ranks without a program"
    parser.add_argument("--mpi", metavar="LIBRARY", help=text)
    text = "keep results there; what is there is not run again; default: nothing is kept"
    parser.add_argument("--out", metavar="FOLDER", help=text)
    parser.add_argument("-j", "--jobs", type=int, default=2, metavar="N", help="at a time; default: %(default)s")
    asked = parser.parse_args(words)
    for flag, value, least in (("--cases", asked.cases, 1), ("--first", asked.first, 0), ("--jobs", asked.jobs, 1)):
        if value < least:
            parser.error(f"{flag} {value}: accepted is {least} or more")
    asked.network = asked.network or ("flow" if asked.mpi is None else "packet")
    try:
        motif.digest()  # raises where it has not been built
        Asked(network=asked.network, mpi=asked.mpi)
        if asked.mpi is not None:
            mpi_libraries.select(asked.mpi)
        if asked.out is not None:
            check_target("--out", asked.out, folder=True)
    except UserError as error:
        parser.error(str(error))
    return asked


_over: Event  # in workers: what they run is not wanted any more
_SILENT = signal.SIGUSR1


def _begin(prepare: Callable[[], None], over: Event) -> None:
    """In each worker. It has a group of its own, for a terminal's Ctrl-C is the study's, which ends its workers."""
    global _over
    _over = over
    os.setpgid(0, 0)
    for number in signals.ENDING:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(_SILENT, _be_silent)
    prepare()


def _be_silent(_number: int, _frame: FrameType | None) -> None:
    """A run that is ended says so, and the study has said it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _work(case: int, network: str, in_order: bool, mpi: str | None) -> dict[str, Any]:
    try:
        return run(case, network, in_order, mpi)
    except DryflyError as error:  # of which some cannot be sent to another process
        raise UserError(f"case {case}: {error}") from None
    finally:
        if _over.is_set():
            os._exit(1)


class Study:
    """Cases that are kept, and those that workers run. `rows`: what is finished, by case and whether it is the machine
    in order."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self._asked = asked
        self._store = Store(Path(asked.out) if asked.out else None)
        self._about = _digest()
        numbers = range(asked.first, asked.first + asked.cases)
        self.todo = [*((case, False) for case in numbers), *((case, True) for case in numbers[::10])]
        kept = {each: self._store.get(self._key(*each)) for each in self.todo}
        self.rows = {each: row for each, row in kept.items() if row is not None}

    def _key(self, case: int, in_order: bool) -> str:
        return f"{self._asked.network}-{self._asked.mpi}-{case}-{in_order}-{self._about}"

    def run(self) -> None:
        """Raises UserError. However it ends, no worker is left, and what they have finished is kept."""
        context = multiprocessing.get_context("fork")
        over = context.Event()
        prepare = signals.dying_with_parent()
        with ProcessPoolExecutor(self._asked.jobs, context, _begin, (prepare, over)) as pool:
            running: dict[Future[dict[str, Any]], tuple[int, bool]] = {}
            try:
                for each in self.todo:
                    if each not in self.rows:
                        case, in_order = each
                        running[pool.submit(_work, case, self._asked.network, in_order, self._asked.mpi)] = each
                for future in as_completed(running):
                    self._keep(running.pop(future), future)
            except BaseException:
                for number in signals.ENDING:
                    signal.signal(number, signal.SIG_IGN)
                over.set()
                for future, each in running.items():
                    if future.done() and future.exception() is None:
                        self._keep(each, future)
                _end_workers()
                raise

    def _keep(self, each: tuple[int, bool], future: Future[dict[str, Any]]) -> None:
        row = future.result()
        self._store.put(self._key(*each), row)
        self.rows[each] = row
        missed = [f"{f['kind']} {f['share']:.0%} {f['places']}" for f in row["truth"] if f["found"] != f["places"]]
        if missed or row["false_alarms"]:
            print(json.dumps({"case": row["case"], "on": f"{row['machine']} {row['nodes']}", "missed": missed,
                              "false": row["false_alarms"]}), file=sys.stderr)  # fmt: skip


def _end_workers() -> None:
    """One in whose case ranks run ends these first; what others have started dies with them."""
    workers = multiprocessing.active_children()
    for worker in workers:
        if worker.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.pid, _SILENT)
        worker.terminate()
    deadline = time.monotonic() + _END_WITHIN_S
    for worker in workers:
        worker.join(max(deadline - time.monotonic(), 0))
        worker.kill()


class _Ended(BaseException):
    """By a signal."""


def _on_signal(number: int, _frame: FrameType | None) -> NoReturn:
    raise _Ended(number)


def main(words: Sequence[str] | None = None) -> int:
    """The exit status."""
    asked = _asked(words)
    began = time.monotonic()
    study = Study(asked)
    for number in signals.ENDING:
        signal.signal(number, _on_signal)
    try:
        study.run()
        rows = [study.rows[each] for each in study.todo]
        found = report(rows)
    except _Ended as ended:
        kept = f"; what is finished is kept in {asked.out}" if asked.out else ""
        print(f"{_NAME}: ended with {len(study.rows)} of {len(study.todo)} cases finished{kept}", file=sys.stderr)
        return 128 + int(ended.args[0])
    except DryflyError as error:
        print(f"{_NAME}: {error}", file=sys.stderr)
        return error.exit_status
    took = time.monotonic() - began
    print(f"{len(rows)} cases, {took:.0f} s, {sum(row['wall_s'] for row in rows):.0f} s of validations")
    print(
        f"figure {found['recall']:.3f} recall; anchor precision {found['precision']:.3f}; ratio {found['recall']:.3f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
