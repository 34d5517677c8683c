"""An upgrade adds and takes nothing away: old code goes on working on the schema of today (F57; docs/upgrading.md)."""

import re
from pathlib import Path

import asyncpg
import pytest

from kit.expanding import narrowings
from kit.servers import Database
from longtake import resources

MIGRATIONS = [
    (path.stem, path.read_text()) for path in sorted(resources.directory("migrations").glob("*.sql"))
]
STATEMENTS = Path(__file__).parent / "statements"
GROUND = "0007_money_modes"
"""The newest file of the first release that another one followed: no earlier release works on what came before it."""

CONTRACT_STEPS: set[tuple[str, str]] = set()
"""(file, what it does) of steps that take away what no release that may still run uses any more."""


def after_ground(files: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [found for found in narrowings(files) if found[0] > GROUND and found not in CONTRACT_STEPS]


def test_no_migration_takes_away_what_the_previous_release_uses() -> None:
    assert GROUND in dict(MIGRATIONS)
    assert after_ground(MIGRATIONS) == []


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("drop table longtake.errands;", "drops"),
        ("alter table longtake.runs drop column summary;", "drops"),
        ("alter table longtake.runs\n  rename column head to tip;", "renames"),
        ("alter table longtake.runs rename to running;", "renames"),
        ("alter table longtake.runs alter column revision type bigint;", "retypes"),
        ("alter table longtake.runs alter revision set data type bigint;", "retypes"),
        ("alter table longtake.runs alter column project set not null;", "tightens"),
        ("alter table longtake.runs alter column project drop default;", "tightens"),
        ("alter table longtake.runs add column owner text not null;", "tightens"),
        ("alter table longtake.runs add column a text, add column owner text not null;", "tightens"),
        ("alter table longtake.runs add constraint short check (length(project) < 9);", "tightens"),
        ("create unique index one_a_project on longtake.runs (project);", "tightens"),
        ("do $$ begin alter table longtake.runs drop column head; end $$;", "drops"),
    ],
)
def test_a_migration_that_takes_away_is_refused(sql: str, said: str) -> None:
    (found,) = after_ground([*MIGRATIONS, ("9999_planted", f"-- words: drop table\n{sql}")])

    assert found[0] == "9999_planted"
    assert found[1].startswith(said)


def test_a_migration_that_adds_is_let_through() -> None:
    sql = """
        -- drop table longtake.runs;
        create table longtake.fresh (id uuid primary key, word text not null check (word <> ''));
        alter table longtake.fresh add constraint short check (length(word) < 9);
        create unique index fresh_words on longtake.fresh (word);
        alter table longtake.runs add column owner text, add column tries integer not null default 0;
        alter table longtake.runs alter column project drop not null;
        create index runs_by_owner on longtake.runs (owner);
    """

    assert after_ground([*MIGRATIONS, ("9999_planted", sql)]) == []


# --- the statements of earlier releases -------------------------------------------------------------------------------


def statements_of(path: Path) -> dict[str, str]:
    """The named statements that a release ran, those apart that are several in one."""
    parts = re.split(r"^-- name: ([a-z0-9_]+)$", path.read_text(), flags=re.MULTILINE)
    named = {name: body.strip().rstrip(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}
    return {name: body for name, body in named.items() if not re.search(r";\s*$", body, re.MULTILINE)}


async def refused(connection: asyncpg.Connection, statements: dict[str, str]) -> dict[str, str]:
    """Those that Postgres cannot prepare on this schema, with its reason."""
    found = {}
    for name, sql in statements.items():
        try:
            await connection.prepare(sql)
        except asyncpg.PostgresError as error:
            found[name] = str(error)
    return found


@pytest.mark.parametrize("path", sorted(STATEMENTS.glob("*.sql")), ids=lambda path: path.stem)
async def test_every_statement_of_an_earlier_release_is_valid_on_the_schema_of_today(
    database: Database, path: Path
) -> None:
    connection = await database.connect()
    statements = statements_of(path)
    assert len(statements) > 100

    assert await refused(connection, statements) == {}

    await connection.execute("alter table longtake.timers drop column due_at cascade")
    lost = await refused(connection, statements)
    assert lost
    assert all("due_at" in reason for reason in lost.values())
