//! A room's talk: from the agent's arrival to the last word, with captions for the page.
use crate::{
    call::leg::{Leg, Ways},
    conversation::Place,
    deps::Deps,
    voice::talk::Talk,
};
use entities::{
    boxed,
    room::ErrorCode,
    session::AnsweredBy,
    transcript::{Speaker, Turn},
};
use media::bridge::MediaBridge;
use std::sync::Arc;
use tokio::sync::broadcast::{self, error::RecvError};

/// The agent is there and knows its part.
pub struct RoomConversation {
    talk: Talk,
    turns: broadcast::Receiver<(usize, Turn)>,
    bridge: Arc<MediaBridge>,
}

impl RoomConversation {
    /// Fetches the agent, seconds at most: nobody is called to a room in which nobody can answer. Turns are captions from now on.
    #[boxed]
    pub async fn prepare(
        deps: &Deps,
        leg: &Arc<Leg>,
        bridge: Arc<MediaBridge>,
        ways: Ways,
    ) -> Result<Self, (ErrorCode, String)> {
        let turns = deps.listeners.listen(leg.session().id);
        let talk = Talk::prepare(deps, leg, bridge.clone(), ways, (Place::Room, None)).await;
        let mut talk = talk.map_err(|why| (ErrorCode::InternalError, why.to_owned()))?;
        talk.reach().await.map_err(|why| (ErrorCode::AgentUnreachable, why))?;
        Ok(RoomConversation { talk, turns, bridge })
    }

    /// The agent is about to speak.
    pub fn begin(&mut self) {
        self.talk.begin(AnsweredBy::Human);
    }

    /// See [`Talk::hold`].
    #[boxed]
    pub async fn hold(self) {
        let captions = captions(self.turns, &self.bridge);
        tokio::pin!(captions);
        tokio::select! {
            () = &mut captions => return,
            () = self.talk.hold() => {}
        }
        // The last words are shown too.
        captions.await;
    }
}

/// Until the call's end. What is said is shown; what tools do is not.
async fn captions(mut turns: broadcast::Receiver<(usize, Turn)>, bridge: &MediaBridge) {
    loop {
        match turns.recv().await {
            Ok((
                place,
                Turn {
                    role,
                    content: Some(text),
                    ..
                },
            )) if role != Speaker::Tool && !text.is_empty() => bridge.caption(place, role, text),
            // What the agent says may be known later than it is heard. Of a page that lags behind, some captions are missing.
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
