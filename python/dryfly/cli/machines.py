"""`dryfly machines`."""

from __future__ import annotations

import click

from dryfly.base.fitted import fitted
from dryfly.case.case import Case
from dryfly.cli import complete
from dryfly.cli.options import CONTEXT, case_options
from dryfly.cli.registry import Group


@click.group("machines", cls=Group, invoke_without_command=True, context_settings=CONTEXT)
@click.pass_context
def command(context: click.Context) -> None:
    """The machines dryfly knows."""
    if context.invoked_subcommand is None:
        from dryfly.machine.listing import listing

        click.echo(fitted(listing()))


@command.command("show", context_settings=CONTEXT)
@click.argument("name", metavar="NAME|FILE", shell_complete=complete.machines)
@case_options(only=("sets",))
def show(name: str, case: Case) -> None:
    """One machine: its network, and each number with its source."""
    from dryfly.machine.listing import description

    click.echo(fitted(description(name, sets=case.sets)))
