#!/usr/bin/env python3
"""Compares what a collective of a skeleton sends with what the MPI library itself sends under `dryfly run`.

  tool/collective_messages.py [--mpi mpich|openmpi]... [--ranks 2,3,8] [--only COLLECTIVE]... [--bytes 8,65536]
                              [--motif FILE] [--explain]

One rank a node, so that everything goes over the network. Of each call the messages are compared, as (source, target,
bytes) and how often: by the library's own choice of an algorithm, and by core/motif/collective with the rules of
data/mpi/collectives-*.rules. `--explain` names the algorithms that would send what the library sent. Exit status 1:
there is a difference.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet

from dryfly.base.errors import UserError
from dryfly.mpi import libraries

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "programs" / "check" / "collective_sizes.c"
MOTIF = ROOT / "build" / "core" / "motif" / "dryfly-motif"
COLLECTIVES = ("barrier", "bcast", "reduce", "allreduce", "allgather", "allgatherv", "reduce_scatter",
               "reduce_scatter_block", "alltoall", "gather", "scatter")  # fmt: skip
_OF_INTS = {"reduce", "allreduce", "reduce_scatter", "reduce_scatter_block"}
_MACHINE = "aurora"

Messages = Counter[tuple[int, int, int]]


@dataclass(frozen=True)
class Call:
    collective: str
    size: int  # as programs/check/collective_sizes.c takes it

    def __str__(self) -> str:
        return f"{self.collective}:{self.size}"

    @property
    def mpi_name(self) -> str:
        return f"MPI_{self.collective.capitalize()}"


def calls(collectives: Sequence[str], sizes: Sequence[int], ranks: int) -> list[Call]:
    """Those that make sense: barriers once, whole ints, and no buffer of more than 64 MiB."""
    found = []
    for collective in collectives:
        if collective == "barrier":
            found.append(Call(collective, 0))
            continue
        whole = collective in ("bcast", "reduce", "allreduce")
        for size in sizes:
            if collective in _OF_INTS and size % 4 != 0:
                continue
            if whole or size * ranks <= 64 << 20:
                found.append(Call(collective, size))
    return found


def build(library: libraries.MpiLibrary, folder: Path) -> Path:
    wrapper = library.wrapper("mpicc")
    if wrapper is None:
        raise UserError(f"{library.name} has no compiler wrapper")
    target = folder / f"collective_sizes-{library.name}"
    subprocess.run([str(wrapper), "-std=gnu17", "-O1", str(PROGRAM), "-o", str(target)], check=True)
    return target


def of_library(mpi: str, program: Path, ranks: int, wanted: Sequence[Call], folder: Path) -> list[Messages]:
    """What each of the calls sent, by every rank, in a run of the real library."""
    command = [sys.executable, "-m", "dryfly", "run", "--quiet", "--mpi", mpi, "--machine", _MACHINE, "-N", str(ranks),
               "--ppn", "1", "--on-node", "provider", "--compute", "none", "--record", str(folder), "--",
               str(program), *map(str, wanted)]  # fmt: skip
    subprocess.run(command, check=True)
    return sort_by_call(_table(folder, "calls"), _table(folder, "messages"), ranks, wanted)


def _table(folder: Path, name: str) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = pyarrow.parquet.read_table(folder / f"{name}.parquet").to_pydict()
    return columns


def sort_by_call(
    made: Mapping[str, Any], sent: Mapping[str, Any], ranks: int, wanted: Sequence[Call]
) -> list[Messages]:
    """A message belongs to the call that its source was in."""
    names = {call.mpi_name for call in wanted}
    spans: list[list[tuple[float, float]]] = [[] for _ in range(ranks)]
    for rank, call, entered, left in zip(made["rank"], made["call"], made["entered_s"], made["left_s"], strict=True):
        if call in names:
            spans[rank].append((entered, left))
    for rank in range(ranks):
        spans[rank].sort()
        assert len(spans[rank]) == len(wanted), f"rank {rank} made {len(spans[rank])} calls of {len(wanted)}"
    found: list[Messages] = [Counter() for _ in wanted]
    for called, size, source, target in zip(
        sent["called_s"], sent["bytes"], sent["source"], sent["target"], strict=True
    ):
        for number, (entered, left) in enumerate(spans[source]):
            if entered <= called <= left:
                found[number][source, target, size] += 1
                break
    return found


@dataclass(frozen=True)
class Model:
    """dryfly-motif on a spec."""

    motif: Path
    spec: Path

    def messages(self, call: Call, ranks: int, *, library: str, algorithm: str = "auto") -> Messages:
        listing = self.spec.parent / "messages"
        command = [str(self.motif), str(self.spec), call.collective, f"nodes={ranks}", "ppn=1", "level=latency",
                   f"library={library}", f"algorithm={algorithm}", f"messages={listing}"]  # fmt: skip
        if call.collective != "barrier":
            command += [f"bytes={call.size}", f"element={4 if call.collective in _OF_INTS else 1}"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise UserError(ended.stderr.strip())
        found: Messages = Counter()
        for line in listing.read_text(encoding="ascii").splitlines():
            source, target, size = map(int, line.split())
            found[source, target, size] += 1
        return found

    def algorithms(self, collective: str) -> list[str]:
        command = [str(self.motif), str(self.spec), collective, "nodes=1", "ppn=1", "algorithm=?"]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
        return re.sub(r"^.*accepted is ", "", said.strip()).split(", ")


def model(motif: Path, folder: Path) -> Model:
    spec = folder / "machine.spec"
    with spec.open("w", encoding="utf-8") as file:
        subprocess.run([sys.executable, "-m", "dryfly", "spec", "--machine", _MACHINE], stdout=file, check=True)
    return Model(motif, spec)


def summary(messages: Messages) -> str:
    total = sum(messages.values())
    sizes = Counter[int]()
    for (_, _, size), count in messages.items():
        sizes[size] += count
    parts = ", ".join(f"{count} x {size}" for size, count in sorted(sizes.items())[:6])
    return f"{total} messages ({parts}{', ...' if len(sizes) > 6 else ''})"


def explain(one: Model, call: Call, ranks: int, library: str, real: Messages) -> str:
    same = []
    for algorithm in one.algorithms(call.collective):
        if one.messages(call, ranks, library=library, algorithm=algorithm) == real:
            same.append(algorithm)
    return f"; the library sends as {' or '.join(same) or 'no algorithm here'} does"


def compare(mpi: str, ranks: int, wanted: Sequence[Call], one: Model, folder: Path, *, explained: bool) -> list[str]:
    """A sentence for each call that differs."""
    program = build(libraries.select(mpi), folder)
    differences = []
    record = folder / f"{mpi}-{ranks}"
    for call, real in zip(wanted, of_library(mpi, program, ranks, wanted, record), strict=True):
        modelled = one.messages(call, ranks, library=mpi)
        if modelled == real:
            continue
        why = explain(one, call, ranks, mpi, real) if explained else ""
        differences.append(
            f"{mpi}, {ranks} ranks, {call}: the library sends {summary(real)}, the skeleton {summary(modelled)}{why}"
        )
    return differences


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpi", action="append", choices=("mpich", "openmpi"))
    parser.add_argument("--ranks", default="2,3,4,7,8,16,17,32,60,64")
    parser.add_argument("--bytes", default="4,8,64,256,1024,4096,16384,65536,524288")
    parser.add_argument("--only", action="append", choices=COLLECTIVES)
    parser.add_argument("--motif", type=Path, default=MOTIF)
    parser.add_argument("--explain", action="store_true")
    options = parser.parse_args()
    sizes = [int(word) for word in options.bytes.split(",")]
    compared = 0
    differences: list[str] = []
    for mpi in options.mpi or ("mpich", "openmpi"):
        for ranks in map(int, options.ranks.split(",")):
            with tempfile.TemporaryDirectory(prefix="collective-messages-") as name:
                folder = Path(name)
                wanted = calls(options.only or COLLECTIVES, sizes, ranks)
                found = compare(mpi, ranks, wanted, model(options.motif, folder), folder, explained=options.explain)
                compared += len(wanted)
                differences += found
                for sentence in found:
                    print(sentence, flush=True)
                print(f"{mpi}, {ranks} ranks: {len(wanted)} calls, {len(found)} differ", flush=True)
    print(f"figure {compared - len(differences)} calls alike; of {compared}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
