//! The rooms that somebody is in, or is joining, in this process.
use crate::call::leg::{Control, Leg};
use entities::ids::{Owned, ParticipantId, RoomId, SessionId};
use media::{
    heard::Heard,
    webrtc::{Connection, Media},
    wire::Wire,
};
use runtime::clock::Busy;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{
    sync::{mpsc, watch},
    task::AbortHandle,
};

/// What a talk can be told before it listens.
const INBOX: usize = 16;

pub struct House {
    pub media: Media,
    held: Mutex<HashMap<SessionId, Held>>,
}

pub struct Held {
    pub(super) leg: Arc<Leg>,
    pub(super) room: Owned<RoomId>,
    pub(super) participant: ParticipantId,
    pub(super) wire: Arc<Wire>,
    pub(super) inbox: mpsc::Sender<(Control, Option<Busy>)>,
    /// Taken by the talk.
    pub(super) ways: Option<Ways>,
    /// Once there was everything that a talk needs.
    pub(super) is_joined: bool,
    pub(super) talk: Option<AbortHandle>,
    pub(super) connection: Option<Connection>,
    /// Counts the connections: one that was replaced has nothing to say.
    pub(super) connected: u32,
    /// Does the browser send?
    pub(super) is_there: watch::Sender<bool>,
}

impl House {
    pub fn new(media: Media) -> Self {
        House {
            media,
            held: Mutex::default(),
        }
    }

    pub fn held(&self) -> MutexGuard<'_, HashMap<SessionId, Held>> {
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
            ways: Some((heard, told)),
            is_joined: false,
            talk: None,
            connection: None,
            connected: 0,
            is_there: watch::Sender::new(false),
        };
        self.held().insert(leg.session().id, held);
    }

    /// `None`: there is no such room here. `false`: it has been told too much already.
    pub fn control(&self, session: SessionId, control: Control) -> Option<bool> {
        let all = self.held();
        let held = all.get(&session)?;
        // Heard when what is being said is over, which takes its real time: no clock waits for it.
        Some(held.inbox.try_send((control, None)).is_ok())
    }
}

/// How the talk learns what the participant does, and what others want of it.
pub type Ways = (mpsc::Receiver<Heard>, mpsc::Receiver<(Control, Option<Busy>)>);
