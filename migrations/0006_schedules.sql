-- Schedules and their occurrences
-- depends: 0005_families

-- migrate: apply

-- Schedules: what an owner said, and when the next occurrence is due (P25, T61). revision is raised by whatever may let
-- another occurrence run, so that a verdict is never written on a state that is gone.
create table longtake.schedules (
    tenant_id text not null,
    id text not null check (id ~ '^[A-Za-z0-9_-]{1,32}$'),
    actor text not null,
    expression text not null,
    zone text not null,
    template json not null,
    overlap text not null check (overlap in ('skip', 'queue', 'cancel_running', 'allow')),
    catch_up text not null check (catch_up in ('none', 'last', 'all')),
    catch_up_seconds integer not null check (catch_up_seconds >= 0),
    start_at timestamptz,
    end_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    paused_at timestamptz,
    next_at timestamptz,
    revision integer not null default 1,
    problem json,
    problem_at timestamptz,
    primary key (tenant_id, id)
);
create index schedules_due on longtake.schedules (next_at) where paused_at is null and next_at is not null;

-- Occurrences: one row an instant, so that one verdict stands. Unsettled ones are few; the others are history.
create table longtake.occurrences (
    tenant_id text not null,
    schedule_id text not null,
    instant timestamptz not null,
    state text not null check (state in ('waiting', 'starting', 'running', 'ended', 'skipped', 'refused')),
    origin text not null check (origin in ('due', 'backfill')),
    stops_others boolean not null default false,
    run_id uuid,
    problem json,
    laid_down_at timestamptz not null default clock_timestamp(),
    settled_at timestamptz,
    primary key (tenant_id, schedule_id, instant),
    foreign key (tenant_id, schedule_id) references longtake.schedules on delete cascade,
    constraint settled_is_over check ((settled_at is null) = (state in ('waiting', 'starting', 'running'))),
    constraint running_has_a_run check (state not in ('running', 'ended') or run_id is not null)
);
create index occurrences_unsettled on longtake.occurrences (tenant_id, schedule_id, instant) where settled_at is null;

do $$
begin
    if exists (select from pg_roles where rolname = 'longtake_engine') then
        grant select, insert, update, delete on longtake.schedules, longtake.occurrences to longtake_engine;
    end if;
end $$;

-- migrate: rollback
-- Migrations go forward only.
