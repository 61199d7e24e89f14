"""`dryfly reproduce`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from dryfly.cli import complete
from dryfly.cli.options import CONTEXT, given_case_options, how, kept, option


@click.command("reproduce", context_settings=CONTEXT)
@click.argument("subject", metavar="SUBJECT", shell_complete=complete.subjects)
@option("--only", multiple=True, metavar="WHAT", shell_complete=complete.rows,
        help="Rows of a heading (gpcnet), of a measurement, by id (aurora/hpl/9234), or by words.")  # fmt: skip
@given_case_options(
    machine={"default": None, "help": "Instead of the machine of each measurement."},
    nodes={"help": "Number of nodes, instead of that of each measurement by a program."},
    ppn={"help": "Ranks per node, instead."},
    ranks={"help": "Number of ranks, instead."},
    sets={"help": "A field of the machine, for all measurements."},
    faults={"help": "Faults for measurements that have none of their own: a TOML file."},
    noise={
        "default": None,
        "help": "Detours of the nodes' cores: none, machine or a TOML file; default: the machine's "
        "for what was published as a tail, else none.",
    },
    compute={"default": "none", "help": "What counts between MPI calls: none, measured[:FACTOR] or model."},
)
@option(
    "--seeds",
    type=int,
    metavar="N",
    help="Measure with each of N seeds and take medians; default: what a row with noise or flaps needs.",
)
@option(
    "-j",
    "--jobs",
    type=int,
    metavar="N",
    help="Measurements at a time; default: one a core for predictions, half as many for programs.",
)
@option("--out", metavar="FOLDER", shell_complete=complete.folders,
        help="Keep each prediction there; what is there is not asked again.")  # fmt: skip
@kept
@how("json_file", "timeout_s", "quiet",
     json_file={"help": "Write the rows there; - is standard output."},
     timeout_s={"help": "Wall time after which a measurement is ended."},
     quiet={"help": "Do not tell what is being measured."})  # fmt: skip
def command(given: Mapping[str, Any], subject: str, **ways: Any) -> None:
    """Measure what was published and print both side by side. SUBJECT: fabric, aurora or aurora/hpl-ablation, or the id
    of a row such as aurora/hpl/9234.

    With other conditions than those of the publication, such as --set, the errors say what these change.
    """
    from dryfly.evidence.published import divided
    from dryfly.evidence.reproduce import Options, reproduce

    subject, row = divided(subject)
    if row:
        ways["only"] = (*ways["only"], row)
    sys.exit(reproduce(subject, Options(given=given, **ways)))
