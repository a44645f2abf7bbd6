//! The rooms that somebody is in, or is joining, in this process: each one's bridge, its talk, and the browser's connection of the
//! moment.
use super::{conversation::RoomConversation, live_rooms::LiveRoom};
use crate::{
    call::leg::{Leg, Ways},
    deps::Deps,
};
use entities::{
    Error, Result,
    ids::SessionId,
    room::ErrorCode,
    session::{self, AnsweredBy, EndReason, EndedBy},
};
use futures_util::FutureExt;
use media::{
    bridge::MediaBridge,
    webrtc::{Change, Offered},
};
use rules::{
    room::machine::{Command, Phase},
    session::command::{Abandoned, Command as SessionCommand},
};
use runtime::supervise::panic_text;
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};
use tokio::{sync::watch, time::timeout};

/// Connects a browser to a room that is held here, instead of the one before. `false`: it is not held any more.
pub fn connect(deps: &Deps, session: SessionId, offered: Offered) -> bool {
    let mut all = deps.carriers.rooms.lock();
    let Some(live) = all.get_mut(&session) else {
        return false;
    };
    live.connected += 1;
    let (its, number) = (deps.clone(), live.connected);
    let changed = move |change| changed(&its, session, number, change);
    // A bridge has one connection at a time: two would share the agent's words between them.
    live.connection = None;
    live.is_there.send_replace(false);
    if live.is_joined {
        // It is not known yet whether the new one ever comes.
        live.tell(deps, Command::Lose(live.participant));
    }
    live.connection = Some(offered.connect(live.bridge.clone(), changed));
    true
}

/// The talk is over: the page is told, and let go.
pub fn close(deps: &Deps, session: SessionId, reason: &'static str) {
    let live = deps.carriers.rooms.lock().remove(&session);
    let Some(LiveRoom {
        bridge,
        talk,
        connection,
        ..
    }) = live
    else {
        return;
    };
    if let Some(talk) = talk {
        talk.abort();
    }
    bridge.close(reason);
    if let Some(connection) = connection {
        deps.runtime.spawn(connection.finish());
    }
}

/// What the connection of a room says, unless it was replaced.
fn changed(deps: &Deps, session: SessionId, number: u32, change: Change) {
    let all = deps.carriers.rooms.lock();
    let Some(live) = all.get(&session).filter(|live| live.connected == number) else {
        return;
    };
    live.is_there.send_replace(change != Change::Lost);
    let command = match change {
        // Whoever comes first waits for the agent.
        Change::Connected if !live.is_joined => return,
        Change::Connected => Command::Connect(live.participant),
        Change::Lost => Command::Lose(live.participant),
        Change::Back => Command::Regain(live.participant),
    };
    live.tell(deps, command);
}

impl LiveRoom {
    /// While the room is held, so that it hears things in the order in which they happened.
    fn tell(&self, deps: &Deps, command: Command) {
        deps.router.rooms().tell(self.room, command);
    }
}

/// Fetches the agent while the browser is being connected, once. When both are there, the participant has joined and the agent
/// talks.
pub fn fetch_agent(deps: &Deps, session: SessionId) {
    let mut all = deps.carriers.rooms.lock();
    let Some(live) = all.get_mut(&session) else { return };
    let Some(ways) = live.ways.take() else { return };
    let (its, leg, bridge, is_there) = (
        deps.clone(),
        live.leg.clone(),
        live.bridge.clone(),
        live.is_there.subscribe(),
    );
    let talk = async move {
        let talk = talk(&its, &leg, bridge, ways, is_there);
        let Err(panic) = AssertUnwindSafe(talk).catch_unwind().await else {
            return;
        };
        tracing::error!(panic = panic_text(&*panic), "a talk panicked");
        break_off(&its, &leg, "the agent failed".into());
    };
    live.talk = Some(deps.runtime.spawn(talk).abort_handle());
}

async fn talk(deps: &Deps, leg: &Arc<Leg>, bridge: Arc<MediaBridge>, ways: Ways, mut is_there: watch::Receiver<bool>) {
    let mut talk = match timeout(FETCHED_WITHIN, RoomConversation::prepare(deps, leg, bridge, ways)).await {
        Ok(Ok(talk)) => talk,
        Ok(Err((code, message))) => return give_up(deps, leg, code, message),
        Err(_) => {
            let message = format!(
                "the agent's provider did not answer within {} seconds",
                FETCHED_WITHIN.as_secs()
            );
            return give_up(deps, leg, ErrorCode::AgentUnreachable, message);
        }
    };
    // Whoever waits too long is found by the room's own deadline.
    if is_there.wait_for(|is_there| *is_there).await.is_err() {
        return;
    }
    talk.begin();
    match join(deps, leg).await {
        Ok(()) => talk.hold().await,
        Err(error) => {
            tracing::warn!(%error, "a room's talk could not begin");
            break_off(deps, leg, "the talk could not begin".into());
        }
    }
}

/// Well before the room's own deadline, which blames the browser.
const FETCHED_WITHIN: Duration = Duration::from_secs(10);

/// Whether somebody has joined or not: the room, its session, or both end by this.
fn break_off(deps: &Deps, leg: &Leg, why: String) {
    give_up(deps, leg, ErrorCode::InternalError, why.clone());
    let abandoned = Abandoned {
        status: session::Status::Failed,
        reason: EndReason::AgentError,
        by: EndedBy::System,
        why: Some(why.clone()),
    };
    let reason = EndReason::AgentError;
    for command in [
        SessionCommand::Abandon(abandoned),
        SessionCommand::Break { reason, why },
    ] {
        deps.router.sessions().tell(leg.session(), command);
    }
}

/// Before anybody has joined.
fn give_up(deps: &Deps, leg: &Leg, code: ErrorCode, message: String) {
    if let Some(live) = deps.carriers.rooms.lock().get(&leg.session().id) {
        live.tell(deps, Command::Fail { code, message });
    }
}

/// Both are there.
async fn join(deps: &Deps, leg: &Leg) -> Result<()> {
    let gone = || Error::NotFound("room");
    let rooms = &deps.carriers.rooms;
    let (room, participant) = {
        let mut all = rooms.lock();
        let live = all.get_mut(&leg.session().id).ok_or_else(gone)?;
        live.is_joined = true;
        (live.room, live.participant)
    };
    // The browser says it once: it is told until it stands.
    let connect = Command::Connect(participant);
    let room = deps.router.rooms().insist(room, connect).await?;
    if !matches!(room.phase, Phase::Joined { .. }) {
        // It has ended at this very moment.
        return Err(gone());
    }
    let answer = SessionCommand::Answer {
        by: AnsweredBy::Human,
        recording_id: deps.ids.next(),
    };
    deps.router.sessions().insist(leg.session(), answer).await?;
    if let Some(live) = rooms.lock().get(&leg.session().id)
        && !*live.is_there.borrow()
    {
        // It went before the room, or the session, could note that.
        live.tell(deps, Command::Lose(participant));
    }
    Ok(())
}
