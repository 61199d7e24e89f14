"""A case as the flags of `dryfly run`, for a run in a process of its own."""

from __future__ import annotations

from dryfly.case.case import Case


def flags_of(case: Case) -> list[str]:
    """All but the program, which follows after `--`. `faults` and `storage` must be files."""
    named = {
        "--machine": case.machine,
        "-N": case.nodes,
        "--ppn": case.ppn,
        "-n": case.ranks,
        "--place": case.place,
        "--seed": case.seed,
        "--mpi": case.mpi,
        "--on-node": case.on_node,
        "--provider": case.provider,
        "--compute": case.compute,
        "--faults": case.faults,
        "--storage": case.storage,
    }
    words = [word for name, value in named.items() if value is not None for word in (name, str(value))]
    words += [word for item in case.sets for word in ("--set", item)]
    return [*words, *(["--skip-numerics"] if case.skip_numerics else [])]
