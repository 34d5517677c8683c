"""The command line of the synthetic providers."""

import argparse
import sys
from pathlib import Path

import msgspec

from videoads.providers.synthetic.making import DEFAULT_RECIPES, Recipes
from videoads.providers.synthetic.profiles import PROFILES
from videoads.providers.synthetic.server import DataInUse, PortTaken, ServerOptions, run

SPEED_MIN, SPEED_MAX = 0.01, 1000.0


def main(arguments: list[str] | None = None) -> int:
    """Read the options, serve until told to stop; one readable line and 1 when that can not be."""
    options = _parser().parse_args(arguments)
    if not SPEED_MIN <= options.speed <= SPEED_MAX:
        print(f"--speed must lie between {SPEED_MIN} and {SPEED_MAX}, not {options.speed}", file=sys.stderr)
        return 1
    try:
        recipes = _recipes(options.recipes)
        run(
            ServerOptions(
                data=options.data.absolute(),
                port=options.port,
                port_file=options.port_file,
                parent_pid=options.parent_pid,
                profile=PROFILES[options.profile],
                speed=options.speed,
                tiny=options.size == "tiny",
                makers_max=options.makers,
                recipes=recipes,
                detach=options.detach,
            )
        )
    except (DataInUse, PortTaken, OSError, msgspec.DecodeError) as error:
        print(f"the synthetic providers can not run: {error}", file=sys.stderr)
        return 1
    return 0


def _recipes(path: Path | None) -> Recipes:
    if path is None:
        return DEFAULT_RECIPES
    return DEFAULT_RECIPES | msgspec.json.decode(path.read_bytes(), type=Recipes)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m videoads.providers.synthetic",
        description="Clip, still, narration, music and render providers that make real media on this machine.",
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="where jobs, media and the witness file live"
    )
    parser.add_argument("--port", type=int, default=0, help="0: the port of the last run if free, else any")
    parser.add_argument("--port-file", type=Path, help="written with the port once the program listens")
    parser.add_argument("--parent-pid", type=int, help="end when this process has ended")
    habits = "; ".join(f"{profile.name}: {profile.summary}" for profile in PROFILES.values())
    parser.add_argument("--profile", choices=sorted(PROFILES), default="normal", help=habits)
    parser.add_argument("--speed", type=float, default=1.0, help="2 halves every waiting time")
    parser.add_argument(
        "--size", choices=("full", "tiny"), default="full", help="tiny: 90x160, 24 frames at most"
    )
    parser.add_argument("--makers", type=int, default=2, choices=range(1, 9), help="media processes at once")
    parser.add_argument("--recipes", type=Path, help="JSON: media kind -> command with {request} and {out}")
    parser.add_argument("--detach", action="store_true", help="return at once and serve in the background")
    return parser


if __name__ == "__main__":
    sys.exit(main())
