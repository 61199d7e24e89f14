"""`dryfly spec`."""

from __future__ import annotations

import click

from dryfly.case.case import LAUNCHERS, Case
from dryfly.cli.options import CONTEXT, case_options


@click.command("spec", context_settings=CONTEXT)
@case_options()
def command(case: Case) -> None:
    """Print the resolved spec that a run with these options would use."""
    from dryfly.case.bind import bind, library_of, starter_of
    from dryfly.result import compute_recording

    bound = bind(case)
    if bound.compute.replay_file is not None:
        compute_recording.check_source(bound.compute.replay_file, ranks=len(bound.placement.ranks))
    if case.mpi is not None or case.launcher != LAUNCHERS[0]:  # a spec needs neither, a run with them may be refused
        starter_of(bound, library_of(case))
    click.echo(bound.spec, nl=False)
