-- The laws of money that a row can break, as constraints
-- depends: 0005_families

-- migrate: apply

-- Whose money it is: an entry names a run, and that run's tenant and account (H49).
alter table longtake.runs add constraint run_has_one_payer unique (run_id, tenant_id, account);
alter table longtake.ledger_entries add constraint payer_is_the_runs
    foreign key (run_id, tenant_id, account) references longtake.runs (run_id, tenant_id, account);
alter table longtake.holds add constraint payer_is_the_runs
    foreign key (run_id, tenant_id, account) references longtake.runs (run_id, tenant_id, account);

-- A key says what it is the key of, so nothing can be charged or given back twice under two names (H45, P9).
alter table longtake.ledger_entries add constraint key_is_derived check (
    key = kind || ':' || run_id || case when step is null then '' else ':' || step || ':' || cycle end);
alter table longtake.ledger_entries add constraint cycle_is_of_a_step check (
    (step is null) = (cycle is null) and (cycle is null or cycle >= 1));

-- Credits go from the account to where they wait, and back; nowhere else.
alter table longtake.ledger_entries add constraint sides_are_known check (
    case kind when 'charge' then debit = account and credit = 'system:escrow'
              else debit = 'system:escrow' and credit = account end);

-- Entries are written in the order of time, so a coarse index finds the latest (H52).
create index ledger_by_time on longtake.ledger_entries using brin (recorded_at);

-- A refund gives back what a charge of the same cycle has taken.
alter table longtake.ledger_entries add column gives_back text
    generated always as (case when kind = 'refund' then 'charge' || substr(key, 7) end) stored;
alter table longtake.ledger_entries add constraint refund_has_its_charge
    foreign key (gives_back) references longtake.ledger_entries (key);

-- migrate: rollback
-- Migrations go forward only.
