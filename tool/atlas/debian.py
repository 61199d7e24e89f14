"""Packages of Debian, unpacked into a folder of the repository's own rather than installed: some would bring an mpicc
and an mpirun along. What they need is unpacked too, whatever is installed here: half of an MPI from one place and half
from another do not work together, and what is installed may go. Only what every computer with a compiler has is left
out (`_BASE`)."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from atlas.application import FOLDER, Application
from dryfly.base.errors import RunError

ROOT = FOLDER.parent / ".stamps" / "applications"
PYPI = ROOT / "pypi"  # packages of PyPI for programs in Debian's Python
_RUNNER = "openmpi-bin"  # what starts them natively
_RUNNERS_PROGRAMS = {"orterun", "orted"}
_BASE = ("dpkg", "g++")  # with what they need: libc, the compiler's own libraries
_NOTHING_INSTALLED = ("-o", "Dir::State::status=/dev/null", "-o", "Dir::State::extended_states=/dev/null")


def library_folder() -> Path:
    return next(iter(sorted(ROOT.glob("usr/lib/*-linux-gnu"))), ROOT)


def fetch(applications: Sequence[Application]) -> None:
    """Raises RunError, one sentence."""
    wanted = {package for each in applications for package in each.packages}
    if any(each.packages and each.mpi == "openmpi" for each in applications):
        wanted.add(_RUNNER)
    have = _unpacked()
    for each in applications:
        built = each.program.startswith(".")
        if each.packages and not built and not shutil.which(each.program, path=environment()["PATH"]):
            have.pop(each.packages[0], None)  # a program that nobody had named then
    missing = {name: version for name, version in _needed(sorted(wanted)).items() if have.get(name) != version}
    if not missing:
        return
    ROOT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="dryfly-packages-") as folder:
        os.chmod(folder, 0o755)  # noqa: PTH101 apt's own user reads it
        _apt("download", "-qq", *missing, cwd=folder)
        for archive in sorted(Path(folder).glob("*.deb")):
            subprocess.run(["dpkg", "-x", str(archive), str(ROOT)], check=True)
    _keep_programs_that_are_named()
    _keep_own_python()
    (ROOT / "packages").write_text("".join(f"{name} {version}\n" for name, version in {**have, **missing}.items()))


def version(package: str) -> str:
    return _unpacked().get(package, "")


def environment() -> dict[str, str]:
    """Variables with which the programs work from where they are unpacked."""
    library = library_folder()
    merged = ROOT / "lib" / library.name  # on a system it is the same folder
    folders = [str(folder) for folder in (library, merged, library / "lapack", library / "blas")]
    return {
        "LD_LIBRARY_PATH": ":".join(filter(None, [*folders, os.environ.get("LD_LIBRARY_PATH", "")])),
        "PATH": f"{ROOT / 'usr' / 'bin'}:{os.environ['PATH']}",
    }


def _unpacked() -> dict[str, str]:
    """Versions by package."""
    noted = ROOT / "packages"
    lines = noted.read_text().splitlines() if noted.is_file() else []
    pairs = [line.split() for line in lines]
    return {name: version for name, version in pairs}  # noqa: C416 not of lists


def _needed(packages: list[str]) -> dict[str, str]:
    """Them and what they depend on, but for the base; each by itself, for some exclude each other."""
    base = _closure(*_BASE)
    found: dict[str, str] = {}
    for package in packages:
        found.update(_closure(package))
    return {name: version for name, version in found.items() if name not in base}


@functools.cache  # apt takes two seconds for each, and applications share the base and what they need
def _closure(*packages: str) -> Mapping[str, str]:
    printed = _apt(*_NOTHING_INSTALLED, "install", "-s", "--no-install-recommends", *packages)
    lines = [line.split() for line in printed.splitlines() if line.startswith("Inst ")]
    return {words[1]: next(word for word in words[2:] if word.startswith("("))[1:] for words in lines}


def _apt(*arguments: str, cwd: str | None = None) -> str:
    """Where apt knows nothing of a package its lists may just be old or missing."""
    command = ["apt-get", *arguments]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
        if ended.returncode != 0:
            sudo = [] if os.getuid() == 0 else ["sudo", "-n"]
            subprocess.run([*sudo, "apt-get", "update", "-qq"], capture_output=True, check=False)
            ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    except OSError as error:
        raise RunError(f"apt-get cannot be executed: {error.strerror}", exit_status=1) from None
    if ended.returncode != 0:
        said = [line for line in ended.stderr.splitlines() if line.startswith("E:")] or ["E: no reason given"]
        raise RunError(f"apt-get {' '.join(arguments)}: {said[0][2:].strip()}", exit_status=1)
    return ended.stdout


def _keep_own_python() -> None:
    """NWChem has a Python inside. The library of it that was unpacked would be taken, by LD_LIBRARY_PATH, in place of
    the one that this process and dryfly run on, where that has the same name; so it is that one."""
    own = Path(sysconfig.get_config_var("LIBDIR")) / sysconfig.get_config_var("INSTSONAME")
    unpacked = library_folder() / own.name
    if own.is_file() and unpacked.is_file():
        unpacked.unlink()
        unpacked.symlink_to(own)


def _keep_programs_that_are_named() -> None:
    """By an application. Quantum ESPRESSO alone has 280 MB of others, and a second perl on PATH would be in the way."""
    named = set(_RUNNERS_PROGRAMS)
    for path in FOLDER.glob("*/application.toml"):
        named |= set(re.findall(r"[\w.+-]+", path.read_text(encoding="utf-8")))
    for path in (ROOT / "usr" / "bin").iterdir():
        if path.name not in named:
            path.unlink()
