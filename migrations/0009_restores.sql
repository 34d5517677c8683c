-- Restores: every epoch there was, and what was done about the interval that a restore has lost
-- depends: 0007_money_modes

-- migrate: apply

-- One row a restore. A row without an end means that the store waits for `longtake doctor restore`: nobody may work.
create table longtake.restores (
    epoch integer primary key check (epoch > 1),
    epoch_before integer not null,
    restored_to timestamptz,
    begun_at timestamptz not null default clock_timestamp(),
    finished_at timestamptz,
    -- Until then a run may begin under an id that it has had before: a client sends its lost command again.
    ask_until timestamptz not null,
    report json
);

-- The last restore, on the one row that every claim reads anyway.
-- How often a process announced itself: a store that counts less than it has confirmed was restored under the process.
alter table longtake.incarnations add column beats integer not null default 1;

alter table longtake.store add column restoring boolean not null default false;
alter table longtake.store add column restored_at timestamptz;
alter table longtake.store add column ask_until timestamptz;

do $$
begin
    if exists (select from pg_roles where rolname = 'longtake_engine') then
        grant select on longtake.restores to longtake_engine;
    end if;
end $$;

-- migrate: rollback
-- Migrations go forward only.
