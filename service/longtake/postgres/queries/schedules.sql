-- name: clock_read
-- The authority's time.
select clock_timestamp();

-- name: schedule_insert
-- Keep a schedule unless its id is taken. $1 tenant  $2 id  $3 actor  $4 expression  $5 zone  $6 template  $7 overlap
-- $8 catch-up  $9 catch-up seconds  $10 start  $11 end  $12 next
insert into longtake.schedules (tenant_id, id, actor, expression, zone, template, overlap, catch_up, catch_up_seconds,
    start_at, end_at, next_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
on conflict (tenant_id, id) do nothing
returning id;

-- name: schedule_find
-- One schedule with the states of its unsettled occurrences. $1 tenant  $2 id
select s.*, array(select o.state from longtake.occurrences o
    where o.tenant_id = s.tenant_id and o.schedule_id = s.id and o.settled_at is null order by o.instant) as unsettled
from longtake.schedules s where s.tenant_id = $1 and s.id = $2;

-- name: schedules_list
-- A tenant's schedules. $1 tenant  $2 limit
select s.*, array(select o.state from longtake.occurrences o
    where o.tenant_id = s.tenant_id and o.schedule_id = s.id and o.settled_at is null order by o.instant) as unsettled
from longtake.schedules s where s.tenant_id = $1 order by s.id limit $2;

-- name: schedules_due
-- Schedules whose next occurrence is due. $1 limit
select clock_timestamp() as now, s.*, array(select o.state from longtake.occurrences o
    where o.tenant_id = s.tenant_id and o.schedule_id = s.id and o.settled_at is null order by o.instant) as unsettled
from longtake.schedules s where s.paused_at is null and s.next_at <= clock_timestamp() order by s.next_at limit $1;

-- name: schedules_next_due
-- Seconds until the next occurrence, and whether one waits for another's end.
select extract(epoch from (select min(next_at) from longtake.schedules where paused_at is null and next_at is not null)
        - clock_timestamp())::float8 as seconds,
    exists (select from longtake.occurrences where settled_at is null and state = 'waiting') as some_wait;

-- name: schedule_pause
-- Pause or resume. $1 tenant  $2 id  $3 paused
update longtake.schedules set paused_at = case when $3 then coalesce(paused_at, clock_timestamp()) end
where tenant_id = $1 and id = $2
returning id;

-- name: schedule_delete
-- Forget a schedule; its occurrences go with it. $1 tenant  $2 id
delete from longtake.schedules where tenant_id = $1 and id = $2 returning id;

-- name: schedule_lay_down
-- Move a schedule on and write its occurrences, if it is still as it was read: one of many schedulers does so, and a
-- verdict is not written beside an occurrence that it did not know of. $1 tenant  $2 id  $3 revision  $4 next then
-- $5 next now  $6 problem  $7 instants  $8 states  $9 whether they stop others
with moved as (
    update longtake.schedules set next_at = $5, revision = revision + 1, problem = coalesce($6::json, problem),
        problem_at = case when $6::json is null then problem_at else clock_timestamp() end
    where tenant_id = $1 and id = $2 and revision = $3 and next_at = $4 and paused_at is null
    returning id
), laid as (
    insert into longtake.occurrences (tenant_id, schedule_id, instant, state, origin, stops_others, settled_at)
    select $1, $2, f.instant, f.state, 'due', f.stops, case when f.state = 'skipped' then clock_timestamp() end
    from unnest($7::timestamptz[], $8::text[], $9::boolean[]) as f(instant, state, stops), moved
    on conflict (tenant_id, schedule_id, instant) do nothing
)
select exists (select from moved);

-- name: backfill_lay_down
-- Write occurrences of the past; those that were skipped or refused get another chance, the others stand.
-- $1 tenant  $2 id  $3 instants  $4 states
with moved as (
    update longtake.schedules set revision = revision + 1 where tenant_id = $1 and id = $2 returning id
), laid as (
    insert into longtake.occurrences as o (tenant_id, schedule_id, instant, state, origin)
    select $1, $2, f.instant, f.state, 'backfill'
    from unnest($3::timestamptz[], $4::text[]) as f(instant, state), moved
    on conflict (tenant_id, schedule_id, instant) do update
        set state = excluded.state, origin = 'backfill', stops_others = false, problem = null, settled_at = null
        where o.state in ('skipped', 'refused')
    returning o.instant
)
select count(*) from laid;

-- name: occurrences_end
-- Settle running occurrences whose runs have ended, or will never be. $1 limit
update longtake.occurrences o set state = 'ended', settled_at = clock_timestamp()
from (
    select w.tenant_id, w.schedule_id, w.instant
    from longtake.occurrences w
    join longtake.schedules s on s.tenant_id = w.tenant_id and s.id = w.schedule_id
    left join longtake.runs r on r.run_id = w.run_id
    left join longtake.commands c on c.tenant_id = s.tenant_id and c.actor = s.actor and c.client_command_id =
        'schedule-' || s.id || '-' || to_char(w.instant at time zone 'UTC', 'YYYYMMDD"T"HH24MISS"Z"')
    where w.settled_at is null and w.state = 'running'
        and (r.ended_at is not null
            or (r.run_id is null and c.status in ('rejected', 'failed', 'cancelled', 'superseded')))
    order by w.tenant_id, w.schedule_id, w.instant limit $1 for update of w skip locked
) e
where o.tenant_id = e.tenant_id and o.schedule_id = e.schedule_id and o.instant = e.instant;

-- name: occurrences_release
-- Let the first waiting occurrence of each schedule that has none at work start. Where the schedule was changed by
-- another at the same moment nothing is done: the next look decides.
with first as (
    select distinct on (w.tenant_id, w.schedule_id) w.tenant_id, w.schedule_id, w.instant, s.revision
    from longtake.occurrences w
    join longtake.schedules s on s.tenant_id = w.tenant_id and s.id = w.schedule_id
    where w.settled_at is null and w.state = 'waiting' and (s.paused_at is null or w.origin = 'backfill')
        and not exists (select from longtake.occurrences a
            where a.tenant_id = w.tenant_id and a.schedule_id = w.schedule_id and a.settled_at is null
                and a.state in ('starting', 'running'))
    order by w.tenant_id, w.schedule_id, w.instant
), moved as (
    update longtake.schedules s set revision = s.revision + 1
    from (
        select f.instant, s.tenant_id, s.id, f.revision from first f
        join longtake.schedules s on s.tenant_id = f.tenant_id and s.id = f.schedule_id
        order by s.tenant_id, s.id for update of s
    ) f
    where s.tenant_id = f.tenant_id and s.id = f.id and s.revision = f.revision
    returning s.tenant_id, s.id, f.instant
)
update longtake.occurrences o set state = 'starting'
from moved m
where o.tenant_id = m.tenant_id and o.schedule_id = m.id and o.instant = m.instant and o.state = 'waiting';

-- name: occurrences_starting
-- Occurrences to admit, with their schedules. $1 limit
select o.instant, o.stops_others, s.*
from longtake.occurrences o join longtake.schedules s on s.tenant_id = o.tenant_id and s.id = o.schedule_id
where o.settled_at is null and o.state = 'starting' order by o.instant limit $1;

-- name: occurrences_running
-- Occurrences of a schedule whose runs have not ended. $1 tenant  $2 id
select o.instant, o.run_id, r.revision
from longtake.occurrences o join longtake.runs r on r.run_id = o.run_id
where o.tenant_id = $1 and o.schedule_id = $2 and o.settled_at is null and o.state = 'running' and r.ended_at is null
order by o.instant;

-- name: occurrence_settle
-- What admission made of a starting occurrence. $1 tenant  $2 id  $3 instant  $4 run id  $5 problem
with settled as (
    update longtake.occurrences set state = case when $5::json is null then 'running' else 'refused' end, run_id = $4,
        problem = $5, settled_at = case when $5::json is null then null else clock_timestamp() end
    where tenant_id = $1 and schedule_id = $2 and instant = $3 and settled_at is null and state = 'starting'
    returning instant
)
update longtake.schedules set problem = $5, problem_at = clock_timestamp()
where tenant_id = $1 and id = $2 and $5::json is not null and exists (select from settled);

-- name: occurrences_list
-- The latest occurrences of a schedule. $1 tenant  $2 id  $3 limit
select instant, state, origin, run_id, problem from longtake.occurrences
where tenant_id = $1 and schedule_id = $2 order by instant desc limit $3;
