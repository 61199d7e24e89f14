"""Real jobs under a CXI service (docs/model/services.md): what it does not grant is refused as on the machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Dryfly, Programs
from harness import Ended

_COMMON = ("run", "--machine", "testbed", "--compute", "none")
_TOTALS = {"ACs": 1022, "CTs": 2047, "EQs": 2047, "LEs": 16384, "PTEs": 2048, "TGQs": 512, "TXQs": 1024}


def _service(folder: Path, text: str) -> Path:
    path = folder / "service.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def _limits(**fewer: int) -> str:
    limits = "".join(f"  - name: {name}\n    max: {most}\n    res: 0\n" for name, most in {**_TOTALS, **fewer}.items())
    return f"resource_limits: 1\nlimits:\n{limits}  - name: TLEs\n    max: 512\n    res: 512\n"


def _classes(ended: Ended) -> list[str]:
    return [row["class"] for row in ended.results["traffic_classes"] if row["packets"] > 0]


def test_a_service_that_grants_what_the_job_wants_changes_nothing(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    command = ("-n", "4", "--", programs.micro("pingpong.c"))
    service = _service(tmp_path, f"restricted_tcs: 1\ntcs:\n  tc: BEST_EFFORT\nvnis:\n  vni: 1024\n{_limits()}")
    run = dryfly(*_COMMON, "--service", service, *command).succeeded()
    assert run.fingerprint == dryfly(*_COMMON, *command).succeeded().fingerprint
    assert not [row for row in run.results["health"] if row["name"] == "service_class"]


def test_a_class_that_is_not_granted_travels_as_best_effort_and_is_named(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    service = _service(tmp_path, "restricted_tcs: 1\ntcs:\n  tc: BULK_DATA\n  tc: BEST_EFFORT\n")
    command = (*_COMMON, "-n", "2", "--service", service, "--", programs.micro("pingpong.c"))
    refused = dryfly(*command, environment={"MPICH_OFI_DEFAULT_TCLASS": "TC_LOW_LATENCY"}).succeeded()
    assert _classes(refused) == ["best_effort"]
    assert "the job's service does not grant low_latency, which 2 ranks asked for" in refused.stderr
    granted = dryfly(*command, environment={"MPICH_OFI_DEFAULT_TCLASS": "TC_BULK_DATA"}).succeeded()
    assert _classes(granted) == ["bulk_data"]
    assert "service_class" not in granted.stderr


def test_a_job_without_any_class_or_vni_ends_in_the_librarys_own_words(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    program = ("--", programs.micro("pingpong.c"))
    command = (*_COMMON, "-n", "2", "--service")
    log = {"DRYFLY_LOG": "1"}
    no_class = _service(tmp_path, "restricted_tcs: 1\ntcs:\n  tc: LOW_LATENCY\n")
    run = dryfly(*command, no_class, *program, environment=log)
    assert run.exit_status not in (0, 2)
    assert "Invalid argument" in run.stderr + run.stdout
    assert "Failed to allocate CP, ret: -22" in run.stderr
    assert run.stderr.count("neither the class BEST_EFFORT nor BEST_EFFORT") == 0
    assert run.stderr.count("the job's service (--service) does not grant the class BEST_EFFORT: granted is LOW_") == 1
    vni = _service(tmp_path, "vnis:\n  vni: 1024\n  vni: 1025\n")
    run = dryfly(*command, vni, *program, environment={**log, "SLINGSHOT_VNIS": "99"})
    assert run.exit_status not in (0, 2)
    assert "Invalid argument" in run.stderr + run.stdout
    assert "VNI: 99" in run.stderr
    assert run.stderr.count("does not grant the VNI 99 of SLINGSHOT_VNIS=99: granted is 1024 and 1025; fi_enable") == 1
    assert dryfly(*command, vni, *program, environment={"SLINGSHOT_VNIS": "1025"}).exit_status == 0
    run = dryfly(*command, vni, *program, environment={**log, "SLINGSHOT_SVC_IDS": "7"})
    assert run.exit_status not in (0, 2)
    assert "cxil_get_svc with svc_id 7 failed" in run.stderr
    assert run.stderr.count("the service 7 of SLINGSHOT_SVC_IDS=7 is not the job's: accepted is 2 (svc_id of") == 1


@pytest.mark.parametrize("value", ["abc", "0", "70000", "1024;1025"])
def test_what_is_no_vni_is_refused_before_the_start_and_in_a_rank(
    value: str, dryfly: Dryfly, programs: Programs
) -> None:
    program = programs.micro("pingpong.c")
    sentence = f"SLINGSHOT_VNIS={value}: accepted is VNIs with commas, each of 1 to 65535, such as 1024,1025"
    inherited = dryfly(*_COMMON, "-n", "2", "--", program, environment={"SLINGSHOT_VNIS": value})
    assert (inherited.exit_status, inherited.stderr) == (2, f"dryfly: {sentence}\n")
    of_rank = dryfly(*_COMMON, "-n", "2", "--", "env", f"SLINGSHOT_VNIS={value}", program)
    assert of_rank.exit_status == 2
    assert of_rank.stderr.count(sentence) == 1


def test_a_limit_counts_the_ranks_of_a_nic_together(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    """Four event queues for each end-point: two ranks on a NIC need eight."""
    service = _service(tmp_path, _limits(EQs=7))
    program = ("--on-node", "provider", "--service", service, "--", programs.micro("pingpong.c"))
    assert dryfly(*_COMMON, "-N", "2", "--ppn", "1", *program).exit_status == 0
    run = dryfly(*_COMMON, "-N", "2", "--ppn", "2", *program, environment={"DRYFLY_LOG": "1"})
    assert run.exit_status not in (0, 2)
    assert "No space left on device" in run.stderr + run.stdout
    assert "Failed to allocated EQ" in run.stderr
    assert run.stderr.count("the job's service (--service) grants 7 event queues (EQs) of a NIC to the ranks of a") == 1


def test_few_list_entries_of_the_service_are_few_of_each_engine(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    """Unexpected messages of a flood find no entry: flow control, as where a NIC has no more."""
    command = ("-n", "2", "--", programs.micro("unexpected.c"))
    run = dryfly(*_COMMON, "--service", _service(tmp_path, _limits(LEs=64)), *command)
    refused = sum(count for name, count in run.results.get("matching", {}).items() if name.startswith("flow_control"))
    assert refused > 0 or "LE resources not recovered during flow control" in run.stderr
    plain = dryfly(*_COMMON, *command).succeeded()
    assert not [row for row in plain.results["health"] if row["name"] == "flow_control"]


def test_a_description_that_cannot_be_is_refused(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    service = _service(tmp_path, "restricted_tcs: 1\ntcs:\n  tc: FAST\n")
    run = dryfly(*_COMMON, "-n", "2", "--service", service, "--", programs.micro("pingpong.c"))
    assert run.exit_status == 2
    assert "tcs: FAST: accepted are DEDICATED_ACCESS, LOW_LATENCY, BULK_DATA, BEST_EFFORT" in run.stderr
