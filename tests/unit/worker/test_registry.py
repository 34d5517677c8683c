"""What a workflow declares to be started by."""

import pytest

from longtake import App, Plan
from longtake.errors import ConfigurationError


def build(input, policy):
    return Plan().step("a", activity="a@1")


def app_with(**fields) -> App:
    app = App("app")
    app.workflow("w", version=1, **fields)(build)

    @app.activity("a@1")
    async def work(call):
        return None

    return app


def test_a_workflow_takes_generations_unless_it_says_otherwise() -> None:
    assert ("generation",) == app_with().plan("w@1", {}, {}).starts
    assert ("utility", "export") == app_with(starts=["utility", "export"]).plan("w@1", {}, {}).starts


@pytest.mark.parametrize("starts", [(), ("steer",), ("fork",), ("cancel",), ("generation", "fly")])
def test_what_cannot_start_a_workflow_cannot_be_declared(starts) -> None:
    with pytest.raises(
        ConfigurationError, match="use some of generation, new_turn, utility, export, follow_up"
    ):
        app_with(starts=starts)
