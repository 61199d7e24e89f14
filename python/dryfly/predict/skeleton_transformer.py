"""Skeletons whose ranks have a GPU each: what the engine is told of these. Of a transformer's training step: what is
chosen where nobody says it, and whether it fits into the memory."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dryfly.base.errors import UserError
from dryfly.base.units import size_text
from dryfly.case import gpus
from dryfly.predict import facts
from dryfly.predict.find import find
from dryfly.predict.question import Question

_PASSES = 16  # where nobody says how large a batch is


def between_gpus(question: Question) -> bool:
    return question.parameter("on_node") == "gpu" or question.workload == "transformer"


def check(question: Question) -> None:
    """Raises UserError where the machine has no GPUs, or does not say what is between them."""
    machine = question.loaded
    if not machine.optional("compute.gpu.count") or machine.optional("node.gpu_peer_rate") is None:
        what = question.workload if question.workload == "transformer" else "on_node=gpu"
        raise UserError(f"{what}: machine {machine.name} has no GPUs with links between them; accepted is one that has")
    count = gpus.devices_of_node(machine)
    if question.ppn != count:
        raise UserError(
            f"ppn={question.ppn}: each rank has a GPU, or a tile, of its own; accepted is {count}, as many as a node "
            f"of {machine.name} has"
        )
    if question.workload == "transformer":
        _check_divisors(question)
        _check_memory(question)


def _check_divisors(question: Question) -> None:
    step, ranks = sizes(question), question.ranks
    of_model = step["tp"] * step["pp"]
    if ranks % of_model:
        raise UserError(
            f"tp={step['tp']}, pp={step['pp']}: {ranks} ranks are not divided by {of_model}; accepted is tp * pp that "
            "divides them"
        )


def _check_memory(question: Question) -> None:
    """As Megatron-LM estimates it, of the first stage, which has most passes under way."""
    count, size = question.loaded.optional("compute.gpu.count"), question.loaded.optional("compute.gpu.memory")
    step = sizes(question)
    sharing = (step["layers"] % step["pp"], step["heads"] % step["tp"], step["hidden"] % step["heads"])
    if not isinstance(count, int) or not isinstance(size, int) or any(sharing):
        return  # the engine says what does not divide
    assert question.ppn is not None
    there = count * size // question.ppn
    parameters = parameters_of_first(step)
    each = 2 + step["gradient"] + 12 / (step["dp"] if step["zero"] else 1)
    states, activations = int(parameters * each), activations_of_first(step, dict(question.values))
    if states + activations <= there:
        return
    raise UserError(
        f"tp={step['tp']}, pp={step['pp']}: a rank needs {size_text(states)} for {parameters:,} parameters "
        f"of {each:.3g} bytes and {size_text(activations)} for activations, {size_text(states + activations)} in all; "
        f"accepted is what fits {size_text(there)}, its share of the memory of GPUs"
    )


def parameters_of_first(step: Mapping[str, int]) -> int:
    """Of a rank of the first stage."""
    hidden, tp = step["hidden"], step["tp"]
    of_layer = 12 * hidden * hidden // tp + 7 * hidden // tp + 6 * hidden
    words = -(-step["vocabulary"] // tp)
    norm = 2 * hidden if step["pp"] == 1 else 0
    return step["layers"] // step["pp"] * of_layer + (words + step["sequence"]) * hidden + norm


def activations_of_first(step: Mapping[str, int], words: Mapping[str, str]) -> int:
    """Bytes that a rank of the first stage keeps for the way back: of as many passes as are under way, each through a
    chunk of its layers."""
    tp, tokens = step["tp"], step["sequence"] * step["micro_batch"]
    layer = tokens * step["hidden"] * (34 if step["sequence_parallel"] else 10 * tp + 24) // tp
    if words["attention"] == "unfused":
        layer += 5 * step["heads"] * step["sequence"] * tokens // tp
    pp, chunks = step["pp"], step["interleave"]
    layers = step["layers"] // (pp * chunks)
    all_passes = max(step["global_batch"] // step["micro_batch"] // step["dp"], 1) * chunks
    passes = min(2 * (pp - 1) + (chunks - 1) * pp + 1 if chunks > 1 else pp, all_passes)
    if words["recompute"] == "none":
        return layers * layer * passes
    kept = 2 * tokens * step["hidden"] // (tp if step["sequence_parallel"] else 1)
    return layers * kept * passes + layer


def of_gpus(question: Question) -> list[str]:
    """Which GPUs are joined, and what messages of theirs take where the workload has no parameters for that."""
    words = []
    joined = gpus.joined(question.loaded)
    if joined is not None:
        words.append("gpu_links=" + "".join("1" if each else "0" for row in joined for each in row))
    known = {each.name: each for each in find("transformer").parameters}
    for name in ("gpu_step", "gpu_post"):
        if question.parameter(name) is None:
            words += known[name].arguments(known[name].value(facts.text("transformer", name)))
    return words


def chosen(question: Question) -> dict[str, str]:
    if question.workload != "transformer":
        return {}
    found = sizes(question)
    return {name: str(found[name]) for name in ("tp", "global_batch")}


def sizes(question: Question) -> dict[str, int]:
    """All whole numbers of the step."""
    found = {name: int(value) for name, value in question.values if value.isdecimal()}
    assert question.ppn is not None
    found.setdefault("tp", math.gcd(question.ppn, found["heads"]))
    found.setdefault("dp", max(question.ranks // (found["tp"] * found["pp"]), 1))
    found.setdefault("global_batch", _PASSES * found["micro_batch"] * found["dp"])
    return found
