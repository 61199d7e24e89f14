"""Where the command begins: before its first import an interrupt must not be lost."""

from __future__ import annotations

import sys

from dryfly.base.interrupt import keep, number_of


def main() -> None:
    keep()
    try:
        from dryfly.cli.main import main as command
    except KeyboardInterrupt as interrupt:
        print("dryfly: interrupted", file=sys.stderr)
        sys.exit(128 + number_of(interrupt))
    command()


if __name__ == "__main__":
    main()
