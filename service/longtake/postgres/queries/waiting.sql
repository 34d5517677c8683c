-- name: effects_waiting
-- Due effects of a pool that the relay or their own decision has let through (P12) and nobody has leased, the longest
-- waiting first. $1 pool  $2 limit
select id, attempt, generation, pool, traceparent from longtake.effects
where closed_at is null and state = 'queued' and pool = $1 and published_at is not null and not_before <= clock_timestamp()
order by published_at, id
limit $2;

-- name: facts_waiting
-- Whatever waits for the dispatcher of a part: receipts, ended leases, deadlines, callbacks, timers, signals.
-- $1 part  $2 parts  $3 limit, for each kind
(select 'effect' as what, e.id, e.run_id, coalesce(e.report_traceparent, e.traceparent) as traceparent
 from longtake.effects e join longtake.runs r on r.run_id = e.run_id
 where e.closed_at is null and not r.poisoned and get_byte(uuid_send(e.run_id), 15) % $2 = $1
    and (e.state in ('reported', 'expired') or (e.receipt is null and e.deadline <= clock_timestamp()))
 limit $3)
union all
(select 'inbox', i.id, i.run_id, i.traceparent from longtake.inbox i join longtake.runs r on r.run_id = i.run_id
 where i.settled_at is null and not r.poisoned and get_byte(uuid_send(i.run_id), 15) % $2 = $1 limit $3)
union all
(select 'run', t.run_id, t.run_id, null from longtake.timers t join longtake.runs r on r.run_id = t.run_id
 where t.due_at <= clock_timestamp() and not r.poisoned and get_byte(uuid_send(t.run_id), 15) % $2 = $1 limit $3)
union all
(select 'run', s.run_id, s.run_id, null from longtake.signals s join longtake.runs r on r.run_id = s.run_id
 where s.settled_at is null and not r.poisoned and get_byte(uuid_send(s.run_id), 15) % $2 = $1 limit $3);

-- name: doorbell_ring
-- Wake others: never within a decision, for the commit of a notification takes a lock of the whole server. $1 payloads
select pg_notify('longtake_doorbell', payload) from unnest($1::text[]) as payload;
