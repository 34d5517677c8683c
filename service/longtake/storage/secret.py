"""A secret that is made once and kept in a file."""

import os
import secrets
from pathlib import Path


def kept_secret(path: Path) -> bytes:
    """Read the secret; the first time it is drawn and written for its owner alone."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(32))
    return path.read_bytes()
