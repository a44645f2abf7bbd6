//! A leg on the wire: its machine ([`sip::call`]), its mailbox, its timers, and the row by which the next process could end it.
//!
//! The row is stored before the INVITE leaves, and follows what the leg becomes.
use super::{
    account::{Account, stored},
    hops::Hops,
    line::{NotSent, Target},
    moments::until,
    numbers::{callee, caller, first_routes},
    phones::{OnTheWire, Switchboard},
    said::Said,
    sockets::{WHOLE, dropped},
    sources::SpokenWith,
    table::{Arrival, Mailbox, Source},
};
use crate::{call::leg::Leg, deps::Deps};
use adapters::trunk::uri_parameter;
use bytes::Bytes;
use entities::{
    boxed,
    ids::SessionId,
    sip_leg::{self, Phase, RouteSet},
    sip_trunk::CallerId,
    values::{Country, E164},
};
use rules::{commit::Commit, session::command::Refusal};
use sip::{
    call::{Call, CallIdentity, Command, Dial, Happening, Local, Output},
    dialog::Sender,
    message::{Name, Request, Response, Transport, address::read_uri},
};
use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::task::JoinHandle;

pub const USER_AGENT: &str = concat!("Callboard/", env!("CARGO_PKG_VERSION"));

/// How long an ACK waits for the row of its dialog.
const STORED_WITHIN: Duration = Duration::from_secs(2);

/// What a call's first INVITE says.
pub struct Invite<'a> {
    pub from: &'a E164,
    pub to: &'a E164,
    /// The workspace's country.
    pub home: Country,
    /// `Diversion` and the like.
    pub headers: Vec<(Name, String)>,
    pub sdp: Bytes,
}

pub struct Signalling {
    deps: Deps,
    switchboard: Switchboard,
    account: Arc<Account>,
    call: Call,
    mailbox: Mailbox,
    hops: Hops,
    row: sip_leg::Model,
    /// Is being stored: what follows waits for it.
    storing: Option<JoinHandle<()>>,
    /// Being sent.
    output: Option<Output>,
    last_source: Option<Source>,
    said: Said,
    /// Nobody asks any more what happens.
    is_finishing: bool,
    is_gone: bool,
    _spoken_with: SpokenWith,
    _on_the_wire: OnTheWire,
}

impl Signalling {
    /// Stores the leg, then sends its INVITE. `number`: of the leg in its session. Errors: why nothing was sent.
    pub async fn dial(
        (deps, switchboard): (&Deps, &Switchboard),
        account: &Arc<Account>,
        leg: &Leg,
        (number, target): (u32, Target),
        invite: Invite<'_>,
    ) -> Result<Self, Refusal> {
        let session = leg.session().id;
        let mut target = target;
        let mut dial = dial_of(switchboard, account, (session, number), &target, &invite)?;
        if target.transport == Transport::Udp && is_long(&dial) && switchboard.takes_streams(&target).await {
            target.transport = Transport::Tcp;
            dial = dial_of(switchboard, account, (session, number), &target, &invite)?;
        }
        let to = callee(invite.to, &account.row.definition, invite.home);
        let row = sip_leg::Model {
            id: deps.ids.next(),
            tenant_id: leg.call.tenant_id,
            env: leg.call.env,
            session_id: session,
            leg: i32::try_from(number).unwrap_or(i32::MAX),
            trunk_id: account.row.id,
            call_id: dial.local.identity.call_id(&dial.host),
            target: target.address.to_string(),
            transport: stored(target.transport),
            phase: Phase::Inviting,
            local_uri: dial.from.clone(),
            remote_uri: to.clone(),
            remote_tag: None,
            remote_target: to,
            route_set: RouteSet(dial.route.clone()),
            cseq: 1,
            created_at: deps.clock.now(),
        };
        let mailbox = switchboard.line.register(&row.call_id);
        let mailbox = mailbox.map_err(|why| {
            tracing::warn!(?why, "a call finds no room on the wire and waits for its turn again");
            Refusal::NotPlaced
        })?;
        store(deps, row.clone()).await.map_err(|error| {
            tracing::warn!(%error, "a leg could not be stored; its call waits for its turn again");
            Refusal::NotPlaced
        })?;
        let call = Call::dial(dial, Instant::now());
        let mut signalling = Self::of((deps, switchboard), account, call, mailbox, target, row);
        signalling.belongs_to(leg);
        Ok(signalling)
    }

    pub fn of(
        (deps, switchboard): (&Deps, &Switchboard),
        account: &Arc<Account>,
        call: Call,
        mailbox: Mailbox,
        target: Target,
        row: sip_leg::Model,
    ) -> Self {
        let spoken_with = switchboard.line.sources().speak_with(target.address.ip());
        Signalling {
            deps: deps.clone(),
            account: account.clone(),
            call,
            mailbox,
            row,
            storing: None,
            output: None,
            hops: Hops::new(switchboard, account.row.id, account.row.definition.port(), target),
            last_source: None,
            said: Said::default(),
            is_finishing: false,
            is_gone: false,
            _spoken_with: spoken_with,
            _on_the_wire: OnTheWire::new(switchboard),
            switchboard: switchboard.clone(),
        }
    }

    /// The session in whose timeline it will stand what was said.
    pub fn belongs_to(&mut self, leg: &Leg) {
        self.said.belongs_to(leg.session());
    }

    /// Before the session is told how it ended: tells it what was said, if nothing more is awaited.
    pub fn tell_what_was_said(&mut self) {
        if self.call.is_settled() {
            self.said.tell(&self.deps);
        }
    }

    /// See [`Call::attested`].
    pub fn attested(&self) -> Option<char> {
        self.call.attested()
    }

    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Of the leg in its session.
    pub fn number(&self) -> i32 {
        self.row.leg
    }

    pub fn target(&self) -> &Target {
        self.hops.first()
    }

    /// The next process would hang it up.
    pub fn is_confirmed(&self) -> bool {
        self.row.phase == Phase::Confirmed
    }

    /// What came in could not become a call: see [`Call::is_refused`].
    pub fn is_refused(&self) -> bool {
        self.call.is_refused()
    }

    /// See [`Call::wants_early_offer`].
    pub fn wants_early_offer(&self) -> bool {
        self.call.wants_early_offer()
    }

    pub fn command(&mut self, command: Command) {
        self.call.command(command, Instant::now());
    }

    /// What happens next; challenges are answered on the way. It may be dropped and called again. After `Gone` it never resolves.
    pub async fn next(&mut self) -> Happening {
        loop {
            if let Some(happening) = self.flush().await {
                return happening;
            }
            if self.is_finishing && self.call.is_settled() {
                self.said.tell_late(&self.deps);
            }
            let deadline = self.call.deadline();
            tokio::select! {
                arrival = self.mailbox.arrived() => match arrival {
                    // Another trunk's peer, who knows the names of a call that is none of his.
                    Arrival::Message { source, .. } if !self.hops.is_heard(source.address.ip()) => dropped("not_its_call"),
                    Arrival::Message { message, source } => {
                        self.last_source = Some(source);
                        self.said.received(&message);
                        self.call.receive(message, Instant::now());
                    }
                    Arrival::Undelivered => self.call.transport_failed(Instant::now()),
                },
                () = until(deadline) => self.call.tick(Instant::now()),
            }
        }
    }

    async fn flush(&mut self) -> Option<Happening> {
        loop {
            if self.output.is_none() {
                self.output = self.call.poll();
            }
            match self.output.as_ref()? {
                Output::Send { bytes, hop } => {
                    let (bytes, hop) = (bytes.clone(), hop.clone());
                    let target = self.hops.target_of(&self.deps.outbound, hop).await;
                    let sent = self.switchboard.line.send(bytes.clone(), &target, &self.mailbox);
                    self.output = None;
                    match sent {
                        Ok(()) => self.said.sent(&bytes),
                        Err(error) => {
                            tracing::debug!(%error, "a SIP message was not sent");
                            self.call.transport_failed(Instant::now());
                        }
                    }
                }
                Output::Happening(_) => match self.output.take() {
                    Some(Output::Happening(Happening::Challenged { request, response })) => {
                        self.authorize(request, &response);
                    }
                    Some(Output::Happening(happening)) => {
                        self.is_gone |= matches!(happening, Happening::Gone);
                        return Some(happening);
                    }
                    Some(Output::Send { .. }) | None => {}
                },
            }
        }
    }

    /// Credentials are for the trunk's own peers, and for nobody else who asks.
    fn authorize(&mut self, mut request: Box<Request>, challenge: &Response) {
        let asked_by = self.last_source.map(|source| source.address.ip());
        let is_the_trunks = asked_by.is_some_and(|ip| self.hops.is_the_trunks(ip));
        // An answer that asks for something else is to a request that had them.
        let challenge = Some(challenge).filter(|response| matches!(response.code, 401 | 407));
        let command = match is_the_trunks && self.account.authorize(&mut request, challenge).is_ok() {
            true => Command::Authorized(request),
            false => Command::Unauthorized(request),
        };
        self.command(command);
    }

    /// Resolves when its row stands.
    pub fn store(&self) -> impl Future<Output = entities::Result<()>> + Send + use<> {
        let (deps, row) = (self.deps.clone(), self.row.clone());
        async move { store(&deps, row).await }
    }

    /// Awaits what is stored or made for a call that has come in, and answers its caller meanwhile, however long that takes. With it:
    /// whether he has gone.
    pub async fn serve_while<T>(&mut self, work: impl Future<Output = T> + Send) -> (T, bool) {
        let mut work = pin!(work);
        let mut has_gone = false;
        loop {
            tokio::select! {
                biased;
                happening = self.next() => has_gone |= matches!(
                    happening,
                    Happening::Cancelled { .. } | Happening::NeverAcked | Happening::Gone
                ),
                worked = &mut work => return (worked, has_gone),
            }
        }
    }

    /// Somebody has picked up: the next process would have to hang up, and how is stored before the ACK (or the 200 of ours) leaves.
    /// A database that stalls holds it up for a moment only: a peer that waits hears nobody.
    #[boxed]
    pub async fn confirm(&mut self) {
        let Some(dialog) = self.call.dialog() else { return };
        self.row.phase = Phase::Confirmed;
        self.row.remote_tag = Some(dialog.remote_tag);
        self.row.remote_target = dialog.remote_target;
        self.row.route_set = RouteSet(dialog.route_set);
        self.row.cseq = i64::from(dialog.cseq);
        let (deps, row) = (self.deps.clone(), self.row.clone());
        let mut storing = self.deps.runtime.spawn(async move {
            if let Err(error) = store(&deps, row).await {
                tracing::warn!(%error, "that a call was picked up is not stored: if this process is killed, its peer hangs up by itself");
            }
        });
        if tokio::time::timeout(STORED_WITHIN, &mut storing).await.is_err() {
            metrics::counter!("callboard_sip_legs_stored_late_total").increment(1);
            self.storing = Some(storing);
        }
    }

    /// Goes on by itself to the end of all that is on the wire, which takes half a minute: nothing else of the call is kept so long.
    pub fn leave(self) {
        let runtime = self.deps.runtime.clone();
        runtime.spawn(self.finish());
    }

    /// To the end of all that is on the wire; then its row goes.
    #[boxed]
    async fn finish(mut self) {
        self.is_finishing = true;
        while !self.is_gone {
            self.next().await;
        }
        self.withdraw().await;
    }

    /// Nothing of it is on the wire: its row goes.
    #[boxed]
    pub async fn withdraw(mut self) {
        self.said.tell_late(&self.deps);
        if let Some(storing) = self.storing.take() {
            // It has told what went wrong.
            let _ = storing.await;
        }
        let mut commit = Commit::default();
        commit.changes.sip_legs_gone.push(self.row.id);
        if let Err(error) = self.deps.writer.commit(self.row.tenant_id.into(), commit).await {
            tracing::warn!(%error, "the row of a leg that is over stays until the next start");
        }
    }
}

/// What the first INVITE is made of. Errors: why there can be none.
fn dial_of(
    switchboard: &Switchboard,
    account: &Account,
    (session, number): (SessionId, u32),
    target: &Target,
    invite: &Invite<'_>,
) -> Result<Dial, Refusal> {
    let definition = &account.row.definition;
    let no_socket = || Refusal::Unreachable(NotSent::NoSocket(target.transport).to_string());
    let sent_by = switchboard.line.sent_by(target.transport).ok_or_else(no_socket)?;
    let unfit = || Refusal::Unreachable("the trunk's host is not one that a SIP address can have".into());
    let to = read_uri(&callee(invite.to, definition, invite.home)).ok_or_else(unfit)?;
    let from = caller(invite.from, definition, invite.home);
    let mut headers = invite.headers.clone();
    if definition.caller_id == CallerId::Pai {
        headers.push((Name::from("P-Asserted-Identity"), from.clone()));
    }
    Ok(Dial {
        local: Local {
            identity: CallIdentity::new(switchboard.identity.clone(), session.0, number),
            sender: sender(sent_by, target, invite.from.as_str()).map_err(Refusal::Unreachable)?,
            session_expires: u32::try_from(definition.session_expires_seconds.get()).ok(),
        },
        host: sent_by.rsplit_once(':').map_or(sent_by, |(host, _)| host).to_owned(),
        to,
        from,
        route: first_routes(definition),
        headers,
        sdp: invite.sdp.clone(),
    })
}

/// Its INVITE is longer than a datagram should be.
fn is_long(dial: &Dial) -> bool {
    let first = Call::dial(dial.clone(), Instant::now()).poll();
    matches!(first, Some(Output::Send { bytes, .. }) if bytes.len() > WHOLE)
}

async fn store(deps: &Deps, row: sip_leg::Model) -> entities::Result<()> {
    let mut commit = Commit::default();
    let of = row.tenant_id.into();
    commit.changes.sip_legs.push(row);
    deps.writer.commit(of, commit).await
}

/// Who we are on the wire. `user`: of our Contact.
pub fn sender(sent_by: &str, target: &Target, user: &str) -> Result<Sender, String> {
    let param = uri_parameter(stored(target.transport));
    let contact = read_uri(&format!("sip:{user}@{sent_by}{param}"));
    Ok(Sender {
        transport: target.transport,
        sent_by: sent_by.to_owned(),
        contact: contact.ok_or_else(|| "sip_address is not one that a SIP address can have".to_owned())?,
        user_agent: Some(USER_AGENT.to_owned()),
    })
}
