"""Stands in for the renderer where a test is about the protocol: `quick_maker.py REQUEST OUT`, a small real WAV.

A request that holds the word `unmakeable` is refused as the renderer refuses: one line, exit code 2.
"""

import hashlib
import json
import sys
import wave
from pathlib import Path


def main(request: Path, out: Path) -> int:
    raw = request.read_bytes()
    if b"unmakeable" in raw:
        print("/prompt: can not be drawn", file=sys.stderr)
        return 2
    with wave.open(str(out), "wb") as sink:
        sink.setnchannels(1)
        sink.setsampwidth(2)
        sink.setframerate(8000)
        sink.writeframes(hashlib.sha256(raw).digest() * 64)
    print(json.dumps({"samples": 1024, "words": ["ä", "€"]}))
    return 0


sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
