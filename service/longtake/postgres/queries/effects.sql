-- name: effects_claim
-- Lease the first n claimable of these effects to a worker, each under a higher fence; the rest go back to the relay
-- under a higher generation (P11). Asking again with the same claim id returns the same leases.
-- Nothing is executed of a run whose plan is not that of the deployed code, or was not compared with it yet (P15): its
-- effect stays where it is, and the relay says so again later. What is open outside may be asked about all the while.
-- A process of another store epoch gets nothing: the store was restored under it (P2). `asks` says whether the outside
-- may know this call from a past that a restore has lost: `lost` for runs from before it, `new` for those soon after.
-- $1 claim id  $2 effect ids  $3 attempts  $4 n  $5 owner  $6 lease seconds  $7 fence floor of this store epoch
with wanted as materialized (
    select e.id, row_number() over () as place
    from (
        select e.id from unnest($2::uuid[], $3::integer[]) as w (id, attempt)
        join longtake.effects e on e.id = w.id
        where e.attempt = w.attempt and e.state = 'queued' and e.not_before <= clock_timestamp() and e.closed_at is null
            and (select store_epoch from longtake.store) = $7::bigint >> 32
            and (e.kind <> 'execute' or exists (
                select from longtake.runs r, longtake.store s
                where r.run_id = e.run_id and r.plan_checked = coalesce(s.application, r.plan_checked)
                    and not 'plan_drift' = any(r.blockers)))
        order by e.id
        for update of e skip locked
    ) e
), taken as (
    update longtake.effects e set state = 'leased', claim_id = $1, lease_owner = $5,
        lease_until = clock_timestamp() + make_interval(secs => $6), fence = greatest(e.fence, $7) + 1,
        leases = e.leases + 1, claimed_at = clock_timestamp(), heartbeat_at = clock_timestamp()
    from wanted w where e.id = w.id and w.place <= $4
    returning e.*
), claims as (
    insert into longtake.effect_claims (effect_id, fence, tenant_id, run_id, step, attempt, kind, owner, claim_id,
        claimed_at)
    select id, fence, tenant_id, run_id, step, attempt, kind, $5, $1, claimed_at from taken
), put_back as (
    update longtake.effects e set generation = e.generation + 1, published_at = null
    from wanted w where e.id = w.id and w.place > $4
)
select c.id, c.tenant_id, c.run_id, c.step, c.attempt, c.kind, c.activity, c.pool, c.input, c.fence, c.traceparent,
    c.external_ref, c.call_opened_at is not null as call_opened_before,
    case when s.ask_until is null or r.accepted_at >= s.ask_until then 'no'
        when r.accepted_at < s.restored_at then 'lost' else 'new' end as asks
from (
    select * from taken
    union all
    select e.* from unnest($2::uuid[]) as w (id) join longtake.effects e on e.id = w.id
    where e.claim_id = $1 and e.state = 'leased'
) c join longtake.runs r on r.run_id = c.run_id cross join longtake.store s;

-- name: leases_renew
-- Renew leases that are still held; an id that does not come back is lost (P18).
-- One whose time is over and that nobody has ended yet is still held: after an outage of the authority the holder may
-- be first, and until then nobody else can have it.
-- $1 effect ids  $2 fences  $3 owner  $4 lease seconds of each  $5 progress (null: unchanged)
update longtake.effects e set lease_until = clock_timestamp() + make_interval(secs => w.seconds),
    heartbeat_at = clock_timestamp(), progress = coalesce(w.progress, e.progress)
from (
    select e.id, w.seconds, w.progress
    from unnest($1::uuid[], $2::bigint[], $4::integer[], $5::smallint[]) as w (id, fence, seconds, progress)
    join longtake.effects e on e.id = w.id
    where e.fence = w.fence and e.lease_owner = $3 and e.state = 'leased'
        and e.fence >> 32 = (select store_epoch from longtake.store)
    order by e.id
    for update of e
) w
where e.id = w.id
returning e.id;

-- name: call_open
-- Mark that the outside world is about to be called: a lease lost after this is an unknown outcome (P18). A lease from
-- before a restore opens nothing.
-- $1 effect id  $2 fence
update longtake.effects set call_opened_at = clock_timestamp()
where id = $1 and fence = $2 and state = 'leased' and lease_until > clock_timestamp()
    and fence >> 32 = (select store_epoch from longtake.store)
returning id;

-- name: receipts_store
-- Store receipts whatever their fence; the first one of an effect stands, a later one is kept apart (P1).
-- An effect that was closed without a receipt is opened again for the reducer to look at. Which one stands is read of the
-- locked row: to the statement's own snapshot a receipt that it has waited for is not there.
-- $1 effect ids (ascending)  $2 fences  $3 owners  $4 receipts  $5 traceparents
with w as (
    select * from unnest($1::uuid[], $2::bigint[], $3::text[], $4::json[], $5::text[])
        as u (id, fence, owner, receipt, traceparent)
), held as materialized (
    select e.id, e.receipt is null as free, e.report_fence, e.reporter, e.tenant_id
    from w join longtake.effects e on e.id = w.id
    order by e.id for update of e
), stored as (
    update longtake.effects e set receipt = w.receipt, reporter = w.owner, report_fence = w.fence,
        report_traceparent = w.traceparent, reported_at = clock_timestamp(), state = 'reported', closed_at = null,
        disposition = null
    from w join held h on h.id = w.id
    where e.id = w.id and h.free
    returning e.id, e.run_id
), late as (
    insert into longtake.late_receipts (effect_id, fence, tenant_id, owner, receipt)
    select w.id, w.fence, h.tenant_id, w.owner, w.receipt from w join held h on h.id = w.id
    where not h.free and not (h.report_fence = w.fence and h.reporter = w.owner)
    on conflict (effect_id, fence) do nothing
)
select id, run_id from stored;

-- name: effects_put_back
-- A poll found nothing, or the provider took nothing: wait again, quietly, on the same row (G41).
-- $1 effect ids (ascending)  $2 fences  $3 delay seconds  $4 progress
update longtake.effects e set state = 'queued', not_before = clock_timestamp() + make_interval(secs => w.delay),
    generation = e.generation + 1, published_at = null, lease_owner = null, lease_until = null, call_opened_at = null,
    leases = 0, progress = coalesce(w.progress, e.progress)
from (
    select e.id, w.delay, w.progress
    from unnest($1::uuid[], $2::bigint[], $3::double precision[], $4::smallint[]) as w (id, fence, delay, progress)
    join longtake.effects e on e.id = w.id
    where e.fence = w.fence and e.state = 'leased'
    order by e.id
    for update of e
) w
where e.id = w.id
returning e.id, e.not_before;

-- name: leases_release
-- A worker that stops gives back work it has not begun. $1 effect ids  $2 fences  $3 owner
update longtake.effects e set state = 'queued', generation = e.generation + 1, published_at = null,
    lease_owner = null, lease_until = null
from (
    select e.id from unnest($1::uuid[], $2::bigint[]) as w (id, fence) join longtake.effects e on e.id = w.id
    where e.fence = w.fence and e.lease_owner = $3 and e.state = 'leased' and e.call_opened_at is null
    order by e.id
    for update of e
) w
where e.id = w.id
returning e.id;

-- name: leases_expire
-- Leases that ended without a receipt. Before the call was opened the effect goes back to the queue; afterwards, or
-- after too many leases, the reducer is asked. Leases end only when the authority has been up for one lease (P18);
-- those of an owner that is proved dead end at once.
-- $1 largest number of leases  $2 seconds the authority must have been up  $3 whether this sweeper has been connected so long
with due as materialized (
    select e.id, e.call_opened_at is not null or e.leases >= $1 as asks
    from longtake.effects e
    where e.closed_at is null and e.state = 'leased'
        and ((e.lease_until <= clock_timestamp() and $3
              and pg_postmaster_start_time() <= clock_timestamp() - make_interval(secs => $2))
             or exists (select from longtake.incarnations i
                        where i.owner = e.lease_owner and i.alive_until = '-infinity'))
    order by e.id
    for update of e skip locked
)
update longtake.effects e set state = case when d.asks then 'expired' else 'queued' end,
    generation = e.generation + 1, published_at = null, lease_owner = null, lease_until = null
from due d where e.id = d.id
returning e.id, e.run_id, e.state, e.traceparent;

-- name: pointers_due
-- Effects whose pointer must be published now: due and never published, or published by a process that is dead, or
-- published so long ago in a stream that has since moved on (P12, P16). Marked before they are published.
-- What was never published goes by priority, then in turn by tenant, and no further than the window of its pool: a few
-- times the slots that living workers announce, less what stands there unclaimed. What another relay has published since
-- this one looked is its business (F51).
-- $1 limit  $2 incarnation  $3 grace seconds  $4 pools whose stream shows nothing older  $5 their oldest message (null: none)
-- $6 whether the transport epoch changed: then every pointer is lost  $7 smallest window  $8 window by slot
with windows as (
    select p.pool, greatest($7, $8 * coalesce(sum(p.slots), 0)) as size
    from longtake.incarnations i, unnest(i.pools, i.slots) as p (pool, slots)
    where i.alive_until > clock_timestamp() and 'worker' = any(i.roles)
    group by p.pool
), waiting as materialized (
    select e.id, e.tenant_id, e.pool, e.priority, e.published_at, e.published_at is null as fresh,
        e.published_at is not null
        and ($6
             or exists (select from longtake.incarnations i
                        where i.id = e.incarnation and i.alive_until < clock_timestamp())
             or (s.pool is not null
                 and e.published_at < clock_timestamp()
                     - make_interval(secs => $3 * power(2, least(e.generation - 1, 5)))
                 and (s.oldest is null or s.oldest > e.published_at + make_interval(secs => $3)))) as lost
    from longtake.effects e
    left join unnest($4::text[], $5::timestamptz[]) as s (pool, oldest) on s.pool = e.pool
    where e.closed_at is null and e.state = 'queued' and e.not_before <= clock_timestamp()
), standing as (
    select pool, count(*) as unclaimed from waiting where not fresh group by pool
), ranked as (
    select w.id, w.pool, w.priority, w.published_at, w.fresh,
        row_number() over (partition by w.pool, w.tenant_id order by w.priority desc, w.id) as turn
    from waiting w where w.fresh or w.lost
), placed as (
    select r.id, r.pool, r.priority, r.published_at, r.fresh, r.turn,
        row_number() over (partition by r.pool, r.fresh order by r.priority desc, r.turn, r.id) as place
    from ranked r
), chosen as materialized (
    select p.id, p.priority, p.published_at, p.turn
    from placed p left join windows w on w.pool = p.pool left join standing s on s.pool = p.pool
    where not p.fresh or p.place <= coalesce(w.size, $7) - coalesce(s.unclaimed, 0)
    order by p.priority desc, p.turn, p.id
    limit $1
), due as materialized (
    select e.id from chosen c join longtake.effects e on e.id = c.id
    where e.closed_at is null and e.state = 'queued' and e.published_at is not distinct from c.published_at
    order by e.id
    for update of e skip locked
), marked as (
    update longtake.effects e set
        generation = e.generation + case when e.published_at is null then 0 else 1 end,
        published_at = clock_timestamp(), incarnation = $2
    from due d where e.id = d.id
    returning e.id, e.attempt, e.generation, e.pool, e.traceparent
)
select m.id, m.attempt, m.generation, m.pool, m.traceparent
from marked m join chosen c on c.id = m.id order by c.priority desc, c.turn, c.id;

-- name: windows_read
-- How many pointers each pool may have published more (P12). $1 smallest window  $2 window by slot
with windows as (
    select p.pool, greatest($1, $2 * coalesce(sum(p.slots), 0)) as size
    from longtake.incarnations i, unnest(i.pools, i.slots) as p (pool, slots)
    where i.alive_until > clock_timestamp() and 'worker' = any(i.roles)
    group by p.pool
), standing as (
    select pool, count(*) as unclaimed from longtake.effects
    where closed_at is null and state = 'queued' and published_at is not null and not_before <= clock_timestamp()
    group by pool
)
select coalesce(w.pool, s.pool) as pool, (coalesce(w.size, $1) - coalesce(s.unclaimed, 0))::integer as room
from windows w full join standing s on s.pool = w.pool;

-- name: work_stalled
-- Work that is due for longer than the stall window while no living worker has its activity, and work that was told to
-- be so and that somebody can take or has taken after all (G42). $1 stall seconds  $2 limit
with able as (
    select distinct a as activity from longtake.incarnations i, unnest(i.activities) as a
    where i.alive_until > clock_timestamp() and 'worker' = any(i.roles)
)
(select e.id, e.tenant_id as tenant, e.run_id, e.step, e.attempt, e.activity, e.leases, true as stalled
 from longtake.effects e join longtake.runs r on r.run_id = e.run_id
 where e.closed_at is null and e.state = 'queued' and e.kind in ('execute', 'compensate')
    and greatest(e.not_before, coalesce(e.heartbeat_at, e.not_before)) < clock_timestamp() - make_interval(secs => $1)
    and e.activity not in (select activity from able) and not r.poisoned
 limit $2)
union all
(select e.id, e.tenant_id, e.run_id, e.step, e.attempt, e.activity, e.leases, false
 from longtake.runs r join longtake.effects e on e.run_id = r.run_id
 where r.ended_at is null and 'no_worker' = any(r.blockers) and e.closed_at is null
    and e.kind in ('execute', 'compensate') and (e.state <> 'queued' or e.activity in (select activity from able))
 limit $2);

-- name: doorbells_lost
-- Whatever waits for the dispatcher longer than a grace: receipts, ended leases, deadlines, callbacks, timers, signals.
-- Timers and signals have no trace of their own; they go back to that of the run's command.
-- A receipt whose doorbell may still stand in its part of the stream is not lost, however long the queue is (P12). A
-- dispatcher that fell silent may have died with doorbells in its hands, which stand until the stream delivers them again:
-- for a few seconds after a death, long enough for one pass, everything that it can have been told is told again.
-- $1 grace seconds  $2 limit  $3 by part, the time of the oldest message that is still there (null: none)
(select 'effect' as what, e.id, e.run_id, coalesce(e.report_traceparent, e.traceparent) as traceparent
 from longtake.effects e
 join longtake.runs r on r.run_id = e.run_id
 where e.closed_at is null and not r.poisoned
    and ((e.state in ('reported', 'expired')
          and coalesce(e.reported_at, e.heartbeat_at) < clock_timestamp() - make_interval(secs => $1)
          and (coalesce(($3::timestamptz[])[1 + get_byte(uuid_send(e.run_id), 15) % cardinality($3::timestamptz[])]
                        > coalesce(e.reported_at, e.heartbeat_at) + make_interval(secs => $1), true)
               or exists (select from longtake.incarnations i
                          where 'dispatcher' = any(i.roles) and i.alive_until >= coalesce(e.reported_at, e.heartbeat_at)
                              and i.alive_until between clock_timestamp() - interval '5 seconds' and clock_timestamp())))
         or (e.receipt is null and e.deadline <= clock_timestamp()))
 limit $2)
union all
(select 'inbox', i.id, i.run_id, i.traceparent from longtake.inbox i join longtake.runs r on r.run_id = i.run_id
 where i.settled_at is null and not r.poisoned and i.received_at < clock_timestamp() - make_interval(secs => $1) limit $2)
union all
(select 'run', t.run_id, t.run_id, c.traceparent from longtake.timers t join longtake.runs r on r.run_id = t.run_id
 left join longtake.commands c on (c.tenant_id, c.actor, c.client_command_id) = (r.tenant_id, r.actor, r.command_id)
 where t.due_at <= clock_timestamp() and not r.poisoned limit $2)
union all
(select 'run', s.run_id, s.run_id, c.traceparent from longtake.signals s
 join longtake.runs r on r.run_id = s.run_id
 left join longtake.commands c on (c.tenant_id, c.actor, c.client_command_id) = (r.tenant_id, r.actor, r.command_id)
 where s.settled_at is null and s.created_at < clock_timestamp() - make_interval(secs => $1) limit $2);

-- name: next_due
-- Seconds until anything is due that no doorbell announces; null when nothing is (P24). $1 grace seconds
select extract(epoch from min(at) - clock_timestamp())::double precision as seconds
from (
    select min(case
        when e.state = 'queued' and e.published_at is null then e.not_before
        when e.state = 'queued' then greatest(e.published_at, e.not_before)
            + make_interval(secs => $1 * power(2, least(e.generation - 1, 5)))
        when e.state = 'leased' then e.lease_until
        else coalesce(e.reported_at, clock_timestamp()) + make_interval(secs => $1)
    end) as at
    from longtake.effects e where e.closed_at is null
    union all select min(deadline) from longtake.effects where closed_at is null and receipt is null
    union all select min(due_at) from longtake.timers
    union all select min(received_at) + make_interval(secs => $1) from longtake.inbox where settled_at is null
    union all select min(s.created_at) from longtake.signals s join longtake.runs r on r.run_id = s.run_id
    where s.settled_at is null and not r.poisoned
    union all select min(created_at) from longtake.errands where settled_at is null
) d;

-- name: incarnation_announce
-- A process says that it lives until then, and hears which epoch the store has, and whether the store has counted fewer of
-- its announcements than it had confirmed: then it was restored (F70).
-- $1 id  $2 owner  $3 roles  $4 pools  $5 activities  $6 host  $7 pid  $8 seconds  $9 slots, by pool  $10 confirmed
-- announcements
with known as (select beats from longtake.incarnations where id = $1)
insert into longtake.incarnations (id, owner, roles, pools, activities, host, pid, alive_until, slots)
values ($1, $2, $3, $4, $5, $6, $7, clock_timestamp() + make_interval(secs => $8), $9)
on conflict (id) do update set alive_until = excluded.alive_until, beats = longtake.incarnations.beats + 1
returning beats, (select store_epoch from longtake.store) as epoch,
    coalesce((select beats from known), 0) < $10::integer as forgotten;

-- name: incarnation_end
-- A process stops in good order. $1 id
update longtake.incarnations set alive_until = '-infinity' where id = $1;

-- name: incarnations_bury
-- Every process but this one is known to be dead: the lock of the data directory is ours (P18). $1 id
update longtake.incarnations set alive_until = '-infinity' where id <> $1 and alive_until > '-infinity' returning owner;

-- name: suspects_take
-- Take messages in hand, and say how many processes died with each in theirs; what is old is forgotten.
-- $1 digests  $2 incarnation
with forgotten as (
    delete from longtake.suspects where seen_at < clock_timestamp() - interval '7 days' and digest <> all ($1::bytea[])
)
insert into longtake.suspects as s (digest, holder, seen_at)
select d, $2, clock_timestamp() from unnest($1::bytea[]) d order by d
on conflict (digest) do update set holder = excluded.holder, seen_at = excluded.seen_at,
    deaths = s.deaths + (s.holder <> excluded.holder and exists (
        select from longtake.incarnations i where i.id = s.holder and i.alive_until < clock_timestamp()))::integer
returning digest, deaths;

-- name: dead_letters_insert
-- Keep what no redelivery will cure. $1 tenant  $2 source  $3 subject  $4 reason  $5 body  $6 headers
insert into longtake.dead_letters (tenant_id, source, subject, reason, body, headers)
values ($1, $2, $3, $4, $5, $6);
