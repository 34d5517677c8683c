-- name: command_insert
-- Keep a command unless its id is taken; a concurrent copy waits here for the first one to commit (P23).
-- $1 tenant  $2 actor  $3 client command id  $4 kind  $5 project  $6 intent hash  $7 body  $8 channel  $9 traceparent
insert into longtake.commands (tenant_id, actor, client_command_id, kind, project, intent_hash, body, channel, status,
    traceparent, copied_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, 'accepted', $9, case when $8 <> 'http' then clock_timestamp() end)
on conflict (tenant_id, actor, client_command_id) do nothing
returning clock_timestamp() as now;

-- name: command_receipt
-- The stored answer to a command. $1 tenant  $2 actor  $3 client command id
select intent_hash, receipt, status, run_id from longtake.commands
where tenant_id = $1 and actor = $2 and client_command_id = $3;

-- name: command_settle
-- Store the answer. $1 tenant  $2 actor  $3 client command id  $4 status  $5 run id  $6 receipt
update longtake.commands set status = $4, run_id = $5, receipt = $6
where tenant_id = $1 and actor = $2 and client_command_id = $3;

-- name: project_lock
-- Starts in one project are admitted one after the other (H54, P6). $1 key of tenant and project
select pg_advisory_xact_lock($1::bigint);

-- name: scopes_held
-- Who holds any of these scopes. $1 tenant  $2 project  $3 scopes
select s.scope, s.run_id, r.phase from longtake.scopes s join longtake.runs r on r.run_id = s.run_id
where s.tenant_id = $1 and s.project = $2 and s.scope = any($3::text[]) order by s.scope;

-- name: run_admit
-- Lay down everything a new run stands on before its first decision: hold, plan, run row, scopes; one statement
-- whatever the plan's size. No account, or too little on it: nothing is written and no row comes back. A run that may
-- cost nothing touches no account (P8).
-- $1 run id  $2 tenant  $3 project  $4 workflow  $5 version  $6 actor  $7 account  $8 command id  $9 fingerprint
-- $10 plan  $11 input  $12 policy  $13 quoted  $14 cap  $15 scopes  $16 application  $17 store epoch  $18 now
-- $19 what the account must promise
with funded as (
    update longtake.accounts set held = held + $19::bigint
    where tenant_id = $2 and account = $7 and balance - held >= $19 and $19 > 0
    returning 1
), paid as (
    select 1 from funded union all select 1 where $19::bigint = 0
), kept_plan as (
    insert into longtake.plans (tenant_id, fingerprint, workflow, workflow_version, plan, input, policy)
    select $2, $9, $4, $5, $10, $11, $12 from paid on conflict (tenant_id, fingerprint) do nothing
), new_run as (
    insert into longtake.runs (run_id, tenant_id, project, workflow, workflow_version, actor, account, command_id,
        plan_fingerprint, plan_checked, store_epoch, head_hash, quoted, cap, accepted_at, updated_at)
    select $1, $2, $3, $4, $5, $6, $7, $8, $9, $16, $17, decode(repeat('00', 32), 'hex'), $13, $14, $18, $18 from paid
), new_scopes as (
    insert into longtake.scopes (tenant_id, project, scope, run_id)
    select $2, $3, s, $1 from paid, unnest($15::text[]) as s
), new_hold as (
    insert into longtake.holds (run_id, tenant_id, account, amount) select $1, $2, $7, $19 from paid where $19 > 0
)
select 1 from paid;

-- name: run_origin
-- What a run was made from. $1 tenant  $2 run id
select r.run_id, r.project, r.workflow, r.workflow_version, r.account, r.plan_fingerprint as fingerprint, p.plan,
    p.input, p.policy
from longtake.runs r join longtake.plans p on p.tenant_id = r.tenant_id and p.fingerprint = r.plan_fingerprint
where r.tenant_id = $1 and r.run_id = $2;

-- name: account_read
-- What an account has. $1 tenant  $2 account
select balance, held from longtake.accounts where tenant_id = $1 and account = $2;

-- name: account_fund
-- Put credits on an account, making it when it is new. $1 tenant  $2 account  $3 credits
insert into longtake.accounts (tenant_id, account, balance) values ($1, $2, $3)
on conflict (tenant_id, account) do update set balance = longtake.accounts.balance + excluded.balance
returning balance;

-- name: commands_uncopied
-- HTTP commands that LT_COMMAND does not have yet (P2). $1 limit
select tenant_id, actor, client_command_id, kind, body, traceparent from longtake.commands
where copied_at is null order by accepted_at limit $1;

-- name: commands_copied
-- These are in the stream now. $1 tenants  $2 actors  $3 client command ids
update longtake.commands c set copied_at = clock_timestamp()
from unnest($1::text[], $2::text[], $3::text[]) as w (tenant, actor, id)
where c.tenant_id = w.tenant and c.actor = w.actor and c.client_command_id = w.id and c.copied_at is null;

-- name: inbox_insert
-- Keep an authentic callback; a copy is counted on the row that is there (P4).
-- $1 id  $2 tenant  $3 provider  $4 dedupe key  $5 run id  $6 step  $7 attempt  $8 external ref  $9 type  $10 payload
-- $11 traceparent
insert into longtake.inbox as i (id, tenant_id, provider, dedupe_key, run_id, step, attempt, external_ref,
    callback_type, payload, traceparent)
select $1, r.tenant_id, $3, $4, $5, $6, $7, $8, $9, $10, $11
from longtake.runs r where r.run_id = $5 and ($2::text is null or r.tenant_id = $2)
on conflict (tenant_id, provider, dedupe_key) do update set copies = i.copies + 1
returning i.id, i.copies, i.status;

-- name: callback_run
-- Whose run this is, and the trace of the effect that a callback answers. $1 run id  $2 effect id
select r.tenant_id, e.traceparent from longtake.runs r left join longtake.effects e on e.id = $2 where r.run_id = $1;

-- name: key_find
-- The live key of that id. $1 key id
select tenant_id, actor, roles, secret_sha256 from longtake.api_keys where key_id = $1 and revoked_at is null;

-- name: key_insert
-- Keep a new key. $1 key id  $2 tenant  $3 actor  $4 roles  $5 sha256 of the secret
insert into longtake.api_keys (key_id, tenant_id, actor, roles, secret_sha256) values ($1, $2, $3, $4, $5)
on conflict (key_id) do nothing;

-- name: key_revoke
-- End a key. $1 key id
update longtake.api_keys set revoked_at = clock_timestamp() where key_id = $1 and revoked_at is null returning key_id;

-- name: keys_list
-- All keys, without their secrets.
select key_id, tenant_id, actor, roles, created_at, revoked_at from longtake.api_keys order by created_at;

-- name: runs_unchecked
-- Active runs whose plan has not been compared with this application (P15). $1 application  $2 limit
select r.run_id, r.tenant_id, r.workflow, r.workflow_version, r.plan_fingerprint, p.plan, p.input, p.policy,
    'plan_drift' = any(r.blockers) as drift_blocked, r.revision
from longtake.runs r join longtake.plans p on p.tenant_id = r.tenant_id and p.fingerprint = r.plan_fingerprint
where r.ended_at is null and r.plan_checked <> $1 order by r.run_id limit $2;

-- name: runs_checked
-- The plans of these runs are as this application builds them. $1 run ids  $2 application
update longtake.runs r set plan_checked = $2
from (select run_id from longtake.runs where run_id = any($1::uuid[]) order by run_id for update) w
where r.run_id = w.run_id;

-- name: signal_insert
-- A durable fact for a run (P5). $1 id  $2 tenant  $3 run id  $4 kind  $5 payload
insert into longtake.signals (id, tenant_id, run_id, kind, payload) values ($1, $2, $3, $4, $5)
on conflict (id) do nothing;

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
    where r.revision = w.revision
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

-- name: effects_claim
-- Lease the first n claimable of these effects to a worker, each under a higher fence; the rest go back to the relay
-- under a higher generation (P11). Asking again with the same claim id returns the same leases.
-- Nothing is executed of a run whose plan is not that of the deployed code, or was not compared with it yet (P15): its
-- effect stays where it is, and the relay says so again later. What is open outside may be asked about all the while.
-- $1 claim id  $2 effect ids  $3 attempts  $4 n  $5 owner  $6 lease seconds  $7 fence floor of this store epoch
with wanted as materialized (
    select e.id, row_number() over () as place
    from (
        select e.id from unnest($2::uuid[], $3::integer[]) as w (id, attempt)
        join longtake.effects e on e.id = w.id
        where e.attempt = w.attempt and e.state = 'queued' and e.not_before <= clock_timestamp() and e.closed_at is null
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
select id, tenant_id, run_id, step, attempt, kind, activity, pool, input, fence, traceparent, external_ref,
    call_opened_at is not null as call_opened_before
from taken
union all
select e.id, e.tenant_id, e.run_id, e.step, e.attempt, e.kind, e.activity, e.pool, e.input, e.fence, e.traceparent,
    e.external_ref, e.call_opened_at is not null
from unnest($2::uuid[]) as w (id) join longtake.effects e on e.id = w.id
where e.claim_id = $1 and e.state = 'leased';

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
    order by e.id
    for update of e
) w
where e.id = w.id
returning e.id;

-- name: call_open
-- Mark that the outside world is about to be called: a lease lost after this is an unknown outcome (P18).
-- $1 effect id  $2 fence
update longtake.effects set call_opened_at = clock_timestamp()
where id = $1 and fence = $2 and state = 'leased' and lease_until > clock_timestamp()
returning id;

-- name: receipts_store
-- Store receipts whatever their fence; the first one of an effect stands, a later one is kept apart (P1).
-- An effect that was closed without a receipt is opened again for the reducer to look at.
-- $1 effect ids (ascending)  $2 fences  $3 owners  $4 receipts  $5 traceparents
with w as (
    select * from unnest($1::uuid[], $2::bigint[], $3::text[], $4::json[], $5::text[])
        as u (id, fence, owner, receipt, traceparent)
), held as materialized (
    select e.id, e.receipt is null as free, e.tenant_id from w join longtake.effects e on e.id = w.id
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
    join longtake.effects e on e.id = w.id
    where not h.free and not (e.report_fence = w.fence and e.reporter = w.owner)
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
-- times the slots that living workers announce, less what stands there unclaimed.
-- $1 limit  $2 incarnation  $3 grace seconds  $4 pools whose stream shows nothing older  $5 their oldest message (null: none)
-- $6 whether the transport epoch changed: then every pointer is lost  $7 smallest window  $8 window by slot
with windows as (
    select p.pool, greatest($7, $8 * coalesce(sum(p.slots), 0)) as size
    from longtake.incarnations i, unnest(i.pools, i.slots) as p (pool, slots)
    where i.alive_until > clock_timestamp() and 'worker' = any(i.roles)
    group by p.pool
), waiting as materialized (
    select e.id, e.tenant_id, e.pool, e.priority, e.published_at is null as fresh,
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
    select w.id, w.pool, w.priority, w.fresh,
        row_number() over (partition by w.pool, w.tenant_id order by w.priority desc, w.id) as turn
    from waiting w where w.fresh or w.lost
), placed as (
    select r.id, r.pool, r.priority, r.fresh, r.turn,
        row_number() over (partition by r.pool, r.fresh order by r.priority desc, r.turn, r.id) as place
    from ranked r
), chosen as materialized (
    select p.id, p.priority, p.turn
    from placed p left join windows w on w.pool = p.pool left join standing s on s.pool = p.pool
    where not p.fresh or p.place <= coalesce(w.size, $7) - coalesce(s.unclaimed, 0)
    order by p.priority desc, p.turn, p.id
    limit $1
), due as materialized (
    select e.id from chosen c join longtake.effects e on e.id = c.id
    where e.closed_at is null and e.state = 'queued'
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
-- A receipt whose doorbell may still stand in its part of the stream is not lost, however long the queue is (P12).
-- $1 grace seconds  $2 limit  $3 by part, the time of the oldest message that is still there (null: none)
(select 'effect' as what, e.id, e.run_id, coalesce(e.report_traceparent, e.traceparent) as traceparent
 from longtake.effects e
 join longtake.runs r on r.run_id = e.run_id
 where e.closed_at is null and not r.poisoned
    and ((e.state in ('reported', 'expired')
          and coalesce(e.reported_at, e.heartbeat_at) < clock_timestamp() - make_interval(secs => $1)
          and coalesce(($3::timestamptz[])[1 + get_byte(uuid_send(e.run_id), 15) % cardinality($3::timestamptz[])]
                       > coalesce(e.reported_at, e.heartbeat_at) + make_interval(secs => $1), true))
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
-- A process says that it lives until then. $1 id  $2 owner  $3 roles  $4 pools  $5 activities  $6 host  $7 pid  $8 seconds
-- $9 slots, by pool
insert into longtake.incarnations (id, owner, roles, pools, activities, host, pid, alive_until, slots)
values ($1, $2, $3, $4, $5, $6, $7, clock_timestamp() + make_interval(secs => $8), $9)
on conflict (id) do update set alive_until = excluded.alive_until;

-- name: incarnation_end
-- A process stops in good order. $1 id
update longtake.incarnations set alive_until = '-infinity' where id = $1;

-- name: incarnations_bury
-- Every process but this one is known to be dead: the lock of the data directory is ours (P18). $1 id
update longtake.incarnations set alive_until = '-infinity' where id <> $1 and alive_until > '-infinity' returning owner;

-- name: dead_letters_insert
-- Keep what no redelivery will cure. $1 tenant  $2 source  $3 subject  $4 reason  $5 body  $6 headers
insert into longtake.dead_letters (tenant_id, source, subject, reason, body, headers)
values ($1, $2, $3, $4, $5, $6);

-- name: hold_raise
-- Add to the hold of a locked run, as somebody approved (P8); the account promises no more than it has. No row comes back
-- when it cannot. $1 tenant  $2 run id  $3 credits
with funded as (
    update longtake.accounts a set held = a.held + $3::bigint
    from longtake.runs r
    where r.tenant_id = $1 and r.run_id = $2 and r.ended_at is null
        and a.tenant_id = r.tenant_id and a.account = r.account and a.balance - a.held >= $3::bigint
    returning r.run_id, r.tenant_id, r.account
)
insert into longtake.holds as h (run_id, tenant_id, account, amount)
select run_id, tenant_id, account, $3 from funded
on conflict (run_id) do update set amount = h.amount + excluded.amount
returning h.amount;

-- name: money_violations
-- Every place where money breaks one of its laws, of one run, of those whose money moved of late, or of all; no row when
-- all is well (H52). Accounts are looked at unless it is about one run, books only when it is about all.
-- $1 run id, or null for all  $2 movements of so many seconds, or null for all
with chosen as (
    select r.*, p.plan ->> 'billing' as billing, p.plan
    from longtake.runs r join longtake.plans p on p.tenant_id = r.tenant_id and p.fingerprint = r.plan_fingerprint
    where ($1::uuid is null or r.run_id = $1) and ($2::float8 is null or r.run_id in (
        select m.run_id from longtake.ledger_entries m
        where m.recorded_at >= clock_timestamp() - make_interval(secs => $2::float8)))
), entries as (
    select l.* from longtake.ledger_entries l
    where ($1::uuid is null or l.run_id = $1) and ($2 is null or l.run_id in (select run_id from chosen))
), sums as (
    select run_id, sum(amount) filter (where kind = 'charge') as charged,
        sum(amount) filter (where kind = 'refund') as refunded
    from entries group by run_id
), cycles as (
    select run_id, step, cycle, coalesce(sum(amount) filter (where kind = 'charge'), 0) as charged,
        coalesce(sum(amount) filter (where kind = 'refund'), 0) as refunded
    from entries group by run_id, step, cycle
), moved as (
    select e.run_id, e.seq, e.tx_id, e.type, e.data ->> 'key' as key, (e.data ->> 'amount')::bigint as amount,
        e.data ->> 'step' as step
    from longtake.events e
    where e.type in ('charged', 'refunded') and ($1::uuid is null or e.run_id = $1)
        and ($2 is null or e.run_id in (select run_id from chosen))
), handed_out as (
    select e.run_id, e.seq, e.tx_id, i ->> 'step' as step
    from longtake.events e, json_array_elements(e.data -> 'steps') i
    where e.type = 'steps_scheduled' and ($1::uuid is null or e.run_id = $1)
        and ($2 is null or e.run_id in (select run_id from chosen))
), priced as (
    select c.run_id, s ->> 'key' as step, (s ->> 'price')::bigint as price
    from chosen c, json_array_elements(c.plan -> 'steps') s where c.billing = 'pay_as_you_go'
    union all
    select c.run_id, s ->> 'key', (s ->> 'price')::bigint
    from chosen c join longtake.events e on e.run_id = c.run_id and e.type = 'plan_expanded',
        json_array_elements(e.data -> 'steps') s where c.billing = 'pay_as_you_go'
), found as (
    select c.run_id, c.tenant_id, 'net_is_the_ledgers' as law,
        format('the run says %s charged and %s refunded, the ledger %s and %s', c.charged, c.refunded,
               coalesce(s.charged, 0), coalesce(s.refunded, 0)) as message
    from chosen c left join sums s using (run_id)
    where (c.charged, c.refunded) is distinct from (coalesce(s.charged, 0)::bigint, coalesce(s.refunded, 0)::bigint)
    union all
    select coalesce(m.run_id, l.run_id), coalesce(l.tenant_id, c.tenant_id), 'events_are_the_ledger',
        format('%s: event %s of %s at %s, ledger %s at %s', coalesce(m.key, l.key), m.type, m.amount, m.seq, l.amount, l.seq)
    from moved m full join entries l on l.run_id = m.run_id and l.key = m.key
    left join chosen c on c.run_id = m.run_id
    where (m.seq, m.amount, m.tx_id) is distinct from (l.seq, l.amount, l.tx_id)
    union all
    select y.run_id, c.tenant_id, 'refund_has_its_charge',
        format('%s was charged %s and refunded %s', coalesce('cycle ' || y.cycle || ' of ' || y.step, 'the run'), y.charged,
               y.refunded)
    from cycles y left join chosen c using (run_id) where y.refunded > y.charged
    union all
    select c.run_id, c.tenant_id, 'net_within_cap',
        format('the ledger says net %s, the cap is %s', coalesce(s.charged, 0) - coalesce(s.refunded, 0), c.cap)
    from chosen c left join sums s using (run_id)
    where coalesce(s.charged, 0) - coalesce(s.refunded, 0) > c.cap
    union all
    select l.run_id, l.tenant_id, 'owner_is_the_runs',
        format('%s is of %s in %s, the run of %s in %s', l.key, l.account, l.tenant_id, c.account, c.tenant_id)
    from entries l left join chosen c using (run_id)
    where (l.tenant_id, l.account) is distinct from (c.tenant_id, c.account)
    union all
    select l.run_id, l.tenant_id, 'sides_are_known', format('%s goes from %s to %s', l.key, l.debit, l.credit)
    from entries l
    where case l.kind when 'charge' then l.debit else l.credit end <> l.account
        or case l.kind when 'charge' then l.credit else l.debit end <> 'system:escrow'
    union all
    select c.run_id, c.tenant_id, 'cycle_opens_with_its_work',
        format('%s was handed out at %s and no cycle of it was open', h.step, h.seq)
    from handed_out h join chosen c using (run_id) join priced p on p.run_id = h.run_id and p.step = h.step and p.price > 0
    where not exists (
        select from moved m where m.run_id = h.run_id and m.step = h.step and m.type = 'charged' and m.seq < h.seq
            and not exists (select from moved b where b.run_id = h.run_id and b.type = 'refunded' and b.seq < h.seq
                                and b.key = 'refund' || substr(m.key, 7)))
    union all
    select c.run_id, c.tenant_id, 'cycle_opens_with_its_work',
        format('%s at %s and the first work of it at %s were not written together', m.key, m.seq, h.seq)
    from moved m join chosen c using (run_id)
    cross join lateral (
        select o.seq, o.tx_id from handed_out o where o.run_id = m.run_id and o.step = m.step and o.seq > m.seq
        order by o.seq limit 1) h
    where m.type = 'charged' and c.billing = 'pay_as_you_go' and h.tx_id <> m.tx_id
    union all
    select c.run_id, c.tenant_id, 'cycle_opens_with_its_work',
        format('%s at %s was not written with the beginning of the run', m.key, m.seq)
    from moved m join chosen c using (run_id)
    where m.type = 'charged' and m.step is null and not exists (
        select from longtake.events e where e.run_id = m.run_id and e.type in ('run_accepted', 'run_started')
            and e.tx_id = m.tx_id)
    union all
    select c.run_id, c.tenant_id, 'hold_covers_the_run',
        format('held %s, cap %s, net %s', h.amount, c.cap, c.charged - c.refunded)
    from chosen c left join longtake.holds h using (run_id)
    where coalesce(h.amount, 0) > c.cap or coalesce(h.amount, 0) < c.charged - c.refunded
    union all
    select c.run_id, c.tenant_id, 'hold_ends_with_the_run',
        format('the run ended %s, its hold of %s was released %s', coalesce(c.ended_at::text, 'never'), h.amount,
               coalesce(h.released_at::text, 'never'))
    from chosen c join longtake.holds h using (run_id) where (c.ended_at is null) <> (h.released_at is null)
    union all
    select null, coalesce(a.tenant_id, h.tenant_id), 'account_holds_are_the_runs',
        format('account %s says %s held, its runs hold %s', coalesce(a.account, h.account), a.held, h.amount)
    from longtake.accounts a full join (
        select tenant_id, account, sum(amount)::bigint as amount from longtake.holds where released_at is null group by 1, 2
    ) h on h.tenant_id = a.tenant_id and h.account = a.account
    where $1::uuid is null and coalesce(a.held, 0) <> coalesce(h.amount, 0)
    union all
    select null, t.tenant_id, 'books_balance',
        format('%s credits were moved to or from accounts that no run of the tenant has', abs(t.amount))
    from (
        select b.tenant_id, sum(b.amount)::bigint as amount
        from (
            select tenant_id, debit as account, -amount as amount from longtake.ledger_entries
            union all select tenant_id, credit, amount from longtake.ledger_entries
        ) b
        where b.account = 'system:escrow'
            or exists (select from longtake.runs r where r.tenant_id = b.tenant_id and r.account = b.account)
        group by 1
    ) t
    where $1::uuid is null and $2 is null and t.amount <> 0
)
select run_id, tenant_id, law, message from found order by tenant_id, run_id, law, message;

-- name: runs_active_page
-- Active runs after an id with everything their plans were made of, and the event that says under which prices.
-- $1 after  $2 limit
select r.run_id, r.tenant_id, r.workflow, r.workflow_version, r.revision, r.plan_fingerprint, p.plan, p.input, p.policy,
    'plan_drift' = any(r.blockers) as drift_blocked, e.type, e.version, e.data
from longtake.runs r join longtake.plans p on p.tenant_id = r.tenant_id and p.fingerprint = r.plan_fingerprint
join longtake.events e on e.run_id = r.run_id and e.seq = 1
where r.ended_at is null and r.run_id > $1 order by r.run_id limit $2;

-- name: drift_read
-- What an acceptance of another plan must know of its run, and which application is deployed. $1 run id
select r.tenant_id, r.status, r.revision, r.ended_at is not null as ended, 'plan_drift' = any(r.blockers) as drift_blocked,
    (select application from longtake.store) as application
from longtake.runs r where r.run_id = $1;

-- name: runs_list
-- A page of runs, newest first. $1 tenant  $2 project  $3 status  $4 workflow  $5 cursor time  $6 cursor id  $7 limit
select run_id, project, workflow, workflow_version, status, phase, label, revision, charged, refunded, quoted, cap,
    accepted_at, updated_at, ended_at, blockers
from longtake.runs
where tenant_id = $1 and ($2::text is null or project = $2) and ($3::text is null or status = $3)
    and ($4::text is null or workflow = $4)
    and ($5::timestamptz is null or (accepted_at, run_id) < ($5, $6::uuid))
order by accepted_at desc, run_id desc limit $7;

-- name: run_read
-- One run. $1 tenant  $2 run id
select run_id, project, workflow, workflow_version, status, phase, label, revision, charged, refunded, quoted, cap,
    accepted_at, updated_at, ended_at, blockers, actor, account, command_id, plan_fingerprint, plan_checked,
    store_epoch, encode(head_hash, 'hex') as head_hash
from longtake.runs where tenant_id = $1 and run_id = $2;

-- name: summary_read
-- The stored summary with what its reading needs. $1 tenant  $2 run id
select summary, poll_at, revision, store_epoch, status, clock_timestamp() as now
from longtake.runs where tenant_id = $1 and run_id = $2;

-- name: steps_read
-- Step rows of a run with its open work. $1 tenant  $2 run id
select s.key, s.ordinal, s.attempt, s.max_attempts, s.status, s.phase, s.label, s.external_ref, s.error_class,
    s.error_message, s.provider_cost, s.artifacts, s.started_at, s.updated_seq
from longtake.steps s where s.tenant_id = $1 and s.run_id = $2 order by s.ordinal;

-- name: effects_read
-- Effects of a run with the evidence of each. $1 tenant  $2 run id
select id, step, attempt, kind, ordinal, activity, pool, state, disposition, generation, fence, leases, lease_owner,
    lease_until, created_at, not_before, deadline, claimed_at, call_opened_at, heartbeat_at, progress, external_ref,
    receipt, reporter, reported_at, closed_at
from longtake.effects where tenant_id = $1 and run_id = $2 order by created_at, id;

-- name: claims_read
-- Every claim of a run's effects. $1 tenant  $2 run id
select effect_id, step, attempt, kind, fence, owner, claimed_at from longtake.effect_claims
where tenant_id = $1 and run_id = $2 order by claimed_at, fence;

-- name: events_read
-- Events of a run after a seq. $1 tenant  $2 run id  $3 after seq  $4 limit
select seq, id, type, version, data, meta, store_epoch, recorded_at, hash, tx_id::text as tx_id
from longtake.events where tenant_id = $1 and run_id = $2 and seq > $3 order by seq limit $4;

-- name: ledger_read
-- Money of a run. $1 tenant  $2 run id
select key, kind, debit, credit, amount, step, cycle, seq, recorded_at from longtake.ledger_entries
where tenant_id = $1 and run_id = $2 order by seq, key;

-- name: plan_read
-- The frozen plan of a run, and the events of the fragments that were added to it. $1 tenant  $2 run id
select p.fingerprint, p.plan, p.input, p.policy, r.workflow, r.workflow_version,
    array(select e.data from longtake.events e where e.run_id = r.run_id and e.type = 'plan_expanded' order by e.seq)
        as fragments
from longtake.runs r join longtake.plans p on p.tenant_id = r.tenant_id and p.fingerprint = r.plan_fingerprint
where r.tenant_id = $1 and r.run_id = $2;

-- name: artifact_read
-- One published artifact. $1 tenant  $2 artifact id
select id, run_id, step, attempt, name, kind, object_key, sha256, bytes, content_type, published_at
from longtake.artifacts where tenant_id = $1 and id = $2;

-- name: artifacts_read
-- Published artifacts of a run. $1 tenant  $2 run id
select id, run_id, step, attempt, name, kind, object_key, sha256, bytes, content_type, published_at
from longtake.artifacts where tenant_id = $1 and run_id = $2 order by step, name;

-- name: command_read
-- One command with the state of the run it started, and, of an event that was kept, whether a step has it by now.
-- $1 tenant  $2 actor  $3 client command id
select c.client_command_id, c.kind, c.project, c.intent_hash, c.status, c.run_id, c.receipt, c.accepted_at,
    r.status as run_status,
    c.status = 'attached' and exists (
        select from longtake.events e
        where e.run_id = c.run_id and e.seq > (c.receipt->>'revision')::bigint and e.type = 'step_succeeded'
            and e.data->>'command_id' = c.client_command_id and e.data->>'actor' = c.actor
    ) as consumed
from longtake.commands c left join longtake.runs r on r.run_id = c.run_id
where c.tenant_id = $1 and c.actor = $2 and c.client_command_id = $3;

-- name: ready_check
-- Whether the authority answers.
select 1;

-- name: run_ids_all
-- Every run, for the auditor, a page after an id. $1 after  $2 limit
select run_id, tenant_id from longtake.runs where run_id > $1 order by run_id limit $2;

-- name: events_verify
-- Everything the chain covers, in order, of one run. $1 run id
select seq, id, type, version, data, meta, store_epoch, recorded_at, hash, tenant_id
from longtake.events where run_id = $1 order by seq;

-- name: projection_read
-- The projection of one run as it stands. $1 run id
select run_id, status, phase, label, revision, charged, refunded, quoted, cap, blockers, poll_at, summary, ended_at,
    poisoned, encode(head_hash, 'hex') as head_hash, account, actor, project
from longtake.runs where run_id = $1;

-- name: projection_steps
-- Step rows of one run as they stand. $1 run id
select key, ordinal, attempt, max_attempts, status, phase, label, external_ref, error_class, error_message,
    provider_cost, artifacts, started_at, updated_seq
from longtake.steps where run_id = $1 order by key;

-- name: projection_ledger
-- Sums of the ledger of one run. $1 run id
select coalesce(sum(amount) filter (where kind = 'charge'), 0)::bigint as charged,
    coalesce(sum(amount) filter (where kind = 'refund'), 0)::bigint as refunded
from longtake.ledger_entries where run_id = $1;

-- name: projection_replace_run
-- Put a rebuilt row in the place of a run's projection. $1 run id  $2 status  $3 phase  $4 label  $5 charged
-- $6 refunded  $7 blockers  $8 poisoned  $9 poll_at  $10 summary  $11 ended_at  $12 revision it was folded at
update longtake.runs set status = $2, phase = $3, label = $4, charged = $5, refunded = $6, blockers = $7,
    poisoned = $8, poll_at = $9, summary = $10, ended_at = $11
where run_id = $1 and revision = $12 returning run_id;

-- name: projection_delete_steps
-- Make room for the rebuilt step rows of a run. $1 run id
delete from longtake.steps where run_id = $1;

-- name: projection_insert_steps
-- Insert rebuilt step rows. $1 run id  $2 tenant  $3 keys  $4 ordinals  $5 attempts  $6 max attempts  $7 statuses
-- $8 phases  $9 labels  $10 external refs  $11 error classes  $12 error messages  $13 provider costs
-- $14 artifacts (joined by comma)  $15 started_at  $16 updated seqs
insert into longtake.steps (run_id, key, tenant_id, ordinal, attempt, max_attempts, status, phase, label, external_ref,
    error_class, error_message, provider_cost, artifacts, started_at, updated_seq)
select $1, u.key, $2, u.ordinal, u.attempt, u.max_attempts, u.status, u.phase, u.label, u.external_ref, u.error_class,
    u.error_message, u.provider_cost, string_to_array(u.artifacts, ','), u.started_at, u.seq
from unnest($3::text[], $4::integer[], $5::integer[], $6::integer[], $7::text[], $8::text[], $9::text[], $10::text[],
    $11::text[], $12::text[], $13::bigint[], $14::text[], $15::timestamptz[], $16::integer[])
    as u (key, ordinal, attempt, max_attempts, status, phase, label, external_ref, error_class, error_message,
          provider_cost, artifacts, started_at, seq);

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
select environment, store_epoch, transport_epoch, application from longtake.store;

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

-- name: errands_open
-- What decisions asked of admission, oldest first; a child whose parent has closed meanwhile is marked. $1 limit
select e.id, e.tenant_id as tenant, e.run_id, e.kind, e.payload, e.traceparent,
    exists (select from longtake.signals s
            where e.kind = 'start_child' and s.run_id = e.run_id and s.kind = 'parent_closed') as parent_closed
from longtake.errands e where e.settled_at is null order by e.created_at, e.id limit $1;

-- name: errands_settle
-- These are done. $1 ids  $2 reason
update longtake.errands e set settled_at = clock_timestamp(), reason = $2
from (select id from longtake.errands where id = any($1::uuid[]) and settled_at is null order by id for update) w
where e.id = w.id;

-- name: errand_answer
-- This one is done, and its answer is a fact for a run (P5). $1 errand  $2 reason  $3 signal id  $4 run id  $5 kind  $6 payload
with done as (
    update longtake.errands set settled_at = clock_timestamp(), reason = $2 where id = $1 and settled_at is null
    returning tenant_id
)
insert into longtake.signals (id, tenant_id, run_id, kind, payload)
select $3, tenant_id, $4, $5, $6 from done on conflict (id) do nothing;

-- name: queue_projects
-- Projects in which somebody in line may begin, or is to tell those in its way to make room, as far as one look tells;
-- under the project's lock it is asked again.
-- $1 limit
select q.tenant_id, q.project from longtake.scope_queue q
where (q.start_at is null or q.start_at <= clock_timestamp())
    and ((not exists (select from longtake.scopes s
                      where s.tenant_id = q.tenant_id and s.project = q.project and s.scope = any(q.scopes))
          and not exists (select from longtake.runs r where r.run_id = any(q.waits_for) and r.ended_at is null))
         or (q.supersedes
             and exists (select from longtake.scopes s
                         where s.tenant_id = q.tenant_id and s.project = q.project and s.scope = any(q.scopes)
                             and s.run_id <> all(q.waits_for))))
group by q.tenant_id, q.project order by min(q.place) limit $1;

-- name: queue_read
-- The line of a project, in the order of acceptance, and the time. $1 tenant  $2 project  $3 limit
select q.run_id, q.scopes, q.waits_for, q.start_at, q.supersedes, q.overtakes, clock_timestamp() as now
from longtake.scope_queue q where q.tenant_id = $1 and q.project = $2 order by q.place limit $3;

-- name: queue_join
-- A run gets in line. $1 tenant  $2 project  $3 run id  $4 scopes  $5 waits for  $6 start at  $7 supersedes  $8 overtakes
insert into longtake.scope_queue (tenant_id, project, run_id, scopes, waits_for, start_at, supersedes, overtakes)
values ($1, $2, $3, $4, $5, $6, $7, $8);

-- name: queue_wait
-- A run in line begins after these have ended. $1 run id  $2 run ids
update longtake.scope_queue set waits_for = $2 where run_id = $1;

-- name: runs_active
-- Which of these runs have not ended. $1 tenant  $2 run ids
select run_id from longtake.runs where tenant_id = $1 and run_id = any($2::uuid[]) and ended_at is null;

-- name: scopes_grant
-- A run leaves the line and owns its scopes. $1 tenant  $2 project  $3 run id  $4 scopes
with left_queue as (
    delete from longtake.scope_queue where run_id = $3
)
insert into longtake.scopes (tenant_id, project, scope, run_id) select $1, $2, s, $3 from unnest($4::text[]) as s;

-- name: queue_leave
-- A run that has ended leaves the line. $1 run id
delete from longtake.scope_queue where run_id = $1;

-- name: now_read
-- The authority's time.
select clock_timestamp();

