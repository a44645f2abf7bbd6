//! Who makes clones, and what is under way.
use adapters::voice_clone::{
    elevenlabs::Elevenlabs,
    provider::{Cloner, Sandbox},
};
use entities::{ids::VoiceId, voice::Maker};
use runtime::{bulkhead::Bulkhead, job::Running};
use tokio::sync::Semaphore;

/// Who makes clones, and what is under way.
pub struct Cloning {
    sandbox: Sandbox,
    live: Option<Elevenlabs>,
    /// A training takes no longer.
    pub training_seconds: i64,
    pub(super) trainings: Running<VoiceId>,
    pub(super) erasures: Running<VoiceId>,
    /// Examinations: each holds one file in memory.
    pub(super) examinations: Semaphore,
    /// Uploads: each holds one file in memory.
    pub uploads: Bulkhead,
}

/// Voices whose samples are examined at once.
const AT_ONCE: usize = 2;

impl Cloning {
    pub fn new(sandbox: Sandbox, live: Option<Elevenlabs>, training_seconds: i64) -> Self {
        Cloning {
            sandbox,
            live,
            training_seconds,
            trainings: Running::default(),
            erasures: Running::default(),
            examinations: Semaphore::new(AT_ONCE),
            uploads: uploads(),
        }
    }

    /// None: the operator has configured no provider.
    pub fn of(&self, maker: Maker) -> Option<&dyn Cloner> {
        match maker {
            Maker::Sandbox => Some(&self.sandbox),
            Maker::Elevenlabs => self.live.as_ref().map(|live| live as &dyn Cloner),
        }
    }
}

/// Uploads at once, of one tenant and of all: each holds one file in memory.
const MAX_OF_TENANT: usize = 2;

const MAX_UPLOADS: usize = 8;

/// Who uploads.
pub fn uploads() -> Bulkhead {
    Bulkhead::new(MAX_OF_TENANT, MAX_UPLOADS)
}
