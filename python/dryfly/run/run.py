"""`dryfly run`: checks everything, starts the job, reports it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dryfly.apps import solver
from dryfly.base.errors import UserError
from dryfly.base.folder import RunFolder
from dryfly.base.paths import CONDUCTOR, LAUNCHER, PRELOAD, PROVIDER, native
from dryfly.base.printer import Printer
from dryfly.case import environment, gpus, hwloc, memory, nics, node_files, program, traffic_class
from dryfly.case.bind import BoundCase, bind, library_of, settled, starter_of
from dryfly.case.case import Case
from dryfly.case.resolve import with_counted_software
from dryfly.machine.names import NodeNames
from dryfly.mpi import launchers, openmpi, software, system
from dryfly.mpi.libraries import MpiLibrary
from dryfly.result import compute_recording as recording
from dryfly.result import counters, result, software_spent, summary
from dryfly.run import other_family, progress
from dryfly.run import processes as job
from dryfly.run.other_family import OtherFamily
from dryfly.run.runner import Runner
from dryfly.scenario.faults import Scenario

DETAILS_SHOWN = 16  # lines that explain a failure, such as each rank's last call in a deadlock


@dataclass(frozen=True, kw_only=True)
class Ended:
    exit_status: int
    failure: str = ""  # one sentence, which has been printed; empty: the run has a result
    details: tuple[str, ...] = ()
    result: result.Json | None = None


def run(case: Case, runner: Runner) -> int:
    """The exit status of the job; raises UserError for what is wrong before the start."""
    return execute(case, runner).exit_status


def execute(case: Case, runner: Runner, *, scenario: Scenario | None = None) -> Ended:
    """`scenario`: in place of the case's faults. Raises UserError for what is wrong before the start."""
    with environment.applied(case.environment):
        return _execute(case, runner, scenario)


def _execute(case: Case, runner: Runner, scenario: Scenario | None, *, other: OtherFamily | None = None) -> Ended:
    """`other`: what ranks have found, where this is the second start."""
    bound = bind(case, compute_record=runner.compute_record, scenario=scenario)
    machine, placement, compute = bound.machine, bound.placement, bound.compute
    nics.check(os.environ, machine, placement, nic_bind=case.nic_bind)
    class_warning = traffic_class.check(os.environ, machine)
    if compute.record_file is not None:
        recording.check_target(compute.record_file)
    if compute.replay_file is not None:
        recording.check_source(compute.replay_file, ranks=len(placement.ranks))
    debug_rank, debug_command = _debugger(runner.debug, ranks=len(placement.ranks))
    _check_json(runner.json)
    _check_recording(runner)
    counter_options = counters.read_options(os.environ)
    if not case.program:
        raise UserError("the program is missing: dryfly run [OPTIONS] -- PROGRAM ARGS...")
    for part in (CONDUCTOR, LAUNCHER, PROVIDER, PRELOAD):
        native(part)
    is_guessed = case.mpi is None and other is None and not program.linked_family(case.program)
    library = library_of(case, needed=other.family if other is not None else program.family(case.program))
    bound = settled(bound, library)
    passed_over: list[str] = []
    table = software.charged(case.software, library, say=passed_over.append)
    if table is not None:
        bound = replace(bound, spec=with_counted_software(bound.spec, machine, library.family), software=table.library)
    names = NodeNames(machine)
    node_names = tuple(names.name(each.node) for each in placement.ranks)
    if debug_rank is not None and case.launcher != launchers.OWN:
        raise UserError(f"--debug goes with --launcher {launchers.OWN} only, which leaves the rank its terminal")
    starter = starter_of(bound, library)
    standard_input = other_family.Input()
    with RunFolder() as folder:
        compute_folder = folder.path / "compute"
        compute_folder.mkdir()
        record_folder = folder.path / "record" if runner.trace or runner.record else None
        if record_folder is not None:
            record_folder.mkdir()
        if compute.replay_file is not None:
            recording.unpack(compute.replay_file, compute_folder)
        prepared = program.prepare(case.program[0], case.program[1:], mpi=library, build_folder=folder.path)
        gpu_description = gpus.description(machine)
        printer = Printer(quiet=runner.quiet)
        need = memory.estimate(machine, ranks=len(placement.ranks))
        summary.before(printer, bound, library, prepared, need, verbose=runner.verbose)
        if class_warning is not None:
            printer.say(f"warning: {class_warning}")
        for reason in passed_over:
            printer.say(f"warning: the table is passed over: {reason}")
        if not need.is_there:
            printer.say("warning: there is less memory than that; the system may end processes of this run")
        channel = job.new_channel()
        values = (
            environment.variables(
                channel=channel,
                mpi=library,
                compute=compute,
                folder=folder.path,
                inherited=os.environ,
                record_folder=record_folder,
                records_operations=runner.record is not None,
                provider=case.provider,
                on_node=bound.on_node.on_node,
                alone=len(bound.placement.nodes) == len(bound.placement.ranks),
                seed=case.seed,
                additions=prepared.additions,
            )
            | _software_of(table, bound, folder.path)
            | hwloc.settings(machine, folder=folder.path, inherited=os.environ)
            | node_files.settings(machine, folder=folder.path)
            | traffic_class.told(os.environ)
        )
        if library.family == "openmpi":
            values |= openmpi.told_of_command(prepared.command)
        if is_guessed and debug_rank is None and standard_input.can_be_put_back:
            values |= other_family.settings(folder.path)
        if gpu_description is not None:
            values |= gpus.settings(gpu_description, mpi=library, values=values)
        outcome = job.run(
            job.JobSpec(
                channel=channel,
                spec=bound.spec,
                plan=environment.plan(
                    machine,
                    placement,
                    values,
                    mpi=library,
                    folder=folder.path,
                    stdin_rank=debug_rank or 0,
                    starter=starter(folder.path, values),
                    bindings=bound.bindings,
                ),
                program=prepared.command,
                node_names=node_names,
                launcher=case.launcher,
                launcher_options=case.launcher_options or "",
                result_file=folder.path / "result.json",
                record_folder=record_folder,
                timeout_s=runner.timeout_s,
                debug_rank=debug_rank,
                debug_command=debug_command,
                progress=progress.wanted(asked=runner.progress, quiet=runner.quiet),
                output_to_stderr=runner.json == "-",
            ),
            say=printer.say,
        )
        found = other_family.found(folder.path)
        if found is None or not other_family.may_start_again(outcome):
            if found is not None:
                printer.say(f"{found.reason}: say --mpi {found.family}")
            return _report(
                printer, bound, library, table, outcome, folder.path, runner, counter_options, prepared.additions
            )
    printer.line(f"dryfly: {found.reason}; no --mpi was given, so the run starts again on {found.family}")
    standard_input.put_back()
    return _execute(case, runner, scenario, other=found)


def _report(
    printer: Printer, bound: BoundCase, library: MpiLibrary, table: software.SoftwareTable | None,
    outcome: job.Outcome, folder: Path, runner: Runner, counter_options: counters.CounterOptions,
    additions: system.Additions,
) -> Ended:  # fmt: skip
    target = runner.json
    # The solvers' own end without numerics: the times are what the run was for, and are reported.
    unsolved = bound.case.skip_numerics and outcome.has_result and outcome.exit_status == solver.NOT_SOLVED
    if outcome.failure and not unsolved:
        printer.say(outcome.failure)
        for line in outcome.details[:DETAILS_SHOWN]:
            printer.line_always(f"  {line}")
        if len(outcome.details) > DETAILS_SHOWN:
            printer.line_always(f"  and {len(outcome.details) - DETAILS_SHOWN} more")
        return Ended(exit_status=outcome.exit_status, failure=outcome.failure, details=tuple(outcome.details))
    if not outcome.attached:
        printer.say(
            "no rank has used MPI over the simulated network: there is nothing to report "
            "(is the program linked against MPI, and does it call MPI_Init?)"
        )
    counted = result.load_counted(folder / "result.json") if outcome.has_result else {}
    spent = software_spent.of_ranks(counted, software.Charges(table) if table is not None else None)
    final = result.build(
        bound,
        counted,
        mpi=library,
        wall_time_s=outcome.wall_time_s,
        findings=outcome.findings,
        software=spent,
        additions=additions,
    )
    if outcome.attached:
        output = sys.stderr if target == "-" else sys.stdout
        counters.report(
            counter_options, final["nics"], timeouts=final["network_timeouts"], seconds=final["virtual_time_s"],
            say=lambda line: print(line, file=output, flush=True), known=counted.get("counter_names", ()),
        )  # fmt: skip
        summary.after(printer, bound, final, verbose=runner.verbose)
    if target is not None:
        result.write(final, target)
    if outcome.has_result and (runner.trace or runner.record):
        _write_recording(bound, final, spent, folder / "record", runner, counter_options.wanted)
    if unsolved:
        printer.say(f"not solved: the numerics were skipped; exit status {solver.NOT_SOLVED}")
    if bound.compute.record_file is not None:
        about = recording.About(ranks=len(bound.placement.ranks), program=bound.case.program)
        recording.pack(folder / "compute", bound.compute.record_file, about)
    return Ended(exit_status=outcome.exit_status, result=final)


def _software_of(table: software.SoftwareTable | None, bound: BoundCase, folder: Path) -> dict[str, str]:
    """What ranks are to be told of the costs of the library's own code."""
    if table is None:
        return {}
    file = folder / "software"
    prices = software.Prices(
        instruction_ps=bound.machine.number("host.instruction"),
        data_ps_per_kib=round(1024 * 10**12 / bound.machine.number("node.local_rate")),
    )
    file.write_bytes(software.encoded(table, prices))
    return {"DRYFLY_SOFTWARE": str(file)}


def _check_recording(runner: Runner) -> None:
    if runner.trace is not None:
        from dryfly.result import capture

        capture.check_target("--trace", runner.trace, folder=False)
    if runner.record is not None:
        from dryfly.result import tables

        tables.check_target(runner.record)


def _write_recording(
    bound: BoundCase, final: result.Json, spent: Sequence[software_spent.ByKind], folder: Path, runner: Runner,
    counted: Sequence[str],
) -> None:  # fmt: skip
    from dryfly.result import capture

    names = NodeNames(bound.machine)
    recorded = capture.load(folder, {names.number(node): names.name(node) for node in bound.placement.nodes})
    if runner.trace is not None:
        from dryfly.result import trace

        nodes = [row["node"] for row in final["ranks_detail"]]
        nics = [f"{row['node']}.{row['nic']}" for row in final["ranks_detail"]]
        trace.write(recorded, runner.trace, rank_names=nodes, nic_names=nics)
    if runner.record is not None:
        from dryfly.result import tables

        numbers = [row["rank"] for row in final["ranks_detail"]]
        tables.write(recorded, final, runner.record, software=software_spent.columns(spent, numbers), counted=counted)


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
