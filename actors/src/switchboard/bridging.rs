//! A call is handed over: by a second leg of ours whose sound is passed on, or by the peer, which is asked to (REFER).
//!
//! While the second leg rings the talk can still go on. When somebody picks up there, the session is told, then the agent, which
//! leaves; both legs are carried until one of them hangs up.
use super::{
    account::Account,
    accounts::home,
    answers::sip_answer,
    channel::{Channel, open},
    conversing::{Conversing, Next, answer_offer},
    leg_numbers::of_second,
    line::Target,
    moments::until,
    numbers::{callee, caller},
    orders::{Order, has_ended},
    phones::Switchboard,
    ringback::ringback,
    signalling::{Invite, Signalling},
    sound::Sound,
};
use crate::{call::leg::Leg, deps::Deps, reach};
use adapters::sound::TELEPHONE;
use entities::{
    session::Direction,
    sip_trunk::Transfer,
    values::{Country, E164},
};
use media::{bridge::MediaBridge, playout::Played, rtp::session::RtpEvent};
use rules::session::{
    command::{Command as SessionCommand, Refusal},
    machine::{CallMode, Phase, Session},
    sip_outcome::outcome,
};
use sip::{
    call::{Command, Happening},
    message::{Name, address::read_uri},
};
use std::{
    convert::Infallible,
    future::pending,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, oneshot, watch};

/// Somebody takes over within this time, as the session has it, or nobody does.
const TAKES_OVER_WITHIN: Duration = Duration::from_secs(45);
/// The second leg's turn comes within this time: it rings for half a minute, then, or not at all. A ring of a second helps nobody.
const TURN_WITHIN: Duration = Duration::from_secs(15);
/// A REFER that nobody tells of any more is given up by its leg, which then answers for the peer. This is for one that could not be
/// sent, because another is under way.
const REFERRED_WITHIN: Duration = Duration::from_secs(50);
/// What the leg says then.
const NOBODY_TELLS: u16 = 408;

type Done = oneshot::Sender<Result<(), String>>;

/// The one who is to take over.
struct Second {
    signalling: Signalling,
    sound: Sound,
    /// The workspace's country.
    home: Country,
    /// Both are heard by each other.
    is_joined: bool,
    _channel: Channel,
}

/// How the ringing at the second leg ended.
enum Rung {
    PickedUp,
    Failed(String),
    Stopped(Stop),
}

/// What ends a hand-over that is under way.
enum Stop {
    /// Who wanted it does not any more.
    Unwanted,
    /// The call itself is over: by its session, or by the other side.
    Ended,
    HungUp,
}

impl From<Stop> for Next {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Unwanted | Stop::Ended => Next::GoesOn,
            Stop::HungUp => Next::Over,
        }
    }
}

/// What a second leg is placed with.
struct Placing {
    deps: Deps,
    switchboard: Switchboard,
    leg: Arc<Leg>,
    account: Arc<Account>,
    from: E164,
    to: E164,
    target: Target,
    /// Of the leg in its session.
    number: u32,
    channel: Channel,
}

impl Conversing {
    pub(super) async fn hand_over(
        &mut self,
        to: E164,
        mut done: Done,
        orders: &mut mpsc::Receiver<Order>,
        ended: &mut watch::Receiver<bool>,
    ) -> Next {
        let (deps, tenant) = (self.deps.clone(), self.leg.call.tenant_id);
        let is_callable = reach::is_callable(&deps, tenant, &to);
        match self.meanwhile(is_callable, &mut done, ended).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return not_taken(done, error.to_string()),
            Err(stop) => return stop.into(),
        }
        match self.signalling.account().row.definition.transfer {
            Transfer::Refer => self.refer(&to, done, ended).await,
            Transfer::Bridge => self.bridge(&to, done, orders, ended).await,
        }
    }

    /// The work is done, and the call goes on beside it, however long a database takes: who hangs up is answered at once. Errors: what
    /// ended the hand-over before.
    async fn meanwhile<T>(
        &mut self,
        work: impl Future<Output = T> + Send,
        done: &mut Done,
        ended: &mut watch::Receiver<bool>,
    ) -> Result<T, Stop> {
        let mut work = pin!(work);
        loop {
            let next = tokio::select! {
                biased;
                () = has_ended(ended) => return Err(Stop::Ended),
                () = done.closed() => return Err(Stop::Unwanted),
                happening = self.signalling.next() => self.follow(happening).await,
                event = self.sound.event() => self.heard(event),
                worked = &mut work => return Ok(worked),
            };
            if next == Next::Over {
                return Err(Stop::HungUp);
            }
        }
    }

    /// The number of ours that the call is on.
    fn our_number(&self) -> Option<&E164> {
        match self.leg.call.direction {
            Direction::Outbound => self.leg.call.from_number.as_ref(),
            Direction::Inbound => self.leg.call.to_number.as_ref(),
        }
    }

    /// The peer is asked to hand it over itself.
    async fn refer(&mut self, to: &E164, mut done: Done, ended: &mut watch::Receiver<bool>) -> Next {
        let (deps, account) = (self.deps.clone(), self.signalling.account().clone());
        let written = async {
            open(&deps, account.row.tenant_id, account.row.id).await?;
            let home = home(&deps, account.row.tenant_id).await;
            let home = home.map_err(|error| error.to_string())?;
            let to = read_uri(&callee(to, &account.row.definition, home));
            let passed = deps.pass(account.row.tenant_id).await;
            passed.map_err(|error| error.to_string())?;
            to.ok_or_else(|| "the trunk's host is not one that a SIP address can have".to_owned())
        };
        let to = match self.meanwhile(written, &mut done, ended).await {
            Ok(Ok(to)) => to,
            Ok(Err(why)) => return not_taken(done, why),
            Err(stop) => return stop.into(),
        };
        self.signalling.command(Command::Refer { to });
        let limit = Instant::now() + REFERRED_WITHIN;
        loop {
            let next = tokio::select! {
                biased;
                // What comes next is for whoever looks next.
                () = has_ended(ended) => return Next::GoesOn,
                () = done.closed() => return Next::GoesOn,
                happening = self.signalling.next() => match happening {
                    Happening::ReferProgress { code: 200..=299 } => {
                        let _ = done.send(Ok(()));
                        return Next::GoesOn;
                    }
                    Happening::ReferProgress { code: NOBODY_TELLS } => {
                        return not_taken(done, "nobody answered in time".into());
                    }
                    Happening::ReferProgress { code } if code >= 300 => {
                        return not_taken(done, format!("the carrier answered {code}"));
                    }
                    happening => self.follow(happening).await,
                },
                event = self.sound.event() => self.heard(event),
                () = until(Some(limit)) => return not_taken(done, "nobody answered in time".into()),
            };
            if next == Next::Over {
                return next;
            }
        }
    }

    async fn bridge(
        &mut self,
        to: &E164,
        mut done: Done,
        orders: &mut mpsc::Receiver<Order>,
        ended: &mut watch::Receiver<bool>,
    ) -> Next {
        let limit = Instant::now() + TAKES_OVER_WITHIN;
        let mut second = match self.dial_second(to, &mut done, ended).await {
            Ok(Ok(second)) => second,
            Ok(Err(why)) => return not_taken(done, why),
            Err(stop) => return stop.into(),
        };
        let rung = self.ring_second(&mut second, limit, &mut done, ended).await;
        self.sound.bridge().stop();
        let next = match rung {
            Rung::PickedUp => self.taken_over(to, &mut second, done, orders, ended).await,
            Rung::Failed(why) => not_taken(done, why),
            Rung::Stopped(stop) => stop.into(),
        };
        second.signalling.command(Command::HangUp { q850: 16 });
        drop(second.sound);
        if next == Next::GoesOn {
            self.sound.end_relay();
        }
        second.signalling.leave();
        next
    }

    /// Places it in a task of its own: one that nobody wants any more, once it stands, is taken back before anything of it leaves.
    async fn dial_second(
        &mut self,
        to: &E164,
        done: &mut Done,
        ended: &mut watch::Receiver<bool>,
    ) -> Result<Result<Second, String>, Stop> {
        let Some(from) = self.our_number().cloned() else {
            return Ok(Err("the call has no number of this workspace".into()));
        };
        let (deps, account) = (self.deps.clone(), self.signalling.account().clone());
        let over = (account.row.tenant_id, account.row.id);
        let in_turn = Channel::in_turn(&deps, over, to, TURN_WITHIN);
        let channel = match self.meanwhile(in_turn, done, ended).await? {
            Ok(channel) => channel,
            Err(why) => return Ok(Err(why)),
        };
        self.seconds += 1;
        let placing = Placing {
            deps,
            switchboard: self.switchboard.clone(),
            leg: self.leg.clone(),
            account,
            from,
            to: to.clone(),
            target: self.signalling.target().clone(),
            number: of_second(self.signalling.number(), self.seconds),
            channel,
        };
        let mut placed = self.deps.runtime.spawn(placing.place());
        match self.meanwhile(&mut placed, done, ended).await {
            Ok(Ok(second)) => Ok(second),
            Ok(Err(_)) => Ok(Err("the second leg failed".into())),
            Err(stop) => {
                self.deps.runtime.spawn(async move {
                    if let Ok(Ok(second)) = placed.await {
                        second.signalling.withdraw().await;
                    }
                });
                Err(stop)
            }
        }
    }

    /// It stands before the agent is told, whose own word for it comes then too late to end the call. Both are heard and answered
    /// meanwhile.
    async fn taken_over(
        &mut self,
        to: &E164,
        second: &mut Second,
        done: Done,
        orders: &mut mpsc::Receiver<Order>,
        ended: &mut watch::Receiver<bool>,
    ) -> Next {
        let (deps, session) = (self.deps.clone(), self.leg.session());
        let bridge = SessionCommand::Bridge { to: to.clone() };
        let bridged = deps.router.sessions().insist(session, bridge);
        match self.carry_both(second, None, ended, bridged).await {
            Ok(Ok(session)) if is_bridged(&session) => {
                self.is_bridged = true;
                let _ = done.send(Ok(()));
                let carried = self.carry_both(second, Some(orders), ended, pending::<Infallible>());
                let Err(next) = carried.await;
                next
            }
            // It was taken back at this very moment, or is over.
            Ok(Ok(_)) => not_taken(done, "nobody answered in time".into()),
            Ok(Err(error)) => not_taken(done, error.to_string()),
            Err(next) => next,
        }
    }

    async fn ring_second(
        &mut self,
        second: &mut Second,
        limit: Instant,
        done: &mut Done,
        ended: &mut watch::Receiver<bool>,
    ) -> Rung {
        let mut ringing = self.ring_out(second.home);
        loop {
            let next = tokio::select! {
                biased;
                () = has_ended(ended) => return Rung::Stopped(Stop::Ended),
                () = done.closed() => return Rung::Stopped(Stop::Unwanted),
                happening = second.signalling.next() => match happening {
                    Happening::PickedUp { sdp } => {
                        second.signalling.confirm().await;
                        if let Err(why) = second.sound.agree(&self.deps, &sdp).await {
                            return Rung::Failed(format!("the carrier's answer cannot be used: {why}"));
                        }
                        second.sound.picked_up(false);
                        self.join(second);
                        return match second.is_joined {
                            true => Rung::PickedUp,
                            false => Rung::Failed("one of the two calls has no sound".into()),
                        };
                    }
                    // Who waits hears how it rings there.
                    Happening::Early { sdp } => {
                        if second.sound.agree(&self.deps, &sdp).await.is_ok() {
                            second.sound.picked_up(false);
                            self.join(second);
                        }
                        Next::GoesOn
                    }
                    Happening::Refused { code, reason, q850, rang, why, .. } => {
                        let answer = sip_answer((code, reason, q850), why);
                        return Rung::Failed(words(outcome(&answer, rang).refusal));
                    }
                    Happening::NoAnswer | Happening::TransportFailed | Happening::Gone => {
                        return Rung::Failed("the carrier cannot be reached".into());
                    }
                    _ => Next::GoesOn,
                },
                _ = second.sound.event() => Next::GoesOn,
                happening = self.signalling.next() => self.follow(happening).await,
                event = self.sound.event() => self.heard(event),
                // Again, until somebody is heard there.
                _ = &mut ringing, if !second.is_joined => {
                    ringing = self.ring_out(second.home);
                    Next::GoesOn
                }
                () = until(Some(limit)) => return Rung::Failed("nobody answered".into()),
            };
            if next == Next::Over {
                return Rung::Stopped(Stop::HungUp);
            }
        }
    }

    /// The caller hears that it rings there.
    fn ring_out(&self, home: Country) -> oneshot::Receiver<Played> {
        self.sound.bridge().play_whole(TELEPHONE, ringback(home))
    }

    fn join(&self, second: &mut Second) {
        if !second.is_joined {
            // Consent was given, or the line has no recording that could go on.
            let recording = self.leg.call.options.recording.as_ref();
            let is_recorded = recording.is_some_and(|recording| recording.transfers);
            second.is_joined = self.sound.relay(&second.sound, is_recorded);
        }
    }

    /// Until that is over; errors: a side hung up, or the session ended, before. `orders`: those of an agent that is gone.
    async fn carry_both<T>(
        &mut self,
        second: &mut Second,
        mut orders: Option<&mut mpsc::Receiver<Order>>,
        ended: &mut watch::Receiver<bool>,
        over: impl Future<Output = T> + Send,
    ) -> Result<T, Next> {
        let mut over = pin!(over);
        loop {
            let next = tokio::select! {
                biased;
                () = has_ended(ended) => return Err(Next::GoesOn),
                happening = self.signalling.next() => self.follow(happening).await,
                happening = second.signalling.next() => self.follow_second(second, happening).await,
                event = self.sound.event() => self.heard(event),
                event = second.sound.event() => {
                    if matches!(event, RtpEvent::NeverHeard | RtpEvent::HeardNoMore | RtpEvent::Gone) {
                        self.tell(SessionCommand::BridgeEnded);
                    }
                    Next::GoesOn
                }
                over = &mut over => return Ok(over),
                // What it wanted last is nobody's wish.
                () = given_up(&mut orders) => Next::GoesOn,
                () = until(Some(self.look_at)) => self.look(),
            };
            if next == Next::Over {
                return Err(next);
            }
        }
    }

    async fn follow_second(&mut self, second: &mut Second, happening: Happening) -> Next {
        match happening {
            Happening::RemoteHungUp { .. } | Happening::SessionExpired | Happening::Gone => {
                // The session's end hangs up what is left.
                self.tell(SessionCommand::BridgeEnded);
            }
            Happening::Offer { sdp } => {
                answer_offer(&self.deps, &mut second.signalling, &mut second.sound, sdp).await;
            }
            Happening::OfferAnswered { sdp } => {
                // What cannot be used leaves the sound as it was.
                let _ = second.sound.agree(&self.deps, &sdp).await;
            }
            _ => {}
        }
        Next::GoesOn
    }
}

/// One more order that nobody obeys.
async fn given_up(orders: &mut Option<&mut mpsc::Receiver<Order>>) {
    if let Some(orders) = orders
        && orders.recv().await.is_some()
    {
        return;
    }
    pending().await
}

impl Placing {
    /// Its ports and its row; its INVITE leaves with the first look at it. Errors: why not, in words for users.
    async fn place(self) -> Result<Second, String> {
        let Placing {
            deps,
            switchboard,
            account,
            ..
        } = &self;
        let definition = &account.row.definition;
        let home = home(deps, account.row.tenant_id).await;
        let home = home.map_err(|error| error.to_string())?;
        // Nobody listens to it: sound goes from leg to leg.
        let (bridge, _) = MediaBridge::new();
        let sound = Sound::open(switchboard, account, bridge, self.target.address.ip())?;
        let diversion = format!("{};reason=unconditional", caller(&self.from, definition, home));
        let invite = Invite {
            from: &self.from,
            to: &self.to,
            home,
            headers: vec![(Name::from("Diversion"), diversion)],
            sdp: sound.offer(),
        };
        let leg = (self.number, self.target.clone());
        let dialled = Signalling::dial((deps, switchboard), account, &self.leg, leg, invite).await;
        Ok(Second {
            signalling: dialled.map_err(words)?,
            sound,
            home,
            is_joined: false,
            _channel: self.channel,
        })
    }
}

fn is_bridged(session: &Session) -> bool {
    matches!(&session.phase, Phase::Conversing(talk) if matches!(talk.mode, CallMode::Bridged { .. }))
}

/// Who asked for it may be gone; the call goes on.
fn not_taken(done: Done, why: String) -> Next {
    let _ = done.send(Err(why));
    Next::GoesOn
}

/// Why nobody took over, as the agent is told.
fn words(refusal: Refusal) -> String {
    match refusal {
        Refusal::Busy => "busy".into(),
        Refusal::NoAnswer => "nobody answered".into(),
        Refusal::Declined => "the call was turned down".into(),
        Refusal::Congested => "the carrier has no room for the call".into(),
        Refusal::NotPlaced => "this service has no room for one more call at the moment".into(),
        Refusal::Blocked(why) | Refusal::InvalidNumber(why) | Refusal::Rejected(why) | Refusal::Unreachable(why) => why,
    }
}
