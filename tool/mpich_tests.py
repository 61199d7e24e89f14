#!/usr/bin/env python3
"""Runs MPICH's test suite natively and under `dryfly run`, and reports where the two differ.

  tool/mpich_tests.py CHECKOUT [--mpi NAME] [--lists pt2pt,coll,...] [--only WORD]... [--folder FOLDER] [--json FILE]

CHECKOUT is a checkout of MPICH, or its folder test/mpi, or any folder whose lists have the same format: `testlist` or
`testlist.in` with a line `PROGRAM [RANKS [KEY=VALUE ...]]` for each test, and sources beside it. Nothing has to be
configured. tool/mpich_tests.exclude says which tests are left out, with a reason each; what the lists mark as failing
(`xfail`), as too large (`mem`) or for a mpiexec of its own (`mpiexecarg`) is left out too. A test passes by the suite's
own rules: its exit status, and "No Errors" in its output. Exit status 1: a test passes only natively.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.mpi import libraries

_HERE = Path(__file__).resolve().parent
# What configure would put into a list: a folder, or nothing to switch a line on. Any other name switches its line off.
_SWITCHES = {"rmadir": "rma", "partdir": "part", "threadsdir": "threads", "comm_overlap": "", "coll_error": "",
             "ch4_tests": "", "ch4_ofi_tests": ""}  # fmt: skip
_SUPPORT = ("util/mtest.c", "util/mtest_common.c", "util/mtest_thread.c", "util/dtypes.c")
_CONFIG = (
    "STDC_HEADERS HAVE_STDARG_H HAVE_STDINT_H HAVE_STDLIB_H HAVE_STRING_H HAVE_STRINGS_H HAVE_UNISTD_H HAVE_MEMORY_H "
    "HAVE_INTTYPES_H HAVE_SYS_TIME_H HAVE_SYS_RESOURCE_H HAVE_SYS_STAT_H HAVE_SYS_TYPES_H HAVE_PTHREAD_H HAVE_STRDUP "
    "HAVE_USLEEP HAVE_GETRUSAGE HAVE_LONG_DOUBLE HAVE_LONG_LONG HAVE_LONG_LONG_INT HAVE_ATOMIC HAVE_H_ADDR_LIST "
    "HAVE_MPI_WIN_CREATE HAVE_MPI_INIT_THREAD HAVE_PTHREAD_BARRIER_INIT HAVE_MPI_IO"
)
_DEFAULT_RANKS = 2


@dataclass(frozen=True, kw_only=True)
class Test:
    folder: Path  # of its list
    where: str  # that folder, below the suite
    program: str
    ranks: int
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    rule: str = ""  # resultTest
    limit_s: float = 0.0
    left_out: str = ""  # why, by its own list

    @property
    def name(self) -> str:
        settings = (f"{key}={value}" for key, value in self.environment)
        return shlex.join([f"{self.where}/{self.program}", str(self.ranks), *self.arguments, *settings])


@dataclass(frozen=True, kw_only=True)
class Outcome:
    verdict: str  # pass, skipped, fail, timeout, not built
    seconds: float = 0.0
    text: str = ""

    @property
    def good(self) -> bool:
        return self.verdict in ("pass", "skipped")


# --- the lists ------------------------------------------------------------------------------------------------------


def suite_of(checkout: Path) -> Path:
    nested = checkout / "test" / "mpi"
    return nested.resolve() if nested.is_dir() else checkout.resolve()


def list_in(folder: Path) -> Path | None:
    return next((path for name in ("testlist", "testlist.in") if (path := folder / name).is_file()), None)


def lines_of(path: Path) -> Iterator[str]:
    for raw in path.read_text(encoding="utf-8").splitlines():
        line = raw.partition("#")[0].strip()
        names = re.findall(r"@(\w+)@", line)
        if any(name not in _SWITCHES for name in names):
            continue
        for name in names:
            line = line.replace(f"@{name}@", _SWITCHES[name] or " ")
        if line.strip() and not line.startswith("!"):
            yield line.strip()


def tests_in(folder: Path, suite: Path) -> Iterator[Test]:
    path = list_in(folder)
    if path is None:
        return
    for line in lines_of(path):
        words = line.split()
        if (folder / words[0]).is_dir():
            yield from tests_in(folder / words[0], suite)
        else:
            yield test_of(words, folder, suite, path)


def test_of(words: Sequence[str], folder: Path, suite: Path, path: Path) -> Test:
    below, _, program = words[0].rpartition("/")
    arguments: list[str] = []
    environment: list[tuple[str, str]] = []
    options: dict[str, str] = {}
    for word in words[2:]:
        key, separator, value = word.partition("=")
        if not separator:
            raise SystemExit(f"mpich_tests: {path}: what is `{word}`, which is no KEY=VALUE?")
        if key == "arg":
            arguments.append(value)
        elif key == "env":
            name, _, setting = value.partition("=")
            environment.append((name, setting))
        else:
            options[key] = value
    return Test(
        folder=folder / below,
        where=str((folder / below).relative_to(suite)),
        program=program,
        ranks=int(words[1]) if len(words) > 1 else _DEFAULT_RANKS,
        arguments=tuple(arguments),
        environment=tuple(environment),
        rule=options.get("resultTest", ""),
        limit_s=float(options.get("timeLimit", "0")),
        left_out=reason_in(options),
    )


def reason_in(options: dict[str, str]) -> str:
    if "xfail" in options:
        return f"its list expects it to fail: {options['xfail']}"
    if "mem" in options:
        return f"its list wants {options['mem']} GB for it"
    if "mpiexecarg" in options:
        return f"its list wants mpiexec {options['mpiexecarg']}"
    return "its list wants a GPU" if "hasgpu" in options else ""


def exclusions(path: Path) -> dict[re.Pattern[str], str]:
    found: dict[re.Pattern[str], str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, separator, reason = line.partition("  # ")
        if not separator or not reason.strip():
            raise SystemExit(
                f"mpich_tests: {path}, line {number}: a pattern and, behind two spaces and a #, its reason"
            )
        found[re.compile(pattern.strip())] = reason.strip()
    return found


# --- building -------------------------------------------------------------------------------------------------------


class Builder:
    """Programs of the suite, each compiled once, as its Makefile.am says where it says anything."""

    def __init__(self, suite: Path, folder: Path, compiler: Path) -> None:
        self._suite = suite
        self._folder = folder
        self._compiler = compiler
        self._support: list[Path] = []
        includes = folder / "include"
        includes.mkdir(parents=True, exist_ok=True)
        config = "".join(f"#define {name} 1\n" for name in _CONFIG.split())
        config += "#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX\n#define POINTERINT_t long\n"
        (includes / "mpitestconf.h").write_text(f"#pragma once\n{config}", encoding="utf-8")
        (includes / "mtest_mpix.h").write_text("", encoding="utf-8")
        (folder / "dtpoolsconf.h").write_text(config, encoding="utf-8")  # looked for as ../dtpoolsconf.h
        self._flags = ["-std=gnu11", "-O1", "-w", f"-I{includes}", f"-I{suite}/include", f"-I{suite}/dtpools/include"]

    def support(self) -> None:
        """What the suite links with each of its programs, where it has that."""
        sources = [path for name in _SUPPORT if (path := self._suite / name).is_file()]
        sources += sorted((self._suite / "dtpools/src").glob("*.c"))
        for source in sources:
            target = self._folder / f"support_{source.stem}.o"
            done = self._run([*self._flags, "-c", str(source), "-o", str(target)])
            if done:
                raise SystemExit(f"mpich_tests: {source} cannot be compiled\n{done}")
            self._support.append(target)

    def program(self, test: Test) -> tuple[Path, str]:
        """The executable, and what the compiler says where there is none."""
        target = self._folder / test.where / test.program
        if target.is_file():
            return target, ""
        target.parent.mkdir(parents=True, exist_ok=True)
        sources, flags = self._recipe(test)
        absent = [str(source) for source in sources if not source.is_file()]
        if absent:
            return target, f"no {', '.join(absent)}"
        text = "".join(source.read_text(encoding="utf-8", errors="replace") for source in sources)
        called = self._suite / "util/run_mpitests.c"
        if re.search(r"^int run\(const char", text, re.MULTILINE) and not re.search(r"\bmain\s*\(", text):
            sources.append(called)
        words = [*self._flags, f"-I{test.folder}", *flags, *map(str, [*sources, *self._support])]
        return target, self._run([*words, "-o", str(target), "-lpthread", "-lm"])

    def _recipe(self, test: Test) -> tuple[list[Path], list[str]]:
        recipe = test.folder / "Makefile.am"
        text = recipe.read_text(encoding="utf-8").replace("\\\n", " ") if recipe.is_file() else ""

        def words(variable: str) -> list[str]:
            found = re.search(rf"^{re.escape(test.program)}_{variable} *\+?= *(.*)$", text, re.MULTILINE)
            return shlex.split(found[1]) if found else []

        sources = [word.replace("$(top_srcdir)", str(self._suite)) for word in words("SOURCES")]
        flags = [word for variable in ("CPPFLAGS", "CFLAGS") for word in words(variable) if word.startswith("-D")]
        return [test.folder / name for name in sources or [f"{test.program}.c"]], flags

    def _run(self, words: Sequence[str]) -> str:
        done = subprocess.run([str(self._compiler), *words], capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else done.stderr or f"exit status {done.returncode}"


# --- running --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Runner:
    """A command that gets the number of ranks, the program and its arguments."""

    command: tuple[str, ...]
    end_of_options: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    limit_s: float

    def __call__(self, test: Test, program: Path) -> Outcome:
        words = [*self.command, "-n", str(test.ranks), *self.end_of_options, str(program), *test.arguments]
        # A run has a folder of its own; a file that a setting names lies beside the test.
        settings = {
            name: str(test.folder / value) if (test.folder / value).is_file() else value
            for name, value in test.environment
        }
        environment = {**os.environ, **dict(self.environment), **settings}
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="dryfly-mpich-tests-") as folder:
            process = subprocess.Popen(
                words, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
            )  # fmt: skip
            try:
                out, error = process.communicate(timeout=test.limit_s or self.limit_s)
            except subprocess.TimeoutExpired:
                end_group(process)
                return Outcome(verdict="timeout", seconds=time.monotonic() - started)
            except BaseException:
                end_group(process)
                raise
        text = f"{out}\n{error}".strip()
        return Outcome(
            verdict=verdict_of(test.rule, process.returncode, out), seconds=time.monotonic() - started, text=text
        )


def end_group(process: subprocess.Popen[str]) -> None:
    """First as a user would, so that whoever has started ranks ends them."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=10)


def verdict_of(rule: str, status: int, out: str) -> str:
    """By the suite's rules (its script runtests)."""
    no_errors = re.search(r"^\s*No [Ee]rrors\s*$", out, re.MULTILINE) is not None
    if re.search(r"^\s*Test Skipped\s*$", out, re.MULTILINE):
        return "skipped" if status == 0 else "fail"
    if rule in ("TestStatus", "TestErrFatal"):
        return "pass" if status != 0 else "fail"
    if rule == "TestStatusNoErrors":
        return "pass" if status != 0 and no_errors else "fail"
    if rule == "TestBench":
        return "pass" if status == 0 else "fail"
    return "pass" if status == 0 and no_errors else "fail"


def standing(native: Outcome | None, here: Outcome) -> str:
    if native is None:
        return "passes" if here.good else "fails"
    if here.good:
        return "both" if native.good else "only here"
    return "ONLY NATIVELY" if native.good else "neither"


# --- the report -----------------------------------------------------------------------------------------------------


def shown(outcome: Outcome | None) -> str:
    return "" if outcome is None else f"{outcome.verdict} {outcome.seconds:.1f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--mpi", help="the MPI library, as `dryfly run --mpi` takes it")
    parser.add_argument("--dryfly", default="dryfly run --quiet --compute none", help="what runs a program")
    parser.add_argument("--lists", default="", help="folders of the suite, separated by commas")
    parser.add_argument(
        "--only", action="append", default=[], help="tests whose line contains this, and what further ones say"
    )
    parser.add_argument("--no-native", action="store_true", help="under dryfly only")
    parser.add_argument("--most-ranks", type=int, default=16, help="leave out tests of more (natively, ranks poll)")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for a run of which its list says nothing")
    parser.add_argument("--folder", type=Path, help="where the programs are built and kept; default: a temporary one")
    parser.add_argument("--exclude", type=Path, default=_HERE / "mpich_tests.exclude")
    parser.add_argument("--json", type=Path, help="write the outcomes there")
    parser.add_argument("--verbose", action="store_true", help="show what a test that does not pass has printed")
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # so that runs under way are ended
    suite = suite_of(options.checkout)
    if list_in(suite) is None:
        parser.error(f"{options.checkout}: it has no testlist, and no test/mpi with one")
    try:
        library = libraries.select(options.mpi)
    except UserError as error:
        parser.error(f"--mpi {options.mpi}: {error}")
    compiler, starter = library.wrapper("mpicc"), library.wrapper("mpiexec")
    if compiler is None or (starter is None and not options.no_native):
        parser.error(f"{library.name} has no mpicc, or no mpiexec for native runs")
    folders = [suite / name for name in options.lists.split(",") if name] or [suite]
    for folder in folders:
        if list_in(folder) is None:
            parser.error(f"--lists {options.lists}: {folder} has no testlist")
    tests = [test for folder in folders for test in tests_in(folder, suite)]
    tests = [test for test in tests if all(word in test.name for word in options.only)]
    if not tests:
        parser.error(f"--only {' --only '.join(options.only)}: no test has all of this in its line")
    left_out = exclusions(options.exclude)
    with tempfile.TemporaryDirectory(prefix="dryfly-mpich-tests-") as temporary:
        builder = Builder(suite, options.folder or Path(temporary), compiler)
        builder.support()
        own = (
            ("LD_LIBRARY_PATH", ":".join(library.library_folders)),
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        )
        oversubscribe = ("--oversubscribe",) if library.family == "openmpi" else ()
        natively = Runner(
            command=(str(starter), *oversubscribe), end_of_options=(), environment=own, limit_s=options.timeout
        )
        here = Runner(
            command=(*shlex.split(options.dryfly), "--mpi", library.name), end_of_options=("--",), environment=(),
            limit_s=options.timeout,
        )  # fmt: skip
        rows = list(run_all(tests, left_out, builder, None if options.no_native else natively, here, options))
    return report(rows, options.json)


Row = tuple[Test, str, Outcome | None, Outcome | None, str]  # standing, native, here, reason


def run_all(
    tests: Sequence[Test],
    left_out: dict[re.Pattern[str], str],
    builder: Builder,
    natively: Runner | None,
    here: Runner,
    options: argparse.Namespace,
) -> Iterator[Row]:
    def reason_for(test: Test) -> str:
        by_us = next((why for pattern, why in left_out.items() if pattern.search(test.name)), "")
        many = f"{test.ranks} ranks (--most-ranks)" if test.ranks > options.most_ranks else ""
        return test.left_out or by_us or many

    wanted = {(test.where, test.program): test for test in tests if not reason_for(test)}
    with ThreadPoolExecutor(max_workers=2) as pool:
        built = dict(zip(wanted, pool.map(builder.program, wanted.values()), strict=True))
    for test in tests:
        reason = reason_for(test)
        if reason:
            yield told((test, "left out", None, None, reason), options)
            continue
        program, trouble = built[test.where, test.program]
        if trouble:
            yield told((test, "not built", None, None, trouble.strip().splitlines()[0]), options)
            continue
        native = natively(test, program) if natively is not None else None
        outcome = here(test, program)
        yield told((test, standing(native, outcome), native, outcome, ""), options)


def told(row: Row, options: argparse.Namespace) -> Row:
    test, what, native, here, reason = row
    print(f"{what:<14}{test.name:<60}{shown(native):>14}{shown(here):>14}  {reason}".rstrip(), flush=True)
    if options.verbose and here is not None and not here.good:
        print(here.text[-2000:], flush=True)
    return row


def report(rows: Sequence[Row], target: Path | None) -> int:
    counts = Counter(what for _, what, *_ in rows)
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "no test")
    if target is not None:
        table = [
            {
                "test": test.name,
                "standing": what,
                "native": asdict(native) if native else None,
                "dryfly": asdict(here) if here else None,
                "reason": reason,
            }
            for test, what, native, here, reason in rows
        ]
        target.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    return 1 if counts["ONLY NATIVELY"] or counts["fails"] else 0


if __name__ == "__main__":
    sys.exit(main())
