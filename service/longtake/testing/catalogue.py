"""The application of a simulated world: one workflow that takes its plan from its input, and an activity of each style.

Leaves to others: which plans are tried (plans.py), what an activity does (activities.py).
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from longtake.contracts.command_table import DECLARED_STARTS
from longtake.engine.inbox import AuthenticCallback
from longtake.testing.activities import SimulatedActivity, Stage, Style
from longtake.worker.registry import App
from longtake.workflow.plan import ActivityFacts, Plan, Step

WORKFLOW = "simulated@1"
CHILD = "simulated.child@1"
SIGNATURE = "signed"
PROVIDER = "fake"

_ALL: tuple[tuple[Style, ActivityFacts], ...] = (
    ("quick", ActivityFacts(name="free.quick", version=1)),
    ("quick", ActivityFacts(name="free.short", version=1, pool="short")),
    ("quick", ActivityFacts(name="free.undo", version=1)),
    ("quick", ActivityFacts(name="free.expand", version=1)),
    ("call", ActivityFacts(name="free.call", version=1)),
    ("held", ActivityFacts(name="paid.held", version=1, paid=True, lookup=True)),
    (
        "job",
        ActivityFacts(name="paid.job", version=1, paid=True, external=True, cancellable=True, lookup=True),
    ),
    (
        "job",
        ActivityFacts(name="paid.short", version=1, paid=True, external=True, lookup=True, pool="short"),
    ),
    ("blind", ActivityFacts(name="paid.blind", version=1, paid=True, external=True)),
    ("callback", ActivityFacts(name="paid.callback", version=1, paid=True, external=True, lookup=True)),
)
_STYLES = {f"{facts.name}@{facts.version}": (style, facts) for style, facts in _ALL}

PAID = tuple(name for name, (_, facts) in _STYLES.items() if facts.paid)
FREE = ("free.quick@1", "free.short@1", "free.call@1")
EXPAND = "free.expand@1"
UNDO = "free.undo@1"


class SimulatedApp(App):
    """An application whose digest is a word: another word is another deployment."""

    def __init__(self, name: str, *, price_list: str = "none") -> None:
        super().__init__(name, price_list=price_list)
        self.digest = "a" * 64
        self.drifts = False
        """This deployment plans otherwise than the first one did."""

    @property
    def application(self) -> str:
        """What stands for the digest of its sources."""
        return self.digest


def simulated_app(stage: Stage) -> SimulatedApp:
    """The application that all random worlds deploy."""
    app = SimulatedApp("simulated")

    def build(input: Mapping[str, Any], policy: Mapping[str, Any]) -> Plan:
        plan = msgspec.convert(input["plan"], Plan)
        if not app.drifts or not plan.steps:
            return plan
        first = msgspec.structs.replace(plan.steps[0], label="planned otherwise")
        return msgspec.structs.replace(plan, steps=(first, *plan.steps[1:]))

    for name in (WORKFLOW, CHILD):
        what, _, version = name.partition("@")
        app.workflow(what, version=int(version), starts=DECLARED_STARTS)(build)
    for style, facts in _STYLES.values():
        app.add(SimulatedActivity(stage, style, facts))
    app.expander(EXPAND)(expand)
    app.callback(PROVIDER)(verify_callback)
    return app


def expand(result: dict[str, Any]) -> list[Step]:
    """The fragment that an expansion is answered with: as many steps as its result says."""
    made = [
        Step(f"{result['made']}.free{number}", activity="free.quick@1")
        for number in range(result.get("count", 1))
    ]
    if result.get("paid"):
        made.append(Step(f"{result['made']}.paid", activity="paid.job@1", price_key="made"))
    return made


def verify_callback(headers: Mapping[str, str], raw: bytes) -> AuthenticCallback | None:
    """Callbacks of the fake provider are signed with a word."""
    if headers.get("signature") != SIGNATURE:
        return None
    said = msgspec.json.decode(raw)
    return AuthenticCallback(
        dedupe_key=said["delivery"],
        type=said["type"],
        external_ref=said["ref"],
        payload={"type": said["type"]},
    )
