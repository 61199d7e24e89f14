"""Where the command begins: before its first import an interrupt must not be lost."""

from __future__ import annotations

from dryfly.interrupt import keep


def main() -> None:
    keep()
    from dryfly.cli import main as command

    command()


if __name__ == "__main__":
    main()
