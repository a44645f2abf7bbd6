//! Whom a request comes from, by network.
use super::nodes::Hop;
use crate::state::State;
use actix_web::{HttpMessage, HttpRequest, http::header::HeaderMap, web::Data};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub fn state_of(request: &HttpRequest) -> Data<State> {
    request
        .app_data::<Data<State>>()
        .cloned()
        .unwrap_or_else(|| unreachable!("every app is built with its state"))
}

/// The client's network, for limits: its address, or the /64 of an IPv6 client, which has all of that to choose from.
pub fn peer(state: &State, request: &HttpRequest) -> IpAddr {
    if let Some(hop) = request.extensions().get::<Hop>() {
        return hop.peer;
    }
    let forwarded = state.settings.trusted_proxy.then(|| forwarded_for(request.headers()));
    let address = forwarded
        .flatten()
        .or_else(|| request.peer_addr().map(|address| address.ip()));
    network(address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()))
}

/// What the proxy in front of us has added: the last entry of the last line. What stands before it is the client's own word.
fn forwarded_for(headers: &HeaderMap) -> Option<IpAddr> {
    let line = headers.get_all("x-forwarded-for").next_back()?.to_str().ok()?;
    address_in(line.rsplit(',').next()?.trim())
}

/// An address as proxies write it: with or without a port, brackets and quotes.
fn address_in(text: &str) -> Option<IpAddr> {
    let text = text.trim_matches('"');
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    bare.unwrap_or(text).parse().ok().or_else(with_port)
}

/// On a socket that takes both kinds of address, IPv4 clients come as IPv6 ones.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) & !u128::from(u64::MAX)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderName;

    #[test]
    fn clients_are_told_apart_by_their_network() {
        for (address, expected) in [
            ("203.0.113.7", "203.0.113.7"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("::ffff:203.0.113.8", "203.0.113.8"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ] {
            assert_eq!(network(address.parse().unwrap()), expected.parse::<IpAddr>().unwrap());
        }
    }

    #[test]
    fn the_last_entry_of_the_last_line_is_the_proxys_own() {
        for (lines, expected) in [
            (&["203.0.113.7"][..], Some("203.0.113.7")),
            (&["10.0.0.1, 203.0.113.7"], Some("203.0.113.7")),
            (&["198.51.100.1", "203.0.113.7"], Some("203.0.113.7")),
            (
                &["198.51.100.1, 198.51.100.2", "10.0.0.1 ,203.0.113.7 "],
                Some("203.0.113.7"),
            ),
            (&["203.0.113.7:4711"], Some("203.0.113.7")),
            (&["2001:db8::7"], Some("2001:db8::7")),
            (&["[2001:db8::7]"], Some("2001:db8::7")),
            (&["\"[2001:db8::7]:4711\""], Some("2001:db8::7")),
            (&["203.0.113.7, unknown"], None),
            (&["203.0.113.7", ""], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(HeaderName::from_static("x-forwarded-for"), line.parse().unwrap());
            }
            let expected = expected.map(|text| text.parse().unwrap());
            assert_eq!(forwarded_for(&headers), expected, "{lines:?}");
        }
    }
}
