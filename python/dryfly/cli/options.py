"""Options that several commands share, declared once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]

_CONDITIONS = (
    click.option("--faults", metavar="FILE", help="What goes wrong with the network, and when: a TOML file."),
    click.option("--storage", metavar="FILE", help="Storage traffic beside it: a TOML file."),
    click.option("--provider", type=click.Choice(["cxi", "linkx"]), default="cxi", show_default=True,
                 help="What Open MPI 5 talks through: linkx joins cxi with the node's shared memory."),
    click.option("--on-node", default="provider", show_default=True, metavar="HOW",
                 help="How ranks of a node talk: provider, or shared (MPI's own shared memory)."),
    click.option("--compute", default="none", show_default=True, metavar="MODE",
                 help="What counts between MPI calls: none, replay:FILE or model; measured is not repeatable."),
    click.option("--skip-numerics", is_flag=True, help="With model: programs that can leave out their kernels do so."),
    click.option("--launcher", type=click.Choice(["dryfly", "hydra", "prterun", "slurm"]), default="dryfly",
                 show_default=True, help="What starts the ranks: docs/guide/launchers.md."),
)  # fmt: skip


def conditions(command: Command) -> Command:
    """Under which conditions the runs of a study are made: what `dryfly run` takes beside machine and placement."""
    for option in reversed(_CONDITIONS):
        command = option(command)
    return command
