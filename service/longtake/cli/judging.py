"""`longtake history judge`: what processes wrote down, held against the store and the provider's witness (4.6)."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from longtake.cli.authority import authority
from longtake.cli.output import Json, print_json, print_line
from longtake.cli.place import Config, DataDir, settings_of
from longtake.cli.process import run
from longtake.errors import ConfigurationError
from longtake.settings import Settings
from longtake.testing.checking import StoreDump, judge, read_history, read_store, read_witness
from longtake.testing.checking.kept import keep_store, read_kept_store

OkFloor = Annotated[
    float, Parameter(help="Least share of calls that each client was answered ok outside of faults")
]
Kept = Annotated[bool, Parameter(negative=(), help="Judge against the store that was kept in the directory")]
Keep = Annotated[bool, Parameter(negative=(), help="Keep the store beside the histories, to be judged again")]
Running = Annotated[
    bool, Parameter(negative=(), help="The service is not at rest: what is pending is no fault")
]
SomeClients = Annotated[
    bool, Parameter(negative=(), help="Others than the recorded clients have sent commands too")
]


def judge_directory(
    directory: Path,
    /,
    *,
    ok_floor: OkFloor = 0.0,
    kept: Kept = False,
    keep: Keep = False,
    running: Running = False,
    some_clients: SomeClients = False,
    data_dir: DataDir = None,
    config: Config = None,
    json: Json = False,
) -> int:
    """Judge the histories of a directory (LONGTAKE_HISTORY_DIR). Anything that breaks a promise is named; then the end is 1."""
    if not 0 <= ok_floor <= 1:
        raise ConfigurationError(f"--ok-floor is {ok_floor}; use 0 to 1")
    if not directory.is_dir():
        raise ConfigurationError(f"{directory} is no directory: name the one that LONGTAKE_HISTORY_DIR named")
    history = read_history(directory)
    if not history:
        raise ConfigurationError(f"there is no history in {directory}: *.jsonl, one file a process")
    store = read_kept_store(directory) if kept else run(_read(settings_of(config=config, data_dir=data_dir)))
    if keep and not kept:
        keep_store(directory, store)
    verdict = judge(
        history,
        store,
        read_witness(directory),
        ok_floor=ok_floor,
        settled=not running,
        all_clients=not some_clients,
    )
    if json:
        print_json({"ok": verdict.ok, "counters": verdict.counters, "violations": verdict.violations})
    else:
        print_line(verdict.text())
    return 0 if verdict.ok else 1


async def _read(settings: Settings) -> StoreDump:
    async with authority(settings) as pool, pool.acquire() as connection:
        return await read_store(connection)
