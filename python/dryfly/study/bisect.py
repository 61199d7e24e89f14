"""`dryfly bisect`: finds the change in a series that made a benchmark faster or slower.

Time is virtual and computing takes none, so a figure has no noise: one run a point is enough, and small differences
count. Every figure is kept in the state file as soon as it is there; the same command goes on from it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from dryfly.apps import benchmarks, solver
from dryfly.apps.benchmarks import KINDS, Benchmark, check_options, number
from dryfly.base.errors import RunError, UserError
from dryfly.base.files import write_whole
from dryfly.base.fitted import fitted
from dryfly.base.grid import Grid
from dryfly.base.paths import PRELOAD, native
from dryfly.base.store import Store
from dryfly.case import program
from dryfly.case.bind import bind, library_of
from dryfly.case.case import Case
from dryfly.mpi import software
from dryfly.mpi.libraries import installed
from dryfly.mpi.preload import wrappers
from dryfly.result import result
from dryfly.result.capture import check_target
from dryfly.study import series, software_costs, variant
from dryfly.study.changepoint import Ends, Found, ends, search
from dryfly.study.kept import NOTHING, Kept
from dryfly.study.series import Releases, Series, UntestableError
from dryfly.study.trial import Result, Trial, program_hashes, run_all

FORMAT = 1
INSTRUCTIONS = "instructions"  # --figure
PATHS_SHOWN = 12
LEAST_CHANGE = 0.5  # instructions per message, of a path that is shown
SAME = 1e-9  # relative: ends closer than this are the same


@dataclass(frozen=True, kw_only=True)
class Options:
    over: str
    fixed: str | None = None
    base: Case = field(default_factory=lambda: variant.base_case({}))
    command: tuple[str, ...] = ()
    figure: str | None = None
    threshold: float | None = None
    repository: str | None = None
    build: str | None = None
    prefix: str | None = None
    state: str = "dryfly-bisect.json"
    json_file: str | None = None
    timeout_s: float | None = None
    kept: Kept = NOTHING
    quiet: bool = False


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What is read from a run."""

    name: str
    unit: str = ""
    size: int | None = None  # a row of a benchmark's table
    pattern: re.Pattern[str] | None = None  # of a program's output
    more_is_better: bool | None = None  # None: not known
    software: str = ""  # the MPI call, or all of them, of which it is the library's instructions per message

    def read(self, outcome: Result) -> float:
        if self.software:
            return _instructions(outcome, self.software)
        if self.size is not None:
            table = benchmarks.read(outcome["output"])
            if self.size not in table:
                raise UntestableError(f"its table has no row for {self.size}")
            return table[self.size]
        if self.pattern is None:
            return float(outcome["virtual_time_s"]) * 1e6
        found = self.pattern.findall(outcome["output"])
        try:
            return float(found[-1])
        except (IndexError, TypeError, ValueError):
            raise UntestableError(f'its output has no number at "{self.pattern.pattern}"') from None

    def direction(self, before: float, after: float) -> str:
        if self.more_is_better is None:
            return "larger" if after > before else "smaller"
        return "faster" if (after > before) == self.more_is_better else "slower"


def _instructions(outcome: Result, call: str) -> float:
    if not outcome["messages"]:
        raise UntestableError("it has sent no message")
    costs = software_costs.of(outcome)
    if costs is None:
        raise UntestableError("nothing was charged for its library's own code")
    of_call = costs.of_call(call)
    if of_call is None:
        raise UntestableError(f"it has not called {call}")
    return of_call.instructions


@dataclass(frozen=True, kw_only=True)
class Point:
    name: str
    figure: float | None
    why: str = ""  # it has no figure
    paths: Mapping[str, float] = field(default_factory=dict)  # what makes the figure up, for instructions


class State:
    """The figures so far, in a file. It belongs to one question: another one is refused while that is not answered,
    and takes its place afterwards."""

    def __init__(self, path: Path, question: Mapping[str, Any]) -> None:
        self._path = path
        self._question = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:24]
        self._shown = question
        self.points: dict[str, Point] = {}
        if path.exists():
            self._load()

    def _load(self) -> None:
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
            same, answered = content["question"] == self._question, bool(content.get("answered"))
            points = [Point(**row) for row in content["points"]]
        except (OSError, ValueError, KeyError, TypeError):
            raise UserError(
                f"--state {self._path}: that file is not of dryfly bisect; another name is needed"
            ) from None
        if same:
            self.points = {point.name: point for point in points}
        elif not answered:
            raise UserError(
                f"--state {self._path}: it belongs to another question, which is not answered yet; remove it, or give "
                "another name"
            )

    def put(self, point: Point) -> None:
        self.points[point.name] = point
        self._write(answered=False)

    def close(self) -> None:
        self._write(answered=True)

    def _write(self, *, answered: bool) -> None:
        content = {
            "question": self._question,
            "answered": answered,
            "asked": self._shown,
            "points": [vars(point) for point in self.points.values()],
        }
        try:
            write_whole(self._path, (json.dumps(content, indent=1) + "\n").encode())
        except OSError as error:
            raise RunError(f"{self._path} cannot be written: {error.strerror}", exit_status=1) from None


def bisect(options: Options) -> int:
    """0 when the change was found; 1 when the ends are alike or cannot be tested."""
    figure, command, sources = _what(options)
    if figure.software:
        if options.base.software == "none":
            raise UserError(f"--software none: --figure {options.figure} needs measured")
        options = replace(options, base=replace(options.base, software="measured"))
    if options.threshold is not None and not 0 < options.threshold < 100:
        raise UserError(f"--threshold {options.threshold:.4g}: accepted is a share above 0, such as 5%")
    path = Path(options.state)
    if not path.absolute().parent.is_dir():
        raise UserError(f"--state {path}: the folder {path.absolute().parent} does not exist")
    if options.json_file not in (None, "-"):
        check_target("--json", str(options.json_file), folder=False)
    fixed = variant.parse(options.fixed, options.base).case if options.fixed is not None else options.base
    work = path.with_name(f"{path.name}.worktree")
    points = series.parse(
        options.over, repository=options.repository, build=options.build, prefix=options.prefix, work=work
    )
    if fixed.software is None and not _are_counted(points, options):
        fixed = replace(fixed, software="none")
    base = Trial(case=replace(fixed, program=command), sources=sources, timeout_s=options.timeout_s)
    bind(base.case)
    points.check(base)
    tables = _tables(points, base, options) if figure.software else []
    options.kept.check()
    state = State(path, {**_question(options, points.names), **({"tables": tables} if tables else {})})
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    finished = False
    try:
        code, content = _find(options, points, base, figure, state, console)
        state.close()
        finished = True
    finally:
        points.close(finished=finished)
    if options.json_file is not None:
        result.write(content, options.json_file)
    return code


def _are_counted(points: Series, options: Options) -> bool:
    """Of releases of which some have been counted, those would be charged otherwise than the others."""
    if isinstance(points, Releases):
        return all(software.file_of(f"{points.family}-{release}") is not None for release in points.names)
    return options.prefix is None


def _what(options: Options) -> tuple[Figure, tuple[str, ...], tuple[Path, ...]]:
    """The figure, the command and its sources: a benchmark by name, or a program."""
    words = options.command
    if not words:
        raise UserError("what is to be measured is missing: a benchmark such as -- alltoall -m 4096:4096, or a program")
    if options.figure is not None and options.figure.partition(":")[0] == INSTRUCTIONS:
        return _what_instructions(options.figure, words)
    if words[0] not in KINDS:
        if not options.over.startswith("git:") and words[0] not in solver.NAMES:
            program.find(words[0])  # raises UserError; a commit may have to build it first
        if options.figure is None:
            return Figure(name="virtual time", unit="us", more_is_better=False), words, ()
        return Figure(name=options.figure, pattern=_pattern(options.figure)), words, ()
    benchmark = _benchmark(words)
    kind = benchmark.kind
    size = _size(benchmark, options.figure)
    name = f"{benchmark.shown}, {size} B" if size else benchmark.shown
    figure = Figure(name=name, unit=kind.unit, size=size, more_is_better=kind.more_is_better)
    return figure, benchmark.command(), _sources(benchmark)


def _benchmark(words: Sequence[str]) -> Benchmark:
    options = check_options(words[0], words[1:])
    return Benchmark(name=words[0], options=tuple(word for option in options for word in option))


def _sources(benchmark: Benchmark) -> tuple[Path, ...]:
    return (benchmark.source, *sorted(benchmark.source.parent.glob("*.h")))


def _what_instructions(text: str, words: tuple[str, ...]) -> tuple[Figure, tuple[str, ...], tuple[Path, ...]]:
    _, colon, call = text.partition(":")
    if colon and not re.fullmatch(r"MPI_[A-Z][a-z_]+", call):
        raise UserError(f"--figure {text}: accepted is {INSTRUCTIONS}, or with a function {INSTRUCTIONS}:MPI_Isend")
    if colon and call not in wrappers(native(PRELOAD)):
        raise UserError(
            f"--figure {text}: {call} is no function of MPI that dryfly knows; accepted are such as MPI_Isend"
        )
    name = f"instructions of {call or 'the library'} per message"
    figure = Figure(name=name, software=call or software_costs.ALL)
    if words[0] not in KINDS:
        return figure, words, ()
    benchmark = _benchmark(words)
    return figure, benchmark.command(), _sources(benchmark)


def _tables(points: Series, base: Trial, options: Options) -> list[str]:
    """Digests of the tables of all points; raises UserError where one is missing: nobody shall wait for the runs before
    it."""
    if options.prefix is not None:
        raise UserError(
            f"--figure {options.figure}: a library that --build makes has not been counted; accepted are --over "
            "mpich==4.3.2,5.0.2, or commits of a program"
        )
    if isinstance(points, Releases):
        names = [f"{points.family}-{release}" for release in points.names]
    else:
        names = [library_of(base.case).name]
    missing = [name for name in names if software.file_of(name) is None]
    if missing:
        raise UserError(
            f"--figure {options.figure}: the instructions of {', '.join(missing)} have not been counted; "
            f"{software.how_to_count(missing[0])} counts them" + (", and so for the others" if len(missing) > 1 else "")
        )
    for library in installed():
        if library.name in names:
            software.load(library)
    return [hashlib.sha256(path.read_bytes()).hexdigest() for name in names if (path := software.file_of(name))]


def _pattern(text: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(text, re.MULTILINE)
    except re.error as error:
        raise UserError(f'--figure "{text}": no regular expression ({error})') from None
    if pattern.groups != 1:
        raise UserError(f'--figure "{text}": one group is needed around the number, such as "Time: ([0-9.]+)"')
    return pattern


def _size(benchmark: Benchmark, text: str | None) -> int:
    """The row of the table that counts: --figure, or the only size that -m allows."""
    if benchmark.name == "barrier":
        return 0
    words = benchmark.options
    given = [words[place + 1] for place, word in enumerate(words[:-1]) if word == "-m"]
    first, _, last = given[-1].rpartition(":") if given else ("", "", "")  # [MIN:]MAX
    if text is not None:
        if not text.isdecimal() or int(text) < 1:
            raise UserError(f"--figure {text}: for a benchmark it is a message size in bytes")
        if last and not number(first or "1") <= int(text) <= number(last):
            raise UserError(f"--figure {text}: {benchmark.shown} does not measure that size")
        return int(text)
    if first and first == last:
        return number(first)
    raise UserError(f"{benchmark.shown} measures several sizes: --figure SIZE says which one counts, or -m 4096:4096")


def _question(options: Options, names: Sequence[str]) -> dict[str, Any]:
    return {
        "over": options.over,
        "points": [names[0], names[-1], len(names)],
        "with": options.fixed,
        "case": asdict(options.base),
        "command": list(options.command),
        "figure": options.figure,
        "build": options.build,
        "prefix": options.prefix,
        "dryfly": program_hashes(),
    }


def _find(
    options: Options, points: Series, base: Trial, figure: Figure, state: State, console: Console
) -> tuple[int, dict[str, Any]]:
    names = points.names
    entries = options.kept.entries([(name,) for name in names])

    def measure(place: int) -> float | None:
        name = names[place]
        if name not in state.points or not entries[place].is_there:
            state.put(_measure(points, place, replace(base, entry=entries[place]), figure))
            shown = state.points[name]
            text = _text(shown.figure, figure) if shown.figure is not None else f"cannot be tested: {shown.why}"
            if not options.quiet or shown.figure is None:
                console.print(f"dryfly: {name}: {text}", markup=False)
        return state.points[name].figure

    between = ends(len(names), measure)
    found = None
    if between is not None and _differ(between, options.threshold):
        found = search(between, measure, threshold=options.threshold)
    content = _content(options, names, figure, state, between, found)
    if options.json_file != "-":
        _show(points, figure, state, between, found, options)
    return (0 if found is not None else 1), content


def _measure(points: Series, place: int, base: Trial, figure: Figure) -> Point:
    name = points.names[place]
    try:
        trial = points.trial(place, base)
        outcome = run_all([trial], Store(None), jobs=1, done=lambda *_: None)[trial]
        if outcome["failure"]:
            return Point(name=name, figure=None, why=outcome["failure"])
        value = figure.read(outcome)
        paths = software_costs.paths(outcome, figure.software) if figure.software else {}
        return Point(name=name, figure=value, paths=paths)
    except (UntestableError, UserError) as error:
        return Point(name=name, figure=None, why=str(error))


def _differ(between: Ends, threshold: float | None) -> bool:
    least = threshold if threshold is not None else SAME
    return abs(between.last_figure - between.first_figure) > least * abs(between.first_figure)


def _text(value: float | None, figure: Figure) -> str:
    return "-" if value is None else f"{value:,.6g} {figure.unit}".rstrip()


def _show(
    points: Series, figure: Figure, state: State, between: Ends | None, found: Found | None, options: Options
) -> None:
    console = Console(highlight=False, soft_wrap=True)
    console.print(fitted(f"{figure.name} over {options.over}"), style="bold", markup=False)
    lines = [
        (name, _text(state.points[name].figure, figure), _verdict(state.points[name], between, options))
        for name in points.names
        if name in state.points
    ]
    console.print(
        Grid(heads=("point", "figure", "like"), rows=lines, left=frozenset({0, 1, 2}), prose=frozenset({2}), boxed=True)
    )
    if between is None:
        console.print("fewer than two of them can be tested", markup=False)
    elif found is None:
        ends_are = f"{_text(between.first_figure, figure)} and {_text(between.last_figure, figure)}"
        console.print(f"both ends are alike ({ends_are}): there is nothing to find", markup=False)
    else:
        _show_found(console, points, figure, state, found)


def _verdict(point: Point, between: Ends | None, options: Options) -> str:
    if point.figure is None:
        return f"cannot be tested: {point.why}"
    if between is None or not _differ(between, options.threshold):
        return ""
    return "as the last" if between.like_last(point.figure, options.threshold) else "as the first"


def _show_found(console: Console, points: Series, figure: Figure, state: State, found: Found) -> None:
    names = points.names
    before, after = state.points[names[found.before]].figure, state.points[names[found.after]].figure
    assert before is not None
    assert after is not None
    factor = f", x {after / before:.4g}" if before > 0 else ""
    said = f"{figure.direction(before, after)} from {names[found.before]} ({_text(before, figure)}) "
    console.print(f"{said}to {names[found.after]} ({_text(after, figure)}{factor})", markup=False)
    if found.after - found.before > 1:
        skipped = ", ".join(names[found.before + 1 : found.after])
        console.print(f"the change may be in any of these, which cannot be tested: {skipped}", markup=False)
    for text in _changed_paths(state.points[names[found.before]].paths, state.points[names[found.after]].paths):
        console.print(f"  {text}", markup=False)
    about = points.about(found.after)
    if about:
        console.print(about, markup=False)


def _changed_paths(before: Mapping[str, float], after: Mapping[str, float]) -> list[str]:
    """Those whose instructions per message have changed, by how much."""
    changed = {path: (before.get(path, 0.0), after.get(path, 0.0)) for path in {**before, **after}}
    order = sorted(changed, key=lambda path: (-abs(changed[path][1] - changed[path][0]), path))
    shown = [path for path in order if abs(changed[path][1] - changed[path][0]) >= LEAST_CHANGE][:PATHS_SHOWN]
    return [f"{path}: {changed[path][0]:,.1f} to {changed[path][1]:,.1f}" for path in shown]


def _content(
    options: Options, names: Sequence[str], figure: Figure, state: State, between: Ends | None, found: Found | None
) -> dict[str, Any]:
    tried = [vars(state.points[name]) for name in names if name in state.points]
    return {
        "format": FORMAT,
        "over": options.over,
        "figure": figure.name,
        "unit": figure.unit,
        "points": len(names),
        "tried": tried,
        "ends": None if between is None else [names[between.first], names[between.last]],
        "before": None if found is None else names[found.before],
        "after": None if found is None else names[found.after],
        "untestable_between": [] if found is None else list(names[found.before + 1 : found.after]),
    }
