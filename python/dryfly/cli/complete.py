"""What the shell offers for the value of an option (dryfly completion). Looked up only when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]

_FILE, _FOLDER = "file", "dir"  # kinds for which the shell completes by itself


def _matching(words: Iterable[str], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def _from_shell(incomplete: str, kind: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type=kind)]


def words(*accepted: str, files: bool = False) -> Complete:
    def offer(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _matching(accepted, incomplete) or (_from_shell(incomplete, _FILE) if files else [])

    return offer


def files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _from_shell(incomplete, _FILE)


def folders(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _from_shell(incomplete, _FOLDER)


def machines(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dryfly.machine.load import shipped_machines

    return _matching(shipped_machines(), incomplete) or _from_shell(incomplete, _FILE)


def libraries(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dryfly.mpi.libraries import installed

    return _matching((library.name for library in installed()), incomplete)


def fields(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Of a machine, for --set."""
    from dryfly.machine.schema import FIELDS

    return _matching((f"{name}=" for name in FIELDS), incomplete)


def benchmarks(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dryfly.apps.benchmarks import KINDS

    return _matching(KINDS, incomplete)


def fabrics(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dryfly.run.fabrics import served

    return _matching(served(), incomplete)


def subjects(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dryfly.evidence.published import subjects as published

    return _matching(published(), incomplete)
