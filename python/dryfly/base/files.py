"""Writing a file so that nobody ever sees half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, content: bytes) -> None:
    write_whole_by(path, lambda file: file.write(content))


def write_whole_by(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """`write` fills a file beside it, which then takes its place; if anything goes wrong the old one stays and nothing
    else. A pipe or a device is written to: it must not be replaced. Raises OSError."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            write(file)
        return
    descriptor, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), 0o666 & ~_umask())
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value
