//! What transactions and clocks say, and what follows from it.
use std::time::Instant;

use super::{Call, Happening, Outgoing, Output, Phase, Purpose};
use crate::{
    message::{Request, Response},
    transaction::{ClientOutput, ServerOutput},
};

/// A re-INVITE that was heard has no bound of its own: the peer refuses it when it gets the BYE, or it is left.
fn is_left(outgoing: &Outgoing) -> bool {
    outgoing.purpose == Purpose::Reinvite && outgoing.client.is_pending()
}

enum Event {
    Client(u64, ClientOutput),
    Server(u64, ServerOutput),
}

impl Call {
    /// When `tick` matters next.
    pub fn deadline(&self) -> Option<Instant> {
        let clients = self.clients.iter().filter_map(|outgoing| outgoing.client.deadline());
        let servers = self.servers.iter().filter_map(|incoming| incoming.server.deadline());
        let challenges = self.challenges.iter().map(|challenge| challenge.until);
        let own = [
            self.invite
                .as_ref()
                .and_then(|invite| invite.forgotten_at())
                .filter(|_| self.phase == Phase::Inviting),
            self.invited
                .as_ref()
                .and_then(|invited| invited.deadline())
                .filter(|_| self.phase == Phase::Invited),
            self.referring_until.filter(|_| self.phase == Phase::Talking),
            self.session.exchange.until(),
            self.session.retry.as_ref().map(|retry| retry.at),
            self.session
                .timer
                .as_ref()
                .map(|timer| timer.deadline())
                .filter(|_| self.phase == Phase::Talking),
        ];
        clients
            .chain(servers)
            .chain(challenges)
            .chain(own.into_iter().flatten())
            .min()
    }

    /// It ends, and nothing is awaited any more but repeats: all that matters has been said.
    pub fn is_settled(&self) -> bool {
        let is_open = |outgoing: &Outgoing| outgoing.client.is_pending() && !is_left(outgoing);
        matches!(self.phase, Phase::Ending | Phase::Over)
            && self.challenges.is_empty()
            && !self.clients.iter().any(is_open)
            && self.servers.iter().all(|incoming| incoming.server.is_settled())
    }

    pub fn tick(&mut self, now: Instant) {
        self.clients.iter_mut().for_each(|outgoing| outgoing.client.tick(now));
        self.servers.iter_mut().for_each(|incoming| incoming.server.tick(now));
        self.settle(now);
        self.forget_cancelled(now);
        self.repeat_provisional(now);
        self.lose_patience(now);
        self.forget_refer(now);
        self.retry_offer(now);
        self.check_timer(now);
        self.run(now);
    }

    /// All that follows; the messages first, so that no user keeps a peer waiting.
    pub(super) fn run(&mut self, now: Instant) {
        self.settle(now);
        // An answer from which no dialog can be made leaves nothing to wait for.
        let is_asking = self.clients.iter().any(|outgoing| outgoing.purpose == Purpose::Invite);
        if self.phase == Phase::Inviting && !is_asking && self.challenges.is_empty() {
            self.finish_inviting(Happening::NoAnswer);
        }
        let is_done = self.clients.iter().all(is_left) && self.servers.is_empty() && self.challenges.is_empty();
        if self.phase == Phase::Ending && is_done {
            self.clients.clear();
            self.phase = Phase::Over;
            self.happen(Happening::Gone);
        }
        self.outputs.extend(self.happened.drain(..).map(Output::Happening));
    }

    pub(super) fn settle(&mut self, now: Instant) {
        loop {
            self.begin_queued(now);
            let events = self.collect();
            if events.is_empty() {
                break;
            }
            events.into_iter().for_each(|event| self.follow(event, now));
            self.clients.retain(|outgoing| !outgoing.client.is_over());
            self.servers.retain(|incoming| !incoming.server.is_over());
        }
    }

    fn collect(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        for outgoing in &mut self.clients {
            while let Some(output) = outgoing.client.poll() {
                match output {
                    ClientOutput::Send(bytes) => {
                        self.outputs.push_back(Output::Send {
                            bytes,
                            hop: outgoing.hop.clone(),
                        });
                    }
                    output => events.push(Event::Client(outgoing.id, output)),
                }
            }
        }
        for incoming in &mut self.servers {
            while let Some(output) = incoming.server.poll() {
                match output {
                    ServerOutput::Send(bytes) => {
                        self.outputs.push_back(Output::Send {
                            bytes,
                            hop: incoming.hop.clone(),
                        });
                    }
                    output => events.push(Event::Server(incoming.id, output)),
                }
            }
        }
        events
    }

    fn follow(&mut self, event: Event, now: Instant) {
        match event {
            Event::Client(id, output) => {
                let Some(outgoing) = self.clients.iter().find(|outgoing| outgoing.id == id) else {
                    return;
                };
                let (purpose, challenges) = (outgoing.purpose, outgoing.challenges);
                let request = outgoing.client.request().clone();
                match output {
                    ClientOutput::Provisional(response) if purpose == Purpose::Invite => {
                        self.provisional(&request, &response, now);
                    }
                    ClientOutput::Final(response) => self.decided(purpose, &request, challenges, response, now),
                    ClientOutput::TimedOut => self.unanswered(purpose, now),
                    ClientOutput::Failed => self.unsent(purpose),
                    ClientOutput::Provisional(_) | ClientOutput::Send(_) | ClientOutput::Over => {}
                }
            }
            Event::Server(id, output) => {
                let found = self
                    .servers
                    .iter()
                    .find(|incoming| incoming.id == id && incoming.accepted);
                let Some(body) = found.map(|incoming| incoming.ack_body.clone()) else {
                    return;
                };
                match output {
                    ServerOutput::Acked => self.acked(id, body, now),
                    ServerOutput::NeverAcked => self.never_acked(now),
                    ServerOutput::Send(_) | ServerOutput::Over => {}
                }
            }
        }
    }

    pub(super) fn decided(
        &mut self,
        purpose: Purpose,
        request: &Request,
        challenges: u8,
        response: Response,
        now: Instant,
    ) {
        let is_challenge = matches!(response.code, 401 | 407) && purpose != Purpose::Cancel;
        if is_challenge && self.challenge(purpose, request, challenges, &response, now) {
            return;
        }
        match purpose {
            Purpose::Invite => self.invite_answered(request, response, now),
            Purpose::Reinvite => self.reinvite_answered(request, &response, now),
            Purpose::Update => self.update_answered(&response, now),
            Purpose::Refer => self.refer_answered(&response, now),
            Purpose::Info if matches!(response.code, 408 | 481) => self.lost(response.code, now),
            // What a peer says to these changes nothing: the leg ends, or goes on, without it.
            Purpose::Info | Purpose::Bye | Purpose::Cancel | Purpose::Prack => {}
        }
    }

    /// Nothing came in 64·T1.
    fn unanswered(&mut self, purpose: Purpose, now: Instant) {
        match purpose {
            Purpose::Invite => self.finish_inviting(Happening::NoAnswer),
            // A peer that does not answer inside a dialog is gone. RFC 3261 §12.2.1.2.
            Purpose::Reinvite | Purpose::Update => self.lost(408, now),
            Purpose::Refer => self.refer_failed(408),
            Purpose::Info | Purpose::Prack | Purpose::Bye | Purpose::Cancel => {}
        }
    }

    fn unsent(&mut self, purpose: Purpose) {
        match purpose {
            Purpose::Invite => self.finish_inviting(Happening::TransportFailed),
            Purpose::Reinvite => self.offer_failed(503),
            Purpose::Refer => self.refer_failed(503),
            // The timer ends a session that cannot be refreshed.
            Purpose::Update | Purpose::Info | Purpose::Prack | Purpose::Bye | Purpose::Cancel => {}
        }
    }
}
