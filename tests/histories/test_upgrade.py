"""An upgrade adds and takes nothing away: old code goes on working on the schema of today (F57; docs/upgrading.md)."""

import asyncio
import os
import re
import shutil
import sys
from pathlib import Path

import asyncpg
import pytest

from kit.expanding import narrowings
from kit.servers import Database
from longtake import resources
from longtake.errors import MigrationError
from longtake.postgres.migrator import check_schema, migrate

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


# --- and the other way round ------------------------------------------------------------------------------------------


async def longtake(database: Database, home: Path, *words: str) -> tuple[int | None, str]:
    """Run the command line over a database: exit code and what it said."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "longtake", *words),
        cwd=home,
        env={**os.environ, "LONGTAKE_POSTGRES_URL": database.dsn, "LONGTAKE_DATA_DIR": str(home)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode, said.decode()


@pytest.mark.timeout(60)
async def test_a_program_refuses_a_schema_that_is_older_until_it_is_migrated(
    bare_database: Database, tmp_path: Path
) -> None:
    directory, older = resources.directory("migrations"), tmp_path / "older"
    older.mkdir()
    for path in sorted(directory.glob("*.sql"))[:-1]:
        shutil.copy(path, older)
    connection = await bare_database.connect()
    with pytest.raises(MigrationError, match="no longtake in it yet"):
        await check_schema(connection, directory)
    await migrate(connection, older)
    newest = MIGRATIONS[-1][0]

    code, said = await longtake(bare_database, tmp_path, "serve", "--role", "sweeper", "--transport", "off")

    assert code not in (0, None)
    assert f"it lacks {newest}: run `longtake migrate` first" in said
    assert "Traceback" not in said
    assert await longtake(bare_database, tmp_path, "migrate") == (
        0,
        f"applied  {newest}\n{len(MIGRATIONS)} migrations stand\n",
    )
    await check_schema(connection, directory)


async def test_a_program_works_on_the_schema_of_a_later_release(database: Database) -> None:
    """Else no old process could be started beside new ones, and nobody could roll back."""
    connection = await database.connect()
    await connection.execute("insert into longtake.schema_file (name, sha256) values ('9999_later', 'x')")

    await check_schema(connection, resources.directory("migrations"))
