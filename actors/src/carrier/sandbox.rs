//! The sandbox carrier: in-process and deterministic. A number's last digit fixes how its call goes.
//!
//! | digit | outcome |
//! |---|---|
//! | 1 | busy |
//! | 2 | rings in vain: no_answer |
//! | 3 | a voicemail answers |
//! | 4 | the carrier rejects the call: failed |
//! | 5 | a talk in which the person wants no more calls |
//! | 6 | a talk in which the person does not want to be recorded |
//! | 7 | a talk in which the person wants a human: transferred |
//! | 8 | a talk in which a function takes longer than it may |
//! | 9 | busy on the first attempt, then a talk |
//! | 0 | a talk: completed |
//!
//! The person is played ([`super::callee`]); the agent, its functions and everything around the talk are the real ones.
use super::{
    Carrier,
    callee::SandboxCallee,
    lines::{Entry, INBOX, Live, Sandbox},
};
use crate::{
    call::leg::{Control, Leg},
    conversation::{Broken, Conversation, Place},
    deps::Deps,
};
use entities::{
    ids::SessionId,
    session::{self, AnsweredBy, Detection, Direction, EndedBy, SandboxOutcome, VoicemailAction},
    values::{Country, E164},
};
use futures_util::FutureExt;
use rules::session::command::{Command, Refusal};
use runtime::{clock::Busy, supervise::panic_text};
use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::mpsc;

fn lock(live: &Mutex<Live>) -> MutexGuard<'_, Live> {
    live.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Carrier for Sandbox {
    fn place(&self, deps: &Deps, leg: Arc<Leg>) {
        self.log.placed(&leg);
        if self.has_room(deps.clock.now()) {
            self.carry(deps, leg);
            return;
        }
        self.log.ended(leg.session(), leg.to(), Some("never_accepted"));
        let (_, inbox) = mpsc::channel(INBOX);
        let mut line = SandboxCall::new(deps, self.speed, leg, inbox, Arc::default());
        deps.runtime.spawn(async move {
            line.callee.wait(50).await;
            line.refuse(Refusal::Congested);
        });
    }

    fn hang_up(&self, session: SessionId) {
        let entry = lock(&self.live).remove(&session);
        if let Some(Entry { task, leg, .. }) = entry {
            task.abort();
            self.log.ended(leg.session(), leg.to(), None);
        }
    }

    fn control(&self, deps: &Deps, session: SessionId, control: Control) -> bool {
        let live = lock(&self.live);
        live.get(&session).is_some_and(|entry| {
            // One who speaks hears it later, and must not keep a manual clock from passing until then.
            let busy = entry.listens.load(Ordering::SeqCst).then(|| deps.clock.busy());
            entry.inbox.try_send((control, busy)).is_ok()
        })
    }
}

impl Sandbox {
    /// Plays a call until it ends or is hung up: one that was placed, or one that has come in.
    pub fn carry(&self, deps: &Deps, leg: Arc<Leg>) {
        let session = leg.session().id;
        let (sender, inbox) = mpsc::channel(INBOX);
        let listens: Arc<AtomicBool> = Arc::default();
        let line = SandboxCall::new(deps, self.speed, leg.clone(), inbox, listens.clone());
        // Held while the task starts, so that it cannot end before it is entered.
        let mut live = lock(&self.live);
        let (entries, log, ended) = (self.live.clone(), self.log.clone(), leg.clone());
        let task = deps.runtime.spawn(async move {
            let panicked = AssertUnwindSafe(line.run()).catch_unwind().await.err();
            if let Some(panic) = panicked {
                tracing::error!(panic = panic_text(&*panic), "a talk panicked");
            }
            // Whoever takes the entry out says that the call has ended: it is said once.
            let entry = lock(&entries).remove(&session);
            if entry.is_some() {
                log.ended(ended.session(), ended.to(), None);
            }
        });
        live.insert(
            session,
            Entry {
                task: task.abort_handle(),
                leg,
                inbox: sender,
                listens,
            },
        );
    }
}

struct SandboxCall {
    deps: Deps,
    leg: Arc<Leg>,
    callee: SandboxCallee,
}

impl SandboxCall {
    fn new(
        deps: &Deps,
        speed: f64,
        leg: Arc<Leg>,
        inbox: mpsc::Receiver<(Control, Option<Busy>)>,
        listens: Arc<AtomicBool>,
    ) -> Self {
        let callee = SandboxCallee::new(deps, speed, inbox, listens);
        let deps = deps.clone();
        SandboxCall { deps, leg, callee }
    }

    async fn run(mut self) {
        match outcome(&self.leg.call) {
            SandboxOutcome::Busy => self.refuse_after(400, Refusal::Busy).await,
            SandboxOutcome::NoAnswer => {
                self.callee.wait(300).await;
                self.tell(Command::Ring);
                let seconds = u64::try_from(self.leg.call.ring_timeout_seconds).unwrap_or(0);
                self.refuse_after(seconds * 1000, Refusal::NoAnswer).await;
            }
            SandboxOutcome::Declined => {
                self.ring(2_000).await;
                self.refuse_after(0, Refusal::Declined).await;
            }
            SandboxOutcome::Failed => {
                let why = "the sandbox rejects numbers that end in 4";
                self.refuse_after(400, Refusal::Rejected(why.into())).await;
            }
            SandboxOutcome::InvalidNumber => {
                let why = "the sandbox knows no such number";
                self.refuse_after(400, Refusal::InvalidNumber(why.into())).await;
            }
            SandboxOutcome::Abandoned => {
                self.ring(2_000).await;
                self.tell(Command::HangUp(EndedBy::Caller));
            }
            SandboxOutcome::Voicemail => self.reach_a_machine().await,
            played @ (SandboxOutcome::Fax | SandboxOutcome::Ivr) => self.reach_a_device(played).await,
            played @ (SandboxOutcome::Talk
            | SandboxOutcome::OptOut
            | SandboxOutcome::ConsentRefused
            | SandboxOutcome::Transfer
            | SandboxOutcome::FunctionTimeout) => {
                self.ring(1_500).await;
                self.answer(AnsweredBy::Human);
                self.talk(played).await;
            }
        }
    }

    async fn ring(&mut self, ms: u64) {
        self.callee.wait(300).await;
        self.tell(Command::Ring);
        self.callee.wait(ms).await;
    }

    async fn refuse_after(&mut self, ms: u64, refusal: Refusal) {
        self.callee.wait(ms).await;
        self.refuse(refusal);
    }

    /// No carrier's answer stands behind it.
    fn refuse(&self, refusal: Refusal) {
        self.tell(Command::Refuse { refusal, sip: None });
    }

    fn answer(&self, by: AnsweredBy) {
        let recording_id = self.deps.ids.next();
        self.tell(Command::Answer { by, recording_id });
    }

    async fn reach_a_machine(mut self) {
        let plan = self.leg.call.options.voicemail.clone();
        self.ring(4_000).await;
        if plan.detection == Detection::Off {
            // Nobody notices that it is one.
            self.answer(AnsweredBy::Human);
            return self.talk(SandboxOutcome::Voicemail).await;
        }
        self.tell(Command::PickUp);
        self.answer(AnsweredBy::Voicemail);
        match plan.action {
            VoicemailAction::Hangup => {}
            VoicemailAction::LeaveMessage => match self.conversation(SandboxOutcome::Voicemail).await {
                Ok(talk) => talk.leave_message().await,
                Err(broken) => broken.report(),
            },
            VoicemailAction::Continue => match self.conversation(SandboxOutcome::Voicemail).await {
                Ok(mut talk) => {
                    talk.with_a_machine();
                    drop(talk.hold().await);
                }
                Err(broken) => broken.report(),
            },
        }
    }

    /// A fax machine, or a menu with a person behind it.
    async fn reach_a_device(mut self, played: SandboxOutcome) {
        self.ring(1_500).await;
        let by = match (self.leg.call.options.voicemail.detection, played) {
            (Detection::Off, _) => AnsweredBy::Human,
            (Detection::Auto, SandboxOutcome::Fax) => AnsweredBy::Fax,
            (Detection::Auto, _) => AnsweredBy::Ivr,
        };
        self.tell(Command::PickUp);
        self.answer(by);
        if by.is_talked_to() {
            self.talk(played).await;
        }
    }

    async fn talk(self, played: SandboxOutcome) {
        match self.conversation(played).await {
            Ok(talk) => drop(talk.hold().await),
            Err(broken) => broken.report(),
        }
    }

    /// Everything that a talk needs.
    async fn conversation(mut self, played: SandboxOutcome) -> Result<Conversation<SandboxCallee>, Broken> {
        match &self.leg.call.options.sandbox {
            Some(sandbox) if !sandbox.script.is_empty() => self.callee.follow(&sandbox.script),
            Some(_) | None => self.callee.play(played),
        }
        let SandboxCall { deps, leg, callee } = self;
        let operator = E164::parse(SANDBOX_OPERATOR, Country::US).ok();
        Conversation::of(&deps, &leg, callee, Place::Phone { operator }).await
    }

    fn tell(&self, command: Command) {
        tell(&self.deps, &self.leg, command);
    }
}

fn tell(deps: &Deps, leg: &Leg, command: Command) {
    deps.router.sessions().tell(leg.session(), command);
}

/// Where the sandbox hands calls over of agents that have no transfer number: so that 7 always is a transfer.
const SANDBOX_OPERATOR: &str = "+15002000000";

/// What was asked for, else what the number's last digit says.
fn outcome(call: &session::Model) -> SandboxOutcome {
    let asked = call.options.sandbox.as_ref().and_then(|sandbox| sandbox.outcome);
    let scripted = call
        .options
        .sandbox
        .as_ref()
        .is_some_and(|sandbox| !sandbox.script.is_empty());
    match (asked, call.direction) {
        (Some(outcome), _) => outcome,
        (None, Direction::Inbound) => SandboxOutcome::Talk,
        (None, Direction::Outbound) if scripted => SandboxOutcome::Talk,
        (None, Direction::Outbound) => match (call.to_number.as_ref().map_or(0, E164::last_digit), call.attempt) {
            (1, _) | (9, 1) => SandboxOutcome::Busy,
            (2, _) => SandboxOutcome::NoAnswer,
            (3, _) => SandboxOutcome::Voicemail,
            (4, _) => SandboxOutcome::Failed,
            (5, _) => SandboxOutcome::OptOut,
            (6, _) => SandboxOutcome::ConsentRefused,
            (7, _) => SandboxOutcome::Transfer,
            (8, _) => SandboxOutcome::FunctionTimeout,
            _ => SandboxOutcome::Talk,
        },
    }
}
