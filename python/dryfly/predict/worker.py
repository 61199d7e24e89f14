"""A process that answers questions, one after the other: a line of JSON each on standard input, a line back.

It ends with its input, and with its parent. `outcome` is also what a cluster's processes call.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from dryfly.base.deadline import within
from dryfly.base.errors import DryflyError
from dryfly.predict import ask
from dryfly.predict.find import reading
from dryfly.predict.question import of_content


def outcome(content: dict[str, Any], timeout_s: float | None) -> dict[str, Any]:
    """The answer, or the sentence with which it failed. By one core: there are as many such processes."""
    try:
        with within(timeout_s, reading(content["workload"])):
            question = of_content(content)
        return {"answer": ask.ask(question, timeout_s=timeout_s, cores=1).content()}
    except DryflyError as error:
        return {"failure": str(error), "status": error.exit_status}


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends this process
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(outcome(asked["question"], asked["timeout_s"])), flush=True)


if __name__ == "__main__":
    main()
