#!/usr/bin/env python3
"""The atlas of applications: installs them, runs them natively and under dryfly, and writes docs/applications.md.

tool/applications.py                  all of them on aurora and frontier
tool/applications.py --only NAME      one of applications/; it may be repeated, and so may --machine
tool/applications.py --fetch          only install what they need
tool/applications.py --page           only write the page from what has been measured
tool/applications.py --check          say whether the page is not as it would be written, and exit 1 then
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tool"), str(ROOT / "python")]

from atlas import application, kept, measure, page  # noqa: E402
from atlas.install import install  # noqa: E402

from dryfly.base import interrupt  # noqa: E402
from dryfly.base.errors import DryflyError  # noqa: E402
from dryfly.machine.load import load  # noqa: E402


def main() -> int:
    arguments = _parser().parse_args()
    try:
        if arguments.page or arguments.check:
            return page.write(check=arguments.check)
        chosen = [application.read(name) for name in dict.fromkeys(arguments.only or application.names())]
        machines = list(dict.fromkeys(arguments.machine or ["aurora", "frontier"]))
        for machine in machines:
            load(machine)  # one that is not there is said before anything runs
        return _go(chosen, machines, fetch_only=arguments.fetch)
    except DryflyError as error:
        print(f"applications: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt as interrupted:
        print("applications: interrupted", file=sys.stderr)
        return 128 + interrupt.number_of(interrupted)


def _go(chosen: list[application.Application], machines: list[str], *, fetch_only: bool) -> int:
    """One that cannot be had or fails is a sentence; the others go on."""
    failed = False
    for each in chosen:
        try:
            if each.left_out:
                continue
            install(each)
            if not fetch_only:
                kept.keep(each, measure.measure(each, machines))
        except DryflyError as error:
            print(f"applications: {each.name}: {error}", file=sys.stderr)
            failed = True
    if not fetch_only:
        page.write()
        failed |= page.say_what_does_not_hold(each.name for each in chosen)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="applications.py", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="one of the folders of applications/")
    parser.add_argument("--machine", action="append", metavar="NAME", help="default: aurora and frontier")
    parser.add_argument("--fetch", action="store_true", help="only install what they need")
    parser.add_argument("--page", action="store_true", help="only write docs/applications.md")
    parser.add_argument("--check", action="store_true", help="say whether docs/applications.md is another one")
    return parser


if __name__ == "__main__":
    interrupt.keep()
    sys.exit(main())
