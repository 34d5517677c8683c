"""asset.probe@1: what an asset is - a film, a sound, a picture or none of these - measured on the file. Costs nothing."""

from collections.abc import Mapping
from typing import Any

from longtake import InvalidInput, Plan, ProblemError

POLICY: dict[str, Any] = {}


def build(given: Any, policy: Mapping[str, Any]) -> Plan:
    """Plan {"asset": {"object_key", "sha256"?}}: an artifact as it is listed, or its key alone."""
    asset = given.get("asset") if isinstance(given, dict) else None
    if not isinstance(asset, dict) or not isinstance(asset.get("object_key"), str):
        raise InvalidInput(
            (
                ProblemError(
                    "/asset/object_key", "is missing", "give the object key of an artifact or attachment"
                ),
            )
        )
    return Plan(delivers="asset.probe").step(
        "asset.probe",
        activity="asset.probe@1",
        phase="probe",
        label="Probing the asset",
        input={"object_key": asset["object_key"], "sha256": asset.get("sha256")},
        timeout_seconds=120,
    )
