//! The sandbox carrier: in-process and deterministic. A number's last digit fixes how its call goes.
//!
//! | digit | outcome |
//! |---|---|
//! | 1 | busy |
//! | 2 | rings in vain: no_answer |
//! | 3 | a voicemail answers |
//! | 4 | the carrier rejects the call: failed |
//! | 9 | busy on the first attempt, then a talk |
//! | others | a talk: completed |
//!
//! In a talk the sandbox plays the person and the agent's own brain the agent; both sides' words go through the session.
use super::{Carrier, Outgoing};
use crate::{
    brain::{self, Line},
    clock::Busy,
    deps::Deps,
    session::machine::{Command, Refusal},
    shell::Do,
};
use entities::{ids::SessionId, session::EndedBy, transcript::Speaker};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::task::AbortHandle;

pub struct Sandbox {
    /// Ringing and talking times are divided by it.
    speed: f64,
    live: Arc<Mutex<HashMap<SessionId, AbortHandle>>>,
}

impl Sandbox {
    pub fn new(speed: f64) -> Self {
        Sandbox {
            speed,
            live: Arc::default(),
        }
    }
}

fn lock(live: &Mutex<HashMap<SessionId, AbortHandle>>) -> MutexGuard<'_, HashMap<SessionId, AbortHandle>> {
    live.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Carrier for Sandbox {
    fn place(&self, deps: &Deps, call: Arc<Outgoing>) {
        let session = call.session.id;
        let busy = deps.clock.busy();
        let line = SandboxCall {
            deps: deps.clone(),
            speed: self.speed,
            call,
            busy: Some(busy),
        };
        // Held while the task starts, so that it cannot end before it is entered.
        let mut live = lock(&self.live);
        let entries = self.live.clone();
        let task = deps.runtime.spawn(async move {
            line.run().await;
            lock(&entries).remove(&session);
        });
        live.insert(session, task.abort_handle());
    }

    fn hang_up(&self, session: SessionId) {
        if let Some(task) = lock(&self.live).remove(&session) {
            task.abort();
        }
    }
}

/// What the person says, one line after each of the agent's.
const PERSON: [&str; 3] = [
    "Hello, yes, this is me.",
    "That sounds good to me.",
    "Thank you, goodbye.",
];
/// Speaking takes this long per character, at speed 1.
const MS_PER_CHARACTER: u64 = 55;

struct SandboxCall {
    deps: Deps,
    speed: f64,
    call: Arc<Outgoing>,
    /// Given up while waiting.
    busy: Option<Busy>,
}

impl SandboxCall {
    async fn run(mut self) {
        match (self.call.to.last_digit(), self.call.attempt) {
            (1, _) | (9, 1) => {
                self.wait(400).await;
                self.tell(Command::Refuse(Refusal::Busy));
            }
            (2, _) => {
                self.wait(300).await;
                self.tell(Command::Ring);
                self.wait(u64::try_from(self.call.ring_timeout.as_millis()).unwrap_or(u64::MAX))
                    .await;
                self.tell(Command::Refuse(Refusal::NoAnswer));
            }
            (3, _) => {
                self.pick_up_after(4_000).await;
                self.tell(Command::AnswerByMachine);
            }
            (4, _) => {
                self.wait(400).await;
                self.tell(Command::Refuse(Refusal::Rejected(
                    "the sandbox rejects numbers that end in 4".into(),
                )));
            }
            _ => {
                self.pick_up_after(1_500).await;
                self.tell(Command::Answer);
                self.talk().await;
            }
        }
    }

    async fn pick_up_after(&mut self, ms: u64) {
        self.wait(300).await;
        self.tell(Command::Ring);
        self.wait(ms).await;
    }

    async fn talk(&mut self) {
        let mut brain = brain::of(&self.call.agent, &self.call.variables);
        let opening = brain.open().await;
        if self.agent_says(opening).await {
            return;
        }
        for words in PERSON {
            self.speak(Speaker::User, words.into()).await;
            let answer = brain.reply(words).await;
            if self.agent_says(answer).await {
                return;
            }
        }
        self.tell(Command::HangUp(EndedBy::Caller));
    }

    /// Answers whether the agent has hung up.
    async fn agent_says(&mut self, line: Line) -> bool {
        self.speak(Speaker::Agent, line.say).await;
        if line.hang_up {
            self.tell(Command::HangUp(EndedBy::Agent));
        }
        line.hang_up
    }

    async fn speak(&mut self, role: Speaker, words: String) {
        let ms = (words.chars().count() as u64 * MS_PER_CHARACTER).max(600);
        self.tell(Command::Utter(role, words));
        self.wait(ms).await;
    }

    async fn wait(&mut self, ms: u64) {
        self.busy = None;
        let scaled = Duration::from_millis(ms).div_f64(self.speed);
        self.busy = Some(self.deps.clock.sleep(scaled).await);
    }

    fn tell(&self, command: Command) {
        if let Some(tree) = self.deps.tree() {
            tree.sessions
                .tell(self.call.session, Do::tell(command, &self.deps.clock));
        }
    }
}
