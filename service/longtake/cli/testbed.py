"""`longtake testbed`: the application's tools without any server - a frame, a film, a measurement, a payload, the assets."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from longtake.cli.output import Json, print_json, print_line, print_table
from longtake.cli.place import AppName, DataDir, settings_of
from longtake.cli.showcase import Testbed, bad_brief, showcase_of, testbed_of
from longtake.errors import ConfigurationError, InvalidInput

app = App(name="testbed", help="Try the application's tools without any server.")

Brief = Annotated[Path | None, Parameter(help="A brief; the application's own without it")]
CACHE = "testbed"


@app.command
def still(
    frame: int,
    /,
    *,
    brief: Brief = None,
    out: Annotated[Path, Parameter(help="A PNG file")] = Path("still.png"),
    data_dir: DataDir = None,
    app: AppName = None,
    json: Json = False,
) -> None:
    """Paint one frame of a brief's film."""
    tools, path, cache = _ready(data_dir, app, brief)
    made = _read_well(path, lambda: tools.still(path, frame, out, cache=cache))
    _tell(made, as_json=json)


@app.command
def render(
    *,
    brief: Brief = None,
    out: Annotated[Path, Parameter(help="A folder")] = Path("out"),
    data_dir: DataDir = None,
    app: AppName = None,
    json: Json = False,
) -> None:
    """Make a brief's film with poster and contact sheet."""
    tools, path, cache = _ready(data_dir, app, brief)

    def told(what: str, done: int, of: int) -> None:
        if not json and (done == of or done % 48 == 0):
            print_line(f"{what} {done}/{of}")

    made = _read_well(path, lambda: tools.render(path, out, cache=cache, progress=told))
    _tell(made, as_json=json)


@app.command
def inspect(
    film: Path,
    composition: Path | None = None,
    /,
    *,
    media: Annotated[
        Path | None, Parameter(help="The folder of the media that the composition names")
    ] = None,
    data_dir: DataDir = None,
    app: AppName = None,
    json: Json = False,
) -> int:
    """Measure a film against its composition (the one beside it without a second argument). Ends with 1 when it fails."""
    tools, _, cache = _ready(data_dir, app, None)
    asked = composition or film.parent / "composition.json"
    for path in (film, asked):
        if not path.is_file():
            raise ConfigurationError(f"{path}: there is no such file")
    checks = tools.inspect(film, asked, media or cache)
    broken = [check for check in checks if not check["passed"]]
    if json:
        print_json({"passed": not broken, "checks": checks})
    else:
        print_table(
            ("check", "", "found", "expected"),
            (
                (c["name"], "ok" if c["passed"] else "fail", c.get("measured", ""), c.get("expected", ""))
                for c in checks
            ),
            status_column=1,
        )
    return 1 if broken else 0


@app.command
def payload(
    *,
    brief: Brief = None,
    film: Annotated[
        bool, Parameter(negative=(), help="Make the media here too, and show what the renderer would be sent")
    ] = False,
    data_dir: DataDir = None,
    app: AppName = None,
    json: Json = False,
) -> None:
    """Show the exact bodies that providers would be sent for a brief. Nobody is called."""
    tools, path, cache = _ready(data_dir, app, brief)
    rows = _read_well(path, lambda: tools.payload(path, cache=cache if film else None))
    for row in rows:
        if json:
            print_json(row)
        else:
            print_line(f"{row['step']}  {row['method']} {row['path']}  {row['bytes']} bytes")
            if row["body"] is not None:
                print_json(row["body"])


@app.command
def assets(*, app: AppName = None, json: Json = False) -> None:
    """List what the application draws and writes with."""
    rows = testbed_of(settings_of(app=app).app).assets()
    if json:
        print_json(rows)
    else:
        print_table(
            ("kind", "name", "bytes", "sha256"),
            ((row["kind"], row["name"], row["bytes"], row["sha256"][:16]) for row in rows),
        )


def _ready(data_dir: Path | None, app: str | None, brief: Path | None) -> tuple[Testbed, Path, Path]:
    """The tools, the brief and the folder where media are kept between two looks."""
    settings = settings_of(data_dir=data_dir, app=app)
    showcase = showcase_of(settings.app)
    if short := showcase.shortfalls():
        raise ConfigurationError("; ".join(short))
    return testbed_of(settings.app), brief or showcase.brief_default, settings.data_dir / CACHE


def _read_well(path: Path, work: Any) -> Any:
    """Do work on a brief; everything that is wrong with the brief is said at once."""
    try:
        return work()
    except InvalidInput as error:
        raise bad_brief(path, error) from error


def _tell(made: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    for name, value in made.items():
        print_line(f"{name:<12} {', '.join(value) if isinstance(value, list) else value}")
