//! A call that has come in: from a peer of ours, to a number of a workspace that uses that peer's trunk, to its agent.
//!
//! It is looked up, stored and given a slot before it rings; the agent is fetched while it rings, and then it is picked up.
use super::{
    accepting::{accept, accept_offered, offer_early},
    account::{Account, stored},
    accounts::{account, home},
    agent::Agent,
    broken,
    conversing::Conversing,
    line::Target,
    numbers,
    orders::{LiveCall, ORDERS, Order, Told, has_ended},
    phones::Switchboard,
    reply::{caller, send, target, verification},
    signalling::{Signalling, sender},
    sockets::dropped,
    table::{Mailbox, Source},
    turned_away,
};
use crate::{
    call::leg::{Leg, Ways},
    deps::Deps,
    inbound::{self, Arriving, Taken},
    trunk::elsewhere,
};
use bytes::Bytes;
use entities::{
    Error,
    ids::{SessionId, TrunkId},
    number::{self, Model as Number},
    session::EndedBy,
    sip_leg::{self, Phase, RouteSet},
    sip_trunk::{self, NumberFormat},
    values::{Country, E164, Env},
};
use futures_util::FutureExt;
use media::bridge::MediaBridge;
use rules::session::command::Command as SessionCommand;
use runtime::supervise::panic_text;
use sip::{
    call::{Call, CallIdentity, Command, Happening, Local, offer_of},
    message::{Address, Fields, Name, Request, Response, Transport, uri_text},
};
use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, oneshot, watch};

/// What a talk can be told before it listens.
const INBOX: usize = 16;
/// Trunks of one address whose numbers are read as their workspaces write them.
const MOST_HOMES: usize = 16;
/// Sound that is later than this is heard to be.
const LATE: Duration = Duration::from_millis(40);
/// Seconds after which a peer may try again.
const RETRY_AFTER: u64 = 10;

/// An INVITE of no call of ours. From now on its Call-ID is its task's, so that its repeats begin no other.
pub fn arrived(deps: &Deps, switchboard: &Switchboard, request: Request, source: Source, tag: String) {
    let trunks = switchboard.line.sources().trunks_of(source.address.ip());
    if trunks.is_empty() {
        return dropped("stranger");
    }
    match switchboard.admits(&trunks, deps.clock.monotonic()) {
        Some(true) => {}
        Some(false) => return send(switchboard, &request, &source, &busy(&request, &tag)),
        None => return dropped("flood"),
    }
    let mailbox = switchboard.line.register(request.call_id()).ok();
    // Whoever is let in on a machine that is late makes all others hear it.
    let Some(mailbox) = mailbox.filter(|_| switchboard.threads.late_p99() <= LATE) else {
        return send(switchboard, &request, &source, &busy(&request, &tag));
    };
    let (deps, switchboard) = (deps.clone(), switchboard.clone());
    deps.runtime.clone().spawn(async move {
        let session: SessionId = deps.ids.next();
        let incoming = Incoming {
            deps: &deps,
            switchboard: &switchboard,
            source,
            session,
            tag,
        };
        let taken = AssertUnwindSafe(incoming.take(request, trunks, mailbox))
            .catch_unwind()
            .await;
        switchboard.live().remove(&session);
        if let Err(panic) = taken {
            tracing::error!(panic = panic_text(&*panic), "a call that came in panicked");
            broken::clear(&deps, &switchboard, session, None).await;
        }
    });
}

fn busy(request: &Request, tag: &str) -> Response {
    let mut response = request.response(503, "Service Unavailable", Some(tag));
    response.headers.insert(Name::RETRY_AFTER, RETRY_AFTER);
    response
}

struct Incoming<'a> {
    deps: &'a Deps,
    switchboard: &'a Switchboard,
    source: Source,
    session: SessionId,
    tag: String,
}

/// Why it is not begun here.
enum Unfound {
    Refused(u16, &'static str),
    /// Another node has the number's workspace.
    Elsewhere(Box<Number>),
}

/// Whose call it is.
struct Found {
    number: Number,
    account: Arc<Account>,
    home: Country,
}

impl Found {
    /// The caller's number, as the trunk writes it.
    fn caller_of(&self, request: &Request) -> Option<E164> {
        let format = self.account.row.definition.number_format;
        caller(request).and_then(|user| numbers::read(&user, format, self.home))
    }
}

impl Incoming<'_> {
    fn reply(&self, request: &Request, response: &Response) {
        send(self.switchboard, request, &self.source, response);
    }

    fn refuse(&self, request: &Request, code: u16, reason: &str) {
        self.reply(request, &request.response(code, reason, Some(&self.tag)));
    }

    async fn take(self, request: Request, trunks: Vec<TrunkId>, mailbox: Mailbox) {
        self.reply(&request, &request.response(100, "Trying", None));
        let found = match self.find(&request, &trunks).await {
            Ok(Ok(found)) => found,
            Ok(Err(Unfound::Refused(code, reason))) => return self.refuse(&request, code, reason),
            Ok(Err(Unfound::Elsewhere(number))) => return self.send_on(&request, &number).await,
            Err(error) => {
                tracing::warn!(%error, "a call that came in could not be looked up");
                return self.reply(&request, &busy(&request, &self.tag));
            }
        };
        if self.deps.is_draining() {
            return self.reply(&request, &busy(&request, &self.tag));
        }
        // By the service's own time, which goes on where the process before has left off: so do its nonces.
        let at = Duration::from_millis(u64::try_from(self.deps.clock.now().millis()).unwrap_or(0));
        let ip = self.source.address.ip();
        if let Some(challenge) = found.account.challenge(&request, ip, at, &self.tag) {
            return self.reply(&request, &challenge);
        }
        self.begin(request, found, mailbox).await;
    }

    /// The inner error: the answer.
    async fn find(&self, request: &Request, trunks: &[TrunkId]) -> entities::Result<Result<Found, Unfound>> {
        let db = &self.deps.db.read;
        // Of a process that was killed: nobody knows any more what was said to it.
        if sip_leg::of_call_id(db, request.call_id()).await?.is_some() {
            return Ok(Err(Unfound::Refused(500, "Server Internal Error")));
        }
        let rows = sip_trunk::of_ids(db, trunks).await?;
        let users = [called(request), request.user_of(Name::TO)];
        let mut candidates: Vec<E164> = Vec::new();
        for user in users.iter().flatten() {
            candidates.extend(numbers::read(user, NumberFormat::E164Plus, Country::US));
            for row in rows.iter().take(MOST_HOMES) {
                let home = home(self.deps, row.tenant_id).await?;
                candidates.extend(numbers::read(user, row.definition.number_format, home));
            }
        }
        let Some(number) = number::called_over(db, trunks, &candidates).await? else {
            return Ok(Err(Unfound::Refused(404, "Not Found")));
        };
        let Some(trunk) = number.trunk_id else {
            return Ok(Err(Unfound::Refused(404, "Not Found")));
        };
        if !self.deps.fence.leases().serves(number.tenant_id) {
            return Ok(Err(Unfound::Elsewhere(Box::new(number))));
        }
        let account = match account(self.deps, self.switchboard, number.tenant_id, trunk).await {
            Err(Error::NotFound(_)) => return Ok(Err(Unfound::Refused(404, "Not Found"))),
            found => found?,
        };
        let home = home(self.deps, number.tenant_id).await?;
        Ok(Ok(Found { number, account, home }))
    }

    /// Another node has its workspace: whoever calls is told where that is, and calls there.
    async fn send_on(&self, request: &Request, number: &Number) {
        let transport = match self.source.transport {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
            // Its port is not the one that others are told.
            Transport::Tls => return self.reply(request, &busy(request, &self.tag)),
        };
        let is_plain = |user: &String| {
            user.chars()
                .all(|char| char.is_ascii_alphanumeric() || "+-._".contains(char))
        };
        let user = called(request).filter(is_plain);
        let user = user.unwrap_or_else(|| number.phone_number.as_str().to_owned());
        match elsewhere::contact(self.deps, number.tenant_id, &user, transport).await {
            Ok(Some(contact)) => {
                metrics::counter!("callboard_calls_sent_on_total").increment(1);
                let mut response = request.response(302, "Moved Temporarily", Some(&self.tag));
                response.headers.insert(Name::CONTACT, contact);
                self.reply(request, &response);
            }
            // It is on its way, or its node carries no calls.
            Ok(None) => self.reply(request, &busy(request, &self.tag)),
            Err(error) => {
                tracing::warn!(%error, "it is not known which node answers a call that came in");
                self.reply(request, &busy(request, &self.tag));
            }
        }
    }

    async fn begin(self, request: Request, found: Found, mailbox: Mailbox) {
        let from_number = found.caller_of(&request);
        let offer = offer_of(&request);
        let notes = notes(&request);
        let Some(mut signalling) = self.open(&request, &found, mailbox) else {
            return self.refuse(&request, 500, "Server Internal Error");
        };
        // Its answer is all that becomes of it: no row, no session.
        if signalling.is_refused() {
            return signalling.leave();
        }
        let storing = signalling.store();
        let (stored, mut has_gone) = signalling.serve_while(storing).await;
        if let Err(error) = stored {
            tracing::warn!(%error, "a call that came in could not be stored");
            return unavailable(signalling).await;
        }
        let arriving = Arriving {
            to_number: found.number.phone_number.clone(),
            from_number,
            sandbox: None,
        };
        let (inbox, told) = mpsc::channel(INBOX);
        let (ended, mut watched) = watch::channel(false);
        let (taken, leg) = oneshot::channel();
        let call = LiveCall {
            inbox,
            ended,
            taken: Some(taken),
        };
        self.switchboard.live().insert(self.session, call);
        let owner = (found.number.tenant_id, Env::Live);
        let receiving = inbound::receive(self.deps, owner, self.session, arriving);
        let (taken, is_over) = signalling.serve_while(receiving).await;
        has_gone |= is_over;
        match taken {
            Ok(Taken::By(_)) => {
                // Its slot was given to it, and its leg with it, unless its session has ended at this very moment.
                let leg = tokio::select! {
                    biased;
                    leg = leg => leg.ok(),
                    () = has_ended(&mut watched) => None,
                };
                let Some(leg) = leg else {
                    return unavailable(signalling).await;
                };
                let tell = |command| self.deps.router.sessions().tell(leg.session(), command);
                if has_gone {
                    tell(SessionCommand::HangUp(EndedBy::Caller));
                    return signalling.leave();
                }
                let note = |(kind, detail)| tell(SessionCommand::Note { kind, detail });
                notes.into_iter().for_each(note);
                self.ring(leg, signalling, offer, (told, watched)).await;
            }
            Ok(Taken::Not { .. }) if has_gone => signalling.leave(),
            Ok(Taken::Not {
                outcome,
                instead,
                message,
            }) => {
                let not = (outcome, instead, message);
                turned_away::meet(self.deps, self.switchboard, signalling, offer, not).await;
            }
            Err(error) => {
                tracing::warn!(%error, "a call that came in could not be taken");
                unavailable(signalling).await;
            }
        }
    }

    /// Its leg, which has a machine from now on. `None`: what we are called is not what a SIP address can have.
    fn open(&self, request: &Request, found: &Found, mailbox: Mailbox) -> Option<Signalling> {
        let Found { number, account, .. } = found;
        let target = target(request, &self.source);
        let sent_by = self.switchboard.line.sent_by(target.transport)?;
        let local = Local {
            identity: CallIdentity::new(self.switchboard.identity.clone(), self.session.0, 1),
            sender: sender(sent_by, &target, number.phone_number.as_str()).ok()?,
            session_expires: u32::try_from(account.row.definition.session_expires_seconds.get()).ok(),
        };
        let row = self.row(request, number, account, &target);
        let call = Call::incoming(request.clone(), local, Instant::now());
        let wires = (self.deps, self.switchboard);
        Some(Signalling::of(wires, account, call, mailbox, target, row))
    }

    fn row(&self, request: &Request, number: &Number, account: &Account, target: &Target) -> sip_leg::Model {
        let text = |name: Name| {
            let value = request.header_text(name).unwrap_or_default();
            format!("<{}>", Address::read(&value).uri)
        };
        sip_leg::Model {
            id: self.deps.ids.next(),
            tenant_id: number.tenant_id,
            env: Env::Live,
            session_id: self.session,
            leg: 1,
            trunk_id: account.row.id,
            call_id: request.call_id().to_owned(),
            target: target.address.to_string(),
            transport: stored(target.transport),
            phase: Phase::Inviting,
            local_uri: text(Name::TO),
            remote_uri: text(Name::FROM),
            remote_tag: None,
            remote_target: request.contact().map(|uri| uri_text(&uri)).unwrap_or_default(),
            route_set: RouteSet(request.record_route()),
            cseq: 0,
            created_at: self.deps.clock.now(),
        }
    }

    /// Until the agent is there.
    async fn ring(
        &self,
        leg: Arc<Leg>,
        mut signalling: Signalling,
        offer: Option<Bytes>,
        (told, mut ended): (mpsc::Receiver<Told>, watch::Receiver<bool>),
    ) {
        signalling.belongs_to(&leg);
        let (bridge, heard) = MediaBridge::new();
        let mut early = offer_early(self.switchboard, &mut signalling, &bridge);
        if early.is_none() {
            signalling.command(Command::Ring);
        }
        let (orders, obeyed) = mpsc::channel::<Order>(ORDERS);
        let ways: Ways = (heard, told);
        let mut agent = Agent::fetch(self.deps, &leg, &bridge, ways, orders);
        loop {
            tokio::select! {
                biased;
                () = has_ended(&mut ended) => {
                    drop(agent);
                    return turned_away::refuse(signalling, (480, "Temporarily Unavailable"), None).await;
                }
                happening = signalling.next() => match happening {
                    // They gave up, or never took what we said.
                    Happening::Cancelled { .. } | Happening::NeverAcked | Happening::Gone => {
                        let gone = SessionCommand::HangUp(EndedBy::Caller);
                        self.deps.router.sessions().tell(leg.session(), gone);
                        drop(agent);
                        return signalling.leave();
                    }
                    Happening::OfferAnswered { sdp } => {
                        if let Some(sound) = &mut early
                            && sound.agree(self.deps, &sdp).await.is_err()
                        {
                            return self.give_up(&leg, agent, signalling, (488, "Not Acceptable Here")).await;
                        }
                    }
                    _ => {}
                },
                is_there = agent.fetched() => match is_there {
                    true => break,
                    // Its session ends by that.
                    false => {
                        return turned_away::refuse(signalling, (480, "Temporarily Unavailable"), None).await;
                    }
                },
            }
        }
        let accepted = match early {
            Some(sound) => Ok(accept_offered(&mut signalling, sound).await),
            None => accept(self.deps, self.switchboard, &mut signalling, offer, bridge).await,
        };
        match accepted {
            Ok(sound) => {
                let wires = (self.deps, self.switchboard);
                let conversing = Conversing::new(wires, leg, signalling, sound, agent);
                conversing.picked_up(false).run(obeyed, ended).await;
            }
            Err(answer) => self.give_up(&leg, agent, signalling, answer).await,
        }
    }

    /// Its agent was there, and nothing can be agreed on with the caller.
    async fn give_up(&self, leg: &Leg, agent: Agent, signalling: Signalling, answer: (u16, &'static str)) {
        let gone = SessionCommand::HangUp(EndedBy::System);
        self.deps.router.sessions().tell(leg.session(), gone);
        drop(agent);
        turned_away::refuse(signalling, answer, None).await;
    }
}

async fn unavailable(signalling: Signalling) {
    turned_away::refuse(signalling, (503, "Service Unavailable"), Some(RETRY_AFTER)).await;
}

/// The number that was called, as it stands in the Request-URI.
fn called(request: &Request) -> Option<String> {
    let uri = format!("<{}>", uri_text(&request.uri));
    Address::read(&uri).user().map(str::to_owned)
}

/// What the timeline says of it.
fn notes(request: &Request) -> Vec<(&'static str, String)> {
    let mut notes = vec![("caller_verified", verification(request).to_owned())];
    let diverted = request.user_of("Diversion");
    notes.extend(diverted.map(|by| ("diverted_by", by.chars().take(64).collect())));
    notes
}
