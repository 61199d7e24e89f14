"""An interrupt that comes where Python cannot raise it still ends the command."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

_LOSES_ONE = """
import signal, sys, time, weakref

# Where the tests run in the background the shell has SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Thing:
    pass

def interrupted(_):
    signal.raise_signal(signal.SIGINT)

if sys.argv[1] == "kept":
    from dryfly.base import interrupt
    interrupt._MOMENT_S = float(sys.argv[2])
    interrupt.keep()
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


def _what_becomes_of_it(how: str, moment: str = "") -> str:
    done = subprocess.run([sys.executable, "-c", _LOSES_ONE, how, moment], capture_output=True, text=True, check=True)
    return done.stdout.strip()


# With the shorter moments the timer is there before the hook is left, as it can be on a busy computer.
@pytest.mark.parametrize("moment", ["1e-3", "2e-5", "5e-6"])
def test_an_interrupt_in_a_callback_of_a_weak_reference_is_raised_again(moment: str) -> None:
    assert _what_becomes_of_it("as Python does") == "lost"
    assert _what_becomes_of_it("kept", moment) == "interrupted"


# So that `with` and `finally` remove what is to be removed.
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_that_asks_a_command_to_end_unwinds_it(number: int) -> None:
    text = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from dryfly.cli import main as cli
from dryfly.base import interrupt
from dryfly.machine import listing as machines
interrupt.keep()
def listing():
    try:
        signal.raise_signal({int(number)})
    finally:
        print("unwound", flush=True)
machines.listing = listing
sys.argv = ["dryfly", "machines"]
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.stdout == "unwound\n"
    assert done.returncode == 128 + number
    assert f"dryfly: interrupted by signal {int(number)} (" in done.stderr
