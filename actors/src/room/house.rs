//! The rooms that somebody is in, or is joining, in this process: each one's wire, its talk, and the browser's connection of the
//! moment.
use super::{
    live_rooms::{Held, Ways},
    talk::RoomTalk,
};
use crate::{call::leg::Leg, deps::Deps};
use entities::{
    Error, Result,
    ids::SessionId,
    room::ErrorCode,
    session::{self, AnsweredBy, EndReason, EndedBy},
};
use futures_util::FutureExt;
use media::{
    webrtc::{Change, Offered},
    wire::Wire,
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
    let mut all = deps.carriers.rooms.held();
    let Some(held) = all.get_mut(&session) else {
        return false;
    };
    held.connected += 1;
    let (its, number) = (deps.clone(), held.connected);
    let changed = move |change| changed(&its, session, number, change);
    // A wire has one connection at a time: two would share the agent's words between them.
    held.connection = None;
    held.is_there.send_replace(false);
    if held.is_joined {
        // It is not known yet whether the new one ever comes.
        held.tell(deps, Command::Lose(held.participant));
    }
    held.connection = Some(offered.connect(held.wire.clone(), changed));
    true
}

/// The talk is over: the page is told, and let go.
pub fn close(deps: &Deps, session: SessionId, reason: &'static str) {
    let held = deps.carriers.rooms.held().remove(&session);
    let Some(Held {
        wire, talk, connection, ..
    }) = held
    else {
        return;
    };
    if let Some(talk) = talk {
        talk.abort();
    }
    wire.close(reason);
    if let Some(connection) = connection {
        deps.runtime.spawn(connection.finish());
    }
}

/// What the connection of a room says, unless it was replaced.
fn changed(deps: &Deps, session: SessionId, number: u32, change: Change) {
    let all = deps.carriers.rooms.held();
    let Some(held) = all.get(&session).filter(|held| held.connected == number) else {
        return;
    };
    held.is_there.send_replace(change != Change::Lost);
    let command = match change {
        // Whoever comes first waits for the agent.
        Change::Connected if !held.is_joined => return,
        Change::Connected => Command::Connect(held.participant),
        Change::Lost => Command::Lose(held.participant),
        Change::Back => Command::Regain(held.participant),
    };
    held.tell(deps, command);
}

impl Held {
    /// While the room is held, so that it hears things in the order in which they happened.
    fn tell(&self, deps: &Deps, command: Command) {
        deps.router.rooms().tell(self.room, command);
    }
}

/// Fetches the agent while the browser is being connected, once. When both are there, the participant has joined and the agent
/// talks.
pub fn fetch_agent(deps: &Deps, session: SessionId) {
    let mut all = deps.carriers.rooms.held();
    let Some(held) = all.get_mut(&session) else { return };
    let Some(ways) = held.ways.take() else { return };
    let (its, leg, wire, is_there) = (
        deps.clone(),
        held.leg.clone(),
        held.wire.clone(),
        held.is_there.subscribe(),
    );
    let talk = async move {
        let talk = talk(&its, &leg, wire, ways, is_there);
        let Err(panic) = AssertUnwindSafe(talk).catch_unwind().await else {
            return;
        };
        tracing::error!(panic = panic_text(&*panic), "a talk panicked");
        break_off(&its, &leg, "the agent failed".into());
    };
    held.talk = Some(deps.runtime.spawn(talk).abort_handle());
}

async fn talk(deps: &Deps, leg: &Arc<Leg>, wire: Arc<Wire>, ways: Ways, mut is_there: watch::Receiver<bool>) {
    let mut talk = match timeout(FETCHED_WITHIN, RoomTalk::prepare(deps, leg, wire, ways)).await {
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
    if let Some(held) = deps.carriers.rooms.held().get(&leg.session().id) {
        held.tell(deps, Command::Fail { code, message });
    }
}

/// Both are there.
async fn join(deps: &Deps, leg: &Leg) -> Result<()> {
    let gone = || Error::NotFound("room");
    let house = &deps.carriers.rooms;
    let (room, participant) = {
        let mut all = house.held();
        let held = all.get_mut(&leg.session().id).ok_or_else(gone)?;
        held.is_joined = true;
        (held.room, held.participant)
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
    if let Some(held) = house.held().get(&leg.session().id)
        && !*held.is_there.borrow()
    {
        // It went before the room, or the session, could note that.
        held.tell(deps, Command::Lose(participant));
    }
    Ok(())
}
