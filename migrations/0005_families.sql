-- Families of runs: facts from run to run, starts that a run asks for, and the queue for scopes
-- depends: 0004_append_only

-- migrate: apply

-- Undoing a step is work like doing it (H90).
alter table longtake.effects drop constraint effects_kind_check;
alter table longtake.effects add constraint effects_kind_check
    check (kind in ('execute', 'poll', 'reconcile', 'cancel', 'compensate'));

-- Errands: what a decision asks of admission, which alone takes a project lock (P5). `start_child` starts run_id;
-- `scopes_freed` and `start_due` say that queued runs of run_id's project may begin now.
create table longtake.errands (
    id uuid primary key,
    tenant_id text not null,
    run_id uuid not null,
    kind text not null check (kind in ('start_child', 'scopes_freed', 'start_due')),
    payload json not null,
    traceparent text,
    created_at timestamptz not null default clock_timestamp(),
    settled_at timestamptz,
    reason text
);
create index errands_open on longtake.errands (created_at) where settled_at is null;

-- The queue: accepted runs that wait for scopes, for runs they take the place of, or for their time. A row is in
-- line from start_at on, at the place that it got when it was accepted; it is gone when the run begins or ends.
create table longtake.scope_queue (
    run_id uuid primary key,
    tenant_id text not null,
    project text not null,
    scopes text[] not null,
    waits_for uuid[] not null default '{}',
    supersedes boolean not null default false,
    overtakes boolean not null default false,
    start_at timestamptz,
    place bigint generated always as identity
);
-- What a process can work on at once, by its pools: the relay keeps a few times that published (P12).
alter table longtake.incarnations add column slots integer[] not null default '{}';

create index scope_queue_by_project on longtake.scope_queue (tenant_id, project, place);

do $$
begin
    if exists (select from pg_roles where rolname = 'longtake_engine') then
        grant select, insert, update, delete on longtake.errands, longtake.scope_queue to longtake_engine;
        grant usage on all sequences in schema longtake to longtake_engine;
    end if;
end $$;

-- migrate: rollback
-- Migrations go forward only.
