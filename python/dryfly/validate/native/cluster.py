"""A real cluster: hosts that are asked what they are, and on which programs/benchmark/probe.c measures steps."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dryfly.base.errors import DryflyError, RunError, UserError
from dryfly.validate import probe
from dryfly.validate.native import facts, job
from dryfly.validate.native.facts import Facts
from dryfly.validate.native.job import Ended
from dryfly.validate.native.launchers import Launcher
from dryfly.validate.plan import Step
from dryfly.validate.probe import Measured
from dryfly.validate.settings import Native
from dryfly.validate.subject import NodeFailed
from dryfly.validate.wiring import Wiring

_GRACE_S = 15.0  # for the ranks' own words about where they wait

# By which the ranks of a node talk through its NICs: MPICH's, HPE Cray MPICH's.
_LOOPBACK = {"MPIR_CVAR_NOLOCAL": "1", "MPICH_NO_LOCAL": "1"}
_OPENMPI_BTL = "OMPI_MCA_btl"

# How launchers say where a rank died: hydra, prterun, srun, PALS. The first counts, others die of it.
_DIED = (
    re.compile(r"RUNNING AT (?P<host>[\w.-]+)"),
    re.compile(r"process rank \d+ .*on node (?P<host>[\w.-]+)"),
    re.compile(r"^srun: error: (?P<host>[\w.-]+): tasks? "),
    re.compile(r"^(?P<host>[\w.-]+): rank \d+ (?:died|exited)"),
    re.compile(r"Task launch for .* failed on node (?P<host>[\w.-]+)"),
    re.compile(r"^\s*Remote host:\s+(?P<host>[\w.-]+)"),
)
# How srun says that there is no Slurm for it.
_NO_SLURM = re.compile(r"configuration source|contact slurm controller|resolve_ctls_from_dns_srv|fetch_config", re.I)
_ALONE_MOST = 8  # hosts that are asked alone, whether it is their fault or the launcher's
_ASKED_MOST = 5  # times, as long as hydra loses what was said
_WAITS = re.compile(r"probe: rank (\d+) waits in step")


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """`folder`: one that all hosts see."""

    hosts: tuple[str, ...]
    launcher: Launcher
    folder: Path
    limits: Native
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    cxi: str = facts.CXI

    def ask(self, nodes: Sequence[int]) -> tuple[dict[int, Facts], Ended]:
        """What those of the nodes say that answer, and how the launcher ended."""
        script = self.folder / "hello"
        script.write_text(facts.script(self.cxi), encoding="ascii")
        command = [*self.launcher.words([self.hosts[node] for node in nodes], 1, self.folder), "sh", str(script)]
        seconds = self.limits.answer_s
        ended = job.run(command, environment=self.environment, first_s=seconds, silence_s=seconds)
        said = facts.parse(ended.lines)
        if self.launcher.name == "flux":  # which has an order of its own: see in_order
            by_name = {_short(of.name): of for of in said.values()}
            short = {node: _short(self.hosts[node]) for node in nodes}
            return {node: by_name[name] for node, name in short.items() if name in by_name}, ended
        return {nodes[rank]: of for rank, of in said.items() if rank < len(nodes)}, ended

    def in_order(self, answers: Mapping[int, Facts]) -> Cluster:
        """With the hosts, all of which have answered, in the order in which the launcher numbers ranks."""
        if self.launcher.name != "flux":
            return self
        nodes = sorted(answers, key=lambda node: answers[node].rank)
        return replace(self, hosts=tuple(self.hosts[node] for node in nodes))

    def ask_all(self, nodes: Sequence[int]) -> tuple[dict[int, Facts], dict[int, str]]:
        """What the nodes say, and of those that do not answer what was said about them. Where one does not answer
        launchers start nobody: so halves are asked, until it is known which."""
        answers, ended = self.ask(nodes) if len(nodes) > 1 else self._alone(nodes[0])
        missing = [node for node in nodes if node not in answers]
        if not missing:
            return answers, {}
        if len(nodes) == 1:
            return {}, {nodes[0]: ended.words(self.hosts[nodes[0]])}
        silent: dict[int, str] = {}
        for half in (missing[: (len(missing) + 1) // 2], missing[(len(missing) + 1) // 2 :]):
            some, others = self.ask_all(half) if half else ({}, {})
            answers |= some
            silent |= others
        return answers, silent

    def check_answers(self, nodes: Sequence[int]) -> dict[int, Facts]:
        """Raises UserError with the first that does not answer, or of a launcher that starts nothing."""
        answers, silent = self._asked(nodes)
        if silent:
            node, words = next(iter(silent.items()))
            count = f" ({len(silent)} of {len(nodes)} do not)" if len(silent) > 1 else ""
            raise UserError(f"host {self.hosts[node]} does not answer by {self.launcher.name}{count}: {words}")
        return answers

    def _asked(self, nodes: Sequence[int]) -> tuple[dict[int, Facts], dict[int, str]]:
        """As ask_all, after a look whether it is the launcher that starts nothing. Raises UserError if it is."""
        answers, ended = self.ask(nodes)
        if len(answers) == len(nodes):
            return answers, {}
        name = self.launcher.name
        no_slurm = [line.strip() for line in ended.lines if name == "srun" and _NO_SLURM.search(line)]
        if no_slurm:
            raise UserError(
                f"--launcher srun: Slurm does not answer here ({no_slurm[-1]}); accepted is a computer for which its "
                "slurmctld does, or another launcher"
            )
        said = "" if answers else self._said_of_each(nodes)
        options = " ".join(self.launcher.options)
        if said and options and replace(self, launcher=replace(self.launcher, options=())).ask(nodes[:1])[0]:
            raise UserError(f"--launcher-options {options}: with them {name} starts nothing: {said}")
        if said:
            raise UserError(f"{name} starts nothing, whichever host it is asked for: {said}")
        return self.ask_all(nodes)

    def _alone(self, node: int) -> tuple[dict[int, Facts], Ended]:
        """As `ask`, again as long as the cause is lost."""
        answers, ended = self.ask([node])
        for _ in range(_ASKED_MOST - 1):
            if answers or not ended.cause_is_lost(self.hosts[node]):
                break
            answers, ended = self.ask([node])
        return answers, ended

    def _said_of_each(self, nodes: Sequence[int]) -> str:
        """What the launcher says of each host alone, if that is the same of all and names none: it is not theirs."""
        said: set[str] = set()
        words = ""
        for node in nodes[:: -(-len(nodes) // _ALONE_MOST)]:
            host = self.hosts[node]
            answers, ended = self._alone(node)
            words = ended.words(host)
            said.add(re.sub(r"\d+", "", words))  # processes have numbers
            if answers or ended.too_long or len(said) > 1 or job.names(words, host):
                return ""
        return words

    def measure(
        self, program: Path, steps: Sequence[Step], wiring: Wiring, nodes: Sequence[int], *,
        binding: Sequence[str] = (), on_step: Callable[[int], None] = lambda _: None,
    ) -> tuple[list[Measured], str]:  # fmt: skip
        """Of steps with one `on_node`, each as it is given; and what the MPI library calls itself. `on_step`: told the
        number of the step that is under way. Raises NodeFailed, RunError."""
        on_node = steps[0].on_node
        ppn = probe.ranks_of_node(wiring, nodes, on_node)
        file, out = self.folder / "steps", self.folder / "measured"
        rank_of = probe.ranks_of(wiring, nodes, on_node)
        file.write_text(probe.text_of(steps, rank_of), encoding="ascii")
        out.unlink(missing_ok=True)
        nics = ppn // (2 if on_node else 1)
        per_nic = ppn // nics if nics > 1 else 0
        command = self.launcher.words([self.hosts[node] for node in nodes], ppn, self.folder, binding)
        command += [str(program), str(file), str(out)]
        command += [str(ppn * len(nodes)), f"{self.limits.hang_s:.0f}", str(per_nic)]
        ended = job.run(
            command,
            environment=self._environment(on_node),
            first_s=self.limits.start_s,
            silence_s=self.limits.hang_s + _GRACE_S,
            on_line=lambda line: _tell_step(line, on_step),
        )
        if ended.status == 0 and not ended.too_long and out.is_file():
            try:
                measured = probe.parse(out.read_text(encoding="ascii"), steps, rank_of)
            except (OSError, ValueError, LookupError):
                raise RunError(f"what was measured is not in {out} as a whole: is there room?", exit_status=1) from None
            return measured, " ".join(_after("probe: library ", ended.lines).split())
        raise self.failure(ended, nodes, ppn)

    def _environment(self, on_node: str) -> dict[str, str]:
        if on_node != "nic":
            return dict(self.environment)
        # Of Open MPI all ways but shared memory.
        ways = [way for way in self.environment.get(_OPENMPI_BTL, "^sm").split(",") if way not in ("sm", "vader")]
        return {**self.environment, **_LOOPBACK, _OPENMPI_BTL: ",".join(ways) or "^sm"}

    def failure(self, ended: Ended, nodes: Sequence[int], ppn: int) -> DryflyError:
        """A node is to blame that the launcher names, or whose rank alone says nothing any more, or that does not
        answer."""
        own = _after(
            "probe: ", [line for line in ended.lines if re.search(r"probe: (?!at |library |rank \d+ wa)", line)]
        )
        if own and "do not fit" in own:
            return UserError(f"--native by {self.launcher.name}: {own}")
        silent = _silent_ranks(ended.lines, ppn * len(nodes))
        if silent:
            return NodeFailed(nodes[silent[0] // ppn], f"rank {silent[0] % ppn} of the node has stopped")
        by_name = {_short(self.hosts[node]): node for node in nodes}
        for line in ended.lines:
            died = next((found for form in _DIED if (found := form.search(line))), None)
            node = None if died is None else by_name.get(_short(died["host"]))
            if node is not None:
                return NodeFailed(node, own or line.strip(" ="))
        try:
            lost = self._asked(nodes)[1]
        except UserError as error:
            return RunError(str(error), exit_status=1)
        if lost:
            node, words = next(iter(lost.items()))
            return NodeFailed(node, f"no answer any more: {words}")
        return RunError(f"{self.launcher.name} has failed, and all hosts answer: {own or ended.words()}", exit_status=1)


def _short(host: str) -> str:
    """Without its domain; launchers and hosts name it with or without."""
    return host if re.fullmatch(r"[\d.]+", host) else host.partition(".")[0]


def _tell_step(line: str, on_step: Callable[[int], None]) -> None:
    if at := re.search(r"probe: at (\d+)", line):
        on_step(int(at[1]))


def _after(mark: str, lines: Sequence[str]) -> str:
    return next((line.partition(mark)[2].strip() for line in lines if mark in line), "")


def _silent_ranks(lines: Sequence[str], count: int) -> list[int]:
    """Those that say nothing where others say for whom they wait; none where nobody waits."""
    waiting = {int(found[1]) for line in lines if (found := _WAITS.search(line))}
    return [rank for rank in range(count) if rank not in waiting] if waiting else []
