//! When the agent falls silent for somebody who speaks, goes on, or stops for good.
use super::speech_input::Speaking;
use futures_util::future::pending;
use tokio::sync::watch;

/// What the other side's voice makes of the agent's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cue {
    /// For now.
    FallSilent,
    GoOn,
    /// For good.
    Stop,
}

/// The next one. `heard`: the last utterance that the agent need not stop for.
pub async fn cue(speaking: &mut watch::Receiver<Speaking>, heard: u64, is_silent: bool) -> Cue {
    let cue = |speaking: &Speaking| match (speaking.sure > heard, speaking.begun > heard.max(speaking.nothing)) {
        (true, _) => Some(Cue::Stop),
        (false, true) => (!is_silent).then_some(Cue::FallSilent),
        (false, false) => is_silent.then_some(Cue::GoOn),
    };
    let next = match speaking.has_changed() {
        Ok(_) => {
            let next = speaking.wait_for(|speaking| cue(speaking).is_some()).await;
            next.ok().and_then(|speaking| cue(&speaking))
        }
        // Nobody is heard any more: what was begun will never be over.
        Err(_) => {
            let last = *speaking.borrow();
            cue(&last).filter(|cue| *cue == Cue::Stop)
        }
    };
    match next {
        Some(cue) => cue,
        None if is_silent => Cue::GoOn,
        None => pending().await,
    }
}
