"""Guards over the source: shapes of program that the mission forbids, each beside a planted one that is found.

Leaves to others: who may import whom (test_architecture.py).
"""

import ast
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from kit.promises import promise

SERVICE = Path(__file__).parent.parent / "service"
LONGTAKE = SERVICE / "longtake"

Finder = Callable[[str, ast.Module], Iterator[str]]


def sources(root: Path = LONGTAKE) -> Iterator[tuple[str, ast.Module]]:
    """Every module under a folder, by its path there."""
    for path in sorted(root.rglob("*.py")):
        yield path.relative_to(root).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def found(finder: Finder, root: Path = LONGTAKE) -> list[str]:
    """What a finder says of all modules."""
    return [what for place, tree in sources(root) for what in finder(place, tree)]


def planted(finder: Finder, place: str, source: str) -> list[str]:
    """What a finder says of a piece of code as if it stood there."""
    return list(finder(place, ast.parse(source)))


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Every call with the last word of its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield name, node


# --- nothing is remembered by a module ------------------------------------------------------------------------------------

MUTATORS = frozenset(
    {
        "append",
        "add",
        "update",
        "setdefault",
        "pop",
        "clear",
        "extend",
        "insert",
        "remove",
        "discard",
        "popitem",
    }
)
MAKERS = frozenset(
    {"dict", "list", "set", "defaultdict", "OrderedDict", "deque", "Counter", "WeakValueDictionary"}
)


def remembered(place: str, tree: ast.Module) -> Iterator[str]:
    """Containers of a module that some function of it changes: a map of jobs would be one."""
    names = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and _is_container(node.value)
    }
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            changed: ast.expr | None = None
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in MUTATORS
            ):
                changed = node.func.value
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
                changed = node.value
            elif isinstance(node, ast.Global):
                yield f"{place}: global {', '.join(node.names)}"
            if isinstance(changed, ast.Name) and changed.id in names:
                yield f"{place}: {changed.id} is changed by {function.name}"


def _is_container(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp):
        return True
    return isinstance(value, ast.Call) and next(calls(value))[0] in MAKERS


PROCESS_WIDE = (
    "telemetry/",  # one tracer and one set of counters a process: how a process is seen, never what a run is
    "cli/output.py",
)
"""Where a process may remember something of itself."""


@promise("G58", "T41")
def test_no_module_keeps_a_map_of_jobs_or_anything_else_that_work_depends_on() -> None:
    assert [] == [what for what in found(remembered) if not what.startswith(PROCESS_WIDE)]


@pytest.mark.parametrize(
    "source",
    [
        "jobs = {}\ndef start(id):\n    jobs[id] = 'running'",
        "jobs: dict[str, str] = dict()\nasync def start(id):\n    jobs.setdefault(id, 1)",
        "running = set()\nclass A:\n    def go(self, id):\n        running.add(id)",
        "current = None\ndef start(id):\n    global current\n    current = id",
    ],
)
def test_a_map_of_jobs_is_found(source: str) -> None:
    assert planted(remembered, "worker/runner.py", source)


# --- one way to do each thing -----------------------------------------------------------------------------------------------

ONLY = {
    "accept": {"engine/starting.py", "workflow/script.py"},
    "decide": {"engine/deciding.py", "engine/admission.py", "engine/line.py", "workflow/script.py"},
    "_invoke": {"worker/executor.py"},
    "LedgerEntry": {"workflow/money.py"},
    "RunCompleted": {"workflow/scheduling.py"},
}
"""Calls that stand for a whole responsibility, and who alone makes them."""

TRIALS = "testing/"
"""The test kit plays runs by hand and on copies; no service does any of it."""


def second_ways(place: str, tree: ast.Module) -> Iterator[str]:
    """Another place that opens runs, decides, executes activities, writes money, or completes a run."""
    for name, _ in calls(tree):
        if name in ONLY and place not in ONLY[name] and not place.startswith(TRIALS):
            yield f"{place}: {name}()"


def ways(name: str) -> set[str]:
    """Where a call is made."""
    return {
        place
        for place, tree in sources()
        for called, _ in calls(tree)
        if called == name and not place.startswith(TRIALS)
    }


@promise("G12", "H82", "H86")
def test_there_is_one_place_to_open_a_run_one_to_decide_one_to_execute_and_one_to_write_money() -> None:
    assert [] == found(second_ways)
    for name, places in ONLY.items():
        assert ways(name), f"{name}() is called somewhere"
        assert ways(name) <= places


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("api/commands.py", "run = accept(state, facts, now)"),
        ("worker/runner.py", "decision = reducer.decide(state, signal, now)"),
        ("api/callbacks.py", "entry = LedgerEntry(key='k', kind='refund')"),
        ("worker/reporter.py", "event = events.RunCompleted()"),
        ("api/runs.py", "outcome = await _invoke(activity, call)"),
    ],
)
def test_a_second_way_is_found(place: str, source: str) -> None:
    assert planted(second_ways, place, f"async def f():\n    {source}")


# --- workers and the history -------------------------------------------------------------------------------------------------

ORCHESTRATION = (
    "longtake.workflow.",
    "longtake.engine.deciding",
    "longtake.engine.admission",
    "longtake.store.",
)
AUTHORING = {
    "longtake.workflow.plan",  # what authors write: the registry builds plans for admission and knows their activities
    "longtake.workflow.fingerprint",
    "longtake.engine.inbox",
}
DISPATCH_NAMES = {"DecisionStore", "AdmissionStore", "RunState", "decide", "evolve", "fold"}


def orchestrating(place: str, tree: ast.Module) -> Iterator[str]:
    """A worker that reaches for runs, decisions or the history."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {name.name for name in node.names}
            if (
                node.module.startswith(ORCHESTRATION) and node.module not in AUTHORING
            ) or names & DISPATCH_NAMES:
                yield f"{place}: from {node.module} import {', '.join(sorted(names))}"


@promise("H82", "H30", "H25")
def test_workers_do_not_orchestrate() -> None:
    assert [] == found(orchestrating, LONGTAKE / "worker")


@pytest.mark.parametrize(
    "source",
    [
        "from longtake.workflow.reducer import decide",
        "from longtake.store import DecisionStore, EffectStore",
        "from longtake.engine.admission import Admission",
        "from longtake.workflow.state import evolve",
    ],
)
def test_an_orchestrating_worker_is_found(source: str) -> None:
    assert planted(orchestrating, "runner.py", source)


@promise("H82")
def test_the_statements_of_workers_never_touch_events_or_runs_for_writing() -> None:
    """What a worker may ask for, statement by statement: no event, no step, no run is written by any of them."""
    text = (LONGTAKE / "postgres" / "queries" / "effects.sql").read_text()
    statements = {part.split("\n", 1)[0].strip(): part for part in text.split("-- name: ")[1:]}
    mine = (
        "effects_claim",
        "leases_renew",
        "call_open",
        "receipts_store",
        "effects_put_back",
        "leases_release",
    )

    def writes(statement: str) -> set[str]:
        words = statement.replace("\n", " ").split()
        return {
            word.removeprefix("longtake.")
            for before, word in pairwise(words)
            if before in ("into", "update") and word.startswith("longtake.")
        }

    assert {"effects", "effect_claims", "late_receipts"} == set().union(
        *(writes(statements[name]) for name in mine)
    )
    assert {"runs"} == writes("update longtake.runs set status = 'completed'"), "a planted one is seen"


# --- status is the server's --------------------------------------------------------------------------------------------------

STATUSES = frozenset({"accepted", "running", "blocked", "cancelling", "completed", "failed", "cancelled"})
CLIENTS = ("client", "cli", "api")


def deriving(place: str, tree: ast.Module) -> Iterator[str]:
    """A client-side that makes up a run's status instead of showing the one it was given."""
    for name, call in calls(tree):
        if name not in ("Summary", "Run", "RunNow", "RunRow"):
            continue
        for keyword in call.keywords:
            if keyword.arg == "status" and isinstance(keyword.value, ast.Constant | ast.IfExp):
                yield f"{place}: {name}(status={ast.unparse(keyword.value)})"
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and node.value.value in STATUSES
            and any(isinstance(target, ast.Attribute) and target.attr == "status" for target in node.targets)
        ):
            yield f"{place}: {ast.unparse(node)}"


@promise("H84", "G38")
def test_no_client_derives_a_status() -> None:
    assert [] == [what for part in CLIENTS for what in found(deriving, LONGTAKE / part)]


@pytest.mark.parametrize(
    "source", ["s = Summary(status='running' if open else 'completed')", "run.status = 'failed'"]
)
def test_a_derived_status_is_found(source: str) -> None:
    assert planted(deriving, "client/client.py", source)


# --- pictures are tested without anybody's model -----------------------------------------------------------------------------

REACHING_OUT = (
    "videoads.providers",
    "videoads.outsiders",
    "httpx2",
    "urllib.request",
    "aiohttp",
    "requests",
    "openai",
)


def reaching_out(place: str, tree: ast.Module) -> Iterator[str]:
    """A picture's maker or test that asks somebody outside."""
    for node in ast.walk(tree):
        modules = (
            [name.name for name in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and node.level == 0
            else []
        )
        for module in modules:
            if module.startswith(REACHING_OUT):
                yield f"{place}: {module}"


@promise("H87", "H68")
def test_drawing_and_its_tests_ask_no_provider_and_no_network() -> None:
    """Stills, films, sound and inspection come from checked-in compositions and drawn media alone."""
    tests = Path(__file__).parent / "unit" / "videoads"
    assert [] == found(reaching_out, SERVICE / "videoads" / "renderer")
    for part in ("film", "shots", "sound", "inspect", "fixtures"):
        assert [] == found(reaching_out, tests / part)


@pytest.mark.parametrize(
    "source", ["import httpx2", "from videoads.providers.clips import ClipsClient", "import openai"]
)
def test_a_picture_from_outside_is_found(source: str) -> None:
    assert planted(reaching_out, "film/test_film.py", source)


# --- an artifact is no URL ----------------------------------------------------------------------------------------------------


@promise("H88")
def test_no_column_no_event_and_no_outcome_has_a_field_for_a_url() -> None:
    from longtake.contracts.events import EVENT_TYPES
    from longtake.contracts.outcomes import Artifact

    ddl = "\n".join(
        path.read_text().lower() for path in sorted((SERVICE.parent / "migrations").glob("*.sql"))
    )
    columns = {
        line.split()[0]
        for line in ddl.splitlines()
        if line.startswith("    ") and not line.strip().startswith("--") and line.split()
    }
    fields = {field for kind in (*EVENT_TYPES, Artifact) for field in kind.__struct_fields__}

    assert {"object_key", "sha256"} <= columns and {"object_key", "sha256"} <= fields
    assert [] == sorted(name for name in columns | fields if "url" in name or "href" in name)
