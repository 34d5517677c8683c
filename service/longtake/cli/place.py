"""Where we are: settings with the options of a command laid over them, and what a running `up` left for clients."""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from longtake.client import Client
from longtake.embedded.nats import write_private
from longtake.errors import ConfigurationError
from longtake.settings import Settings, load_settings

UP_FILE = "up.json"
KEY_FILE = "dev.key"
PATIENCE_SECONDS = 10.0
"""How long a command waits for a server that is away for a moment."""
URL_DEFAULT = "http://127.0.0.1:8600"

DataDir = Annotated[
    Path | None, Parameter(name="--data-dir", help="Where data are kept (LONGTAKE_DATA_DIR, .longtake)")
]
Config = Annotated[Path | None, Parameter(name="--config", help="A longtake.toml to read")]
AppName = Annotated[
    str | None,
    Parameter(name="--app", help="The application as module:attribute (LONGTAKE_APP, videoads:app)"),
]

TransportName = Annotated[
    str | None,
    Parameter(
        name="--transport",
        help="jetstream, or off: no broker, all through Postgres (LONGTAKE_TRANSPORT, jetstream)",
    ),
]


class UpFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a running `up` says of itself, in a file of the data directory."""

    url: str
    pid: int
    key_file: str


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Server:
    """Which server to ask, and with which key."""

    url: Annotated[str | None, Parameter(help="Address of a longtake (LONGTAKE_URL, else a local `up`)")] = (
        None
    )
    key: Annotated[str | None, Parameter(help="API key (LONGTAKE_KEY, else that of a local `up`)")] = None
    data_dir: DataDir = None

    def client(self) -> Client:
        """A client of that server."""
        home = settings_of(data_dir=self.data_dir).data_dir
        url = self.url or os.environ.get("LONGTAKE_URL") or _url_of(home)
        key = self.key or os.environ.get("LONGTAKE_KEY") or _key_of(home)
        if not url.startswith(("http://", "https://")):
            raise ConfigurationError(f"--url is {url!r}; it must begin with http:// or https://")
        if key is None:
            raise ConfigurationError(
                f"no API key: give --key or LONGTAKE_KEY, or run `longtake up`, which makes one in {home / KEY_FILE}"
            )
        return Client(url, key, patience_seconds=PATIENCE_SECONDS)


def settings_of(*, config: Path | None = None, **options: Any) -> Settings:
    """Settings of variables and file, with the options that were given laid over them."""
    if config is not None and not config.exists():
        raise ConfigurationError(f"--config {config}: there is no such file")
    given = {name: value for name, value in options.items() if value is not None}
    settings = dataclasses.replace(load_settings(config), **given)
    return dataclasses.replace(settings, data_dir=Path(os.path.abspath(settings.data_dir)))


def read_up(data_dir: Path) -> UpFacts | None:
    """What a running `up` wrote; None when nobody runs there, or it died without a word."""
    try:
        facts = msgspec.json.decode((data_dir / UP_FILE).read_bytes(), type=UpFacts)
        os.kill(facts.pid, 0)
        return facts
    except PermissionError:
        return facts
    except (OSError, msgspec.DecodeError):
        return None


def write_up(data_dir: Path, facts: UpFacts) -> None:
    """Tell clients on this machine where we are."""
    write_private(data_dir / UP_FILE, msgspec.json.encode(facts).decode())


def forget_up(data_dir: Path) -> None:
    """We are not there any more."""
    (data_dir / UP_FILE).unlink(missing_ok=True)


def _url_of(home: Path) -> str:
    facts = read_up(home)
    return URL_DEFAULT if facts is None else facts.url


def _key_of(home: Path) -> str | None:
    try:
        return (home / KEY_FILE).read_text().strip() or None
    except OSError:
        return None
