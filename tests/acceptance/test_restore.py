"""A store that went back to an earlier moment, with JetStream and the provider ahead of it (F70, F71, N30)."""

import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from kit.restore_app import BROKEN, app
from kit.restoring import drill
from kit.runtimes import settings_for
from longtake.bootstrap import Runtime
from longtake.engine.restore import Restore
from longtake.errors import StoreRewound

RUNS = int(os.environ.get("LONGTAKE_RESTORE_RUNS", "24"))
"""Runs of the lost interval; `make restore-drill` has more of them."""


@pytest.fixture
def home():
    path = Path(tempfile.mkdtemp(prefix="lt-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.mark.timeout(300 + 6 * RUNS)
async def test_a_restored_store_catches_up_without_paying_twice(home, monkeypatch):
    """The same backup twice, then three restores that leave out one thing each, and are found out by it."""
    async with drill(home, monkeypatch) as it:
        await it.live_until_backup()
        await it.live_on(RUNS)
        lost = it.provider.witness.read_bytes()

        for epoch in (2, 3):
            it.provider.witness.write_bytes(lost)
            begun = time.monotonic()
            await it.restore()
            with pytest.raises(StoreRewound, match="longtake doctor restore"):
                await Runtime(settings_for(home / "refused"), it.addresses, app=app).start()
            report = await it.doctor()
            seconds = time.monotonic() - begun
            assert report.epoch == epoch
            assert report.commands_again >= RUNS
            assert bool(report.orphan_pointers) is (epoch == 2), "put aside once"
            assert await it.judged(report) == []
            print(
                f"\nrestore: epoch {report.epoch}; RTO {seconds:.1f} s; RPO {it.lost} of {len(it.accepted)} commands not there, "
                f"{len(report.commands_not_taken)} for people; {len(report.orphan_pointers)} orphans; {it.charged} charged once"
            )

        it.provider.witness.write_bytes(lost)
        await it.restore()
        monkeypatch.setenv(BROKEN, "ask")
        found = await it.judged(await it.doctor())
        assert any(fault.startswith("charged 2 times") for fault in found), found
        monkeypatch.delenv(BROKEN)

        it.provider.witness.write_bytes(lost)
        await it.restore()
        with monkeypatch.context() as broken:
            broken.setattr(Restore, "replay", _nothing)
            broken.setenv(BROKEN, "guard")  # which would not let a process start without those commands
            found = await it.judged(await it.doctor())
        assert any(fault.startswith("accepted, and gone") for fault in found), found

        it.provider.witness.write_bytes(lost)
        await it.restore()
        with monkeypatch.context() as broken:
            broken.setattr(Restore, "next_epoch", lambda self, report, above: report.epoch_before)
            broken.setattr(Restore, "begin", _nothing)
            broken.setenv(BROKEN, "guard")
            found = await it.judged(await it.doctor())
        assert any(fault.startswith("two events have one id") for fault in found), found


async def _nothing(self, *args, **options):
    return None
