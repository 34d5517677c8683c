"""Inputs of workflows from files: what cannot be read is said with its place."""

import sys
from pathlib import Path
from typing import Any

import msgspec

from longtake.errors import ConfigurationError


def read_input(name: str) -> Any:
    """The JSON of a file, or of standard input for `-`."""
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"--input {name}: {error.strerror or error}") from error
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--input {name} is not JSON: {error}") from error
