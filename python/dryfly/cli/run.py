"""`dryfly run`."""

from __future__ import annotations

import sys
from typing import Any

import click

from dryfly.base.errors import UserError
from dryfly.case.case import Case
from dryfly.cli import complete
from dryfly.cli.options import PROGRAM_CONTEXT, case_options, how, option


@click.command("run", context_settings=PROGRAM_CONTEXT)
@case_options()
@how("json_file", "timeout_s", "quiet", "verbose", "progress", "trace", "record")
@option("--compute-record", metavar="FILE", help="Record what is measured, for replay.", shell_complete=complete.files)
@option("--seeds", type=int, metavar="N", help="Run once for each of N seeds, from --seed on: medians and intervals.")
@option("-j", "--jobs", type=int, metavar="N",
        help="With --seeds: runs at a time; default: half the processors, one with --compute measured.")  # fmt: skip
@option("--debug", metavar="RANK[:WRAPPER]", help="Start one rank under gdb, or under another command.")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="-- PROGRAM ARGS...",
                shell_complete=complete.programs)  # fmt: skip
def command(case: Case, json_file: str | None, seeds: int | None, jobs: int | None, **ways: Any) -> None:
    """Run an MPI program on a simulated machine.

    PROGRAM is a program linked against MPICH, the standard ABI or Open MPI, a script, a .py file, or a file in C,
    C++ or Fortran, which is compiled first.
    """
    from dryfly.run.run import run
    from dryfly.run.runner import Runner

    if jobs is not None and seeds is None:
        raise UserError(f"--jobs {jobs} is of several runs: give --seeds N too, or leave it out")
    runner = Runner(json=json_file, **ways)
    if seeds is not None:
        from dryfly.study.seeds import run_seeds

        sys.exit(run_seeds(case, seeds, runner, jobs=jobs))
    sys.exit(run(case, runner))
