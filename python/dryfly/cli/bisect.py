"""`dryfly bisect`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from dryfly.base.errors import UserError
from dryfly.cli import complete
from dryfly.cli.options import PROGRAM_CONTEXT, given_case_options, how, kept, option


def _share(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    if text is None:
        return None
    from dryfly.base import units

    try:
        share = units.parse(text, units.RATIO) / 10**6
    except UserError as error:
        raise UserError(f"--threshold {text}: {error}") from None
    if not 0 < share < 100:
        raise UserError(f"--threshold {text}: accepted is a share above 0, such as 5%")
    return share


@click.command("bisect", context_settings=PROGRAM_CONTEXT)
@option("--over", required=True, metavar="SERIES",
        help="mpich==4.3..5.0; NAME=VALUE,VALUE,... or NAME=1..9 (a variable, or a field of the machine); "
             "git:GOOD..BAD.", shell_complete=complete.series)  # fmt: skip
@option("--with", "fixed", metavar="LIBRARY[,NAME=VALUE]...", help="What stays the same.",
        shell_complete=complete.libraries)  # fmt: skip
@option("--figure", metavar="SIZE|REGEX|instructions[:CALL]",
        help="A benchmark's message size; where a program prints its number; or what the MPI library executes for each "
             "message (--software measured).")  # fmt: skip
@option("--threshold", metavar="SHARE", callback=_share,
        help="Changed: by more than this, such as 5%, from the first; default: nearer to the last.")  # fmt: skip
@option("--repo", "repository", metavar="FOLDER", help="Of git:GOOD..BAD; default: here.",
        shell_complete=complete.folders)  # fmt: skip
@option("--build", metavar="COMMAND", help="Run in each commit's work tree.")
@option("--prefix", metavar="FOLDER", help="Where the build installs an MPI library, within the work tree.")
@given_case_options(
    without=("mpi",),
    nodes={"help": "Number of nodes; default: 2."},
    ppn={"help": "Ranks per node; default: 1."},
    ranks={"help": "Number of ranks, instead."},
    compute={
        "default": "none",
        "help": "What counts between MPI calls: none, replay:FILE or model; measured is not repeatable.",
    },
)
@option("--state", default="dryfly-bisect.json", metavar="FILE", shell_complete=complete.files,
        help="The figures so far: the same command goes on from there.")  # fmt: skip
@kept
@how("json_file", "timeout_s", "quiet",
     json_file={"help": "Write the outcome there; - is standard output."},
     timeout_s={"help": "Wall time after which a run is ended."},
     quiet={"help": "Do not tell the figure of each point."})  # fmt: skip
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- BENCHMARK|PROGRAM ARGS...",
                shell_complete=complete.measured)  # fmt: skip
def command(given: Mapping[str, Any], **ways: Any) -> None:
    """Find the release, value or commit from which on a benchmark or program is faster or slower.

    dryfly bisect --over mpich==4.3..5.0 -N 4 -- alltoall -m 4096:4096
    """
    from dryfly.study.bisect import Options, bisect
    from dryfly.study.variant import base_case

    sys.exit(bisect(Options(base=base_case(given), **ways)))
