"""`dryfly extrapolate`."""

from __future__ import annotations

import sys
from typing import Any

import click

from dryfly.cli import complete
from dryfly.cli.options import CASE, CONTEXT, how, option, written

_SWEPT = (
    "Each of these values too; several --sweep: every combination. An option (nodes, ppn, machine, place, level, seed, "
    "faults, noise), ranks, library or a machine's field."
)


@click.command("extrapolate", context_settings=CONTEXT)
@click.argument("recordings", nargs=-1, metavar="RECORDING...", shell_complete=complete.folders)
@option("-n", "--ranks", type=int, metavar="R", help="Number of ranks to predict; default: the first that is swept.")
@option("--machine", metavar=CASE["machine"][1]["metavar"], shell_complete=complete.machines,
        help="Which machine to simulate; default: the recordings'.")  # fmt: skip
@option("-N", "--nodes", type=int, metavar="N", help="Number of nodes; default: as many as the ranks need.")
@option("--ppn", type=int, metavar="P", help="Ranks per node; default: as in the largest recording.")
@option("--place", default="packed", **CASE["place"][1])
@option("--level", default="links", metavar="LEVEL", help="What the network is: latency, links, packet or flow.",
        shell_complete=complete.words("latency", "links", "packet", "flow"))  # fmt: skip
@option("--seed", default=1, **CASE["seed"][1])
@option("--set", "sets", **CASE["sets"][1])
@option("--faults", **CASE["faults"][1])
@option("--noise", default="none", **CASE["noise"][1])
@option("--sweep", "sweeps", multiple=True, metavar="NAME=V1,V2,...", help=_SWEPT)
@option("-o", "--out", metavar="FILE", shell_complete=complete.files,
        help="Write the skeleton there, in Python; - is standard output.")  # fmt: skip
@how("json_file", "quiet")
def command(
    recordings: tuple[str, ...],
    out: str | None,
    json_file: str | None,
    quiet: bool,
    sweeps: tuple[str, ...],
    **given: Any,
) -> None:
    """Predict a size that cannot be run from recordings of the program at three or more sizes (dryfly run --record).

    Exit status 1: the program does not do the same at all sizes; the message says where.
    """
    from dryfly.extrapolation import extrapolate

    sys.exit(
        extrapolate.command(
            {"folders": recordings, **given},
            out=out,
            json_file=json_file,
            quiet=quiet,
            sweeps=sweeps,
            written=written(given),
        )
    )
