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
from pathlib import Path

from mutant_language import LANGUAGE
from mutant_list import MUTANTS as FIRST
from mutant_list import Mutant

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests" / "unit" / "workflow"
WORKERS = 2
SECONDS_MAX = 300
"""A mutant that makes the tests hang is caught too."""
MUTANTS = (*FIRST, *LANGUAGE)
NEAR = {
    "actions.py": "control pause",
    "answering.py": "control refusals_of_kinds money_cap",
    "blocking.py": "control ending",
    "charging.py": "money money_modes money_cap fork expand corners",
    "children.py": "children",
    "compensating.py": "compensation",
    "conditions.py": "refusals_of_kinds conditions",
    "controlling.py": "control ambiguity",
    "draft.py": "laws_by_example ending",
    "ends.py": "joins laws_by_example children compensation money_modes ending",
    "evolve_attempts.py": "laws_by_example ambiguity pause",
    "evolve_control.py": "pause corners laws_by_example",
    "evolve_money.py": "money_cap money_modes",
    "evolve_plan.py": "expand",
    "evolve_run.py": "retries control",
    "expanding.py": "expand corners",
    "families.py": "children corners",
    "forking.py": "fork",
    "gates.py": "gates control",
    "joins.py": "joins expand corners",
    "moves.py": "control gates",
    "outcomes.py": "ambiguity external laws_by_example pause",
    "passing.py": "joins corners",
    "pausing.py": "pause",
    "queueing.py": "queueing",
    "scheduling.py": "pause happy_path joins control",
    "stalling.py": "laws_by_example",
    "timers.py": "gates laws_by_example corners ending",
}
"""Core module to the tests that are about it: they go first, since they are the likeliest to turn red."""
SLOW = ("test_laws.py", "test_money_laws.py", "test_schedule.py")
LEFT_OUT = "test_advertised.py"
"""Walks through every state of a thousand plans, for minutes."""


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
    # The slowest last: most mutants fall to an example.
    near = [] if mutant is None else [f"test_{name}.py" for name in NEAR.get(mutant.file, "").split()]
    files = sorted(
        (path for path in TESTS.glob("test_*.py") if path.name != LEFT_OUT),
        key=lambda path: (path.name in SLOW, path.name not in near, path.name),
    )
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
