"""`dryfly reproduce`."""

from __future__ import annotations

import sys

import click

from dryfly.cli import complete
from dryfly.cli.options import CONTEXT, how, option


@click.command("reproduce", context_settings=CONTEXT)
@click.argument("subject", metavar="SUBJECT", shell_complete=complete.subjects)
@option("--only", multiple=True, metavar="WHAT", help="Rows of a heading (gpcnet), of a measurement, or by words.")
@how("json_file", json_file={"help": "Write the rows there; - is standard output."})
def command(subject: str, only: tuple[str, ...], json_file: str | None) -> None:
    """Measure what was published and print both side by side. SUBJECT: fabric."""
    from dryfly.evidence.reproduce import reproduce

    sys.exit(reproduce(subject, only=only, json_file=json_file))
