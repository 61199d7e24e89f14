"""A skeleton that was written is run: at the sizes of the recordings, which shows what it is worth, and at others."""

from __future__ import annotations

from dataclasses import replace

from dryfly.base.folder import RunFolder
from dryfly.extrapolation.recording import Recording
from dryfly.skeleton import Played, Where, program_of, record, run_file
from dryfly.skeleton.replay import with_costs


def where_of(recording: Recording, ranks: int) -> Where:
    """As the recording was made, for so many ranks."""
    return Where(
        machine=recording.machine,
        nodes=-(-ranks // recording.ppn),
        ppn=recording.ppn,
        on_node="nic" if "run.on_node provider\n" in recording.spec else "memory",
    )


def spec_of(where: Where, recording: Recording) -> str:
    """What calls cost is what it was in the recording, because what else was worked there is counted beside it."""
    return with_costs(where.spec(), charged(recording))


def charged(recording: Recording) -> dict[str, int]:
    return {f"host.{name}": value for name, value in recording.host_costs.items()}


def library_of(recording: Recording) -> str:
    """Whose choice of algorithms counts."""
    return "openmpi" if recording.library.startswith("openmpi") else "mpich"


def play(file: str, ranks: int, where: Where, recording: Recording) -> Played:
    with RunFolder() as folder:
        path = folder.path / "schedule"
        record(program_of(file), ranks=ranks).write(path)
        return run_file(path, where, spec_text=spec_of(where, recording), library=library_of(recording))


def play_recorded(file: str, recording: Recording, *, level: str) -> Played:
    return play(file, recording.ranks, replace(where_of(recording, recording.ranks), level=level), recording)
