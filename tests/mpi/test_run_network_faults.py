"""`dryfly run --faults`: real MPI programs over a network in which something goes wrong."""

from __future__ import annotations

from pathlib import Path

from conftest import Dryfly, Programs

_COMMON = ("run", "--machine", "testbed", "--compute", "none")


def _scenario(folder: Path, text: str) -> Path:
    path = folder / "faults.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_flap_stalls_a_run_by_the_retry_schedule_and_loses_nothing(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    """Down from 10 us to 4 s: missed after 1.07 s, sent in vain, missed again at 2.15 s, sent after 4 s more."""
    flap = _scenario(tmp_path, '[[flap]]\nnode = "t1"\nat = "10 us"\nfor = "4 s"\n')
    command = (*_COMMON, "-n", "2", "--faults", flap, "--", programs.micro("pingpong.c"), "bytes=8", "count=200")
    run = dryfly(*command).succeeded()
    assert 2 * 1.073741824 + 4 < run.results["virtual_time_s"] < 2 * 1.073741824 + 4.01
    assert run.results["network_timeouts"] == 2
    assert run.results["faults"]["packets_lost"] >= 2
    assert run.results["faults"]["transfers_failed"] == 0
    links = run.results["faults"]["links"]
    assert sorted(link["kind"] for link in links) == ["ejection", "injection"]
    assert {(link["state"], link["times_down"], link["down_s"]) for link in links} == {("up", 1, 4.0)}
    assert sum(link["packets_lost"] for link in links) == run.results["faults"]["packets_lost"]
    assert "links    that had trouble: 2 now up; " in run.stderr
    assert "MPICH Slingshot Network Summary: 2 network timeouts" in run.stdout
    assert "Slingshot Network Summary" not in run.stderr  # in a terminal it would be there twice
    assert dryfly(*command).succeeded().fingerprint == run.fingerprint
    plain = dryfly(*_COMMON, "-n", "2", "--", programs.micro("pingpong.c"), "bytes=8", "count=200").succeeded()
    assert plain.results["messages"] == run.results["messages"]
    assert plain.results["network_timeouts"] == 0
    assert "Slingshot Network Summary" not in plain.stdout + plain.stderr


def test_collectives_are_right_through_flaps_of_several_links(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    """The program itself checks every result."""
    flaps = _scenario(
        tmp_path,
        '[[flap]]\nnode = "t1"\nat = "100 us"\n[[flap]]\nlink = "s0-s1"\nat = "20 us"\n'
        '[[flap]]\nlink = "n3"\nat = "200 us"\n[[lanes]]\nlink = "s0-s2"\nlanes = 2\n'
        '[[replays]]\nlink = "all"\nrate = 1e-3\n',
    )
    run = dryfly(*_COMMON, "-n", "6", "--faults", flaps, "--", programs.check("collectives.c")).succeeded()
    assert run.results["network_timeouts"] > 0
    assert run.results["faults"]["link_replays"] > 0
    links = run.results["faults"]["links"]
    assert sum(link["replays"] for link in links) == run.results["faults"]["link_replays"]
    assert {"g0s0>g0s1", "g0s1>g0s0"} <= {link["name"] for link in links if link["down_s"] > 0}
    assert {"g0s0>g0s2", "g0s2>g0s0"} == {link["name"] for link in links if link["fewer_lanes_s"] > 0}


def test_a_rank_that_cannot_be_reached_ends_the_job_and_is_named(
    dryfly: Dryfly, programs: Programs, tmp_path: Path
) -> None:
    loss = _scenario(tmp_path, '[[loss]]\nnode = "t1"\nat = "10 us"\n')
    for size in ("bytes=8", "bytes=100000"):
        run = dryfly(*_COMMON, "-n", "2", "--faults", loss, "--", programs.micro("pingpong.c"), size)
        assert run.exit_status not in (0, 2, 3), run.stderr
        assert "No route to host" in run.stderr
        assert "has given up: nothing gets through to rank" in run.stderr


def test_a_link_that_is_not_there_is_refused(dryfly: Dryfly, programs: Programs, tmp_path: Path) -> None:
    nowhere = _scenario(tmp_path, '[[flap]]\nlink = "n0-n1"\nat = "1 s"\n')
    run = dryfly(*_COMMON, "-n", "2", "--faults", nowhere, "--", programs.micro("pingpong.c"))
    assert run.exit_status == 2
    assert "`n0-n1`: no link leads from one to the other" in run.stderr
