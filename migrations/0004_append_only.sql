-- Append-only by grant and by trigger; the engine's role
-- depends: 0003_money

-- migrate: apply

-- Events, claims, ledger entries and late receipts are inserted and read, never changed: by grant for the engine's role,
-- by trigger for everybody, the owner included (P13, style: the store).
create function longtake.refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'longtake.% is append-only: % is refused', tg_table_name, lower(tg_op)
        using errcode = 'integrity_constraint_violation';
end $$;

create trigger events_append_only before update or delete on longtake.events
    for each row execute function longtake.refuse_change();
create trigger events_no_truncate before truncate on longtake.events
    for each statement execute function longtake.refuse_change();
create trigger ledger_append_only before update or delete on longtake.ledger_entries
    for each row execute function longtake.refuse_change();
create trigger ledger_no_truncate before truncate on longtake.ledger_entries
    for each statement execute function longtake.refuse_change();
create trigger claims_append_only before update on longtake.effect_claims
    for each row execute function longtake.refuse_change();
create trigger late_receipts_append_only before update on longtake.late_receipts
    for each row execute function longtake.refuse_change();

-- The role that services work under. On a server of one's own the migrating user may lack the right to make roles;
-- then services run as that user and the triggers stand alone.
do $$
begin
    if not exists (select from pg_roles where rolname = 'longtake_engine') then
        create role longtake_engine nologin;
    end if;
    execute format('grant longtake_engine to %I', current_user);
exception
    when insufficient_privilege then
        raise notice 'role longtake_engine was not made: no right to create roles';
    when duplicate_object or unique_violation then
        null;  -- another database of this cluster is being migrated at the same moment
end $$;

do $$
begin
    if exists (select from pg_roles where rolname = 'longtake_engine') then
        grant usage on schema longtake to longtake_engine;
        grant select, insert, update, delete on all tables in schema longtake to longtake_engine;
        grant usage on all sequences in schema longtake to longtake_engine;
        revoke update, delete on longtake.events, longtake.ledger_entries, longtake.effect_claims,
            longtake.late_receipts from longtake_engine;
    end if;
end $$;

-- migrate: rollback
-- Migrations go forward only.
