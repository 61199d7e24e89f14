"""`dryfly gpu`."""

from __future__ import annotations

import click

from dryfly.case.case import Case
from dryfly.cli import complete
from dryfly.cli.options import CONTEXT, case_options, how


@click.command("gpu", context_settings=CONTEXT)
@click.argument("name", metavar="NAME|FILE", shell_complete=complete.machines)
@case_options(only=("sets",))
@how("json_file")
def command(name: str, case: Case, json_file: str | None) -> None:
    """The GPUs of a machine's nodes.

    Where each is in its node, the nearest NICs, the rates of its links, and each number's source; and by which runtime
    programs find them.
    """
    from dryfly.base.fitted import fitted
    from dryfly.machine import gpus
    from dryfly.machine.load import load
    from dryfly.result import result
    from dryfly.result.capture import check_target

    if json_file not in (None, "-"):
        check_target("--json", str(json_file), folder=False)
    machine = load(name, sets=case.sets)
    if json_file != "-":
        click.echo(fitted(gpus.text(machine)))
    if json_file is not None:
        result.write(gpus.content(machine), json_file)
