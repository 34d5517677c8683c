"""Temporary files of a killed process are gone after the next start."""

import tempfile
from pathlib import Path

from longtake.cli.workroom import workroom


def test_temporary_files_lie_in_the_data_directory_and_end_with_the_process(tmp_path: Path) -> None:
    """Also those that nobody closed; outside of it everything is as before."""
    before = tempfile.gettempdir()
    with workroom(tmp_path) as folder:
        kept = Path(tempfile.mkdtemp())

        assert kept.parent == folder
        assert folder.stat().st_mode & 0o777 == 0o700
    assert tempfile.gettempdir() == before
    assert not folder.exists()


def test_what_a_killed_process_left_is_gone_at_the_next_start(tmp_path: Path) -> None:
    """A kill lets nobody tidy up; the next holder of the data does."""
    left = tmp_path / "tmp" / "videoads-killed"
    left.mkdir(parents=True)
    (left / "film.mp4").write_bytes(b"half a film")

    with workroom(tmp_path) as folder:
        assert list(folder.iterdir()) == []
