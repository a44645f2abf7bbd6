//! What shows a node that a request was handed on by another: a keyed hash of it, made for that one process.
use crate::state::State;
use actix_web::http::header::{HeaderMap, HeaderName};
use entities::ids::NodeId;
use hmac::{Hmac, KeyInit, Mac};
use runtime::keyring::{hex, purpose};
use sha2::Sha256;
use std::net::IpAddr;
use subtle::ConstantTimeEq;

pub const HOP: HeaderName = HeaderName::from_static("callboard-hop");

/// A request that another node has handed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Who sent it to that node.
    pub peer: IpAddr,
    pub request_id: String,
}

/// `to`: a node's id is that of one process, so nothing that was overheard opens another one, nor the same one after a restart.
pub fn made(key: &[u8], to: NodeId, asked: (&str, &str), hop: &Hop) -> String {
    format!("{} {} {}", hop.peer, hop.request_id, mac(key, to, asked, hop))
}

fn mac(key: &[u8], to: NodeId, (method, target): (&str, &str), hop: &Hop) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    // None of these holds a line's end.
    let said = format!("{to}\n{method}\n{target}\n{}\n{}", hop.peer, hop.request_id);
    mac.update(said.as_bytes());
    hex(&mac.finalize().into_bytes())
}

fn read(key: &[u8], to: NodeId, asked: (&str, &str), text: &str) -> Option<Hop> {
    let mut parts = text.splitn(3, ' ');
    let hop = Hop {
        peer: parts.next()?.parse().ok()?,
        request_id: parts.next()?.to_owned(),
    };
    let expected = mac(key, to, asked, &hop);
    let is_good: bool = expected.as_bytes().ct_eq(parts.next()?.as_bytes()).into();
    is_good.then_some(hop)
}

/// What the header proves, if anything.
pub fn proved(state: &State, method: &str, target: &str, headers: &HeaderMap) -> Option<Hop> {
    let to = state.keeper.as_ref()?.id();
    let text = headers.get(HOP)?.to_str().ok()?;
    let mut keys = state.deps.links.proving(purpose::NODES);
    keys.find_map(|key| read(&key, to, (method, target), text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_hop_is_good_for_one_request_to_one_process() {
        let (key, to) = ([7; 32], NodeId(Uuid::from_u128(1)));
        let hop = Hop {
            peer: "203.0.113.7".parse().unwrap(),
            request_id: "req_1".into(),
        };
        let asked = ("POST", "/v1/agents?limit=1");
        let text = made(&key, to, asked, &hop);
        assert_eq!(read(&key, to, asked, &text), Some(hop));
        for (key, to, asked, text) in [
            ([8; 32], to, asked, text.clone()),
            (key, NodeId(Uuid::from_u128(2)), asked, text.clone()),
            (key, to, ("GET", asked.1), text.clone()),
            (key, to, ("POST", "/v1/agents"), text.clone()),
            (key, to, asked, text.replace("203.0.113.7", "203.0.113.8")),
            (key, to, asked, text.replace("req_1", "req_2")),
            (key, to, asked, String::new()),
            (key, to, asked, "203.0.113.7 req_1".into()),
        ] {
            assert_eq!(read(&key, to, asked, &text), None, "{text}");
        }
    }
}
