"""The words each provider uses for what went wrong: three dialects, as different as real ones are.

Clients have tables of their own; a contract test makes every error in every dialect and compares.
"""

from videoads.providers.synthetic.faults import ErrorName

# The error -> (HTTP status when a create is refused with it, the provider's own code).
TASK_ERRORS: dict[ErrorName, tuple[int, int]] = {
    "throttled": (429, 1303),
    "overloaded": (503, 5001),
    "transient": (503, 5002),
    "timeout": (504, 5004),
    "invalid_input": (400, 1201),
    "moderation_input": (422, 1301),
    "moderation_output": (422, 1302),
    "quota_exhausted": (402, 1101),
    "auth": (401, 1000),
    "not_found": (404, 1202),
    "cancelled": (409, 1401),
    "bad_output": (500, 5003),
    "provider_bug": (500, 5000),
    "unknown": (500, 5999),
}
SOUND_ERRORS: dict[ErrorName, tuple[int, str]] = {
    "throttled": (429, "too_many_concurrent_requests"),
    "overloaded": (503, "system_busy"),
    "transient": (503, "try_again"),
    "timeout": (504, "generation_timeout"),
    "invalid_input": (422, "validation_error"),
    "moderation_input": (400, "text_blocked"),
    "moderation_output": (400, "output_blocked"),
    "quota_exhausted": (402, "quota_exceeded"),
    "auth": (401, "invalid_api_key"),
    "not_found": (404, "voice_not_found"),
    "cancelled": (409, "generation_cancelled"),
    "bad_output": (500, "empty_generation"),
    "provider_bug": (500, "internal_error"),
    "unknown": (500, "unexpected"),
}
RENDER_ERRORS: dict[ErrorName, tuple[int, str]] = {
    "throttled": (429, "RateExceeded"),
    "overloaded": (503, "CapacityExceeded"),
    "transient": (503, "TransientFault"),
    "timeout": (504, "RenderTimeout"),
    "invalid_input": (400, "ValidationError"),
    "moderation_input": (422, "ContentRefused"),
    "moderation_output": (422, "OutputRefused"),
    "quota_exhausted": (402, "BudgetExceeded"),
    "auth": (403, "AccessDenied"),
    "not_found": (404, "NotFound"),
    "cancelled": (409, "Cancelled"),
    "bad_output": (500, "EmptyOutput"),
    "provider_bug": (500, "RendererCrash"),
    "unknown": (500, "Unexpected"),
}
