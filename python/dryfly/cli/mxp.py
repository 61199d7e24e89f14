"""`dryfly mxp`."""

from __future__ import annotations

import sys

from dryfly.cli.options import solver_command


@solver_command("mxp")
def command(ranks: int | None, mpi: str | None, only_path: bool, arguments: tuple[str, ...]) -> None:
    """Solve A x = b with factors in BF16, as HPL-MxP asks: dryfly mxp -N 20000 --grid 1x2.

    On a simulated machine: dryfly run ... -- dryfly-mxp -N 8000. Its options: dryfly mxp -- --help.
    """
    from dryfly.apps import solver

    sys.exit(solver.run("dryfly-mxp", arguments, ranks=ranks, mpi=mpi, only_path=only_path))
