"""An application of short paid steps with siblings, whose every run has one possible outcome, told by its number.

Some siblings fail once, some for good and are borne, some runs fail at their last step; half of them are prepaid. Nothing
depends on which sibling is quicker, so two services that do the same runs must tell the same of them.
"""

from typing import Any

from longtake import App, Failed, Plan, Retry

PRICE = 2


def sibling_app() -> App:
    """The application, made anew for each service."""
    app = App("siblings")

    @app.workflow("siblings", version=1)
    def build(input: Any, policy: Any) -> Plan:
        number = input["number"]
        work: dict[str, Any] = {
            "activity": "work@1",
            "pool": "short",
            "price": PRICE,
            "retry": Retry(max_attempts=2, first_delay_ms=1),
        }
        plan = Plan(billing="prepaid" if number % 2 else "pay_as_you_go").step("seed", **work)
        plan = plan.step(
            "left", depends_on=["seed"], input={"how": "once" if number % 3 == 1 else ""}, **work
        )
        plan = plan.step(
            "right",
            depends_on=["seed"],
            optional=True,
            input={"how": "never" if number % 3 == 2 else ""},
            **work,
        )
        return plan.step(
            "last", depends_on=["left", "right"], join="all_terminal", on_exhausted="fail",
            input={"how": "never" if number % 5 == 0 else ""}, **work,
        )  # fmt: skip

    @app.activity("work@1", pool="short")
    async def work(call: Any) -> Any:
        how = (call.input or {}).get("how")
        if how == "never":
            return Failed(error_class="invalid_input", message="never", origin="request")
        if how == "once" and call.attempt == 1:
            return Failed(error_class="transient", message="not yet")
        return {"step": call.step}

    return app
