//! Top-ups at work: what the processor tells is looked up, decided by the machine and booked in one transaction, so that
//! notices that come at once, twice or in another order settle a payment once.
//!
//! The row of a top-up is written before the processor is asked for a page, and its page before anybody is told of it:
//! whatever a crash interrupts, no payment is without its row. What a lost notice left is asked for by [`reconcile`].
use crate::deps::Deps;
use adapters::stripe::{
    Failure,
    notice::{Story, Whose},
};
use entities::{
    Error, Result, boxed,
    connection::{Connection, Transaction},
    ids::{TenantId, TenantScoped, TopupId},
    topup::{self as store, Model as Topup, Status},
    values::Moment,
};
use rules::{
    commit::Commit,
    credits::topup::{self, Command, Effect, Misfit, NewTopup, News},
};

/// What came of something that was told.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// The top-up has moved.
    Moved(TopupId),
    /// It was known already, or is too old to count.
    Known(TopupId),
    /// There is no such top-up.
    Unknown,
    /// It does not fit the top-up and moves nothing.
    Misfit(TopupId, Misfit),
}

/// Top-ups of a workspace that may wait for their payment at once.
const MAX_PENDING: u64 = 100;
/// Questions to the processor begun in one round.
const QUESTIONS: u64 = 20;

/// Begins a top-up; with test keys the sandbox settles it in the same transaction. A repeat of the same request finds the
/// one it began.
#[boxed]
pub async fn begin(deps: &Deps, asked: NewTopup) -> Result<Topup> {
    let key = TenantScoped::new(asked.owner.0, asked.owner.1, asked.id);
    match store::load(&deps.db.read, key).await {
        Err(Error::NotFound(_)) => {}
        known => return known,
    }
    let born = topup::born(asked, deps.clock.now());
    let (row, effects) = match born.processor {
        store::Processor::Sandbox => {
            let command = topup::sandbox(&born);
            let settled = topup::transition(born, command, deps.clock.now());
            settled.map_err(|misfit| Error::Internal(format!("the sandbox's payment: {misfit}")))?
        }
        store::Processor::Stripe => {
            let pending = store::count_pending(&deps.db.read, (born.tenant_id, born.env)).await?;
            if pending >= MAX_PENDING {
                let why = format!("{pending} top-ups are waiting for payment; pay one, or wait until it expires");
                return Err(Error::PlanLimit(why));
            }
            (born, Vec::new())
        }
    };
    deps.writer
        .commit(row.tenant_id.into(), commit(row.clone(), &effects))
        .await?;
    Ok(row)
}

/// Opens the page of a top-up that has none yet. A refusal of the processor makes it fail; while the processor cannot be
/// asked it stays as it is, and the answer is [`Error::Unavailable`].
#[boxed]
pub async fn open_page(deps: &Deps, row: Topup) -> Result<Topup> {
    let needs_page = row.status == Status::Pending && row.checkout_url.is_none();
    let Some(stripe) = deps.payments.stripe.as_ref().filter(|_| needs_page) else {
        return Ok(row);
    };
    deps.pass(row.tenant_id).await?;
    let command = match stripe.open(&row, &format!("{}/", deps.base_url)).await {
        Ok(page) => Command::Opened {
            session_id: page.session_id,
            checkout_url: page.url,
        },
        Err(Failure::Refused(why)) => {
            tracing::error!(topup_id = %row.id, why, "Stripe refused to open a payment page");
            Command::Refused
        }
        Err(failure @ Failure::Passing(_)) => return Err(Error::Unavailable(failure.to_string())),
    };
    let key = row.key();
    let (row, _) = command_one(deps, key, command).await?;
    Ok(row)
}

/// Hears what Stripe tells of a top-up.
#[boxed]
pub async fn hear(deps: &Deps, story: Story) -> Result<Heard> {
    let heard = match owner_of(deps, &story).await? {
        Some(tenant) => {
            let clock = deps.clock.clone();
            let hearing = deps.writer.run(tenant, move |db| {
                let (story, now) = (story.clone(), clock.now());
                Box::pin(async move { hear_one(db, story, now).await })
            });
            hearing.await?
        }
        None => Heard::Unknown,
    };
    match &heard {
        Heard::Moved(id) => tracing::info!(topup_id = %id, "a top-up has moved"),
        Heard::Known(id) => tracing::debug!(topup_id = %id, "nothing new about a top-up"),
        Heard::Unknown => tracing::warn!("Stripe reports a top-up that is not known here"),
        Heard::Misfit(id, misfit) => {
            tracing::error!(topup_id = %id, %misfit, "a payment does not fit its top-up: nothing was booked, look at it in Stripe's dashboard");
        }
    }
    Ok(heard)
}

/// Whose top-up it tells of.
#[boxed]
pub async fn owner_of(deps: &Deps, story: &Story) -> Result<Option<TenantId>> {
    Ok(told_of(&deps.db.read, &story.of).await?.map(|row| row.tenant_id))
}

async fn told_of(db: &Connection, whose: &Whose) -> Result<Option<Topup>> {
    match whose {
        Whose::Topup(id) => store::of_stripe(db, *id).await,
        Whose::Payment(intent_id) => store::of_payment(db, intent_id).await,
    }
}

async fn hear_one(db: &Transaction, story: Story, now: Moment) -> Result<(Heard, Commit)> {
    let nothing = |heard| Ok((heard, Commit::default()));
    let Some(row) = told_of(db, &story.of).await? else {
        return nothing(Heard::Unknown);
    };
    let id = row.id;
    if let News::Paid(payment) | News::Refunded { payment, .. } = &story.news {
        // One payment settles one top-up.
        let settled = store::of_payment(db, &payment.intent_id).await?;
        if settled.is_some_and(|settled| settled.id != id) {
            return nothing(Heard::Misfit(id, Misfit::Payment));
        }
    }
    let command = Command::Told {
        session_id: story.session_id,
        news: story.news,
    };
    match topup::transition(row.clone(), command, now) {
        Err(misfit) => nothing(Heard::Misfit(id, misfit)),
        Ok((after, _)) if after == row => nothing(Heard::Known(id)),
        Ok((after, effects)) => Ok((Heard::Moved(id), commit(successor(after), &effects))),
    }
}

/// One command to one top-up; answers how it is then, and what is to be done.
async fn command_one(deps: &Deps, key: TenantScoped<TopupId>, command: Command) -> Result<(Topup, Vec<Effect>)> {
    let clock = deps.clock.clone();
    let moved = deps.writer.run(key.tenant_id, move |db| {
        let (command, now) = (command.clone(), clock.now());
        Box::pin(async move {
            let row = store::load(db, key).await?;
            match topup::transition(row.clone(), command, now) {
                Ok((after, effects)) if after != row => {
                    let after = successor(after);
                    let commit = commit(after.clone(), &effects);
                    Ok(((after, effects), commit))
                }
                Ok((after, effects)) => Ok(((after, effects), Commit::default())),
                Err(misfit) => Err(Error::Internal(format!("top-up {}: {misfit}", row.id))),
            }
        })
    });
    moved.await
}

fn successor(mut row: Topup) -> Topup {
    row.version += 1;
    row
}

/// The row and its lines of the ledger.
fn commit(row: Topup, effects: &[Effect]) -> Commit {
    let mut commit = Commit::default();
    commit.changes.topups.push(row);
    for effect in effects {
        match effect {
            Effect::Move(movement) => commit.changes.movements.push(movement.clone()),
            // After the commit.
            Effect::Ask { .. } => {}
        }
    }
    commit
}

/// Asks what became of top-ups whose notices may be lost, a few at a time. Answers whether there were any.
#[boxed]
pub async fn reconcile(deps: &Deps) -> Result<bool> {
    let due = due(deps, deps.clock.now(), QUESTIONS).await?;
    for key in &due {
        let work = ask(deps.clone(), *key);
        deps.jobs
            .run(&deps.payments.asking, key.id, "question about a top-up", work);
    }
    Ok(!due.is_empty())
}

/// Will there be any by then?
#[boxed]
pub async fn comes_due(deps: &Deps, by: Moment) -> Result<bool> {
    Ok(!due(deps, by, 1).await?.is_empty())
}

async fn due(deps: &Deps, by: Moment, limit: u64) -> Result<Vec<TenantScoped<TopupId>>> {
    if deps.payments.stripe.is_none() {
        return Ok(Vec::new());
    }
    store::due(&deps.db.read, deps.share(), by, limit).await
}

/// The tick says whether to ask, and puts the next question off: a processor that does not answer is asked again then.
async fn ask(deps: Deps, key: TenantScoped<TopupId>) -> Result<()> {
    let (_, effects) = command_one(&deps, key, Command::Tick).await?;
    let Some(stripe) = &deps.payments.stripe else {
        return Ok(());
    };
    for effect in effects {
        let Effect::Ask { session_id } = effect else { continue };
        deps.pass(key.tenant_id).await?;
        match stripe.look(&session_id).await {
            Ok(Some(story)) => {
                hear(&deps, story).await?;
            }
            Ok(None) => {}
            Err(failure) => {
                tracing::warn!(topup_id = %key.id, %failure, "the outcome of a top-up is not known; Stripe is asked again later");
            }
        }
    }
    Ok(())
}
