"""A training step of a transformer: messages and bytes against a count of its own, the pipeline against its closed
form, what is refused, and collectives of GPU libraries (docs/model/skeleton-transformer.md)."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from dryfly.base.errors import UserError
from dryfly.predict import ask
from dryfly.predict.answer import Answer
from dryfly.predict.question import Question

SMALL = {
    "layers": "8", "hidden": "1024", "heads": "16", "sequence": "512", "vocabulary": "32000", "global_batch": "32",
    "tensor": "each",
}  # fmt: skip


def _step(nodes: int, **parameters: str) -> Answer:
    words = tuple({**SMALL, **parameters}.items())
    question = Question(workload="transformer", machine="frontier", nodes=nodes, ppn=8, parameters=words)
    ask.check(question)
    return ask.ask(question)


class Count:
    """Bytes of a step by kind, and of its messages how many, from what Megatron-LM's papers say of it. An all-reduction
    of n ranks sends its vector 2 (n - 1) times in all, half of one n - 1 times, whatever the algorithm."""

    def __init__(self, tp: int, pp: int, dp: int, *, parallel: bool, full: bool, zero: bool, chunks: int = 1) -> None:
        layers, hidden, sequence, vocabulary, batch = 8, 1024, 512, 32000, 32
        passes = batch // dp
        activation = sequence * hidden * 2
        # Two sums a layer and pass, two more where a forward pass is repeated; one for words, one for what leads to
        # them; three of a number a token for the loss. With sequences divided each becomes two halves of one.
        of_layers = layers * (2 + 2 + (2 if full else 0))
        one = (tp - 1) * activation
        self.tensor = dp * passes * ((of_layers + 2) * 2 * one + 3 * 2 * (tp - 1) * sequence * 4)
        sent = activation // tp if parallel else activation
        self.pipeline = 2 * (pp * chunks - 1) * passes * tp * dp * sent
        self.gradients = 0
        for stage in range(pp):
            parameters = layers // pp * ((12 * hidden**2 + 7 * hidden) // tp + 6 * hidden)
            words = math.ceil(vocabulary / tp) * hidden
            if stage == 0:
                parameters += words + sequence * hidden
            if stage == pp - 1:
                parameters += 2 * hidden + (words if pp > 1 else 0)
            if zero:
                self.gradients += tp * (dp - 1) * dp * math.ceil(parameters / dp) * (4 + 2)
            else:
                self.gradients += tp * 2 * (dp - 1) * parameters * 4
        self.embedding = tp * dp * 2 * math.ceil(vocabulary / tp) * hidden * 4 if pp > 1 else 0


LAYOUTS = [
    (1, 1, 8), (2, 1, 4), (8, 1, 1), (1, 8, 1), (2, 2, 2), (4, 2, 2), (2, 4, 4), (8, 2, 4), (4, 1, 16), (16, 2, 2),
    (8, 8, 1),
]  # fmt: skip


@pytest.mark.parametrize(("tp", "pp", "dp"), LAYOUTS)
@pytest.mark.parametrize("how", ["plain", "divided", "again"])
def test_a_step_sends_what_is_counted(tp: int, pp: int, dp: int, how: str) -> None:
    parallel, full, zero = how == "divided", how == "again", how != "plain"
    found = _step(
        tp * pp * dp // 8, tp=str(tp), pp=str(pp), dp=str(dp), zero=str(int(zero)),
        sequence_parallel=str(int(parallel)), recompute="full" if full else "none",
    )  # fmt: skip
    counted = Count(tp, pp, dp, parallel=parallel, full=full, zero=zero)
    kinds = {name: int(found.figures[f"{name}_bytes"]) for name in ("tensor", "pipeline", "gradients", "embedding")}
    assert kinds == vars(counted)
    assert found.bytes == sum(kinds.values())


def test_messages_are_those_of_rings_and_stages() -> None:
    # Two stages of two replicas of a group of 8, which has a node: on Frontier four rings, in 14 steps. A sum of few
    # bytes goes along a chain, up and down, half of each ring's share by each of two. Two replicas, and the first and
    # the last stage, are on different nodes: rings of two ranks, in two steps. Sums of 8 MiB go by rings.
    replicas, passes, layers = 2, 2, 8
    found = _step(4, tp="8", pp="2", dp="2", zero="0", micro_batch="8")
    tensor = replicas * passes * (layers * 4 + 2) * (4 * 8 * 14)
    loss = replicas * passes * 3 * (4 * 2) * (2 * 7)
    pipeline = 2 * passes * 8 * replicas
    gradients = (8 * 2) * (2 * 2)
    embedding = (8 * replicas) * (2 * 2)
    assert found.messages == tensor + loss + pipeline + gradients + embedding


@pytest.mark.parametrize(("pp", "apart"), [("1", 0.001), ("2", 0.015)])
def test_collectives_that_take_what_they_take_alone_take_as_long(pp: str, apart: float) -> None:
    """Behind another stage two ranks share a NIC: the first of them then begins before the second has its activations,
    and what it sends ahead stands in the way of what comes later."""
    each, alone = (_step(4, tp="8", pp=pp, tensor=how) for how in ("each", "alone"))
    assert each.virtual_time_s == pytest.approx(alone.virtual_time_s, rel=apart)
    assert each.figures["tensor_bytes"] == alone.figures["tensor_bytes"]
    assert alone.messages is not None
    assert each.messages is not None
    assert alone.messages < each.messages / 20


@pytest.mark.parametrize(("tp", "pp", "dp", "chunks"), [(2, 2, 4, 2), (2, 4, 2, 2), (1, 2, 8, 4), (8, 2, 1, 2)])
def test_interleaved_stages_send_what_is_counted(tp: int, pp: int, dp: int, chunks: int) -> None:
    found = _step(2, tp=str(tp), pp=str(pp), dp=str(dp), interleave=str(chunks))
    counted = Count(tp, pp, dp, parallel=False, full=False, zero=True, chunks=chunks)
    kinds = {name: int(found.figures[f"{name}_bytes"]) for name in ("tensor", "pipeline", "gradients", "embedding")}
    assert kinds == vars(counted)
    assert found.bytes == sum(kinds.values())


BUBBLES = [(2, 8, 1), (4, 8, 1), (8, 16, 1), (8, 64, 1), (2, 8, 2), (4, 8, 2), (4, 16, 2), (2, 4, 4)]


@pytest.mark.parametrize(("stages", "batch", "chunks"), BUBBLES)
def test_the_bubble_of_a_pipeline_is_its_closed_form(stages: int, batch: int, chunks: int) -> None:
    # Products take ten thousand times as long, and there is one word: no stage is longer than another, and messages
    # take nothing. A rank then computes for m of m + (p - 1) / v passes, and what is left it waits for its neighbours.
    replicas = 8 // stages
    found = _step(
        1, pp=str(stages), tp="1", global_batch=str(batch * replicas), vocabulary="1", matmul_share="0.01 %",
        hidden="2048", interleave=str(chunks),
    )  # fmt: skip
    computing = found.phases["forward"] + found.phases["backward"]
    ideal = (stages - 1) / batch / chunks
    assert found.virtual_time_s == pytest.approx(computing * (1 + ideal), rel=2e-3)
    assert found.figures["bubble_ideal_share"] == pytest.approx(ideal)
    assert found.phases["tensor"] == 0


def test_a_pass_more_takes_what_a_pass_takes() -> None:
    steps = [_step(1, pp="8", tp="1", global_batch=str(batch), vocabulary="1", matmul_share="0.01 %", zero="0")
             for batch in (16, 32, 48)]  # fmt: skip
    first, second, third = (step.virtual_time_s for step in steps)
    assert third - second == pytest.approx(second - first, rel=1e-3)


def test_figures_are_those_of_the_formulas() -> None:
    found = _step(2, tp="2", pp="2", recompute="full")
    layers, hidden, sequence, vocabulary, batch, ranks = 8, 1024, 512, 32000, 32, 16
    model = 72 * batch * sequence * layers * hidden**2
    model *= 1 + sequence / (12 * hidden) + vocabulary / (12 * layers * hidden)
    rate = model / found.virtual_time_s / ranks
    assert found.figures["gpu_flop_per_s"] == pytest.approx(rate)
    assert found.figures["model_flops_utilisation_share"] == pytest.approx(rate / 191.5e12)
    again = 96 * batch * sequence * layers * hidden**2
    again *= 1 + sequence / (12 * hidden) + vocabulary / (16 * layers * hidden)
    assert found.figures["gpu_with_recomputing_flop_per_s"] == pytest.approx(again / found.virtual_time_s / ranks)
    assert found.figures["tokens_per_s"] == pytest.approx(batch * sequence / found.virtual_time_s)
    assert (
        found.figures["parameters"] == 12 * layers * hidden**2 + 13 * layers * hidden + (vocabulary + sequence) * hidden
    )


def test_a_step_repeats_to_the_picosecond() -> None:
    one, other = (_step(4, tp="4", pp="2", buckets="4", overlap="1") for _ in range(2))
    assert (one.virtual_time_s, one.fingerprint) == (other.virtual_time_s, other.fingerprint)


def test_gradients_that_go_beside_the_last_pass_take_less() -> None:
    behind = _step(4, tp="2", dp="16", global_batch="16")
    beside = _step(4, tp="2", dp="16", global_batch="16", buckets="8", overlap="1")
    assert beside.figures["gradients_bytes"] == pytest.approx(behind.figures["gradients_bytes"], rel=1e-3)
    assert beside.virtual_time_s < behind.virtual_time_s
    assert beside.phases["gradients"] < behind.phases["gradients"]


def test_without_a_word_the_group_is_as_large_as_heads_and_node_allow() -> None:
    question = Question(workload="transformer", nodes=8, parameters=(("pp", "2"),))
    ask.check(question)
    found = ask.ask(question)
    assert found.question.ppn == 12
    assert (found.figures["tp"], found.figures["dp"], found.figures["micro_batches"]) == (4, 12, 16)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"tp": "2", "pp": "2", "dp": "3"}, r"tp \* pp \* dp = 2 \* 2 \* 3: accepted is 16, the number of ranks"),
        ({"pp": "16"}, r"tp=8, pp=16: 16 ranks are not divided by 128; accepted is tp \* pp that divides them"),
        ({"layers": "9", "pp": "2"}, r"layers = 9: accepted is a multiple of pp = 2"),
        ({"heads": "18", "hidden": "1152", "tp": "8"}, r"heads = 18: accepted is a multiple of tp = 8"),
        ({"hidden": "1000"}, r"hidden = 1000: accepted is a multiple of heads = 16"),
        ({"global_batch": "33", "tp": "2", "micro_batch": "2"}, r"global_batch = 33: .* of dp \* micro_batch = 16"),
        ({"sequence": "511", "sequence_parallel": "1"}, r"sequence = 511: accepted is a multiple of tp = 8"),
        ({"pp": "2", "interleave": "3"}, r"layers = 8: accepted is a multiple of pp \* interleave = 6"),
        ({"tp": "16", "interleave": "2"}, r"interleave = 2 with pp = 1 and 32 passes: accepted are several stages"),
        ({"pp": "4", "tp": "4", "global_batch": "6", "interleave": "2"}, r"interleave = 2 with pp = 4 and 6 passes"),
        ({"gradient": "3"}, r"gradient = 3: accepted is 2 or 4"),
        ({"layers": "96", "hidden": "12288", "heads": "96", "tp": "4", "zero": "0"},
         r"tp=4, pp=1: a rank needs .* parameters of 18 bytes and .* for activations, .* in all; accepted .*63.98 GiB"),
        ({"recompute": "half"}, r"recompute=half: accepted is none or full"),
        ({"global_batch": "1000000", "tensor": "each", "tp": "8"}, r"global_batch = 1000000: .* are run: accepted are"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_sentence(changed: dict[str, str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as refused:
        _step(2, **changed)
    assert "\n" not in str(refused.value)


def test_a_refusal_says_how_many_replicas_are_affordable() -> None:
    """Of one node each, on all of Frontier and on one node more than are: 2 * 1,580 messages of 8 * 1,581 ranks are
    39,967,680. By what the user can write: how many replicas there are follows from nodes."""
    for nodes in (9408, 1582):
        messages = 2 * (nodes - 1) * 8 * nodes
        with pytest.raises(
            UserError,
            match=rf"^gradients of {nodes} replicas \(dp\): .*, {messages} together, .* accepted are 40000000, "
            r"as with --nodes 1581 \(dp = 1581\), or more stages \(pp\)$",
        ):
            ask.ask(Question(workload="transformer", machine="frontier", nodes=nodes))
    # Two replicas share each three nodes; parts are counted where a message has several.
    words = {"pp": "3", "layers": "48", "heads": "48", "tp": "4", "part": "65536", "zero": "1"}
    with pytest.raises(UserError, match=r"with their parts \(part\), .* as with --nodes \d+ \(dp = \d+\), or") as told:
        ask.ask(Question(workload="transformer", machine="frontier", nodes=900, parameters=tuple(words.items())))
    nodes, replicas = re.findall(r"--nodes (\d+) \(dp = (\d+)\)", str(told.value))[0]
    assert int(nodes) * 8 == int(replicas) * 12
    with pytest.raises(
        UserError, match=r"accepted are 100000000, as with global_batch = \d+, or fewer ranks"
    ) as refused:
        _step(2, global_batch="1000000", tensor="each", tp="8")
    batch = int(str(refused.value).rpartition("global_batch = ")[2].partition(",")[0])
    # Of two replicas, so that this is the next one that they divide.
    with pytest.raises(UserError, match=rf"global_batch = {batch + 2}: .* as with global_batch = {batch}, or"):
        _step(2, global_batch=str(batch + 2), tensor="each", tp="8")


def test_activations_are_part_of_the_memory() -> None:
    words = {"layers": "40", "hidden": "6144", "heads": "48", "tp": "8", "sequence": "2048", "global_batch": "64"}
    assert _step(1, **words, recompute="full", micro_batch="16", tensor="alone").virtual_time_s > 0
    with pytest.raises(UserError, match=r"for activations, .* in all"):
        _step(1, **words, micro_batch="16", tensor="alone")


@pytest.mark.parametrize("machine", ["testbed", "perlmutter-cpu"])
def test_machines_without_gpus_are_refused(machine: str) -> None:
    for workload, words in (("transformer", ()), ("allreduce", (("on_node", "gpu"),))):
        with pytest.raises(UserError, match=rf"{machine} has no GPUs with links between them"):
            ask.check(Question(workload=workload, machine=machine, nodes=2, ppn=2, parameters=words))


def test_gpus_of_alps_have_links_of_150_gb_s() -> None:
    """Between each two of a node's four: in a ring each sends 3/4 of a vector twice, and all of its three links carry
    no more than three times that."""
    words = (("bytes", "1 GiB"), ("on_node", "gpu"), ("library", "rccl"))
    took = ask.ask(Question(workload="allreduce", machine="alps", nodes=1, ppn=4, parameters=words)).virtual_time_s
    one_link = 2 * 0.75 * 2**30 / 150e9
    assert one_link / 3 < took < one_link
    step = ask.ask(Question(workload="transformer", machine="alps", nodes=4))
    assert 0 < step.figures["model_flops_utilisation_share"] < 1
    assert step.figures["tp"] == 4


def _allreduce(size: str, **parameters: Any) -> Answer:
    words = (("bytes", size), ("on_node", "gpu"), *parameters.items())
    return ask.ask(Question(workload="allreduce", machine="frontier", nodes=16, ppn=8, parameters=words))


def test_rccl_takes_its_tree_for_short_vectors_and_its_ring_for_long_ones() -> None:
    for size, taken, other in (("64 KiB", "gpu_tree", "gpu_ring"), ("4 GiB", "gpu_ring", "gpu_tree")):
        chosen, by_name = _allreduce(size, library="rccl"), _allreduce(size, algorithm=taken)
        assert chosen.fingerprint == by_name.fingerprint
        assert chosen.virtual_time_s < _allreduce(size, algorithm=other).virtual_time_s


def test_oneccl_divides_a_vector_among_the_ranks_of_a_node() -> None:
    assert _allreduce("1 MiB", library="oneccl").fingerprint == _allreduce("1 MiB", algorithm="gpu_topo").fingerprint


def test_a_library_of_gpus_has_no_other_collectives() -> None:
    words = (("bytes", "8 B"), ("library", "rccl"), ("on_node", "gpu"))
    with pytest.raises(
        UserError, match="library=rccl: accepted is allreduce, allgather or reduce_scatter_block, not bc"
    ):
        ask.check(Question(workload="bcast", machine="frontier", nodes=2, ppn=8, parameters=words))


@pytest.mark.parametrize(("name", "value"), [("library", "rccl"), ("library", "oneccl"), ("algorithm", "gpu_ring")])
def test_libraries_of_gpus_send_from_their_memory(name: str, value: str) -> None:
    with pytest.raises(
        UserError, match=rf"{name}={value}: its buffers are in GPUs' memory; accepted is with on_node=g"
    ):
        ask.check(Question(workload="allreduce", machine="frontier", nodes=2, ppn=8, parameters=((name, value),)))


@pytest.mark.parametrize("ppn", [1, 4, 16])
def test_each_rank_has_a_gpu_of_its_own(ppn: int) -> None:
    for workload, words in (("transformer", ()), ("allreduce", (("on_node", "gpu"),))):
        with pytest.raises(
            UserError, match=rf"ppn={ppn}: each rank has a GPU, or a tile, of its own; accepted is 8, as"
        ):
            ask.check(Question(workload=workload, machine="frontier", nodes=2, ppn=ppn, parameters=words))


def test_what_a_gpu_does_is_within_what_it_can_do() -> None:
    """Long sequences, of whose scores a mask hides half."""
    found = _step(1, layers="2", sequence="131072", tp="8", global_batch="16", recompute="full", tensor="alone")
    assert 0.5 < found.figures["with_recomputing_share"] <= 1
