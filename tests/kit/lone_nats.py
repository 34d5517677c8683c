"""A nats-server for one test alone, which may be killed, started again and robbed of its memory."""

import asyncio
import os
import shutil
import signal
from pathlib import Path
from typing import Self

from longtake.embedded.locate import nats_program
from longtake.embedded.nats import choose_port

START_SECONDS = 20.0


class LoneNats:
    """One real server on a port that it keeps."""

    token: str | None = None
    """It asks for none; here because a runtime asks a broker for its token."""

    def __init__(self, home: Path, *, settings: str = "") -> None:
        self._home = home
        self._settings = settings
        self._process: asyncio.subprocess.Process | None = None
        self.port = choose_port(())

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"nats://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.kill()

    async def start(self) -> None:
        """Start, and wait until it says that it is ready."""
        config = self._home / "nats.conf"
        config.write_text(
            f'server_name: lone\nhost: "127.0.0.1"\nport: {self.port}\n'
            f'jetstream {{ store_dir: "{self._home}/jetstream", max_file_store: 4GB }}\n{self._settings}\n'
        )
        self._process = await asyncio.create_subprocess_exec(
            str(nats_program()), "--config", str(config), stderr=asyncio.subprocess.PIPE
        )
        assert self._process.stderr is not None
        async with asyncio.timeout(START_SECONDS):
            while line := await self._process.stderr.readline():
                if b"Server is ready" in line:
                    return
        raise AssertionError(f"nats-server ended with {await self._process.wait()}")

    async def kill(self) -> None:
        """SIGKILL, as a crash would."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """SIGTERM, as an operator would."""
        await self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """SIGSTOP: it keeps every connection and answers nothing. Returns when it stands still."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def thaw(self) -> None:
        """SIGCONT."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def save(self) -> None:
        """Copy its files as they are this instant: what a sync of the disk has reached."""
        self.freeze()
        try:
            shutil.rmtree(self._home / "synced", ignore_errors=True)
            shutil.copytree(self._home / "jetstream", self._home / "synced")
        finally:
            self.thaw()

    async def lose_power(self) -> None:
        """Die, and come back with the files of the last `save`: what was acknowledged since is lost."""
        await self.kill()
        self.forget()
        (self._home / "synced").rename(self._home / "jetstream")
        await self.start()

    def forget(self) -> None:
        """Delete every stream; only while it is not running."""
        shutil.rmtree(self._home / "jetstream", ignore_errors=True)

    async def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.send_signal(how)
            if how is not signal.SIGKILL:
                process.send_signal(signal.SIGCONT)
            # Its pipe is read to the end, or a talkative server would wait for us for ever.
            await process.communicate()
