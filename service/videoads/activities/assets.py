"""Probing assets: what a stored file is, as the renderer's inspection reads it. Free, and nobody outside is asked."""

import tempfile
from pathlib import Path

import msgspec

import longtake
from longtake import Activity, Call, Outcome
from videoads.activities.delivery import run_renderer


class AssetProbe(Activity):
    """Input: {object_key, sha256?}. Result: what videoads.renderer.inspect.probing prints of the file."""

    name = "asset.probe@1"
    calls_out = False
    pool = "short"

    async def execute(self, call: Call) -> Outcome:
        """Measure in a process of its own, so that a broken file breaks nothing here."""
        key = call.input["object_key"]
        with tempfile.TemporaryDirectory(prefix="videoads-") as name:
            path = Path(name) / "asset"
            try:
                await call.artifacts.fetch(key, path)
            except LookupError:
                return longtake.Failed(
                    error_class="invalid_input", origin="request", message=f"there is no object {key}"
                )
            status, printed, said = await run_renderer("videoads.renderer.inspect.probing", str(path))
        if status != 0:
            return longtake.Failed(error_class="transient", origin="infrastructure", message=said)
        found = msgspec.json.decode(printed)
        wanted = call.input.get("sha256")
        if wanted is not None and wanted != found["sha256"]:
            return longtake.Failed(
                error_class="invalid_input",
                origin="request",
                message=f"the object has the digest {found['sha256']}, not {wanted}",
            )
        return longtake.Succeeded(result=found)
