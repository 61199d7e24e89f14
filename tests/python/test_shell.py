"""Completion in a shell, and the manual pages."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dryfly.cli import man
from dryfly.cli.main import cli

_WITHIN_S = 30.0


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    programs = Path(sys.executable).parent
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(tmp_path),
        "TERM": "dumb",
        "INPUTRC": "/dev/null",
        "PS1": "$ ",
        "HISTFILE": "",
    }


class _Terminal:
    """A bash with a terminal of its own, in which keys are pressed."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self._master, slave = pty.openpty()
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-i"], stdin=slave, stdout=slave, stderr=slave, env=environment,
            cwd=folder, start_new_session=True,
        )  # fmt: skip
        os.close(slave)

    def press(self, keys: str, *, until: str) -> str:
        """What is shown, as soon as `until` is in it."""
        os.write(self._master, keys.encode())
        shown, end = "", time.monotonic() + _WITHIN_S
        while until not in shown:
            ready, _, _ = select.select([self._master], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{until!r} is not in {shown!r}"
            shown += os.read(self._master, 4096).decode(errors="replace")
        return shown

    def close(self) -> None:
        self._bash.kill()
        self._bash.wait()
        os.close(self._master)


@pytest.fixture
def terminal(environment: dict[str, str], tmp_path: Path) -> Iterator[_Terminal]:
    made = _Terminal(environment, tmp_path)
    made.press('eval "$(dryfly completion bash)"; echo read\\y\n', until="ready\r\n")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("keys", "until"),
    [
        ("comple", "completion "),
        ("run --skip-", "run --skip-numerics "),
        ("run --machine auror", "aurora "),
        ("run --faults mine", "mine.toml "),
        ("compare allg", "allgather "),
        ("mpi rem", "remove "),
        ("run -N 2 -- ./min", "./mine.toml "),
        ("run -n 4 min", "mine.toml "),
        ("run --machine=auror", "--machine=aurora "),
        ("run --compute replay:min", "replay:mine.toml "),
        ("run --set fabric.routing.algorithm=min", "algorithm=minimal "),
        ("bisect --over mpich==4..5 -- allg", "allgather "),
        ("reproduce fabric --only gpc", "gpcnet "),
    ],
)
def test_bash_completes_what_is_begun(terminal: _Terminal, tmp_path: Path, keys: str, until: str) -> None:
    (tmp_path / "mine.toml").write_text("")
    terminal.press(f"dryfly {keys}\t", until=until)


def test_bash_goes_on_after_a_value_that_has_only_begun(terminal: _Terminal) -> None:
    begun = terminal.press("dryfly run --set fabric.link.ra\t", until="fabric.link.rate=")
    assert (begun + terminal.press("100", until="100")).endswith("fabric.link.rate=100")


def test_zsh_offers_the_commands(environment: dict[str, str]) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("this computer has no zsh")
    script = 'autoload -U compinit; compinit -u -D; eval "$(dryfly completion zsh)"; print -r -- $_comps[dryfly]'
    done = subprocess.run(["zsh", "-f", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("_dryfly_completion\n", "")


def test_another_shell_is_refused(environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["dryfly", "completion", "tcsh"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "tcsh" in done.stderr


# Manual pages.


def _flags(command: click.Command) -> list[str]:
    return [flag for parameter in command.params if isinstance(parameter, click.Option) for flag in parameter.opts]


def test_each_command_has_a_page_with_all_its_options() -> None:
    pages = man.pages()
    with cli.make_context("dryfly", [], resilient_parsing=True) as context:
        names = cli.list_commands(context)
        assert sorted(pages) == sorted(["dryfly.1", *(f"dryfly-{name}.1" for name in names)])
        for name in names:
            command = cli.get_command(context, name)
            assert command is not None
            for flag in [*_flags(command), "--help", "-h"]:
                assert man.escaped(flag) in pages[f"dryfly-{name}.1"], (name, flag)
            assert man.escaped(f"dryfly-{name}") in pages["dryfly.1"]


@pytest.mark.parametrize("name", sorted(man.pages()))
def test_a_page_is_rendered_without_a_warning(name: str) -> None:
    if shutil.which("groff") is None:
        pytest.skip("this computer has no groff")
    command = ["groff", "-man", "-Tascii", "-ww", "-P-cbu", "-rLL=200n"]
    done = subprocess.run(command, input=man.pages()[name], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"):
        assert heading in done.stdout


@pytest.mark.parametrize(("text", "roff"), [(".TH", "\\&.TH"), ("'x", "\\&'x"), ("a\\b", "a\\eb"), ("--x", "\\-\\-x")])
def test_text_is_no_request_of_roff(text: str, roff: str) -> None:
    assert man.escaped(text) == roff
