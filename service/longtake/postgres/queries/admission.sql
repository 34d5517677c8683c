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

-- name: commands_copy_again
-- LT_COMMAND has lost what it had of the last seconds, whoever put it there. $1 seconds
update longtake.commands c set copied_at = null
from (
    select tenant_id, actor, client_command_id from longtake.commands
    where copied_at is not null and accepted_at > clock_timestamp() - make_interval(secs => $1)
    order by tenant_id, actor, client_command_id
    for update skip locked
) w
where (c.tenant_id, c.actor, c.client_command_id) = (w.tenant_id, w.actor, w.client_command_id)
returning 1;

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
