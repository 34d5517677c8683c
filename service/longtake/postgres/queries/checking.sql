-- name: dump_store
-- Which store it is, and the moment of the reading.
select environment, store_epoch, transport_epoch, clock_timestamp() as now from longtake.store;

-- name: dump_events
-- Every event, as the checker reads it.
select run_id::text as run, seq, tenant_id as tenant, id::text as id, type, version, data::text as data,
    meta::text as meta, tx_id::text::bigint as tx, position, store_epoch as epoch, recorded_at, hash
from longtake.events order by run_id, seq;

-- name: dump_commands
-- Every command with its receipt.
select tenant_id as tenant, actor, client_command_id as id, kind, project, channel, status, run_id::text as run,
    receipt::text as receipt, accepted_at, tx_id::text::bigint as tx
from longtake.commands order by accepted_at;

-- name: dump_runs
-- Every run's projection with its payer.
select run_id::text as run, tenant_id as tenant, project, actor, account, command_id as command,
    plan_fingerprint as fingerprint, store_epoch as epoch, revision, head_hash, status, phase, label, quoted, cap, charged,
    refunded, blockers, poisoned, poll_at, summary::text as summary, accepted_at, ended_at
from longtake.runs order by run_id;

-- name: dump_plans
-- Every frozen plan.
select tenant_id as tenant, fingerprint, plan::text as plan from longtake.plans;

-- name: dump_steps
-- Every step's projection.
select run_id::text as run, key, ordinal, attempt, max_attempts, status, phase, label, external_ref, error_class,
    error_message, provider_cost, artifacts, started_at, updated_seq
from longtake.steps order by run_id, key;

-- name: dump_effects
-- Every effect.
select id::text as id, tenant_id as tenant, run_id::text as run, step, attempt, kind, ordinal, pool, created_at,
    not_before, state, generation, published_at, lease_owner, lease_until, fence, leases, receipt::text as receipt,
    report_fence, disposition, closed_at
from longtake.effects order by run_id, created_at, id;

-- name: dump_claims
-- Every claim, in the order in which they were made.
select effect_id::text as effect, fence, run_id::text as run, step, attempt, kind, owner, claim_id::text as claim,
    claimed_at
from longtake.effect_claims order by claimed_at, fence;

-- name: dump_late_receipts
-- Receipts that came when their effect had one.
select effect_id::text as effect, fence, owner, receipt::text as receipt from longtake.late_receipts;

-- name: dump_ledger
-- Every ledger entry.
select key, tenant_id as tenant, run_id::text as run, account, kind, debit, credit, amount, step, cycle, seq,
    tx_id::text::bigint as tx
from longtake.ledger_entries order by run_id, seq, key;

-- name: dump_holds
-- Every hold.
select run_id::text as run, tenant_id as tenant, account, amount, released_at from longtake.holds;

-- name: dump_accounts
-- Every account.
select tenant_id as tenant, account, balance, held from longtake.accounts;

-- name: dump_inbox
-- Every callback that was kept.
select id::text as id, tenant_id as tenant, provider, dedupe_key as key, run_id::text as run, step, attempt, status, reason,
    copies
from longtake.inbox order by received_at;

-- name: dump_timers
-- Every timer that has not fired.
select run_id::text as run, key, due_at from longtake.timers order by due_at;

-- name: dump_signals
-- Every durable signal.
select id::text as id, run_id::text as run, kind, created_at, settled_at, reason from longtake.signals order by created_at;

-- name: dump_dead_letters
-- Every dead letter.
select source, subject, reason, body from longtake.dead_letters order by recorded_at;
