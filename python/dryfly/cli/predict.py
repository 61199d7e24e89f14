"""`dryfly predict`."""

from __future__ import annotations

import sys
from typing import Any

import click

from dryfly.base.errors import UserError
from dryfly.cli import complete
from dryfly.cli.options import CASE, CONTEXT, how, option, written

_SWEPT = "Each of these values; several --sweep: every combination. A parameter, an option or a machine's field."
_SOFTWARE = (
    "measured: the MPI library's own code costs what was counted for such messages (mpi measure), where it was; none: "
    "every call costs what the machine says."
)


@click.command("predict", context_settings={**CONTEXT, "ignore_unknown_options": True})
@click.argument("workload", metavar="WORKLOAD", shell_complete=complete.workloads)
@click.argument("parameters", nargs=-1, type=click.UNPROCESSED, metavar="[NAME=VALUE]...",
                shell_complete=complete.workload_parameters)  # fmt: skip
@option("--machine", default="aurora", **CASE["machine"][1])  # of a recording its own
@option("-N", "--nodes", type=int, metavar="N", help="Number of nodes; default: all.")
@option("--ppn", type=int, metavar="P", help="Ranks per node; default: the workload's.")
@option("--model", metavar="MODEL", help="skeleton (ranks on the network), closed (a formula) or drawn (histories).",
        shell_complete=complete.words("skeleton", "closed", "drawn"))  # fmt: skip
@option("--level", metavar="LEVEL", help="What a skeleton's network is: latency, links, packet or flow.",
        shell_complete=complete.words("latency", "links", "packet", "flow"))  # fmt: skip
@option("--place", default="packed", **CASE["place"][1])
@option("--seed", default=1, **CASE["seed"][1])
@option("--set", "sets", **CASE["sets"][1])
@option("--faults", **CASE["faults"][1])
@option("--noise", default="none", **CASE["noise"][1])
@option("--software", default="none", **{**CASE["software"][1], "help": _SOFTWARE})
@option("--mpi", **CASE["mpi"][1])
@option("--fit", is_flag=True, help="hpl: choose N, NB and P x Q for the memory, and say why.")
@option("--parameters", "show", is_flag=True, help="List the workload's parameters, and end.")
@option("--sweep", "sweeps", multiple=True, metavar="NAME=V1,V2,...", help=_SWEPT,
        shell_complete=complete.workload_parameters)  # fmt: skip
@option("--seeds", type=int, metavar="K", help="K seeds, from --seed on.")
@option("--out", metavar="FOLDER", shell_complete=complete.folders,
        help="Keep each answer there, and all in one table (Parquet); what is there is not asked again.")  # fmt: skip
@option("--program", metavar="COMMAND", help="hpcg, nekbone: run this program too, in quotes with its arguments, "
        "and hold messages and bytes of an iteration against it, by size.")  # fmt: skip
@option("-j", "--jobs", type=int, metavar="N", help="Cases at a time; default: one a core.")
@option("--dask", metavar="ADDRESS|local", help="Ask through Dask: a scheduler's address, or a cluster made here.",
        shell_complete=complete.words("local"))  # fmt: skip
@how("json_file", "timeout_s", "quiet", timeout_s={"help": "Wall time after which a case is ended."})
def command(
    workload: str,
    parameters: tuple[str, ...],
    show: bool,
    sweeps: tuple[str, ...],
    seeds: int | None,
    out: str | None,
    jobs: int | None,
    dask: str | None,
    program: str | None,
    json_file: str | None,
    timeout_s: float | None,
    quiet: bool,
    **given: Any,
) -> None:
    """Predict what a workload takes on a whole machine.

    WORKLOAD is hpl, hplmxp, campaign, startup, hpcg, nekbone, amrwind, hacc, lammps, graph500, gpcnet, fmm,
    transformer, mbw_mr, halo, alltoall or another collective: allreduce, barrier, bcast, reduce, gather, scatter,
    allgather, allgatherv, reduce_scatter or reduce_scatter_block; or a file: a skeleton in Python (FILE.py), GOAL's
    text (FILE.goal), or the FOLDER of a run that dryfly run --record has recorded. Its parameters are NAME=VALUE or
    --NAME VALUE; --parameters lists them.
    """
    from dryfly.predict import predict

    if show:
        sys.exit(predict.show_parameters(workload))
    if given["fit"] and workload != "hpl":
        raise UserError(f"--fit: {workload} has nothing to fit; accepted with hpl")
    ways = predict.How(
        sweeps=sweeps,
        seeds=seeds,
        jobs=jobs,
        out=out,
        dask=dask,
        json_file=json_file,
        timeout_s=timeout_s,
        quiet=quiet,
        program=program,
        written=written(given),
    )
    sys.exit(predict.predict(workload, parameters, given, ways))
