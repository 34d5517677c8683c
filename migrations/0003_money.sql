-- Accounts, holds, the ledger, keys
-- depends: 0002_effects

-- migrate: apply

-- Money: accounts, holds, and a double-entry ledger in whole credits (design.md 7, P8, P9).
create table longtake.accounts (
    tenant_id text not null,
    account text not null,
    balance bigint not null default 0 check (balance >= 0),
    held bigint not null default 0 check (held >= 0),
    primary key (tenant_id, account),
    constraint held_is_covered check (held <= balance)
);

create table longtake.holds (
    run_id uuid primary key,
    tenant_id text not null,
    account text not null,
    amount bigint not null check (amount >= 0),
    released_at timestamptz
);

create table longtake.ledger_entries (
    key text primary key,
    tenant_id text not null,
    run_id uuid not null,
    account text not null,
    kind text not null check (kind in ('charge', 'refund')),
    debit text not null,
    credit text not null,
    amount bigint not null check (amount > 0),
    step text,
    cycle integer,
    seq integer not null,
    recorded_at timestamptz not null,
    tx_id xid8 not null default pg_current_xact_id(),
    constraint sides_differ check (debit <> credit)
);
create index ledger_by_run on longtake.ledger_entries (run_id, seq);

-- Keys of the API: only a digest of the secret is kept.
create table longtake.api_keys (
    key_id text primary key,
    tenant_id text not null,
    actor text not null,
    roles text[] not null,
    secret_sha256 text not null,
    created_at timestamptz not null default clock_timestamp(),
    revoked_at timestamptz
);

-- migrate: rollback
-- Migrations go forward only.
