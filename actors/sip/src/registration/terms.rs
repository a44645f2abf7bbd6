//! What a registrar's answer grants, and how long is waited for the next.
use crate::{
    identity::{digest, mac},
    message::{Address, Fields, Name, Request, Response, address::split_list},
    out_of_dialog::Sender,
};
use std::{net::SocketAddr, time::Duration};

/// Pauses after failures: the first, doubled up to the last, each ± 20 %.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LAST_PAUSE: Duration = Duration::from_secs(300);
/// A binding is refreshed so long before its end at least.
const MARGIN: Duration = Duration::from_secs(5);
/// Longest life of a binding that is believed, in seconds.
pub(super) const MAX_EXPIRES: u32 = 24 * 60 * 60;

/// Seconds: of our Contact, else of all, else what was asked for.
pub(super) fn granted(request: &Request, response: &Response) -> u32 {
    let ours = request.contact();
    let values = response.headers.get_raw(&Name::CONTACT);
    let contact = values.flat_map(|value| split_list(value.as_str())).find_map(|value| {
        let address = Address::read(value);
        let same = address
            .sip_uri()
            .zip(ours.as_ref())
            .is_some_and(|(uri, ours)| uri.compare(ours));
        let expires = address.param("expires").filter(|_| same)?;
        expires.parse::<u32>().ok()
    });
    let all = || response.header_text(Name::EXPIRES)?.parse::<u32>().ok();
    let asked = || request.header_text(Name::EXPIRES)?.parse::<u32>().ok();
    contact.or_else(all).or_else(asked).unwrap_or(0).min(MAX_EXPIRES)
}

/// At 80 % of a binding's life, and five seconds before its end at least.
pub(super) fn refresh_after(life: Duration) -> Duration {
    (life * 4 / 5)
        .min(life.saturating_sub(MARGIN))
        .max(Duration::from_secs(1))
}

/// 5, 10, 20 … 300 s, each ± 20 %: by how much is derived from Call-ID and count, so that a registrar that comes back is not asked
/// by all of its trunks at once.
pub(super) fn pause(failures: u32, sender: &Sender) -> Duration {
    let doubled = FIRST_PAUSE * 2_u32.pow(failures.min(6));
    let drawn = digest(mac(&sender.key, &[&failures.to_be_bytes(), sender.call_id.as_bytes()]));
    // 80 to 120 hundredths.
    doubled.min(LAST_PAUSE) * (80 + u32::from(drawn[0]) * 41 / 256) / 100
}

/// The address from which the registrar saw the request come. Source: RFC 3581, section 4.
pub(super) fn seen_as(response: &Response) -> Option<SocketAddr> {
    let via = response.top_via()?;
    let address = via.received().or_else(|| via.sent_by.ip())?;
    Some(SocketAddr::new(address, via.rport()?))
}
