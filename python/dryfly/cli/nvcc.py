"""`dryfly nvcc`."""

from __future__ import annotations

import sys

import click

from dryfly.cli import complete
from dryfly.cli.options import CONTEXT, option


@click.command(
    "nvcc",
    context_settings={**CONTEXT, "help_option_names": ["--help"], "ignore_unknown_options": True},
)
@option("--toolkit", metavar="FOLDER", shell_complete=complete.folders,
        help="Make a folder with bin/nvcc, include and lib64, for build systems (CUDA_HOME).")  # fmt: skip
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="ARGS...", shell_complete=complete.files)
def command(toolkit: str | None, arguments: tuple[str, ...]) -> None:
    """Compile CUDA C++ for this computer, in place of nvcc: kernels run where dryfly run has simulated GPUs.

    ARGS are those of nvcc; the C++ compiler is g++, or what CXX or -ccbin names.
    """
    from pathlib import Path

    from dryfly.apps import device_compiler

    if toolkit is not None:
        device_compiler.make_toolkit(device_compiler.NVCC, Path(toolkit))
        if not arguments:
            return
    sys.exit(device_compiler.run(device_compiler.NVCC, arguments))
