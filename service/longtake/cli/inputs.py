"""Inputs of workflows from files, policies from the command line: what cannot be read is said with its place."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from longtake.contracts.twice import named_twice
from longtake.errors import ConfigurationError

Input = Annotated[str, Parameter(help="A JSON file, or - for standard input")]
"""The option that names a file of JSON."""

Policy = Annotated[
    list[str] | None, Parameter(negative=(), help="Policy member as name=value; may be given again")
]
"""The option for members of a workflow's policy."""


def read_input(name: str, *, option: str = "--input") -> Any:
    """The JSON of a file, or of standard input for `-`; `option` names it in errors."""
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{option} {name}: {error.strerror or error}") from error
    try:
        read = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{option} {name} is not JSON: {error}") from error
    except RecursionError as error:
        raise ConfigurationError(f"{option} {name} nests too deep to be read") from error
    twice = named_twice(raw)
    if twice is not None:
        raise ConfigurationError(f"{option} {name}: the member {twice} stands twice in its object")
    return read


def read_object(name: str, *, option: str) -> dict[str, Any]:
    """The same where only an object will do."""
    read = read_input(name, option=option)
    if not isinstance(read, dict):
        raise ConfigurationError(f"{option} {name} is no JSON object; send members in braces")
    return read


def read_policy(pairs: Sequence[str]) -> dict[str, Any]:
    """Policy members given as `name=value`; a value that is JSON is taken as such, any other as text."""
    policy: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise ConfigurationError(f"--policy is {pair!r}; it must look like seconds=5 or model=v2")
        if name in policy:
            raise ConfigurationError(f"--policy {name} is given twice")
        try:
            policy[name] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            policy[name] = text
    return policy
