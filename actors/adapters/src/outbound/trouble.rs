//! What the network says of a peer that cannot be reached, in our words: the system's own name no peer, and end in a number.
use std::{
    error::Error as StdError,
    io::{self, ErrorKind},
};

/// Nothing could be sent there, or no connection be made. `whom`: an address with its port.
pub fn unreachable(whom: impl std::fmt::Display, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => format!("nothing listens on {whom} (connection refused)"),
        ErrorKind::TimedOut => format!("{whom} does not answer (timed out)"),
        ErrorKind::NetworkUnreachable => format!("no network leads to {whom} (network unreachable)"),
        ErrorKind::HostUnreachable => format!("{whom} is not on its network (host unreachable)"),
        ErrorKind::NetworkDown => format!("this machine's network is down: {whom} cannot be reached"),
        ErrorKind::AddrNotAvailable => format!("this machine has no address from which {whom} can be reached"),
        ErrorKind::PermissionDenied => {
            format!("this machine's firewall lets nothing out to {whom} (permission denied)")
        }
        _ => match broken(error) {
            Some(how) => format!("{whom} {how}"),
            None => format!("{whom} cannot be reached: {}", plain(error.to_string())),
        },
    }
}

/// A connection that stood is no more.
pub fn lost(error: &io::Error) -> String {
    match broken(error) {
        Some(how) => format!("the peer {how}"),
        None => format!("the connection broke: {}", plain(error.to_string())),
    }
}

/// Whatever befell a connection to somebody whose address is not the reader's to know, such as a provider's.
pub fn unnamed(error: &io::Error) -> String {
    if is_of_lookup(error) {
        unknown("its host", error)
    } else if broken(error).is_some() {
        lost(error)
    } else {
        unreachable("its address", error)
    }
}

/// What the system said, where a client's error is its error, or has it among its causes.
pub fn of_system<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a io::Error> {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    let mut found = causes.filter_map(|error| error.downcast_ref::<io::Error>());
    found.find(|error| {
        error.raw_os_error().is_some()
            || error.kind() == ErrorKind::TimedOut
            || broken(error).is_some()
            || is_of_lookup(error)
    })
}

/// An error with its causes, each said once.
pub fn words(error: &dyn StdError) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        if !words.contains(&text) {
            words = format!("{words}: {text}");
        }
        cause = next.source();
    }
    plain(words)
}

/// No address of a name was found.
pub fn unknown(name: &str, error: &io::Error) -> String {
    if is_unanswered(error) {
        return format!("{name} cannot be looked up: no name server answers");
    }
    let said = error.to_string();
    // Nobody was asked: this machine lacks something, such as files that it may open.
    if error.raw_os_error().is_some() || said.to_ascii_lowercase().contains("memory allocation") {
        return format!("{name} cannot be looked up by this machine: {}", plain(said));
    }
    format!("no name server knows {name}")
}

/// No name server said whether there is such a name.
pub fn is_unanswered(error: &io::Error) -> bool {
    // Of the system's resolver there are only words: glibc's, musl's and the BSDs'.
    let again = ["temporary failure", "try again", "timed out"];
    let said = error.to_string().to_ascii_lowercase();
    error.kind() == ErrorKind::TimedOut || again.iter().any(|words| said.contains(words))
}

fn broken(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
            "closed the connection (connection reset)"
        }
        ErrorKind::UnexpectedEof => "closed the connection",
        _ => return None,
    })
}

fn is_of_lookup(error: &io::Error) -> bool {
    error.to_string().starts_with("failed to lookup address information")
}

/// Without the system's number.
pub fn plain(mut text: String) -> String {
    while let Some(from) = text.find(" (os error ") {
        let to = text[from..].find(')').map_or(text.len(), |length| from + length + 1);
        text.replace_range(from..to, "");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOM: &str = "127.0.0.1:5060";

    #[test]
    fn nobody_reads_an_error_of_the_system() {
        let table = [
            (
                ErrorKind::ConnectionRefused,
                "nothing listens on 127.0.0.1:5060 (connection refused)",
            ),
            (ErrorKind::TimedOut, "127.0.0.1:5060 does not answer (timed out)"),
            (
                ErrorKind::NetworkUnreachable,
                "no network leads to 127.0.0.1:5060 (network unreachable)",
            ),
            (
                ErrorKind::HostUnreachable,
                "127.0.0.1:5060 is not on its network (host unreachable)",
            ),
            (
                ErrorKind::NetworkDown,
                "this machine's network is down: 127.0.0.1:5060 cannot be reached",
            ),
            (
                ErrorKind::AddrNotAvailable,
                "this machine has no address from which 127.0.0.1:5060 can be reached",
            ),
            (
                ErrorKind::PermissionDenied,
                "this machine's firewall lets nothing out to 127.0.0.1:5060 (permission denied)",
            ),
            (
                ErrorKind::ConnectionReset,
                "127.0.0.1:5060 closed the connection (connection reset)",
            ),
            (ErrorKind::UnexpectedEof, "127.0.0.1:5060 closed the connection"),
        ];
        for (kind, expected) in table {
            assert_eq!(unreachable(WHOM, &kind.into()), expected);
        }
        let other = unreachable(WHOM, &io::Error::other("No route (os error 4711)"));
        assert_eq!(other, "127.0.0.1:5060 cannot be reached: No route");
    }

    /// As this machine's system says it.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_system_says_is_known() {
        for (number, expected) in [
            (111, "nothing listens on 127.0.0.1:5060 (connection refused)"),
            (110, "127.0.0.1:5060 does not answer (timed out)"),
            (101, "no network leads to 127.0.0.1:5060 (network unreachable)"),
            (113, "127.0.0.1:5060 is not on its network (host unreachable)"),
            (104, "127.0.0.1:5060 closed the connection (connection reset)"),
            (
                1,
                "this machine's firewall lets nothing out to 127.0.0.1:5060 (permission denied)",
            ),
        ] {
            assert_eq!(unreachable(WHOM, &io::Error::from_raw_os_error(number)), expected);
        }
    }

    #[test]
    fn a_connection_that_broke_is_the_peers() {
        for (error, expected) in [
            (
                ErrorKind::BrokenPipe.into(),
                "the peer closed the connection (connection reset)",
            ),
            (ErrorKind::UnexpectedEof.into(), "the peer closed the connection"),
            (
                io::Error::other("strange (os error 7)"),
                "the connection broke: strange",
            ),
        ] {
            assert_eq!(lost(&error), expected);
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("error sending request: {0}")]
    struct OfClient(#[source] io::Error);

    #[test]
    fn the_system_is_found_behind_a_client() {
        let lookup = |said: &str| io::Error::other(format!("failed to lookup address information: {said}"));
        for (error, expected) in [
            (
                ErrorKind::ConnectionReset.into(),
                "the peer closed the connection (connection reset)",
            ),
            (
                io::Error::new(ErrorKind::UnexpectedEof, "tls handshake eof"),
                "the peer closed the connection",
            ),
            (
                io::Error::new(ErrorKind::TimedOut, "deadline has elapsed"),
                "its address does not answer (timed out)",
            ),
            (lookup("Name or service not known"), "no name server knows its host"),
            (
                lookup("Temporary failure in name resolution"),
                "its host cannot be looked up: no name server answers",
            ),
        ] {
            let error = OfClient(error);
            assert_eq!(of_system(&error).map(unnamed).as_deref(), Some(expected));
        }
        let certificate = OfClient(io::Error::new(ErrorKind::InvalidData, "invalid peer certificate"));
        assert!(of_system(&certificate).is_none());
        assert_eq!(words(&certificate), "error sending request: invalid peer certificate");
    }

    #[test]
    fn numbers_of_the_system_are_left_out() {
        let said = "cannot read a.pem (No such file or directory (os error 2)), nor b.pem: Denied (os error 13)";
        let expected = "cannot read a.pem (No such file or directory), nor b.pem: Denied";
        assert_eq!(plain(said.into()), expected);
        assert_eq!(plain("cut off (os error 1".into()), "cut off");
    }

    #[test]
    fn a_name_is_unknown_or_cannot_be_looked_up() {
        let no_answer = "sip.example.com cannot be looked up: no name server answers";
        for (said, expected) in [
            (
                "failed to lookup address information: Name or service not known",
                "no name server knows sip.example.com",
            ),
            (
                "failed to lookup address information: No address associated with hostname",
                "no name server knows sip.example.com",
            ),
            (
                "failed to lookup address information: Temporary failure in name resolution",
                no_answer,
            ),
            ("failed to lookup address information: Try again", no_answer),
        ] {
            assert_eq!(unknown("sip.example.com", &io::Error::other(said)), expected);
        }
        assert_eq!(unknown("sip.example.com", &ErrorKind::TimedOut.into()), no_answer);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_machine_that_cannot_ask_is_no_unknown_name() {
        assert_eq!(
            unknown("sip.example.com", &io::Error::from_raw_os_error(24)),
            "sip.example.com cannot be looked up by this machine: Too many open files"
        );
    }
}
