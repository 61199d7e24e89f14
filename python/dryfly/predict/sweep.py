"""`--sweep NAME=V1,V2,...`: every combination of the values, each a question whose answer is kept under its key.

A name is a parameter of the workload, an option of the command or a field of the machine. All questions are made
before the first one is asked, so that a mistake in any of them is told before anything starts.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from dryfly.base.deadline import within
from dryfly.base.errors import RunError, UserError
from dryfly.base.files import write_whole_by
from dryfly.base.store import Store
from dryfly.machine.schema import FIELDS
from dryfly.predict import ask
from dryfly.predict.find import find, reading
from dryfly.predict.question import Question
from dryfly.predict.workloads import OPTIONS, Workload

CASES_MAX = 100_000
SWEEP, TABLE, CASES = "sweep.json", "table.parquet", "cases"
_GROUPS = ("topology.group.", "topology.global.", "fabric.qos.")


@dataclass(frozen=True, kw_only=True)
class Axis:
    name: str
    kind: str  # parameter, option or field
    values: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Case:
    question: Question
    values: tuple[str, ...]  # by axis, as the user wrote them
    key: str


def axis(text: str, workload: str) -> Axis:
    """Raises UserError."""
    return axis_of(text, find(workload), workload)


def axis_of(text: str, row: Workload, called: str) -> Axis:
    """`called`: what users know the workload as. Raises UserError."""
    name, equals, listed = text.partition("=")
    name = name.strip()
    values = tuple(value.strip().strip('"') for value in listed.split(","))
    if not equals or not name or not all(values):
        raise UserError(f'--sweep "{text}": accepted is NAME=VALUE,VALUE,...')
    if len(set(values)) != len(values):
        raise UserError(f'--sweep "{text}": a value is there twice')
    return Axis(name=name, kind=_kind(name, row, called), values=values)


def _kind(name: str, row: Workload, called: str) -> str:
    if any(each.name == name for each in row.parameters):
        return "parameter"
    if name in OPTIONS:
        return "option"
    if name in FIELDS or name.startswith(_GROUPS):
        return "field"
    import difflib

    known = [*(each.name for each in row.parameters), *OPTIONS, *FIELDS]
    close = difflib.get_close_matches(name, known, n=1)
    mean = f"; did you mean {close[0]}?" if close else ""
    parameters = ", ".join(each.name for each in row.parameters)
    raise UserError(
        f"--sweep {name}: that is neither a parameter of {called} ({parameters}) nor an option "
        f"({', '.join(OPTIONS)}) nor a field of a machine{mean}"
    )


def check_given(axes: Sequence[Axis], base: Mapping[str, Any], written: Collection[str]) -> None:
    """`written`: options that the user gave, by name; of the others `base` has defaults. Raises UserError for what is
    swept as well, so that one of the two would be dropped."""
    sets = dict(text.partition("=")[::2] for text in base.get("sets", ()))
    for each in axes:
        if each.kind == "option" and each.name in written:
            raise UserError(f"--{each.name} {base[each.name]} and --sweep {each.name}: accepted is one of the two")
        if each.kind == "field" and each.name in sets:
            raise UserError(f"--set {each.name}={sets[each.name]} and --sweep {each.name}: accepted is one of the two")


def cases(base: Mapping[str, Any], axes: Sequence[Axis], *, timeout_s: float | None = None) -> list[Case]:
    """`base`: fields of Question. Raises UserError where a combination cannot be asked, RunError where finding out
    takes longer."""
    names = [each.name for each in axes]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"--sweep {name} is there twice")
        given = [value for parameter, value in base.get("parameters", ()) if parameter == name]
        if given:
            raise UserError(f"{name}={given[0]} and --sweep {name}: accepted is one of the two")
    count = 1
    for each in axes:
        count *= len(each.values)
    if count > CASES_MAX:
        raise UserError(f"--sweep: {count:,} combinations; accepted are up to {CASES_MAX:,}")
    made = []
    for values in itertools.product(*(each.values for each in axes)):
        try:
            with within(timeout_s, reading(base["workload"])):
                question = Question(**_changed(base, axes, values))
                ask.check(question)
                made.append(Case(question=question, values=values, key=ask.key(question)))
        except UserError as error:
            raise UserError(_refused(names, values, str(error))) from None
    return made


def _refused(names: Sequence[str], values: Sequence[str], error: str) -> str:
    """With the case's values, but those that the sentence begins with itself."""
    others = []
    for name, value in zip(names, values, strict=True):
        written = f"{name}={value}"
        error = written + error.removeprefix(f"--{name} {value}") if error.startswith(f"--{name} {value}") else error
        if not re.search(rf"^([^=]+: )?{re.escape(written)}\b", error):
            others.append(written)
    if others:
        return f"--sweep {', '.join(others)}: {error}"
    return f"--sweep {error}" if names else error


def _changed(base: Mapping[str, Any], axes: Sequence[Axis], values: Sequence[str]) -> dict[str, Any]:
    content = dict(base)
    for each, value in zip(axes, values, strict=True):
        if each.kind == "parameter":
            kept = tuple(pair for pair in content.get("parameters", ()) if pair[0] != each.name)
            content["parameters"] = (*kept, (each.name, value))
        elif each.kind == "field":
            content["sets"] = (*content.get("sets", ()), f"{each.name}={value}")
        elif each.name == "faults" and value == "none":
            content[each.name] = None
        elif OPTIONS[each.name] is int:
            if not value.isdecimal():
                raise UserError("accepted is a whole number")
            content[each.name] = int(value)
        else:
            content[each.name] = value
    return content


class Folder:
    """Of a campaign: sweep.json says what it is, cases/KEY.json is an answer, table.parquet all of them."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.answers = Store(self.path / CASES)

    def check(self) -> None:
        """Before the start. Raises UserError."""
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise UserError('--out needs pyarrow: pip install "dryfly[record]"') from None
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"--out {self.path}: a folder is needed")
        if self.path.is_dir() and any(self.path.iterdir()) and not (self.path / SWEEP).is_file():
            raise UserError(f"--out {self.path}: that folder has other files in it; a new one, or one of a sweep, is "
                            "needed")  # fmt: skip
        try:
            (self.path / CASES).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--out {self.path}: it cannot be made: {error.strerror}") from None

    def begin(self, base: Mapping[str, Any], axes: Sequence[Axis], made: Sequence[Case]) -> None:
        """Raises UserError where a sweep of another workload lies there."""
        self._check_workload(base["workload"])
        content = {
            "format": 1,
            "kind": "sweep",
            "workload": base["workload"],
            "axes": [{"name": each.name, "kind": each.kind, "values": list(each.values)} for each in axes],
            "cases": [{"key": case.key, "values": list(case.values)} for case in made],
        }
        text = json.dumps(content, indent=1) + "\n"
        self._write(self.path / SWEEP, lambda file: file.write(text.encode()))

    def _check_workload(self, workload: str) -> None:
        try:
            lies_there = json.loads((self.path / SWEEP).read_text(encoding="utf-8"))["workload"]
        except (OSError, ValueError, KeyError, TypeError):
            return
        if lies_there != workload:
            needed = f"a new folder, or one of {workload}, is needed"
            raise UserError(f"--out {self.path}: a sweep of {lies_there} is there; {needed}")

    def write_table(self, axes: Sequence[Axis], made: Sequence[Case], answers: Mapping[str, Mapping[str, Any]]) -> None:
        import pyarrow
        import pyarrow.parquet

        columns = table(axes, made, answers)
        written = pyarrow.table(columns)
        self._write(self.path / TABLE, lambda file: pyarrow.parquet.write_table(written, file, compression="zstd"))

    def _write(self, path: Path, write: Callable[[BinaryIO], object]) -> None:
        try:
            write_whole_by(path, write)
        except OSError as error:
            raise RunError(f"{path} cannot be written: {error.strerror or error}", exit_status=1) from None


def table(axes: Sequence[Axis], made: Sequence[Case], answers: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Columns of all that is answered: a row each, in the order of the combinations."""
    rows = [_row(axes, case, answers[case.key]) for case in made if case.key in answers]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: _of_one_type([row.get(name) for row in rows]) for name in names}


def _row(axes: Sequence[Axis], case: Case, answer: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"key": case.key}
    row |= {f"set.{each.name}": value for each, value in zip(axes, case.values, strict=True) if each.kind == "field"}
    plain = ("workload", "model", "machine", "level", "nodes", "ppn", "ranks", "placement", "seed", "faults", "noise",
             "software", "mpi", "virtual_time_s", "messages", "bytes", "events", "sampled", "error_bound", "calibrated",
             "assumed", "fingerprint", "wall_time_s")  # fmt: skip
    row |= {name: answer[name] for name in plain}
    for prefix, group in (("parameter", "parameters"), ("phase", "phases_s"), ("figure", "figures")):
        row |= {f"{prefix}.{name}": _number(value) for name, value in answer[group].items()}
    return row


def _number(value: object) -> object:
    """A column of whole numbers has 64 bits: years in picoseconds have more."""
    if not isinstance(value, str) or not value.isdecimal():
        return value
    number = int(value)
    return number if number < 2**63 else float(number)


def _of_one_type(values: list[Any]) -> list[Any]:
    """A column that has words somewhere has words everywhere."""
    kinds = {type(value) for value in values if value is not None}
    if str in kinds and len(kinds) > 1:
        return [None if value is None else str(value) for value in values]
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    return values


def read(path: Path) -> tuple[list[Axis], list[tuple[tuple[str, ...], dict[str, Any]]]]:
    """A campaign's axes, and what has been answered of it. Raises UserError."""
    try:
        content = json.loads((path / SWEEP).read_text(encoding="utf-8"))
        axes = [Axis(name=each["name"], kind=each["kind"], values=tuple(each["values"])) for each in content["axes"]]
        listed = [(str(case["key"]), tuple(case["values"])) for case in content["cases"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{path / SWEEP} is not what dryfly predict --out writes") from None
    folder = Folder(str(path))
    found = [(values, answer) for key, values in listed if (answer := folder.answers.get(key)) is not None]
    return axes, found
