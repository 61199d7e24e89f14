"""Many questions at a time: on the cores of this computer, or through Dask on a cluster.

Whichever way, outcomes come as they are ready, and when the caller stops listening, as at Ctrl-C, nothing stays.
"""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from dryfly.base.errors import UserError
from dryfly.base.signals import dying_with_parent
from dryfly.predict.worker import outcome

Outcome = Mapping[str, Any]
LOCAL = "local"

_END_WITHIN_S = 5.0


class _Worker:
    def __init__(self) -> None:
        self.at = -1  # the question it has; -1: none
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dryfly.predict.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=dying_with_parent(),
        )

    def ask(self, at: int, question: Mapping[str, Any], timeout_s: float | None) -> None:
        self.at = at
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, as its next line will tell
            self.process.stdin.write(json.dumps({"question": question, "timeout_s": timeout_s}) + "\n")
            self.process.stdin.flush()

    def told(self) -> Outcome:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            told: Outcome = json.loads(line)
            return told
        return {"failure": f"the process that computed it ended with status {self.process.wait()}", "status": 1}

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(_END_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


def on_cores(
    questions: Sequence[Mapping[str, Any]], *, jobs: int, timeout_s: float | None
) -> Iterator[tuple[int, Outcome]]:
    """The place of each question, and what came of it."""
    workers: list[_Worker] = []
    left = iter(enumerate(questions))
    try:
        with selectors.DefaultSelector() as selector:
            for _ in range(min(jobs, len(questions))):
                workers.append(_Worker())
                _give(workers[-1], left, timeout_s, selector)
            while selector.get_map():
                for key, _ in selector.select():
                    worker = key.data
                    at, told = worker.at, worker.told()
                    selector.unregister(key.fileobj)
                    if worker.has_ended:
                        worker.close()
                        workers[workers.index(worker)] = worker = _Worker()
                    yield at, told
                    _give(worker, left, timeout_s, selector)
    finally:
        for worker in workers:
            worker.close()


def _give(
    worker: _Worker,
    left: Iterator[tuple[int, Mapping[str, Any]]],
    timeout_s: float | None,
    selector: selectors.BaseSelector,
) -> None:
    following = next(left, None)
    if following is not None:
        worker.ask(*following, timeout_s)
        assert worker.process.stdout is not None
        selector.register(worker.process.stdout, selectors.EVENT_READ, worker)


def check_dask() -> None:
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise UserError('--dask needs Dask: pip install "dryfly[cluster]"') from None


def by_dask(
    address: str, questions: Sequence[Mapping[str, Any]], *, jobs: int, timeout_s: float | None
) -> Iterator[tuple[int, Outcome]]:
    """`address`: of a scheduler, or `local`, which starts a cluster of `jobs` processes here."""
    from distributed import Client, LocalCluster, as_completed

    cluster = None
    try:
        if address == LOCAL:
            cluster = LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None, processes=True)
        try:
            client = Client(cluster if cluster is not None else address, timeout=30)
        except (OSError, ValueError) as error:
            raise UserError(f"--dask {address}: no scheduler answers there ({error})") from None
        futures: dict[Any, int] = {}
        try:
            for at, question in enumerate(questions):
                futures[client.submit(outcome, question, timeout_s, pure=False)] = at
            for future in as_completed(futures):
                failed = future.exception()
                if failed is not None:
                    yield futures[future], {"failure": f"a process of the cluster failed: {failed}", "status": 1}
                else:
                    yield futures[future], future.result()
        finally:
            client.cancel(list(futures))
            client.close()
    finally:
        if cluster is not None:
            cluster.close()
