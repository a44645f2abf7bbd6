//! A call that was picked up, by them or by us: who is there, the talk, holding, keys, and its end.
//!
//! One loop looks at what comes first: the session's end, the peer, the sound, the agent's orders, the clock. The talk itself is
//! the agent's task beside it.
use super::{
    agent::Agent,
    faults::Part,
    moments::until,
    orders::{Order, has_ended},
    phones::Switchboard,
    signalling::Signalling,
    sound::Sound,
};
use crate::{
    call::leg::{Control, Leg},
    conversation::Wishes,
    deps::Deps,
    voice::talk::MessageCue,
};
use bytes::Bytes;
use entities::{
    boxed,
    session::{AnsweredBy, Direction, EndReason, EndedBy},
    sip_trunk::Dtmf,
};
use media::{answering::Verdict, rtp::session::RtpEvent};
use rules::{law::abandonment::FIRST_SOUND_MS, session::command::Command as SessionCommand};
use sip::call::{Command, Happening};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, watch};

/// Whoever has not been told by then is taken for a person: sound that does not come is no sign.
const KNOWN_WITHIN: Duration = Duration::from_secs(6);
/// The first sound of ours has to come so soon after the greeting, or after the pick-up where there is none.
const FIRST_SOUND: Duration = Duration::from_millis(FIRST_SOUND_MS as u64);
/// Where the law gives two seconds, whoever has said nothing for so long is talked to. Source: ours; an agent that is there speaks within
/// half a second.
const SILENT_FOR: Duration = Duration::from_millis(1_500);
/// So long an agent has that could not know before that somebody is there. Source: ours.
const AT_LAST: Duration = Duration::from_secs(1);
/// How often it is looked at how well it sounds, and at first.
const LOOK: Duration = Duration::from_secs(30);
const FIRST_LOOK: Duration = Duration::from_secs(2);
/// Keys of one INFO.
const MOST_KEYS: usize = 32;

pub struct Conversing {
    pub(super) deps: Deps,
    pub(super) switchboard: Switchboard,
    pub(super) leg: Arc<Leg>,
    pub(super) signalling: Signalling,
    pub(super) sound: Sound,
    pub(super) agent: Option<Agent>,
    /// When nobody is asked any longer who has picked up.
    known_by: Option<Instant>,
    /// When it is looked whether anything of theirs, and of ours, was heard.
    silent_by: Option<Instant>,
    sound_by: Option<Instant>,
    /// Two seconds have passed without a sound of ours.
    is_late: bool,
    pub(super) look_at: Instant,
    /// Second legs so far.
    pub(super) seconds: u32,
    is_held: bool,
    /// The key that opts out of further calls; `None` if there is none, or once it was pressed during a bridge.
    opt_out_key: Option<String>,
    /// Somebody else talks there, and no agent listens to keys.
    pub(super) is_bridged: bool,
}

/// Does the call go on?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    GoesOn,
    /// Theirs, or their line's: the session was told.
    Over,
}

impl Conversing {
    pub fn new(
        (deps, switchboard): (&Deps, &Switchboard),
        leg: Arc<Leg>,
        signalling: Signalling,
        sound: Sound,
        agent: Agent,
    ) -> Self {
        let opt_out_key = Wishes::of(&leg.call, &leg.agent.definition).key().map(str::to_owned);
        Conversing {
            deps: deps.clone(),
            switchboard: switchboard.clone(),
            leg,
            signalling,
            sound,
            agent: Some(agent),
            known_by: None,
            silent_by: None,
            sound_by: None,
            is_late: false,
            look_at: Instant::now() + FIRST_LOOK,
            seconds: 0,
            is_held: false,
            opt_out_key,
            is_bridged: false,
        }
    }

    /// At this moment. `detects`: it is listened to who it is.
    pub fn picked_up(mut self, detects: bool) -> Self {
        if let Some(agent) = &self.agent {
            agent.picked_up();
        }
        self.tell(SessionCommand::PickUp);
        let is_heard = self.sound.picked_up(detects);
        if self.sound.is_gone() {
            // While it rang, when nobody looked.
            self.soundless();
        }
        let now = Instant::now();
        if self.leg.call.direction == Direction::Outbound {
            self.sound_by = Some(now + FIRST_SOUND);
        }
        match detects && is_heard {
            true => {
                self.known_by = Some(now + KNOWN_WITHIN);
                self.silent_by = self.leg.call.options.safe_harbour.as_ref().map(|_| now + SILENT_FOR);
            }
            false => self.answered(AnsweredBy::Human),
        }
        self
    }

    /// To the end of all that is on the wire.
    #[boxed]
    pub async fn run(mut self, mut orders: mpsc::Receiver<Order>, mut ended: watch::Receiver<bool>) {
        let is_ours = self.talk(&mut orders, &mut ended).await;
        let Conversing {
            mut signalling,
            sound,
            agent,
            ..
        } = self;
        // Their sound and ours end at once; what was said last is screened when the talk is dropped.
        drop((agent, sound));
        if is_ours {
            signalling.command(Command::HangUp { q850: 16 });
        }
        signalling.leave();
    }

    /// `true`: it ended because its session did.
    async fn talk(&mut self, orders: &mut mpsc::Receiver<Order>, ended: &mut watch::Receiver<bool>) -> bool {
        loop {
            let next = tokio::select! {
                biased;
                () = has_ended(ended) => return true,
                happening = self.signalling.next() => self.follow(happening).await,
                event = self.sound.event() => self.heard(event),
                Some(order) = orders.recv() => self.obey(order, orders, ended).await,
                () = until(self.known_by) => {
                    self.answered(AnsweredBy::Unknown);
                    Next::GoesOn
                }
                () = until(self.silent_by) => {
                    self.look_for_a_greeting();
                    Next::GoesOn
                }
                () = until(self.sound_by) => {
                    self.look_for_sound();
                    Next::GoesOn
                }
                () = until(Some(self.look_at)) => self.look(),
            };
            self.fail_on_purpose();
            if next == Next::Over {
                return false;
            }
        }
    }

    /// Where a test has asked for it.
    fn fail_on_purpose(&self) {
        assert!(!self.switchboard.is_to_fail(Part::Call), "a fault on purpose");
        if self.switchboard.is_to_fail(Part::Sound) {
            self.sound.fail();
        }
    }

    pub(super) fn tell(&self, command: SessionCommand) {
        self.deps.router.sessions().tell(self.leg.session(), command);
    }

    fn answered(&mut self, by: AnsweredBy) {
        self.known_by = None;
        match by.is_talked_to() {
            // It could not be there before.
            true if self.is_late => self.sound_by = Some(Instant::now() + AT_LAST),
            true => {}
            // A machine waits for nobody.
            false => self.sound_by = None,
        }
        if let Some(agent) = &mut self.agent {
            agent.answer(by);
        }
    }

    /// Whoever says nothing may wait for us.
    fn look_for_a_greeting(&mut self) {
        self.silent_by = None;
        if self.known_by.is_some() && self.sound.moments().greeting_began_at.is_none() {
            self.answered(AnsweredBy::Unknown);
        }
    }

    /// Two seconds after the greeting so far, or after the pick-up, something of ours has to be heard.
    fn look_for_sound(&mut self) {
        self.sound_by = None;
        let moments = self.sound.moments();
        if moments.first_sound_at.is_some() {
            return;
        }
        let since = moments.greeting_ended_at.or(moments.picked_up_at);
        let due = since.map(|since| since + FIRST_SOUND);
        if !self.is_late && due.is_some_and(|due| due > Instant::now()) {
            // The greeting has gone on.
            self.sound_by = due;
            return;
        }
        if !std::mem::replace(&mut self.is_late, true) {
            self.tell(SessionCommand::KeptWaiting);
        }
        let has_message = self.leg.call.options.safe_harbour.is_some();
        if let Some(agent) = self.agent.as_mut().filter(|_| has_message && self.known_by.is_none()) {
            agent.give_up();
        }
    }

    /// What the peer does.
    pub(super) async fn follow(&mut self, happening: Happening) -> Next {
        match happening {
            // Who waits for our 200, which waits for his PRACK, gives up by CANCEL.
            Happening::RemoteHungUp { .. } | Happening::NeverAcked | Happening::Cancelled { .. } => return self.over(),
            Happening::SessionExpired => return self.lost("nobody refreshed the call in time: the line is gone"),
            Happening::Gone => return self.lost("the line is gone"),
            Happening::Offer { sdp } => {
                answer_offer(&self.deps, &mut self.signalling, &mut self.sound, sdp).await;
                self.look_whether_held();
            }
            Happening::OfferAnswered { sdp } => {
                if let Err(why) = self.sound.agree(&self.deps, &sdp).await {
                    tracing::debug!(why, "an answer cannot be used; the sound stays as it was");
                }
                self.look_whether_held();
            }
            Happening::Info { content_type, body } => {
                if let Some(keys) = keys_of(&content_type, &body) {
                    self.pressed(keys);
                }
            }
            // Our 200 has waited for a PRACK, and has left since.
            Happening::Acked if !self.signalling.is_confirmed() => self.signalling.confirm().await,
            Happening::Trying
            | Happening::Rang { .. }
            | Happening::Early { .. }
            | Happening::PickedUp { .. }
            | Happening::Refused { .. }
            | Happening::Challenged { .. }
            | Happening::NoAnswer
            | Happening::TransportFailed
            | Happening::OfferRefused { .. }
            | Happening::Acked
            | Happening::ReferProgress { .. } => {}
        }
        Next::GoesOn
    }

    fn look_whether_held(&mut self) {
        let is_held = self.sound.is_held();
        if std::mem::replace(&mut self.is_held, is_held) != is_held {
            self.tell(SessionCommand::Hold(is_held));
            if !is_held {
                // A talk that is told too much already, or is over, needs no reminder.
                self.deps
                    .carriers
                    .control(&self.deps, self.leg.session(), Control::Resume);
            }
        }
    }

    /// What comes over the line.
    pub(super) fn heard(&mut self, event: RtpEvent) -> Next {
        match event {
            RtpEvent::Answering(verdict) => self.answered(match verdict {
                Verdict::Human => AnsweredBy::Human,
                Verdict::Machine => AnsweredBy::Voicemail,
                Verdict::Fax => AnsweredBy::Fax,
                Verdict::Unknown => AnsweredBy::Unknown,
            }),
            RtpEvent::Speak => self.cue(MessageCue::Begin),
            RtpEvent::Wait => self.cue(MessageCue::Wait),
            RtpEvent::NeverHeard => return self.lost("nothing was heard in the first 10 seconds"),
            RtpEvent::HeardNoMore => return self.lost("nothing was heard for 30 seconds"),
            RtpEvent::FirstSound => self.tell_first_sound(),
            // The second leg has it; of the others none is the agent's.
            RtpEvent::Relayed(key) if self.opts_out_by(key.encode_utf8(&mut [0; 4])) => self.pressed(key.into()),
            RtpEvent::Gone => return self.soundless(),
            RtpEvent::FirstPacket | RtpEvent::Moved | RtpEvent::Beep | RtpEvent::Tone(_) | RtpEvent::Relayed(_) => {}
        }
        Next::GoesOn
    }

    /// The agent hears it. Where somebody else talks only the wish to be called no more is heard, and they talk on.
    fn pressed(&mut self, keys: String) {
        if !self.is_bridged {
            self.sound.bridge().press(keys);
            return;
        }
        if !self.opts_out_by(&keys) {
            return;
        }
        self.opt_out_key = None;
        self.tell(SessionCommand::Note {
            kind: "keys_pressed",
            detail: keys,
        });
        self.tell(SessionCommand::OptOut {
            purge_after: self.deps.clock.now().plus(self.deps.limits.opt_out_purge_grace),
        });
    }

    fn opts_out_by(&self, keys: &str) -> bool {
        self.opt_out_key.as_deref() == Some(keys)
    }

    fn cue(&self, cue: MessageCue) {
        if let Some(agent) = &self.agent {
            agent.cue(cue);
        }
    }

    async fn obey(
        &mut self,
        order: Order,
        orders: &mut mpsc::Receiver<Order>,
        ended: &mut watch::Receiver<bool>,
    ) -> Next {
        match order {
            Order::Press(keys) => {
                self.press(&keys);
                Next::GoesOn
            }
            Order::HandOver { to, done } => self.hand_over(to, done, orders, ended).await,
        }
    }

    fn press(&mut self, keys: &str) {
        if self.signalling.account().row.definition.dtmf != Dtmf::Info {
            self.sound.press(keys);
            return;
        }
        for key in keys.chars().take(MOST_KEYS) {
            let info = Command::Info {
                content_type: "application/dtmf-relay".into(),
                body: format!("Signal={key}\r\nDuration=160\r\n").into(),
            };
            self.signalling.command(info);
        }
    }

    pub(super) fn look(&mut self) -> Next {
        self.look_at = Instant::now() + LOOK;
        self.tell_quality();
        Next::GoesOn
    }

    fn tell_quality(&self) {
        if let Some(quality) = self.sound.quality() {
            self.tell(SessionCommand::Quality(quality));
        }
    }

    /// Whoever waits for it: a person who has greeted, or one who has picked up and says nothing.
    fn tell_first_sound(&self) {
        let moments = self.sound.moments();
        let greeted = moments.greeting_ended_at.is_some();
        let since = moments.greeting_ended_at.or(moments.picked_up_at);
        if let (Some(since), Some(sounded)) = (since, moments.first_sound_at) {
            let passed = sounded.saturating_duration_since(since);
            let after = if greeted { "greeting" } else { "pick_up" };
            metrics::histogram!("callboard_first_sound_seconds", "after" => after).record(passed.as_secs_f64());
            let ms = u32::try_from(passed.as_millis()).unwrap_or(u32::MAX);
            self.tell(SessionCommand::FirstSound { ms, greeted });
        }
    }

    /// They have hung up.
    pub(super) fn over(&mut self) -> Next {
        self.tell_quality();
        self.signalling.tell_what_was_said();
        self.tell(SessionCommand::HangUp(EndedBy::Caller));
        Next::Over
    }

    fn lost(&mut self, why: &str) -> Next {
        self.breaks(EndReason::MediaTimeout, why)
    }

    /// Its leg has failed, which is no fault of theirs.
    fn soundless(&mut self) -> Next {
        self.breaks(EndReason::AgentError, "the call's sound failed")
    }

    fn breaks(&mut self, reason: EndReason, why: &str) -> Next {
        self.tell_quality();
        self.tell(SessionCommand::Break {
            reason,
            why: why.to_owned(),
        });
        // The session's end hangs up what is left.
        Next::GoesOn
    }
}

/// Inside the talk. `None`: the peer wants ours.
pub(super) async fn answer_offer(deps: &Deps, signalling: &mut Signalling, sound: &mut Sound, offer: Option<Bytes>) {
    let answer = match offer {
        Some(offer) => match sound.answer(deps, &offer).await {
            Ok(sdp) => Command::AnswerOffer { sdp },
            Err(_) => Command::RefuseOffer,
        },
        None => Command::AnswerOffer {
            sdp: sound.offer_again(),
        },
    };
    signalling.command(answer);
}

/// Keys in the body of an INFO: `Signal=5` of application/dtmf-relay, or the key alone of application/dtmf.
fn keys_of(content_type: &str, body: &Bytes) -> Option<String> {
    let kind = content_type.split(';').next()?.trim().to_ascii_lowercase();
    let text = std::str::from_utf8(body).ok()?;
    let signal = match kind.as_str() {
        "application/dtmf-relay" => text.lines().find_map(|line| {
            let (name, value) = line.split_once('=')?;
            name.trim().eq_ignore_ascii_case("signal").then_some(value.trim())
        })?,
        "application/dtmf" => text.trim(),
        _ => return None,
    };
    let key = match signal {
        "10" => "*",
        "11" => "#",
        key => key,
    };
    let is_key = key.len() == 1 && key.chars().all(|key| matches!(key, '0'..='9' | '*' | '#'));
    is_key.then(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_from_either_kind_of_body() {
        for (kind, body, expected) in [
            ("application/dtmf-relay", "Signal=5\r\nDuration=160\r\n", Some("5")),
            ("Application/DTMF-Relay; charset=x", "signal = #\n", Some("#")),
            ("application/dtmf-relay", "Signal=11\r\n", Some("#")),
            ("application/dtmf", "7", Some("7")),
            ("application/dtmf-relay", "Duration=160\r\n", None),
            ("application/dtmf", "77", None),
            ("application/dtmf", "x", None),
            ("text/plain", "5", None),
        ] {
            assert_eq!(keys_of(kind, &Bytes::from(body)).as_deref(), expected, "{kind} {body}");
        }
    }
}
