"""`dryfly hipcc`."""

from __future__ import annotations

import sys

import click

from dryfly.cli import complete
from dryfly.cli.options import CONTEXT, option


@click.command(
    "hipcc",
    context_settings={**CONTEXT, "help_option_names": ["--help"], "ignore_unknown_options": True},
)
@option("--toolkit", metavar="FOLDER", shell_complete=complete.folders,
        help="Make a folder with bin/hipcc, include and lib64, for build systems (ROCM_PATH).")  # fmt: skip
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="ARGS...", shell_complete=complete.files)
def command(toolkit: str | None, arguments: tuple[str, ...]) -> None:
    """Compile HIP C++ for this computer, in place of hipcc: kernels run where dryfly run has simulated GPUs.

    ARGS are those of hipcc; the C++ compiler is g++, or what CXX or -ccbin names.
    """
    from pathlib import Path

    from dryfly.apps import device_compiler

    if toolkit is not None:
        device_compiler.make_toolkit(device_compiler.HIPCC, Path(toolkit))
        if not arguments:
            return
    sys.exit(device_compiler.run(device_compiler.HIPCC, arguments))
