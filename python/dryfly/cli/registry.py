"""The commands: a row each, in the order of the help. Row NAME is `command` of the module dryfly.cli.NAME."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

import click


@dataclass(frozen=True, kw_only=True)
class Row:
    name: str
    part: str  # of the list of commands


ROWS = (
    Row(name="run", part="Run a program"),
    Row(name="spec", part="Run a program"),
    Row(name="machines", part="Run a program"),
    Row(name="bind", part="Run a program"),
    Row(name="gpu", part="Run a program"),
    Row(name="mpi", part="Run a program"),
    Row(name="nvcc", part="Run a program"),
    Row(name="hipcc", part="Run a program"),
    Row(name="report", part="Look at runs"),
    Row(name="diff", part="Look at runs"),
    Row(name="compare", part="Study"),
    Row(name="bisect", part="Study"),
    Row(name="reproduce", part="Study"),
    Row(name="predict", part="Study"),
    Row(name="validate", part="Study"),
    Row(name="extrapolate", part="Study"),
    Row(name="serve", part="Serve a fabric"),
    Row(name="env", part="Serve a fabric"),
    Row(name="hpl", part="Solvers on this computer"),
    Row(name="mxp", part="Solvers on this computer"),
    Row(name="completion", part="Shell"),
)


class Group(click.Group):
    """Its list of commands wraps and is never cut."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise click.UsageError(f'No such command "{args[0]}"; there are {", ".join(known)}.', ctx)
        return super().resolve_command(ctx, args)

    def parts(self, ctx: click.Context) -> dict[str, list[str]]:
        """The names of the commands, by part."""
        return {"Commands": self.list_commands(ctx)}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        parts = self.parts(ctx)
        width = max(len(name) for names in parts.values() for name in names)
        for part, names in parts.items():
            found = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(part):
                formatter.write_dl([(name.ljust(width), summary(command)) for name, command in found if command])


class Commands(Group):
    """Those of ROWS. Imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [row.name for row in ROWS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if all(row.name != cmd_name for row in ROWS):
            return None
        command: click.Command = importlib.import_module(f"dryfly.cli.{cmd_name}").command
        return command

    def parts(self, ctx: click.Context) -> dict[str, list[str]]:  # noqa: ARG002
        return {row.part: [other.name for other in ROWS if other.part == row.part] for row in ROWS}


def summary(command: click.Command) -> str:
    """The first paragraph of its help."""
    return " ".join((command.help or "").partition("\n\n")[0].split())
