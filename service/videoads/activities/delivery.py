"""The delivery contract: the stored film is measured, and only a film that keeps it is an ad (H02, F77)."""

import asyncio
import sys
import tempfile
from pathlib import Path

import msgspec

import longtake
from longtake import Activity, Call, Outcome

INSPECT_SECONDS_MAX = 180.0
ENDINGS = {"video/mp4": ".mp4", "video/webm": ".webm"}


class DeliveryVerify(Activity):
    """Measure film against composition. Input: {film, composition, media}. Artifacts: ad, poster, contact, inspection."""

    name = "delivery.verify@1"
    calls_out = False

    async def execute(self, call: Call) -> Outcome:
        """Measure in a process of its own; a broken promise fails the delivery for good."""
        film, composition = call.input["film"], call.input["composition"]
        with tempfile.TemporaryDirectory(prefix="videoads-") as name:
            folder = Path(name)
            film_path = folder / f"film{ENDINGS.get(film['content_type'], '')}"
            composition_path = folder / "composition.json"
            await call.artifacts.fetch(film["object_key"], film_path)
            await call.artifacts.fetch(composition["object_key"], composition_path)
            for key, object_key in call.input["media"].items():
                await call.artifacts.fetch(object_key, folder / key)
            status, printed, said = await run_renderer(
                "videoads.renderer.inspect",
                str(film_path),
                str(composition_path),
                "--media",
                str(folder),
                "--sha256",
                film["sha256"],
                "--bytes",
                str(film["bytes"]),
                "--json",
            )
            if status not in (0, 1):
                return longtake.Failed(error_class="transient", origin="infrastructure", message=said)
            inspection = msgspec.json.decode(printed)
            broken = [check for check in inspection["checks"] if not check["passed"]]
            if broken:
                words = "; ".join(f"{c['name']}: {c['measured']}, not {c['expected']}" for c in broken)
                return longtake.Failed(
                    error_class="moderation_output", origin="content", message=words[:1000]
                )
            artifacts = [longtake.Artifact(**{**film, "name": "ad", "kind": "ad"})]
            stills = ("poster", "contact")
            drawn = await asyncio.gather(
                *(
                    run_renderer(
                        "videoads.renderer",
                        still,
                        str(film_path),
                        str(folder / f"{still}.jpg"),
                        str(composition_path),
                    )
                    for still in stills
                )
            )
            for still, (status, _, said) in zip(stills, drawn, strict=True):
                if status != 0:
                    return longtake.Failed(error_class="transient", origin="infrastructure", message=said)
                artifacts.append(
                    await call.artifacts.put(
                        folder / f"{still}.jpg", name=still, kind=still, content_type="image/jpeg"
                    )
                )
            artifacts.append(
                await call.artifacts.put(
                    printed, name="inspection", kind="inspection", content_type="application/json"
                )
            )
        return longtake.Succeeded(
            result={"checks": len(inspection["checks"]), "sha256": film["sha256"], "bytes": film["bytes"]},
            artifacts=tuple(artifacts),
        )


async def run_renderer(module: str, *arguments: str) -> tuple[int, bytes, str]:
    """Run a module of the renderer in its own process: (status, standard output, last line of the other)."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(INSPECT_SECONDS_MAX):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = err.decode("utf-8", "replace").strip().splitlines() or [f"{module} ended without a word"]
    return int(process.returncode or 0), out, lines[-1][:500]
