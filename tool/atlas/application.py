"""An application as its folder describes it: applications/NAME/application.toml (fields: docs/develop/index.md)."""

from __future__ import annotations

import re
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from dryfly.base import toml
from dryfly.base.errors import UserError

FOLDER = Path(__file__).resolve().parents[2] / "applications"
AS_IT_IS = "as it is"  # a finding's run without a variant
Table = TypeVar("Table")


@dataclass(frozen=True, kw_only=True)
class Merit:
    """The figure by which a run is judged to be right: the last match of `pattern` in what the program printed, or in a
    file that it has written."""

    name: str
    pattern: str
    file: str = ""


@dataclass(frozen=True, kw_only=True)
class Variant:
    name: str
    options: tuple[str, ...] = ()  # of dryfly run, behind those of the application
    program: str = ""  # where it is another one
    arguments: tuple[str, ...] = ()  # of the program, behind its own
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`best`: the variant that `says` is about. Empty: `says` claims that none makes a difference."""

    question: str
    says: str
    best: str = ""
    machine: str = "aurora"
    compute: str = "replay"  # what the application's own run has recorded; or none, or measured
    options: tuple[str, ...] = ()  # of all variants, and of the run that they are compared with
    variants: tuple[Variant, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Application:
    name: str
    title: str
    mpi: str
    program: str
    ranks: int
    merit: Merit
    packages: tuple[str, ...] = ()  # of Debian
    pypi: tuple[str, ...] = ()
    version_of: str = ""
    prepare: tuple[str, ...] = ()  # commands of the shell, run once before
    shares: tuple[str, ...] = ()  # files of other applications, NAME/FILE
    native: str = ""  # a program of Open MPI that is run natively in its place
    arguments: tuple[str, ...] = ()
    ppn: int = 1
    compute_bound: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    finding: Finding | None = None
    left_out: str = ""  # why it is not run

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def inputs(self) -> tuple[Path, ...]:
        own = [path for path in sorted(self.folder.iterdir()) if path.name not in ("application.toml", "measured.json")]
        return (*own, *(FOLDER / shared for shared in self.shares))


def names() -> list[str]:
    return sorted(path.parent.name for path in FOLDER.glob("*/application.toml"))


def read(name: str) -> Application:
    """Raises UserError, one sentence."""
    if name not in names():
        raise UserError(f'there is no application "{name}"; there are {", ".join(names())}')
    shown = f"applications/{name}/application.toml"
    return parse(toml.read(FOLDER / name / "application.toml", shown), name=name, shown=shown)


def parse(content: dict[str, Any], *, name: str, shown: str) -> Application:
    if "name" in content:
        raise UserError(f"{shown}: unknown field name: an application is called as its folder is")
    made = _table(Application, {**content, "name": name}, shown)
    for what, value, accepted in (
        ("mpi", made.mpi, ("mpich", "openmpi")),
        ("finding.compute", made.finding.compute if made.finding else "none", ("replay", "none", "measured")),
    ):
        if value not in accepted:
            raise UserError(f'{shown}: {what} = "{value}": accepted is {", ".join(accepted)}')
    if made.finding and made.finding.best not in ("", AS_IT_IS, *(variant.name for variant in made.finding.variants)):
        raise UserError(f'{shown}: finding.best = "{made.finding.best}": there is no such variant')
    try:
        groups = re.compile(made.merit.pattern).groups
    except re.error as error:
        raise UserError(f"{shown}: merit.pattern: {error}") from None
    if groups != 1:
        raise UserError(f"{shown}: merit.pattern has {groups} groups: accepted is one, the figure")
    return made


def _table(made: type[Table], content: dict[str, Any], shown: str) -> Table:
    """A dataclass from a table that has its fields and no others."""
    hints = get_type_hints(made)
    for key in content.keys() - hints.keys():
        raise UserError(f"{shown}: unknown field {key}; accepted are {', '.join(sorted(hints))}")
    for each in fields(made):  # type: ignore[arg-type]
        if each.name not in content and each.default is MISSING and each.default_factory is MISSING:
            raise UserError(f"{shown}: the field {each.name} is missing")
    return made(**{key: _value(hints[key], value, f"{shown}: {key}") for key, value in content.items()})


def _value(hint: Any, value: Any, shown: str) -> Any:
    kinds = [kind for kind in (hint, *get_args(hint)) if is_dataclass(kind)]
    if hint is not Ellipsis and kinds and isinstance(value, dict):
        return _table(kinds[0], value, shown)  # type: ignore[arg-type]
    if isinstance(value, list) and get_args(hint)[-1:] == (Ellipsis,):
        item = get_args(hint)[0]
        return tuple(_value(item, part, shown) for part in value)
    if hint == dict[str, str]:
        if isinstance(value, dict) and all(isinstance(part, str) for part in value.values()):
            return value
    elif hint in (str, int, bool) and type(value) is hint:
        return value
    raise UserError(
        f"{shown} = {value!r}: accepted is {_ACCEPTED.get(hint, 'a table or a list, see other applications')}"
    )


_ACCEPTED = {str: "a text", int: "a whole number", bool: "true or false", dict[str, str]: "a table of texts"}
