"""dryfly: runs unmodified MPI programs over a simulated Slingshot dragonfly in virtual time.

`dryfly.simulate` is `dryfly run` from Python (dryfly/api.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__version__ = "0.1.0"


def simulate(program: Sequence[str], **options: Any) -> dict[str, Any]:
    """See dryfly.api.simulate, which is imported when it is called: the command line starts faster without it."""
    from dryfly import api

    return api.simulate(program, **options)
