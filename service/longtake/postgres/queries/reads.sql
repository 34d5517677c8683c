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
-- The stored summary with what its reading needs; the epoch is the store's, as If-Match wants it (P2). `held` says whether
-- all that is open of the run is due and unpublished while the window of a pool of it is full (P12, P20).
-- $1 tenant  $2 run id  $3 smallest window  $4 window by slot
select r.summary, r.poll_at, r.revision, r.status, clock_timestamp() as now,
    (select store_epoch from longtake.store) as store_epoch,
    case when r.status in ('accepted', 'running') and coalesce((
            select bool_and(e.state = 'queued' and e.published_at is null and e.not_before <= clock_timestamp())
            from longtake.effects e where e.run_id = r.run_id and e.closed_at is null), false)
    then exists (
        select from (select distinct e.pool from longtake.effects e
                     where e.run_id = r.run_id and e.closed_at is null) mine
        where greatest($3::bigint, $4::bigint * (
                select coalesce(sum(p.slots), 0) from longtake.incarnations i, unnest(i.pools, i.slots) as p (pool, slots)
                where i.alive_until > clock_timestamp() and 'worker' = any(i.roles) and p.pool = mine.pool))
            <= (select count(*) from longtake.effects e
                where e.closed_at is null and e.state = 'queued' and e.published_at is not null
                    and e.not_before <= clock_timestamp() and e.pool = mine.pool))
    else false end as held
from longtake.runs r where r.tenant_id = $1 and r.run_id = $2;

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
