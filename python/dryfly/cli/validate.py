"""`dryfly validate`."""

from __future__ import annotations

import socket
import sys
from typing import Any

import click

from dryfly.base.errors import UserError
from dryfly.cli import complete
from dryfly.cli.options import CASE, CONTEXT, how, option
from dryfly.validate import LEVELS, NETWORKS


@click.command("validate", context_settings=CONTEXT)
@option("--machine", default="testbed", **CASE["machine"][1])
@option("-N", "--nodes", type=int, metavar="N", help="Number of nodes; default: all.")
@option("--place", default="packed", **CASE["place"][1])
@option("--seed", default=1, **CASE["seed"][1])
@option("--set", "sets", **CASE["sets"][1])
@option("--faults", **CASE["faults"][1])
@option("--noise", default="none", **CASE["noise"][1])
@option(
    "--mpi",
    metavar="LIBRARY",
    help="Measure with real ranks of this MPI library, not with ranks without a program.",
    shell_complete=complete.libraries,
)
@option("--network", metavar="LEVEL", help="What the network is: links (the default), flow or, with --mpi, packet.",
        shell_complete=complete.words(*NETWORKS))  # fmt: skip
@option("--level", default=LEVELS[-1], metavar="LEVEL", help=f"The last one: {', '.join(LEVELS)}.",
        shell_complete=complete.words(*LEVELS))  # fmt: skip
@option(
    "--baseline",
    metavar="FILE",
    shell_complete=complete.files,
    help="What --json has written of a good run: its figures are expected, not those of the machine's model.",
)
@option("--out", metavar="FOLDER", shell_complete=complete.folders,
        help="Keep what was measured there; what is there is not measured again.")  # fmt: skip
@option("--html", metavar="FILE", shell_complete=complete.files, help="Write a report with heat maps there.")
@option("--lists", metavar="FILE", shell_complete=complete.files,
        help="Write the nodes to use and to exclude there, as Slurm and PBS take them.")  # fmt: skip
@option("--prolog", is_flag=True, help="Only what is checked of one node before a job.")
@option("--epilog", is_flag=True, help="Only what is checked of one node after a job.")
@option("--node", metavar="NAME", help="That node; default: this computer's name.")
@how("json_file", "quiet")
def command(
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
    from dryfly.validate.asked import Asked
    from dryfly.validate.procedure import of_simulated

    asked = Asked(**given)
    printer = Printer(quiet=quiet, on_stdout=json_file != "-")
    if prolog and epilog:
        raise UserError("--prolog --epilog: accepted is one of the two")
    if prolog or epilog:
        for flag, given_one in (("--html", html), ("--lists", lists), ("--out", asked.out), ("--mpi", asked.mpi),
                                ("--baseline", asked.baseline), ("-N", asked.nodes)):  # fmt: skip
            if given_one is not None:
                raise UserError(f"{flag} {given_one} has no effect on --prolog and --epilog: leave it out")
        sys.exit(_check_node(asked, node or socket.gethostname(), "prolog" if prolog else "epilog", json_file, printer))
    for flag, target in (("--json", json_file), ("--html", html), ("--lists", lists)):
        if target not in (None, "-"):
            check_target(flag, str(target), folder=False)
    if asked.out is not None:
        check_target("--out", asked.out, folder=True)
    if node is not None:
        raise UserError(f"--node {node} goes with --prolog or --epilog: leave it out")
    outcome = of_simulated(asked, tell=printer.line).run()
    content = outcome.content()
    _write(content, html=html, lists=lists, json_file=json_file)
    from dryfly.validate import text

    found = set(text.findings(content["findings"])) if outcome.findings else set()
    for line in text.lines(content):
        (printer.line_always if quiet and line in found else printer.line)(line)
    sys.exit(1 if outcome.findings else 0)


def _check_node(asked: Any, name: str, when: str, json_file: str | None, printer: Any) -> int:
    from dryfly.validate.node_check import NodeCheck

    check = NodeCheck(asked, name)
    checks = check.run(when)
    _write(check.content(when, checks), html=None, lists=None, json_file=json_file)
    for each in checks:
        printer.line(each.line())
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
