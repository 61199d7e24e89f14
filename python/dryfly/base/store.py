"""Results by key, a file of JSON each, which the next command finds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dryfly.base.errors import RunError
from dryfly.base.files import write_whole


class Store:
    """`folder`: None: nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(self, key: str) -> dict[str, Any] | None:
        """None: it is not there, or not as a whole."""
        if self._folder is None:
            return None
        try:
            content = json.loads((self._folder / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return content if isinstance(content, dict) else None

    def put(self, key: str, result: Mapping[str, Any]) -> None:
        """Raises RunError."""
        if self._folder is None:
            return
        file = self._folder / f"{key}.json"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(file, (json.dumps(result, indent=1) + "\n").encode())
        except OSError as error:
            raise RunError(f"{file} cannot be written: {error.strerror or error}", exit_status=1) from None
