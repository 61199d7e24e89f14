"""`dryfly serve`."""

from __future__ import annotations

import sys

import click

from dryfly.case.case import Case
from dryfly.cli.options import CONTEXT, case_options, how, option


@click.command("serve", context_settings=CONTEXT)
@case_options(only=("machine", "network", "seed", "sets"), seed={"help": "For every random choice."})
@option("--name", default="default", help="What it is called, where there are several.")
@option("--processes", type=int, default=512, metavar="P", help="How many at once, at most.")
@how("quiet", quiet={"help": "Do not tell who joins and leaves."})
def command(case: Case, name: str, processes: int, quiet: bool) -> None:
    """Keep a simulated fabric up for any program that uses libfabric: see dryfly env."""
    from dryfly.run.serve import ServeOptions, serve

    sys.exit(serve(ServeOptions(case=case, name=name, processes=processes, quiet=quiet)))
