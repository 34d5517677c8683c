-- name: migration_lock
-- Wait until no other migrator works on this database. $1 key.
select pg_advisory_lock($1::bigint);

-- name: migration_unlock
-- Let the next migrator in. $1 key.
select pg_advisory_unlock($1::bigint);

-- name: schema_file_create
-- Make the table of applied files, before the first of them.
create schema if not exists longtake;
create table if not exists longtake.schema_file (
    name text primary key, sha256 text not null, applied_at timestamptz not null default clock_timestamp()
);

-- name: schema_file_list
-- Every applied file with its checksum.
select name, sha256 from longtake.schema_file order by name;

-- name: schema_file_insert
-- Remember an applied file. $1 name, $2 sha256.
insert into longtake.schema_file (name, sha256) values ($1, $2) on conflict (name) do nothing;

-- name: store_read
-- The store's identity and epochs.
select environment, store_epoch, transport_epoch, application, restoring from longtake.store;

-- name: store_there
-- Whether this database has a longtake in it.
select to_regclass('longtake.store') is not null;

-- name: environment_read
-- To which environment this store belongs; older schemas can be asked too.
select environment from longtake.store;

-- name: environment_name
-- Name a store that has no name of its own yet. $1 name
update longtake.store set environment = $1 where environment = 'default';

-- name: store_in_use
-- Whether anybody has asked this store for anything.
select exists (select from longtake.commands);

-- name: application_deploy
-- Say which application is deployed now; returns the digest that stood before. $1 digest.
update longtake.store set application = $1, deployed_at = clock_timestamp()
where application is distinct from $1
returning application;

-- name: transport_epoch_raise
-- The streams are not the ones we published into: every pointer of the old epoch may be lost (F10).
update longtake.store set transport_epoch = transport_epoch + 1 returning transport_epoch;

-- name: transport_identity_list
-- Streams as last seen.
select stream, created from longtake.transport_identity;

-- name: transport_identity_save
-- Remember streams. $1 names, $2 creation times.
insert into longtake.transport_identity (stream, created)
select * from unnest($1::text[], $2::text[])
on conflict (stream) do update set created = excluded.created, seen_at = clock_timestamp();

-- name: engine_role_usable
-- Whether we may work under the engine's role. $1 role
select exists (select from pg_roles where rolname = $1) and pg_has_role(current_user, $1, 'MEMBER');

-- name: engine_role_take
-- From here on events can be inserted and read only.
set role longtake_engine;
