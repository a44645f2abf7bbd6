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
use super::{Carrier, Outgoing, log::Log};
use crate::{
    brain::{self, Line},
    clock::Busy,
    deps::Deps,
    session::machine::{Command, Refusal},
    shell::Do,
};
use entities::{ids::SessionId, session::EndedBy, transcript::Speaker, values::Moment};
use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::task::AbortHandle;

/// How the sandbox behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Ringing and talking times are divided by it.
    pub speed: f64,
    /// Calls beyond so many a second are refused, as by a trunk that is full; 0: none is.
    pub calls_per_second: f64,
    /// Where its calls are noted; empty: nowhere.
    pub log: PathBuf,
}

pub struct Sandbox {
    speed: f64,
    room: Option<Mutex<Room>>,
    log: Arc<Log>,
    live: Arc<Mutex<Live>>,
}

type Live = HashMap<SessionId, (AbortHandle, Arc<Outgoing>)>;

/// Calls of the current second.
struct Room {
    per_second: f64,
    second: i64,
    calls: f64,
}

impl Room {
    fn take(&mut self, now: Moment) -> bool {
        let second = now.millis().div_euclid(1000);
        if second != self.second {
            (self.second, self.calls) = (second, 0.0);
        }
        self.calls += 1.0;
        self.calls <= self.per_second
    }
}

impl Sandbox {
    pub fn new(options: Options) -> std::io::Result<Self> {
        let room = Room {
            per_second: options.calls_per_second,
            second: 0,
            calls: 0.0,
        };
        Ok(Sandbox {
            speed: options.speed,
            room: (options.calls_per_second > 0.0).then_some(Mutex::new(room)),
            log: Arc::new(Log::open(&options.log)?),
            live: Arc::default(),
        })
    }

    fn has_room(&self, now: Moment) -> bool {
        let Some(room) = &self.room else { return true };
        room.lock().unwrap_or_else(PoisonError::into_inner).take(now)
    }
}

fn lock(live: &Mutex<Live>) -> MutexGuard<'_, Live> {
    live.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Carrier for Sandbox {
    fn place(&self, deps: &Deps, call: Arc<Outgoing>) {
        self.log.placed(&call);
        let session = call.session.id;
        let busy = deps.clock.busy();
        let mut line = SandboxCall {
            deps: deps.clone(),
            speed: self.speed,
            call: call.clone(),
            busy: Some(busy),
        };
        if !self.has_room(deps.clock.now()) {
            self.log.ended(call.session, &call.to, Some("never_accepted"));
            deps.runtime.spawn(async move {
                line.wait(50).await;
                line.tell(Command::Refuse(Refusal::Congested));
            });
            return;
        }
        // Held while the task starts, so that it cannot end before it is entered.
        let mut live = lock(&self.live);
        let (entries, log) = (self.live.clone(), self.log.clone());
        let ended = call.clone();
        let task = deps.runtime.spawn(async move {
            line.run().await;
            // Whoever takes the entry out says that the call has ended: it is said once.
            let entry = lock(&entries).remove(&session);
            if entry.is_some() {
                log.ended(ended.session, &ended.to, None);
            }
        });
        live.insert(session, (task.abort_handle(), call));
    }

    fn hang_up(&self, session: SessionId) {
        let entry = lock(&self.live).remove(&session);
        if let Some((task, call)) = entry {
            task.abort();
            self.log.ended(call.session, &call.to, None);
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
        let clock = &self.deps.clock;
        let until = clock.now().plus(Duration::from_millis(ms).div_f64(self.speed));
        let busy = self.busy.take().unwrap_or_else(|| clock.busy());
        self.busy = Some(clock.busy_until(until, busy).await);
    }

    fn tell(&self, command: Command) {
        if let Some(tree) = self.deps.tree() {
            tree.sessions
                .tell(self.call.session, Do::tell(command, &self.deps.clock));
        }
    }
}
