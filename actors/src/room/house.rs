//! The rooms that somebody is in, or is joining, in this process: each one's wire, its talk, and the browser's connection of the
//! moment.
use super::{
    machine::Command,
    media::{Change, Connection, Media, Offered},
    talk,
    wire::{Heard, Wire},
};
use crate::{
    carrier::{Control, Leg},
    clock::Busy,
    deps::Deps,
    session::machine::Command as SessionCommand,
    shell::Do,
    supervise::panic_text,
};
use entities::{
    Result,
    ids::{Owned, ParticipantId, RoomId, SessionId},
    session::{AnsweredBy, EndReason},
};
use futures_util::FutureExt;
use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{sync::mpsc, task::AbortHandle};

/// What a talk can be told before it listens.
const INBOX: usize = 16;

type Told = (Control, Option<Busy>);

pub struct House {
    pub media: Media,
    held: Mutex<HashMap<SessionId, Held>>,
}

struct Held {
    leg: Arc<Leg>,
    room: Owned<RoomId>,
    participant: ParticipantId,
    wire: Arc<Wire>,
    inbox: mpsc::Sender<Told>,
    /// For the talk, which begins when the browser is connected.
    before: Option<(mpsc::Receiver<Heard>, mpsc::Receiver<Told>)>,
    talk: Option<AbortHandle>,
    connection: Option<Connection>,
    /// Counts the connections: one that was replaced has nothing to say.
    connected: u32,
}

impl House {
    pub fn new(media: Media) -> Self {
        House {
            media,
            held: Mutex::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<SessionId, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn holds(&self, session: SessionId) -> bool {
        self.held().contains_key(&session)
    }

    /// A room that somebody is joining. Its session has a slot.
    pub fn open(&self, leg: Arc<Leg>, room: Owned<RoomId>, participant: ParticipantId) {
        let (wire, heard) = Wire::new();
        let (inbox, told) = mpsc::channel(INBOX);
        let held = Held {
            leg: leg.clone(),
            room,
            participant,
            wire,
            inbox,
            before: Some((heard, told)),
            talk: None,
            connection: None,
            connected: 0,
        };
        self.held().insert(leg.session().id, held);
    }

    /// Connects a browser to a room that is held here, instead of the one before. `false`: it is not held any more.
    pub fn connect(&self, deps: &Deps, session: SessionId, offered: Offered) -> bool {
        let mut all = self.held();
        let Some(held) = all.get_mut(&session) else {
            return false;
        };
        held.connected += 1;
        let (its, number) = (deps.clone(), held.connected);
        let changed = move |change| changed(&its, session, number, change);
        // A wire has one connection at a time: two would share the agent's words between them.
        held.connection = None;
        held.connection = Some(offered.connect(held.wire.clone(), changed));
        true
    }

    /// The talk is over: the page is told, and let go.
    pub fn close(&self, deps: &Deps, session: SessionId, reason: &'static str) {
        let held = self.held().remove(&session);
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

    /// `None`: there is no such room here. `false`: it has been told too much already.
    pub fn control(&self, session: SessionId, control: Control) -> Option<bool> {
        let all = self.held();
        let held = all.get(&session)?;
        // Heard when what is being said is over, which takes its real time: no clock waits for it.
        Some(held.inbox.try_send((control, None)).is_ok())
    }
}

/// What the connection of a room says, unless it was replaced.
fn changed(deps: &Deps, session: SessionId, number: u32, change: Change) {
    let current = {
        let all = deps.carriers.rooms.held();
        let held = all.get(&session).filter(|held| held.connected == number);
        held.map(|held| (held.room, held.participant))
    };
    let Some((room, participant)) = current else {
        return;
    };
    let command = match change {
        Change::Connected => {
            let its = deps.clone();
            deps.runtime.spawn(async move {
                if let Err(error) = begin(&its, room, session, participant).await {
                    tracing::warn!(%error, "a room's talk could not begin");
                }
            });
            return;
        }
        Change::Lost => Command::Lose(participant),
        Change::Back => Command::Regain(participant),
    };
    if let Some(tree) = deps.tree() {
        tree.rooms.tell(room, Do::tell(command, &deps.clock));
    }
}

/// The browser is connected: the first time the agent begins to talk.
async fn begin(deps: &Deps, room: Owned<RoomId>, session: SessionId, participant: ParticipantId) -> Result<()> {
    let Some(tree) = deps.tree() else { return Ok(()) };
    // The browser says it once: it is told until it stands.
    let connect = Do::tell(Command::Connect(participant), &deps.clock);
    tree.rooms.send(room, connect).await??;
    let house = &deps.carriers.rooms;
    let first = {
        let mut all = house.held();
        let held = all.get_mut(&session);
        held.and_then(|held| Some((held.leg.clone(), held.wire.clone(), held.before.take()?)))
    };
    let Some((leg, wire, (heard, told))) = first else {
        return Ok(());
    };
    let answer = SessionCommand::Answer {
        by: AnsweredBy::Human,
        recording_id: deps.ids.next(),
    };
    tree.sessions
        .send(leg.session(), Do::tell(answer, &deps.clock))
        .await??;
    let its = deps.clone();
    let mut all = house.held();
    // It may have ended at this very moment.
    if let Some(held) = all.get_mut(&session) {
        let talk = async move {
            let talk = talk::begin(&its, leg.clone(), wire, heard, told);
            let Err(panic) = AssertUnwindSafe(talk).catch_unwind().await else {
                return;
            };
            tracing::error!(panic = panic_text(&*panic), "a talk panicked");
            if let Some(tree) = its.tree() {
                let command = SessionCommand::Break {
                    reason: EndReason::AgentError,
                    why: "the agent failed".into(),
                };
                tree.sessions.tell(leg.session(), Do::tell(command, &its.clock));
            }
        };
        held.talk = Some(deps.runtime.spawn(talk).abort_handle());
    }
    Ok(())
}
