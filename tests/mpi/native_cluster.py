"""`dryfly validate --native` on four hosts in namespaces (namespaces.py), by mpiexec of both libraries and by Slurm: on
good links it finds nothing, of a slow one the host, and nothing else. Needs root, tc, and for Slurm Debian's slurm-wlm
and munge: `make test-slurm`.

The hosts share this computer's cores, so nothing else should run on it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import namespaces
import pytest
import slurm_cluster
from namespaces import LOGIN, Hosts

from dryfly.mpi import libraries as mpi

# Hosts in namespaces need root and what the kernel may lack; the reason is printed.
pytestmark = pytest.mark.skipif(bool(namespaces.why_not()), reason=namespaces.why_not() or "never")

# Slurm is installed by who runs these (make test-slurm); the other launchers are tested without it.
_NO_SLURM = pytest.mark.skipif(bool(slurm_cluster.why_not()), reason=slurm_cluster.why_not() or "never")
_HOW = ("hydra", "prterun", pytest.param("srun", marks=_NO_SLURM), pytest.param("prterun in Slurm", marks=_NO_SLURM))
_SLOW = "400mbit"  # where the others have what two cores carry, some 4 Gbit/s

_MPICH = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}
_OPENMPI = {
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "PRTE_MCA_hwloc_default_binding_policy": "none",  # or all hosts' first ranks would share a core
    **{f"{name}_ALLOW_RUN_AS_ROOT{more}": "1" for name in ("PRTE", "OMPI") for more in ("", "_CONFIRM")},
}


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with namespaces.running(4) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def slurm(hosts: Hosts) -> Iterator[dict[str, str]]:
    with slurm_cluster.running(hosts) as environment:
        yield environment


@pytest.fixture
def environment(how: str, hosts: Hosts, request: pytest.FixtureRequest) -> dict[str, str]:
    """In which the launcher is the one on PATH, or the job's."""
    library = mpi.select("openmpi" if how.startswith("prterun") else "mpich")
    variables = dict(_OPENMPI if how.startswith("prterun") else _MPICH)
    variables["PATH"] = f"{library.prefix}/bin:{os.environ['PATH']}"
    if how in ("srun", "prterun in Slurm"):
        slurm: Mapping[str, str] = request.getfixturevalue("slurm")
        return {**variables, "SLURM_CONF": slurm["SLURM_CONF"], "SLURM_MPI_TYPE": "pmi2"}
    agent = str(hosts.agent)
    return {**variables, "HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": agent, "PRTE_MCA_plm_ssh_agent": agent}


def _validate(
    how: str, hosts: Hosts, environment: Mapping[str, str], folder: Path, *words: str
) -> tuple[int, dict[str, Any]]:
    """Exit status and report."""
    report = folder / "v.json"
    command = [sys.executable, "-m", "dryfly", "validate", "--native", "--json", str(report), *words]
    if how in ("srun", "prterun in Slurm"):
        command = ["salloc", "--quiet", "--nodes=4", *command]
    else:
        command += ["--hosts", "node[1-4]"]
    if how == "prterun in Slurm":
        command += ["--launcher", "prterun"]
    ended = subprocess.run(
        hosts.on(LOGIN, *command), env={**os.environ, **environment}, cwd=folder, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    return ended.returncode, dict(json.loads(report.read_text(encoding="utf-8")))


@pytest.mark.parametrize("how", _HOW)
def test_on_good_links_nothing_is_found(how: str, hosts: Hosts, environment: dict[str, str], tmp_path: Path) -> None:
    status, report = _validate(how, hosts, environment, tmp_path)
    assert (status, report["findings"]) == (0, [])
    assert report["use"]["slurm"] == "node[1-4]"


@pytest.mark.parametrize("how", _HOW)
def test_a_slow_link_is_found_and_nothing_else(
    how: str, hosts: Hosts, environment: dict[str, str], tmp_path: Path
) -> None:
    hosts.slow_down("node3", _SLOW)
    try:
        status, report = _validate(how, hosts, environment, tmp_path)
    finally:
        hosts.in_order("node3")
    assert status == 1
    assert [(finding["kind"], finding["place"], finding["nodes"]) for finding in report["findings"]] == [
        ("nic", "n2", ["node3"])
    ]
    assert report["exclude"]["nodes"] == ["node3"]


@pytest.mark.parametrize("how", ["hydra"])
def test_a_link_that_got_slower_than_in_a_good_run_is_found_by_its_baseline(
    how: str, hosts: Hosts, environment: dict[str, str], tmp_path: Path
) -> None:
    """Of two hosts neither is the other's peer, so no scatter counts, and none is left to measure suspects with. Their
    memory and cores are this computer's, whoever else uses it."""
    good, limits = tmp_path / "good.json", tmp_path / "limits.toml"
    limits.write_text("[tolerance]\nmemory = 10\ncpu = 10\nloopback = 10\n", encoding="ascii")
    words = ("-N", "2", "--level", "switch", "--limits", str(limits))
    assert _validate(how, hosts, environment, tmp_path, *words)[0] == 0
    (tmp_path / "v.json").rename(good)
    hosts.slow_down("node1", _SLOW)
    try:
        status, report = _validate(how, hosts, environment, tmp_path, *words, "--baseline", str(good))
    finally:
        hosts.in_order("node1")
    assert status == 1
    assert ("nic", "2 of 2") in [(finding["measure"], finding["place"]) for finding in report["findings"]]
