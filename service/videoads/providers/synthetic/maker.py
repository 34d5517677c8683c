"""A maker that stays: one process that makes one medium after another, because starting costs more than a small
clip. `python -m videoads.providers.synthetic.maker MODULE` runs MODULE's command line once for each line it reads.

A line in is a JSON list of arguments, a line out is [status, standard output, standard error]. It ends with its
input, so it never outlives the providers.
"""

import contextlib
import importlib
import io
import os
import sys
import traceback
from collections.abc import Callable

import msgspec

CRASHED_STATUS = 70


def main(module: str) -> int:
    """Serve until the input ends."""
    # What a module's libraries write to the real standard output must not mix with our answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    command: Callable[[list[str]], int] = importlib.import_module(f"{module}.__main__").main
    for line in sys.stdin.buffer:
        answers.write(msgspec.json.encode(_run(command, msgspec.json.decode(line, type=list[str]))) + b"\n")
        answers.flush()
    return 0


def _run(command: Callable[[list[str]], int], arguments: list[str]) -> tuple[int, str, str]:
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        try:
            status = command(arguments)
        except Exception:  # noqa: BLE001 - whatever a module raises is reported as the providers' own fault
            traceback.print_exc()
            status = CRASHED_STATUS
    return status, said.getvalue(), complained.getvalue()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
