"""The launchers of real clusters, and the words by which each starts ranks: so many on each of these hosts, one host
after the other.

`dryfly run --launcher` has words of its own (mpi/launchers.py): there all ranks are on this computer.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.binding import advice
from dryfly.binding.advice import Advice
from dryfly.machine.machine import Machine
from dryfly.machine.node import node_of
from dryfly.validate import LAUNCHERS

_FAMILY = {"hydra": "mpich", "prterun": "openmpi"}
_MPIEXEC = {"hydra": "MPICH's mpiexec", "prterun": "Open MPI's mpiexec", "pals": "PALS' mpiexec"}
_GOOD_BINDING = {"hydra": "MPICH's mpiexec", "srun": "srun", "pals": "PALS' mpiexec"}  # the name in advice.commands


@dataclass(frozen=True, kw_only=True)
class Launcher:
    name: str
    path: str
    version: str = ""
    options: tuple[str, ...] = ()  # words of the user's for it

    def words(self, hosts: Sequence[str], ppn: int, folder: Path, binding: Sequence[str] = ()) -> list[str]:
        """What stands before the program: without `binding` where the user's words bind. A file with the hosts is
        written to `folder` where one is needed."""
        own = _WORDS[self.name](hosts, ppn, folder / "hosts")
        return [self.path, *own, *(() if self.binds else binding), *self.options]

    @property
    def binds(self) -> bool:
        """By the user's words."""
        return any("bind" in word for word in self.options)


def find(name: str | None, prefix: Path | None = None, environment: Mapping[str, str] = os.environ) -> Launcher:
    """`name`: None: the job's, or the mpiexec on PATH. `prefix`: of the MPI library to be used, if one was asked for.
    Raises UserError where it is not there."""
    if name is not None and name not in LAUNCHERS:
        raise UserError(f"--launcher {name}: accepted is {', '.join(LAUNCHERS)}")
    if name in ("srun", "flux"):
        return _on_path(name)
    if name is None and prefix is None:
        if "SLURM_JOB_ID" in environment and shutil.which("srun"):
            return _on_path("srun")
        if "FLUX_URI" in environment and shutil.which("flux"):
            return _on_path("flux")
    return _mpiexec(name, prefix)


def _on_path(name: str) -> Launcher:
    path = shutil.which(name)
    if path is None:
        raise UserError(f"--launcher {name}: {name} is not found on PATH")
    return Launcher(name=name, path=path)


def _mpiexec(name: str | None, prefix: Path | None) -> Launcher:
    """mpiexec says itself whose it is."""
    asked = "--native" if name is None else f"--launcher {name}"
    folder = os.environ.get("PATH", os.defpath) if prefix is None else str(prefix / "bin")
    tried: list[str] = []
    for program in ("mpiexec", "mpiexec.hydra", "prterun", "mpirun"):
        path = shutil.which(program, path=folder)
        if path is None:
            continue
        launcher = _identified(path)
        if launcher is not None and name in (None, launcher.name):
            return launcher
        tried.append(f"{path} is {'of no kind that is known' if launcher is None else _MPIEXEC[launcher.name]}")
    others = "" if name is not None or shutil.which("srun") is None else "; Slurm's is there: --launcher srun"
    if tried:
        accepted = f"accepted is {', '.join(LAUNCHERS)}" if name is None else f"accepted is that of {name}"
        raise UserError(f"{asked}: {tried[0]}; {accepted}{others}")
    where = "on PATH" if prefix is None else f"in {folder}"
    raise UserError(f"{asked}: there is no mpiexec {where}{others}")


def _identified(path: str) -> Launcher | None:
    try:
        command = [path, "--version"]
        asked = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = asked.stdout + asked.stderr
    version = re.search(r"\d+\.\d[\w.]*", said)
    found = Launcher(name="hydra", path=path, version=version[0] if version else "")
    if "HYDRA" in said:
        return found
    if re.search(r"Open MPI|OpenRTE|PRRTE|PRTE", said, re.IGNORECASE):
        return replace(found, name="prterun")
    if re.search(r"\bpals\b", said, re.IGNORECASE) or "pals" in Path(path).resolve().parts:
        return replace(found, name="pals")
    return None


def _hydra(hosts: Sequence[str], ppn: int, file: Path) -> list[str]:
    file.write_text("".join(f"{host}:{ppn}\n" for host in hosts), encoding="utf-8")
    return ["-f", str(file), "-ppn", str(ppn), "-n", str(ppn * len(hosts))]


def _prterun(hosts: Sequence[str], ppn: int, file: Path) -> list[str]:
    file.write_text("".join(f"{host} slots={ppn}\n" for host in hosts), encoding="utf-8")
    return ["--hostfile", str(file), "--map-by", f"ppr:{ppn}:node", "-n", str(ppn * len(hosts))]


def _srun(hosts: Sequence[str], ppn: int, file: Path) -> list[str]:
    """By itself srun has the hosts in an order of its own."""
    file.write_text("".join(f"{host}\n" for host in hosts for _ in range(ppn)), encoding="utf-8")
    words = [f"--nodes={len(hosts)}", f"--ntasks={ppn * len(hosts)}", f"--nodelist={file}", "--distribution=arbitrary"]
    words += ["--overcommit", "--kill-on-bad-exit=1", "--input=none", "--unbuffered"]
    return words + (["--overlap"] if "SLURM_JOB_ID" in os.environ else ["--job-name=dryfly"])


def _pals(hosts: Sequence[str], ppn: int, file: Path) -> list[str]:
    file.write_text("".join(f"{host}\n" for host in hosts), encoding="utf-8")
    return ["--hostfile", str(file), "--ppn", str(ppn), "-n", str(ppn * len(hosts))]


def _flux(hosts: Sequence[str], ppn: int, _file: Path) -> list[str]:
    words = [f"--nodes={len(hosts)}", f"--ntasks={ppn * len(hosts)}", f"--requires=hosts:{','.join(hosts)}"]
    return ["run", *words]


_WORDS: dict[str, Callable[[Sequence[str], int, Path], list[str]]] = {
    "hydra": _hydra, "prterun": _prterun, "srun": _srun, "pals": _pals, "flux": _flux
}  # fmt: skip


def good_binding(launcher: Launcher, machine: Machine, *, nics: int, ppn: int) -> list[str]:
    """The words by which ranks are bound well to nodes of a machine, in the order of its NICs, for the first ranks of a
    node measure its first NIC. None where the launcher has no such words. Raises UserError where there are more ranks
    than cores."""
    if launcher.name not in _GOOD_BINDING:
        return []
    good = _good(machine, nics, ppn)
    words = shlex.split(advice.commands(good)[_GOOD_BINDING[launcher.name]])
    first = next(place for place, word in enumerate(words) if "bind" in word)
    return _without_gpus(words[first:])


def bound_to(launcher: Launcher, machine: Machine, *, nics: int, ppn: int) -> frozenset[int]:
    """The hardware threads that good_binding has ranks on; none where it is not used. Raises UserError."""
    if launcher.name not in _GOOD_BINDING or launcher.binds:
        return frozenset()
    return frozenset().union(*(each.processors or () for each in _good(machine, nics, ppn).bindings))


def _good(machine: Machine, nics: int, ppn: int) -> Advice:
    good = advice.good(node_of(machine, nics=nics), ranks=ppn)
    return replace(good, bindings=tuple(sorted(good.bindings, key=lambda each: each.nic or 0)))


def _without_gpus(words: Sequence[str]) -> list[str]:
    """What is measured is in the host's memory."""
    places = [place for place, word in enumerate(words) if word.startswith("--gpu-bind")]
    return list(words[: places[0]]) if places else list(words)


def family(launcher: Launcher) -> str | None:
    """Of the MPI libraries whose ranks it starts; None: of any."""
    return _FAMILY.get(launcher.name)
