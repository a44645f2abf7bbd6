//! Preflights: what is to be expected of a campaign. Each reads the campaign's whole list, so a workspace has one at a time;
//! those who ask meanwhile for the same thing get the same answer, and one that nobody waits for any more ends.
use super::{
    bulkheads::Bulkheads,
    campaigns::{agent_of, check_sender, check_variables},
    error::{ApiError, ApiResult},
    extract::{Id, Nothing},
    gate::Caller,
    views::OutlookView,
};
use crate::app::State;
use actix_web::{HttpResponse, web::Data};
use actors::campaign::outlook;
use entities::{
    Error,
    campaign::{self, Model},
    ids::{CampaignId, TenantId},
    tally,
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use runtime::bulkhead::Permit;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// POST /v1/campaigns/{id}/preflight
pub async fn preflight(
    state: Data<State>,
    caller: Caller,
    Id(id): Id<CampaignId>,
    _: Nothing,
) -> ApiResult<HttpResponse> {
    let row = campaign::load(&state.deps.db.read, caller.own(id)).await?;
    let subject = Subject {
        campaign: id,
        version: row.version,
        tally: tally::load(&state.deps.db.read, id).await?,
        minute: state.deps.clock.now().millis() / 60_000,
    };
    let tenant = caller.tenant_id();
    let begin = |permit| look(state.clone(), caller, row, permit).boxed();
    let looking = state.preflights.join(&state.bulkheads, tenant, subject, begin)?;
    Ok(HttpResponse::Ok().json(&*looking.await?))
}

/// What an answer is about: whoever asks for the same while it is being found out shares it. It tells itself as of when
/// (`generated_at`): a contact changed, or a number barred, since then is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Subject {
    campaign: CampaignId,
    /// Its settings and its state.
    version: i32,
    /// Its contacts, as far as they came, went and moved.
    tally: tally::Model,
    minute: i64,
}

type Outcome = Result<Arc<OutlookView>, Error>;
type Looking<T> = Shared<BoxFuture<'static, T>>;

/// The preflights that run. Those who wait for one keep it running; held here weakly, it ends with the last of them.
pub struct Preflights<T: Clone = Outcome>(Mutex<HashMap<TenantId, Running<T>>>);

struct Running<T: Clone> {
    subject: Subject,
    looking: WeakShared<BoxFuture<'static, T>>,
}

impl<T: Clone> Default for Preflights<T> {
    fn default() -> Self {
        Preflights(Mutex::default())
    }
}

impl<T: Clone> Preflights<T> {
    /// The running one about that subject, or a new one; an error if the workspace, or the service, has no room for it.
    fn join(
        &self,
        bulkheads: &Bulkheads,
        tenant: TenantId,
        subject: Subject,
        begin: impl FnOnce(Permit) -> BoxFuture<'static, T>,
    ) -> ApiResult<Looking<T>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let running = all.get(&tenant).filter(|running| running.subject == subject);
        if let Some(looking) = running.and_then(|running| running.looking.upgrade()) {
            return Ok(looking);
        }
        let looking = begin(bulkheads.preflight(tenant)?).shared();
        // Those that have ended leave with the next one that begins.
        all.retain(|_, running| running.looking.upgrade().is_some());
        if let Some(weak) = looking.downgrade() {
            all.insert(tenant, Running { subject, looking: weak });
        }
        Ok(looking)
    }
}

async fn look(state: Data<State>, caller: Caller, row: Model, permit: Permit) -> Outcome {
    let now = state.deps.clock.now();
    let outlook = outlook::look(&state.deps, &row).await?;
    let has_agent = holds(agent_of(&state, &caller, &row.plan).await)?;
    let has_sender = holds(check_sender(&state, &caller, &row.plan))?;
    let is_filled = holds(check_variables(&state, &caller, row.id, &row.plan).await)?;
    drop(permit);
    let checked = (has_agent, has_sender, is_filled);
    Ok(Arc::new(OutlookView::of(&row, outlook, checked, now)))
}

/// Does it hold? What could not be found out is no answer.
fn holds<T>(checked: ApiResult<T>) -> Result<bool, Error> {
    match checked {
        Ok(_) => Ok(true),
        Err(ApiError::Service(error)) if error.retryable() => Err(error),
        Err(_) => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;
    use uuid::Uuid;

    fn about(campaign: u128, version: i32) -> Subject {
        let campaign = CampaignId(Uuid::from_u128(campaign));
        Subject {
            campaign,
            version,
            tally: tally::Model::new(campaign),
            minute: 0,
        }
    }

    /// Preflights that end when they are told.
    #[derive(Default)]
    struct Desk {
        bulkheads: Bulkheads,
        preflights: Preflights<u32>,
        begun: Mutex<Vec<oneshot::Sender<u32>>>,
    }

    impl Desk {
        fn ask(&self, tenant: u128, subject: Subject) -> ApiResult<Looking<u32>> {
            let tenant = TenantId(Uuid::from_u128(tenant));
            self.preflights.join(&self.bulkheads, tenant, subject, |permit| {
                let (end, ended) = oneshot::channel();
                self.begun.lock().unwrap().push(end);
                async move {
                    let _permit = permit;
                    ended.await.unwrap_or(0)
                }
                .boxed()
            })
        }
        fn begun(&self) -> usize {
            self.begun.lock().unwrap().len()
        }
        fn end(&self, value: u32) {
            // Whoever has left does not hear it.
            let _ = self.begun.lock().unwrap().pop().unwrap().send(value);
        }
    }

    fn refusal<T>(asked: ApiResult<T>) -> (&'static str, u64) {
        match asked.err().unwrap() {
            ApiError::TooMany(code, _, seconds) => (code, seconds),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn one_answer_for_all_who_ask_for_the_same_and_one_preflight_of_a_workspace() {
        let desk = Desk::default();
        let first = desk.ask(1, about(1, 1)).unwrap();
        let second = desk.ask(1, about(1, 1)).unwrap();
        assert_eq!(desk.begun(), 1, "shared");
        assert_eq!(
            refusal(desk.ask(1, about(2, 1))),
            ("rate_limited", 5),
            "another campaign"
        );
        assert_eq!(refusal(desk.ask(1, about(1, 2))), ("rate_limited", 5), "what it is now");
        let other = desk.ask(2, about(3, 1)).unwrap();
        assert_eq!(refusal(desk.ask(3, about(4, 1))), ("rate_limited", 5), "two in all");
        desk.end(30);
        assert_eq!(other.await, 30);
        desk.end(10);
        assert_eq!((first.await, second.await), (10, 10));
        let anew = desk.ask(1, about(1, 1)).unwrap();
        assert_eq!(desk.begun(), 1, "an answer is not kept");
        desk.end(11);
        assert_eq!(anew.await, 11);
    }

    #[tokio::test]
    async fn one_that_nobody_waits_for_ends_and_gives_its_place_back() {
        let desk = Desk::default();
        let (first, second) = (desk.ask(1, about(1, 1)).unwrap(), desk.ask(1, about(1, 1)).unwrap());
        drop(first);
        assert_eq!(
            refusal(desk.ask(1, about(2, 1))),
            ("rate_limited", 5),
            "one still waits"
        );
        drop(second);
        assert!(desk.begun.lock().unwrap()[0].is_closed(), "its work is dropped");
        let next = desk.ask(1, about(2, 1)).unwrap();
        desk.end(7);
        assert_eq!(next.await, 7);
    }
}
