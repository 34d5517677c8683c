"""What became of a batch: which of its runs delivered, and what. Free, and nobody outside is asked."""

import msgspec

import longtake
from longtake import Activity, Call, Outcome


class BatchReport(Activity):
    """Input: {items: [{name, run_id, artifacts}]}, null where a run did not complete. Artifact: report.

    Result: {items: [{name, status: made|missing, run_id, artifacts: {name: sha256}}], made, missing}.
    """

    name = "batch.report@1"
    calls_out = False
    pool = "short"

    async def execute(self, call: Call) -> Outcome:
        """Count; a batch of which nothing came has failed."""
        items = [
            {
                "name": item["name"],
                "status": "missing" if item["run_id"] is None else "made",
                "run_id": item["run_id"],
                "artifacts": {name: file["sha256"] for name, file in (item["artifacts"] or {}).items()},
            }
            for item in call.input["items"]
        ]
        made = sum(item["status"] == "made" for item in items)
        if made == 0:
            return longtake.Failed(
                error_class="dependency",
                origin="content",
                message=f"none of the {len(items)} runs of the batch completed: see what each says",
            )
        result = {"items": items, "made": made, "missing": len(items) - made}
        report = await call.artifacts.put(
            msgspec.json.encode(result), name="report", kind="report", content_type="application/json"
        )
        return longtake.Succeeded(result=result, artifacts=(report,))
