"""`python -m videoads.renderer.inspect FILM COMPOSITION.json [--media DIR] [--json]`: measure a film, say what is wrong.

One line for each failed check; the exit code is 0 when the film keeps its contract, 1 when it does not, 2 when the
question itself is wrong, 3 when the inspection broke. So a film is never blamed for a fault of the inspection.
"""

import argparse
import sys
import traceback
from pathlib import Path

import msgspec

from videoads.renderer.composition import CompositionError, parse_composition
from videoads.renderer.inspect.inspection import inspect_film


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m videoads.renderer.inspect", description="Measure a film."
    )
    parser.add_argument("film", type=Path)
    parser.add_argument("composition", type=Path)
    parser.add_argument("--media", type=Path, help="folder of the media the composition names")
    parser.add_argument("--sha256", help="the digest the film should have")
    parser.add_argument("--bytes", type=int, help="the size the film should have")
    parser.add_argument("--json", action="store_true", help="print every check as one JSON object")
    options = parser.parse_args(arguments)
    try:
        composition = parse_composition(options.composition.read_bytes())
    except OSError as error:
        print(f"cannot read the composition {options.composition}: {error.strerror}", file=sys.stderr)
        return 2
    except CompositionError as error:
        print(f"{options.composition}: {error}", file=sys.stderr)
        return 2
    folder = options.media or options.composition.parent
    try:
        inspection = inspect_film(
            options.film,
            composition,
            expected_sha256=options.sha256,
            expected_bytes=options.bytes,
            media=lambda key: folder / key,
        )
    except OSError as error:
        print(f"cannot read {error.filename or 'a file'}: {error.strerror}", file=sys.stderr)
        return 2
    if options.json:
        document = {"passed": inspection.passed, "checks": msgspec.to_builtins(inspection.checks)}
        print(msgspec.json.encode(document).decode())
    else:
        for check in inspection.failures:
            print(check.line())
        if inspection.passed:
            print(f"{options.film.name} keeps all {len(inspection.checks)} promises")
    return 0 if inspection.passed else 1


if __name__ == "__main__":
    try:
        status = main()
    except Exception:  # noqa: BLE001  whatever it was, it is shown whole and is not the film's fault
        # Python itself would leave with 1, which here means that the film is at fault.
        traceback.print_exc()
        status = 3
    sys.exit(status)
