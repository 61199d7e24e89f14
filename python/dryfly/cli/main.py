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
    if f"_{NAME.upper()}_COMPLETE" in os.environ:
        from click.shell_completion import add_completion_class

        from dryfly.cli.bash import Bash

        add_completion_class(Bash)
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
    except MemoryError:
        _end("there is not enough memory for what is asked; accepted are fewer nodes and ranks (--nodes, --ppn)", 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader of our output has gone
        sys.exit(141)
    except OSError as error:  # a full disk, or a limit of this user's
        _end(f"{error.filename or _without_name()}: {error.strerror or error}", 1)


def _without_name() -> str:
    """What could not be written, where the system does not say."""
    import tempfile

    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or it is tried again at the end
        return "standard output"
    return f"in the temporary folder {tempfile.gettempdir()} or beside an output"


def _end(message: str, status: int) -> None:
    print(f"dryfly: {message}", file=sys.stderr)
    sys.exit(status)
