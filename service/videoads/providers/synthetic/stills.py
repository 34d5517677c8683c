"""Makes one still picture as a process of its own: `python -m videoads.providers.synthetic.stills REQUEST OUT.png`.

Drawing is the renderer's; this only reads the request, as a clip's maker does, and picks the middle frame.
"""

import sys
from pathlib import Path

import msgspec


def main(arguments: list[str]) -> int:
    """Write the still and print one JSON line; 2 and one readable line when the request is wrong."""
    if len(arguments) != 2:
        print("usage: python -m videoads.providers.synthetic.stills REQUEST.json OUT.png", file=sys.stderr)
        return 2
    from videoads.renderer.shots import ShotRequest, write_still

    try:
        request = msgspec.json.decode(Path(arguments[0]).read_bytes(), type=ShotRequest)
    except (OSError, msgspec.DecodeError) as error:
        print(f"{arguments[0]}: {error}", file=sys.stderr)
        return 2
    write_still(request, request.frames // 2, Path(arguments[1]))
    print(msgspec.json.encode({"kind": "still", "width": request.width, "height": request.height}).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
