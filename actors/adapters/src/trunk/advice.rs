//! What to do about what a trunk's peer said, for whoever sets the trunk up.
use rules::delivery::failure::Failure;

const WRONG_LOGIN: &str =
    "the peer refuses the username or the password: check both, and `auth_username`, which some carriers name apart";

/// What a REGISTER was answered; `None`: we were taken for who we say we are.
pub fn of_registrar(status: u16, has_password: bool) -> Option<&'static str> {
    match status {
        200..=299 => None,
        401 | 407 if has_password => Some(WRONG_LOGIN),
        401 | 407 => Some("the peer wants a password, and the trunk has none: set `password`"),
        403 => Some(
            "the peer forbids it: the username may be unknown, the password wrong, or this address not on the carrier's list",
        ),
        404 => Some("the peer does not know this user or domain: check `username` and `from_domain`"),
        405 | 501 => {
            Some("the peer does not register phones: set `register.enabled` to false if it knows us by our address")
        }
        408 | 480 | 500..=599 => Some("the registrar is in trouble itself: try again in some minutes"),
        _ => Some("the registrar says no, for a reason of its own: ask whoever runs it"),
    }
}

/// An OPTIONS that was answered means that the peer is there. Some answers say more; `None`: they do not.
pub fn of_options(status: u16) -> Option<&'static str> {
    match status {
        403 => Some("the peer is there and forbids it: this address may not be on the carrier's list"),
        503 => Some("the peer is there and takes no calls now"),
        _ => None,
    }
}

/// What a call was answered that nobody has picked up. `names_a_limit`: its phrase says that there were too many calls.
pub fn of_call(status: u16, has_password: bool, names_a_limit: bool) -> &'static str {
    match status {
        401 | 407 if has_password => WRONG_LOGIN,
        401 | 407 => "the peer wants a password, and the trunk has none: set `username` and `password`",
        403 | 429 | 500 | 503 if names_a_limit => {
            "the carrier has no room for the call: try again, and lower `max_concurrency` and `max_calls_per_second` if it lasts"
        }
        403 => {
            "the peer forbids it: this address may not be on the carrier's list, the number in From not yours, or the destination not \
             allowed (see `from_domain`, `caller_id`, and the carrier's geographic permissions)"
        }
        404 | 410 | 484 | 485 | 604 => {
            "the peer knows no such number: if the number is right, it is written as the peer does not want it (`number_format`)"
        }
        408 | 480 | 487 => "the trunk works; nobody was reached at the number",
        486 | 600 => "the trunk works; the number is busy",
        603 | 607 => "the trunk works; the call was turned down",
        608 => "the number in From is flagged for unwanted calls: register it with the carriers' reputation services",
        415 | 488 | 606 => {
            "no common codec, or encryption where none is wanted, or the reverse: check `codecs` and `srtp`"
        }
        482 | 483 => "the call goes round in circles: check how the peer routes it",
        300..=399 => {
            "the peer sends the call elsewhere, and calls follow no redirection: name the address where calls are taken as `host`"
        }
        429 | 503 => "the peer takes no calls now: it has no room, or is in trouble",
        500..=599 => "the peer, or the network behind it, is in trouble: try again in some minutes",
        _ => "the peer says no, for a reason of its own: ask whoever runs it",
    }
}

/// There was no answer.
pub fn of_failure(failure: &Failure) -> &'static str {
    match failure {
        Failure::Dns(_) => {
            "the name is not known: check `host` for a slip, and that this machine can ask a name server"
        }
        Failure::BlockedTarget(_) => {
            "this service speaks with public addresses only: whoever runs it opens others with CALLBOARD_WEBHOOK_ALLOW_TARGETS"
        }
        Failure::Connect(_) => "nobody listens there: check the port and `transport`, and a firewall between",
        Failure::Tls(_) => {
            "the connection is not trusted: check that `host` is the name in the peer's certificate; one of an own authority \
             needs CALLBOARD_WEBHOOK_CA_FILE"
        }
        Failure::Timeout => {
            "nobody answers: the peer may not know our address and drop what we send (enter it at the carrier), take another \
             `transport`, or a firewall drops it; for one that answers no OPTIONS, set `options_interval_seconds` to 0"
        }
        Failure::BadAnswer(_) => {
            "what listens there does not speak SIP over this transport: check the port and `transport`"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_well_needs_no_advice() {
        for status in [200, 202] {
            assert_eq!(of_registrar(status, true), None);
        }
        for status in [300, 401, 403, 404, 405, 407, 480, 501, 503, 603] {
            assert!(of_registrar(status, true).is_some(), "{status}");
        }
        assert_ne!(of_registrar(401, true), of_registrar(401, false));
        assert_ne!(of_call(401, true, false), of_call(401, false, false));
        for status in [403, 503] {
            assert_ne!(of_call(status, true, false), of_call(status, true, true), "{status}");
        }
        for (status, works) in [
            (480, true),
            (486, true),
            (603, true),
            (403, false),
            (404, false),
            (503, false),
            (699, false),
        ] {
            let advice = of_call(status, true, false);
            assert_eq!(advice.starts_with("the trunk works"), works, "{status}: {advice}");
        }
        for status in [200, 401, 404, 405] {
            assert_eq!(of_options(status), None, "it is there: {status}");
        }
    }
}
