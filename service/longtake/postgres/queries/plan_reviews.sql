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
