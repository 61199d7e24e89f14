"""`dryfly bind`."""

from __future__ import annotations

import sys

import click

from dryfly.case.case import Case
from dryfly.cli.options import CONTEXT, case_options


@click.command("bind", context_settings=CONTEXT)
@case_options(only=("machine", "ppn", "sets"), ppn={"required": True})
def command(case: Case) -> None:
    """Print a good binding of a node's ranks to cores, memories, GPUs and NICs, in the words of each launcher.

    It says why the binding is good, and what is doubtful about it.
    """
    from dryfly.base.errors import UserError
    from dryfly.base.fitted import fitted
    from dryfly.binding import advice, table
    from dryfly.case.bind import load_machine
    from dryfly.machine.node import most_nics, node_of

    machine = load_machine(case)
    if case.ppn is None or case.ppn < 1:
        raise UserError(
            f"--ppn {'is missing' if case.ppn is None else case.ppn}: accepted is 1 or more ranks of a node"
        )
    found = advice.good(node_of(machine, nics=most_nics(machine)), ranks=case.ppn)
    click.echo(f"{machine.name}: {case.ppn} rank{'s' if case.ppn != 1 else ''} a node")
    for line in table.lines(found.node, found.bindings):
        click.echo(line)
    for name, line in advice.commands(found).items():
        click.echo(f"\n{name}:\n  {line}")
    click.echo("\nWhy:")
    for reason in advice.reasons(found):
        click.echo(fitted(f"  {reason}", sys.stdout))
    for doubt in found.doubts():
        click.echo(fitted(f"  warning ({doubt.name}): {doubt.text}", sys.stdout))
