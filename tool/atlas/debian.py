"""Packages of Debian, unpacked into a folder of the repository's own rather than installed: some would bring an mpicc
and an mpirun along. What they need and this computer has not is unpacked too."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from atlas.application import FOLDER, Application
from dryfly.base.errors import RunError

ROOT = FOLDER.parent / ".stamps" / "applications"
_RUNNER = "openmpi-bin"  # what starts them natively
_KEPT_BYTES = 1 << 20


def library_folder() -> Path:
    return next(iter(sorted(ROOT.glob("usr/lib/*-linux-gnu"))), ROOT)


def fetch(applications: Sequence[Application]) -> None:
    """Raises RunError, one sentence."""
    wanted = {package for each in applications for package in each.packages}
    if any(each.packages and each.mpi == "openmpi" for each in applications):
        wanted.add(_RUNNER)
    have = _unpacked()
    for each in applications:
        if each.packages and not shutil.which(each.program, path=environment()["PATH"]) and not each.prepare:
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
    _drop_what_is_large()
    (ROOT / "packages").write_text("".join(f"{name} {version}\n" for name, version in {**have, **missing}.items()))


def version(package: str) -> str:
    return _unpacked().get(package, "")


def environment() -> dict[str, str]:
    """Variables with which the programs work from where they are unpacked."""
    library = library_folder()
    folders = [str(folder) for folder in (library, library / "lapack", library / "blas")]
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
    """Them and what they depend on, but for what is installed; each by itself, for some exclude each other."""
    found: dict[str, str] = {}
    for package in packages:
        printed = _apt("install", "-s", "--no-install-recommends", package)
        lines = [line.split() for line in printed.splitlines() if line.startswith("Inst ")]
        found |= {words[1]: next(word for word in words[2:] if word.startswith("("))[1:] for words in lines}
    return found


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


def _drop_what_is_large() -> None:
    """Quantum ESPRESSO alone has 280 MB of programs: those that no application names go."""
    text = " ".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*/application.toml"))
    for path in (ROOT / "usr" / "bin").iterdir():
        if path.is_file() and not path.is_symlink() and path.stat().st_size > _KEPT_BYTES and path.name not in text:
            path.unlink()
