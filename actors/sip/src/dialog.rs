//! A dialog: what two user agents know of each other after an INVITE was answered, and what each request inside is made
//! of. Source: RFC 3261, section 12.
use bytes::Bytes;

use crate::message::{Address, Fields, Headers, Method, Name, Request, Response, SipUri, Transport, uri_text};

/// Who sends: what every request of ours says of this process.
#[derive(Clone, Debug)]
pub struct Sender {
    pub transport: Transport,
    /// `host:port` of the configured listener, never of an ephemeral port: the next process must be able to match a CANCEL.
    pub sent_by: String,
    /// Where the peer reaches us inside the dialog.
    pub contact: SipUri,
    pub user_agent: Option<String>,
}

impl Sender {
    /// A request with Via, Max-Forwards and User-Agent, and nothing else yet.
    pub(crate) fn begin(&self, method: Method, uri: SipUri, branch: &str) -> Request {
        let mut headers = Headers::new();
        let via = format!(
            "SIP/2.0/{} {};rport;branch={branch}",
            self.transport.name(),
            self.sent_by
        );
        headers.insert(Name::VIA, via);
        headers.insert(Name::MAX_FORWARDS, "70");
        if let Some(user_agent) = &self.user_agent {
            headers.insert(Name::USER_AGENT, user_agent.as_str());
        }
        Request {
            method,
            uri,
            headers,
            body: Bytes::new(),
        }
    }

    pub(crate) fn contact_text(&self) -> String {
        format!("<{}>", uri_text(&self.contact))
    }
}

/// One side's view. Early until the 2xx, then confirmed; what is known is the same.
#[derive(Clone)]
pub struct Dialog {
    pub(crate) call_id: String,
    /// `"Name" <sip:…>;tag=…`, as it stands in From of what we send.
    pub(crate) local: String,
    pub(crate) remote: String,
    pub(crate) local_tag: String,
    /// Empty: a peer of RFC 2543.
    pub(crate) remote_tag: String,
    pub(crate) remote_target: SipUri,
    /// In the order in which a request of ours passes them.
    pub(crate) route_set: Vec<String>,
    /// The number of our last request.
    pub(crate) local_cseq: u32,
    /// The number of theirs; `None`: none came yet.
    pub(crate) remote_cseq: Option<u32>,
}

/// Where a request of a peer stands among those that came before. RFC 3261 §12.2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Next,
    /// Older than one that came before: 500.
    Late,
}

impl Dialog {
    /// The caller's, of an answer to the INVITE alone; so it can be made by a process that knows nothing else (D2).
    /// `None`: nothing in the answer says where the peer is.
    pub fn of_answer(response: &Response) -> Option<Self> {
        let local = response.header_text(Name::FROM)?;
        let remote = response.header_text(Name::TO)?;
        let remote_target = response.contact().or_else(|| response.to_uri())?;
        let mut route_set = response.record_route();
        route_set.reverse();
        Some(Self {
            call_id: response.call_id().to_owned(),
            local_tag: response.from_tag()?,
            remote_tag: response.to_tag().unwrap_or_default(),
            local,
            remote,
            remote_target,
            route_set,
            local_cseq: response.cseq().0,
            remote_cseq: None,
        })
    }

    /// The callee's, of the INVITE. `None`: it does not say where the peer is.
    pub fn of_request(request: &Request, local_tag: &str) -> Option<Self> {
        let to = request.header_text(Name::TO)?;
        Some(Self {
            call_id: request.call_id().to_owned(),
            local: format!("{to};tag={local_tag}"),
            remote: request.header_text(Name::FROM)?,
            local_tag: local_tag.to_owned(),
            remote_tag: request.from_tag().unwrap_or_default(),
            remote_target: request.contact().or_else(|| request.from_uri())?,
            route_set: request.record_route(),
            local_cseq: 0,
            remote_cseq: Some(request.cseq().0),
        })
    }

    /// Is this request of the peer one inside this dialog?
    pub fn holds(&self, request: &Request) -> bool {
        request.call_id() == self.call_id
            && request.to_tag().as_deref() == Some(self.local_tag.as_str())
            && request.from_tag().unwrap_or_default() == self.remote_tag
    }

    /// Notes the number of a request. ACK and CANCEL repeat that of their INVITE and are not noted.
    pub fn take(&mut self, request: &Request) -> Order {
        let number = request.cseq().0;
        match self.remote_cseq {
            Some(last) if number < last => Order::Late,
            _ => {
                self.remote_cseq = Some(number);
                Order::Next
            }
        }
    }

    /// Re-INVITE, UPDATE and their answers move the peer. RFC 3261 §12.2.1.2, RFC 3311 §5.1.
    pub fn refresh_target(&mut self, message: &impl Fields) {
        if let Some(contact) = message.contact() {
            self.remote_target = contact;
        }
    }

    pub fn next_cseq(&mut self) -> u32 {
        self.local_cseq = self.local_cseq.saturating_add(1);
        self.local_cseq
    }

    /// Where the next request goes: the first of the route set, or the peer itself.
    pub fn next_hop(&self) -> SipUri {
        let first = self.route_set.first().and_then(|route| Address::read(route).sip_uri());
        first.unwrap_or_else(|| self.remote_target.clone())
    }

    /// A request inside the dialog, without body. RFC 3261 §12.2.1.1.
    pub fn request(&self, method: Method, cseq: u32, branch: &str, sender: &Sender) -> Request {
        let (uri, routes) = self.way();
        let has_contact = matches!(method, Method::INVITE | Method::UPDATE | Method::REFER);
        let number = format!("{cseq} {method}");
        let mut request = sender.begin(method, uri, branch);
        let headers = &mut request.headers;
        for route in routes {
            headers.insert(Name::ROUTE, route);
        }
        headers.insert(Name::FROM, self.local.as_str());
        headers.insert(Name::TO, self.remote.as_str());
        headers.insert(Name::CALL_ID, self.call_id.as_str());
        headers.insert(Name::CSEQ, number);
        if has_contact {
            headers.insert(Name::CONTACT, sender.contact_text());
        }
        request
    }

    /// Request-URI and Route: a first proxy without `;lr` wants the Request-URI to be itself (RFC 2543).
    fn way(&self) -> (SipUri, Vec<String>) {
        let mut routes = self.route_set.clone();
        let strict = routes.first().and_then(|route| Address::read(route).sip_uri());
        match strict.filter(|uri| uri.uri_params.get("lr").is_none()) {
            Some(uri) => {
                routes.remove(0);
                routes.push(format!("<{}>", uri_text(&self.remote_target)));
                (uri, routes)
            }
            None => (self.remote_target.clone(), routes),
        }
    }
}

#[cfg(test)]
mod tests;
