"""The application that tests of the command line name."""

from longtake import App, InvalidInput, Plan, ProblemError

app = App("cli", price_list="test")


@app.workflow("clip", version=1)
def build(input, policy):  # type: ignore[no-untyped-def]
    """One priced step a scene."""
    scenes = input.get("scenes", 1)
    if not 1 <= scenes <= 3:
        raise InvalidInput((ProblemError("/scenes", "must be 1 to 3", "give a number from 1 to 3"),))
    plan = Plan()
    for index in range(scenes):
        plan = plan.step(f"scene:{index}", activity="scene@1", price=3)
    return plan


@app.activity("scene@1")
async def scene(call):  # type: ignore[no-untyped-def]
    """Nothing is made."""


def broken() -> None:
    """A command with a fault."""
    raise RuntimeError("a fault")
