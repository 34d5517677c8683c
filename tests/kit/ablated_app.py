"""The application with one safeguard taken out, to show that the crash runs would notice. For tests alone.

`--app kit.ablated_app:reconcile`: a look-up after a lost answer says "not found" without asking.
`--app kit.ablated_app:receipt`: the first receipt of each paid request is dropped, and the work is done again.
"""

from typing import Any

import longtake
from longtake import Activity, App, Call, Outcome
from videoads.application import app as whole


class _Blind(Activity):
    """Asks nobody whether the provider took the request."""

    def __init__(self, real: Activity) -> None:
        self._real = real
        self.name, self.paid, self.calls_out, self.pool = real.name, real.paid, real.calls_out, real.pool

    async def execute(self, call: Call) -> Outcome:
        return await self._real.execute(call)

    async def poll(self, call: Call) -> Outcome:
        return await self._real.poll(call)

    async def reconcile(self, call: Call) -> Outcome:
        return longtake.NotFound(evidence="nobody was asked")

    async def cancel(self, call: Call) -> Outcome:
        return await self._real.cancel(call)


class _Forgetful(_Blind):
    """Loses what the provider answered, once a request, and lets the same attempt be executed again."""

    def __init__(self, real: Activity) -> None:
        super().__init__(real)
        self._dropped: set[str] = set()

    async def execute(self, call: Call) -> Outcome:
        outcome = await self._real.execute(call)
        if call.token in self._dropped:
            return outcome
        self._dropped.add(call.token)
        return longtake.Pending(poll_after_seconds=1)

    async def reconcile(self, call: Call) -> Outcome:
        return await self._real.reconcile(call)


def _ablated(kind: type[_Blind]) -> App:
    app = App(whole.name, price_list=whole.price_list)
    for workflow in whole.workflows.values():
        app.workflow(workflow.name, version=workflow.version, policy=workflow.policy)(workflow.build)
    app.add(*(kind(activity) if activity.paid else activity for activity in whole.activities.values()))
    app.verifiers.update(whole.verifiers)
    return app


def __getattr__(name: str) -> Any:
    """Each application is made when it is asked for."""
    kinds = {"reconcile": _Blind, "receipt": _Forgetful}
    if name not in kinds:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _ablated(kinds[name])
