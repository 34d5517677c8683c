-- name: others_connected
-- Who else is in this database.
select pid, coalesce(nullif(application_name, ''), 'unnamed') as name, coalesce(usename, '') as as_user
from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend' order by pid;

-- name: restore_facts
-- What the restored store knows of itself: its epochs, its time line, and the last moment that it remembers.
select s.environment, s.store_epoch, s.restoring, (select timeline_id from pg_control_checkpoint()) as timeline,
    greatest((select max(accepted_at) from longtake.commands), (select max(recorded_at) from longtake.events),
             (select max(started_at) from longtake.incarnations)) as remembered_until
from longtake.store s;

-- name: restore_begin
-- Raise both epochs, declare every process dead, end what they hold, and let nobody work until the end of the restore.
-- A lease that had opened its call asks the reducer, as one that ran out does.
-- $1 new epoch  $2 restored to (null: an empty store)  $3 hours in which clients may send lost commands again
with raised as (
    update longtake.store set store_epoch = $1, transport_epoch = transport_epoch + 1, restoring = true,
        restored_at = clock_timestamp(), ask_until = clock_timestamp() + make_interval(hours => $3)
    where store_epoch < $1
    returning transport_epoch, ask_until
), noted as (
    insert into longtake.restores (epoch, epoch_before, restored_to, ask_until)
    select $1, s.store_epoch, $2, r.ask_until from raised r, longtake.store s
), buried as (
    update longtake.incarnations set alive_until = '-infinity' where exists (select from raised)
    returning 1
)
select transport_epoch, (select count(*) from buried) as buried from raised;

-- name: pointers_unknown
-- Which of these pointers name nothing here. $1 effects  $2 runs  $3 inbox rows
select 'effect' as what, u.id from unnest($1::uuid[]) as u (id)
where not exists (select from longtake.effects e where e.id = u.id)
union all
select 'run', u.id from unnest($2::uuid[]) as u (id) where not exists (select from longtake.runs r where r.run_id = u.id)
union all
select 'callback', u.id from unnest($3::uuid[]) as u (id) where not exists (select from longtake.inbox i where i.id = u.id);

-- name: run_revision
-- Where a run stands. $1 tenant  $2 run id
select revision from longtake.runs where tenant_id = $1 and run_id = $2;

-- name: calls_in_doubt
-- Work that is open here and whose call the outside may know already: it is asked about first.
select count(*) from longtake.effects where closed_at is null and receipt is null and kind = 'execute';

-- name: restore_finish
-- Let processes work again. Runs from before this moment may have had a lost past. $1 epoch  $2 report
with finished as (
    update longtake.restores set finished_at = clock_timestamp(), report = $2 where epoch = $1 returning finished_at
)
update longtake.store s set restoring = false, restored_at = f.finished_at from finished f where s.store_epoch = $1;
