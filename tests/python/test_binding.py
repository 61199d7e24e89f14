"""Forms of launchers and what they mean on a node, what is refused, doubts, and what `dryfly bind` advises."""

from __future__ import annotations

import pytest

from dryfly.base.errors import UserError
from dryfly.binding import advice, doubts, sets
from dryfly.binding.ranks import RankBinding, Wishes, bind, node_words
from dryfly.machine.load import load, shipped_machines
from dryfly.machine.node import Node, most_nics, node_of


def node(name: str, *sets_of: str) -> Node:
    machine = load(name, sets=sets_of)
    return node_of(machine, nics=most_nics(machine))


def cpus(name: str, form: str | None, *, ranks: int, depth: int | None = None) -> list[str]:
    found = bind(Wishes(cpu=form, depth=depth), node(name), ranks=ranks)
    return [sets.text(each.processors or ()) for each in found]


# As hello_affinity prints it in ALCF's guide, where jobs do not get cores 0 and 52.
def test_depth_on_aurora_is_what_the_guide_shows() -> None:
    assert cpus("aurora", "depth", ranks=12, depth=8) == [
        "1-8", "9-16", "17-24", "25-32", "33-40", "41-48", "49-51,53-57", "58-65", "66-73", "74-81", "82-89", "90-97",
    ]  # fmt: skip
    assert cpus("aurora", "depth", ranks=4) == ["1", "2", "3", "4"]
    assert cpus("aurora", None, ranks=2, depth=2) == ["1-2", "3-4"]


def test_a_list_of_pals_is_taken_as_it_stands() -> None:
    assert cpus("aurora", "list:1,2:3,4", ranks=2) == ["1-2", "3-4"]
    assert cpus("aurora", "verbose,list:1:105", ranks=2) == ["1", "105"]


# OLCF's guide: 8 ranks of 7 cores are one in each L3 region, whose first core is reserved.
def test_cores_of_srun_go_to_the_l3_regions_of_frontier_in_turn() -> None:
    found = cpus("frontier", "threads", ranks=8, depth=7)
    assert found == ["1-7", "9-15", "17-23", "25-31", "33-39", "41-47", "49-55", "57-63"]
    assert cpus("frontier", "cores", ranks=2) == ["1,65", "9,73"]
    assert cpus("frontier", "sockets", ranks=1) == ["1-7,65-71"]
    assert cpus("frontier", "ldoms", ranks=2)[0] == "1-7,9-15,65-71,73-79"


@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ("map_cpu:1,53", ["1", "53", "1"]),  # srun begins the list again
        ("map_cpu:1*2,0x35", ["1", "1", "53"]),
        ("mask_cpu:0x6,c0", ["1-2", "6-7", "1-2"]),
        ("map_ldom:1", ["53-103,157-207"] * 3),
        ("mask_ldom:0x3", ["1-51,53-103,105-155,157-207"] * 3),
        ("numa", ["1-51,105-155", "53-103,157-207", "1-51,105-155"]),
        ("socket", ["1-51,105-155", "53-103,157-207", "1-51,105-155"]),
        ("core", ["1,105", "2,106", "3,107"]),
        ("none", ["-"] * 3),
        ("quiet,cores", ["1,105", "53,157", "2,106"]),
    ],
)
def test_forms_on_aurora(form: str, wanted: list[str]) -> None:
    assert cpus("aurora", form, ranks=3) == wanted


def test_memory_gpu_and_nic_of_a_rank() -> None:
    wishes = Wishes(cpu="list:1-51:53-103", mem="list:2:3", gpu="list:0.0:3.1", nic="list:0:4")
    first, second = bind(wishes, node("aurora"), ranks=2)
    assert (first.memories, first.gpus, first.nic) == (frozenset((2,)), ("0.0",), 0)
    assert (second.memories, second.gpus, second.nic) == (frozenset((3,)), ("3.1",), 4)
    closest = bind(Wishes(cpu="threads", depth=7, mem="local", gpu="closest", nic="closest"), node("frontier"), ranks=8)
    assert [each.gpus for each in closest] == [(gpu,) for gpu in "45236701"]
    assert [each.nic for each in closest] == [2, 2, 1, 1, 3, 3, 0, 0]
    assert [sets.text(each.memories or ()) for each in closest] == ["0", "0", "1", "1", "2", "2", "3", "3"]


# Masks are hexadecimal with 0x and without, and `*` repeats one.
@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ("mask_gpu:0x1,0x2", [("0",), ("1",), ("0",), ("1",)]),
        ("mask_gpu:3,0x30", [("0", "1"), ("4", "5"), ("0", "1"), ("4", "5")]),
        ("mask_gpu:0x3*2,0x24*2", [("0", "1"), ("0", "1"), ("2", "5"), ("2", "5")]),
        ("list:0,1:2,3", [("0", "1"), ("2", "3"), ("0", "1"), ("2", "3")]),
        ("list:3,2:1.0,0.1", [("3", "2"), ("1.0", "0.1"), ("3", "2"), ("1.0", "0.1")]),
    ],
)
def test_a_rank_may_have_several_gpus(form: str, wanted: list[tuple[str, ...]]) -> None:
    assert [each.gpus for each in bind(Wishes(gpu=form), node("aurora"), ranks=4)] == wanted


def test_what_a_process_is_told_of_its_binding() -> None:
    bound = RankBinding(processors=frozenset((1, 2, 3, 105)), memories=frozenset((2, 3)))
    assert bound.words() == "cpus=1-3,105 memory=bind:2-3"
    assert node_words(node("aurora")) == (
        "cores=104 threads=2 cored=2 domains=0,1,0,1 allowed=1-51,53-103,105-155,157-207"
    )


@pytest.mark.parametrize(
    ("wishes", "sentence"),
    [
        (Wishes(cpu="map_cpu:300"), "--cpu-bind map_cpu:300: there is no CPU 300; a node of aurora has CPUs 0 to 207"),
        (Wishes(cpu="map_cpu:0"), "CPU binding outside of job step allocation, allocated CPUs are: 0xff"),
        (Wishes(cpu="mask_cpu:0x0"), 'the mask "0x0" leaves no CPU'),
        (Wishes(cpu="list:0,52"), "CPU binding outside of job step allocation"),
        (Wishes(cpu="nearest"), 'unrecognized --cpu-bind argument "nearest"; accepted are srun\'s none'),
        (Wishes(cpu="map_cpu:"), 'missing list for "map_cpu:<list>"'),
        (Wishes(cpu="map_ldom:4"), "there is no NUMA domain 4; a node of aurora has 0 to 3"),
        (Wishes(cpu="map_ldom:2"), "a domain of memory alone, which leaves no CPU"),
        (Wishes(cpu="depth", depth=200), "2 ranks of 200 need 400 hardware threads, and a node of aurora has 204"),
        (Wishes(cpu="depth", depth=0), "--depth 0: accepted is 1 or more"),
        (Wishes(mem="map_mem:4"), "there is no NUMA domain 4; a node of aurora has the NUMA domains 0 (DDR5)"),
        (Wishes(mem="mask_mem:0x0"), "leaves no domain"),
        (Wishes(mem="near"), 'unrecognized --mem-bind argument "near"'),
        (Wishes(gpu="map_gpu:6"), "there is no GPU 6; a node of aurora has GPUs 0 to 5"),
        (Wishes(gpu="list:0.2"), "GPU 0 has no tile 2"),
        (Wishes(gpu="mask_gpu:0x1,0x40"), "--gpu-bind mask_gpu:0x1,0x40: there is no GPU 6"),
        (Wishes(gpu="mask_gpu:0x0"), 'the mask "0x0" leaves no GPU'),
        (Wishes(gpu="mask_gpu:gpu0"), '"gpu0" is no mask of GPUs'),
        (Wishes(gpu="mask_gpu:"), '"" is no mask of GPUs'),
        (Wishes(gpu="list:0,:1"), '"" is no GPU'),
        (Wishes(gpu="list:0,6:1"), "there is no GPU 6"),
        (Wishes(gpu="list:0.0,0.2"), "GPU 0 has no tile 2"),
        (Wishes(gpu="list:1,1:0"), '"1,1" names a GPU twice'),
        (Wishes(nic="list:8"), "there is no NIC 8; a node of aurora has NICs 0 to 7"),
        (Wishes(cpu="map_cpu:1*0"), '"1*0" is not a CPU'),
        (Wishes(cpu="map_cpu:0xzz"), '"0xzz" is not a CPU'),
        (Wishes(mem="map_mem:0x4"), "there is no NUMA domain 4"),
        (Wishes(mem="map_mem:0-1"), '"0-1" is no NUMA domain'),
        (Wishes(mem="mask_mem:0x_3"), '"0x_3" is no NUMA domain'),
        (Wishes(gpu="map_gpu:0x6"), "there is no GPU 6"),
        (Wishes(gpu="single:0"), "--gpu-bind single:0: accepted is a number of ranks a GPU of 1 to 6"),
        (Wishes(nic="list:0:1:2", mem="map_mem:0,1"), "--mem-bind lists 2 ranks and --nic-bind 3: accepted are lists"),
        (Wishes(mem="map_mem:1*0"), '"1*0" is no NUMA domain'),
        (Wishes(gpu="map_gpu:0*0"), '"0*0" is no GPU'),
        (Wishes(nic="near"), "accepted are none, closest, map_nic:LIST and list:N:N"),
        (
            Wishes(cpu="list:1:2", gpu="list:0:1:2"),
            "--cpu-bind lists 2 ranks and --gpu-bind 3: accepted are lists of one length",
        ),
    ],
)
def test_what_a_node_lacks_is_refused_in_a_sentence(wishes: Wishes, sentence: str) -> None:
    with pytest.raises(UserError) as raised:
        bind(wishes, node("aurora"), ranks=2)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_machine_without_gpus_says_so() -> None:
    with pytest.raises(UserError, match="a node of testbed has no GPUs"):
        bind(Wishes(gpu="closest"), node("testbed"), ranks=1)


def names(machine: str, wishes: Wishes, *, ranks: int) -> dict[str, tuple[int, ...]]:
    of = node(machine)
    return {each.name: each.ranks for each in doubts.doubts(of, doubts.seats(bind(wishes, of, ranks=ranks)))}


def test_doubts_name_the_ranks() -> None:
    # Rank 6 of 12 by depth is on both sockets, as the guide warns.
    assert names("aurora", Wishes(cpu="depth", depth=8), ranks=12) == {"binding_across_sockets": (6,)}
    crossed = Wishes(cpu="list:1:53", mem="list:1:0", nic="list:4:0", gpu="list:3:0")
    assert names("aurora", crossed, ranks=2) == {
        "binding_far_memory": (0, 1), "binding_far_nic": (0, 1), "binding_far_gpu": (0, 1),
    }  # fmt: skip
    assert names("aurora", Wishes(cpu="list:1:1,105:2"), ranks=3) == {"binding_shared_core": (0, 1)}
    assert names("aurora", Wishes(cpu="list:1,2:1,2:3"), ranks=3) == {}  # each finds a core of its own
    assert names("frontier", Wishes(cpu="threads", depth=7, gpu="map_gpu:0,1,2,3,4,5,6,7"), ranks=8) == {
        "binding_far_region": (0, 1, 4, 5, 6, 7)
    }


def test_a_list_that_is_too_short_is_doubtful() -> None:
    doubt = doubts.list_doubt(Wishes(cpu="list:1:2"), ranks=3)
    assert doubt is not None
    assert doubt.ranks == (2,)
    assert doubts.list_doubt(Wishes(cpu="list:1:2"), ranks=2) is None
    assert doubts.list_doubt(Wishes(gpu="list:0:1"), ranks=3) is not None
    assert doubts.list_doubt(Wishes(gpu="per_task:2"), ranks=3) is None
    bind(Wishes(cpu="list:1:2", mem="prefer,list:0:1"), node("aurora"), ranks=2)  # of one length


@pytest.mark.parametrize(
    "wishes", [Wishes(nic="list:0:1:2:3"), Wishes(nic="map_nic:0*4"), Wishes(cpu="map_cpu:1,2,3,4")]
)
def test_a_list_that_is_too_long_is_doubtful_whatever_it_lists(wishes: Wishes) -> None:
    doubt = doubts.list_doubt(wishes, ranks=3)
    assert doubt is not None
    assert (doubt.name, doubt.ranks) == ("binding_long_list", (3,))
    assert doubt.text.endswith(" lists 4 ranks and a node has 3, so the end of the list is nobody's")
    assert doubts.list_doubt(wishes, ranks=4) is None


@pytest.mark.parametrize("cpu", ["list:1:2", "mask_cpu:0x2,0x4", "none"])
def test_a_depth_beside_what_says_itself_how_many_is_doubtful(cpu: str) -> None:
    doubt = doubts.depth_doubt(Wishes(cpu=cpu, depth=4), ranks=2)
    assert doubt is not None
    assert doubt.text == f"--depth 4 has no effect beside --cpu-bind {cpu}"
    assert doubts.depth_doubt(Wishes(cpu="threads", depth=4), ranks=2) is None
    assert doubts.depth_doubt(Wishes(cpu=cpu), ranks=2) is None


# On Perlmutter each NUMA domain has one GPU, GPU 0 the last one; on Aurora a socket has three, on Frontier an L3 region
# one. Of those that are near the rank's cores srun takes the one numbered by its local number over N.
@pytest.mark.parametrize(
    ("machine", "wishes", "ranks", "wanted"),
    [
        ("aurora", Wishes(gpu="single:2", cpu="numa"), 8, "03142503"),
        ("aurora", Wishes(gpu="single:4", cpu="list:1:2:3:4:53:54:55:56"), 8, "00004444"),
        ("aurora", Wishes(gpu="single:2", cpu="list:1,53"), 8, "00112233"),
        ("aurora", Wishes(gpu="single:2"), 8, "00112233"),
        ("perlmutter-gpu", Wishes(gpu="single:2", cpu="map_ldom:0,1,2,3"), 4, "3210"),
        ("perlmutter-gpu", Wishes(gpu="single:1", cpu="mask_ldom:0x3"), 4, "2323"),
        ("frontier", Wishes(gpu="single:1", cpu="cores", depth=7), 8, "45236701"),
    ],
)
def test_a_single_gpu_is_one_of_the_closest_and_so_many_ranks_have_it(
    machine: str, wishes: Wishes, ranks: int, wanted: str
) -> None:
    assert [each.gpus for each in bind(wishes, node(machine), ranks=ranks)] == [(gpu,) for gpu in wanted]


def test_numbers_of_maps_may_be_hexadecimal() -> None:
    hexadecimal = Wishes(cpu="map_cpu:0x35,0XA", mem="map_mem:0x2,0x3", gpu="map_gpu:0x5,0x0", nic="map_nic:0x7,0x1")
    assert bind(hexadecimal, node("aurora"), ranks=2) == bind(
        Wishes(cpu="map_cpu:53,10", mem="map_mem:2,3", gpu="map_gpu:5,0", nic="map_nic:7,1"), node("aurora"), ranks=2
    )
    assert cpus("aurora", "map_ldom:0x1", ranks=1) == cpus("aurora", "map_ldom:1", ranks=1)
    for form in ("mask_mem:0xC", "mask_mem:c"):
        assert bind(Wishes(mem=form), node("aurora"), ranks=1)[0].memories == frozenset((2, 3))


# The list of ALCF's guide for 12 ranks.
@pytest.mark.parametrize("ranks", range(7, 12))
def test_as_long_as_there_are_tiles_each_rank_of_aurora_has_one_of_its_own_on_its_socket(ranks: int) -> None:
    of = node("aurora")
    found = advice.good(of, ranks=ranks)
    tiles = [gpu for binding in found.bindings for gpu in binding.gpus or ()]
    assert len(set(tiles)) == ranks
    assert all(tile.partition(".")[2] in ("0", "1") for tile in tiles)
    on_gpu = [sum(tile.startswith(f"{gpu}.") for tile in tiles) for gpu in range(6)]
    assert max(on_gpu[:3]) - min(on_gpu[:3]) <= 1
    assert max(on_gpu[3:]) - min(on_gpu[3:]) <= 1
    assert abs(sum(on_gpu[:3]) - sum(on_gpu[3:])) <= 1
    assert "every rank has a tile of its own" in advice.reasons(found)
    assert not found.doubts()


@pytest.mark.parametrize("machine", ["frontier", "lumi-g", "perlmutter-cpu", "perlmutter-gpu", "alps", "aurora"])
def test_domains_have_as_many_ranks_as_the_others_or_one_more(machine: str) -> None:
    of = node(machine)
    for ranks in range(1, of.cores - len(of.reserved) + 1):
        bindings = advice.good(of, ranks=ranks).bindings
        counts = [sum(each.memories == {domain.number} for each in bindings) for domain in of.with_cores]
        assert max(counts) - min(counts) <= 1, ranks
        nics = [sum(each.nic == nic for each in bindings) for nic in range(len(of.nic_domains))]
        if machine == "frontier" and ranks >= 4:
            assert max(nics) - min(nics) <= 1, ranks


def test_more_ranks_than_tiles_share_tiles_evenly() -> None:
    tiles = [gpu for binding in advice.good(node("aurora"), ranks=24).bindings for gpu in binding.gpus or ()]
    assert sorted(tiles) == sorted(f"{gpu}.{tile}" for gpu in range(6) for tile in range(2) for _ in range(2))


def test_the_advice_for_twelve_ranks_on_aurora_is_the_sites() -> None:
    found = advice.good(node("aurora"), ranks=12)
    commands = advice.commands(found)
    assert "list:1-8:9-16:17-24:25-32:33-40:41-48:53-60:61-68:69-76:77-84:85-92:93-100" in commands["PALS' mpiexec"]
    assert "--gpu-bind list:0.0:0.1:1.0:1.1:2.0:2.1:3.0:3.1:4.0:4.1:5.0:5.1" in commands["PALS' mpiexec"]
    assert "--cpu-bind=mask_cpu:0x1fe,0x1fe00," in commands["srun"]
    # Two ranks have a tile each of a GPU, and Flux knows whole GPUs.
    assert "cpu-affinity='map:1-8;9-16;17-24;" in commands["flux run"]
    assert "gpu-affinity='map:0;0;1;1;2;2;3;3;4;4;5;5'" in commands["flux run"]
    assert "every rank's NIC is on the rank's socket" in advice.reasons(found)
    assert found.doubts() == []


def test_a_nic_is_called_near_only_where_it_is() -> None:
    found = advice.good(node("perlmutter-cpu"), ranks=8)  # one NIC, on socket 0
    assert not any("NIC is on" in reason for reason in advice.reasons(found))
    assert [(each.name, each.ranks) for each in found.doubts()] == [("binding_far_nic", (4, 5, 6, 7))]


@pytest.mark.parametrize("machine", shipped_machines())
def test_what_is_advised_can_be_asked_for_and_has_no_shared_core(machine: str) -> None:
    of = node(machine)
    most = len({of.core_of(each) for each in of.allowed})
    for ranks in {1, 2, 3, 4, 7, 8, 12, 16, most}:
        found = advice.good(of, ranks=ranks)
        words = advice.commands(found)["dryfly run"].split()
        wishes = Wishes(**{
            option.removeprefix("--").removesuffix("-bind"): words[place + 1]
            for place, option in enumerate(words) if option.endswith("-bind")
        })  # fmt: skip
        assert bind(wishes, of, ranks=ranks) == found.bindings
        assert "binding_shared_core" not in {each.name for each in found.doubts()}
        assert all(each.processors and each.processors <= of.allowed for each in found.bindings)
    alone, beside_another = (advice.good(of, ranks=ranks).bindings[0].processors or () for ranks in (1, 2))
    assert len(alone) >= len(beside_another)
    with pytest.raises(UserError, match=rf"--ppn {most + 1}: accepted is 1 to {most}"):
        advice.good(of, ranks=most + 1)
