//! A call that we place: target by target until one takes it, ringing, and then the talk.
//!
//! The next target is tried only if the last one cannot have rung: nobody's phone rings twice for one call. What a try leaves on
//! the wire ends by itself, without the call.
use super::{
    account::Account,
    accounts::{account, home, judged, next_target},
    agent::Agent,
    answers::sip_answer,
    conversing::Conversing,
    leg_numbers::{of_try, placing},
    line::Target,
    orders::{Order, has_ended},
    phones::Switchboard,
    signalling::{Invite, Signalling},
    sound::Sound,
};
use crate::{
    call::leg::{Leg, Ways},
    deps::Deps,
};
use entities::{
    Error,
    ids::TrunkId,
    session::Detection,
    values::{Country, Moment, Times},
};
use media::{bridge::MediaBridge, rtp::session::RtpEvent, tones::Tone};
use rules::session::{
    command::{Command as SessionCommand, Refusal},
    machine::PLACED_WITHIN_MS,
    sip_answer::{Attestation, SipAnswer},
    sip_outcome::{after_announcement, names_a_limit, outcome},
};
use sip::{
    call::{Command, Happening},
    targets::{Ending, may_fail_over},
};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, watch};

/// A carrier that asks for a longer pause is asked again after this.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What a call's task is given.
pub struct Given {
    pub leg: Arc<Leg>,
    pub bridge: Arc<MediaBridge>,
    pub ways: Ways,
    pub orders: (mpsc::Sender<Order>, mpsc::Receiver<Order>),
    pub ended: watch::Receiver<bool>,
}

struct Outbound<'a> {
    deps: &'a Deps,
    switchboard: &'a Switchboard,
    leg: Arc<Leg>,
    /// The moment that was decided for it, or soon after.
    placed: Times,
    ended: watch::Receiver<bool>,
    /// The tones before "no such number" were heard.
    is_announced: bool,
    rang: bool,
}

/// How a try at one target ended.
enum Try {
    PickedUp,
    /// It cannot have rung there; what is said if it cannot be tried anywhere else.
    Elsewhere(Refusal, Option<SipAnswer>),
    /// The session knows.
    Over,
}

/// To the call's end. Reports everything to its session.
pub async fn place(deps: &Deps, switchboard: &Switchboard, given: Given) {
    let Given {
        leg,
        bridge,
        ways,
        orders,
        ended,
    } = given;
    let mut outbound = Outbound {
        deps,
        switchboard,
        leg: leg.clone(),
        placed: deps.clock.times(),
        ended,
        is_announced: false,
        rang: false,
    };
    let mut agent = Fetching::Not(Some((ways, orders.0.clone())));
    match outbound.dial(&bridge, &mut agent).await {
        Err(refusal) => outbound.refuse(refusal, None),
        Ok(None) => {}
        Ok(Some((signalling, sound))) => {
            let agent = agent.fetched(deps, &leg, &bridge);
            let Some(agent) = agent else { return };
            let detects = leg.call.options.voicemail.detection == Detection::Auto;
            let conversing = Conversing::new((deps, switchboard), leg, signalling, sound, agent);
            conversing.picked_up(detects).run(orders.1, outbound.ended).await;
        }
    }
}

/// The agent, or what it is fetched with.
enum Fetching {
    Not(Option<(Ways, mpsc::Sender<Order>)>),
    Begun(Agent),
}

impl Fetching {
    /// Begins, unless that was done.
    fn begin(&mut self, deps: &Deps, leg: &Arc<Leg>, bridge: &Arc<MediaBridge>) {
        if let Fetching::Not(with) = self
            && let Some((ways, orders)) = with.take()
        {
            *self = Fetching::Begun(Agent::fetch(deps, leg, bridge, ways, orders));
        }
    }

    fn fetched(mut self, deps: &Deps, leg: &Arc<Leg>, bridge: &Arc<MediaBridge>) -> Option<Agent> {
        self.begin(deps, leg, bridge);
        match self {
            Fetching::Begun(agent) => Some(agent),
            Fetching::Not(_) => None,
        }
    }
}

impl Outbound<'_> {
    /// `None`: it is over, and the session knows. Errors: nothing can have rung.
    async fn dial(
        &mut self,
        bridge: &Arc<MediaBridge>,
        agent: &mut Fetching,
    ) -> Result<Option<(Signalling, Sound)>, Refusal> {
        let call = self.leg.call.clone();
        let (Some(to), Some(from), Some(trunk)) = (&call.to_number, &call.from_number, call.trunk_id) else {
            return Err(Refusal::Rejected(
                "the call has no number of this workspace to call from".into(),
            ));
        };
        let (account, home) = match self.looked_up(trunk).await {
            Ok(found) => found,
            Err(Error::NotFound(_)) => return Err(Refusal::Unreachable("its trunk is deleted".into())),
            Err(error) => {
                tracing::warn!(%error, "a call's trunk could not be read; the call waits for its turn again");
                return Err(Refusal::NotPlaced);
            }
        };
        // Of a trunk that was paused since the call was dispatched.
        if account.row.definition.paused {
            return Err(Refusal::NotPlaced);
        }
        let placing = placing(self.deps.ids.next());
        let mut tried: Vec<SocketAddr> = Vec::new();
        let mut last = (Refusal::Unreachable("the trunk's host leads nowhere".into()), None);
        let mut opened = None;
        loop {
            let target = next_target(self.deps, &account, &tried).await;
            let Some(target) = target.map_err(Refusal::Unreachable)? else {
                self.refuse(last.0, last.1);
                return Ok(None);
            };
            let mut sound = match opened.take() {
                Some(sound) => sound,
                None => self.open_sound(&account, bridge, &target)?,
            };
            if *self.ended.borrow() {
                return Ok(None);
            }
            let invite = Invite {
                from,
                to,
                home,
                headers: Vec::new(),
                sdp: sound.offer(),
            };
            let leg = (of_try(placing, tried.len()), target.clone());
            let Some(mut signalling) = self.invite(&account, leg, invite, tried.is_empty()).await? else {
                return Ok(None);
            };
            match self.ring(&mut signalling, &mut sound, agent, bridge).await {
                Try::PickedUp => return Ok(Some((signalling, sound))),
                Try::Over => {
                    // What is left on the wire takes half a minute, and needs neither sound nor agent.
                    signalling.leave();
                    return Ok(None);
                }
                Try::Elsewhere(refusal, sip) => {
                    self.note_failed(&target);
                    signalling.leave();
                    tried.push(target.address);
                    (last, opened) = ((refusal, sip), Some(sound));
                }
            }
        }
    }

    /// Stores the leg: its INVITE leaves with the first look at it. `None`: its session has ended meanwhile. Errors: nothing was sent.
    async fn invite(
        &self,
        account: &Arc<Account>,
        leg: (u32, Target),
        invite: Invite<'_>,
        is_first: bool,
    ) -> Result<Option<Signalling>, Refusal> {
        let sender = (self.deps, self.switchboard);
        let signalling = Signalling::dial(sender, account, &self.leg, leg, invite).await?;
        if *self.ended.borrow() {
            signalling.withdraw().await;
            return Ok(None);
        }
        // Whatever stalled, nobody is called at another moment than was decided.
        if is_first && self.is_late() {
            tracing::warn!("a call could not be placed in time and waits for its turn again");
            metrics::counter!("callboard_calls_late_total").increment(1);
            signalling.withdraw().await;
            return Err(Refusal::NotPlaced);
        }
        Ok(Some(signalling))
    }

    fn is_late(&self) -> bool {
        let now = self.deps.clock.times();
        let limit = |placed: Moment| placed.plus_millis(PLACED_WITHIN_MS);
        now.in_doubt || now.ours > limit(self.placed.ours) || now.wall > limit(self.placed.wall)
    }

    fn open_sound(&self, account: &Arc<Account>, bridge: &Arc<MediaBridge>, target: &Target) -> Result<Sound, Refusal> {
        let opened = Sound::open(self.switchboard, account, bridge.clone(), target.address.ip());
        opened.map_err(|why| {
            tracing::warn!(why, "a call waits for its turn again");
            Refusal::NotPlaced
        })
    }

    async fn looked_up(&self, trunk: TrunkId) -> entities::Result<(Arc<Account>, Country)> {
        let tenant = self.leg.call.tenant_id;
        let account = account(self.deps, self.switchboard, tenant, trunk).await?;
        Ok((account, home(self.deps, tenant).await?))
    }

    fn note_failed(&self, target: &Target) {
        if let Some(trunk) = self.leg.call.trunk_id {
            self.deps.trunks.target_failed(trunk, target.address, Instant::now());
        }
    }

    /// Until somebody picks up, or nobody does.
    async fn ring(
        &mut self,
        signalling: &mut Signalling,
        sound: &mut Sound,
        agent: &mut Fetching,
        bridge: &Arc<MediaBridge>,
    ) -> Try {
        loop {
            let happening = tokio::select! {
                biased;
                () = has_ended(&mut self.ended) => {
                    signalling.command(Command::HangUp { q850: 16 });
                    return Try::Over;
                }
                happening = signalling.next() => happening,
                event = sound.event() => {
                    self.is_announced |= event == RtpEvent::Tone(Tone::SpecialInformation);
                    continue;
                }
            };
            // Before anything is waited for: whoever has picked up is not given up without a word.
            if let (Happening::PickedUp { .. }, Fetching::Begun(agent)) = (&happening, &*agent) {
                agent.picked_up();
            }
            if let Some(outcome) = self.follow(happening, signalling, sound).await {
                return outcome;
            }
            if self.rang {
                agent.begin(self.deps, &self.leg, bridge);
            }
        }
    }

    /// What the peer says; how the try ends, if it ends by that.
    async fn follow(&mut self, happening: Happening, signalling: &mut Signalling, sound: &mut Sound) -> Option<Try> {
        match happening {
            Happening::Trying => self.note_answered(signalling),
            Happening::Rang { .. } => self.rings(signalling),
            Happening::Early { sdp } => {
                self.rings(signalling);
                if let Err(why) = sound.agree(self.deps, &sdp).await {
                    tracing::debug!(why, "early sound is not listened to");
                }
            }
            Happening::PickedUp { sdp } => return Some(self.picked_up(signalling, sound, &sdp).await),
            Happening::Refused {
                code,
                reason,
                q850,
                retry_after,
                rang,
                why,
            } => {
                signalling.tell_what_was_said();
                let answer = sip_answer((code, reason, q850), why);
                return Some(self.refused(signalling, answer, retry_after, rang));
            }
            Happening::TransportFailed => {
                let why = format!("no connection to {} could be made", signalling.target().address);
                return Some(Try::Elsewhere(Refusal::Unreachable(why), None));
            }
            Happening::NoAnswer => {
                self.note_failed(signalling.target());
                self.refuse(Refusal::Unreachable("the carrier did not answer".into()), None);
                return Some(Try::Over);
            }
            Happening::Gone => {
                self.refuse(Refusal::Unreachable("the call was lost".into()), None);
                return Some(Try::Over);
            }
            // Nobody is there yet: none of these comes, or means anything.
            Happening::Challenged { .. }
            | Happening::Cancelled { .. }
            | Happening::Offer { .. }
            | Happening::OfferAnswered { .. }
            | Happening::OfferRefused { .. }
            | Happening::Info { .. }
            | Happening::Acked
            | Happening::NeverAcked
            | Happening::ReferProgress { .. }
            | Happening::RemoteHungUp { .. }
            | Happening::SessionExpired => {}
        }
        None
    }

    async fn picked_up(&self, signalling: &mut Signalling, sound: &mut Sound, sdp: &[u8]) -> Try {
        self.note_answered(signalling);
        self.note_attestation(signalling);
        judged(self.deps, signalling.account(), false, 200, "");
        let agreed = sound.agree(self.deps, sdp).await;
        signalling.confirm().await;
        match agreed {
            Ok(()) => Try::PickedUp,
            // 488 comes too late: it has picked up.
            Err(why) => {
                let refusal = Refusal::Rejected(format!("the carrier's answer cannot be used: {why}"));
                self.refuse(refusal, None);
                signalling.command(Command::HangUp { q850: 88 });
                Try::Over
            }
        }
    }

    /// It rings, or sounds as if it did: once.
    fn rings(&mut self, signalling: &Signalling) {
        self.note_answered(signalling);
        self.note_attestation(signalling);
        if !std::mem::replace(&mut self.rang, true) {
            self.tell(SessionCommand::Ring);
        }
    }

    fn note_answered(&self, signalling: &Signalling) {
        self.deps
            .trunks
            .target_answered(signalling.account().row.id, signalling.target().address);
    }

    /// For the session's end: how the carrier says that it has signed the call.
    fn note_attestation(&self, signalling: &Signalling) {
        if let Some(attestation) = signalling.attested().and_then(Attestation::of) {
            self.tell(SessionCommand::NoteAttestation(attestation));
        }
    }

    fn refused(&self, signalling: &Signalling, answer: SipAnswer, retry_after: Option<Duration>, rang: bool) -> Try {
        let code = answer.code;
        let ending = Ending::Answer {
            code,
            rang,
            has_retry_after: retry_after.is_some(),
            names_a_limit: names_a_limit(&answer.reason),
        };
        let judgement = outcome(&answer, rang);
        if may_fail_over(ending) {
            return Try::Elsewhere(judgement.refusal, Some(answer));
        }
        self.note_attestation(signalling);
        judged(
            self.deps,
            signalling.account(),
            judgement.is_unauthorized,
            code,
            &answer.reason,
        );
        let refusal = match self.is_announced {
            true => after_announcement(code, judgement.refusal),
            false => judgement.refusal,
        };
        let trunk = signalling.account().row.id;
        match (&refusal, retry_after) {
            (Refusal::Congested, Some(pause)) => {
                let until = self.deps.clock.now().plus(pause.min(LONGEST_PAUSE));
                self.deps.trunks.rest(trunk, until);
            }
            (Refusal::Blocked(_), _) => {
                metrics::counter!("callboard_calls_blocked_total", "trunk" => trunk.to_string()).increment(1);
            }
            _ => {}
        }
        self.refuse(refusal, Some(answer));
        Try::Over
    }

    fn refuse(&self, refusal: Refusal, sip: Option<SipAnswer>) {
        self.tell(SessionCommand::Refuse { refusal, sip });
    }

    fn tell(&self, command: SessionCommand) {
        self.deps.router.sessions().tell(self.leg.session(), command);
    }
}
