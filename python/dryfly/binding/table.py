"""The map of ranks to cores, memories, GPUs and NICs, as lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from dryfly.binding import sets
from dryfly.binding.ranks import RankBinding
from dryfly.machine.node import Node

HEADS = ("rank", "hardware threads", "socket", "memory", "GPU", "NIC")


def row(node: Node, rank: int, binding: RankBinding) -> tuple[str, ...]:
    """`-` for what is not bound."""
    processors, memories = binding.processors, binding.memories
    sockets = {node.socket_of(node.core_of(each)) for each in processors or ()}
    return (
        str(rank),
        sets.text(processors or ()),
        sets.text(sockets),
        ", ".join(node.domains[each].text for each in sorted(memories or ())) or "-",
        ", ".join(binding.gpus or ()) or "-",
        "-" if binding.nic is None else f"{binding.nic} (socket {node.socket(node.nic_domains[binding.nic])})",
    )


def lines(node: Node, bindings: Sequence[RankBinding], *, indent: str = "  ") -> list[str]:
    rows = [HEADS, *(row(node, rank, binding) for rank, binding in enumerate(bindings))]
    widths = [max(len(each[column]) for each in rows) for column in range(len(HEADS))]
    return [
        (indent + "  ".join(word.ljust(width) for word, width in zip(each, widths, strict=True))).rstrip()
        for each in rows
    ]
