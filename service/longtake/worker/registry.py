"""The application: workflows and activities under their versioned names, and the planner made of them.

Named like an ASGI app, `module:attribute`. Leaves to others: running anything.
"""

import hashlib
import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import structlog

from longtake.contracts.codec import canonical, escape_pointer
from longtake.contracts.command_table import DECLARED_STARTS, CommandKind
from longtake.contracts.outcomes import Outcome, Succeeded
from longtake.contracts.problems import Problem, ProblemError, problem
from longtake.engine.inbox import CallbackVerifier
from longtake.errors import (
    ConfigurationError,
    InvalidInput,
    InvalidPlan,
    LongtakeError,
    Refused,
    UncanonicalValue,
)
from longtake.store import PlannedRun
from longtake.worker.activity import Activity, Call
from longtake.worker.fragments import Expander
from longtake.workflow.fingerprint import fingerprint
from longtake.workflow.plan import ActivityFacts, Plan, bind, plan_document, quote, validate

_version = re.compile(r"[1-9][0-9]{0,8}")

Builder = Callable[[Any, Mapping[str, Any]], Plan]


BUILDER_TEXT_MAX = 300
"""Characters of a builder's own words that a client is told."""

log = structlog.get_logger("longtake.worker.registry")


class Workflow(msgspec.Struct, frozen=True, kw_only=True):
    """A versioned builder."""

    name: str
    version: int
    build: Builder
    policy: Mapping[str, Any]
    """Frozen defaults; a command's policy may override its members, and only these."""
    input_type: Any
    starts: tuple[CommandKind, ...] = ("generation",)
    """Command kinds that start it."""


class App:
    """What authors register; a `Planner` for admission and the list of activities for workers."""

    def __init__(self, name: str, *, price_list: str = "none") -> None:
        self.name = name
        self.price_list = price_list
        self.workflows: dict[tuple[str, int], Workflow] = {}
        self.activities: dict[str, Activity] = {}
        self.expanders: dict[str, Expander] = {}
        self.verifiers: dict[str, CallbackVerifier] = {}
        self.services: list[Any] = []
        self._sources: set[Path] = set()
        self._application: str | None = None

    def workflow(
        self,
        name: str,
        *,
        version: int,
        policy: Mapping[str, Any] | None = None,
        input_type: Any = None,
        starts: Sequence[CommandKind] = ("generation",),
    ) -> Callable[[Builder], Builder]:
        """Register a builder `(input, policy) -> Plan`. `input_type` is what msgspec makes of the input first.

        `starts` are the kinds of commands that may start it: generation, new_turn, utility, export, follow_up. A
        workflow for generations takes follow-ups too, a steer needs no leave.
        """
        strange = [kind for kind in starts if kind not in DECLARED_STARTS]
        if strange or not starts:
            raise ConfigurationError(
                f"workflow {name}@{version}: starts is {tuple(starts)}; use some of {', '.join(DECLARED_STARTS)}"
            )

        def register(build: Builder) -> Builder:
            if (name, version) in self.workflows:
                raise ConfigurationError(f"workflow {name}@{version} is registered twice")
            self.workflows[name, version] = Workflow(
                name=name,
                version=version,
                build=build,
                policy=dict(policy or {}),
                input_type=input_type,
                starts=tuple(starts),
            )
            self._remember(build)
            return build

        return register

    def add(self, *activities: Activity) -> None:
        """Register activities."""
        for activity in activities:
            if activity.name in self.activities:
                raise ConfigurationError(f"activity {activity.name} is registered twice")
            self.activities[activity.name] = activity
            self._remember(type(activity))

    def activity(
        self, name: str, *, pool: str = "default", calls_out: bool = False
    ) -> Callable[[Callable[[Call], Any]], Callable[[Call], Any]]:
        """Register a free activity that is one async function returning an Outcome, a result dict, or None."""

        def register(function: Callable[[Call], Any]) -> Callable[[Call], Any]:
            self.add(_function_activity(name, function, pool=pool, calls_out=calls_out))
            self._remember(function)
            return function

        return register

    def expander(self, activity: str) -> Callable[[Expander], Expander]:
        """Register how the result of an activity becomes the steps of a fragment; it runs where the activity runs."""

        def register(expander: Expander) -> Expander:
            if activity in self.expanders:
                raise ConfigurationError(f"the activity {activity} has two expanders")
            self.expanders[activity] = expander
            self._remember(expander)
            return expander

        return register

    def callback(self, provider: str) -> Callable[[CallbackVerifier], CallbackVerifier]:
        """Register how a provider's webhooks are verified."""

        def register(verifier: CallbackVerifier) -> CallbackVerifier:
            self.verifiers[provider] = verifier
            return verifier

        return register

    @property
    def pools(self) -> tuple[str, ...]:
        """Pools that the activities run in."""
        return tuple(sorted({activity.pool for activity in self.activities.values()} | {"default"}))

    # --- Planner ------------------------------------------------------------------------------------------------

    @property
    def application(self) -> str:
        """Digest of the sources that builders and activities live in: another digest is another deployment (P15)."""
        if self._application is None:
            hasher = hashlib.sha256(self.price_list.encode())
            for root in sorted({_root_of(path) for path in self._sources}):
                for path in [root] if root.is_file() else sorted(root.rglob("*.py")):
                    hasher.update(path.name.encode() + path.read_bytes())
            for key in sorted(self.workflows):
                hasher.update(repr((key, sorted(self.workflows[key].policy.items()))).encode())
            self._application = hasher.hexdigest()
        return self._application

    def claims(self, workflow: str, version: int) -> bool:
        """Whether this code has that version of the workflow."""
        return (workflow, version) in self.workflows

    def plan(self, workflow: str, input: Any, policy: Mapping[str, Any]) -> PlannedRun:
        """Build twice, compare, validate, price.

        Raises Refused: unknown-workflow, invalid-command (input or policy), invalid-plan.
        """
        found = self._find(workflow)
        frozen = _policy(found, policy)
        given = _input(found, input)
        try:
            plan, again = found.build(given, frozen), found.build(given, frozen)
            if plan_document(plan) != plan_document(again):
                place = ProblemError(
                    "/payload/workflow", "differs from build to build", "use nothing but the arguments"
                )
                raise Refused(problem("invalid-plan", f"The builder of {workflow} is not pure.", place))
            facts = self.facts()
            validate(plan, facts, policy=frozen)
            self._check_expanders(plan)
            plan = bind(plan, facts)
            mark = fingerprint(plan, frozen, self.price_list)
        except InvalidInput as error:
            places = tuple(
                ProblemError(f"/payload/input{place.pointer}", place.message, place.remedy)
                for place in error.errors
            )
            raise Refused(
                problem("invalid-command", f"The input of {workflow} has {len(places)} faults.", *places)
            ) from error
        except InvalidPlan as error:
            raise Refused(
                problem(
                    "invalid-plan", f"The plan of {workflow} breaks {len(error.errors)} rules.", *error.errors
                )
            ) from error
        except UncanonicalValue as error:
            place = ProblemError(error.pointer, error.message, error.remedy)
            raise Refused(
                problem("invalid-plan", f"The plan has no canonical form: {error}.", place)
            ) from error
        except LongtakeError:
            raise
        except Exception as error:
            # The builder is a pure function: it would break the same way each time.
            log.warning("longtake.builder_broke", workflow=workflow, exc_info=error)
            raise Refused(_broken(workflow, error)) from error
        return PlannedRun(
            workflow=found.name,
            workflow_version=found.version,
            plan=plan,
            plan_document=plan_document(plan),
            input=canonical(input),
            policy=canonical(frozen),
            fingerprint=mark,
            quoted=quote(plan),
            cap=plan.cap,
            price_list=self.price_list,
            scopes=plan.scopes,
            application=self.application,
            starts=found.starts,
        )

    def facts(self) -> dict[str, ActivityFacts]:
        """What plans must know of the activities, by versioned name."""
        return {name: activity.facts() for name, activity in self.activities.items()}

    def _check_expanders(self, plan: Plan) -> None:
        missing = tuple(
            ProblemError(
                f"/steps/{index}/activity",
                f"the activity {step.activity!r} has no expander",
                f'register one: @app.expander("{step.activity}")',
            )
            for index, step in enumerate(plan.steps)
            if step.kind == "expand" and step.activity not in self.expanders
        )
        if missing:
            raise InvalidPlan(missing)

    def _find(self, workflow: str) -> Workflow:
        name, at, version = workflow.partition("@")
        found = self.workflows.get((name, int(version))) if at and _version.fullmatch(version) else None
        if found is None:
            known = ", ".join(sorted(f"{known}@{number}" for known, number in self.workflows)) or "none"
            raise Refused(
                problem(
                    "unknown-workflow",
                    f"The deployed application {self.name!r} has no workflow {workflow!r}.",
                    ProblemError("/payload/workflow", f"is {workflow!r}", f"use one of: {known}"),
                )
            )
        return found

    def _remember(self, thing: Any) -> None:
        source = inspect.getsourcefile(thing)
        if source is not None:
            self._sources.add(Path(source).resolve())
        self._application = None


def load_app(name: str) -> App:
    """Import `module:attribute`. Raises ConfigurationError saying what is wrong with the name."""
    module_name, colon, attribute = name.partition(":")
    if not colon or not attribute:
        raise ConfigurationError(
            f"--app is {name!r}; it must look like videoads:app (module, colon, attribute)"
        )
    try:
        app = getattr(importlib.import_module(module_name), attribute)
    except ImportError as error:
        raise ConfigurationError(f"--app {name}: {module_name} cannot be imported: {error}") from error
    except AttributeError as error:
        raise ConfigurationError(f"--app {name}: {module_name} has no {attribute!r}") from error
    if not isinstance(app, App):
        raise ConfigurationError(f"--app {name}: this is a {type(app).__name__}, not a longtake App")
    return app


def _root_of(path: Path) -> Path:
    """The top package a source file belongs to, or the file itself."""
    root = path
    while (root.parent / "__init__.py").exists():
        root = root.parent
    return root


def _broken(workflow: str, error: Exception) -> Problem:
    """What a client is told whose input a builder cannot plan, and does not say why."""
    said = f"{type(error).__name__}: {error}"[:BUILDER_TEXT_MAX]
    return problem(
        "invalid-plan",
        f"{workflow} cannot plan this input ({said}).",
        ProblemError(
            "/payload/input",
            f"its builder breaks: {said}",
            "send what the workflow asks for, or mend its builder",
        ),
    )


def _policy(workflow: Workflow, given: Mapping[str, Any]) -> dict[str, Any]:
    strange = [name for name in given if name not in workflow.policy]
    if strange:
        remedy = (
            f"use some of: {', '.join(workflow.policy)}" if workflow.policy else "leave it out; it takes none"
        )
        raise Refused(
            problem(
                "invalid-command",
                f"{workflow.name}@{workflow.version} has no such policy member.",
                *(
                    ProblemError(f"/payload/policy/{escape_pointer(name)}", "is unknown", remedy)
                    for name in strange
                ),
            )
        )
    return {**workflow.policy, **given}


def _input(workflow: Workflow, given: Any) -> Any:
    if workflow.input_type is None:
        return given
    try:
        return msgspec.convert(given, workflow.input_type)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        pointer = "/payload/input" + path.rstrip("`").replace("[", ".").replace("]", "").replace(".", "/")
        place = ProblemError(pointer, message, f"see the input of {workflow.name}@{workflow.version}")
        raise Refused(problem("invalid-command", f"The input is not valid: {error}.", place)) from error


def _function_activity(
    name_: str, function: Callable[[Call], Any], *, pool: str, calls_out: bool
) -> Activity:
    pool_, calls_out_ = pool, calls_out

    class FunctionActivity(Activity):
        name = name_
        pool = pool_
        calls_out = calls_out_

        async def execute(self, call: Call) -> Outcome:
            made = await function(call)
            return Succeeded(result=made or {}) if made is None or isinstance(made, dict) else made

    return FunctionActivity()
