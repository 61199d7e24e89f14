"""The traffic class that a job asks for: MPICH_OFI_DEFAULT_TCLASS and MPICH_OFI_TCLASS_ERRORS, as Cray MPICH has them.

The provider reads both in each rank (provider/traffic_class.hpp), so that a wrapper script may set them. A
communicator's class is a hint of the program (preload/mpi/communicator_class.hpp), which the rank checks.
"""

from __future__ import annotations

from collections.abc import Mapping

from dryfly.base.errors import UserError
from dryfly.machine import qos
from dryfly.machine.machine import Machine

_DEFAULT, _ERRORS = "MPICH_OFI_DEFAULT_TCLASS", "MPICH_OFI_TCLASS_ERRORS"
CLASSES_VARIABLE = "DRYFLY_TRAFFIC_CLASSES"
_TOLD_VARIABLE = "DRYFLY_CLASS_TOLD"
_NAMES = {
    "TC_BEST_EFFORT": "best_effort",
    "TC_LOW_LATENCY": "low_latency",
    "TC_BULK_DATA": "bulk_data",
    "TC_DEDICATED_ACCESS": "dedicated",
    "TC_SCAVENGER": "scavenger",
}


def check(environment: Mapping[str, str], machine: Machine) -> str | None:
    """A warning, where the machine's profile lacks the class and that is no error."""
    errors = environment.get(_ERRORS, "warn")
    if errors not in ("warn", "silent", "error"):
        raise UserError(f"{_ERRORS}={errors}: accepted is warn, silent or error")
    wanted = environment.get(_DEFAULT)
    if not wanted:
        return None
    if wanted not in _NAMES:
        raise UserError(f"{_DEFAULT}={wanted}: accepted is {', '.join(list(_NAMES)[:-1])} or {list(_NAMES)[-1]}")
    profile, has = machine.text("fabric.qos.profile"), _classes(machine)
    if _NAMES[wanted] in has:
        return None
    text = f"{_DEFAULT}={wanted}: the QoS profile {profile} of {machine.name} has {', '.join(has)} only"
    if errors == "error":
        raise UserError(text)
    return f"{text}; it travels as {machine.text('fabric.qos.default')}" if errors == "warn" else None


def variable(machine: Machine) -> str:
    """What tells the ranks which classes the machine's profile has."""
    return f"{CLASSES_VARIABLE}={','.join(_classes(machine))}"


def told(environment: Mapping[str, str]) -> dict[str, str]:
    """What tells the ranks of which class `check` has said what there is to say."""
    wanted = environment.get(_DEFAULT)
    return {_TOLD_VARIABLE: wanted} if wanted else {}


def _classes(machine: Machine) -> list[str]:
    return qos.profiles(machine)[machine.text("fabric.qos.profile")]
