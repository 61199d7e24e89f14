"""`dryfly env`."""

from __future__ import annotations

import shlex

import click

from dryfly.cli import complete
from dryfly.cli.options import CONTEXT, option


@click.command("env", context_settings=CONTEXT)
@option("--node", required=True, metavar="NUMBER|NAME", help="Where programs of this terminal run.")
@option("--name", metavar="NAME", help="Which fabric, where several are served.", shell_complete=complete.fabrics)
def command(node: str, name: str | None) -> None:
    """Print what puts the programs of a shell on a node of a served fabric: eval "$(dryfly env --node 3)"."""
    from dryfly.run import fabrics

    for variable, value in fabrics.environment(fabrics.find(name), node).items():
        click.echo(f"export {variable}={shlex.quote(value)}")
