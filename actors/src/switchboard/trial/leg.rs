//! The leg of a trial on the wire: its machine ([`sip::call`]) between sockets and a mailbox. No row follows it, and no session.
use crate::switchboard::{
    account::Account,
    hops::Hops,
    line::Target,
    moments::until,
    phones::Switchboard,
    reply::stamped,
    sockets::{Incoming, What},
    sources::SpokenWith,
    table::{Arrival, Mailbox, Source},
};
use adapters::outbound::Outbound;
use bytes::Bytes;
use sip::{
    call::{Call, Command, Dial, Happening, Output},
    ladder::{Direction, Ladder},
    leg::Hop,
    message::{Fields, Message, Request, Response, read_datagram},
};
use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

pub struct Leg {
    outbound: Outbound,
    switchboard: Switchboard,
    account: Arc<Account>,
    call: Call,
    mailbox: Mailbox,
    hops: Hops,
    /// Being sent.
    outgoing: Option<(Bytes, Hop)>,
    asked_by: Option<IpAddr>,
    ladder: Ladder,
    _spoken_with: SpokenWith,
}

impl Leg {
    /// Its INVITE leaves with the first look at it. Errors: why there is none.
    pub fn dial(
        outbound: Outbound,
        switchboard: &Switchboard,
        account: &Arc<Account>,
        target: Target,
        dial: Dial,
    ) -> Result<Self, String> {
        let line = &switchboard.line;
        let mailbox = line.register(&dial.local.identity.call_id(&dial.host));
        let row = &account.row;
        Ok(Leg {
            outbound,
            mailbox: mailbox.map_err(|why| format!("there is no room for the call: {why:?}"))?,
            call: Call::dial(dial, Instant::now()),
            _spoken_with: line.sources().speak_with(target.address.ip()),
            hops: Hops::new(switchboard, row.id, row.definition.port(), target),
            outgoing: None,
            asked_by: None,
            ladder: Ladder::default(),
            switchboard: switchboard.clone(),
            account: account.clone(),
        })
    }

    pub fn target(&self) -> &Target {
        self.hops.first()
    }

    /// All that was said.
    pub fn into_ladder(self) -> Ladder {
        self.ladder
    }

    pub fn command(&mut self, command: Command) {
        self.call.command(command, Instant::now());
    }

    /// What happens next. It may be dropped and called again.
    pub async fn next(&mut self) -> Happening {
        loop {
            if let Some(happening) = self.step().await {
                return happening;
            }
        }
    }

    /// Sends what is to be sent, and waits for one thing to come.
    async fn step(&mut self) -> Option<Happening> {
        if let Some(happening) = self.flush().await {
            return Some(happening);
        }
        let deadline = self.call.deadline();
        tokio::select! {
            arrival = self.mailbox.arrived() => self.take(arrival),
            () = until(deadline) => self.call.tick(Instant::now()),
        }
        self.flush().await
    }

    fn take(&mut self, arrival: Arrival) {
        let now = Instant::now();
        let (message, ip) = match arrival {
            Arrival::Message { message, source } => (message, source.address.ip()),
            Arrival::Undelivered => return self.call.transport_failed(now),
        };
        if self.hops.is_heard(ip) {
            self.asked_by = Some(ip);
            self.ladder.record(Direction::Received, &message, now);
            self.call.receive(message, now);
        }
    }

    async fn flush(&mut self) -> Option<Happening> {
        loop {
            if let Some((bytes, hop)) = self.outgoing.clone() {
                let target = self.hops.target_of(&self.outbound, hop).await;
                self.outgoing = None;
                self.send(bytes, &target);
            }
            match self.call.poll()? {
                Output::Send { bytes, hop } => self.outgoing = Some((bytes, hop)),
                Output::Happening(Happening::Challenged { request, response }) => self.prove(request, &response),
                Output::Happening(happening) => return Some(happening),
            }
        }
    }

    fn send(&mut self, bytes: Bytes, target: &Target) {
        let now = Instant::now();
        match self.switchboard.line.send(bytes.clone(), target, &self.mailbox) {
            Ok(()) => self.ladder.record_sent(&bytes, now),
            Err(_) => self.call.transport_failed(now),
        }
    }

    /// To the trunk's own peers only.
    fn prove(&mut self, mut request: Box<Request>, challenge: &Response) {
        let is_the_trunks = self.asked_by.is_some_and(|ip| self.hops.is_the_trunks(ip));
        let is_proved = is_the_trunks && self.account.authorize(&mut request, Some(challenge)).is_ok();
        self.command(if is_proved {
            Command::Authorized(request)
        } else {
            Command::Unauthorized(request)
        });
    }

    /// Until nothing more is awaited of the peer. `false`: something still is, after that time.
    pub async fn end(&mut self, within: Duration) -> bool {
        let limit = Instant::now() + within;
        while !self.is_settled() && Instant::now() < limit {
            tokio::select! {
                _ = self.step() => {}
                () = until(Some(limit)) => {}
            }
        }
        self.is_settled()
    }

    fn is_settled(&self) -> bool {
        self.call.is_settled() && self.outgoing.is_none()
    }
}

/// What comes to the one call that there is; everything else is nobody's here.
pub async fn hand_over(switchboard: Switchboard, mut arriving: mpsc::Receiver<Incoming>) {
    while let Some(Incoming { what, source }) = arriving.recv().await {
        let message = match what {
            What::Message(message) => message,
            What::Datagram(bytes) => match read_datagram(&bytes) {
                Ok(message) => message,
                Err(_) => continue,
            },
        };
        deliver(&switchboard, message, source);
    }
}

fn deliver(switchboard: &Switchboard, message: Message, source: Source) {
    let (call_id, message) = match message {
        Message::Request(request) => {
            let request = stamped(request, &source);
            (request.call_id().to_owned(), Message::Request(request))
        }
        Message::Response(response) => (response.call_id().to_owned(), Message::Response(response)),
    };
    // Whoever sent what finds no room repeats it.
    switchboard
        .line
        .calls()
        .deliver(&call_id, Arrival::Message { message, source });
}
