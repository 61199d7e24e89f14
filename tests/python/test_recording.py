from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from dryfly.base.errors import RunError, UserError
from dryfly.result import compute_recording as recording


def recorded(folder: Path, *, ranks: int) -> Path:
    """A recording of `ranks` ranks, of which the last left nothing."""
    parts = folder / "parts"
    parts.mkdir()
    for rank in range(ranks - 1):
        (parts / f"rank-{rank}.bin").write_bytes(bytes([rank]) * 100)
    target = folder / "run.dfgaps"
    recording.pack(parts, str(target), recording.About(ranks=ranks, program=("prog", "-v")))
    return target


def test_what_was_packed_comes_back_rank_by_rank(tmp_path: Path) -> None:
    target = recorded(tmp_path, ranks=12)
    back = tmp_path / "back"
    recording.check_source(str(target), ranks=12)
    recording.unpack(str(target), back)
    assert {file.name: file.read_bytes() for file in back.iterdir()} == {
        f"rank-{rank}.bin": bytes([rank]) * 100 for rank in range(11)
    }


def test_a_recording_of_another_number_of_ranks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="recorded with 4 ranks, not 5"):
        recording.check_source(str(recorded(tmp_path, ranks=4)), ranks=5)


@pytest.mark.parametrize("kind", ["missing", "text", "another archive", "folder"])
def test_what_is_no_recording_is_refused_in_one_sentence(tmp_path: Path, kind: str) -> None:
    source = tmp_path / "source"
    if kind == "text":
        source.write_text("no archive")
    elif kind == "another archive":
        with zipfile.ZipFile(source, "w") as archive:
            archive.writestr("a.txt", "a")
    elif kind == "folder":
        source.mkdir()
    with pytest.raises(UserError, match=f"replay:{source}: "):
        recording.check_source(str(source), ranks=1)


def test_a_recording_goes_where_a_file_can_be_written(tmp_path: Path) -> None:
    recording.check_target(str(tmp_path / "new"))
    for target in (tmp_path, tmp_path / "no" / "such"):
        with pytest.raises(UserError, match="--compute-record"):
            recording.check_target(str(target))


def test_a_full_disk_leaves_the_old_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = recorded(tmp_path, ranks=3)
    old = target.read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left on device"):
        recording.pack(tmp_path / "parts", str(target), recording.About(ranks=3, program=("prog",)))
    assert target.read_bytes() == old
    assert {file.name for file in tmp_path.iterdir()} == {"parts", target.name}


def test_a_link_stays_and_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    whole = recorded(tmp_path, ranks=3).read_bytes()
    (tmp_path / "link").symlink_to("elsewhere")
    about = recording.About(ranks=3, program=("prog", "-v"))
    recording.pack(tmp_path / "parts", str(tmp_path / "link"), about)
    assert (tmp_path / "link").is_symlink()
    recording.check_source(str(tmp_path / "elsewhere"), ranks=3)
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    recording.pack(tmp_path / "parts", str(tmp_path / "pipe"), about)
    assert (tmp_path / "pipe").is_fifo()
    assert len(os.read(reader, 1 << 16)) >= len(whole) // 2
    os.close(reader)
    with pytest.raises(RunError, match="/dev/full: No space left on device"):
        recording.pack(tmp_path / "parts", "/dev/full", about)
    assert Path("/dev/full").is_char_device()
