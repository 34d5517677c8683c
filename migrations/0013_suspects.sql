-- Messages that came again and again, and how many processes died with each in their hands
-- depends: 0007_money_modes

-- migrate: apply

-- Counted here and not by the broker, whose number also grows when a message is given back in good health (F16).
create table longtake.suspects (
    digest bytea primary key check (length(digest) = 32),
    holder uuid not null,
    deaths integer not null default 0 check (deaths >= 0),
    seen_at timestamptz not null
);

do $$
begin
    if exists (select from pg_roles where rolname = 'longtake_engine') then
        grant select, insert, update, delete on longtake.suspects to longtake_engine;
    end if;
end $$;

-- migrate: rollback
-- Migrations go forward only.
