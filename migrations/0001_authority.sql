-- The authority: commands, events, projections
-- depends:

-- migrate: apply

-- The authority: commands, events, and the projections written with them (design.md 9, P2, P17, P22).
create schema if not exists longtake;

-- One row: which environment this store is, and its epochs. store_epoch is raised after a restore (P2).
create table longtake.store (
    only_row boolean primary key default true check (only_row),
    environment text not null default 'default',
    store_epoch integer not null default 1 check (store_epoch between 1 and 32767),
    transport_epoch integer not null default 1 check (transport_epoch >= 1),
    application text,
    deployed_at timestamptz
);
insert into longtake.store default values;

-- Commands: deduplicated by what the client meant, answered by their stored receipt (P23).
create table longtake.commands (
    tenant_id text not null,
    actor text not null,
    client_command_id text not null check (client_command_id ~ '^[A-Za-z0-9_-]{1,64}$'),
    kind text not null,
    project text not null,
    intent_hash text not null,
    body json not null,
    channel text not null check (channel in ('http', 'nats', 'local')),
    status text not null,
    run_id uuid,
    receipt json,
    traceparent text,
    accepted_at timestamptz not null default clock_timestamp(),
    copied_at timestamptz,
    tx_id xid8 not null default pg_current_xact_id(),
    primary key (tenant_id, actor, client_command_id)
);
-- The relay copies HTTP commands to LT_COMMAND, so that a restore can replay them (P2).
create index commands_uncopied on longtake.commands (accepted_at) where copied_at is null;

-- Plans, inputs and policies by fingerprint; events hold digests only (P17).
create table longtake.plans (
    tenant_id text not null,
    fingerprint text not null,
    workflow text not null,
    workflow_version integer not null,
    plan json not null,
    input json not null,
    policy json not null,
    primary key (tenant_id, fingerprint)
);

-- Runs: the inline projection of a run, its fence (revision) and its chain head. Kept under 2 KB (P17).
create table longtake.runs (
    run_id uuid primary key,
    tenant_id text not null,
    project text not null,
    workflow text not null,
    workflow_version integer not null,
    actor text not null,
    account text not null,
    command_id text not null,
    plan_fingerprint text not null,
    plan_checked text not null,
    store_epoch integer not null,
    revision integer not null default 0 check (revision >= 0),
    head_hash bytea not null,
    status text not null default 'accepted',
    phase text,
    label text not null default '',
    quoted bigint not null default 0 check (quoted >= 0),
    cap bigint not null default 0 check (cap >= 0),
    charged bigint not null default 0,
    refunded bigint not null default 0,
    blockers text[] not null default '{}',
    poisoned boolean not null default false,
    poll_at timestamptz,
    summary json,
    accepted_at timestamptz not null,
    updated_at timestamptz not null,
    ended_at timestamptz,
    constraint charged_covers_refunded check (charged >= refunded and refunded >= 0),
    constraint net_within_cap check (charged - refunded <= cap)
) with (fillfactor = 70);
create index runs_listed on longtake.runs (tenant_id, accepted_at desc, run_id);
create index runs_active on longtake.runs (run_id) where ended_at is null;

-- Events: the only truth. (run_id, seq) is the fence; json keeps the exact bytes that the hash covers (P22).
create table longtake.events (
    run_id uuid not null,
    seq integer not null check (seq >= 1),
    tenant_id text not null,
    id uuid not null,
    type text not null,
    version smallint not null,
    data json not null,
    meta json not null,
    tx_id xid8 not null default pg_current_xact_id(),
    position bigint generated always as identity,
    store_epoch integer not null,
    recorded_at timestamptz not null,
    hash bytea not null check (length(hash) = 32),
    primary key (run_id, seq)
);

-- Steps: the inline projection of each step that was ever scheduled or settled; the others are in the plan.
create table longtake.steps (
    run_id uuid not null,
    key text not null,
    tenant_id text not null,
    ordinal integer not null,
    attempt integer not null,
    max_attempts integer not null,
    status text not null,
    phase text,
    label text not null,
    external_ref text,
    error_class text,
    error_message text,
    provider_cost bigint,
    artifacts text[] not null default '{}',
    started_at timestamptz,
    updated_seq integer not null,
    primary key (run_id, key)
) with (fillfactor = 70);

-- Scopes: what an active run owns in its project (P10: freed when the run is being cancelled or has ended).
create table longtake.scopes (
    tenant_id text not null,
    project text not null,
    scope text not null,
    run_id uuid not null,
    primary key (tenant_id, project, scope)
);
create index scopes_by_run on longtake.scopes (run_id);

-- migrate: rollback
-- Migrations go forward only.
