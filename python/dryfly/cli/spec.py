"""`dryfly spec`."""

from __future__ import annotations

import click

from dryfly.case.case import Case
from dryfly.cli.options import CONTEXT, case_options


@click.command("spec", context_settings=CONTEXT)
@case_options()
def command(case: Case) -> None:
    """Print the resolved spec that a run with these options would use."""
    from dryfly.case.bind import bind

    click.echo(bind(case).spec, nl=False)
