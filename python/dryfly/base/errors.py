"""What can go wrong, as the user sees it.

DryflyError
  UserError    the input cannot be used: one sentence, exit status 2, nothing has started
  RunError     the job or the simulator failed after the start: one sentence, its own exit status
    RunFailed  a case that was run from Python has ended badly
"""

from __future__ import annotations


class DryflyError(Exception):
    """The message is one sentence for the user; `exit_status` is what the command ends with."""

    exit_status = 1


class UserError(DryflyError):
    """The input cannot be used; nothing has started."""

    exit_status = 2


class RunError(DryflyError):
    """The job or the simulator failed after the start; `exit_status` is the run's own."""

    def __init__(self, message: str, *, exit_status: int) -> None:
        super().__init__(message)
        self.exit_status = exit_status


class RunFailed(RunError):  # noqa: N818
    """`details`: lines that belong to the sentence, such as each rank's last call in a deadlock."""

    def __init__(self, message: str, *, exit_status: int, details: tuple[str, ...] = ()) -> None:
        super().__init__(message, exit_status=exit_status)
        self.details = details
