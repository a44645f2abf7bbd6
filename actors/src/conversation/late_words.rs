//! Words that are understood after their sound was answered: an agent that hears by itself does not wait for them.
//!
//! Everything that they would have done before its answer they do as soon as they are known: they take their place in the
//! transcript, and are listened to for the wish to be left alone.
use super::{
    judge::{Judge, No},
    wishes::no_in,
};
use crate::{
    call::leg::Leg,
    deps::Deps,
    room::speech_input::{LaterWords, UNKNOWN, Understood},
};
use entities::{
    agent::Definition,
    boxed,
    ids::{SessionId, TenantScoped},
};
use futures_util::{
    FutureExt, StreamExt,
    future::{BoxFuture, pending},
    stream::FuturesUnordered,
};
use rules::session::command::Command;

/// Of one talk; it is dropped with it.
#[derive(Default)]
pub struct LateWords {
    awaited: FuturesUnordered<BoxFuture<'static, Late>>,
    /// Who is told of them.
    session: Option<(Deps, TenantScoped<SessionId>)>,
}

/// Some that are known now.
pub struct Late {
    /// Of their turn.
    place: usize,
    /// What the agent had said before.
    after: String,
    understood: Understood,
}

impl LateWords {
    pub fn of(deps: &Deps, leg: &Leg) -> Self {
        LateWords {
            awaited: FuturesUnordered::new(),
            session: Some((deps.clone(), leg.session())),
        }
    }

    /// Those of the turn at that place, said when the agent had said the other.
    pub fn follow(&self, later: LaterWords, place: usize, after: String) {
        let late = later.known().map(move |understood| Late {
            place,
            after,
            understood,
        });
        self.awaited.push(late.boxed());
    }

    /// The next that are known; never resolves if none are awaited. May be dropped and called again.
    #[boxed]
    pub async fn next(&mut self) -> Late {
        match self.awaited.next().await {
            Some(late) => late,
            None => pending().await,
        }
    }

    /// What the wish in them is, if there is one; if not, a model is asked.
    pub fn take(&self, late: &Late, definition: &Definition, judge: &mut Judge) -> Option<No> {
        let words = late.understood.words.as_str();
        if words.is_empty() || words == UNKNOWN {
            return None;
        }
        if let Some((deps, session)) = &self.session {
            let (place, words) = (late.place, words.to_owned());
            deps.router
                .sessions()
                .tell(*session, Command::Understood { place, words });
        }
        let no = no_in(words, definition);
        if no.is_none() {
            judge.hear(&late.after, words);
        }
        no
    }

    /// Resolves with a wish in them, and never without one. May be dropped and called again.
    #[boxed]
    pub async fn no(&mut self, definition: &Definition, judge: &mut Judge) -> No {
        loop {
            let late = self.next().await;
            if let Some(no) = self.take(&late, definition, judge) {
                return no;
            }
        }
    }

    /// The wish in those that are still awaited: for what must not be done before it is known. Seconds at most.
    #[boxed]
    pub async fn last(&mut self, definition: &Definition, judge: &mut Judge) -> Option<No> {
        while let Some(late) = self.awaited.next().await {
            if let Some(no) = self.take(&late, definition, judge) {
                return Some(no);
            }
        }
        None
    }
}
