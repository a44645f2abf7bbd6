//! The agent of a telephone call: it is fetched while the other side's phone rings, and talks once it is known who has picked up.
//!
//! It is a task of its own, so that neither a slow provider nor a long answer holds up the call's SIP. Dropping it cuts the talk
//! off; one that cannot be fetched ends the session itself.
use super::{moments::until, orders::Order};
use crate::{
    call::leg::{Leg, Ways},
    carrier::Carrier,
    conversation::Place,
    deps::Deps,
    voice::{
        side::Side,
        speech_input::Early,
        talk::{MessageCue, Talk},
    },
};
use entities::{
    session::{self, AnsweredBy, EndReason, EndedBy, VoicemailAction},
    values::E164,
};
use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared, pending},
};
use media::bridge::MediaBridge;
use rules::{
    conversation::phrases::{self, Greeting},
    session::{
        command::{Abandoned, Command},
        machine::Phase,
    },
};
use runtime::supervise::panic_text;
use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
    time::timeout,
};

/// Well before anybody who has picked up hangs up again.
const FETCHED_WITHIN: Duration = Duration::from_secs(10);
/// In which it is stored that somebody is there: nothing is said before.
const STANDS_WITHIN: Duration = Duration::from_secs(10);
/// How long what sounds like a machine may talk on until its words have told what it is.
const HELD: Duration = Duration::from_secs(5);
/// Cues that a message has not looked at yet.
const CUES: usize = 8;

/// Dropping it cuts the talk off.
pub struct Agent {
    task: AbortHandle,
    answered: Option<oneshot::Sender<AnsweredBy>>,
    cues: mpsc::Sender<MessageCue>,
    /// Its first word is not there in time.
    too_late: Option<oneshot::Sender<()>>,
    /// Somebody is on the line.
    is_picked_up: Arc<AtomicBool>,
    /// It is there; or nobody is, and the session was told why.
    fetched: Option<oneshot::Receiver<bool>>,
}

impl Agent {
    pub fn fetch(
        deps: &Deps,
        leg: &Arc<Leg>,
        bridge: &Arc<MediaBridge>,
        ways: Ways,
        orders: mpsc::Sender<Order>,
    ) -> Self {
        let (answered, wait) = oneshot::channel();
        let (cues, heed) = mpsc::channel(CUES);
        let (too_late, is_late) = oneshot::channel::<()>();
        let (tell, fetched) = oneshot::channel();
        let is_picked_up: Arc<AtomicBool> = Arc::default();
        let signs = Signs {
            is_picked_up: is_picked_up.clone(),
            fetched: tell,
            answered: wait,
            cues: heed,
            // Without its line it is never too late.
            too_late: is_late
                .then(|told| async move {
                    if told.is_err() {
                        pending::<()>().await;
                    }
                })
                .boxed()
                .shared(),
        };
        let (its, leg, bridge) = (deps.clone(), leg.clone(), bridge.clone());
        let task = deps.runtime.spawn(async move {
            let talk = talk((&its, &leg), bridge, ways, orders, signs);
            if let Err(panic) = AssertUnwindSafe(talk).catch_unwind().await {
                tracing::error!(panic = panic_text(&*panic), "a talk panicked");
                break_off(&its, &leg, EndReason::AgentError, "the agent failed".into());
            }
        });
        Agent {
            task: task.abort_handle(),
            answered: Some(answered),
            cues,
            too_late: Some(too_late),
            is_picked_up,
            fetched: Some(fetched),
        }
    }

    /// From now on somebody hears it: one that cannot think says so, instead of giving the call up.
    pub fn picked_up(&self) {
        self.is_picked_up.store(true, Ordering::SeqCst);
    }

    /// It is known who has picked up. The first time counts.
    pub fn answer(&mut self, by: AnsweredBy) {
        if let Some(answered) = self.answered.take() {
            // One that could not be fetched has said so.
            let _ = answered.send(by);
        }
    }

    /// Whoever has picked up has heard nothing of it in time: it is given up, and what the call has for that is said.
    pub fn give_up(&mut self) {
        if let Some(too_late) = self.too_late.take() {
            // One that has gone has said so.
            let _ = too_late.send(());
        }
    }

    /// One that is too late makes no difference.
    pub fn cue(&self, cue: MessageCue) {
        let _ = self.cues.try_send(cue);
    }

    /// `false`: nobody is there, and the session was told why. Once; it may be dropped and called again.
    pub async fn fetched(&mut self) -> bool {
        let Some(fetched) = &mut self.fetched else {
            return std::future::pending().await;
        };
        let is_there = fetched.await.unwrap_or(false);
        self.fetched = None;
        is_there
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Between a call and its agent.
struct Signs {
    is_picked_up: Arc<AtomicBool>,
    fetched: oneshot::Sender<bool>,
    answered: oneshot::Receiver<AnsweredBy>,
    cues: mpsc::Receiver<MessageCue>,
    too_late: Shared<BoxFuture<'static, ()>>,
}

async fn talk(
    (deps, leg): (&Deps, &Arc<Leg>),
    bridge: Arc<MediaBridge>,
    ways: Ways,
    orders: mpsc::Sender<Order>,
    signs: Signs,
) {
    let Signs {
        is_picked_up,
        fetched,
        answered,
        mut cues,
        too_late,
    } = signs;
    let mut talk = match fetch((deps, leg), bridge, ways, orders, (&is_picked_up, &too_late)).await {
        Ok(talk) => talk,
        Err((reason, why)) => return break_off(deps, leg, reason, why),
    };
    let _ = fetched.send(true);
    // Whoever was called may not pick up at all.
    let language = &leg.agent.definition.language;
    let Some(Known { by, cue, has_doubt }) = who(&mut talk, language, answered, &mut cues).await else {
        return;
    };
    if has_doubt {
        deps.router.sessions().tell(leg.session(), Command::Doubt);
    }
    talk.begin(by);
    let answer = Command::Answer {
        by,
        recording_id: deps.ids.next(),
    };
    let answered = deps.router.sessions().insist(leg.session(), answer);
    match timeout(STANDS_WITHIN, answered).await {
        Ok(Ok(session)) if matches!(session.phase, Phase::Conversing(_)) => {}
        // It has ended at this very moment, or is not talked at all.
        Ok(Ok(_)) => return,
        Ok(Err(error)) => {
            tracing::warn!(%error, "a call's talk could not begin");
            return break_off(deps, leg, EndReason::AgentError, "the talk could not begin".into());
        }
        Err(_) => {
            tracing::error!(
                "the database does not answer: somebody who has picked up hears nothing, and is hung up on"
            );
            break_off(
                deps,
                leg,
                EndReason::AgentError,
                "the talk could not begin in time".into(),
            );
            // Its end is stored when that goes again; nobody holds a silent line until then.
            if let Some(phones) = &deps.carriers.phones {
                phones.hang_up(leg.session().id);
            }
            return;
        }
    }
    match (by, leg.call.options.voicemail.action) {
        (AnsweredBy::Voicemail, VoicemailAction::LeaveMessage) => talk.leave_message(cue, cues).await,
        (AnsweredBy::Voicemail, VoicemailAction::Continue) => talk.hold_with_a_machine().await,
        (AnsweredBy::Voicemail, VoicemailAction::Hangup) | (AnsweredBy::Fax, _) => {}
        (AnsweredBy::Human | AnsweredBy::Ivr | AnsweredBy::Unknown, _) => {
            talk.give_up_when(too_late.boxed());
            talk.hold().await;
        }
    }
}

/// `Err`: there is none. One that cannot think is there for whoever has picked up already, and apologises.
async fn fetch(
    (deps, leg): (&Deps, &Arc<Leg>),
    bridge: Arc<MediaBridge>,
    ways: Ways,
    orders: mpsc::Sender<Order>,
    (is_picked_up, too_late): (&AtomicBool, &Shared<BoxFuture<'static, ()>>),
) -> Result<Talk, (EndReason, String)> {
    let side: Arc<dyn Side> = Arc::new(Phone(orders));
    let place = Place::Phone { operator: None };
    let prepared = Talk::prepare(deps, leg, bridge, ways, (place, Some(side)));
    let mut talk = match timeout(FETCHED_WITHIN, prepared).await {
        Ok(Ok(talk)) => talk,
        Ok(Err(why)) => return Err((EndReason::AgentError, why.into())),
        Err(_) => {
            let seconds = FETCHED_WITHIN.as_secs();
            let why = format!("the agent could not be prepared within {seconds} seconds");
            return Err((EndReason::AgentError, why));
        }
    };
    let reached = tokio::select! {
        biased;
        reached = talk.reach() => reached,
        () = too_late.clone() => {
            talk.is_too_late();
            return Ok(talk);
        }
    };
    match reached {
        Err(why) if !is_picked_up.load(Ordering::SeqCst) => Err((EndReason::ProviderError, why)),
        Err(_) | Ok(()) => Ok(talk),
    }
}

/// Who has picked up.
struct Known {
    by: AnsweredBy,
    /// What a message begins by, if that has come meanwhile.
    cue: Option<MessageCue>,
    /// It sounds like a machine, and has said what no machine says.
    has_doubt: bool,
}

/// Who has picked up, by the sound of the greeting and by its words. `None`: nobody has.
///
/// A menu is told by its words alone, at once. What sounds like a machine may be one, so its words are waited for. What says that it is a
/// mailbox is one, whatever it sounds like. Who opts out by a key is a person.
async fn who(
    talk: &mut Talk,
    language: &str,
    mut answered: oneshot::Receiver<AnsweredBy>,
    cues: &mut mpsc::Receiver<MessageCue>,
) -> Option<Known> {
    let known = |by, cue, has_doubt| Some(Known { by, cue, has_doubt });
    let mailbox = |cue| known(AnsweredBy::Voicemail, cue, false);
    let (mut is_mailbox, mut held_until, mut has_words) = (false, None, false);
    loop {
        tokio::select! {
            biased;
            early = talk.greeting() => match early {
                Early::OptedOut => return known(AnsweredBy::Human, None, false),
                Early::Words(words) => match phrases::greeting(&words, language) {
                    Some(Greeting::Menu) => return known(AnsweredBy::Ivr, None, false),
                    Some(Greeting::Mailbox) if held_until.is_some() => return mailbox(None),
                    Some(Greeting::Mailbox) => is_mailbox = true,
                    None => has_words = true,
                },
            },
            by = &mut answered, if held_until.is_none() => match by {
                Err(_) => return None,
                Ok(AnsweredBy::Fax) => return known(AnsweredBy::Fax, None, false),
                Ok(AnsweredBy::Voicemail) if is_mailbox || !talk.understands() => return mailbox(None),
                Ok(AnsweredBy::Voicemail) => held_until = Some(Instant::now() + HELD),
                // It was heard to be silent: nothing else tells when a message may begin.
                Ok(_) if is_mailbox => return mailbox(Some(MessageCue::Begin)),
                Ok(by) => return known(by, None, false),
            },
            cue = cues.recv(), if held_until.is_some() => return known(AnsweredBy::Voicemail, cue, has_words),
            () = until(held_until) => return known(AnsweredBy::Voicemail, None, has_words),
        }
    }
}

/// Whether anybody has picked up or not: the session ends by one of these.
fn break_off(deps: &Deps, leg: &Leg, reason: EndReason, why: String) {
    let abandoned = Abandoned {
        status: session::Status::Failed,
        reason,
        by: EndedBy::System,
        why: Some(why.clone()),
    };
    for command in [Command::Abandon(abandoned), Command::Break { reason, why }] {
        deps.router.sessions().tell(leg.session(), command);
    }
}

/// What a telephone line can do.
struct Phone(mpsc::Sender<Order>);

impl Side for Phone {
    fn press(&self, digits: &str) {
        // A line that has dozens of orders before it is one that nobody hears any more.
        let _ = self.0.try_send(Order::Press(digits.to_owned()));
    }

    fn hand_over<'a>(&'a self, to: &'a E164) -> BoxFuture<'a, Result<(), String>> {
        hand_over(&self.0, to).boxed()
    }
}

async fn hand_over(orders: &mpsc::Sender<Order>, to: &E164) -> Result<(), String> {
    let (done, outcome) = oneshot::channel();
    let order = Order::HandOver { to: to.clone(), done };
    if orders.send(order).await.is_err() {
        return Err("the call is over".into());
    }
    outcome.await.unwrap_or_else(|_| Err("the call is over".into()))
}
