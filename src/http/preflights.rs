//! The preflights that run: one of each workspace, shared by those who ask for the same thing.
use super::{bulkheads::Bulkheads, error::ApiResult, views::OutlookView};
use entities::{
    Error,
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

/// What an answer is about: whoever asks for the same while it is being found out shares it. It tells itself as of when
/// (`generated_at`): a contact changed, or a number barred, since then is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub campaign: CampaignId,
    /// Its settings and its state.
    pub version: i32,
    /// Its contacts, as far as they came, went and moved.
    pub tally: tally::Model,
    pub minute: i64,
}

pub type PreflightOutcome = Result<Arc<OutlookView>, Error>;

pub type Looking<T> = Shared<BoxFuture<'static, T>>;

/// The preflights that run. Those who wait for one keep it running; held here weakly, it ends with the last of them.
pub struct Preflights<T: Clone = PreflightOutcome>(Mutex<HashMap<TenantId, Running<T>>>);

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
    pub fn join(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::error::ApiError;
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
            ApiError::TooMany(code, _, seconds) => (code.as_str(), seconds),
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
