//! Words that are understood after their sound was answered: an agent that hears by itself does not wait for them.
//!
//! Everything that they would have done before its answer they do as soon as they are known: they take their place in the
//! transcript, and are listened to for the wish to be left alone.
use super::{
    judge::{Judge, No},
    wishes::Wishes,
};
use crate::{
    call::leg::Leg,
    deps::Deps,
    voice::speech_input::{LaterWords, UNKNOWN, Understood},
};
use adapters::brain::OwnWords;
use entities::{
    boxed,
    ids::{SessionId, TenantScoped},
};
use futures_util::{
    FutureExt, StreamExt,
    future::{BoxFuture, pending},
    stream::FuturesUnordered,
};
use rules::{conversation::disclosure::Asked, session::command::Command};
use runtime::clock::Busy;
use std::collections::VecDeque;
use tokio::sync::mpsc;

/// Of one talk; it is dropped with it.
#[derive(Default)]
pub struct LateWords {
    awaited: FuturesUnordered<BoxFuture<'static, Late>>,
    /// Those that the brain tells.
    own: Option<Own>,
    /// Who is told of them.
    session: Option<(Deps, TenantScoped<SessionId>)>,
    /// Somebody has asked whether a machine speaks, in these words.
    asked: Option<(Asked, String)>,
}

/// What a brain that hears by itself has understood, utterance by utterance.
struct Own {
    words: mpsc::Receiver<OwnWords>,
    /// The turns whose words are to come, in that order, and what the agent had said before each.
    turns: VecDeque<(usize, String)>,
}

impl Own {
    /// May be dropped and called again. None: none are awaited.
    async fn next(&mut self) -> Option<Late> {
        if self.turns.is_empty() {
            return None;
        }
        let told = self.words.recv().await;
        if told.is_none() {
            self.turns.clear();
        }
        let (place, after) = self.turns.pop_front()?;
        let busy = Busy::default();
        let understood = Understood {
            words: told?.words,
            busy,
        };
        Some(Late {
            place,
            after,
            understood,
        })
    }
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
            own: None,
            session: Some((deps.clone(), leg.session())),
            asked: None,
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

    /// From now on the brain tells what it understands.
    pub fn listen_to(&mut self, words: mpsc::Receiver<OwnWords>) {
        let turns = VecDeque::new();
        self.own = Some(Own { words, turns });
    }

    /// What was said there will be told by the brain. `false`: it tells nothing.
    pub fn follow_own(&mut self, place: usize, after: &str) -> bool {
        let Some(own) = &mut self.own else { return false };
        own.turns.push_back((place, after.to_owned()));
        true
    }

    /// The next that are known. May be dropped and called again. None: none are awaited.
    async fn awaited(&mut self) -> Option<Late> {
        let LateWords { awaited, own, .. } = self;
        let own = async {
            match own {
                Some(own) => own.next().await,
                None => None,
            }
        };
        tokio::select! {
            Some(late) = awaited.next() => Some(late),
            Some(late) = own => Some(late),
            else => None,
        }
    }

    /// The next that are known; never resolves if none are awaited. May be dropped and called again.
    #[boxed]
    pub async fn next(&mut self) -> Late {
        match self.awaited().await {
            Some(late) => late,
            None => pending().await,
        }
    }

    /// What the wish in them is, if there is one; if not, a model is asked.
    pub fn take(&mut self, late: &Late, wishes: &Wishes, judge: &mut Judge) -> Option<No> {
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
        let no = wishes.no_in(words);
        if no.is_none() {
            judge.hear(&late.after, words);
            self.hear(words, wishes);
        }
        no
    }

    /// Words that hold no wish: do they ask whether a machine speaks?
    pub fn hear(&mut self, words: &str, wishes: &Wishes) {
        if let Some(asked) = wishes.asked(words) {
            self.asked = Some((asked, words.to_owned()));
        }
    }

    /// What was asked and is not answered yet. Said once.
    pub fn asked(&mut self) -> Option<(Asked, String)> {
        self.asked.take()
    }

    /// Resolves with a wish in them, and never without one. May be dropped and called again.
    #[boxed]
    pub async fn no(&mut self, wishes: &Wishes, judge: &mut Judge) -> No {
        loop {
            let late = self.next().await;
            if let Some(no) = self.take(&late, wishes, judge) {
                return no;
            }
        }
    }

    /// The wish in those that are still awaited: for what must not be done before it is known. Seconds at most.
    #[boxed]
    pub async fn last(&mut self, wishes: &Wishes, judge: &mut Judge) -> Option<No> {
        while let Some(late) = self.awaited().await {
            if let Some(no) = self.take(&late, wishes, judge) {
                return Some(no);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_brains_own_words_follow_in_their_order() {
        let (tell, told) = mpsc::channel(4);
        let mut late_words = LateWords::default();
        assert!(!late_words.follow_own(0, ""), "it tells nothing");
        late_words.listen_to(told);
        for (place, words) in [(1, "Yes."), (3, "No.")] {
            assert!(late_words.follow_own(place, "Good day."));
            tell.send(OwnWords { words: words.into() }).await.unwrap();
        }
        for (place, words) in [(1, "Yes."), (3, "No.")] {
            let late = late_words.next().await;
            let known = (late.place, late.after.as_str(), late.understood.words.as_str());
            assert_eq!(known, (place, "Good day.", words));
        }
        assert!(late_words.awaited().await.is_none(), "none are awaited");
        late_words.follow_own(5, "");
        drop(tell);
        assert!(late_words.awaited().await.is_none(), "nobody tells them any more");
    }
}
