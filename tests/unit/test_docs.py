"""The documents say what is there: links lead somewhere, commands exist, tables are those of the code, the example runs."""

import ast
import asyncio
import dataclasses
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cyclopts import App as Cli

from longtake.api.app import build_api
from longtake.api.context import ApiContext
from longtake.cli.main import build_app
from longtake.contracts.problems import CATALOGUE
from longtake.engine.relay import ACTOR_HEADER
from longtake.jetstream import topology
from longtake.jetstream.services import COMMAND_SUBJECT, SUMMARY_SUBJECT
from longtake.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
MAKE = re.compile(r"\bmake ([a-z][a-z-]+)\b")
LONGTAKE = re.compile(r"(?:^|[`\s/])longtake (?!import)([a-z]+(?: [a-z]+(?:-[a-z]+)*)?)")
CODE = re.compile(r"`([^`\n]+)`|^```[a-z]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def code_of(page: Path) -> Iterator[str]:
    """Everything of a page that is set as code."""
    for inline, block in CODE.findall(page.read_text(encoding="utf-8")):
        yield inline or block


def targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))


def commands(app: Cli | None = None, depth: int = 2) -> set[str]:
    """`run`, `run start`, ... as the program knows them."""
    app = app or build_app()
    found = set()
    for name in app:
        if name.startswith("-"):
            continue
        found.add(name)
        group = app[name]
        if depth > 1:
            found |= {f"{name} {sub}" for sub in commands(group, depth - 1)}
    return found


def table(page: Path, name: str) -> str:
    """What stands between two marks of a page."""
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", page.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None, f"{page.name} has no table {name}"
    return found[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    lost = [
        target
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if not target.startswith(("http://", "https://", "#"))
        and not (page.parent / target.partition("#")[0]).exists()
    ]

    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_make_target_and_command_that_is_named_exists(page: Path) -> None:
    text = "\n".join(code_of(page))
    known, makes = commands(), targets()
    strange = [f"make {name}" for name in MAKE.findall(text) if name not in makes]
    for words in LONGTAKE.findall(text):
        first, _, second = words.partition(" ")
        is_group = any(name.startswith(f"{first} ") for name in known)
        if first not in known or (is_group and second and words not in known):
            strange.append(f"longtake {words}")

    assert strange == []


def test_a_command_that_does_not_exist_would_be_noticed() -> None:
    assert LONGTAKE.findall("`longtake run fly --high`") == ["run fly"]
    assert "run fly" not in commands()
    assert MAKE.findall("make coffee") == ["coffee"]
    assert "coffee" not in targets()


def test_the_command_line_page_has_every_command() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    leaves = {name for name in commands() if not any(other.startswith(f"{name} ") for other in commands())}

    assert {name for name in leaves if f"| `longtake {name}` |" not in page} == set()


def settings_table() -> str:
    """The table of settings as the code has it: variable, default, and the sentence below the field."""
    tree = ast.parse((ROOT / "service" / "longtake" / "settings.py").read_text(encoding="utf-8"))
    (body,) = [node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Settings"]
    said: dict[str, str] = {}
    for field, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            is_said = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            text = " ".join(after.value.value.split()) if is_said else ""
            said[field.target.id] = re.sub(r" \([A-Z]\d+\)", "", text)
    rows = ["| variable | default | meaning |", "| --- | --- | --- |"]
    for field in dataclasses.fields(Settings):
        secret = "Secret" in str(field.type)
        default = "" if secret else str(field.default)
        shown = f"`{default}`" if default else "none"
        rows.append(f"| `LONGTAKE_{field.name.upper()}` | {shown} | {said[field.name]} |")
    return "\n".join(rows) + "\n"


def test_the_table_of_settings_is_that_of_the_code() -> None:
    page = ROOT / "docs" / "configuration.md"

    assert table(page, "settings") == settings_table()
    assert all(row.count("|") == 4 and not row.endswith("|  |") for row in settings_table().splitlines())


def problems_table() -> str:
    rows = ["| type | status | title |", "| --- | --- | --- |"]
    rows += [f"| `{slug}` | {status} | {title} |" for slug, (title, status) in CATALOGUE.items()]
    return "\n".join(rows) + "\n"


def test_the_table_of_problems_is_the_catalogue() -> None:
    assert table(ROOT / "docs" / "http.md", "problems") == problems_table()


def test_the_table_of_addresses_is_that_of_the_routes() -> None:
    nothing: Any = None
    context = ApiContext(
        admission=nothing, inbox=nothing, reads=nothing, keys=nothing, objects=nothing, store_epoch=1,
        cursor_secret=b"",
    )  # fmt: skip
    routes = {
        f"{method} {re.sub(r':[a-z]+}', '}', route.path)}"
        for route in build_api(context).routes
        for method in getattr(route, "methods", ())
        if method not in ("OPTIONS", "HEAD")
    }
    named = set(re.findall(r"^\| `([A-Z]+ [^`]+)`", table(ROOT / "docs" / "http.md", "routes"), re.MULTILINE))

    assert named == routes


def test_the_page_about_nats_names_what_the_code_uses() -> None:
    page = (ROOT / "docs" / "nats.md").read_text(encoding="utf-8")
    names = [COMMAND_SUBJECT, SUMMARY_SUBJECT, ACTOR_HEADER, topology.LT_COMMAND, topology.LT_EFFECT]
    names += [
        topology.LT_CALLBACK,
        topology.command_subject(tenant="T", kind="K").replace("T.K", "{tenant}.{kind}"),
    ]

    assert [name for name in names if name not in page] == []


def test_every_decision_is_listed_and_has_its_three_parts() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    for page in sorted(folder.glob("0*.md")):
        text = page.read_text(encoding="utf-8")
        title = text.splitlines()[0].removeprefix("# ")
        assert f"[{page.name[:4]}]({page.name}) {title[5:]}" in listed
        assert title.startswith(page.name[:4])
        for part in ("**Context.**", "**Choice.**", "**Given up.**"):
            assert part in text, f"{page.name} lacks {part}"


def readme_example() -> types.ModuleType:
    """The example of the README as a module."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (source,) = [block for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)]
    module = types.ModuleType("postcards")
    sys.modules["postcards"] = module
    exec(compile(source, str(ROOT / "README.md"), "exec"), module.__dict__)  # noqa: S102 - our own page
    return module


def test_the_example_of_the_readme_plans_prices_and_works() -> None:
    module = readme_example()
    planned = module.app.plan("postcards@1", {"names": ["Ada", "Grace"]}, {})

    assert [step.key for step in planned.plan.steps] == ["card:1", "card:2", "post"]
    assert planned.quoted == 2
    made = asyncio.run(module.write(SimpleNamespace(input={"name": "Ada"})))
    assert made == {"text": "Dear Ada, wish you were here."}
    assert asyncio.run(module.post(SimpleNamespace(input={"texts": [made["text"]] * 2}))) == {"posted": 2}


def test_the_poster_is_small_and_there() -> None:
    assert 10_000 < (ROOT / "docs" / "img" / "poster.jpg").stat().st_size < 120_000
