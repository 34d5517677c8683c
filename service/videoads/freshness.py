"""Freshness: whether a delivered film is still made of the newest brief and media. A fact of its own, no run status (H63).

Pure functions and a small program: `python -m videoads.freshness FILM_RUN RUN ...` compares the film of one run with
what later runs made; it ends with 0 when the film is fresh, with 1 when it is stale, with 2 when there is no answer.
"""

import argparse
import asyncio
import hashlib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from longtake import LongtakeError
from longtake.client import Client
from videoads.media import media_made
from videoads.workflows.film_export import Told

__all__ = ["Change", "Fresh", "Freshness", "Stale", "brief_digest", "freshness", "main", "snapshot_of"]

PATIENCE_SECONDS = 1.0
"""How long an absent server is waited for."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A place of the ad, the digest that the film has there, and the newest; None where there is nothing."""

    slot: str
    made_of: str | None
    newest: str | None


class Fresh(msgspec.Struct, frozen=True, tag="fresh"):
    """Nothing that the film is made of has changed."""


class Stale(msgspec.Struct, frozen=True, tag="stale"):
    """The film shows what is no longer the newest."""

    changes: tuple[Change, ...]


Freshness = Fresh | Stale


def freshness(snapshot: Mapping[str, str], newest: Mapping[str, str | None]) -> Freshness:
    """Compare what a film is made of with the newest, place by place.

    A place that `newest` does not name has not changed; None says that what stood there was taken away.
    """
    changes = tuple(
        Change(slot=slot, made_of=snapshot.get(slot), newest=digest)
        for slot, digest in sorted(newest.items())
        if snapshot.get(slot) != digest
    )
    return Stale(changes) if changes else Fresh()


def snapshot_of(plan: Mapping[str, Any], history: Iterable[Told] = ()) -> dict[str, str]:
    """What the film of a run is made of: the digest of the brief and of each medium, by place.

    A render's plan holds the media that it was given; a run that made its own is read by its history as well.
    LookupError when the run makes no film.
    """
    inputs = {step["key"]: step.get("input", {}) for step in plan["steps"]}
    if "render.prepare" not in inputs:
        raise LookupError("the run makes no film: its plan has no step render.prepare")
    snapshot: dict[str, str] = {}
    if "script.write" in inputs:
        snapshot["brief"] = brief_digest(inputs["script.write"]["brief"])
    given, made = inputs["render.prepare"], media_made(history)
    clips = given["clips"]
    if isinstance(clips, list):
        snapshot |= {f"scene:{number}": clip["sha256"] for number, clip in enumerate(clips, start=1)}
    else:
        snapshot |= {slot: medium.sha256 for slot, medium in made.items() if slot.startswith("scene:")}
    for slot, name in (("voice", "narration"), ("music", "music")):
        file = given.get(name)
        if file is not None and "sha256" in file:
            snapshot[slot] = file["sha256"]
        elif file is not None and slot in made:
            snapshot[slot] = made[slot].sha256
    return snapshot


def brief_digest(brief: Mapping[str, Any]) -> str:
    """The digest of a brief as JSON; the order of its members does not matter."""
    return hashlib.sha256(msgspec.json.encode(brief, order="sorted")).hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask a running longtake, and print the answer as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m videoads.freshness", description="Is the film of a run made of the newest media?"
    )
    parser.add_argument("film", help="id of the run that made the film")
    parser.add_argument("later", nargs="*", help="ids of later runs, oldest first")
    parser.add_argument("--url", default=os.environ.get("LONGTAKE_URL"), help="address, or LONGTAKE_URL")
    parser.add_argument("--key", default=os.environ.get("LONGTAKE_KEY"), help="API key, or LONGTAKE_KEY")
    given = parser.parse_args(arguments)
    if not given.url:
        parser.error("no server: give --url or LONGTAKE_URL")
    try:
        answer = asyncio.run(_ask(given.url, given.key, given.film, given.later))
    except (LongtakeError, LookupError) as error:
        print(f"no answer: {error}", file=sys.stderr)
        return 2
    print(msgspec.json.encode(answer).decode())
    return 1 if isinstance(answer, Stale) else 0


async def _ask(url: str, key: str | None, film: str, later: Sequence[str]) -> Freshness:
    async with Client(url, key, patience_seconds=PATIENCE_SECONDS) as client:
        snapshot = snapshot_of((await client.plan(film))["plan"], await client.history(film))
        newest: dict[str, str | None] = {}
        for run_id in later:
            made = media_made(await client.history(run_id))
            newest |= {slot: medium.sha256 for slot, medium in made.items()}
    return freshness(snapshot, newest)


if __name__ == "__main__":
    sys.exit(main())
