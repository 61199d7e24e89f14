"""A long job on nodes that fail: drawn histories of it, and what theory says where failures are the simple kind.

Failures come at random. A transient one ends the job and leaves the node as it was; an intermittent one makes the node
fail again and again until it has been repaired; a permanent one takes it away at once; a correlated one takes many
nodes for a while. After each the job starts again from its last checkpoint, on spare nodes where some are missing, or
waits for repaired ones. docs/model/resilience.md has the sources and what is assumed. Times in seconds.

Left out: failures of nodes that wait or that the job does not use, checkpoints that are lost, other jobs.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

CAUSES = ("checkpoints", "lost work", "restarts", "waiting for nodes", "stalls by flaps")
LONGEST, MOST_FAILURES = 200.0, 10_000  # times the work; a history that has more is given up


@dataclass(frozen=True, kw_only=True)
class Job:
    work: float  # seconds that it takes where nothing fails and nothing is kept
    nodes: int
    spare: int  # nodes beside those
    interval: float  # of work between checkpoints; 0: none is kept
    checkpoint: float
    restart: float


@dataclass(frozen=True, kw_only=True)
class Rates:
    """`failure`: mean time between failures of one node that end a job. `intermittent`, `permanent`: shares of them.
    `recurs`: mean time until an intermittent node fails again. `burst`: mean time between correlated failures, 0: none,
    of so many nodes in a row for so long. `flaps`: of all the job's links, in a second; each stops it for `stall`."""

    failure: float
    intermittent: float
    permanent: float
    recurs: float
    burst: float
    burst_nodes: int
    burst_for: float
    flaps: float
    stall: float


@dataclass(frozen=True, kw_only=True)
class Policy:
    """A node is taken out after `strikes` failures `within` that time, repaired for `repair`, and comes back if nodes
    are recycled. `at_once`: at that failure; else it stays in the job to its end."""

    strikes: int
    within: float
    at_once: bool
    recycle: bool
    repair: float


@dataclass(kw_only=True)
class History:
    """`elapsed`: of a job that did not complete, when it was given up."""

    elapsed: float = 0.0
    completed: bool = False
    failures: int = 0
    taken_out: int = 0
    missing_at_first: int = 0
    lost: dict[str, float] = field(default_factory=lambda: dict.fromkeys(CAUSES, 0.0))


def stall_of_flap(down: float, timeout: float, delays: Sequence[float]) -> float:
    """How long what a link loses as it goes down is not sent again with success: each try is seen to have failed after
    `timeout`, and the next one comes after the next of `delays`. Where none is left, the last one's instant."""
    at = 0.0
    for delay in delays:
        at += timeout + delay
        if at > down:
            break
    return at


def time_between_failures(job: Job, rates: Rates, policy: Policy) -> float:
    """Of the job, on the mean of a long time: new failures, the repetitions of intermittent ones, as if every such node
    were taken out with its last strike, and bursts that meet it."""
    new = job.nodes / rates.failure
    return 1 / (new * (1 + rates.intermittent * (policy.strikes - 1)) + bursts_that_meet(job, rates))


def bursts_that_meet(job: Job, rates: Rates) -> float:
    """In a second: of nodes in a row that begin anywhere on the machine, the ends of which are joined."""
    if not rates.burst or not rates.burst_nodes:
        return 0.0
    return min(1.0, (job.nodes + rates.burst_nodes - 1) / (job.nodes + job.spare)) / rates.burst


def best_interval(between_failures: float, checkpoint: float) -> float:
    """Daly's estimate of higher order (Future Generation Computer Systems 22, 2006), of work between checkpoints."""
    if checkpoint >= 2 * between_failures:
        return between_failures
    share = checkpoint / (2 * between_failures)
    return math.sqrt(2 * checkpoint * between_failures) * (1 + math.sqrt(share) / 3 + share / 9) - checkpoint


def expected(job: Job, between_failures: float) -> float:
    """Daly's time to the end with failures at random that leave nodes as they were: intervals that are each repeated
    until one passes. Exact where work is a whole number of intervals and the last one is kept too."""
    if not job.interval:
        return between_failures * math.exp(job.restart / between_failures) * math.expm1(job.work / between_failures)
    each = math.expm1((job.interval + job.checkpoint) / between_failures)
    return between_failures * math.exp(job.restart / between_failures) * each * job.work / job.interval


def history(job: Job, rates: Rates, policy: Policy, draw: random.Random) -> History:
    """Flaps make all that the job does slower: one that comes while it stands adds nothing."""
    slower = 1 + rates.flaps * rates.stall
    stretched = replace(job, work=job.work * slower, interval=job.interval * slower, checkpoint=job.checkpoint * slower,
                        restart=job.restart * slower)  # fmt: skip
    found = _Drawn(stretched, rates, policy, draw).run()
    for cause in ("checkpoints", "lost work", "restarts"):
        found.lost[cause] /= slower
    found.lost["stalls by flaps"] = (found.elapsed - found.lost["waiting for nodes"]) * (1 - 1 / slower)
    return found


class _Drawn:
    """One history, while it is drawn."""

    def __init__(self, job: Job, rates: Rates, policy: Policy, draw: random.Random) -> None:
        self.job, self.rates, self.policy, self.draw = job, rates, policy, draw
        self.base = job.nodes / rates.failure  # failures in a second of nodes as they are
        self.bursts = bursts_that_meet(job, rates)
        self.found = History()
        self.now = 0.0
        self.done = 0.0  # work that is kept
        self.returns: list[tuple[float, int]] = []  # when so many nodes come back
        self.intermittent: list[list[float]] = []  # of each such node of the job, when it failed
        self.missing = 0  # nodes of the job that are not there
        self.spare = job.spare

    def run(self) -> History:
        self._machine_at_first()
        begun = False
        while self.now < LONGEST * self.job.work and self.found.failures < MOST_FAILURES:
            if not self._all_nodes():
                break
            opening = self.job.restart if begun else 0.0
            begun = True
            until = self._next_failure()
            needed = self._needed()
            if until >= opening + needed:
                self.now += opening + needed
                self.found.lost["restarts"] += opening
                self.found.lost["checkpoints"] += self._kept(self.job.work - self.done) * self.job.checkpoint
                self.found.completed = True
                break
            self.now += until
            self._lose(until, opening)
            self._fail()
        self.found.elapsed = self.now
        return self.found

    def _machine_at_first(self) -> None:
        """As many intermittent nodes in service, and nodes in repair, as a long time has on the mean; none in repair
        where they do not come back."""
        rates, policy, nodes = self.rates, self.policy, self.job.nodes + self.job.spare
        new = nodes / rates.failure
        if policy.recycle:
            in_repair = new * (rates.intermittent + rates.permanent) * policy.repair
            out = self._drawn_count(in_repair, nodes)
            for _ in range(out):
                heapq.heappush(self.returns, (self.draw.random() * policy.repair, 1))
            self.found.missing_at_first = out
            self._take(out)
        waiting = self.base * rates.intermittent * rates.recurs
        for strikes in range(1, policy.strikes):
            left = self.job.nodes - len(self.intermittent)
            for _ in range(self._drawn_count(waiting, left)):
                back = [-self.draw.expovariate(1 / rates.recurs) for _ in range(strikes)]
                self.intermittent.append(list(itertools.accumulate(back))[::-1])

    def _drawn_count(self, mean: float, most: int) -> int:
        """Of Poisson's distribution."""
        count, at = 0, self.draw.expovariate(1.0)
        while at < mean and count < most:
            count += 1
            at += self.draw.expovariate(1.0)
        return count

    def _take(self, nodes: int) -> None:
        from_spare = min(nodes, self.spare)
        self.spare -= from_spare
        self.missing += nodes - from_spare

    def _all_nodes(self) -> bool:
        """Waits for them. False: they do not come back."""
        while self.returns and (self.returns[0][0] <= self.now or self.missing):
            at, nodes = heapq.heappop(self.returns)
            if at > self.now:
                self.found.lost["waiting for nodes"] += at - self.now
                self.now = at
            to_job = min(nodes, self.missing)
            self.missing -= to_job
            self.spare += nodes - to_job
        return not self.missing

    def _next_failure(self) -> float:
        return self.draw.expovariate(self.base + self._again() + self.bursts)

    def _again(self) -> float:
        return len(self.intermittent) / self.rates.recurs

    def _kept(self, work: float) -> int:
        """Checkpoints in so much work; none at its end."""
        return max(0, math.ceil(work / self.job.interval - 1e-9) - 1) if self.job.interval else 0

    def _needed(self) -> float:
        left = self.job.work - self.done
        return left + self._kept(left) * self.job.checkpoint

    def _lose(self, ran: float, opening: float) -> None:
        lost = self.found.lost
        if ran < opening:
            lost["restarts"] += ran
            return
        lost["restarts"] += opening
        ran -= opening
        whole = 0
        if self.job.interval:
            each = self.job.interval + self.job.checkpoint
            whole = min(int(ran / each), self._kept(self.job.work - self.done))
            self.done += whole * self.job.interval
            lost["checkpoints"] += whole * self.job.checkpoint
            ran -= whole * each
        lost["lost work"] += ran

    def _fail(self) -> None:
        self.found.failures += 1
        which = self.draw.random() * (self.base + self._again() + self.bursts)
        if which < self.base:
            self._new_failure(which / self.base)
        elif which < self.base + self._again():
            at = min(int((which - self.base) * self.rates.recurs), len(self.intermittent) - 1)
            self.intermittent[at].append(self.now)
            self._strike(at)
        else:
            self._burst()

    def _burst(self) -> None:
        """Nodes in a row, of which at least one is the job's; the first is anywhere from there on."""
        nodes = self.rates.burst_nodes
        before = nodes - 1  # of the first node of the job
        begin = self.draw.randrange(min(self.job.nodes + before, self.job.nodes + self.job.spare)) - before
        met = min(begin + nodes, self.job.nodes) - max(begin, 0)
        heapq.heappush(self.returns, (self.now + self.rates.burst_for, met))
        self._take(met)

    def _new_failure(self, drawn: float) -> None:
        """`drawn`: 0 to 1."""
        if drawn < self.rates.permanent:
            self._out()
        elif drawn < self.rates.permanent + self.rates.intermittent and len(self.intermittent) < self.job.nodes:
            self.intermittent.append([self.now])
            self._strike(len(self.intermittent) - 1)

    def _strike(self, at: int) -> None:
        policy = self.policy
        recent = [when for when in self.intermittent[at] if when > self.now - policy.within]
        self.intermittent[at] = recent
        if policy.at_once and len(recent) >= policy.strikes:
            del self.intermittent[at]
            self._out()

    def _out(self) -> None:
        self.found.taken_out += 1
        if self.policy.recycle:
            heapq.heappush(self.returns, (self.now + self.policy.repair, 1))
        self._take(1)
