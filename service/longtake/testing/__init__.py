"""The test kit, for longtake's own core and for your workflows (floor 5).

`given(plan)` plays a run by hand, in milliseconds, with no server: tell it what happened, look at what follows.

    script = given(plan).start()
    script.succeed("shoot").answer("approve", {"ok": True})
    assert script.summary.status == "completed"

`simulate(app, "film@1", input)` runs a workflow as a whole deployment would, with processes that crash, hints that are lost and a
provider that is late, twice or wrong, once for each seed, and raises `PromiseBroken` with the seed when anything is lost, done
twice or charged without cause, or when a run does not come to its end.

Everything else in this package is how that is done, and may change.
"""

from longtake.testing.given import given
from longtake.testing.users import PromiseBroken, Report, simulate
from longtake.workflow.script import LawBroken, Script

__all__ = ["LawBroken", "PromiseBroken", "Report", "Script", "given", "simulate"]
