"""What the simulated machine would have done to a program that forks (docs/model/forks.md).

A fork copies no page at first: parent and child share each until one of them writes to it. Who writes gets a copy,
and the NIC, which was told where the page is, goes on with the old one. A kernel that copies pinned pages at the fork
itself leaves the parent its pages, and there is nothing to set; under an older one CXI_FORK_SAFE keeps the pages from
the child.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dryfly.case.bind import BoundCase

COPIES_AT_FORK = (5, 12)  # docs/model/forks.md#kernel
_ON = ("1", "true", "yes", "on")


def copies_at_fork(kernel: str) -> bool:
    """Whether this kernel gives a child its own copy of a pinned page."""
    version = re.match(r"(\d+)\.(\d+)", kernel)
    return version is not None and (int(version[1]), int(version[2])) >= COPIES_AT_FORK


def health(
    run: BoundCase, ranks: Sequence[Mapping[str, Any]], environment: Mapping[str, str]
) -> tuple[str, str, int] | None:
    """Severity, text and the number of ranks that have forked, if any has."""
    forked = sum(1 for row in ranks if row.get("forks"))
    if not forked:
        return None
    who = f"{forked} rank{'s have' if forked != 1 else ' has'} forked while NICs had memory of theirs"
    kernel = run.machine.optional("host.kernel")
    return (*_verdict(who, None if kernel is None else str(kernel), environment), forked)


def _verdict(who: str, kernel: str | None, environment: Mapping[str, str]) -> tuple[str, str]:
    if kernel is not None and copies_at_fork(kernel):
        return (
            "note",
            f"{who}: harmless, Linux {kernel} of the machine gives a child copies of such pages (host.kernel)",
        )
    linux = f"Linux {kernel} of the machine" if kernel is not None else "Linux before 5.12 (host.kernel is not known)"
    if "CXI_FORK_SAFE" in environment:
        huge = (
            ""
            if "CXI_FORK_SAFE_HP" in environment
            else "; memory in huge pages cannot be registered so, that takes CXI_FORK_SAFE_HP too"
        )
        return "note", (
            f"{who}: safe by CXI_FORK_SAFE, under {linux}; a child that touches these pages before it executes another "
            f"program ends by a segmentation fault{huge}"
        )
    if any(environment.get(name, "").lower() in _ON for name in ("FI_CXI_ODP", "FI_CXI_FORCE_ODP")):
        return "note", f"{who}: safe where memory is registered for on-demand paging (FI_CXI_ODP)"
    alone = " (CXI_FORK_SAFE_HP alone does nothing)" if "CXI_FORK_SAFE_HP" in environment else ""
    return "warning", (
        f"{who}: under {linux} what the parent writes into such memory afterwards the NIC does not see, and what the "
        f"NIC writes comes to the child: wrong data; CXI_FORK_SAFE=1, and CXI_FORK_SAFE_HP=1 for huge pages, "
        f"prevents it{alone}"
    )
