"""Where the command begins: before its first import an interrupt must not be lost."""

from __future__ import annotations

import sys

from dryfly.interrupt import keep


def main() -> None:
    keep()
    try:
        from dryfly.cli import main as command
    except KeyboardInterrupt:
        sys.exit("dryfly: interrupted")
    command()


if __name__ == "__main__":
    main()
