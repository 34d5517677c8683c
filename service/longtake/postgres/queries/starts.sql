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
