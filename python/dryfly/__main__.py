from __future__ import annotations

from dryfly.cli import main

main()
