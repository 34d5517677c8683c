"""How carefully embedded servers keep data: for people's work, or for a test that throws it away."""

import msgspec


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of both servers, chosen as a whole so that nobody turns fsync off by one stray option."""

    name: str
    postgres: dict[str, str]
    initdb: tuple[str, ...] = ()
    nats_sync_interval: str
    nats_file_bytes_max: int
    nats_memory_bytes_max: int


_COMMON = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "log_destination": "stderr",
    "logging_collector": "off",
    "log_line_prefix": "%m [%p] ",
    "log_min_messages": "warning",
    "log_checkpoints": "off",
    "log_timezone": "UTC",
    "timezone": "UTC",
    "jit": "off",
    "huge_pages": "off",
    "client_connection_check_interval": "5s",
    "max_connections": "100",
}

DURABLE = Profile(
    name="durable",
    postgres={
        **_COMMON,
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "shared_buffers": "64MB",
        "max_wal_size": "512MB",
        "wal_level": "replica",
    },
    # Streams carry hints that Postgres can send again, so a power cut may cost the last seconds of them.
    nats_sync_interval="5s",
    nats_file_bytes_max=4 << 30,
    nats_memory_bytes_max=64 << 20,
)

THROWAWAY = Profile(
    name="throwaway",
    postgres={
        **_COMMON,
        "fsync": "off",
        "full_page_writes": "off",
        "synchronous_commit": "off",
        "shared_buffers": "32MB",
        "max_wal_size": "256MB",
        "wal_level": "minimal",
        "max_wal_senders": "0",
        "autovacuum_naptime": "1h",
    },
    initdb=("--no-sync", "--no-data-checksums"),
    nats_sync_interval="2m",
    nats_file_bytes_max=4 << 30,
    nats_memory_bytes_max=64 << 20,
)
