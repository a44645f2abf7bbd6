//! The rooms that somebody is in, or is joining, in this process.
use crate::call::leg::{Control, Leg, Ways};
use entities::ids::{ParticipantId, RoomId, SessionId, TenantScoped};
use media::{
    bridge::MediaBridge,
    webrtc::{Connection, Media},
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

pub struct LiveRooms {
    pub media: Media,
    rooms: Mutex<HashMap<SessionId, LiveRoom>>,
}

pub struct LiveRoom {
    pub(super) leg: Arc<Leg>,
    pub(super) room: TenantScoped<RoomId>,
    pub(super) participant: ParticipantId,
    pub(super) bridge: Arc<MediaBridge>,
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

impl LiveRooms {
    pub fn new(media: Media) -> Self {
        LiveRooms {
            media,
            rooms: Mutex::default(),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, LiveRoom>> {
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn contains(&self, session: SessionId) -> bool {
        self.lock().contains_key(&session)
    }

    /// A room that somebody is joining. Its session has a slot.
    pub fn open(&self, leg: Arc<Leg>, room: TenantScoped<RoomId>, participant: ParticipantId) {
        let (bridge, heard) = MediaBridge::new();
        let (inbox, told) = mpsc::channel(INBOX);
        let live = LiveRoom {
            leg: leg.clone(),
            room,
            participant,
            bridge,
            inbox,
            ways: Some((heard, told)),
            is_joined: false,
            talk: None,
            connection: None,
            connected: 0,
            is_there: watch::Sender::new(false),
        };
        self.lock().insert(leg.session().id, live);
    }

    /// `None`: there is no such room here. `false`: it has been told too much already.
    pub fn control(&self, session: SessionId, control: Control) -> Option<bool> {
        let all = self.lock();
        let live = all.get(&session)?;
        // Heard when what is being said is over, which takes its real time: no clock waits for it.
        Some(live.inbox.try_send((control, None)).is_ok())
    }
}
