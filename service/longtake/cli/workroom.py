"""The workroom: temporary files of this process lie in its data directory, so that a kill leaves none for ever.

Who holds the data directory is alone in it, hence what lies there at a start was left by somebody who is dead.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = "tmp"


@contextmanager
def workroom(data_dir: Path) -> Iterator[Path]:
    """Empty the folder, let `tempfile` use it, and remove it in the end."""
    folder = data_dir.absolute() / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield folder
    finally:
        tempfile.tempdir = before
        shutil.rmtree(folder, ignore_errors=True)
