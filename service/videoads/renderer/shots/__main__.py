"""`python -m videoads.renderer.shots REQUEST.json OUT.mp4`: draw one clip, print one JSON line about it.

With a picture ending (`OUT.png`) and a frame's number after it, one still is drawn.
"""

import sys
from pathlib import Path

import msgspec

from videoads.renderer.shots import ShotError, ShotRequest, write_clip, write_still

USAGE = "usage: python -m videoads.renderer.shots REQUEST.json OUT.mp4 | OUT.png FRAME"
USAGE_STATUS, BAD_INPUT_STATUS = 2, 1
CLIP_ARGUMENTS, STILL_ARGUMENTS = 2, 3


def main(arguments: list[str]) -> int:
    """Run the command; the result is the process's exit status."""
    if len(arguments) not in (CLIP_ARGUMENTS, STILL_ARGUMENTS) or (
        len(arguments) == STILL_ARGUMENTS and not arguments[2].isdecimal()
    ):
        print(USAGE, file=sys.stderr)
        return USAGE_STATUS
    out = Path(arguments[1])
    try:
        request = msgspec.json.decode(Path(arguments[0]).read_bytes(), type=ShotRequest)
        if len(arguments) == STILL_ARGUMENTS:
            write_still(request, int(arguments[2]), out)
            line = msgspec.json.encode({"still": out.name, "frame": int(arguments[2])})
        else:
            line = msgspec.json.encode(write_clip(request, out))
    except (ShotError, msgspec.DecodeError, OSError) as error:
        print(f"{arguments[0]}: {error}", file=sys.stderr)
        return BAD_INPUT_STATUS
    print(line.decode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
