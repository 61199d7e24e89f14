"""HPL-MxP by its closed form (dryfly/oracle/hplmxp.py): what a process of it has of a machine's node, and the answer.

docs/model/hplmxp.md has what each figure stands for.
"""

from __future__ import annotations

import math
import time

from dryfly.base.errors import UserError
from dryfly.base.units import size_text
from dryfly.oracle import hplmxp
from dryfly.predict.answer import Answer
from dryfly.predict.closed_hpl import assumed, check_choices, copies, mapping_of, message_s, nics_of
from dryfly.predict.question import Question

_PS = 1e-12
_SHARE = 1e-6
_NAMES = {"gemm": "GEMM", "panel": "panel + TRSM + BCAST"}


def check(question: Question) -> None:
    """Raises UserError for what the machine does not allow."""
    check_choices(question)
    process_of(question)
    check_memory(question)


def answer(question: Question) -> Answer:
    began = time.monotonic()
    problem, process = problem_of(question), process_of(question)
    found = hplmxp.outcome(problem, process)
    rate = problem.operations / found.time
    return Answer(
        question=question,
        virtual_time_s=found.time,
        phases={**{f"bound by {_NAMES[name]}": took for name, took in found.bound.items() if took},
                "first panel": found.first, "refinement": found.refinement},
        figures={
            "rate_flop_per_s": rate,
            **figures_beside(question, problem, rate),
            "panels": float(problem.panels),
            "gemm_bounds_until_panel": float(found.unhidden_from),
        },
        values={**dict(question.values), "n": str(problem.order), "nb": str(problem.block),
                "grid": f"{problem.rows}x{problem.columns}"},
        calibrated=_calibrated(question),
        assumed=assumed(question),
        details={"parts_s": found.sums},
        wall_s=time.monotonic() - began,
    )  # fmt: skip


def figures_beside(question: Question, problem: hplmxp.Problem, rate: float) -> dict[str, float]:
    """What either model says beside its rate. Without GPUs, which the skeleton does without, there is no peak."""
    assert question.nodes is not None
    machine = question.loaded
    of_gemm_rate = {}
    if machine.optional("compute.gpu.count") and machine.optional("compute.gpu.half"):
        of_gemm_rate["of_gemm_rate_share"] = rate / (_half_rate(question) * question.nodes)
    return {**of_gemm_rate, "matrix_bytes_of_node": problem.element * problem.order**2 / question.nodes}


def _half_rate(question: Question) -> float:
    """Operations a second of a node's GPUs, in products."""
    half = _number(question, "compute.gpu.count") * _number(question, "compute.gpu.half")
    return half * _share(question, "fp16_share") if question.parameter("precision") == "fp16" else half


def _calibrated(question: Question) -> str:
    """Of HPL's closed form, unless it is given: no result of HPL-MxP has set anything."""
    given = any(name == "gemm_exposed" for name, _ in question.parameters)
    return "" if given else "gemm_exposed, on HPL's result (see hpl)"


def process_of(question: Question) -> hplmxp.Process:
    machine, ranks = question.loaded, question.ppn
    assert ranks is not None
    gpus = int(machine.optional("compute.gpu.count") or 0)
    if not gpus:
        raise UserError(f"hplmxp needs GPUs, and machine {machine.name} says nothing of them (compute.gpu.count)")
    values = dict(question.values)
    nics = nics_of(machine, values)
    on_other = values["pinning"] == "other"
    return hplmxp.Process(
        half_rate=_half_rate(question) / ranks,
        gemm_memory=gpus * _number(question, "compute.gpu.memory_rate") / ranks,
        gemm_exposed=_share(question, "gemm_exposed"),
        gemm_tile=int(question.parameter("gemm_tile") or 0),
        gemm_tiles=max(1, int(question.parameter("gemm_tiles") or 0) * gpus // ranks),
        gpus=max(1, gpus // ranks),
        call=_number(question, "compute.gpu.latency") * _PS,
        triangle_rate=_triangles(question, gpus) * _share(question, "triangle_share") / ranks,
        panel_rate=_processors(question) * _share(question, "panel_share") / ranks,
        message=message_s(machine, question),
        nic_rate=nics.rate * nics.count / ranks,
        copy_in=copies(machine, "in", gpus, on_other=on_other) / ranks,
        copy_out=copies(machine, "out", gpus, on_other=on_other) / ranks,
        triangle_on_host=values["triangle"] == "cpu",
        direct=values["gpu_mpi"] == "on",
        one_queue=values["queues"] == "one",
        mapping=mapping_of(machine, values),
    )


def _triangles(question: Question, gpus: int) -> float:
    """Operations a second of a node, in what its triangular solves are made of."""
    if question.parameter("triangle") == "gpu":
        return gpus * _number(question, "compute.gpu.fp32")
    return _processors(question)


def _processors(question: Question) -> float:
    """Of a node: with AMX products of 16 bits, without them FP32."""
    kind = "half" if question.parameter("amx") == "on" else "fp32"
    return _number(question, "compute.cpu.count") * _number(question, f"compute.cpu.{kind}")


def _number(question: Question, path: str) -> float:
    machine = question.loaded
    if path not in machine.facts:
        raise UserError(f"hplmxp needs {path}, and machine {machine.name} has none; --set {path}=... gives one")
    return float(machine.number(path))


def _share(question: Question, name: str) -> float:
    return int(question.parameter(name) or 0) * _SHARE


def problem_of(question: Question) -> hplmxp.Problem:
    rows, columns = _grid(question)
    block = int(question.parameter("nb") or 0)
    order = question.parameter("n")
    return hplmxp.Problem(
        order=int(order) if order is not None else _order(question, block),
        block=block,
        rows=rows,
        columns=columns,
        look_ahead=question.parameter("depth") == "1",
        corrections=int(question.parameter("corrections") or 0),
        element=_element(question),
    )


def _element(question: Question) -> int:
    return hplmxp.HALF if question.parameter("storage") == "half" else hplmxp.SINGLE


def _grid(question: Question) -> tuple[int, int]:
    """As square as can be, the longer side first, unless it is given."""
    given = question.parameter("grid")
    if given is not None:
        rows, columns = (int(side) for side in given.split("x"))
        return rows, columns
    shorter = next(side for side in range(math.isqrt(question.ranks), 0, -1) if question.ranks % side == 0)
    return question.ranks // shorter, shorter


def _memory(question: Question) -> float:
    """Of a node's GPUs."""
    return _number(question, "compute.gpu.count") * _number(question, "compute.gpu.memory")


def _order(question: Question, block: int) -> int:
    assert question.nodes is not None
    elements = _share(question, "memory_share") * _memory(question) * question.nodes / _element(question)
    return max(1, math.isqrt(int(elements)) // block) * block


def check_memory(question: Question) -> None:
    """Raises UserError where a matrix whose size is given does not fit."""
    assert question.ppn is not None
    problem = problem_of(question)
    needed, there = question.ppn * hplmxp.local_bytes(problem), _memory(question)
    if needed > there:
        raise UserError(
            f"n={problem.order}: a node needs {size_text(needed)}; accepted is what fits {size_text(there)}, "
            "the memory of its GPUs"
        )
