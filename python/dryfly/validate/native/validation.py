"""A real cluster as what is validated: everything that cannot be used is refused here, before anything is measured."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from dryfly.base.errors import UserError
from dryfly.base.folder import RunFolder
from dryfly.machine.load import load
from dryfly.machine.machine import Machine
from dryfly.validate import LEVELS, baseline, plan
from dryfly.validate.asked import NATIVE, Asked, Native
from dryfly.validate.console import Console, Event
from dryfly.validate.native import facts, fit, hosts, launchers, model, program, topology
from dryfly.validate.native.cluster import Cluster
from dryfly.validate.native.facts import Facts
from dryfly.validate.native.measuring import Natively, Runner, Trial, first_trial
from dryfly.validate.native.progress import Bar, duration
from dryfly.validate.nodelist import slurm
from dryfly.validate.procedure import Validation
from dryfly.validate.settings import Settings, settings
from dryfly.validate.subject import NodeFailed, Subject
from dryfly.validate.wiring import Wiring, node_place

_PREFIX = f".dryfly-native-{socket.gethostname()}-"  # not every shared file system has the locks of other hosts


@contextmanager
def of_cluster(asked: Asked, *, tell: Callable[[str], None] = lambda _: None, bar: Bar) -> Iterator[Validation]:
    """Ready to be run: hosts have answered, and a step of each measure has been tried. Its programs and files are in
    --out, or else where the command is, until this ends: all hosts have to see that folder. Raises UserError, RunError.
    """
    native = asked.native or Native()
    known = settings(native=True, limits=asked.limits)
    machine = None if native.model is None else load(native.model)
    names = _names(native, asked.nodes)
    chosen = program.library(asked.mpi)
    launcher = launchers.find(native.launcher, None if chosen is None else Path(chosen.prefix))
    launcher = replace(launcher, options=native.launcher_options)
    # Files are refused before anything is started, and used when it is known how many NICs there are.
    subject = _subject(native, names, topology.wiring(names, native.nics or 1, native.topology), {})
    if asked.baseline is not None:
        baseline.read(
            Path(asked.baseline), replace(asked, machine=subject.name), subject, known.sizes, same=("network",)
        )
    with RunFolder(_base(asked.out), _PREFIX) as folder:
        probe = program.compile_probe(launcher, chosen, folder.path)
        cluster = Cluster(hosts=names, launcher=launcher, folder=folder.path, limits=known.native)
        answers = cluster.check_answers(range(len(names)))
        cluster = cluster.in_order(answers)
        by_name = {names[node]: answers[node] for node in sorted(answers)}
        names = cluster.hosts
        fit.check_twins(by_name)
        nics = native.nics or _nics(by_name)
        if machine is not None:
            fit.check_cores(by_name, _bound_to(launcher, machine, nics, asked.level), machine.name)
        wiring = topology.wiring(names, nics, native.topology)
        subject = _subject(native, names, wiring, by_name)
        runner = Runner(cluster=cluster, program=probe, wiring=wiring, binding=_binding(launcher, machine, nics))
        trial = first_trial(runner, subject.nodes, asked.level, known, lambda error: _note_failed(subject, error))
        asked = replace(asked, machine=subject.name, mpi=f"{trial.library} ({launcher.name})")
        good = None if asked.baseline is None else baseline.read(Path(asked.baseline), asked, subject, known.sizes)
        usual = {} if native.model is None or good is not None else model.medians(native.model, known.sizes)
        for line in _words(asked, subject, cluster, trial, known, bar):
            tell(line)
        measuring = Natively(runner, trial, known, baseline=good, model=usual, out=asked.out, bar=bar)
        yield Validation(asked, subject, measuring, known, tell=tell)
        bar.clear()


def _names(native: Native, count: int | None) -> tuple[str, ...]:
    names = hosts.find(native.hosts)
    if count is not None and not 2 <= count <= len(names):
        raise UserError(f"-N {count}: accepted is 2 to {len(names)}, the hosts that there are")
    if len(names) < 2:
        no_file = "" if native.hosts is None or Path(native.hosts).is_file() else ", and no file of that name"
        raise UserError(
            f"--native: there is 1 host, {names[0]}{no_file}; accepted is 2 or more, to be measured with one another"
        )
    return names[:count]


def _base(out: str | None) -> Path:
    if out is None:
        return Path.cwd()
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror}") from None
    return Path(out).absolute()


def _nics(answers: Mapping[str, Facts]) -> int:
    """Of Slingshot's; 1 where there are none."""
    counts = {name: len(of.nics) for name, of in answers.items()}
    few, many = min(counts, key=lambda name: counts[name]), max(counts, key=lambda name: counts[name])
    if counts[few] != counts[many]:
        raise UserError(
            f"--native: {few} has {counts[few]} Slingshot NICs and {many} {counts[many]}; accepted are hosts with as "
            "many, or --nics"
        )
    return max(counts[few], 1)


def _subject(native: Native, names: Sequence[str], wiring: Wiring, answers: Mapping[str, Facts]) -> Subject:
    slingshot = any(of.nics for of in answers.values())
    console = Console(wiring, dict(enumerate(names)), nic="cxi{}" if slingshot else "NIC {}")
    for node, name in enumerate(names):
        if name in answers:
            facts.tell(console, wiring.nics_of_node[node], answers[name])
    return Subject(
        name=native.model or NATIVE,
        nodes=tuple(range(len(names))),
        wiring=wiring,
        console=console,
        timeout_s=float("inf"),  # what a lost packet costs another network is not known
        unmeasured={"gpu": "of real hosts GPUs are only looked at by --prolog, with cxi_gpu_loopback"},
    )


def _note_failed(subject: Subject, error: NodeFailed) -> None:
    name, place = subject.console.node_name(error.node), node_place(error.node)
    subject.console.note(Event(at_s=0.0, source=name, text=str(error), kind="node", places=(place,)))


def _binding(launcher: launchers.Launcher, machine: Machine | None, nics: int) -> Callable[[int], Sequence[str]]:
    if machine is None:
        return lambda _: ()
    return lambda ppn: launchers.good_binding(launcher, machine, nics=nics, ppn=ppn)


def _bound_to(launcher: launchers.Launcher, machine: Machine, nics: int, level: str) -> frozenset[int]:
    """By ranks of the node's level, two for each NIC, and of those above it."""
    last = LEVELS.index(level)
    counts = [ppn for first, ppn in (("node", 2 * nics), ("switch", nics)) if LEVELS.index(first) <= last]
    return frozenset().union(*(launchers.bound_to(launcher, machine, nics=nics, ppn=ppn) for ppn in counts))


def _words(asked: Asked, subject: Subject, cluster: Cluster, trial: Trial, known: Settings, bar: Bar) -> Iterator[str]:
    """What is begun, and how long it takes."""
    levels = [
        plan.level_steps(name, subject.wiring, subject.nodes, known.sizes)
        for name in LEVELS[: LEVELS.index(asked.level) + 1]
    ]
    seconds = sum(trial.seconds(steps, known.native.repeats) for steps in levels)
    bar.expect(seconds)
    nics = len(subject.wiring.nics_of_node[0])
    launcher = " ".join(filter(None, (cluster.launcher.name, cluster.launcher.version)))
    yield (
        f"{len(subject.nodes)} hosts {slurm(cluster.hosts)}, {nics} NIC{'s' if nics > 1 else ''} each; "
        f"{trial.library}, started by {launcher}"
    )
    yield (
        f"{sum(map(len, levels)):,} steps, {known.native.repeats} times each: about {duration(seconds)}, and what is "
        "suspected is measured again"
    )
