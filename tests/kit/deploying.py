"""Deployments inside a test: an application's source, written and imported as a release would be."""

import importlib.util
import sys
from pathlib import Path

from longtake import App

SHOP = """
from longtake import App, Plan, Retry

app = App("deployed", price_list="{price_list}")


@app.workflow("shop", version=1)
def build(input, policy):
    film = dict(price={price}, input={{"model": "{model}", "of": input.get("of", "rain")}}, retry=Retry(max_attempts={tries}))
    first = Plan().step("{first}", activity="work@1", **(film if "{first}" == "film" else {{}}))
    both = first.step("{second}", activity="work@1", **(film if "{second}" == "film" else {{}}))
    return both.step("cut", activity="work@1", depends_on={waits})


@app.workflow("twin", version=1)
def twin(input, policy):
    return Plan().step("film", activity="work@1", price=5).step("cut", activity="work@1", depends_on=["film"])


@app.workflow("calm", version=1)
def calm(input, policy):
    return Plan().step("rest", activity="work@1")


@app.activity("work@1")
async def work(call):
    return None
"""

ACCEPTED = {
    "price": 5, "price_list": "1", "model": "v2", "tries": 4, "first": "film", "second": "voice",
    "waits": ["film", "voice"],
}  # fmt: skip


def deploy(folder: Path, name: str, **changes: object) -> App:
    """Write the shop with these changes as module `name` and import it; `--app name:app` finds it then."""
    return deploy_source(folder, name, SHOP.format(**{**ACCEPTED, **changes}))


def deploy_source(folder: Path, name: str, source: str) -> App:
    """Write any application's source as module `name` and import it."""
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.app  # type: ignore[no-any-return]  # a module's attributes are not typed
