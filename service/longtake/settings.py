"""Settings: read once, in bootstrap and cli, from LONGTAKE_* variables and longtake.toml; nonsense is refused.

Everyone else receives values. The variable of a field is LONGTAKE_ and its name in capitals.
"""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import typed_settings

from longtake.contracts.principal import Producers
from longtake.errors import ConfigurationError

ROLES = ("api", "dispatcher", "relay", "sweeper", "worker")


@dataclass(frozen=True)
class Settings:
    """All settings of a process."""

    postgres_url: str = ""
    """A Postgres of one's own; empty: the embedded one."""
    nats_url: str = ""
    """A NATS of one's own; empty: the embedded one."""
    nats_token: typed_settings.SecretStr = field(default=typed_settings.SecretStr(""), repr=False)
    """The token that NATS asks for, if it does."""
    transport: str = "jetstream"
    """jetstream, or off: no broker at all, everything through Postgres (G54)."""
    environment: str = "default"
    """Must be the name in the store: a laptop pointed at another environment's database is refused (G51)."""
    data_dir: Path = Path(".longtake")
    """Where embedded servers, artifacts, keys and logs are kept."""
    app: str = "videoads:app"
    """The application, as module:attribute."""
    host: str = "127.0.0.1"
    """The address that the API listens on."""
    port: int = 8600
    """Its port; 0: a free one."""
    public_url: str = ""
    """How providers reach our callbacks; empty: host and port."""
    allowed_hosts: str = ""
    """Host header values to take besides loopback, separated by commas."""
    stream_producers: str = "*/*"
    """Who may send commands over NATS: tenant/actor, separated by commas, `*` for any; looked at when one is taken."""
    callback_secret: typed_settings.SecretStr = field(default=typed_settings.SecretStr(""), repr=False)
    """Signs callback URLs; at least 32 characters; empty: a random one under the data directory."""
    lease_seconds: int = 30
    """How long a worker that says nothing keeps what it has claimed."""
    heartbeat_seconds: float = 10.0
    """How often it says that it works; a lease holds for at least two of these."""
    slots: int = 8
    """Effects one worker process executes at once in a pool; pools declared short take 64 times as many."""
    stop_seconds: float = 10.0
    """How long running work may go on after a stop."""
    grace_seconds: float = 2.0
    """How long a hint may take before it counts as lost."""
    stall_seconds: float = 600.0
    """How long work may be due that no living worker can do, before its run says what it waits for."""
    redelivery_seconds: float = 0.0
    """When a message whose receiver died with it is delivered again; 0: after 10 s for work, 30 s for the rest."""
    idle_seconds: float = 30.0
    """The longest sleep of an idle role: a lost doorbell is found after it (P24)."""
    traces: str = "none"
    """none, file (NDJSON under the data directory), otlp."""
    otlp_endpoint: str = ""
    """The base address of a collector, for otlp."""
    history_dir: str = ""
    """Where each process writes down what it asked and was told, for the checker; empty: nowhere."""
    log_level: str = "info"
    """The least that the log file takes."""

    crash_point: str = ""
    """For tests: name:action:hit:socket, where this process dies, stops or is cut off; empty: nowhere."""

    def __post_init__(self) -> None:
        """Refuse nonsense: the value, and what would be right."""
        for name, value, low, high in (
            ("port", self.port, 0, 65535),
            ("lease_seconds", self.lease_seconds, 1, 3600),
            ("heartbeat_seconds", self.heartbeat_seconds, 0.1, 600),
            ("slots", self.slots, 1, 1000),
            ("stop_seconds", self.stop_seconds, 0, 3600),
            ("grace_seconds", self.grace_seconds, 0.05, 600),
            ("stall_seconds", self.stall_seconds, 1, 86_400),
            ("redelivery_seconds", self.redelivery_seconds, 0, 600),
            ("idle_seconds", self.idle_seconds, 0.1, 30),
        ):
            if not low <= value <= high:
                raise ConfigurationError(f"LONGTAKE_{name.upper()} is {value}; use {low} to {high}")
        if self.heartbeat_seconds * 2 > self.lease_seconds:
            raise ConfigurationError(
                f"LONGTAKE_HEARTBEAT_SECONDS is {self.heartbeat_seconds} and LONGTAKE_LEASE_SECONDS "
                f"{self.lease_seconds}; a lease must hold for at least two heartbeats"
            )
        for name, url, schemes in (
            ("POSTGRES_URL", self.postgres_url, ("postgres", "postgresql")),
            ("NATS_URL", self.nats_url, ("nats", "tls")),
        ):
            if url and urlsplit(url).scheme not in schemes:
                raise ConfigurationError(f"LONGTAKE_{name} must begin with {schemes[0]}://")
        if self.transport not in ("jetstream", "off"):
            raise ConfigurationError(f"LONGTAKE_TRANSPORT is {self.transport!r}; use jetstream or off")
        if self.traces not in ("none", "file", "otlp"):
            raise ConfigurationError(f"LONGTAKE_TRACES is {self.traces!r}; use none, file or otlp")
        try:
            _ = self.producers
        except ValueError as error:
            raise ConfigurationError(f"LONGTAKE_STREAM_PRODUCERS: {error}") from error
        secret = str(self.callback_secret)
        if secret and len(secret) < 32:
            raise ConfigurationError(
                f"LONGTAKE_CALLBACK_SECRET has {len(secret)} characters; use at least 32"
            )

    @property
    def producers(self) -> Producers:
        """Who may send commands over NATS."""
        return Producers.read(self.stream_producers)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names that requests may name besides loopback."""
        return tuple(host.strip() for host in self.allowed_hosts.split(",") if host.strip())


def load_settings(config: Path | None = None) -> Settings:
    """Read variables and, when it is there, longtake.toml. Raises ConfigurationError in one readable message."""
    files = [config] if config is not None else [Path("longtake.toml")]
    try:
        return typed_settings.load(
            Settings, appname="longtake", config_files=[path for path in files if path.exists()]
        )
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(_readable(error)) from error


def _readable(error: BaseException) -> str:
    """The first cause inside typed-settings' groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    cause = error
    while cause is not None:
        if isinstance(cause, ConfigurationError):
            return str(cause)
        cause = cause.__cause__ or cause.__context__  # type: ignore[assignment]  # both may be None: that ends it
    return f"the settings cannot be read: {error}"
