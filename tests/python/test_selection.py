"""dryfly.mpi.selection: the tuning files of MPICH and of Open MPI as rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dryfly.base.errors import UserError
from dryfly.mpi.selection import mpich_rules, openmpi_rules


def _mpich(folder: Path, tree: object) -> str:
    file = folder / "tuning.json"
    file.write_text(json.dumps(tree), encoding="utf-8")
    return mpich_rules(file)


def _openmpi(folder: Path, text: str) -> str:
    file = folder / "rules.conf"
    file.write_text(text, encoding="utf-8")
    return openmpi_rules(file)


def test_mpichs_tree_becomes_rules_in_its_order(tmp_path: Path) -> None:
    tree: dict[str, object] = {
        "collective=bcast": {
            "comm_type=intra": {
                "comm_size<8": {"algorithm=MPIR_Bcast_intra_binomial": {}},
                "comm_size=pow2": {"avg_msg_size<=4096": {"algorithm=MPIR_Bcast_intra_smp": {}}},
                "comm_size=any": {"algorithm=MPIR_Bcast_intra_scatter_ring_allgather": {}},
            },
            "comm_type=inter": {"algorithm=MPIR_Bcast_inter_remote_send_local_bcast": {}},
        },
        "collective=iallgather": {"algorithm=whatever": {}},
    }
    assert _mpich(tmp_path, tree) == (
        "bcast binomial ranks<8\nbcast hierarchical ranks=pow2 bytes<=4096\nbcast scatter_ring\n"
    )


def test_below_a_condition_on_the_call_mpich_takes_less_for_less_or_equal(tmp_path: Path) -> None:
    tree: dict[str, object] = {
        "collective=alltoall": {
            "is_sendbuf_inplace=yes": {"algorithm=MPIR_Alltoall_intra_pairwise_sendrecv_replace": {}},
            "is_sendbuf_inplace=no": {
                "comm_size<8": {"algorithm=MPIR_Alltoall_intra_scattered": {}},
                "comm_size=any": {"algorithm=MPIR_Alltoall_intra_brucks": {}},
            },
        }
    }
    assert _mpich(tmp_path, tree) == "alltoall scattered window=32 ranks<=8\nalltoall bruck\n"


def test_a_barrier_of_mpichs_has_a_radix(tmp_path: Path) -> None:
    tree: dict[str, object] = {"collective=barrier": {"algorithm=MPIR_Barrier_intra_k_dissemination": {"k=4": {}}}}
    assert _mpich(tmp_path, tree) == "barrier dissemination fan=4\n"


@pytest.mark.parametrize(
    ("tree", "sentence"),
    [
        ([], "accepted is an object"),
        ({"bcast": {}}, "bcast: accepted is collective=NAME"),
        ({"collective=bcast": {}}, "collective=bcast: accepted is an object with conditions"),
        ({"collective=bcast": {"moon=full": {}}}, "moon=full: skeletons know no such condition"),
        ({"collective=bcast": {"algorithm=MPIR_Bcast_intra_circ_graph": {}}}, "skeletons have binomial, scatter_rec"),
        ({"collective=barrier": {"algorithm=MPIR_Barrier_intra_smp": {"k=2": {}}}}, "k=2: accepted is nothing more"),
    ],
)
def test_what_is_no_tuning_file_of_mpichs_is_refused(tmp_path: Path, tree: object, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        _mpich(tmp_path, tree)


_LINES = """
2            # collectives
2            # allreduce
2            # communicator sizes
4
1            # message sizes
0 3 0 0
64
2
0 0 0 0
4096 5 0 8192
12 1         # reduce_scatter
8 1
0 4 0 0
"""


def test_open_mpis_lines_count_from_their_sizes_on(tmp_path: Path) -> None:
    # Up to 63 ranks the first size counts; algorithm 0 leaves it to the library; reduce_scatter's sizes are totals.
    assert _openmpi(tmp_path, _LINES) == (
        "allreduce recursive_doubling ranks<=63\n"
        "allreduce ring ranks>=64 bytes>=4096 segment=8192\n"
        "reduce_scatter butterfly\n"
    )


def test_the_second_version_of_the_lines_may_say_how_many_requests(tmp_path: Path) -> None:
    text = "rule-file-version-2\n1\n3\n1\n4 1\n0 4 0 0 16\n"
    assert _openmpi(tmp_path, text) == "alltoall scattered window=16\n"


def test_open_mpis_json_has_bounds(tmp_path: Path) -> None:
    rules = {"msg_size_min": 1024, "msg_size_max": 4096, "alg": 2, "faninout": 4}
    block = {"comm_size_min": 8, "comm_size_max": "inf", "comm_rank_distribution": "single-node", "rules": [rules]}
    text = json.dumps({"rule_file_version": 3, "module": "tuned", "collectives": {"bcast": [block]}})
    assert _openmpi(tmp_path, text) == "bcast chain ranks>=8 bytes>=1024 bytes<=4096 fan=4 one_node=yes\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1 2", "the file ends where the number of communicator sizes should be"),
        ("1 x", "line 1: a collective = x: accepted is a whole number"),
        ("1 77 0", "collective 77: accepted is 0 to 21"),
        ("1 2 1 4 1 0 9 0 0", "allreduce: algorithm 9: accepted is 0 to 6"),
        ("1 2 1 4 1 8 3 0 0", "the first message size for 4 ranks is 8: accepted is 0"),
        ("{", "is no JSON"),
        ('{"collectives": {"bcast": 3}}', "bcast: accepted is a list of objects"),
        ('{"collectives": {"bcast": [{"rules": [{"alg": "linear"}]}]}}', "alg = linear: accepted is a whole number"),
    ],
)
def test_what_is_no_rules_file_of_open_mpis_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        _openmpi(tmp_path, text)
