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
