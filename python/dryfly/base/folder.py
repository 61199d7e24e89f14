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
    """`base`: where it is made, else where temporary files are. Raises UserError where none can be made."""

    def __init__(self, base: Path | None = None, prefix: str = _PREFIX) -> None:
        self._base = Path(tempfile.gettempdir()) if base is None else base
        self._prefix = prefix
        self._sweep()
        try:
            while not self._made_and_locked():
                pass
        except OSError as error:
            raise UserError(f"no temporary folder can be made in {self._base}: {error.strerror}") from None

    def _made_and_locked(self) -> bool:
        """False when another run has swept the folder away before it was locked."""
        self.path = Path(tempfile.mkdtemp(prefix=self._prefix, dir=self._base))
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
        self.remove()

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)

    def _sweep(self) -> None:
        for folder in self._base.glob(f"{self._prefix}*"):
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
