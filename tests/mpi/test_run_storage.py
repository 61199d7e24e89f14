"""`dryfly run --storage`: traffic to and from storage groups beside real MPI programs."""

from __future__ import annotations

from pathlib import Path

from conftest import Dryfly, Programs

_MACHINE = Path(__file__).resolve().parents[2] / "docs" / "example" / "storage-machine.toml"
_COMMON = ("run", "--machine", _MACHINE, "--compute", "none")


def _file(folder: Path, text: str) -> Path:
    path = folder / "storage.toml"
    path.write_text(text, encoding="utf-8")
    return path


def _alltoall_us(stdout: str) -> float:
    return float(stdout.rsplit(":", 1)[1].split()[0])


def test_an_alltoall_is_slower_beside_reads_and_writes_and_the_same_each_time(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    streams = _file(
        tmp_path,
        '[[read]]\nrate = "20 GB/s"\ntransfer = "64 KiB"\n[[write]]\nrate = "20 GB/s"\ntransfer = "64 KiB"\n',
    )
    program = ("--", programs.micro("alltoall.c"), "bytes=262144")
    alone = dryfly(*_COMMON, "-n", "8", *program).succeeded()
    beside = dryfly(*_COMMON, "-n", "8", "--storage", streams, *program).succeeded()
    # Reads alone ask for 20 of the 24 GB/s of each link, the alltoall for all of it.
    assert _alltoall_us(beside.stdout) > 1.8 * _alltoall_us(alone.stdout)
    assert beside.results["messages"] == alone.results["messages"]
    assert alone.results["storage"] == []
    read, write = beside.results["storage"]
    assert (read["direction"], write["direction"]) == ("read", "write")
    assert read["bytes"] == read["operations"] * 65536 > 0
    assert 0 < read["latency_mean_s"] <= read["latency_max_s"]
    assert write["bytes_per_s"] < write["rate_bytes_per_s"] == 160e9
    # A frame of 2112 B that a client sends answers a Get of a server, which the alltoall's puts do not.
    assert all(nic["counters"]["hni_pkts_sent_by_tc_1"] > 0 for nic in beside.results["nics"])
    assert len(beside.results["nics"]) == 8  # the servers' are not the job's
    assert dryfly(*_COMMON, "-n", "8", "--storage", streams, *program).succeeded().fingerprint == beside.fingerprint


def test_other_traffic_does_not_hide_a_deadlock(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    """Streams with pauses of a second too, during which the job must not be carried along."""
    for rate in ("20 GB/s", "64 kB/s"):
        streams = _file(tmp_path, f'[[write]]\nrate = "{rate}"\ntransfer = "64 KiB"\nnodes = "all"\n')
        run = dryfly(*_COMMON, "-n", "3", "--storage", streams, "--", programs.check("fault.c"), "deadlock")
        assert run.exit_status == 3, run.stderr
        assert "every rank waits" in run.stderr


def test_time_outs_are_counted_at_the_nic_that_had_them(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    """A message of one and the answer of the other are lost; storage goes on while they wait for 1.07 s."""
    streams = _file(tmp_path, '[[read]]\nnodes = ["t9"]\nrate = "10 MB/s"\ntransfer = "64 KiB"\n')
    flap = tmp_path / "faults.toml"
    flap.write_text('[[flap]]\nnode = "t1"\nat = "20 us"\nfor = "1 ms"\n')
    program = ("--", programs.micro("pingpong.c"), "bytes=8", "count=200")
    run = dryfly(*_COMMON, "-n", "2", "--faults", flap, "--storage", streams, *program).succeeded()
    assert [nic["network_timeouts"] for nic in run.results["nics"]] == [1, 1]
    assert run.results["network_timeouts"] == 2
    for nic in run.results["nics"]:
        assert nic["counters"]["pct_sct_timeouts"] == nic["counters"]["rh:sct_timeouts"] == 1  # of an ordered flow
    assert 1.073741824 < run.results["virtual_time_s"] < 1.08
    # 10 MB/s are 152.6 times 64 KiB in a second.
    assert 160 < run.results["storage"][0]["operations"] <= 165


def test_bad_input_is_one_sentence_before_anything_starts(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    program = ("--", programs.micro("alltoall.c"))
    streams = _file(tmp_path, '[[read]]\nrate = "50 GB/s"\n')
    run = dryfly(*_COMMON, "-n", "2", "--storage", streams, *program)
    assert run.exit_status == 2
    assert "what the NICs of a node carry" in run.stderr
    run = dryfly("run", "--machine", "testbed", "-n", "2", "--storage", streams, *program)
    assert run.exit_status == 2
    assert "machine testbed has no storage groups" in run.stderr


def test_a_drain_of_what_a_rank_hangs_on_is_refused(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    """t2 is the first of two nodes on switch s1; on the last switch, s23, no rank hangs."""
    drain = tmp_path / "drain.toml"
    for place, taken in (('switch = "s1"', True), ('switch = "s23"', False)):
        drain.write_text(f'[[drain]]\n{place}\nat = "0 s"\n')
        run = dryfly(*_COMMON, "-n", "3", "--faults", drain, "--", programs.micro("pingpong.c"), "bytes=8")
        assert run.exit_status == (2 if taken else 0), run.stderr
        assert ("takes out NIC n2 of rank 2" in run.stderr) == taken
