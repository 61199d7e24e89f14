"""Options that several commands share, declared once: those of a Case, and those of how it is run.

A function is called with them as one argument: `case`, or `given` (only what the command line says). What is imported
here is light, because every command imports it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any

import click
from click.core import ParameterSource

from dryfly.base.errors import UserError
from dryfly.case.case import LAUNCHERS, NETWORKS, PROVIDERS, SOFTWARE, Case
from dryfly.cli import complete

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
# Of a command that ends with a program and its arguments.
PROGRAM_CONTEXT: dict[str, Any] = {**CONTEXT, "allow_interspersed_args": False}

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]

# By the field of Case. Unless a command has another default, it is the field's.
CASE: Mapping[str, tuple[Sequence[str], Mapping[str, Any]]] = {
    "machine": (["--machine"], {
        "metavar": "NAME|FILE", "help": "Which machine to simulate.", "shell_complete": complete.machines}),
    "nodes": (["-N", "--nodes"], {"type": int, "metavar": "N", "help": "Number of nodes."}),
    "ppn": (["--ppn"], {"type": int, "metavar": "P", "help": "Ranks per node."}),
    "ranks": (["-n", "--ranks"], {"type": int, "metavar": "R", "help": "Number of ranks; alone: one per node."}),
    "network": (["--network"], {
        "type": click.Choice(NETWORKS),
        "help": "The model of the network: packet by packet, or as flows that share the links, which is faster where "
                "messages are long."}),
    "place": (["--place"], {
        "metavar": "HOW", "help": "packed, spread, random, or a FILE.",
        "shell_complete": complete.words("packed", "spread", "random", files=True)}),
    "seed": (["--seed"], {"type": int, "help": "For every random choice of the run."}),
    "sets": (["--set"], {
        "multiple": True, "metavar": "FIELD=VALUE", "help": 'Such as fabric.link.rate="100 Gb/s".',
        "shell_complete": complete.fields}),
    "faults": (["--faults"], {
        "metavar": "FILE", "help": "What goes wrong with the network, and when: a TOML file.",
        "shell_complete": complete.files}),
    "storage": (["--storage"], {
        "metavar": "FILE", "help": "What reads from and writes to storage groups beside it: a TOML file.",
        "shell_complete": complete.files}),
    "noise": (["--noise"], {
        "metavar": "none|machine|FILE", "help": "Detours of the operating system on the nodes' cores: a TOML file.",
        "shell_complete": complete.words("none", "machine", files=True)}),
    "service": (["--service"], {
        "metavar": "FILE",
        "help": "The CXI service of the job (VNIs, classes, limits): a file as cxi_service create takes it.",
        "shell_complete": complete.files}),
    "cpu_bind": (["--cpu-bind"], {
        "metavar": "FORM", "help": "Cores of each rank of a node, as srun or PALS' mpiexec has it: cores, depth, "
                                   "list:1-8:9-16, map_cpu:1,9, ...",
        "shell_complete": complete.words("none", "cores", "threads", "sockets", "ldoms", "depth", "numa", "core")}),
    "depth": (["--depth", "--cpus-per-task"], {
        "type": int, "metavar": "N", "help": "With --cpu-bind: how many cores or hardware threads a rank gets."}),
    "mem_bind": (["--mem-bind"], {
        "metavar": "FORM", "help": "Memory of each rank: local, list:0:1, map_mem:2,3, ...",
        "shell_complete": complete.words("none", "local")}),
    "gpu_bind": (["--gpu-bind"], {
        "metavar": "FORM", "help": "GPU of each rank, for the map, its NIC and its mask: closest, list:0:1, "
                                   "map_gpu:0,1, ...",
        "shell_complete": complete.words("none", "closest")}),
    "nic_bind": (["--nic-bind"], {
        "metavar": "FORM", "help": "NIC of each rank: closest, list:0:1, map_nic:0,1.",
        "shell_complete": complete.words("none", "closest")}),
    "mpi": (["--mpi"], {
        "metavar": "NAME", "help": 'One of "dryfly mpi list", a family, or mpich==5.0.2; default: the newest MPICH.',
        "shell_complete": complete.libraries}),
    "provider": (["--provider"], {
        "type": click.Choice(PROVIDERS),
        "help": "What Open MPI 5 talks through: linkx joins cxi with the node's shared memory."}),
    "on_node": (["--on-node"], {
        "metavar": "HOW",
        "help": "How ranks of a node talk: provider, shared (MPI's own shared memory), or auto, the default: shared "
                "for programs that ask MPI for their node.",
        "shell_complete": complete.words("auto", "provider", "shared")}),
    "compute": (["--compute"], {
        "metavar": "MODE", "help": "What counts between MPI calls: none, measured[:FACTOR], replay:FILE or model.",
        "shell_complete": complete.compute}),
    "software": (["--software"], {
        "type": click.Choice(SOFTWARE),
        "help": "What the MPI library's own code costs: the same for every call, or as was counted (mpi measure), the "
                "default where it was."}),
    "skip_numerics": (["--skip-numerics"], {
        "is_flag": True, "help": "With model: programs that can leave out their kernels do so."}),
    "launcher": (["--launcher"], {
        "type": click.Choice(LAUNCHERS),
        "help": "What starts the ranks: docs/guide/launchers.md."}),
    "launcher_options": (["--launcher-options"], {
        "metavar": "WORDS", "help": 'With prterun: how it maps and binds, "--map-by ppr:1:l3cache --bind-to core".'}),
}  # fmt: skip


_PLAIN_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def _seconds(_: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    if text is None:
        return None
    from dryfly.base import units

    flag = parameter.opts[0]
    if text.strip().startswith("-"):
        raise UserError(f"{flag} {text}: accepted is more than 0 and at most 1000000000 s")
    try:
        value = float(text) if _PLAIN_NUMBER.fullmatch(text) else units.parse(text, units.TIME) / 10**12
    except UserError as error:
        raise UserError(f"{flag} {text}: {error}") from None
    if not 0 < value <= 10**9:
        raise UserError(f"{flag} {text}: accepted is more than 0 and at most 1000000000 s")
    return value


# By the name of the argument that a command's function gets.
HOW: Mapping[str, tuple[Sequence[str], Mapping[str, Any]]] = {
    "json_file": (["--json"], {
        "metavar": "FILE", "help": "Write the result there; - is standard output.", "shell_complete": complete.files}),
    "timeout_s": (["--timeout"], {
        "metavar": "TIME", "callback": _seconds,
        "help": 'End the job after so much wall time: seconds, or "5 min".'}),
    "trace": (["--trace"], {
        "metavar": "FILE", "help": "Write a trace of calls, messages and links for ui.perfetto.dev.",
        "shell_complete": complete.files}),
    "record": (["--record"], {
        "metavar": "FOLDER", "help": 'Write tables of it (Parquet), for "dryfly report" or yourself.',
        "shell_complete": complete.folders}),
    "quiet": (["--quiet"], {"is_flag": True, "help": "Only warnings and errors."}),
    "verbose": (["-v", "--verbose"], {"is_flag": True, "help": "Also what the MPI library was given for the program."}),
    "progress": (["--progress"], {
        "is_flag": True, "help": "Say every 10 s how far virtual time is; a terminal shows it anyway, but rarer."}),
}  # fmt: skip


def option(*flags: str, **attributes: Any) -> Decorator:
    """As click.option, but a default that says something is shown."""
    if attributes.get("default") not in (None, False, ()):
        attributes.setdefault("show_default", True)
    return click.option(*flags, **attributes)


def how(*names: str, **changed: Mapping[str, Any]) -> Decorator:
    """Options out of HOW; `changed`: attributes that are different here, by name."""

    def decorate(function: Function) -> Function:
        for name in reversed(names):
            flags, attributes = HOW[name]
            function = option(*flags, name, **{**attributes, **changed.get(name, {})})(function)
        return function

    return decorate


def kept(function: Function) -> Function:
    """The options of a study for what is kept of its runs, which the function gets as `kept`."""

    @functools.wraps(function)
    def call(record: str | None, trace: str | None, **values: Any) -> Any:
        from dryfly.study.kept import Kept

        return function(kept=Kept(record=record, trace=trace), **values)

    each = {"metavar": "FOLDER", "shell_complete": complete.folders}
    return how(
        "trace", "record",
        trace={**each, "help": "A trace of each run for ui.perfetto.dev, in this folder."},
        record={**each, "help": 'Tables of each run (Parquet) for "dryfly report" or "dryfly diff", in this folder.'},
    )(call)  # fmt: skip


def case_options(*, without: Collection[str] = (), only: Collection[str] = CASE.keys(), **changed: Any) -> Decorator:
    """The options of a Case, which the function gets as `case`; `changed`: attributes that are different here, such as
    nodes={"default": 2}. A function that has a `program` gets it in the case."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(**values: Any) -> Any:
            of_case = {name: values.pop(name) for name in CASE if name in values}
            if "program" in values:
                of_case["program"] = values.pop("program")
            return function(case=Case(**of_case), **values)

        return _declare(call, [name for name in CASE if name in only and name not in without], changed)

    return decorate


def given_case_options(*, without: Collection[str] = (), **changed: Any) -> Decorator:
    """As case_options; the function gets as `given` the fields of Case that the command line names."""

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def call(**values: Any) -> Any:
            context = click.get_current_context()
            of_case = {name: values.pop(name) for name in CASE if name in values}
            given = {name: value for name, value in of_case.items() if _is_given(context, name)}
            return function(given=given, **values)

        return _declare(call, [name for name in CASE if name not in without], changed)

    return decorate


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def written(given: Mapping[str, Any]) -> frozenset[str]:
    """Those of the command that the user gave."""
    source = click.get_current_context().get_parameter_source
    return frozenset(name for name in given if source(name) is ParameterSource.COMMANDLINE)


def _declare(function: Function, names: Sequence[str], changed: Mapping[str, Mapping[str, Any]]) -> Function:
    defaults = {each.name: each.default for each in fields(Case)}
    for name in reversed(names):
        flags, attributes = CASE[name]
        default = {} if attributes.get("multiple") or attributes.get("is_flag") else {"default": defaults[name]}
        function = option(*flags, name, **{**default, **attributes, **changed.get(name, {})})(function)
    return function


def solver_command(name: str) -> Callable[[Function], click.Command]:
    """A command that runs a solver here, with options of the solver's own."""
    decorators = (
        click.command(name, context_settings={**CONTEXT, "ignore_unknown_options": True}),
        option("-n", "--ranks", type=int, metavar="R", help="MPI ranks; default: what --grid needs, else one a core."),
        option("--mpi", **CASE["mpi"][1]),
        option("--program", "only_path", is_flag=True, help="Only print the path of the program for this MPI."),
        click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar=f"[OPTIONS OF DRYFLY-{name.upper()}]..."),
    )

    def decorate(function: Function) -> click.Command:
        made: Any = function
        for decorator in reversed(decorators):
            made = decorator(made)
        command: click.Command = made
        return command

    return decorate
