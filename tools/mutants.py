"""Break the core one line at a time and see that its tests notice (`make mutants`).

Each mutant names the promise it breaks. It is applied to a copy of the package, the core's tests run against the
copy, and they must turn red. A mutant that survives, or whose line is no longer there, makes this program fail.

    python tools/mutants.py             all of them
    python tools/mutants.py 3 7         these
    python tools/mutants.py --list      what there is
"""

import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests" / "unit" / "workflow"
WORKERS = 2
SECONDS_MAX = 120
"""A mutant that makes the tests hang is caught too."""


@dataclass(frozen=True)
class Mutant:
    """One line of the core, broken."""

    file: str
    line: str
    broken: str
    promise: str


MUTANTS = (
    Mutant(
        "outcomes.py",
        "if signal.attempt != step.attempt:",
        "if False:",
        "an outcome of an older attempt changes nothing",
    ),
    Mutant(
        "outcomes.py",
        "is_open or _is_evidence(state, signal, step)",
        "True",
        "a repeated outcome decides nothing",
    ),
    Mutant(
        "outcomes.py",
        'return isinstance(outcome, (Succeeded, Submitted, Failed))',
        "return False",
        "a late receipt of the call wins over its look-up",
    ),
    Mutant(
        "settling.py",
        "if failure.retryable and step.attempt < step.attempts_allowed:",
        "if failure.retryable and step.attempt <= step.attempts_allowed:",
        "a step is tried as often as its policy says, and not once more",
    ),
    Mutant(
        "settling.py",
        "if failure.retryable and step.attempt < step.attempts_allowed:",
        "if step.attempt < step.attempts_allowed:",
        "what another try cannot cure is not tried again",
    ),
    Mutant(
        "settling.py",
        "if artifact.bytes <= 0:",
        "if artifact.bytes < 0:",
        "an empty artifact is a failed attempt",
    ),
    Mutant(
        "settling.py",
        "poll_at=draft.now if step.callback else",
        "poll_at=draft.now if False else",
        "a callback that outran the submission makes the poll due at once",
    ),
    Mutant(
        "reconciling.py",
        'if draft.state.plan_of(key).ambiguous_policy == "block":',
        "if False:",
        "no second paid call while the truth is open",
    ),
    Mutant(
        "reconciling.py",
        "if step.looks < looks_max:",
        "if True:",
        "look-ups are not repeated for ever",
    ),
    Mutant(
        "lapses.py",
        'case "execute" if begun:',
        'case "execute" if not begun:',
        "a call that may have been taken is looked up, one that was not is tried again",
    ),
    Mutant(
        "scheduling.py",
        "if state.run_blockers:",
        "if False:",
        "a blocked run hands out nothing new",
    ),
    Mutant(
        "scheduling.py",
        "state.plan.plan.max_parallel - len(state.open)",
        "state.plan.plan.max_parallel",
        "steps under way never exceed max_parallel",
    ),
    Mutant(
        "actions.py",
        "if since <= expected_revision <= state.revision:",
        "if expected_revision <= state.revision:",
        "a stale click is refused",
    ),
    Mutant(
        "actions.py",
        "if state.ending is not None:",
        "if False:",
        "a cancel is monotonic",
    ),
    Mutant(
        "money.py",
        "return max(0, left - state.kept)",
        "return left",
        "a cancel does not give back what was worked for",
    ),
    Mutant(
        "admission.py",
        "draft.record(Charged(key=money.charge_key(state), amount=quoted))",
        "pass",
        "the charge stands in the decision that hands out the first work",
    ),
    Mutant(
        "controlling.py",
        "state.blockers[key].type == BLOCKER and not signal.accept_double_cost",
        "False",
        "a retry looks before it pays again",
    ),
    Mutant(
        "timers.py",
        "if due_at is None or draft.now < due_at:",
        "if due_at is None:",
        "a timer whose time was moved does nothing",
    ),
    Mutant(
        "callbacks.py",
        "if step.callback:",
        "if False:",
        "a repeated callback is no event",
    ),
    Mutant(
        "draft.py",
        "if effect_id not in state.open and effect_id not in self._closings:",
        "if False:",
        "what stops being open is closed",
    ),
    Mutant(
        "state.py",
        "step.grace = min(step.grace + 1, GRACE_MAX)",
        "pass",
        "an attempt that was never taken does not count against the policy",
    ),
    Mutant(
        "state.py",
        "step.base = step.attempt + state.plan.steps[index].retry.max_attempts",
        "pass",
        "a person's retry brings a fresh allowance",
    ),
    Mutant(
        "moves.py",
        "if state.group_unmet[name] == 0:",
        "if True:",
        "a barrier waits for every step of its group",
    ),
    Mutant(
        "moves.py",
        "if read.readers == 0:",
        "if False:",
        "results are dropped when nobody can need them",
    ),
    Mutant(
        "moves.py",
        'state.since["retry_generation"] = state.revision',
        'state.since.setdefault("retry_generation", state.revision)',
        "a retry of all is stale when its target has changed",
    ),
    Mutant(
        "moves.py",
        "if plan.cancellable is not False:",
        "if False:",
        "a provider that holds a request is told to stop",
    ),
    Mutant(
        "retry.py",
        "max(delay, 1000 * (retry_after_seconds or 0))",
        "delay",
        "a provider that says when to come back is heeded",
    ),
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """Run the mutants that were asked for; 0 when every one was caught."""
    if arguments == ["--list"]:
        for number, mutant in enumerate(MUTANTS, start=1):
            print(f"{number:3} {mutant.file:16} {mutant.promise}")
        return 0
    try:
        chosen = [int(argument) for argument in arguments] or list(range(1, len(MUTANTS) + 1))
        mutants = [(number, MUTANTS[number - 1]) for number in chosen if number > 0]
    except (ValueError, IndexError):
        print(f"name mutants by number, 1 to {len(MUTANTS)}; --list shows them", file=sys.stderr)
        return 2
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="longtake-mutants-") as directory,
        concurrent.futures.ThreadPoolExecutor(WORKERS) as pool,
    ):
        unbroken = pool.submit(_tests_of, Path(directory) / "0", None)
        verdicts = pool.map(lambda item: _judge(Path(directory) / str(item[0]), item[1]), mutants)
        survivors = 0
        for (number, mutant), (caught, words) in zip(mutants, verdicts, strict=True):
            survivors += not caught
            verdict = "caught  " if caught else "SURVIVED"
            print(f"{number:3} {verdict} {mutant.file:16} {mutant.promise}\n      {words}", flush=True)
        red = unbroken.result()
    if red is not None:
        print(f"the tests are red without any mutant, so nothing was shown: {red}", file=sys.stderr)
        return 1
    print(f"{len(mutants) - survivors} of {len(mutants)} caught in {time.monotonic() - started:.0f} s")
    return 1 if survivors else 0


def _judge(directory: Path, mutant: Mutant) -> tuple[bool, str]:
    """(whether the tests caught it, by which test or why not)."""
    source = (ROOT / "service" / "longtake" / "workflow" / mutant.file).read_text()
    found = [line for line in source.splitlines() if mutant.line in line]
    if len(found) != 1:
        return False, f"the line stands {len(found)} times in {mutant.file}: mend this list ({mutant.line})"
    failed = _tests_of(directory, mutant)
    return (True, failed) if failed is not None else (False, f"{mutant.line}  ->  {mutant.broken}")


def _tests_of(directory: Path, mutant: Mutant | None) -> str | None:
    """Run the core's tests against a copy of the package; the first test that failed, or None when none did."""
    copy = directory / "longtake"
    shutil.copytree(ROOT / "service" / "longtake", copy, ignore=shutil.ignore_patterns("__pycache__"))
    if mutant is not None:
        path = copy / "workflow" / mutant.file
        path.write_text(path.read_text().replace(mutant.line, mutant.broken))
    # The laws last: they are the slowest, and most mutants fall to an example.
    files = sorted(TESTS.glob("test_*.py"), key=lambda path: (path.name == "test_laws.py", path.name))
    environment = {
        **os.environ,
        "PYTHONPATH": f"{directory}{os.pathsep}{ROOT / 'service'}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        *map(str, files),
    ]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the tests did not end in {SECONDS_MAX} s"
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if done.returncode == 0:
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return lines[0].partition(" - ")[0] if lines else (done.stdout + done.stderr).strip()[-300:]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
