"""`longtake demo`: a brief becomes a finished, verified ad, and one sees how. With --crash it is killed on the way.

The demo is a client like any other: it starts `longtake up`, posts a command, reads events and summaries, fetches what
was published. Leaves to others: the service process (demo_service), the view (demo_view), the files (demo_result).
"""

import os
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from longtake.cli.demo_crash import crash_bench
from longtake.cli.demo_result import DemoResult, messages_published, read_result, write_files
from longtake.cli.demo_service import DemoService
from longtake.cli.demo_view import DemoView
from longtake.cli.output import Json, console, print_json, print_table
from longtake.cli.place import KEY_FILE, AppName, DataDir, settings_of
from longtake.cli.process import run
from longtake.cli.showcase import Ordered, Outsiders, Showcase, bad_brief, showcase_of
from longtake.client import Client
from longtake.contracts.summary import TERMINAL
from longtake.errors import ConfigurationError, InvalidInput

PROJECT = "demo"
PORT = 8600
COMMAND_BYTES_MAX = 256 * 1024
COMMAND_BYTES_BESIDES = 1024
"""What a command weighs besides its input."""
LEFT_OVER_MAX = 50


def demo(
    *,
    brief: Annotated[Path | None, Parameter(help="A brief of your own; the espresso ad without it")] = None,
    out: Annotated[Path, Parameter(help="Where the files go")] = Path("out"),
    crash: Annotated[
        bool,
        Parameter(
            name="--crash", negative=(), help="Kill service and servers on the way, then judge what is left"
        ),
    ] = False,
    seed: Annotated[int, Parameter(help="Places the kills of --crash")] = 1,
    data_dir: DataDir = None,
    app: AppName = None,
    json: Json = False,
) -> int:
    """Turn a brief into a finished video ad on this machine, and show how.

    Ends with the paths of film, poster, contact sheet, report and history. With --json the last line is one object.
    """
    settings = settings_of(data_dir=data_dir, app=app)
    showcase = showcase_of(settings.app)
    if short := showcase.shortfalls():
        raise ConfigurationError("; ".join(short))
    if crash:
        return run(
            _crash(showcase, settings.app, seed, settings.data_dir if data_dir else None, as_json=json)
        )
    path = brief or showcase.brief_default
    order = read_order(showcase, path)
    return run(
        _demo(showcase, settings.app, order, out=out.absolute(), data_dir=settings.data_dir, as_json=json)
    )


async def _crash(showcase: Showcase, app: str, seed: int, data_dir: Path | None, *, as_json: bool) -> int:
    """One crash run, in a directory that is thrown away unless one was named."""
    view = DemoView(console(), live=False)
    with tempfile.TemporaryDirectory(prefix="longtake-crash-") as folder:
        async with crash_bench(showcase, app, data_dir or Path(folder)) as bench:
            view.say(f"seed {seed}")
            report = await bench.run(seed, say=lambda line: view.say(f"  {line}"))
    for check in report.checks:
        view.say(f"  {'kept  ' if check.kept else 'BROKEN'}  {check.name}: {check.found}")
    view.say(
        f"run {report.run_id}: {'every promise kept' if report.kept else 'PROMISES BROKEN'} in {report.seconds:.1f} s"
    )
    if as_json:
        print_json(report)
    return 0 if report.kept else 1


def read_order(showcase: Showcase, path: Path) -> Ordered:
    """Read a brief. Raises ConfigurationError with every problem and its pointer."""
    try:
        order = showcase.order(path)
    except InvalidInput as error:
        raise bad_brief(path, error) from error
    size = len(msgspec.json.encode(order.input)) + COMMAND_BYTES_BESIDES
    if size > COMMAND_BYTES_MAX:
        heavy = ", ".join(f"{pointer} {weight // 1024} KiB" for pointer, weight in order.weights.items())
        raise ConfigurationError(
            f"{path} makes a command of {size // 1024} KiB, at most {COMMAND_BYTES_MAX // 1024} KiB are taken. "
            f"Its pictures weigh, as text: {heavy or 'nothing'}. Use smaller ones; SVG weighs least."
        )
    return order


async def _demo(
    showcase: Showcase, app: str, order: Ordered, *, out: Path, data_dir: Path, as_json: bool
) -> int:
    seconds: dict[str, float] = {}
    begun = time.monotonic()
    view = DemoView(console(), live=not as_json)
    for note in order.notes:
        view.say(f"note: {note}", "yellow")
    view.say(f"starting longtake in {data_dir}")
    async with service(showcase, app, data_dir, seconds) as (up, outsiders), up.client() as client:
        await finish_left_overs(client, view)
        before = (await outsiders.now()).requests
        # A project of its own: what an earlier run of the demo holds does not stand in the way.
        name = f"{PROJECT}-{os.urandom(4).hex()}"
        posted = await client.start(showcase.workflow, order.input, project=name)
        assert posted.run_id is not None, "a generation has a run"
        view.say(f"{order.title}: run {posted.run_id}, accepted after {time.monotonic() - begun:.1f} s")
        await view.follow(client, posted.run_id)
        result = await read_result(client, posted.run_id)
        fetched = time.monotonic()
        files = await write_files(client, result, showcase, out)
        seconds["files"] = time.monotonic() - fetched
        requests = (await outsiders.now()).requests - before
        messages = messages_published(await up.metrics())
    seconds["all"] = time.monotonic() - begun
    _print_result(view, result, files)
    _print_numbers(view, result, seconds, messages=messages, requests=requests)
    _print_again(view, up, result)
    if as_json:
        _print_object(result, files, showcase.deliveries[0], requests)
    return 0 if result.summary.status == "completed" else 1


@asynccontextmanager
async def service(
    showcase: Showcase, app: str, data_dir: Path, seconds: dict[str, float]
) -> AsyncIterator[tuple[DemoService, Outsiders]]:
    """`longtake up` and its outside world, both gone afterwards whatever happens."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory = data_dir / "providers"
    environment = {
        "VIDEOADS_PROVIDERS_DIR": str(directory),
        "VIDEOADS_PROVIDERS_ARGS": f"--parent-pid {os.getpid()}",
    }
    up = DemoService(data_dir, app=app, port=PORT, environment=environment)
    begun = time.monotonic()
    # Should it not start: whoever holds the data directory also holds its outside world, and neither is ours to end.
    await up.start()
    try:
        outsiders = await showcase.outsiders(directory, small=False, parent_pid=os.getpid())
        try:
            seconds["start"] = time.monotonic() - begun
            yield up, outsiders
        finally:
            begun = time.monotonic()
            # In this order: a service at work would start its outside world again.
            await up.stop()
            await outsiders.stop()
            seconds["stop"] = time.monotonic() - begun
    finally:
        await up.stop()


async def finish_left_overs(client: Client, view: DemoView) -> None:
    """Runs that a killed predecessor left unfinished come to their end first."""
    page = await client.runs(limit=LEFT_OVER_MAX)
    for left in reversed(
        [r for r in page.runs if r.status not in TERMINAL and r.project.startswith(PROJECT)]
    ):
        if left.status == "blocked":
            view.say(
                f"run {left.run_id} of an earlier demo waits for a decision: longtake run show {left.run_id}"
            )
            continue
        view.say(f"finishing the run that an earlier demo left: {left.run_id} ({left.status}, {left.label})")
        summary = await view.follow(client, left.run_id)
        view.say(f"  it is {summary.status}")


def _print_result(view: DemoView, result: DemoResult, files: Mapping[str, Path]) -> None:
    summary = result.summary
    view.say()
    cost = summary.cost
    view.say(
        f"{summary.status.upper()}  {summary.label}  {summary.progress.completed}/{summary.progress.total} steps, "
        f"revision {summary.revision}; quoted {cost.quoted_credits}, charged {cost.charged_credits}, refunded "
        f"{cost.refunded_credits}, net {cost.net_credits} credits",
        "bold green" if summary.status == "completed" else "bold red",
    )
    if isinstance(summary.failure, msgspec.Struct):
        failure = summary.failure
        where = f" in {failure.step}, attempt {failure.attempt}" if failure.step else ""
        intact = "The inputs are intact." if failure.inputs_intact else "The inputs must change."
        view.say(f"  {failure.error_class} ({failure.origin}){where}: {failure.message}", "red")
        view.say(f"  {failure.money} {intact}")
    view.say()
    view.say("ledger", "bold")
    print_table(
        ("seq", "kind", "credits", "from", "to", "step"),
        ((e.seq, e.kind, e.amount, e.debit, e.credit, e.step or "") for e in result.ledger.entries),
    )
    view.say()
    view.say("files", "bold")
    for path in files.values():
        view.say(f"  {_shown(path)}")


def _print_numbers(
    view: DemoView, result: DemoResult, seconds: Mapping[str, float], *, messages: int, requests: int
) -> None:
    view.say()
    view.say(
        f"It took {len(result.events)} events in {result.transactions} transactions, {messages} messages and "
        f"{requests} provider requests."
    )
    phases = {
        "start": seconds["start"],
        **result.phase_seconds(),
        "files": seconds["files"],
        "stop": seconds["stop"],
    }
    shown = ", ".join(f"{name} {spent:.1f}" for name, spent in phases.items())
    view.say(
        f"Seconds: {shown}; all {seconds['all']:.1f}. Phases that depend on nothing of each other overlap."
    )


def _print_again(view: DemoView, up: DemoService, result: DemoResult) -> None:
    place = up.data_dir if up.data_dir != Path.cwd() / ".longtake" else None
    option = f" --data-dir {_shown(place)}" if place is not None else ""
    view.say()
    view.say("To look again:", "bold")
    view.say(f"  longtake up{option} --port {up.port}")
    view.say(f"  URL  {up.url}/v1/runs/{result.summary.run_id}")
    view.say(f"  key  {_shown(up.data_dir / KEY_FILE)}   (Authorization: Bearer ...)")


def _print_object(result: DemoResult, files: Mapping[str, Path], delivered: str, requests: int) -> None:
    artifact = result.published(delivered)
    print_json(
        {
            "run_id": result.summary.run_id,
            "status": result.summary.status,
            "artifact": str(files[delivered]) if delivered in files else None,
            "sha256": None if artifact is None else artifact.sha256,
            "summary": result.summary,
            "provider_requests": requests,
        }
    )


def _shown(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
