//! Header values that name somebody: `"Display" <sip:user@host;x>;tag=1`, and lists of them.
//!
//! Read by hand and leniently: escaped quotes in a display name are not understood by `ezk-sip-types` (RFC 4475, `wsinv`), and a
//! URI of another scheme (`tel:`) has no type there.
use ezk_sip_types::{host::Host, uri::SipUri};

/// The parts of a name-addr or addr-spec with its header parameters, as they stand. Source: RFC 3261, sections 20.10 and 25.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// Without the quotes around it, escapes as they are; empty where there is none.
    pub display: &'a str,
    pub uri: &'a str,
    /// `;tag=1;x`, or nothing.
    pub params: &'a str,
}

impl<'a> Address<'a> {
    /// Reads the first address of a value. Never fails: what cannot be told apart is the URI.
    pub fn read(value: &'a str) -> Self {
        let value = split_list(value).first().copied().unwrap_or_default();
        let Some(open) = outside_quotes(value, '<') else {
            // Without brackets all parameters are the header's. Source: RFC 3261, section 20.
            let end = value.find(';').unwrap_or(value.len());
            return Address {
                display: "",
                uri: value[..end].trim(),
                params: value[end..].trim(),
            };
        };
        let inside = &value[open + 1..];
        let close = inside.find('>').unwrap_or(inside.len());
        Address {
            display: unquoted(value[..open].trim()),
            uri: inside[..close].trim(),
            params: inside.get(close + 1..).unwrap_or_default().trim(),
        }
    }

    /// The URI, if it is `sip:` or `sips:` and can be read.
    pub fn sip_uri(&self) -> Option<SipUri> {
        read_uri(self.uri)
    }

    /// A header parameter's value without quotes; empty for one without a value. Names have no case.
    pub fn param(&self, name: &str) -> Option<&'a str> {
        param(self.params, name)
    }

    /// What stands before the `@` of a `sip:` or `sips:` URI, or the number of a `tel:` URI, without parameters.
    pub fn user(&self) -> Option<&'a str> {
        let (scheme, rest) = self.uri.split_once(':')?;
        let user = match scheme.to_ascii_lowercase().as_str() {
            "sip" | "sips" => rest.split_once('@')?.0,
            "tel" => rest,
            _ => return None,
        };
        let end = user.find([';', ':']).unwrap_or(user.len());
        Some(&user[..end]).filter(|user| !user.is_empty())
    }
}

/// A `sip:` or `sips:` URI. Host names may hold an underscore, as those of containers do, which `ezk-sip-types` does not take.
pub fn read_uri(text: &str) -> Option<SipUri> {
    if let Ok(uri) = text.parse::<SipUri>() {
        return Some(uri);
    }
    let scheme = text.find(':')? + 1;
    let begin = text[scheme..].rfind('@').map_or(scheme, |at| scheme + at + 1);
    let length = text[begin..].find([':', ';', '?']).unwrap_or(text.len() - begin);
    let host = &text[begin..begin + length];
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if host.is_empty() || host.len() > 253 || !host.bytes().all(fits) {
        return None;
    }
    let mut uri: SipUri = format!("{}host{}", &text[..begin], &text[begin + length..])
        .parse()
        .ok()?;
    uri.host_port.host = Host::Name(host.into());
    Some(uri)
}

/// The value of a parameter in `;a=1;b="2"`; empty for one without a value.
pub fn param<'a>(params: &'a str, name: &str) -> Option<&'a str> {
    split(params, ';').into_iter().find_map(|param| {
        let (key, value) = param.split_once('=').unwrap_or((param, ""));
        key.trim().eq_ignore_ascii_case(name).then(|| unquoted(value.trim()))
    })
}

/// The elements of a list, parted by commas outside quotes and angle brackets, without blanks around and without empty ones.
pub fn split_list(value: &str) -> Vec<&str> {
    split(value, ',')
}

/// Elements of one value that are looked at.
const MAX_ELEMENTS: usize = 128;

fn split(value: &str, mark: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = value;
    while parts.len() < MAX_ELEMENTS && !rest.is_empty() {
        let end = outside(rest, mark).unwrap_or(rest.len());
        let part = rest[..end].trim();
        if !part.is_empty() {
            parts.push(part);
        }
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    parts
}

/// Where a letter stands outside quotes; inside angle brackets counts.
fn outside_quotes(text: &str, letter: char) -> Option<usize> {
    find(text, letter, false)
}

/// Where a letter stands outside quotes and angle brackets.
fn outside(text: &str, letter: char) -> Option<usize> {
    find(text, letter, true)
}

/// `letter` is ASCII. A quote that is never closed reaches to the end.
fn find(text: &str, letter: char, brackets: bool) -> Option<usize> {
    let (mut quoted, mut escaped, mut bracketed) = (false, false, false);
    for (at, found) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if quoted {
            match found {
                '\\' => escaped = true,
                '"' => quoted = false,
                _ => {}
            }
        } else if found == letter && !bracketed {
            return Some(at);
        } else {
            match found {
                '"' => quoted = true,
                '<' => bracketed = brackets,
                '>' => bracketed = false,
                _ => {}
            }
        }
    }
    None
}

/// Without one pair of quotes around it.
pub fn unquoted(text: &str) -> &str {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_sent() {
        let table = [
            ("<sip:a@x>;tag=1", "", "sip:a@x", ";tag=1"),
            ("sip:a@x;tag=1", "", "sip:a@x", ";tag=1"),
            (
                "\"A \\\" <b>, c\" <sip:a@x;lr> ; tag = 1",
                "A \\\" <b>, c",
                "sip:a@x;lr",
                "; tag = 1",
            ),
            ("Bob <tel:+1415;ext=1>", "Bob", "tel:+1415;ext=1", ""),
            ("<sip:a@x>, <sip:b@x>", "", "sip:a@x", ""),
            ("\"never closed <sip:a@x>", "", "\"never closed <sip:a@x>", ""),
            ("<sip:a@x", "", "sip:a@x", ""),
            ("", "", "", ""),
        ];
        for (value, display, uri, params) in table {
            assert_eq!(Address::read(value), Address { display, uri, params }, "{value}");
        }
    }

    #[test]
    fn parameters_have_no_case_and_may_be_quoted() {
        let address = Address::read("<sip:a@x>; Tag = \"a;b\" ;lr; q=0.5");
        assert_eq!(address.param("tag"), Some("a;b"));
        assert_eq!(address.param("LR"), Some(""));
        assert_eq!(address.param("q"), Some("0.5"));
        assert_eq!(address.param("x"), None);
    }

    #[test]
    fn users_and_numbers() {
        let user = |value| Address::read(value).user();
        assert_eq!(user("<sip:+14155550100@x;user=phone>"), Some("+14155550100"));
        assert_eq!(user("<SIPS:+14155550100;phone-context=x@x>"), Some("+14155550100"));
        assert_eq!(user("<tel:+14155550100;ext=1>"), Some("+14155550100"));
        assert_eq!(user("<sip:a:secret@x>"), Some("a"));
        assert_eq!(user("<sip:x>"), None);
        assert_eq!(user("<mailto:a@x>"), None);
    }

    #[test]
    fn a_host_may_hold_an_underscore() {
        for text in ["sip:a@my_pbx:5060;transport=tcp", "sip:my_pbx", "sips:a;b=@-x_"] {
            assert_eq!(format!("{:?}", read_uri(text).unwrap()), text);
        }
        for text in [
            "sip:",
            "sip:a@",
            "sip:a@b c",
            "sip:a@[::1",
            "tel:1",
            "sip",
            "",
            "sip:a@2001:db8::10",
            "sip:_:x",
        ] {
            assert!(read_uri(text).is_none(), "{text}");
        }
    }

    #[test]
    fn lists_are_parted_outside_quotes_and_brackets() {
        assert_eq!(split_list("a, \"b,c\" <d,e> ,, f"), ["a", "\"b,c\" <d,e>", "f"]);
        assert_eq!(split_list(&",a".repeat(1000)).len(), MAX_ELEMENTS);
    }
}
