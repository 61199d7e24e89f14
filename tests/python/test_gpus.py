"""What ranks are told of the GPUs of their node, and what of it is refused."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from click.testing import CliRunner

from dryfly.base.errors import UserError
from dryfly.binding.ranks import RankBinding
from dryfly.case import gpus, hwloc
from dryfly.cli.main import cli
from dryfly.machine import gpus as gpus_of_node
from dryfly.machine.gpu_links import links_of
from dryfly.machine.load import load
from dryfly.machine.spec_fields import problems


def _links(text: str, *, count: int) -> list[list[int]] | None:
    return links_of(load("frontier", sets=[f"node.gpu_links={text}"]), gpus=count)


def test_a_pair_without_a_link_has_those_of_the_widest_of_the_shortest_ways() -> None:
    # 0 to 3 over 1 (4 and 2 links) or over 2 (1 and 9); 0 to 4 in three hops at least.
    found = _links("0-1:4, 1-3:2, 0-2:1, 2-3:9, 3-4:3", count=5)
    assert found is not None
    assert found[0] == [0, 4, 1, 2, 2]
    assert all(found[one][other] == found[other][one] for one in range(5) for other in range(5))


def test_frontier_has_four_links_in_a_package_and_up_to_two_between_packages() -> None:
    found = links_of(load("frontier"), gpus=8)
    assert found is not None
    assert [found[gpu][gpu + 1] for gpu in (0, 2, 4, 6)] == [4] * 4
    assert {links for one, row in enumerate(found) for other, links in enumerate(row) if one // 2 != other // 2} == {
        1,
        2,
    }


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0-1", 'node.gpu_links = "0-1": accepted is a list such as "0-1:4, 1-2:1"'),
        ("0-1:4,", 'node.gpu_links = "": accepted is a list'),
        ("0-1:10", 'node.gpu_links = "0-1:10": accepted is a list'),
        ("0-1:0", 'node.gpu_links = "0-1:0": accepted is a list'),
        ("0-8:1", 'node.gpu_links = "0-8:1": accepted are two of the GPUs 0 to 7 of node.gpu_numa'),
        ("3-3:1", 'node.gpu_links = "3-3:1": accepted are two of the GPUs 0 to 7 of node.gpu_numa'),
        ("0-1:4, 1-0:4", 'node.gpu_links = "1-0:4": accepted is each pair of GPUs once'),
        ("0-1:4", "accepted are links that join all GPUs, but none leads from 0 to 2"),
    ],
)
def test_links_that_cannot_be_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        gpus.description(load("frontier", sets=[f"node.gpu_links={text}"]))
    assert str(caught.value).startswith("machine frontier: node.gpu_links")
    assert sentence in str(caught.value)


def test_a_number_that_the_runtime_needs_is_asked_for() -> None:
    without = [f"node.gpu_numa={', '.join('0' * 17)}"]
    with pytest.raises(UserError, match=r"node\.gpu_numa lists 17 GPUs: accepted is 1 to 16"):
        gpus.description(load("perlmutter-gpu", sets=without))


def test_a_capability_is_a_number_and_ranks_are_told_of_it() -> None:
    words = (gpus.description(load("perlmutter-gpu")) or "").split()
    assert {"capability=80", "multiprocessors=108"} <= set(words)
    with pytest.raises(UserError, match=r'node\.gpu_capability is "sm_80": accepted is a number such as "8\.0"'):
        gpus.description(load("perlmutter-gpu", sets=["node.gpu_capability=sm_80"]))


def test_ranks_are_told_of_the_runtime_and_of_each_pair() -> None:
    words = dict(word.split("=") for word in str(gpus.description(load("crusher"))).split())
    assert words["runtime"] == "hip"
    assert int(words["devices"]) == 8
    rows = [words["links"][at:end] for at, end in pairwise(range(0, 65, 8))]
    assert [row[gpu] for gpu, row in enumerate(rows)] == ["0"] * 8
    assert "links" not in str(gpus.description(load("perlmutter-gpu")))
    assert gpus.description(load("testbed")) is None


def test_tiles_are_devices_of_level_zero() -> None:
    words = dict(word.split("=") for word in str(gpus.description(load("aurora"))).split())
    assert (words["runtime"], words["devices"], words["tiles"]) == ("level-zero", "12", "2")
    assert (words["memory"], words["memory_rate"]) == (str(64 * 2**30), str(10**12))
    assert int(words["tile_rate"]) > int(words["peer_rate"])
    lines = dict(line.split() for line in gpus.spec_lines(load("aurora")).splitlines())
    assert lines["node.gpus"] == "12"
    rates = [lines[f"node.gpu_copy.{pair}.bytes_per_s"] for pair in ("1.2", "2.3", "11.12", "0.12")]
    assert rates == [words["tile_rate"], words["peer_rate"], words["tile_rate"], words["link_rate"]]


def test_the_spec_says_what_a_copy_carries_from_each_place_to_each() -> None:
    words = dict(line.split() for line in gpus.spec_lines(load("crusher")).splitlines())
    assert words["node.gpus"] == "8"
    assert (words["node.gpu_copy_ps"], words["node.gpu_local_ps"]) == ("14200000", "8200000")
    rate = {key: int(words[f"node.gpu_copy.{key}.bytes_per_s"]) for key in ("0.8", "1.2", "1.7", "1.4", "5.5")}
    assert rate == {"0.8": 36 * 10**9, "1.2": 154 * 10**9, "1.7": 77 * 10**9, "1.4": 385 * 10**8, "5.5": 8192 * 10**8}
    assert words["node.gpu_link_bytes_per_s"] == str(36 * 10**9)
    assert [words[f"node.nic.{nic}.gpu"] for nic in range(4)] == ["1", "3", "5", "7"]
    assert len(words) == 3 + 1 + 4 + 8 + 8 * 9 // 2
    assert problems(gpus.spec_lines(load("crusher"))) == []
    assert gpus.spec_lines(load("testbed")) == ""


def test_nics_have_a_gpus_link_as_it_is_and_copies_what_they_reach_of_it() -> None:
    words = dict(line.split() for line in gpus.spec_lines(load("perlmutter-gpu")).splitlines())
    assert words["node.gpu_link_bytes_per_s"] == str(315 * 10**8)
    assert words["node.gpu_copy.0.1.bytes_per_s"] == str(27 * 10**9)
    assert not any(word.startswith("node.nic.") for word in words)


def test_gpus_that_no_program_finds_are_skeletons_gpus() -> None:
    numbers = {"rate": "60 GB/s", "peer_rate": "100 GB/s", "copy_latency": "3 us", "copy_step": "2 us"}
    numbers |= {"numa": "0, 0", "local_latency": "4 us", "local_step": "4 us"}
    sets = [f"node.gpu_{field}={value}" for field, value in numbers.items()]
    machine = load("testbed", sets=[*sets, "compute.gpu.memory_rate=2 TB/s"])
    assert gpus.spec_lines(machine) == ""
    words = dict(line.split() for line in gpus.spec_lines(machine, of_skeletons=True).splitlines())
    assert (words["node.gpus"], words["node.gpu_copy.1.2.bytes_per_s"]) == ("2", str(10**11))


def test_programs_on_alps_find_four_gh200() -> None:
    """Of 96,768 MiB each, links of 150 GB/s between each two, and of 450 to Grace, by which NICs reach them."""
    words = dict(word.split("=") for word in str(gpus.description(load("alps"))).split())
    assert (words["runtime"], words["devices"], words["capability"], words["multiprocessors"]) == (
        "cuda",
        "4",
        "90",
        "132",
    )
    assert int(words["memory"]) == 96768 * 2**20
    lines = dict(line.split() for line in gpus.spec_lines(load("alps")).splitlines())
    assert lines["node.gpu_link_bytes_per_s"] == str(450 * 10**9)
    assert lines["node.gpu_copy.1.4.bytes_per_s"] == str(150 * 10**9)
    assert not any(word.startswith("node.nic.") for word in lines)


@pytest.mark.parametrize("value", ["0, 2, 4", "0, 2, 4, 8", "0, 2, 4, -1", "0, 2, 4, x"])
def test_each_nic_hangs_off_a_gpu_of_the_node(value: str) -> None:
    machine = load("frontier", sets=[f"node.nic_gpu={value}"])
    with pytest.raises(UserError, match=r"node\.nic_gpu = .*: accepted is a GPU of 0 to 7 for each of 4 NICs"):
        gpus.spec_lines(machine)


def _shown(*words: str) -> str:
    ended = CliRunner().invoke(cli, ["gpu", *words])
    assert ended.exit_code == 0
    return ended.stdout


@pytest.mark.parametrize(
    ("machine", "bound", "mask"),
    [
        ("perlmutter-gpu", ("2",), "CUDA_VISIBLE_DEVICES=2"),
        ("perlmutter-gpu", ("1", "3"), "CUDA_VISIBLE_DEVICES=1,3"),
        ("frontier", ("6.0",), "ROCR_VISIBLE_DEVICES=6"),
        ("frontier", None, None),
        ("aurora", ("2.1",), "ZE_AFFINITY_MASK=5"),
        ("aurora", ("2", "0.0"), "ZE_AFFINITY_MASK=4,5,0"),
    ],
)
def test_the_mask_of_a_rank_has_its_gpus(machine: str, bound: tuple[str, ...] | None, mask: str | None) -> None:
    assert gpus.mask(load(machine), RankBinding(gpus=bound)) == mask


def test_a_mask_of_gpus_names_gpus_and_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZE_FLAT_DEVICE_HIERARCHY", "COMPOSITE")
    assert gpus.mask(load("aurora"), RankBinding(gpus=("2.1", "4"))) == "ZE_AFFINITY_MASK=2.1,4"


def test_dryfly_gpu_shows_where_gpus_are_and_who_says_what() -> None:
    lines = [line.split() for line in _shown("perlmutter-gpu").splitlines()]
    assert ["0", "3", "0", "-", "3", "2000:01:00.0"] in lines
    peer = "node.gpu_peer_rate 100 GB/s M of a link between two GPUs of a node, each way: NERSC - four links"
    assert any(" ".join(line).startswith(peer) for line in lines)


def test_dryfly_gpu_shows_what_each_pair_has() -> None:
    rows = [line.split() for line in _shown("frontier").splitlines()]
    assert ["0", "-", "154", "38.5", "38.5", "38.5", "38.5", "77", "77"] in rows


def test_what_dryfly_gpu_writes_is_what_it_shows() -> None:
    told = json.loads(_shown("frontier", "--json", "-", "--set", "node.gpu_rate=40 GB/s"))
    assert told["runtime"] == "hip"
    assert told["links"] == links_of(load("frontier"), gpus=8)
    assert told["gpus"][2] == {"gpu": 2, "domain": 1, "socket": 0, "l3": 2, "nics": [1], "pci": "2000:03:00.0"}
    assert told["facts"]["node.gpu_rate"]["value"] == 40 * 10**9


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("testbed",), "testbed: its nodes have no GPUs"),
        (
            ("testbed", "--set", "node.gpu_numa=0, 0"),
            "testbed: 2 GPUs a node; no program finds one, for it names no runtime",
        ),
    ],
)
def test_dryfly_gpu_says_why_a_program_finds_no_gpu(words: tuple[str, ...], sentence: str) -> None:
    assert _shown(*words).startswith(sentence)


def test_hwloc_has_gpus_at_the_addresses_that_are_shown() -> None:
    seen = hwloc.xml(load("frontier"))
    assert all(f'pci_busid="{gpus_of_node.pci_address(gpu)}"' in seen for gpu in range(8))
