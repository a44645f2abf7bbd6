//! Where recordings are made and kept, and the sounds of calls that have ended a moment ago.
use super::lines::Lines;
use adapters::recording::{spool::Spools, vault::Vault, voice::Voice};
use bytes::Bytes;
use entities::ids::RecordingId;
use runtime::job::Running;
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Semaphore;

pub struct Studio {
    pub voice: Voice,
    pub vault: Vault,
    /// What lines carry, until it is a recording.
    pub spools: Spools,
    pub lines: Lines,
    pub(super) running: Running<RecordingId>,
    /// Through the spools: one at a time.
    pub(super) sweeping: Running<&'static str>,
    /// Of calls that have ended a moment ago: G.711 mu-law of some turns, by their place.
    pub(super) sounds: Mutex<HashMap<RecordingId, Vec<(usize, Bytes)>>>,
    pub(super) permits: Semaphore,
    pub(super) permits_of_lines: Semaphore,
}

/// Hours of sound, in quarters, that are made at once: a minute of both sides is 2 MB, three times over while it is made.
pub(super) const AT_ONCE: usize = 8;

/// Bytes of own sounds that are kept until they are stored; of further calls the service's voice speaks.
const MAX_KEPT: usize = 256 * 1024 * 1024;

impl Studio {
    pub fn new(voice: Voice, vault: Vault, spools: Spools) -> Self {
        Studio {
            voice,
            vault,
            spools,
            lines: Lines::default(),
            running: Running::default(),
            sweeping: Running::default(),
            sounds: Mutex::default(),
            permits: Semaphore::new(AT_ONCE),
            permits_of_lines: Semaphore::new(AT_ONCE),
        }
    }

    pub(super) fn sounds(&self) -> MutexGuard<'_, HashMap<RecordingId, Vec<(usize, Bytes)>>> {
        self.sounds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sounds of a call that has ended, until its recording is stored or erased.
    pub fn keep(&self, recording: RecordingId, sounds: Vec<(usize, Bytes)>) {
        let mut all = self.sounds();
        let size = |sounds: &Vec<(usize, Bytes)>| sounds.iter().map(|(_, sound)| sound.len()).sum::<usize>();
        let kept: usize = all.values().map(size).sum();
        if !sounds.is_empty() && kept + size(&sounds) <= MAX_KEPT {
            all.insert(recording, sounds);
        }
    }
}
