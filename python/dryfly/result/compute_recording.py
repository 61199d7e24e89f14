"""The recording of a run's computing: one file for the user, one file for each rank.

The ranks write theirs by preload/clock/compute_file.hpp. A recording is a zip archive: `recording.json` says what was
run, `rank-R.bin` is what rank R left.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from dryfly.base.errors import RunError, UserError
from dryfly.base.files import write_whole_by

FORMAT = 2
_ABOUT = "recording.json"
_RANK_FILE = re.compile(r"rank-\d+\.bin")


@dataclass(frozen=True, kw_only=True)
class About:
    ranks: int
    program: tuple[str, ...]


def check_target(target: str) -> None:
    """Before the start: can a file be written there?"""
    path = Path(target)
    if path.is_dir():
        raise UserError(f"--compute-record {target}: that is a folder; a file is written")
    if not path.absolute().parent.is_dir():
        raise UserError(f"--compute-record {target}: the folder {path.absolute().parent} does not exist")
    if not os.access(path.absolute().parent, os.W_OK):
        raise UserError(f"--compute-record {target}: no file can be written there")


def pack(folder: Path, target: str, about: About) -> None:
    """In one piece: a file of that name is either the old one or the whole new one."""

    def fill(file: BinaryIO) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            facts = {"format": FORMAT, "ranks": about.ranks, "program": list(about.program)}
            archive.writestr(_ABOUT, json.dumps(facts))
            for rank in sorted(folder.glob("rank-*.bin")):
                archive.write(rank, rank.name)

    try:
        write_whole_by(Path(target), fill)
    except OSError as error:
        raise RunError(f"the recording cannot be written to {target}: {error.strerror}", exit_status=1) from None


def check_source(source: str, *, ranks: int) -> None:
    """Before the start: is it a recording, and of a job like this one?"""
    if not Path(source).exists():
        raise UserError(f"--compute replay:{source}: there is no such recording")
    try:
        with zipfile.ZipFile(source) as archive:
            facts = json.loads(archive.read(_ABOUT))
        of_this_format, recorded_ranks = facts["format"] == FORMAT, facts["ranks"]
    except (OSError, zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is no recording of dryfly"
        raise UserError(f"--compute replay:{source}: {reason}") from None
    if not of_this_format:
        raise UserError(f"--compute replay:{source}: the recording is of another version of dryfly")
    if recorded_ranks != ranks:
        raise UserError(f"--compute replay:{source}: it was recorded with {recorded_ranks} ranks, not {ranks}")


def unpack(source: str, folder: Path) -> None:
    """Into `folder`, one file per rank that has computed."""
    try:
        with zipfile.ZipFile(source) as archive:
            for name in archive.namelist():
                if _RANK_FILE.fullmatch(name):
                    archive.extract(name, folder)
    except (OSError, zipfile.BadZipFile) as error:
        raise UserError(f"--compute replay:{source}: it cannot be unpacked: {error}") from None
