"""`dryfly completion`."""

from __future__ import annotations

import click

from dryfly.cli.options import CONTEXT

SHELLS = ("bash", "zsh", "fish")

# FIELD= and replay: go on: bash shall not set a space after them.
_BASH_END = "    return 0\n}\n"
_BASH_NO_SPACE = """    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=:] ]]; then
        compopt -o nospace
    fi

"""


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
    source = shell_class(cli, {}, NAME, f"_{NAME.upper()}_COMPLETE").source()
    click.echo(source.replace(_BASH_END, _BASH_NO_SPACE + _BASH_END) if shell == "bash" else source)
