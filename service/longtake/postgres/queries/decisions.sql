-- name: receipts_fetch
-- What lies on these effect rows, as facts for the reducer, with the run each belongs to; one statement a batch.
-- A row that says nothing (still queued or leased, already closed) comes back with fact null. $1 effect ids.
select e.id, e.run_id, e.tenant_id, e.step, e.attempt, e.kind, e.receipt, e.reporter, e.report_fence, e.claimed_at,
    e.call_opened_at, e.leases, coalesce(e.report_traceparent, e.traceparent) as traceparent,
    case
        when e.closed_at is not null then null
        when e.receipt is not null then 'outcome'
        when e.deadline <= clock_timestamp() then 'deadline'
        when e.state = 'expired' then 'lease'
    end as fact,
    r.revision, r.poisoned, r.plan_checked, r.ended_at is not null as ended, clock_timestamp() as now,
    (select application from longtake.store) as application
from unnest($1::uuid[]) as wanted (id)
join longtake.effects e on e.id = wanted.id
join longtake.runs r on r.run_id = e.run_id;

-- name: inbox_fetch
-- Pending callbacks of these inbox rows and runs. $1 inbox ids, $2 run ids.
select i.id, i.run_id, i.tenant_id, i.step, i.attempt, i.external_ref, i.traceparent,
    r.revision, r.poisoned, r.plan_checked, r.ended_at is not null as ended, clock_timestamp() as now,
    (select application from longtake.store) as application
from longtake.inbox i join longtake.runs r on r.run_id = i.run_id
where i.settled_at is null and (i.id = any($1::uuid[]) or i.run_id = any($2::uuid[]));

-- name: timers_fetch
-- Due timers and open signals of these runs, with the trace of the command each run began with. $1 run ids.
select t.run_id, t.tenant_id, 'timer' as source, t.key, null::uuid as signal_id, null::json as payload, c.traceparent,
    r.revision, r.poisoned, r.plan_checked, r.ended_at is not null as ended, clock_timestamp() as now,
    (select application from longtake.store) as application
from longtake.timers t join longtake.runs r on r.run_id = t.run_id
left join longtake.commands c on (c.tenant_id, c.actor, c.client_command_id) = (r.tenant_id, r.actor, r.command_id)
where t.run_id = any($1::uuid[]) and t.due_at <= clock_timestamp()
union all
select s.run_id, s.tenant_id, 'signal', s.kind, s.id, s.payload, c.traceparent,
    r.revision, r.poisoned, r.plan_checked, r.ended_at is not null, clock_timestamp(),
    (select application from longtake.store)
from longtake.signals s join longtake.runs r on r.run_id = s.run_id
left join longtake.commands c on (c.tenant_id, c.actor, c.client_command_id) = (r.tenant_id, r.actor, r.command_id)
where s.run_id = any($1::uuid[]) and s.settled_at is null;

-- name: known_runs
-- Which of these ids exist at all; a pointer to none of them is quarantined (P25). $1 effect ids, $2 inbox ids, $3 run ids.
select id from longtake.effects where id = any($1::uuid[])
union all select id from longtake.inbox where id = any($2::uuid[])
union all select run_id from longtake.runs where run_id = any($3::uuid[]);

-- name: runs_load
-- What is needed to fold these runs. $1 run ids.
select r.run_id, r.tenant_id, r.revision, r.head_hash, r.store_epoch, r.actor, r.command_id, r.account, r.project,
    p.plan, p.fingerprint
from longtake.runs r join longtake.plans p on p.tenant_id = r.tenant_id and p.fingerprint = r.plan_fingerprint
where r.run_id = any($1::uuid[]);

-- name: run_lock
-- Lock one run for a command and tell its time; the plan comes along. $1 tenant, $2 run id.
select r.run_id, r.tenant_id, r.revision, r.head_hash, r.store_epoch, r.actor, r.command_id, r.account, r.project,
    r.plan_checked, r.poisoned, p.plan, p.fingerprint, clock_timestamp() as now,
    (select application from longtake.store) as application
from longtake.runs r join longtake.plans p on p.tenant_id = r.tenant_id and p.fingerprint = r.plan_fingerprint
where r.tenant_id = $1 and r.run_id = $2
for update of r;

-- name: events_load
-- Events of these runs after these seqs, in order. $1 run ids, $2 seqs.
select e.run_id, e.seq, e.type, e.version, e.data, e.recorded_at
from unnest($1::uuid[], $2::integer[]) as wanted (run_id, seq)
join longtake.events e on e.run_id = wanted.run_id and e.seq > wanted.seq
order by e.run_id, e.seq;

-- name: run_set_aside
-- A run whose history or plan cannot be read is blocked as it stands; projection and fold differ then, and `prove` says
-- so. $1 run id
update longtake.runs set poisoned = true, status = 'blocked', blockers = '{history_unreadable}' where run_id = $1;

-- name: decisions_commit
-- Write the decisions of a batch, all of them or, run by run, none: a run that moved, is held by another, or has an
-- effect that changed meanwhile (a receipt where none was expected, or the reverse; a call where none was opened) is
-- left out, and its number is not returned (P1, P6, P21). Every array is aligned; `n` is the number of the run in $1.
--  $1 run ids (ascending)   $2 expected revisions   $3 new revisions   $4 head hashes  $5 statuses   $6 phases
--  $7 labels   $8 charged   $9 refunded   $10 blockers (joined by comma)   $11 poisoned   $12 poll_at
--  $13 summaries   $14 ended_at   $15 checked application
--  $16 event n   $17 seq   $18 id   $19 type   $20 version   $21 data   $22 meta   $23 recorded_at   $24 hash
--  $25 step n   $26 key   $27 ordinal   $28 attempt   $29 max attempts   $30 status   $31 phase   $32 label
--  $33 external ref   $34 error class   $35 error message   $36 provider cost   $37 artifacts (joined by comma)
--  $38 started_at   $39 updated seq
--  $40 effect n   $41 id   $42 step   $43 attempt   $44 kind   $45 ordinal   $46 activity   $47 pool   $48 priority
--  $49 input   $50 traceparent   $51 not before (null: now)   $52 deadline   $53 external ref   $54 incarnation
--  $55 closing n   $56 effect id   $57 disposition   $58 receipt expected
--  $59 ledger n   $60 key   $61 kind   $62 debit   $63 credit   $64 amount   $65 step   $66 cycle   $67 seq
--  $68 timer n   $69 key   $70 due_at   $71 cancelled timer n   $72 key
--  $73 artifact n   $74 id   $75 step   $76 attempt   $77 name   $78 kind   $79 object key   $80 sha256   $81 bytes
--  $82 content type   $83 inbox n   $84 inbox id   $85 inbox status   $86 reason   $87 signal n   $88 signal id
--  $89 withdrawn n   $90 effect id   $91 expedited n   $92 effect id
--  $93 n of runs whose scopes are freed   $94 n of runs whose hold is released   $95 store epoch
--  $96 tenant   $97 actor   $98 client command id   $99 status   $100 receipt (of the command that is answered, or null)
--  $101 outgoing n   $102 id   $103 run id   $104 kind   $105 payload   $106 quoted   $107 caps   $108 traceparents (by run, as $1)
--  $109 held back (by effect, as $40: the relay publishes it)
with wanted as (
    select * from unnest($1::uuid[], $2::integer[]) with ordinality as w (run_id, revision, n)
), locked as materialized (
    select w.n::integer as n, r.run_id, r.tenant_id, r.account
    from wanted w join longtake.runs r on r.run_id = w.run_id
    where r.revision = w.revision and (select store_epoch from longtake.store) = $95
    order by r.run_id
    for update of r skip locked
), touched as materialized (
    select c.n, (e.receipt is not null) <> c.expected
        or c.disposition = 'expired' and e.kind = 'execute' and e.call_opened_at is not null as torn
    from (
        select u.n, u.id, u.disposition, u.expected
        from unnest($55::integer[], $56::uuid[], $57::text[], $58::boolean[]) as u (n, id, disposition, expected)
        order by u.id
    ) c join longtake.effects e on e.id = c.id
    where e.closed_at is null
    order by e.id
    for update of e
), flags as materialized (
    select coalesce(array_agg(n), '{}') as good
    from locked where n not in (select t.n from touched t where t.torn)
), owners as materialized (
    select array(select l.tenant_id from unnest($1::uuid[]) with ordinality as w (run_id, n)
                 left join locked l on l.n = w.n order by w.n) as tenants
), new_events as (
    insert into longtake.events (run_id, seq, tenant_id, id, type, version, data, meta, store_epoch, recorded_at, hash)
    select ($1::uuid[])[u.n], u.seq, o.tenants[u.n], u.id, u.type, u.version, u.data, u.meta, $95, u.at, u.hash
    from flags f, owners o,
        unnest($16::integer[], $17::integer[], $18::uuid[], $19::text[], $20::smallint[], $21::json[], $22::json[],
               $23::timestamptz[], $24::bytea[]) as u (n, seq, id, type, version, data, meta, at, hash)
    where u.n = any(f.good)
), new_runs as (
    update longtake.runs r set
        revision = u.revision, head_hash = u.head, status = u.status, phase = u.phase, label = u.label,
        charged = u.charged, refunded = u.refunded, blockers = string_to_array(u.blockers, ','),
        poisoned = u.poisoned, poll_at = u.poll_at, summary = u.summary, ended_at = u.ended_at,
        quoted = u.quoted, cap = u.cap, plan_checked = coalesce(u.checked, r.plan_checked), updated_at = clock_timestamp()
    from flags f,
        unnest($1::uuid[], $3::integer[], $4::bytea[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[],
               $10::text[], $11::boolean[], $12::timestamptz[], $13::json[], $14::timestamptz[], $15::text[],
               $106::bigint[], $107::bigint[])
            with ordinality as u (run_id, revision, head, status, phase, label, charged, refunded, blockers, poisoned,
                                  poll_at, summary, ended_at, checked, quoted, cap, n)
    where r.run_id = u.run_id and u.n = any(f.good)
), new_steps as (
    insert into longtake.steps as s (run_id, key, tenant_id, ordinal, attempt, max_attempts, status, phase, label,
        external_ref, error_class, error_message, provider_cost, artifacts, started_at, updated_seq)
    select ($1::uuid[])[u.n], u.key, o.tenants[u.n], u.ordinal, u.attempt, u.max_attempts, u.status, u.phase,
        u.label, u.external_ref, u.error_class, u.error_message, u.provider_cost, string_to_array(u.artifacts, ','),
        u.started_at, u.seq
    from flags f, owners o,
        unnest($25::integer[], $26::text[], $27::integer[], $28::integer[], $29::integer[], $30::text[], $31::text[],
               $32::text[], $33::text[], $34::text[], $35::text[], $36::bigint[], $37::text[], $38::timestamptz[],
               $39::integer[]) as u (n, key, ordinal, attempt, max_attempts, status, phase, label, external_ref,
               error_class, error_message, provider_cost, artifacts, started_at, seq)
    where u.n = any(f.good)
    on conflict (run_id, key) do update set attempt = excluded.attempt, max_attempts = excluded.max_attempts,
        status = excluded.status, external_ref = excluded.external_ref, error_class = excluded.error_class,
        error_message = excluded.error_message, provider_cost = excluded.provider_cost,
        artifacts = excluded.artifacts, started_at = excluded.started_at, updated_seq = excluded.updated_seq
), new_effects as (
    insert into longtake.effects (id, tenant_id, run_id, step, attempt, kind, ordinal, activity, pool, priority, input,
        traceparent, not_before, deadline, external_ref, incarnation, published_at)
    select u.id, o.tenants[u.n], ($1::uuid[])[u.n], u.step, u.attempt, u.kind, u.ordinal, u.activity, u.pool,
        u.priority, u.input, u.traceparent, coalesce(u.not_before, clock_timestamp()), u.deadline, u.external_ref,
        $54, case when u.not_before is null and not u.held_back then clock_timestamp() end
    from flags f, owners o,
        unnest($40::integer[], $41::uuid[], $42::text[], $43::integer[], $44::text[], $45::integer[], $46::text[],
               $47::text[], $48::smallint[], $49::json[], $50::text[], $51::timestamptz[], $52::timestamptz[],
               $53::text[], $109::boolean[]) as u (n, id, step, attempt, kind, ordinal, activity, pool, priority, input,
               traceparent, not_before, deadline, external_ref, held_back)
    where u.n = any(f.good)
), ended_effects as (
    update longtake.effects e set state = 'closed', closed_at = clock_timestamp(), disposition = u.disposition
    from flags f, unnest($55::integer[], $56::uuid[], $57::text[]) as u (n, id, disposition)
    where e.id = u.id and u.n = any(f.good) and e.closed_at is null
), withdrawn as materialized (
    select e.id from flags f, unnest($89::integer[], $90::uuid[]) as u (n, id) join longtake.effects e on e.id = u.id
    where u.n = any(f.good) and e.state = 'queued'
    order by e.id for update of e
), withdrawn_effects as (
    update longtake.effects e set state = 'reported', reported_at = clock_timestamp(), reporter = 'dispatcher',
        report_fence = e.fence, receipt = '{"outcome":"cancelled"}'
    from withdrawn w where e.id = w.id and e.state = 'queued' and e.receipt is null
    returning e.id
), expedited_effects as (
    update longtake.effects e set not_before = clock_timestamp(), generation = e.generation + 1,
        published_at = clock_timestamp(), incarnation = $54
    from flags f, unnest($91::integer[], $92::uuid[]) as u (n, id)
    where e.id = u.id and u.n = any(f.good) and e.state = 'queued' and e.not_before > clock_timestamp()
    returning e.id, e.attempt, e.generation, e.pool, e.traceparent
), new_ledger as (
    insert into longtake.ledger_entries (key, tenant_id, run_id, account, kind, debit, credit, amount, step, cycle, seq,
        recorded_at)
    select u.key, l.tenant_id, l.run_id, l.account, u.kind, u.debit, u.credit, u.amount, u.step, u.cycle, u.seq,
        clock_timestamp()
    from flags f,
        unnest($59::integer[], $60::text[], $61::text[], $62::text[], $63::text[], $64::bigint[], $65::text[],
               $66::integer[], $67::integer[]) as u (n, key, kind, debit, credit, amount, step, cycle, seq)
        join locked l on l.n = u.n
    where u.n = any(f.good)
), new_timers as (
    insert into longtake.timers (run_id, key, tenant_id, due_at)
    select ($1::uuid[])[u.n], u.key, o.tenants[u.n], u.due_at
    from flags f, owners o, unnest($68::integer[], $69::text[], $70::timestamptz[]) as u (n, key, due_at)
    where u.n = any(f.good)
    on conflict (run_id, key) do update set due_at = excluded.due_at
), ended_timers as (
    delete from longtake.timers t using flags f, unnest($71::integer[], $72::text[]) as u (n, key)
    where t.run_id = ($1::uuid[])[u.n] and t.key = u.key and u.n = any(f.good)
), new_artifacts as (
    insert into longtake.artifacts (id, tenant_id, run_id, step, attempt, name, kind, object_key, sha256, bytes,
        content_type, published_at)
    select u.id, o.tenants[u.n], ($1::uuid[])[u.n], u.step, u.attempt, u.name, u.kind, u.object_key, u.sha256, u.bytes,
        u.content_type, clock_timestamp()
    from flags f, owners o,
        unnest($73::integer[], $74::uuid[], $75::text[], $76::integer[], $77::text[], $78::text[], $79::text[],
               $80::text[], $81::bigint[], $82::text[]) as u (n, id, step, attempt, name, kind, object_key, sha256,
               bytes, content_type)
    where u.n = any(f.good)
), settled_inbox as (
    update longtake.inbox i set status = u.status, reason = u.reason, settled_at = clock_timestamp()
    from flags f, unnest($83::integer[], $84::uuid[], $85::text[], $86::text[]) as u (n, id, status, reason)
    where i.id = u.id and u.n = any(f.good) and i.settled_at is null
), settled_signals as (
    update longtake.signals s set settled_at = clock_timestamp()
    from flags f, unnest($87::integer[], $88::uuid[]) as u (n, id)
    where s.id = u.id and u.n = any(f.good)
), new_signals as (
    insert into longtake.signals (id, tenant_id, run_id, kind, payload)
    select u.id, o.tenants[u.n], u.run_id, u.kind, u.payload
    from flags f, owners o,
        unnest($101::integer[], $102::uuid[], $103::uuid[], $104::text[], $105::json[]) as u (n, id, run_id, kind, payload)
    where u.n = any(f.good) and u.kind not in ('start_child', 'scopes_freed', 'start_due')
    on conflict (id) do nothing
), new_errands as (
    insert into longtake.errands (id, tenant_id, run_id, kind, payload, traceparent)
    select u.id, o.tenants[u.n], u.run_id, u.kind, u.payload, w.traceparent
    from flags f, owners o,
        unnest($101::integer[], $102::uuid[], $103::uuid[], $104::text[], $105::json[]) as u (n, id, run_id, kind, payload)
        join unnest($108::text[]) with ordinality as w (traceparent, n) on w.n = u.n
    where u.n = any(f.good) and u.kind in ('start_child', 'scopes_freed', 'start_due')
    on conflict (id) do nothing
), freed_scopes as (
    delete from longtake.scopes s using flags f, unnest($93::integer[]) as u (n)
    where s.run_id = ($1::uuid[])[u.n] and u.n = any(f.good)
), left_queue as (
    delete from longtake.scope_queue q using flags f, unnest($93::integer[]) as u (n)
    where q.run_id = ($1::uuid[])[u.n] and u.n = any(f.good)
), released_holds as (
    update longtake.holds h set released_at = clock_timestamp()
    from flags f, unnest($94::integer[]) as u (n)
    where h.run_id = ($1::uuid[])[u.n] and u.n = any(f.good) and h.released_at is null
    returning h.tenant_id, h.account, h.amount, u.n
), settled_accounts as (
    update longtake.accounts a set held = a.held - s.amount, balance = a.balance - s.net
    from (
        select h.tenant_id, h.account, sum(h.amount)::bigint as amount,
            sum(($8::bigint[])[h.n] - ($9::bigint[])[h.n])::bigint as net
        from released_holds h group by 1, 2 order by 1, 2
    ) s
    where a.tenant_id = s.tenant_id and a.account = s.account
), answered as (
    update longtake.commands set status = $99, run_id = ($100::json ->> 'run_id')::uuid, receipt = $100
    from flags f
    where tenant_id = $96 and actor = $97 and client_command_id = $98 and cardinality(f.good) = cardinality($1)
)
select 'run' as what, ($1::uuid[])[n] as id, null::integer as attempt, null::integer as generation, null::text as pool,
    null::text as traceparent
from flags, unnest(flags.good) as n
union all select 'withdrawn', id, null, null, null, null from withdrawn_effects
union all select 'expedited', id, attempt, generation, pool, traceparent from expedited_effects;
