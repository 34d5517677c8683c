"""`python -m videoads.renderer.sound speak|music|mix REQUEST.json OUT.wav`: one report line of JSON.

Bad input gives one readable line on standard error: exit code 2 for a request that is wrong, 3 for a
missing voice, 4 when the output cannot be written.
"""

import json
import sys
from pathlib import Path

from .errors import SoundRequestError, VoiceUnavailable
from .requests import run

USAGE = "usage: python -m videoads.renderer.sound speak|music|mix REQUEST.json OUT.wav"


def main(arguments: list[str]) -> int:
    """Run one request; the exit code says what kind of trouble there was."""
    if len(arguments) != 3:
        print(USAGE, file=sys.stderr)
        return 2
    kind, request, out = arguments
    try:
        report = run(kind, Path(request), Path(out))
    except SoundRequestError as error:
        print(f"{kind}: {error}", file=sys.stderr)
        return 2
    except VoiceUnavailable as error:
        print(f"{kind}: {error}", file=sys.stderr)
        return 3
    except OSError as error:
        print(f"{kind}: {out} cannot be written ({error.strerror})", file=sys.stderr)
        return 4
    print(json.dumps({**report, "path": out}, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
