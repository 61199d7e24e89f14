"""`dryfly hpl`."""

from __future__ import annotations

import sys

from dryfly.cli.options import solver_command


@solver_command("hpl")
def command(ranks: int | None, mpi: str | None, only_path: bool, arguments: tuple[str, ...]) -> None:
    """Solve A x = b on this computer, as HPL does: dryfly hpl -N 20000 --grid 1x2.

    On a simulated machine: dryfly run ... -- dryfly-hpl -N 8000. Its options: dryfly hpl -- --help.
    """
    from dryfly.apps import solver

    sys.exit(solver.run("dryfly-hpl", arguments, ranks=ranks, mpi=mpi, only_path=only_path))
