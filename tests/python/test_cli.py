"""The command line as a user meets it."""

from __future__ import annotations

import pkgutil
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import dryfly.cli
from dryfly.base.paths import CONDUCTOR, LAUNCHER, PRELOAD, PROVIDER
from dryfly.cli.main import cli
from dryfly.cli.registry import ROWS

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def natives(tmp_path: Path) -> dict[str, str]:
    """Stands in for the built parts where a run must be refused before any of them starts."""
    folder = tmp_path / "native"
    folder.mkdir()
    for name in (CONDUCTOR, LAUNCHER, PRELOAD, PROVIDER):
        (folder / name).write_text("#!/bin/sh\necho started >&2\nexit 1\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    return {"DRYFLY_NATIVE": str(folder)}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "--machine", "arora", "--", "true"], 'unknown machine "arora"; known are'),
        (["run", "--machine", "none.toml", "--", "true"], "none.toml"),
        (["run", "--network", "fluid", "--", "true"], "'fluid' is not one of 'packet', 'flow'"),
        (["run", "-N", "33", "--", "true"], "testbed has 32 nodes"),
        (["run", "-N", "1", "--ppn", "129", "--", "true"], "128 cores"),
        (["run", "-n", "100000", "--", "true"], "holds 4096 ranks"),
        (["run", "-N", "two", "--", "true"], "two"),
        (["run", "--place", "nowhere", "--", "true"], "nowhere"),
        (["run", "--seed", "-1", "--", "true"], "--seed -1"),
        (["run", "--set", "fabric.link.rate=100", "--", "true"], "needs a unit"),
        (["run", "--compute", "fast", "--", "true"], "measured:FACTOR"),
        (["run", "--skip-numerics", "--", "true"], "--skip-numerics needs --compute model"),
        (["run", "--compute", "replay:nowhere", "--", "true"], "no such recording"),
        (["spec", "--compute", "replay:nowhere"], "no such recording"),
        (["run", "--compute", "none", "--compute-record", "x", "--", "true"], "--compute-record"),
        (["run", "--timeout", "soon", "--", "true"], "--timeout soon"),
        (["run", "--timeout", "0", "--", "true"], "more than 0"),
        (["run", "--timeout", "1e10", "--", "true"], "more than 0 and at most 1000000000 s"),
        (["run", "--debug", "9", "--", "true"], "0 to 1"),
        (["run", "--debug", "0:no-such-debugger", "--", "true"], "no-such-debugger is not found"),
        (["run", "--json", "/no/such/folder/x.json", "--", "true"], "no file can be written there"),
        (["run"], "program is missing"),
        (["run", "--", "true"], "no MPI library is set up"),
        (["run", "--mpi", "intel", "--", "true"], 'unknown MPI library "intel"'),
        (["run", "--bogus"], "--bogus"),
        (["bogus"], "bogus"),
        (["machines", "show", "nowhere"], "unknown machine"),
        (["gpu", "nowhere"], "unknown machine"),
        (["gpu", "aurora", "--json", "/nowhere/gpus.json"], "--json /nowhere/gpus.json: the folder /nowhere does not"),
        (["mpi", "add", "lam==7"], "accepted is mpich==5.0.2"),
        (["mpi", "remove", "lam"], "unknown MPI library"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_status_2(
    dryfly: Cli, natives: dict[str, str], arguments: list[str], says: str
) -> None:
    result = dryfly(*arguments, **natives)
    assert result.returncode == 2, result.stderr
    assert says in result.stderr
    assert result.stderr.startswith("dryfly: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_a_build_that_is_missing_is_named(dryfly: Cli, tmp_path: Path) -> None:
    result = dryfly("run", "--", "true", DRYFLY_NATIVE=str(tmp_path))
    assert result.returncode == 2
    assert "pip install" in result.stderr


def test_machines_lists_every_machine_quickly(dryfly: Cli) -> None:
    took = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = dryfly("machines")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert result.returncode == 0
    assert "aurora" in result.stdout
    assert "84,992" in result.stdout
    # The aim is 0.3 s of wall time. Processor time, because other programs of the box must not fail the test.
    assert min(took) < 0.3


def test_a_reader_that_stops_reading_is_no_error(dryfly: Cli) -> None:
    result = dryfly("machines", "show", "aurora")
    assert result.returncode == 0
    assert "S0" in result.stdout


def test_spec_prints_what_a_run_would_use(dryfly: Cli) -> None:
    result = dryfly("spec", "-N", "2", "--ppn", "2", "--compute", "none")
    assert result.stdout == Path(__file__).with_name("testbed.spec").read_text(encoding="utf-8")


_NO_COMMANDS = {"bash", "complete", "main", "man", "options", "registry"}


def test_each_command_is_a_file_and_a_row() -> None:
    files = {module.name for module in pkgutil.iter_modules(dryfly.cli.__path__)} - _NO_COMMANDS
    assert sorted(row.name for row in ROWS) == sorted(files)
    with cli.make_context("dryfly", [], resilient_parsing=True) as context:
        for row in ROWS:
            command = cli.get_command(context, row.name)
            assert command is not None
            assert command.name == row.name


def test_the_list_of_commands_is_not_cut(dryfly: Cli) -> None:
    shown = dryfly("--help").stdout
    assert "..." not in shown.partition("Run a program:")[2]
    assert max(map(len, shown.splitlines())) <= 80
    assert all(f"\n  {row.name} " in shown for row in ROWS)
