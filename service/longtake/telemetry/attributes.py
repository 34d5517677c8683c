"""The names of our spans, attributes and counters: what a dashboard may rely on, documented like an API.

Spans (one short span per hop; a hop that carries somebody's trace across a queue is linked to it, or its child)

| span                  | kind     | made by    | parent or link                                     |
| --------------------- | -------- | ---------- | -------------------------------------------------- |
| `METHOD route`        | server   | API        | child of the caller's `traceparent`                |
| `command.admit`       | server   | admission  | child of the caller's `traceparent`, HTTP or NATS  |
| `dispatch.batch`      | internal | dispatcher | linked to the traces of its signals                |
| `run.decide`          | internal | dispatcher | child of the signal's trace, linked to the batch   |
| `effect.publish`      | producer | relay, admission, dispatcher | linked to the traces of the effect rows |
| `effect.claim`        | consumer | worker     | linked to the traces of the claimed effects        |
| `effect.execute`      | consumer | worker     | child of the effect row's trace                    |
| `effect.report`       | internal | worker     | linked to the `effect.execute`s whose outcomes it stores |
| `callback.receive`    | server   | API        | child of the webhook's request, linked to the step's trace |
| `sweep.batch`         | internal | sweeper    | linked to the traces of what it repairs            |
| `service.request`     | server   | jetstream  | child of the request's `traceparent`               |

Attributes never hold personal data, payloads or keys. Run and effect ids stand on spans and log lines, never on counters: their
number has no bound. Leaves to others: making spans (tracing.py) and counting (metrics.py).
"""

from typing import Final

# --- spans -----------------------------------------------------------------------------------------------------------

SPAN_COMMAND_ADMIT: Final = "command.admit"
SPAN_DISPATCH_BATCH: Final = "dispatch.batch"
SPAN_RUN_DECIDE: Final = "run.decide"
SPAN_EFFECT_PUBLISH: Final = "effect.publish"
SPAN_EFFECT_CLAIM: Final = "effect.claim"
SPAN_EFFECT_EXECUTE: Final = "effect.execute"
SPAN_EFFECT_REPORT: Final = "effect.report"
SPAN_CALLBACK_RECEIVE: Final = "callback.receive"
SPAN_SWEEP_BATCH: Final = "sweep.batch"
SPAN_SERVICE_REQUEST: Final = "service.request"

# --- attributes of spans ---------------------------------------------------------------------------------------------

TENANT: Final = "longtake.tenant"
"""The tenant's name."""
RUN_ID: Final = "longtake.run.id"
"""The run, as a UUID."""
RUN_REVISION: Final = "longtake.run.revision"
"""The revision after this hop."""
STEP: Final = "longtake.step"
"""The logical step id."""
ATTEMPT: Final = "longtake.attempt"
"""The step's attempt, from 1."""
FENCE: Final = "longtake.fence"
"""The fence under which the work was held."""
EFFECT_ID: Final = "longtake.effect.id"
EFFECT_KIND: Final = "longtake.effect.kind"
EFFECT_POOL: Final = "longtake.effect.pool"
GENERATION: Final = "longtake.effect.generation"
"""How often the pointer to this effect was published."""
COMMAND_ID: Final = "longtake.command.id"
"""The producer's id of the command."""
COMMAND_KIND: Final = "longtake.command.kind"
PROVIDER: Final = "longtake.provider"
OUTCOME: Final = "longtake.outcome"
"""What came of it: `succeeded`, `failed`, `retryable`, `refused`, `duplicate`, `stale`."""
BATCH_SIZE: Final = "longtake.batch.size"

MESSAGING_SYSTEM: Final = "messaging.system"
"""Always `nats`; the registry of semantic conventions has no value for it yet."""
MESSAGING_DESTINATION: Final = "messaging.destination.name"
MESSAGING_OPERATION: Final = "messaging.operation.type"
"""`send`, `receive`, `process` or `settle`."""
MESSAGING_MESSAGE_ID: Final = "messaging.message.id"
ERROR_TYPE: Final = "error.type"
"""The class of the error that ended the hop; its message is in the log, not here."""

# --- counters --------------------------------------------------------------------------------------------------------

COUNTERS: Final[dict[str, str]] = {
    "longtake.commands": "Commands answered, by channel and outcome",
    "longtake.decisions": "Decisions committed",
    "longtake.events": "Events appended",
    "longtake.effects.published": "Pointers to effects published, by pool",
    "longtake.effects.settled": "Effects reported, by pool and outcome",
    "longtake.callbacks": "Provider callbacks received, by provider and outcome",
    "longtake.swept": "What the sweeper repaired, by reason",
    "longtake.dead_letters": "Messages set aside for a person, by reason",
    "longtake.money.violations": "Broken laws of money that the audit found, by law",
    "longtake.transport.published": "Messages handed to JetStream, by stream and result",
    "longtake.transport.delivered": "Messages taken from JetStream, by consumer",
    "longtake.transport.settled": "Deliveries settled, by consumer and way",
    "longtake.transport.unsettled": "Deliveries that their holder forgot and the guard gave back, by consumer",
    "longtake.transport.consumer_repairs": "Consumers declared again after they were lost or changed, by consumer",
    "longtake.transport.rebuilds": "Connections given up by the watchdog and built anew, by role",
}
"""Every counter there is, with what it counts. The labels are few and bounded."""
