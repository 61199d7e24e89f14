"""What is said of a rank, by the words of dryfly-conductor and dryfly-launch; `rank R on NODE` stands in front."""

from __future__ import annotations

from dryfly.result.finding import LET_GO, TRIGGERED_LIMIT

# Mostly a program that writes beyond its own memory.
DAMAGED = "has damaged the memory it shares with the simulator: a command in it has an impossible {reason}"

UNSEEN = (
    "has begun an MPI that dryfly does not see, and that would run in real time: it is linked into the program "
    "(statically); link it dynamically"
)

# Said when it happens, for a program may end before its result; what all ranks missed is in that.
WITHOUT_ENTRY = (
    "has more triggered operations waiting than the {entries} entries that its process has at the NIC (TLEs of "
    f"--service): further ones wait for an entry, even if their counters are there; {TRIGGERED_LIMIT}"
)

# Warnings, by the conductor's word for them: the name, and what the rank does.
WARNINGS = {
    "spinning": ("spinning", "has computed for 10 s without entering MPI; virtual time waits for it"),
    "let-go": (LET_GO, "has slept for 5 s outside MPI and no longer holds virtual time: not repeatable"),
    "awaited": (
        "awaited",
        "sleeps, or waits for a lock of a file, and every other rank has waited for 10 s: nothing is in flight. "
        "The run goes on",
    ),
    "looking": (
        "looking",
        "has called {call} for 10 s, and finds nothing: nothing is in flight and every other rank waits or looks too. "
        "The run goes on",
    ),
}
