"""`dryfly completion`."""

from __future__ import annotations

import click

from dryfly.cli.options import CONTEXT

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", context_settings=CONTEXT)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print what completes dryfly's commands, options and values in a shell.

    bash: add to ~/.bashrc: eval "$(dryfly completion bash)"; zsh: the same in ~/.zshrc, after compinit; fish: write it
    to ~/.config/fish/completions/dryfly.fish.
    """
    from click.shell_completion import get_completion_class

    from dryfly.cli.main import NAME, cli

    shell_class = get_completion_class(shell)
    assert shell_class is not None
    click.echo(shell_class(cli, {}, NAME, f"_{NAME.upper()}_COMPLETE").source())
