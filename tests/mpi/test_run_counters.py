"""Counters of real jobs: closed forms over a link that replays, conservation, groups, the series of a recorded run."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from conftest import Dryfly, Programs

from dryfly.result import counters, tables

_JOB = ("run", "--machine", "testbed", "--compute", "none")
_STORAGE_MACHINE = Path(__file__).resolve().parents[2] / "docs" / "example" / "storage-machine.toml"
_CODE_WORD_PS = 25_600


def of(nics: list[dict[str, Any]], name: str) -> list[int]:
    return [nic["counters"].get(name, 0) for nic in nics]


def test_a_link_that_always_replays_replays_each_frame_of_a_ping_pong(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    scenario = tmp_path / "replays.toml"
    scenario.write_text('[[replays]]\nlink = "n0"\nrate = 1.0\n', encoding="utf-8")
    program = (programs.micro("pingpong.c"), "bytes=8", "count=20")
    results = dryfly(*_JOB, "-n", "2", "--faults", scenario, "--", *program).succeeded().results
    first, second = results["nics"]
    frames = [
        sum(value for name, value in nic["counters"].items() if name.startswith("hni_tx_ok_"))
        for nic in (first, second)
    ]
    assert first["counters"]["hni_llr_tx_replay_event"] == frames[0]
    assert first["counters"]["hni_llr_rx_replay_event"] == frames[1]
    assert first["counters"]["hni_pcs_uncorrected_cw"] == frames[1]
    assert "hni_llr_tx_replay_event" not in second["counters"]
    code_words = round(results["virtual_time_s"] * 1e12) // _CODE_WORD_PS
    assert second["counters"]["hni_pcs_good_cw"] == code_words
    assert first["counters"]["hni_pcs_good_cw"] == code_words - frames[1]
    assert results["faults"]["link_replays"] == frames[0] + frames[1]


def test_what_is_sent_is_received_and_the_series_adds_up(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    program = (programs.micro("alltoall.c"), "count=3", "bytes=30000")
    results = dryfly(*_JOB, "-n", "8", "--record", folder, "--", *program).succeeded().results
    nics = results["nics"]
    for place in range(8):
        assert sum(of(nics, f"hni_pkts_sent_by_tc_{place}")) == sum(of(nics, f"hni_pkts_recv_by_tc_{place}"))
    assert sum(of(nics, "hni_sts_tx_ok_octets")) == sum(of(nics, "hni_sts_rx_ok_octets")) > 8 * 7 * 3 * 30_000

    table = tables.read(folder, "counters")
    sums: dict[tuple[str, int, str], int] = defaultdict(int)
    for node, nic, name, grown in zip(table["node"], table["nic"], table["counter"], table["grown"], strict=True):
        sums[node, nic, name] += grown
    for nic in nics:
        for name, value in nic["counters"].items():
            # Frames of the last acknowledgements may be under way when the last rank ends.
            slack = 40 if name.startswith(("hni_tx_ok_35", "hni_rx_ok_35")) else 40 * 64 if "octets" in name else 0
            assert abs(sums[nic["node"], nic["index"], name] - value) <= slack, name
    assert len(set(table["time_s"])) > 10
    assert len(set(table["step_s"])) == 1
    ports = tables.read(folder, "switch_ports")
    edge_in = sum(size for size, kind in zip(ports["IfInOctets"], ports["kind"], strict=True) if kind == "edge")
    assert edge_in == sum(value for key, value in sums.items() if key[2] == "hni_sts_tx_ok_octets")
    page = tmp_path / "run.html"
    dryfly("report", folder, "-o", page).succeeded()
    text = page.read_text(encoding="utf-8")
    assert "What the NICs counted" in text
    assert "CxiLinkReliability" in text
    assert "Ports of switches" in text


def test_the_series_is_the_same_in_every_run(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    program = (programs.check("rma_contended.c"),)
    found = []
    for name in ("first", "second"):
        dryfly(*_JOB, "-n", "6", "--record", tmp_path / name, "--", *program).succeeded()
        found.append((tables.read(tmp_path / name, "counters"), tables.read(tmp_path / name, "switch_ports")))
    assert found[0] == found[1]


def test_the_series_is_the_same_beside_storage_too(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    streams = tmp_path / "storage.toml"
    streams.write_text('[[read]]\nrate = "20 GB/s"\ntransfer = "64 KiB"\n', encoding="utf-8")
    job = ("run", "--machine", _STORAGE_MACHINE, "--compute", "none", "-n", "8", "--storage", streams)
    program = (programs.micro("alltoall.c"), "count=3", "bytes=30000")
    plain = dryfly(*job, "--", *program).succeeded()
    found = []
    for name in ("first", "second"):
        recorded = dryfly(*job, "--record", tmp_path / name, "--", *program).succeeded()
        assert recorded.fingerprint == plain.fingerprint
        assert recorded.results["nics"] == plain.results["nics"]
        found.append(tables.read(tmp_path / name, "counters"))
    assert found[0] == found[1]


def test_groups_are_asked_for_as_with_the_real_libraries(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    wanted = tmp_path / "wanted"
    wanted.write_text("CxiLinkReliability\ncxi_opcommands\n", encoding="utf-8")
    environment = {"MPICH_OFI_CXI_COUNTER_REPORT": "5", "MPICH_OFI_CXI_COUNTER_FILE": str(wanted)}
    ended = dryfly(*_JOB, "-n", "2", "--", programs.micro("pingpong.c"), environment=environment).succeeded()
    names = {line.split()[3] for line in ended.stdout.splitlines() if line.startswith("CXI_COUNTER_DATA")}
    assert "hni_pcs_good_cw" in names
    assert "cq_num_idc_cmds_0" in names
    members = (*counters.GROUPS["CxiLinkReliability"], *counters.GROUPS["CxiOpCommands"])
    assert all(counters.is_wanted(name, members) for name in names)
    assert (
        "not modelled, so in no table (docs/model/counters.md): hni_pcs_corrected_cw cq_cq_cmd_counts" in ended.stdout
    )
