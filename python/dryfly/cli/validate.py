"""`dryfly validate`."""

from __future__ import annotations

import socket
import sys
from typing import Any

import click
from click.core import ParameterSource

from dryfly.base import words
from dryfly.base.errors import RunError, UserError
from dryfly.cli import complete
from dryfly.cli.options import CASE, CONTEXT, how, option
from dryfly.validate import LAUNCHERS, LEVELS, NETWORKS

_SIMULATED = ("place", "seed", "sets", "faults", "noise", "network")
_NATIVE = ("hosts", "topology", "launcher", "launcher_options", "nics")


@click.command("validate", context_settings=CONTEXT)
@option(
    "--machine",
    metavar="NAME|FILE",
    shell_complete=complete.machines,
    help="Which machine to simulate; default: testbed. With --native: whose model says what is expected.",
)
@option("-N", "--nodes", type=int, metavar="N", help="Number of nodes; default: all.")
@option("--place", default="packed", **CASE["place"][1])
@option("--seed", default=1, **CASE["seed"][1])
@option("--set", "sets", **CASE["sets"][1])
@option("--faults", **CASE["faults"][1])
@option("--noise", default="none", **CASE["noise"][1])
@option(
    "--mpi",
    metavar="LIBRARY",
    help="Measure with real ranks of this MPI library, not with ranks without a program. With --native: by this one of "
    '"dryfly mpi list" and its mpiexec.',
    shell_complete=complete.libraries,
)
@option("--network", metavar="LEVEL",
        help="What the network is: links (the default), flow or packet; with --mpi packet (the default) or flow.",
        shell_complete=complete.words(*NETWORKS))  # fmt: skip
@option("--level", default=LEVELS[-1], metavar="LEVEL", help=f"The last one: {', '.join(LEVELS)}.",
        shell_complete=complete.words(*LEVELS))  # fmt: skip
@option(
    "--baseline",
    metavar="FILE",
    shell_complete=complete.files,
    help="What --json has written of a good run: its figures are expected, not those of the machine's model.",
)
@option(
    "--limits",
    metavar="FILE",
    shell_complete=complete.files,
    help="TOML with [tolerance] and [limit] in place of those of data/validate.toml.",
)
@option("--native", is_flag=True, help="Validate a real cluster, by an MPI program, and no simulated machine.")
@option("--hosts", metavar="HOSTS", shell_complete=complete.files,
        help="With --native: a machine file, or a list such as n[01-04],n7; default: the job's hosts.")  # fmt: skip
@option("--topology", metavar="FILE", shell_complete=complete.files,
        help="With --native: switches and groups, as Slurm's topology.conf has them; default: one switch.")  # fmt: skip
@option("--launcher", metavar="NAME", shell_complete=complete.words(*LAUNCHERS),
        help=f"With --native: {', '.join(LAUNCHERS)}; default: the job's, or the mpiexec on PATH.")  # fmt: skip
@option("--launcher-options", metavar="WORDS", help="With --native: more words for the launcher.")
@option("--nics", type=click.IntRange(1, 64), metavar="N",
        help="With --native: NICs of a host; default: as many as it has of Slingshot's, or 1.")  # fmt: skip
@option("--out", metavar="FOLDER", shell_complete=complete.folders,
        help="Keep what was measured there; what is there is not measured again.")  # fmt: skip
@option("--html", metavar="FILE", shell_complete=complete.files, help="Write a report with heat maps there.")
@option("--lists", metavar="FILE", shell_complete=complete.files,
        help="Write the nodes to use and to exclude there, as Slurm and PBS take them.")  # fmt: skip
@option("--prolog", is_flag=True, help="Only what is checked of one node before a job.")
@option("--epilog", is_flag=True, help="Only what is checked of one node after a job.")
@option("--node", metavar="NAME", help="That node; default: this computer's name.")
@how("json_file", "quiet")
@click.pass_context
def command(
    context: click.Context,
    /,
    html: str | None,
    lists: str | None,
    prolog: bool,
    epilog: bool,
    node: str | None,
    json_file: str | None,
    quiet: bool,
    **given: Any,
) -> None:
    """Find what is slow or broken, from each node's own parts to the whole system.

    Exit status 0: nothing was found; 1: something was; 2: something cannot be used.
    """
    from dryfly.base.printer import Printer
    from dryfly.result.capture import check_target

    asked = _asked(context, given)
    printer = Printer(quiet=quiet, on_stdout=json_file != "-")
    if prolog and epilog:
        raise UserError("--prolog --epilog: accepted is one of the two")
    if prolog or epilog:
        for flag, given_one in (("--html", html), ("--lists", lists), ("--out", asked.out), ("--mpi", asked.mpi),
                                ("--baseline", asked.baseline), ("-N", asked.nodes), *_of_hosts(asked)):  # fmt: skip
            if given_one is not None:
                raise UserError(f"{flag} {given_one} has no effect on --prolog and --epilog: leave it out")
        if context.get_parameter_source("level") is ParameterSource.COMMANDLINE:
            raise UserError(f"--level {asked.level} has no effect on --prolog and --epilog: leave it out")
        sys.exit(_check_node(asked, node or socket.gethostname(), "prolog" if prolog else "epilog", json_file, printer))
    for flag, target in (("--json", json_file), ("--html", html), ("--lists", lists)):
        if target not in (None, "-"):
            check_target(flag, str(target), folder=False)
    if asked.out is not None:
        check_target("--out", asked.out, folder=True)
    if node is not None:
        raise UserError(f"--node {node} goes with --prolog or --epilog: leave it out")
    from dryfly.validate import text

    try:
        outcome = _run(asked, printer, quiet=quiet)
        content = outcome.content()
        found = set(text.findings(content["findings"])) if outcome.findings else set()
        for line in text.lines(content):
            (printer.line_always if quiet and line in found else printer.line)(line)
        _write(content, html=html, lists=lists, json_file=json_file)
    except RunError as error:  # 1 would say that something was found
        if error.exit_status == 1:
            error.exit_status = 2
        raise
    sys.exit(1 if outcome.findings else 0)


def _asked(context: click.Context, given: dict[str, Any]) -> Any:
    """Raises UserError of flags that have no effect, of a real cluster or of a simulated machine."""
    from dryfly.validate.asked import Asked, Native

    natively = given.pop("native")
    for parameter in context.command.params:
        name = str(parameter.name)
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        if natively and name in _SIMULATED:
            raise UserError(f"{parameter.opts[0]} is of simulated machines: leave it out, or --native")
        if not natively and name in _NATIVE:
            raise UserError(f"{parameter.opts[0]} is of real clusters: leave it out, or say --native")
    of_native = {name: given.pop(name) for name in _NATIVE}
    machine = given.pop("machine")
    if not natively:
        return Asked(**given, **({} if machine is None else {"machine": machine}))
    of_native["launcher_options"] = words.split("--launcher-options", of_native["launcher_options"])
    return Asked(**given, native=Native(**of_native, model=machine))


def _of_hosts(asked: Any) -> list[tuple[str, Any]]:
    """What of a real cluster has no effect on one node of it."""
    if asked.native is None:
        return []
    return [(f"--{name.replace('_', '-')}", getattr(asked.native, name) or None) for name in _NATIVE]


def _run(asked: Any, printer: Any, *, quiet: bool) -> Any:
    if asked.native is None:
        from dryfly.validate.procedure import of_simulated

        return of_simulated(asked, tell=printer.line).run()
    from dryfly.validate.native.progress import Bar
    from dryfly.validate.native.validation import of_cluster

    with of_cluster(asked, tell=printer.line, bar=Bar(quiet=quiet)) as validation:
        return validation.run()


def _check_node(asked: Any, name: str, when: str, json_file: str | None, printer: Any) -> int:
    check: Any
    if asked.native is None:
        from dryfly.validate.node_check import NodeCheck

        check = NodeCheck(asked, name)
    else:
        from dryfly.validate.native.node_check import HostCheck

        check = HostCheck(asked, name)
    checks = check.run(when)
    _write(check.content(when, checks), html=None, lists=None, json_file=json_file)
    for each in checks:
        printer.line(each.line())
    if all(each.passed is None for each in checks):
        printer.line("nothing was checked")
    return 1 if any(each.passed is False for each in checks) else 0


def _write(content: dict[str, Any], *, html: str | None, lists: str | None, json_file: str | None) -> None:
    from dryfly.result import result
    from dryfly.validate import page, text

    if html is not None:
        result.write_text(page.document(content), html)
    if lists is not None:
        result.write_text(text.node_lists(content), lists)
    if json_file is not None:
        result.write(content, json_file)
