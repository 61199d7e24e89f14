"""dryfly: runs unmodified MPI programs over a simulated Slingshot dragonfly in virtual time."""

from __future__ import annotations

__version__ = "0.1.0"
