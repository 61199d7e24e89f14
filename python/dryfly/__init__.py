"""dryfly: runs unmodified MPI programs over a simulated Slingshot dragonfly in virtual time.

From Python: `run_case` runs a `Case` and gives a `Result`, `sweep` runs several, `simulate` is `dryfly run` with the
raw result. What cannot be used raises UserError, a job that fails RunFailed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dryfly.api import run_case, sweep
    from dryfly.base.errors import DryflyError, RunError, RunFailed, UserError
    from dryfly.case.case import Case
    from dryfly.result.details import Result

__version__ = "0.2.0"
__all__ = ["Case", "DryflyError", "Result", "RunError", "RunFailed", "UserError", "run_case", "simulate", "sweep"]

_PLACES = {
    "Case": "dryfly.case.case",
    "Result": "dryfly.result.details",
    "run_case": "dryfly.api",
    "sweep": "dryfly.api",
}
_PLACES |= dict.fromkeys(("DryflyError", "RunError", "RunFailed", "UserError"), "dryfly.base.errors")


def __getattr__(name: str) -> Any:
    """Imported when it is asked for: the command line starts faster without it."""
    if name not in _PLACES:
        raise AttributeError(f"module 'dryfly' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__", "__doc__", "__file__", "__name__", "__path__"})


def simulate(program: Sequence[str], **options: Any) -> dict[str, Any]:
    """See dryfly.api.simulate, which is imported when it is called: the command line starts faster without it."""
    from dryfly import api

    return api.simulate(program, **options)
