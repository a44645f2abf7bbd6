//! One call that no session is for: `callboard sip check --call`. It rings, says a sentence to whoever picks up, and hangs up.
//!
//! It has sockets and ports of its own, beside a running service, and no row: if the process is killed (`kill -9`), the peer ends the
//! call by itself. Whether it may be placed, [`check_trial`](crate::reach::check_trial) says.
mod leg;

use super::{
    account::Account,
    answers::sip_answer,
    line::Target,
    moments::until,
    numbers::{callee, caller, first_routes},
    orders::has_ended,
    phones::Switchboard,
    signalling::sender,
    sound::Sound,
};
use crate::trunk::options::SipOptions;
use adapters::{
    outbound::Outbound,
    sound::Pcm,
    trunk::{peering::Peering, ping::words, resolve::resolve},
};
use bytes::Bytes;
use entities::{
    boxed,
    session::Quality,
    sip_trunk::{CallerId, Model},
    values::{Country, E164},
};
use leg::{Leg, hand_over};
use media::{answering::Verdict, bridge::MediaBridge, rtp::session::RtpEvent, threads::MediaThreads};
use rules::session::{sip_answer::SipAnswer, sip_outcome::names_a_limit};
use sip::{
    call::{CallIdentity, Command, Dial, Happening, Local},
    digest::{Authorizer, Credentials},
    ladder::Ladder,
    message::{Name, address::read_uri},
    targets::{Ending, may_fail_over},
};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{runtime::Handle, sync::watch};
use uuid::Uuid;

/// It rings for so long.
pub const RINGS_FOR: Duration = Duration::from_secs(30);
/// From the pick-up on.
const LASTS: Duration = Duration::from_secs(10);
/// What is said at its end is answered within this time, or is not waited for.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// The same for whoever stops it, and waits at the keyboard.
pub const STOPS_WITHIN: Duration = Duration::from_secs(2);
/// Addresses of the trunk that it is tried at.
const MOST_TARGETS: usize = 4;

/// What is to be tried.
pub struct Trial {
    /// The service's: its address and its ports for sound are used, and a port for SIP that is free.
    pub options: SipOptions,
    pub outbound: Outbound,
    pub trunk: Model,
    pub credentials: Option<Credentials>,
    /// The workspace's country.
    pub home: Country,
    pub from: E164,
    pub to: E164,
    /// What whoever picks up is told.
    pub words: Pcm,
}

/// What became of it, and what was said at each address that it was tried at.
pub struct Tried {
    pub outcome: Outcome,
    pub ladders: Vec<Ladder>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    PickedUp {
        after: Duration,
        /// `None`: they hung up before it was known.
        by: Option<Verdict>,
        /// Of their sound; `None`: none came.
        sound: Option<Quality>,
        they_hung_up: bool,
    },
    /// Somebody picked up with whom no sound could be agreed on: why.
    Unusable(String),
    Refused {
        answer: SipAnswer,
        rang: bool,
    },
    /// Nobody picked up in time.
    RangOut {
        rang: bool,
    },
    /// The peer said nothing, or nothing more.
    NoAnswer,
    /// Nothing can have arrived: why.
    NotSent(String),
    /// It was stopped from here. `is_over`: the peer has confirmed that it is.
    Stopped {
        before: Before,
        is_over: bool,
    },
}

/// How far a call had come that was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    Placed,
    PickedUp,
    HungUp,
}

impl Outcome {
    fn stopped(before: Before) -> Self {
        Outcome::Stopped { before, is_over: false }
    }
}

impl Trial {
    /// Takes 50 seconds at most, or a minute where the peer heeds no CANCEL; once `stopped` is true, or nobody can say so any more, it is
    /// cancelled or hung up. Errors: why it could not be begun.
    #[boxed]
    pub async fn run(self, mut stopped: watch::Receiver<bool>) -> Result<Tried, String> {
        let threads = MediaThreads::start()?;
        let tried = self.place(&threads, &mut stopped).await;
        threads.stop();
        tried
    }

    async fn place(&self, threads: &Arc<MediaThreads>, stopped: &mut watch::Receiver<bool>) -> Result<Tried, String> {
        let options = SipOptions {
            bind: SocketAddr::new(self.options.bind.ip(), 0),
            tls: None,
            ..self.options.clone()
        };
        let switchboard = Switchboard::open(&options, rand::random(), threads.clone())?;
        let runtime = Handle::current();
        let listening = switchboard.sockets.start(&runtime, self.outbound.tls());
        listening.map_err(|error| format!("sip_bind: cannot listen ({error})"))?;
        if let Some(arriving) = switchboard.take_arriving() {
            runtime.spawn(hand_over(switchboard.clone(), arriving));
        }
        let tried = self.try_each(&switchboard, stopped).await;
        switchboard.close();
        tried
    }

    /// One address after the other, as a call of the service is.
    async fn try_each(&self, switchboard: &Switchboard, stopped: &mut watch::Receiver<bool>) -> Result<Tried, String> {
        let peering = Peering::of(&self.trunk);
        let found = resolve(&self.outbound, peering.next_hop(), peering.transport).await;
        let addresses = found.map_err(|failure| words(&failure))?.addresses;
        let sources = peering.sources(&addresses, &addresses);
        let its = (self.trunk.tenant_id, self.trunk.id);
        switchboard.line.sources().set(its, sources);
        let account = Arc::new(self.account(switchboard));
        let session = Uuid::from_u128(rand::random());
        let mut tried = Tried {
            outcome: Outcome::NotSent("the trunk's host leads nowhere".into()),
            ladders: Vec::new(),
        };
        for (address, number) in addresses.into_iter().take(MOST_TARGETS).zip(1..) {
            if *stopped.borrow() {
                tried.outcome = Outcome::Stopped {
                    before: Before::Placed,
                    is_over: true,
                };
                break;
            }
            let target = Target {
                address,
                transport: account.transport(),
                name: peering.next_hop().host().into(),
            };
            let identity = CallIdentity::new(switchboard.identity.clone(), session, number);
            let (bridge, _) = MediaBridge::new();
            let mut sound = Sound::open(switchboard, &account, bridge, address.ip())?;
            let mut leg = self.dial(switchboard, &account, identity, target, sound.offer())?;
            let (outcome, may_go_on) = self.ring(&mut leg, &mut sound, stopped).await;
            drop(sound);
            tried.outcome = match outcome {
                Outcome::Stopped { before, .. } => {
                    let is_over = leg.end(STOPS_WITHIN).await;
                    Outcome::Stopped { before, is_over }
                }
                outcome => {
                    leg.end(ENDS_WITHIN).await;
                    outcome
                }
            };
            tried.ladders.push(leg.into_ladder());
            if !may_go_on {
                break;
            }
        }
        Ok(tried)
    }

    fn account(&self, switchboard: &Switchboard) -> Account {
        let id = self.trunk.id.0;
        let authorizer = self
            .credentials
            .clone()
            .map(|credentials| Authorizer::new(credentials, switchboard.secret(), id.as_bytes()));
        Account::new(self.trunk.clone(), authorizer, None)
    }

    fn dial(
        &self,
        switchboard: &Switchboard,
        account: &Arc<Account>,
        identity: CallIdentity,
        target: Target,
        sdp: Bytes,
    ) -> Result<Leg, String> {
        let definition = &self.trunk.definition;
        let line = &switchboard.line;
        let sent_by = line
            .sent_by(target.transport)
            .ok_or("there is no socket for this transport")?;
        let host = sent_by.rsplit_once(':').map_or(sent_by, |(host, _)| host);
        let from = caller(&self.from, definition, self.home);
        let to = read_uri(&callee(&self.to, definition, self.home));
        let shown = (definition.caller_id == CallerId::Pai).then(|| (Name::from("P-Asserted-Identity"), from.clone()));
        let dial = Dial {
            local: Local {
                identity,
                sender: sender(sent_by, &target, self.from.as_str())?,
                session_expires: u32::try_from(definition.session_expires_seconds.get()).ok(),
            },
            host: host.to_owned(),
            to: to.ok_or("the trunk's host is not one that a SIP address can have")?,
            from,
            route: first_routes(definition),
            headers: shown.into_iter().collect(),
            sdp,
        };
        Leg::dial(self.outbound.clone(), switchboard, account, target, dial)
    }

    /// To the moment at which it is to be hung up, or was. And may it be tried at the next address?
    async fn ring(&self, leg: &mut Leg, sound: &mut Sound, stopped: &mut watch::Receiver<bool>) -> (Outcome, bool) {
        let began = Instant::now();
        let limit = Some(began + RINGS_FOR);
        let (mut is_heard, mut has_rung, mut is_cancelled) = (false, false, false);
        loop {
            let happening = tokio::select! {
                happening = leg.next() => happening,
                () = has_ended(stopped) => {
                    leg.command(Command::Cancel);
                    return (Outcome::stopped(Before::PickedUp), false);
                }
                () = until(limit), if !is_cancelled => {
                    is_cancelled = true;
                    leg.command(Command::Cancel);
                    continue;
                }
            };
            match happening {
                Happening::Trying => is_heard = true,
                Happening::Rang { .. } => (is_heard, has_rung) = (true, true),
                Happening::Early { sdp } => {
                    (is_heard, has_rung) = (true, true);
                    // Without it nothing is heard before the pick-up, and nobody listens.
                    let _ = sound.agree_by(&self.outbound, &sdp).await;
                }
                Happening::PickedUp { sdp } => return (self.talk((leg, sound), &sdp, began, stopped).await, false),
                Happening::Refused { rang, .. } if is_cancelled => return (Outcome::RangOut { rang }, false),
                Happening::Refused {
                    code,
                    reason,
                    q850,
                    retry_after,
                    rang,
                    why,
                } => {
                    let ending = Ending::Answer {
                        code,
                        rang,
                        has_retry_after: retry_after.is_some(),
                        names_a_limit: names_a_limit(&reason),
                    };
                    let answer = sip_answer((code, reason, q850), why);
                    return (Outcome::Refused { answer, rang }, may_fail_over(ending));
                }
                Happening::TransportFailed => {
                    let why = format!("no connection to {} could be made", leg.target().address);
                    return (Outcome::NotSent(why), true);
                }
                Happening::NoAnswer | Happening::Gone if is_cancelled && is_heard => {
                    return (Outcome::RangOut { rang: has_rung }, false);
                }
                Happening::NoAnswer | Happening::Gone => return (Outcome::NoAnswer, false),
                _ => {}
            }
        }
    }

    async fn talk(
        &self,
        (leg, sound): (&mut Leg, &mut Sound),
        sdp: &[u8],
        began: Instant,
        stopped: &mut watch::Receiver<bool>,
    ) -> Outcome {
        let after = began.elapsed();
        if let Err(why) = sound.agree_by(&self.outbound, sdp).await {
            leg.command(Command::HangUp { q850: 88 });
            return Outcome::Unusable(why);
        }
        sound.picked_up(true);
        let limit = Some(Instant::now() + LASTS);
        let words = self.words.samples.clone();
        let mut played = sound.bridge().play_whole(self.words.rate, words);
        let (mut by, mut is_said, mut they_hung_up) = (None, false, false);
        while !is_said || by.is_none() {
            tokio::select! {
                _ = &mut played, if !is_said => is_said = true,
                event = sound.event() => if let RtpEvent::Answering(verdict) = event {
                    by = Some(verdict);
                },
                happening = leg.next() => match happening {
                    Happening::RemoteHungUp { .. } | Happening::SessionExpired | Happening::Gone => {
                        they_hung_up = true;
                        break;
                    }
                    // For ten seconds the session stays as it is.
                    Happening::Offer { .. } => leg.command(Command::RefuseOffer),
                    _ => {}
                },
                () = has_ended(stopped) => {
                    leg.command(Command::HangUp { q850: 16 });
                    return Outcome::stopped(Before::HungUp);
                }
                () = until(limit) => break,
            }
        }
        leg.command(Command::HangUp { q850: 16 });
        Outcome::PickedUp {
            after,
            by,
            sound: sound.quality(),
            they_hung_up,
        }
    }
}
