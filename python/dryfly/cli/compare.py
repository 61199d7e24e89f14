"""`dryfly compare`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from dryfly.cli import complete
from dryfly.cli.options import CONTEXT, given_case_options, how, kept, option


@click.command("compare", context_settings=CONTEXT)
@option("--with", "settings", multiple=True, metavar="LIBRARY[,NAME=VALUE]...",
        help='One thing to compare, such as "openmpi,OMPI_MCA_coll=^sm"; "LABEL: ..." names it.',
        shell_complete=complete.libraries)  # fmt: skip
@option("--plan", "plan_file", metavar="FILE", help="A TOML file with all of this; flags win over it.",
        shell_complete=complete.files)  # fmt: skip
@given_case_options(
    without=("mpi",),
    nodes={"help": "Number of nodes; default: 2; one pair uses two, or the one."},
    ppn={"help": "Ranks per node; default: 1."},
    ranks={"help": "Number of ranks, instead."},
    compute={
        "default": "none",
        "help": "What counts between MPI calls: none, replay:FILE or model; measured is not repeatable.",
    },
    sets={"help": "Of the machine, for all."},
)
@option("-m", "message_size", metavar="[MIN:]MAX", help="Message sizes of all benchmarks.")
@option("-i", "iterations", metavar="N", help="Timed repetitions of each size.")
@option("-x", "warmup", metavar="N", help="Repetitions before them.")
@option("-W", "window", metavar="N", help="Messages under way at once, for bandwidths.")
@option("-M", "memory", metavar="BYTES", help="For the buffers of a rank; larger sizes are left out.")
@option("-c", "validate", is_flag=True, help="Check the data that arrives.")
@option("-f", "full", is_flag=True, help="Also the fastest and the slowest rank, for collectives.")
@option("--iterations", "keep_iterations", is_flag=True,
        help="Keep every repetition: show how far they lie apart, and which stand out.")  # fmt: skip
@option("-o", "folder", default="dryfly-compare", metavar="FOLDER", shell_complete=complete.folders,
        help="The page with plots, and the runs' results: the same command goes on from there.")  # fmt: skip
@option("--counts/--no-counts", default=True,
        help="Record a run of each too, and count messages by protocol and size.")  # fmt: skip
@option("-j", "--jobs", type=int, metavar="N", help="Runs at a time; default: half the processors.")
@kept
@how("json_file", "timeout_s", "quiet",
     json_file={"help": "Write the comparison there; - is standard output."},
     timeout_s={"help": "Wall time after which a run is ended."},
     quiet={"help": "Do not tell which run has ended."})  # fmt: skip
@click.argument("benchmarks", nargs=-1, metavar="[BENCHMARK]...", shell_complete=complete.benchmarks)
def command(
    given: Mapping[str, Any],
    settings: tuple[str, ...],
    plan_file: str | None,
    message_size: str | None,
    iterations: str | None,
    warmup: str | None,
    window: str | None,
    memory: str | None,
    validate: bool,
    full: bool,
    keep_iterations: bool,
    folder: str,
    counts: bool,
    benchmarks: tuple[str, ...],
    **ways: Any,
) -> None:
    """Run microbenchmarks with several MPI libraries and settings on the same simulated nodes.

    BENCHMARK is latency, bw, bibw, mbw_mr, multi_lat, sync_pairs, latency_mt, gather, gatherv, igather, igatherv,
    scatter, alltoall, alltoallv, allgather, allreduce, bcast, barrier, reduce_scatter, reduce_scatter_block,
    put_latency, get_latency, acc_latency, put_bw, get_bw, acc_bw or put_bibw, with options of its own in quotes:
    "alltoall -m 1:4096".
    """
    from dryfly.study.compare import Options, compare
    from dryfly.study.plan import Flags, make

    sizes = (("-m", message_size), ("-i", iterations), ("-x", warmup), ("-W", window), ("-M", memory))
    switched = (flag for flag, on in (("-c", validate), ("-f", full)) if on)
    flags = Flags(
        file=plan_file,
        settings=settings,
        benchmarks=benchmarks,
        options=(*(word for flag, value in sizes if value is not None for word in (flag, value)), *switched),
        given=given,
        iterations=keep_iterations,
    )
    options = Options(folder=folder, counts=counts, **ways)
    sys.exit(compare(make(flags), options))
