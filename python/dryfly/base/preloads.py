"""What the user has preloaded (LD_PRELOAD): it is meant for the program, and kept from the processes dryfly starts."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_VARIABLE = "LD_PRELOAD"


def users_preloads(inherited: Mapping[str, str]) -> list[str]:
    return [each for each in re.split(r"[: ]+", inherited.get(_VARIABLE, "")) if each]


def environment_without() -> dict[str, str]:
    """This process's environment, for a process of dryfly's own."""
    return {name: value for name, value in os.environ.items() if name != _VARIABLE}
