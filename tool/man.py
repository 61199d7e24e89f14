#!/usr/bin/env python3
"""Writes the manual pages, man/*.1, from the command line's own definitions.

tool/man.py           write them
tool/man.py --check   say which are not as they would be written, and exit 1 if there is any
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "man"
sys.path.insert(0, str(ROOT / "python"))

from dryfly.cli.man import pages  # noqa: E402


def main() -> int:
    wanted = pages()
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.1")}
    if sys.argv[1:] == ["--check"]:
        wrong = sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))
        for name in wrong:
            print(f"man/{name}: not as tool/man.py writes it")
        return 1 if wrong else 0
    FOLDER.mkdir(exist_ok=True)
    for name in there.keys() - wanted.keys():
        (FOLDER / name).unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
