"""A case is bound in one place, and its flags say all of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from dryfly.base.errors import UserError
from dryfly.case.bind import bind
from dryfly.case.case import Case
from dryfly.case.flags import flags_of
from dryfly.cli.main import cli
from dryfly.study.trial import Place, Setting, Trial


def test_the_spec_command_prints_what_its_flags_make_of_a_case(tmp_path: Path) -> None:
    faults = tmp_path / "faults.toml"
    faults.write_text('[[replays]]\nlink = "all"\nat = "0 s"\nrate = 0.2\n')
    case = Case(nodes=3, ppn=2, place="spread", seed=7, on_node="shared", compute="none", faults=str(faults),
                sets=("nic.eager=8 KiB",))  # fmt: skip
    flags = [word for word in flags_of(case) if word not in ("--provider", "cxi")]
    printed = CliRunner().invoke(cli, ["spec", *flags])
    assert printed.exit_code == 0, printed.output
    assert printed.stdout == bind(case).spec
    assert "run.on_node shared\n" in printed.stdout
    assert printed.stdout != bind(Case(nodes=3, ppn=2, place="spread", seed=7, compute="none")).spec


def test_a_trial_runs_under_the_conditions_of_its_place(tmp_path: Path) -> None:
    where = Place(nodes=4, compute="model", skip_numerics=True, faults="f.toml", storage="s.toml", launcher="hydra")
    line = Trial(setting=Setting(label="x"), where=where, command=("x",)).line(tmp_path / "json", None)
    for flag, value in (("--compute", "model"), ("--faults", "f.toml"), ("--storage", "s.toml"),
                        ("--launcher", "hydra")):  # fmt: skip
        assert line[line.index(flag) + 1] == value
    assert "--skip-numerics" in line


def test_what_is_not_repeatable_is_not_compared() -> None:
    with pytest.raises(UserError, match="--compute measured: accepted is none, replay:FILE or model"):
        Place(compute="measured")


def test_the_seed_has_its_range() -> None:
    with pytest.raises(UserError, match="--seed -1: accepted is 0 to"):
        bind(Case(seed=-1))
