"""The command line. Imports what a command needs when it runs, so that `dryfly machines` starts fast."""

from __future__ import annotations

import os
import sys

import click

from dryfly import __version__
from dryfly.base.errors import DryflyError
from dryfly.cli.options import CONTEXT
from dryfly.cli.registry import Commands

NAME = "dryfly"


@click.group(cls=Commands, context_settings=CONTEXT)
@click.version_option(__version__, prog_name=NAME, message="%(prog)s %(version)s")
def cli() -> None:
    """Runs unmodified MPI programs over a simulated Slingshot dragonfly, in virtual time."""


def main() -> None:
    try:
        cli.main(prog_name=NAME, standalone_mode=False)
    except DryflyError as error:
        _end(str(error), error.exit_status)
    except click.ClickException as error:
        _end(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt) as error:
        import signal

        from dryfly.base.interrupt import number_of

        number = number_of(error.__cause__ if isinstance(error, click.Abort) else error)
        _end(f"interrupted by signal {number} ({signal.strsignal(number)})", 128 + number)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader of our output has gone
        sys.exit(141)
    except OSError as error:  # a full disk, or a limit of this user's
        import tempfile

        where = error.filename or f"in the temporary folder {tempfile.gettempdir()} or beside an output"
        _end(f"{where}: {error.strerror or error}", 1)


def _end(message: str, status: int) -> None:
    print(f"dryfly: {message}", file=sys.stderr)
    sys.exit(status)
