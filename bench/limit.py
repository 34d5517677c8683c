"""The limit: what this machine does for one step if nothing had to be decided.

A bare loop pulls messages, writes the rows of as many steps in one statement, publishes one message for every 64
steps and acks. The rows are those a step of the engine writes: two events, a run update, two step rows, an effect
inserted, claimed, reported and closed (three updates), and a claim.
"""

import asyncio
import json
import os
import time
import uuid

import asyncpg
import nats
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StreamConfig

BATCH = 256
PACK = 64

_TABLES = """
create schema if not exists bare;
create table bare.events (run_id uuid, seq int, data json, meta json, hash bytea, at timestamptz default clock_timestamp(),
    tx xid8 default pg_current_xact_id(), position bigint generated always as identity, primary key (run_id, seq));
create table bare.runs (run_id uuid primary key, revision int, summary json, head bytea) with (fillfactor = 70);
create table bare.steps (run_id uuid, key text, status text, seq int, primary key (run_id, key)) with (fillfactor = 70);
create table bare.effects (id uuid primary key, run_id uuid, state text, input json, receipt json, fence bigint default 0,
    lease_until timestamptz, closed_at timestamptz) with (fillfactor = 70);
create index on bare.effects (run_id) where closed_at is null;
create table bare.claims (effect_id uuid, fence bigint, owner text, primary key (effect_id, fence));
"""

_STEP = """
with w as (select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::int[]) as u (run_id, old, new, seq)),
e as (insert into bare.events (run_id, seq, data, meta, hash)
      select run_id, seq + i, $5::json, $6::json, $7 from w, generate_series(0, 1) as i),
r as (update bare.runs set revision = w.seq + 1, summary = $5::json, head = $7 from w where runs.run_id = w.run_id),
s as (insert into bare.steps select run_id, 'step:' || i, 'queued', seq from w, generate_series(0, 1) as i
      on conflict (run_id, key) do update set status = excluded.status, seq = excluded.seq),
n as (insert into bare.effects (id, run_id, state, input) select new, run_id, 'queued', $5::json from w),
c as (insert into bare.claims select old, seq, 'bench' from w)
update bare.effects set state = 'closed', receipt = $5::json, closed_at = clock_timestamp() from w where id = w.old
"""
_CLAIM = "update bare.effects set state = 'leased', fence = fence + 1, lease_until = clock_timestamp() where id = any($1::uuid[])"
_REPORT = "update bare.effects set state = 'reported', receipt = $2::json where id = any($1::uuid[])"


async def measure_limit(servers, *, seconds: float) -> float:
    """Steps a second of the bare loop over the same servers."""
    connection = await asyncpg.connect(
        **servers.postgres_connect_kwargs(),
        server_settings={"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"},
    )
    await connection.execute(_TABLES)
    client = await nats.connect(**servers.nats_connect_kwargs())
    stream = client.jetstream()
    await stream.add_stream(
        StreamConfig(name="BARE", subjects=["bare"], retention=RetentionPolicy.WORK_QUEUE)
    )
    pull = await stream.pull_subscribe(
        "bare", "bare", config=ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, max_ack_pending=1024)
    )
    runs = [uuid.uuid4() for _ in range(BATCH)]
    effects = [uuid.uuid4() for _ in runs]
    text = json.dumps({"step": "noop:1", "attempt": 1, "result": {}, "padding": "x" * 400})
    await connection.executemany(
        "insert into bare.runs values ($1, 1, $2, '')", [(run, text) for run in runs]
    )
    await connection.executemany(
        "insert into bare.effects (id, run_id, state, input) values ($1, $2, 'queued', $3)",
        [(effect, run, text) for effect, run in zip(effects, runs, strict=True)],
    )
    body = json.dumps({"effects": [str(effect) for effect in effects[:PACK]]}).encode()
    for _ in range(BATCH // PACK):
        await stream.publish("bare", body)
    done, seq, began = 0, 1, time.perf_counter()
    while (elapsed := time.perf_counter() - began) < seconds:
        messages = await pull.fetch(BATCH // PACK, timeout=5)
        count = PACK * len(messages)
        fresh = [uuid.UUID(bytes=os.urandom(16)) for _ in range(count)]
        old = effects[:count]
        await connection.execute(_CLAIM, old)
        await connection.execute(_REPORT, old, text)
        await connection.execute(_STEP, runs[:count], old, fresh, [seq] * count, text, text, bytes(32))
        effects[:count] = fresh
        await asyncio.gather(*(stream.publish("bare", body) for _ in messages))
        for message in messages:
            await message.ack()
        done += count
        seq += 2
    await client.close()
    await connection.execute("drop schema bare cascade")
    await connection.close()
    return done / elapsed
