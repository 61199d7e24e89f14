"""What the user should know about a run that goes on."""

from __future__ import annotations

from dataclasses import dataclass

# Names of findings after which a run cannot be repeated.
LET_GO = "let_go"
OUTSIDE = "outside_virtual_time"
# Said wherever deferred work has found no entry at its NIC.
TRIGGERED_LIMIT = "FI_CXI_ENABLE_TRIG_OP_LIMIT=1 has fi_control(FI_QUEUE_WORK) refuse such with -FI_ENOSPC"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something the user should know about a run that goes on: a row of the health table."""

    name: str
    text: str
    severity: str = "warning"
