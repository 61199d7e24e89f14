"""`dryfly report`."""

from __future__ import annotations

import sys

import click

from dryfly.cli import complete
from dryfly.cli.options import CONTEXT, option


@click.command("report", context_settings=CONTEXT)
@click.argument("run_folder", metavar="RUN", shell_complete=complete.folders)
@option("-o", "target", required=True, metavar="FILE.html", help="Where the page is written.",
        shell_complete=complete.files)  # fmt: skip
@option("--silent", metavar="FOLDER", shell_complete=complete.folders,
        help="For a run with noise: the same with --noise none, recorded too; shows what noise has cost.")  # fmt: skip
def command(run_folder: str, target: str, silent: str | None) -> None:
    """Make one page with pictures of a run that was recorded (dryfly run --record RUN).

    RUN may also be a sweep (dryfly predict --out RUN): scaling, phases and sensitivity. Or the --json of several seeds
    (dryfly run --seeds N --json RUN): medians and their intervals. Or that of dryfly-hpl or dryfly-mxp: where the time
    of each step went; also as FILE.png or .svg. Or that of dryfly validate: findings and heat maps.
    """
    from dryfly.report.report import report
    from dryfly.validate.page import write_page

    if silent is None and write_page(run_folder, target):
        sys.exit(0)

    sys.exit(report(run_folder, target, silent=silent))
