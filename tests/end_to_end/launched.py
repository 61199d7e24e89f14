"""One `dryfly run` as a process, and what it leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"


class Run:
    """One `dryfly run`, in a session of its own so that what it leaves behind can be found."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        self.json_file = folder / "result.json"
        temporary = folder / "tmp"
        temporary.mkdir()
        self.temporary = temporary
        self.mark = f"DRYFLY_TEST_MARK={folder}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dryfly", "run", "--json", str(self.json_file), *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "TMPDIR": str(temporary), "DRYFLY_TEST_MARK": str(folder)},
        )  # fmt: skip

    def end(self, timeout: float = 120) -> tuple[int, str, str]:
        output, errors = self.process.communicate(timeout=timeout)
        return self.process.returncode, output, errors

    def result(self) -> dict[str, Any]:
        content = json.loads(self.json_file.read_text(encoding="utf-8"))
        assert isinstance(content, dict)
        return content

    def processes(self) -> dict[int, str]:
        """Every live process that carries this run's mark in its environment, with its command name."""
        found: dict[int, str] = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found[int(folder.name)] = (folder / "comm").read_text(encoding="utf-8").strip()
            except OSError:
                continue  # it has just ended
        return found

    def wait_for(self, command: str, count: int) -> list[int]:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            pids = [pid for pid, name in self.processes().items() if name == command[:15]]
            if len(pids) >= count:
                return sorted(pids)
            if self.process.poll() is not None:
                raise AssertionError(f"the run has ended: {self.end()}")
            time.sleep(0.05)
        raise AssertionError(f"{count} x {command} did not appear among {self.processes()}")

    def is_gone_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.processes():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True
