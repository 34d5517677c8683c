"""`longtake keys`: who may call. The text of a key is shown once, when it is made."""

from typing import Annotated

from cyclopts import App, Parameter

from longtake.cli.authority import authority
from longtake.cli.output import Json, print_json, print_line, print_table
from longtake.cli.place import Config, DataDir, settings_of
from longtake.cli.process import run
from longtake.contracts.ids import NAME_PATTERN, is_name
from longtake.errors import ConfigurationError
from longtake.postgres.keys import NewKey, PostgresKeyStore

app = App(name="keys", help="Make, list and revoke API keys.")


@app.command
def create(
    *,
    tenant: Annotated[str, Parameter(help="Whose runs the key sees")],
    actor: Annotated[str, Parameter(help="Who is named in what the key does")],
    role: Annotated[tuple[str, ...], Parameter(help="Roles; without one the key may only read")] = (
        "producer",
    ),
    fund: Annotated[int, Parameter(help="Credits to put on the tenant's account main")] = 0,
    data_dir: DataDir = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Make a key and print it. It cannot be shown again."""
    for name, value in (("--tenant", tenant), ("--actor", actor)):
        if not is_name(value):
            raise ConfigurationError(f"{name} is {value!r}; use {NAME_PATTERN}")
    if fund < 0:
        raise ConfigurationError(f"--fund is {fund}; use 0 or more")

    async def work() -> NewKey:
        async with authority(settings_of(config=config, data_dir=data_dir)) as pool:
            store = PostgresKeyStore(pool)
            if fund:
                await store.fund(tenant=tenant, account="main", credits=fund)
            return await store.create(tenant=tenant, actor=actor, roles=role)

    made = run(work())
    if json:
        print_json({"key_id": made.key_id, "key": made.text, "tenant": tenant, "actor": actor})
    else:
        print_line(made.text)


@app.command(name="list")
def list_(*, data_dir: DataDir = None, config: Config = None, json: Json = False) -> None:
    """Every key, without secrets."""

    async def work() -> list[dict[str, object]]:
        async with authority(settings_of(config=config, data_dir=data_dir)) as pool:
            return await PostgresKeyStore(pool).list()

    found = run(work())
    if json:
        print_json(found)
        return
    print_table(
        ("key", "tenant", "actor", "roles", "created", "revoked"),
        (
            (
                row["key_id"],
                row["tenant_id"],
                row["actor"],
                ",".join(map(str, row["roles"])) if isinstance(row["roles"], list) else row["roles"],
                row["created_at"],
                row["revoked_at"] or "",
            )
            for row in found
        ),
    )


@app.command
def revoke(key_id: str, *, data_dir: DataDir = None, config: Config = None, json: Json = False) -> None:
    """End a key by its id; servers forget it within seconds."""

    async def work() -> bool:
        async with authority(settings_of(config=config, data_dir=data_dir)) as pool:
            return await PostgresKeyStore(pool).revoke(key_id)

    if not run(work()):
        raise ConfigurationError(f"there is no live key {key_id!r}; `longtake keys list` names them")
    if json:
        print_json({"revoked": key_id})
    else:
        print_line(f"revoked {key_id}")
