"""SQL is named, and every name is called: a statement that nobody sends is dead weight."""

import re
from pathlib import Path

SERVICE = Path(__file__).parents[2] / "service" / "longtake"
QUERIES = SERVICE / "postgres" / "queries"


def _unused(names: set[str]) -> set[str]:
    code = "\n".join(path.read_text() for path in SERVICE.rglob("*.py"))
    return {name for name in names if f'"{name}"' not in code}


def test_every_statement_is_sent_by_somebody():
    names = {
        name
        for path in QUERIES.glob("*.sql")
        for name in re.findall(r"^-- name: ([a-z0-9_]+)$", path.read_text(), re.MULTILINE)
    }

    assert len(names) > 50
    assert _unused(names) == set()


def test_a_statement_that_nobody_sends_is_noticed():
    assert _unused({"decisions_commit", "never_sent"}) == {"never_sent"}
