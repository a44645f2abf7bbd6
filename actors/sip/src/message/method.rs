//! The method of a request.
use std::fmt;

/// A method, told apart by case. Source: RFC 3261, section 7.1.
///
/// `ezk_sip_types::Method` takes everything that begins with a method it knows for that method (`INVITED`), so that this is ours.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Method(Kind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Known(&'static str),
    Other(String),
}

macro_rules! methods {
    ($($name:ident),+ $(,)?) => {
        impl Method {
            $(pub const $name: Method = Method(Kind::Known(stringify!($name)));)+

            /// All that have a constant.
            const KNOWN: &[&str] = &[$(stringify!($name)),+];
        }
    };
}

methods!(
    INVITE, ACK, CANCEL, BYE, REGISTER, MESSAGE, UPDATE, PRACK, OPTIONS, SUBSCRIBE, NOTIFY, PUBLISH, INFO, REFER
);

impl Method {
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Kind::Known(name) => name,
            Kind::Other(name) => name,
        }
    }

    /// The name of one that has a constant, else `other`: nothing in it is a peer's.
    pub fn known(&self) -> &'static str {
        match &self.0 {
            Kind::Known(name) => name,
            Kind::Other(_) => "other",
        }
    }
}

impl From<&str> for Method {
    fn from(text: &str) -> Self {
        match Method::KNOWN.iter().find(|known| **known == text) {
            Some(known) => Method(Kind::Known(known)),
            None => Method(Kind::Other(text.to_owned())),
        }
    }
}

/// May it name a method? Source: RFC 3261, section 25.1, `token`.
pub(super) fn is_token(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-.!%*_+`'~".contains(&byte);
    text.bytes().all(fits)
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_the_whole_word_in_its_case() {
        assert_eq!(Method::from("INVITE"), Method::INVITE);
        for other in ["INVITED", "invite", "", "NEWMETHOD"] {
            assert_ne!(Method::from(other), Method::INVITE);
            assert_eq!(Method::from(other).to_string(), other);
        }
    }
}
