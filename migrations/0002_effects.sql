-- Effects, leases, inbox, artifacts and what the transport needs
-- depends: 0001_authority

-- migrate: apply

-- Effects: outbox and lease in one row (P16). One partial index; no index or predicate names a column that changes
-- while the effect is open, so every update of an open effect is a HOT update.
create table longtake.effects (
    id uuid primary key,
    tenant_id text not null,
    run_id uuid not null,
    step text not null,
    attempt integer not null,
    kind text not null check (kind in ('execute', 'poll', 'reconcile', 'cancel')),
    ordinal integer not null,
    activity text not null,
    pool text not null,
    priority smallint not null default 0,
    input json not null,
    traceparent text,
    created_at timestamptz not null default clock_timestamp(),
    not_before timestamptz not null,
    deadline timestamptz,
    state text not null default 'queued' check (state in ('queued', 'leased', 'expired', 'reported', 'closed')),
    generation integer not null default 1,
    published_at timestamptz,
    incarnation uuid,
    claim_id uuid,
    lease_owner text,
    lease_until timestamptz,
    fence bigint not null default 0,
    leases integer not null default 0,
    claimed_at timestamptz,
    call_opened_at timestamptz,
    heartbeat_at timestamptz,
    progress smallint,
    external_ref text,
    receipt json,
    reporter text,
    report_fence bigint,
    report_traceparent text,
    reported_at timestamptz,
    disposition text,
    closed_at timestamptz,
    constraint closed_has_disposition check ((closed_at is null) = (disposition is null)),
    constraint closed_is_closed check ((closed_at is null) = (state <> 'closed')),
    constraint reported_has_receipt check (state <> 'reported' or receipt is not null)
) with (fillfactor = 70);
create index effects_open on longtake.effects (run_id) where closed_at is null;

-- One immutable row per claim (G27). Fences of one effect strictly increase.
create table longtake.effect_claims (
    effect_id uuid not null,
    fence bigint not null,
    tenant_id text not null,
    run_id uuid not null,
    step text not null,
    attempt integer not null,
    kind text not null,
    owner text not null,
    claim_id uuid not null,
    claimed_at timestamptz not null,
    primary key (effect_id, fence)
);

-- Receipts that came when their effect already had one: kept, priced, without effect (P1).
create table longtake.late_receipts (
    effect_id uuid not null,
    fence bigint not null,
    tenant_id text not null,
    owner text not null,
    receipt json not null,
    recorded_at timestamptz not null default clock_timestamp(),
    primary key (effect_id, fence)
);

-- Timers of runs: deadlines that no effect carries (P24).
create table longtake.timers (
    run_id uuid not null,
    key text not null,
    tenant_id text not null,
    due_at timestamptz not null,
    primary key (run_id, key)
);
create index timers_due on longtake.timers (due_at);

-- Signals: durable facts for a run from inside the service (P5).
create table longtake.signals (
    id uuid primary key,
    tenant_id text not null,
    run_id uuid not null,
    kind text not null,
    payload json not null,
    created_at timestamptz not null default clock_timestamp(),
    settled_at timestamptz,
    reason text
);
create index signals_open on longtake.signals (run_id) where settled_at is null;

-- The inbox: authentic, redacted provider callbacks (H38). A row is never deleted; copies meet on its key (P4).
create table longtake.inbox (
    id uuid primary key,
    tenant_id text not null,
    provider text not null,
    dedupe_key text not null,
    run_id uuid not null,
    step text not null,
    attempt integer not null,
    external_ref text,
    callback_type text not null,
    payload json not null,
    status text not null default 'pending' check (status in ('pending', 'dispatched', 'ignored', 'failed')),
    reason text,
    copies integer not null default 1,
    traceparent text,
    received_at timestamptz not null default clock_timestamp(),
    settled_at timestamptz,
    unique (tenant_id, provider, dedupe_key)
);
create index inbox_open on longtake.inbox (run_id) where settled_at is null;

-- Artifacts: identity is object key and digest; a URL is made at the edge (H88). One publication a step and name.
create table longtake.artifacts (
    id uuid primary key,
    tenant_id text not null,
    run_id uuid not null,
    step text not null,
    attempt integer not null,
    name text not null,
    kind text not null,
    object_key text not null,
    sha256 text not null,
    bytes bigint not null check (bytes > 0),
    content_type text not null,
    published_at timestamptz not null,
    unique (run_id, step, name)
);

-- Dead letters: poison, unknown pointers, whatever no redelivery will cure, with the reason.
create table longtake.dead_letters (
    id uuid primary key default gen_random_uuid(),
    tenant_id text,
    source text not null,
    subject text not null,
    reason text not null,
    body bytea not null,
    headers json not null default '{}',
    recorded_at timestamptz not null default clock_timestamp()
);

-- Processes: who publishes and works; a pointer of a dead incarnation is published again at once (P16).
create table longtake.incarnations (
    id uuid primary key,
    owner text not null unique,
    roles text[] not null,
    pools text[] not null default '{}',
    activities text[] not null default '{}',
    host text not null,
    pid integer not null,
    started_at timestamptz not null default clock_timestamp(),
    alive_until timestamptz not null
);

-- Streams as they were last seen: another creation time means that their messages are gone (F10).
create table longtake.transport_identity (
    stream text primary key,
    created text not null,
    seen_at timestamptz not null default clock_timestamp()
);

-- migrate: rollback
-- Migrations go forward only.
