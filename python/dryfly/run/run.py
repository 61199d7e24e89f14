"""`dryfly run`: checks everything, starts the job, reports it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dryfly.apps import solver
from dryfly.base.errors import UserError
from dryfly.base.folder import RunFolder
from dryfly.base.paths import CONDUCTOR, LAUNCHER, PRELOAD, PROVIDER, native
from dryfly.case import environment, hwloc, memory, nics, program, traffic_class
from dryfly.case.placement import place
from dryfly.case.resolve import ComputeSpec, OnNode, resolve
from dryfly.machine.machine import load
from dryfly.machine.names import NodeNames
from dryfly.mpi import launchers
from dryfly.mpi import libraries as mpi
from dryfly.result import capture, counters, result, summary
from dryfly.result import compute_recording as recording
from dryfly.result.result import RunInput
from dryfly.run import processes as job
from dryfly.scenario import faults, storage

SEED_MAX = 2**63 - 1
DETAILS_SHOWN = 16  # lines that explain a failure, such as each rank's last call in a deadlock


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    command: tuple[str, ...]
    machine: str = "testbed"
    nodes: int | None = None
    ppn: int | None = None
    ranks: int | None = None
    place: str = "packed"
    seed: int = 1
    json: str | None = None
    sets: tuple[str, ...] = ()
    mpi: str | None = None
    compute: str = "measured"
    compute_record: str | None = None
    trace: str | None = None
    record: str | None = None
    timeout_s: float | None = None
    debug: str | None = None
    quiet: bool = False
    faults: str | Mapping[str, object] | None = None  # a file, or what one would hold
    storage: str | Mapping[str, object] | None = None
    provider: str = "cxi"
    on_node: str = OnNode.PROVIDER.value
    skip_numerics: bool = False
    launcher: str = launchers.OWN


def run(options: RunOptions) -> int:
    """The exit status of the job; raises UserError for what is wrong before the start."""
    machine = load(options.machine, sets=options.sets)
    if options.storage is not None:
        machine = storage.with_servers(machine)
    if not 0 <= options.seed <= SEED_MAX:
        raise UserError(f"--seed {options.seed}: accepted is 0 to {SEED_MAX}")
    placement = place(
        machine, nodes=options.nodes, ppn=options.ppn, ranks=options.ranks, policy=options.place, seed=options.seed
    )
    nics.check(os.environ, machine, placement)
    class_warning = traffic_class.check(os.environ, machine)
    scenario = faults.load(options.faults, machine, seed=options.seed) if options.faults is not None else None
    streams = None
    if options.storage is not None:
        streams = storage.load(options.storage, machine, job=placement.nodes, seed=options.seed)
    compute = ComputeSpec.parse(
        options.compute, record_file=options.compute_record, skip_numerics=options.skip_numerics
    )
    if compute.record_file is not None:
        recording.check_target(compute.record_file)
    if compute.replay_file is not None:
        recording.check_source(compute.replay_file, ranks=len(placement.ranks))
    on_node = OnNode.parse(options.on_node)
    debug_rank, debug_command = _debugger(options.debug, ranks=len(placement.ranks))
    _check_json(options.json)
    _check_recording(options)
    counter_options = counters.read_options(os.environ)
    if not options.command:
        raise UserError("the program is missing: dryfly run [OPTIONS] -- PROGRAM ARGS...")
    for part in (CONDUCTOR, LAUNCHER, PROVIDER, PRELOAD):
        native(part)
    library = mpi.select(options.mpi, needed=program.family(options.command[0]))
    environment.check_provider_settings()
    environment.check_on_node(library, on_node)
    names = NodeNames(machine)
    node_names = tuple(names.name(each.node) for each in placement.ranks)
    if debug_rank is not None and options.launcher != launchers.OWN:
        raise UserError(f"--debug goes with --launcher {launchers.OWN} only, which leaves the rank its terminal")
    starter = launchers.prepare(options.launcher, library, node_of_rank=node_names)
    spec = resolve(
        machine, placement, seed=options.seed, compute=compute, scenario=scenario, on_node=on_node, storage=streams
    )
    with RunFolder() as folder:
        compute_folder = folder.path / "compute"
        compute_folder.mkdir()
        record_folder = folder.path / "record" if options.trace or options.record else None
        if record_folder is not None:
            record_folder.mkdir()
        if compute.replay_file is not None:
            recording.unpack(compute.replay_file, compute_folder)
        prepared = program.prepare(options.command[0], options.command[1:], mpi=library, build_folder=folder.path)
        printer = summary.Printer(quiet=options.quiet)
        inputs = RunInput(
            machine=machine,
            placement=placement,
            seed=options.seed,
            compute=compute,
            mpi=library,
            program=options.command,
            spec=spec,
            storage=streams,
        )
        need = memory.estimate(machine, ranks=len(placement.ranks))
        summary.before(printer, inputs, prepared, need)
        if class_warning is not None:
            printer.say(f"warning: {class_warning}")
        if not need.is_there:
            printer.say("warning: there is less memory than that; the system may end processes of this run")
        channel = job.new_channel()
        values = environment.variables(
            channel=channel,
            mpi=library,
            compute=compute,
            folder=folder.path,
            inherited=os.environ,
            record_folder=record_folder,
            provider=options.provider,
            on_node=on_node,
            seed=options.seed,
        ) | hwloc.settings(machine, folder=folder.path, inherited=os.environ)
        outcome = job.run(
            job.JobSpec(
                channel=channel,
                spec=spec,
                plan=environment.plan(
                    machine,
                    placement,
                    values,
                    mpi=library,
                    folder=folder.path,
                    stdin_rank=debug_rank or 0,
                    starter=starter(folder.path, values),
                ),
                program=prepared.command,
                node_names=node_names,
                launcher=options.launcher,
                result_file=folder.path / "result.json",
                record_folder=record_folder,
                timeout_s=options.timeout_s,
                debug_rank=debug_rank,
                debug_command=debug_command,
                output_to_stderr=options.json == "-",
            ),
            say=printer.say,
        )
        return _report(printer, inputs, outcome, folder.path, options, counter_options)


def _report(
    printer: summary.Printer, inputs: RunInput, outcome: job.Outcome, folder: Path, options: RunOptions,
    counter_options: counters.CounterOptions,
) -> int:  # fmt: skip
    target = options.json
    # The solvers' own end without numerics: the times are what the run was for, and are reported.
    unsolved = options.skip_numerics and outcome.has_result and outcome.exit_status == solver.NOT_SOLVED
    if outcome.failure and not unsolved:
        printer.say(outcome.failure)
        for line in outcome.details[:DETAILS_SHOWN]:
            printer.line_always(f"  {line}")
        if len(outcome.details) > DETAILS_SHOWN:
            printer.line_always(f"  and {len(outcome.details) - DETAILS_SHOWN} more")
        return outcome.exit_status
    if not outcome.attached:
        printer.say(
            "no rank has used MPI over the simulated network: there is nothing to report "
            "(is the program linked against MPI, and does it call MPI_Init?)"
        )
    counted = result.load_counted(folder / "result.json") if outcome.has_result else {}
    final = result.build(inputs, counted, wall_time_s=outcome.wall_time_s, findings=outcome.findings)
    if outcome.attached:
        output = sys.stderr if target == "-" else sys.stdout
        counters.report(
            counter_options, final["nics"], timeouts=final["network_timeouts"], seconds=final["virtual_time_s"],
            say=lambda line: print(line, file=output, flush=True),
        )  # fmt: skip
        summary.after(printer, inputs, final)
    if target is not None:
        result.write(final, target)
    if outcome.has_result and (options.trace or options.record):
        _write_recording(inputs, final, folder / "record", options)
    if unsolved:
        printer.say(f"not solved: the numerics were skipped; exit status {solver.NOT_SOLVED}")
    if inputs.compute.record_file is not None:
        about = recording.About(ranks=len(inputs.placement.ranks), program=inputs.program)
        recording.pack(folder / "compute", inputs.compute.record_file, about)
    return outcome.exit_status


def _check_recording(options: RunOptions) -> None:
    if options.trace is not None:
        capture.check_target("--trace", options.trace, folder=False)
    if options.record is not None:
        from dryfly.result import tables

        tables.check_target(options.record)


def _write_recording(inputs: RunInput, final: result.Json, folder: Path, options: RunOptions) -> None:
    names = NodeNames(inputs.machine)
    recorded = capture.load(folder, {names.number(node): names.name(node) for node in inputs.placement.nodes})
    if options.trace is not None:
        from dryfly.result import trace

        nodes = [row["node"] for row in final["ranks_detail"]]
        nics = [f"{row['node']}.{row['nic']}" for row in final["ranks_detail"]]
        trace.write(recorded, options.trace, rank_names=nodes, nic_names=nics)
    if options.record is not None:
        from dryfly.result import tables

        tables.write(recorded, final, options.record)


def _debugger(text: str | None, *, ranks: int) -> tuple[int | None, tuple[str, ...]]:
    """RANK, or RANK:WRAPPER with a wrapper of your own instead of gdb."""
    if text is None:
        return None, ()
    number, _, wrapper = text.partition(":")
    if not number.isdecimal() or int(number) >= ranks:
        raise UserError(f"--debug {text}: accepted is a rank, 0 to {ranks - 1}, or RANK:WRAPPER")
    command = shlex.split(wrapper or "gdb --args")
    if not command or shutil.which(command[0]) is None:
        raise UserError(f"--debug {text}: {command[0] if command else wrapper} is not found on PATH")
    return int(number), tuple(command)


def _check_json(target: str | None) -> None:
    if target is None or target == "-":
        return
    folder = Path(target).parent
    if Path(target).is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise UserError(f"--json {target}: no file can be written there")
