"""The private folder of one run, for the conductor's result and a program compiled from source.

It is removed at the end. Were dryfly killed by SIGKILL it would stay, so each run first removes those whose owner is
gone: the owner holds a lock on its folder for as long as it lives.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType

from dryfly.base.errors import UserError

_PREFIX = f"dryfly-{os.getuid()}-"


class RunFolder:
    def __init__(self) -> None:
        _sweep(Path(tempfile.gettempdir()))
        try:
            while not self._made_and_locked():
                pass
        except OSError as error:
            raise UserError(f"no temporary folder can be made in {tempfile.gettempdir()}: {error.strerror}") from None

    def _made_and_locked(self) -> bool:
        """False when another run has swept the folder away before it was locked."""
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            self._lock = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        if self.path.is_dir():
            return True
        os.close(self._lock)
        return False

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _sweep(base: Path) -> None:
    for folder in base.glob(f"{_PREFIX}*"):
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # its run is alive
        finally:
            os.close(descriptor)
