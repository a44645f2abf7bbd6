//! A trunk's registration: one REGISTER at a time, refreshed, challenged, refused, tried again. Source: RFC 3261, section 10.2.
mod terms;

use crate::{
    digest::Authorizer,
    message::{Fields, Method, Name, Request, Response, SipUri, copy},
    out_of_dialog::Sender,
    transaction::{Client, ClientOutput, Verdict},
};
use bytes::Bytes;
use std::{
    collections::VecDeque,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Until a registrar that refused is asked again: a PBX locks out who asks often with a wrong password.
const REFUSED_PAUSE: Duration = Duration::from_secs(300);
/// Longest Retry-After that is waited for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);
/// Between two REGISTERs because of another address: a NAT that gives us a new one each time, or a registrar that says so, is not
/// followed as fast as it answers.
const MOVE_PAUSE: Duration = Duration::from_secs(30);
/// Service-Route entries that are kept.
const MAX_SERVICE_ROUTES: usize = 16;

/// With whom and as whom a trunk registers.
#[derive(Clone, Debug)]
pub struct Account {
    /// The Request-URI: `sip:host`, without a user.
    pub registrar: SipUri,
    /// The address-of-record, in brackets: To and From.
    pub address_of_record: String,
    /// Proxies that it goes by, each in brackets.
    pub route: Vec<String>,
    /// Seconds that are asked for.
    pub expires: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Off,
    Registering,
    Registered {
        until: Instant,
    },
    /// The registrar said no: wrong password, unknown, forbidden.
    Refused {
        code: u16,
        reason: String,
        next_try: Instant,
    },
    /// No answer, no connection, or the registrar is in trouble.
    Failed {
        next_try: Instant,
    },
}

/// Without `Debug`: what is sent holds numbers and credentials.
#[derive(Clone)]
pub enum Output {
    Send(Bytes),
    Changed(State),
    /// The address as which the registrar sees us. Whoever has no configured one calls `readdress` with it.
    Learned(SocketAddr),
}

/// What a REGISTER under way is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Bind,
    /// Expires 0.
    Unbind,
}

pub struct Registration {
    account: Account,
    sender: Sender,
    authorizer: Option<Authorizer>,
    under_way: Option<(Client, Purpose)>,
    state: State,
    wanted: bool,
    /// End of the binding, as long as there is one: a failed refresh does not end it.
    bound_until: Option<Instant>,
    /// When it is refreshed or tried again.
    next_at: Option<Instant>,
    failures: u32,
    /// What a registrar asked for that thought our Expires too brief.
    least_expires: Option<u32>,
    /// The contact has changed since the REGISTER under way left.
    moved: bool,
    /// When the last change of the contact was, or is, registered.
    moves_at: Option<Instant>,
    service_route: Vec<String>,
    learned: Option<SocketAddr>,
    outputs: VecDeque<Output>,
}

impl Registration {
    pub fn new(account: Account, sender: Sender, authorizer: Option<Authorizer>) -> Self {
        Registration {
            account,
            sender,
            authorizer,
            under_way: None,
            state: State::Off,
            wanted: false,
            bound_until: None,
            next_at: None,
            failures: 0,
            least_expires: None,
            moved: false,
            moves_at: None,
            service_route: Vec::new(),
            learned: None,
            outputs: VecDeque::new(),
        }
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn call_id(&self) -> &str {
        &self.sender.call_id
    }

    /// End of the binding that stands, whatever becomes of its refresh.
    pub fn bound_until(&self) -> Option<Instant> {
        self.bound_until
    }

    /// Where requests of the trunk go by while it is registered, each in brackets. Source: RFC 3608.
    pub fn service_route(&self) -> &[String] {
        &self.service_route
    }

    pub fn start(&mut self, now: Instant) {
        if self.wanted {
            return;
        }
        self.wanted = true;
        self.failures = 0;
        if self.under_way.is_none() {
            self.send(Purpose::Bind, None, now);
        }
    }

    /// Ends the binding, if there is one, with Expires 0; `Off` when that is answered or nobody answers.
    pub fn stop(&mut self, now: Instant) {
        if !self.wanted {
            return;
        }
        self.wanted = false;
        self.next_at = None;
        if self.under_way.is_none() {
            self.unbind(now);
        }
    }

    /// Our address has changed: it is registered at once, if that was not done just before.
    pub fn readdress(&mut self, contact: SipUri, sent_by: String, now: Instant) {
        self.sender.contact = contact;
        self.sender.sent_by = sent_by;
        match (&self.under_way, &self.state) {
            (Some(_), _) => self.moved = true,
            (None, State::Registered { .. } | State::Failed { .. }) => self.next_at = Some(self.move_at(now)),
            (None, State::Off | State::Registering | State::Refused { .. }) => {}
        }
    }

    /// A response of this Call-ID. Answers whether it belonged to the REGISTER under way.
    pub fn receive(&mut self, response: &Response, now: Instant) -> bool {
        let Some((client, _)) = &mut self.under_way else {
            return false;
        };
        if client.receive(response, now) == Verdict::NotOurs {
            return false;
        }
        self.learn_address(response);
        self.drain(now);
        true
    }

    /// The transport could not send.
    pub fn failed(&mut self, now: Instant) {
        if let Some((client, _)) = &mut self.under_way {
            client.failed(now);
            self.drain(now);
        }
    }

    pub fn tick(&mut self, now: Instant) {
        if let Some((client, _)) = &mut self.under_way {
            client.tick(now);
            self.drain(now);
        } else if self.next_at.is_some_and(|at| now >= at) {
            self.send(Purpose::Bind, None, now);
        }
    }

    pub fn deadline(&self) -> Option<Instant> {
        match &self.under_way {
            Some((client, _)) => client.deadline(),
            None => self.next_at,
        }
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Sends a REGISTER, in answer to a challenge or not. There is none under way.
    fn send(&mut self, purpose: Purpose, challenge: Option<(&Request, &Response)>, now: Instant) {
        self.next_at = None;
        let aor = self.account.address_of_record.clone();
        let (registrar, route) = (self.account.registrar.clone(), self.account.route.clone());
        let mut request = self.sender.request(Method::REGISTER, &registrar, &aor, &aor, &route);
        let expires = match purpose {
            Purpose::Bind => self.least_expires.unwrap_or(self.account.expires),
            Purpose::Unbind => 0,
        };
        request.headers.insert(Name::EXPIRES, expires.to_string());
        if let Some(authorizer) = &mut self.authorizer {
            if let Some((refused, _)) = challenge {
                for name in [Name::AUTHORIZATION, Name::PROXY_AUTHORIZATION] {
                    copy(&refused.headers, &mut request.headers, &name);
                }
            }
            let response = challenge.map(|(_, response)| response);
            if authorizer.authorize(&mut request, response).is_err() {
                let refused = response.map(|response| (response.code, response.reason.clone()));
                return self.refuse(purpose, refused.unwrap_or_default(), now);
            }
        }
        self.under_way = Some((Client::new(request, self.sender.transport, now), purpose));
        self.moved = false;
        if purpose == Purpose::Bind {
            self.change(State::Registering);
        }
        self.drain(now);
    }

    fn drain(&mut self, now: Instant) {
        while let Some((client, purpose)) = &mut self.under_way {
            let purpose = *purpose;
            match client.poll() {
                None => return,
                Some(ClientOutput::Send(bytes)) => self.outputs.push_back(Output::Send(bytes)),
                Some(ClientOutput::Provisional(_)) => {}
                Some(ClientOutput::Final(response)) => {
                    let request = client.request().clone();
                    // Repeats of the answer are nobody's from here on.
                    self.under_way = None;
                    return self.answered(purpose, &request, &response, now);
                }
                Some(ClientOutput::TimedOut | ClientOutput::Failed | ClientOutput::Over) => {
                    self.under_way = None;
                    return self.fail(purpose, None, now);
                }
            }
        }
    }

    fn answered(&mut self, purpose: Purpose, request: &Request, response: &Response, now: Instant) {
        match response.code {
            ..300 if purpose == Purpose::Unbind => self.unbound(now),
            ..300 => self.registered(request, response, now),
            401 | 407 if self.authorizer.is_some() && (self.wanted || purpose == Purpose::Unbind) => {
                self.send(purpose, Some((request, response)), now);
            }
            423 if purpose == Purpose::Bind && self.wanted && self.least_expires.is_none() => {
                let least = response.header_text(Name::MIN_EXPIRES);
                let least = least.and_then(|text| text.parse::<u32>().ok());
                match least
                    .filter(|least| (self.account.expires.saturating_add(1)..=terms::MAX_EXPIRES).contains(least))
                {
                    Some(least) => {
                        self.least_expires = Some(least);
                        self.send(purpose, None, now);
                    }
                    None => self.refuse(purpose, (423, response.reason.clone()), now),
                }
            }
            408 | 500..600 => self.fail(purpose, response.retry_after(), now),
            code => self.refuse(purpose, (code, response.reason.clone()), now),
        }
    }

    fn registered(&mut self, request: &Request, response: &Response, now: Instant) {
        let granted = terms::granted(request, response);
        if granted == 0 {
            return self.fail(Purpose::Bind, None, now);
        }
        let life = Duration::from_secs(granted.into());
        let until = now + life;
        self.bound_until = Some(until);
        self.failures = 0;
        let routes = response.list("Service-Route");
        self.service_route = routes.into_iter().take(MAX_SERVICE_ROUTES).collect();
        if !self.wanted {
            return self.unbind(now);
        }
        self.next_at = Some(now + terms::refresh_after(life));
        if std::mem::take(&mut self.moved) {
            self.next_at = Some(self.move_at(now));
        }
        self.change(State::Registered { until });
    }

    /// When a change of the contact is registered: a planned REGISTER takes it with it.
    fn move_at(&mut self, now: Instant) -> Instant {
        let at = match self.moves_at {
            Some(at) if at > now => at,
            Some(at) => now.max(at + MOVE_PAUSE),
            None => now,
        };
        self.moves_at = Some(at);
        self.next_at.map_or(at, |next| next.min(at))
    }

    fn refuse(&mut self, purpose: Purpose, (code, reason): (u16, String), now: Instant) {
        if purpose == Purpose::Unbind || !self.wanted {
            return self.ended_unwanted(purpose, now);
        }
        self.least_expires = None;
        let next_try = now + REFUSED_PAUSE;
        self.next_at = Some(next_try);
        self.change(State::Refused { code, reason, next_try });
    }

    fn fail(&mut self, purpose: Purpose, retry_after: Option<Duration>, now: Instant) {
        if purpose == Purpose::Unbind || !self.wanted {
            return self.ended_unwanted(purpose, now);
        }
        let pause = terms::pause(self.failures, &self.sender).max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER));
        self.failures = self.failures.saturating_add(1);
        let next_try = now + pause;
        self.next_at = Some(next_try);
        self.change(State::Failed { next_try });
    }

    /// Nobody wants to be registered any more; a binding of before may stand.
    fn ended_unwanted(&mut self, purpose: Purpose, now: Instant) {
        match purpose {
            Purpose::Bind => self.unbind(now),
            Purpose::Unbind => self.unbound(now),
        }
    }

    fn unbind(&mut self, now: Instant) {
        if self.bound_until.is_some_and(|until| until > now) {
            self.send(Purpose::Unbind, None, now);
        } else {
            self.unbound(now);
        }
    }

    /// There is no binding any more; if one is wanted again meanwhile, it is made.
    fn unbound(&mut self, now: Instant) {
        self.bound_until = None;
        self.service_route.clear();
        self.next_at = None;
        self.change(State::Off);
        if self.wanted {
            self.send(Purpose::Bind, None, now);
        }
    }

    fn change(&mut self, state: State) {
        if self.state != state {
            self.state = state.clone();
            self.outputs.push_back(Output::Changed(state));
        }
    }

    fn learn_address(&mut self, response: &Response) {
        let seen = terms::seen_as(response);
        if let Some(seen) = seen.filter(|seen| self.learned != Some(*seen)) {
            self.learned = Some(seen);
            self.outputs.push_back(Output::Learned(seen));
        }
    }
}

#[cfg(test)]
#[path = "registration_tests.rs"]
mod tests;
