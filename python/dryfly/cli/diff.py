"""`dryfly diff`."""

from __future__ import annotations

import sys

import click

from dryfly.cli import complete
from dryfly.cli.options import CONTEXT


@click.command("diff", context_settings=CONTEXT)
@click.argument("a", metavar="A", shell_complete=complete.folders)
@click.argument("b", metavar="B", shell_complete=complete.folders)
def command(a: str, b: str) -> None:
    """Find the first event in which two recorded runs differ (dryfly run --record A).

    Exit status 0: the runs are equal; 1: they differ.
    """
    from dryfly.study.diff import diff

    sys.exit(diff(a, b))
