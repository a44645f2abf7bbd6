//! Books what a batch of commits moves, inside its transaction: each account is read and written once, however many movements
//! there are.
use entities::{
    Result, boxed,
    changes::Changes,
    connection::Connection,
    dispatch_block::{self, Reason},
    ids::{TenantId, TenantScoped},
    ledger::{self, Movement, What, account},
    values::{Env, Moment},
};
use rules::{
    credits::{
        chain,
        machine::{self, Turn},
        terms::Terms,
    },
    event::EventDraft,
};
use runtime::ids::Ids;
use std::collections::BTreeMap;

/// What follows from a batch's movements.
#[derive(Default)]
pub struct Booked {
    pub changes: Changes,
    pub events: Vec<EventDraft>,
    /// Tenants that may dispatch more, or no more, than before.
    pub turned: Vec<TenantId>,
}

/// What the writer books with.
pub struct Booking<'a> {
    pub terms: &'a Terms,
    pub ids: &'a Ids,
    pub now: Moment,
    /// The place of all these entries among all commits.
    pub seq: i64,
}

impl Booking<'_> {
    #[boxed]
    pub async fn book(&self, db: &Connection, movements: &[Movement]) -> Result<Booked> {
        let mut owners: Vec<_> = movements.iter().map(|moved| (moved.tenant_id, moved.env)).collect();
        owners.sort();
        owners.dedup();
        let known = account::of(db, &owners).await?;
        let mut open: BTreeMap<(TenantId, Env), account::Model> = known
            .into_iter()
            .map(|account| ((account.tenant_id, account.env), account))
            .collect();
        let mut booked = Booked::default();
        for movement in movements {
            let owner = (movement.tenant_id, movement.env);
            let account = match open.remove(&owner) {
                Some(account) => account,
                None => self.opened(owner, &mut booked)?,
            };
            let account = self.post(account, movement, &mut booked)?;
            open.insert(owner, account);
        }
        for owner in owners {
            if let Some(mut account) = open.remove(&owner) {
                account.version += 1;
                account.last_seq = self.seq;
                booked.changes.accounts.push(account);
            }
        }
        Ok(booked)
    }

    /// A new account begins with nothing but, in the test env, with what the operator's terms give.
    fn opened(&self, (tenant_id, env): (TenantId, Env), booked: &mut Booked) -> Result<account::Model> {
        let opening = self.terms.opening(tenant_id, env);
        let cents = opening.balance_cents;
        let empty = account::Model {
            balance_cents: entities::values::Cents(0),
            updated_at: self.now,
            ..opening
        };
        let what = What::Adjust {
            cents,
            note: "opening balance of the test env".into(),
        };
        self.post(empty, &Movement { tenant_id, env, what }, booked)
    }

    fn post(&self, account: account::Model, movement: &Movement, booked: &mut Booked) -> Result<account::Model> {
        let owner = TenantScoped::new(movement.tenant_id, movement.env, ());
        let posted = machine::post(account, movement, self.terms, self.now)?;
        let mut account = posted.account;
        for entry in posted.entries {
            account.entries += 1;
            let mut row = ledger::Model {
                tenant_id: account.tenant_id,
                env: account.env,
                n: account.entries,
                id: self.ids.next(),
                kind: entry.kind,
                from_book: entry.from,
                to_book: entry.to,
                cents: entry.cents,
                subject_id: entry.subject,
                note: entry.note,
                balance_after_cents: entry.balance_after,
                held_after_cents: entry.held_after,
                hash: String::new(),
                seq: self.seq,
                created_at: self.now,
            };
            row.hash = chain::hash(&account.last_hash, &row);
            account.last_hash.clone_from(&row.hash);
            booked.changes.ledger_entries.push(row);
        }
        booked
            .events
            .extend(posted.events.iter().map(|event| event.draft(owner)));
        let block = dispatch_block::Model {
            tenant_id: account.tenant_id,
            env: account.env,
            reason: Reason::Credits,
            since: self.now,
        };
        // The last turn counts: a block that is lifted in the same commit never was.
        match posted.turn {
            Some(Turn::Depleted) => {
                booked
                    .changes
                    .unblocked
                    .retain(|(tenant, env, _)| (*tenant, *env) != (block.tenant_id, block.env));
                booked.changes.blocks.push(block);
            }
            Some(Turn::Refilled) => {
                booked
                    .changes
                    .blocks
                    .retain(|known| (known.tenant_id, known.env) != (block.tenant_id, block.env));
                booked
                    .changes
                    .unblocked
                    .push((block.tenant_id, block.env, Reason::Credits));
            }
            None => {}
        }
        if posted.turn.is_some()
            || matches!(
                movement.what,
                What::TopUp { .. } | What::Adjust { .. } | What::Refund { .. } | What::RefundFailed { .. }
            )
        {
            booked.turned.push(account.tenant_id);
        }
        Ok(account)
    }
}
