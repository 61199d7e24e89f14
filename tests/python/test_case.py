"""A case is bound in one place, and its flags say all of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from dryfly.base.errors import UserError
from dryfly.case.bind import bind
from dryfly.case.case import Case
from dryfly.case.environment import applied
from dryfly.cli.main import cli
from dryfly.run.runner import Runner, case_words, command_line
from dryfly.study.variant import base_case


def test_the_spec_command_prints_what_its_flags_make_of_a_case(tmp_path: Path) -> None:
    faults = tmp_path / "faults.toml"
    faults.write_text('[[replays]]\nlink = "all"\nat = "0 s"\nrate = 0.2\n')
    case = Case(nodes=3, ppn=2, place="spread", seed=7, on_node="shared", compute="none", faults=str(faults),
                sets=("nic.eager=8 KiB",))  # fmt: skip
    printed = CliRunner().invoke(cli, ["spec", *case_words(case)])
    assert printed.exit_code == 0, printed.output
    assert printed.stdout == bind(case).spec
    assert "run.on_node shared\n" in printed.stdout
    assert printed.stdout != bind(Case(nodes=3, ppn=2, place="spread", seed=7, compute="none")).spec


def test_the_command_line_says_all_of_a_case_and_of_its_runner() -> None:
    """Of each field one that is not the default: what the command line reads is the same."""
    case = Case(
        program=("x", "--flag"), machine="aurora", sets=("nic.eager=8 KiB", "a=b"), nodes=4, ppn=2, ranks=7,
        place="spread", seed=9, mpi="m", provider="linkx", on_node="shared", compute="model", skip_numerics=True,
        network="flow",
        faults="f.toml", storage="s.toml", service="v.yaml", launcher="hydra",
        launcher_options="--bind-to core", cpu_bind="depth", depth=8, mem_bind="local", gpu_bind="closest",
        nic_bind="closest",
        software="measured",
        noise="machine",
    )  # fmt: skip
    runner = Runner(
        json="j", compute_record="c", trace="t", record="r", timeout_s=0.25, debug="1:gdb", quiet=True,
        progress=True, verbose=True,
    )  # fmt: skip
    plain_case, plain_runner = Case(), Runner()
    for of, plain in ((case, plain_case), (runner, plain_runner)):
        same = [name for name, value in vars(of).items() if value == vars(plain)[name]]
        assert same in ([], ["environment"])  # which the process is started with
    read: list[tuple[Case, Runner]] = []

    def run(*given: Any) -> int:
        read.append(given)
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dryfly.run.run.run", run)
        ended = CliRunner().invoke(cli, command_line(case, runner)[3:])
    assert ended.exit_code == 0, ended.output
    assert read == [(case, runner)]


def test_what_is_not_repeatable_is_not_compared() -> None:
    with pytest.raises(UserError, match="--compute measured: accepted is none, replay:FILE or model"):
        base_case({"compute": "measured"})


def test_a_study_is_of_two_nodes_unless_it_says_something_else() -> None:
    assert (base_case({}).nodes, base_case({}).ppn) == (2, 1)
    assert (base_case({"nodes": 4}).nodes, base_case({"nodes": 4}).ppn) == (4, 1)
    by_ranks = base_case({"ranks": 6})
    assert (by_ranks.nodes, by_ranks.ppn, len(bind(by_ranks).placement.ranks)) == (None, None, 6)


def test_the_seed_has_its_range() -> None:
    with pytest.raises(UserError, match="--seed -1: accepted is 0 to"):
        bind(Case(seed=-1))


def test_variables_of_a_case_are_there_while_it_runs_and_gone_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "1")
    with applied((("KEPT", "2"), ("NEW", "3"))):
        assert (os.environ["KEPT"], os.environ["NEW"]) == ("2", "3")
    assert os.environ["KEPT"] == "1"
    assert "NEW" not in os.environ


# What compare, bisect and reproduce lack of dryfly run, each with the reason.
_LACKING = {
    "compare": {
        "mpi": "--with names the libraries, several of them",
        "program": "what is run are benchmarks",
        "compute_record": "what is measured is not repeatable, and so is not compared",
        "debug": "several run at once, without a terminal",
        "verbose": "runs print nothing",
        "progress": "several run at once, without a terminal",
        "seeds": "one seed for all: what is compared is settings",
    },
    "bisect": {
        "mpi": "--with names the library",
        "program": "it is an argument here too, and may be a benchmark",
        "compute_record": "what is measured is not repeatable, and so is not compared",
        "debug": "runs have no terminal",
        "progress": "runs have no terminal",
        "verbose": "runs print nothing",
        "seeds": "one seed for all: what is compared is releases",
        "jobs": "which release is next follows from the last one",
    },
    "reproduce": {
        "program": "the measurement names it",
        "compute_record": "there is no computing worth a recording in a microbenchmark",
        "debug": "runs have no terminal",
        "progress": "runs have no terminal",
        "verbose": "runs print nothing",
    },
}


@pytest.mark.parametrize("study", _LACKING)
def test_a_study_takes_every_option_of_run(study: str) -> None:
    with cli.make_context("dryfly", [], resilient_parsing=True) as context:
        run, other = (cli.get_command(context, name) for name in ("run", study))
    assert run is not None
    assert other is not None
    flags_of = {each.name: set(each.opts) for each in other.params if isinstance(each, click.Option)}
    for option in run.params:
        if option.name in _LACKING[study]:
            assert option.name not in flags_of, f"{option.name} is there and is said not to be"
        else:
            assert flags_of.get(option.name) == set(option.opts), f"dryfly {study} lacks {option.opts}"
