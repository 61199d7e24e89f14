"""An interrupt that comes where Python cannot raise it still ends the command."""

from __future__ import annotations

import subprocess
import sys

_LOSES_ONE = """
import signal, sys, time, weakref

class Thing:
    pass

def interrupted(_):
    signal.raise_signal(signal.SIGINT)

if sys.argv[1] == "kept":
    from dryfly.interrupt import keep
    keep()
thing = Thing()
reference = weakref.ref(thing, interrupted)
try:
    del thing
    time.sleep(0.5)
except KeyboardInterrupt:
    print("interrupted")
else:
    print("lost")
"""


def _what_becomes_of_it(how: str) -> str:
    done = subprocess.run([sys.executable, "-c", _LOSES_ONE, how], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_an_interrupt_in_a_callback_of_a_weak_reference_is_raised_again() -> None:
    assert _what_becomes_of_it("as Python does") == "lost"
    assert _what_becomes_of_it("kept") == "interrupted"
