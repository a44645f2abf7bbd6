//! Where a span stands in a trace, as programs tell each other. Source: W3C Trace Context, level 1, `traceparent`.
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{borrow::Cow, fmt, str::FromStr};

/// One span of one trace; neither id is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    pub trace_id: u128,
    pub span_id: u64,
    /// Whoever was before us records it, and so may we.
    pub sampled: bool,
}

/// `00-<32 digits>-<16 digits>-<2 digits>`.
const LENGTH: usize = 55;

impl FromStr for TraceContext {
    type Err = ();
    /// Nothing but what the standard allows: digits in lower case, no id of zeros. A later version is read as this one, as far as it
    /// goes.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (this, more) = text.split_at_checked(LENGTH).ok_or(())?;
        let parts: Vec<&str> = this.split('-').collect();
        let &[version, trace_id, span_id, flags] = parts.as_slice() else {
            return Err(());
        };
        let version = digits(version, 2)?;
        let is_known = version == 0 && more.is_empty();
        let is_later = (1..0xff).contains(&version) && (more.is_empty() || more.starts_with('-'));
        let context = TraceContext {
            trace_id: digits(trace_id, 32)?,
            span_id: u64::try_from(digits(span_id, 16)?).map_err(drop)?,
            sampled: digits(flags, 2)? & 1 == 1,
        };
        ((is_known || is_later) && context.trace_id != 0 && context.span_id != 0)
            .then_some(context)
            .ok_or(())
    }
}

fn digits(text: &str, length: usize) -> Result<u128, ()> {
    let fits = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != length || !text.bytes().all(fits) {
        return Err(());
    }
    u128::from_str_radix(text, 16).map_err(drop)
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.sampled);
        write!(f, "00-{:032x}-{:016x}-{flags:02x}", self.trace_id, self.span_id)
    }
}
impl Serialize for TraceContext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for TraceContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(|()| de::Error::custom("is not a traceparent"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn is_written_as_it_was_read() {
        for (flags, sampled, written) in [
            ("01", true, "01"),
            ("00", false, "00"),
            ("03", true, "01"),
            ("fe", false, "00"),
        ] {
            let read: TraceContext = format!("00-{TRACE}-{SPAN}-{flags}").parse().unwrap();
            assert_eq!(
                (read.trace_id, read.span_id),
                (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7)
            );
            assert_eq!(read.sampled, sampled, "{flags}");
            assert_eq!(read.to_string(), format!("00-{TRACE}-{SPAN}-{written}"));
            let stored = serde_json::to_string(&read).unwrap();
            assert_eq!(serde_json::from_str::<TraceContext>(&stored).unwrap(), read);
        }
    }

    #[test]
    fn a_later_version_is_read_as_far_as_this_one_goes() {
        for text in [
            format!("01-{TRACE}-{SPAN}-01"),
            format!("cc-{TRACE}-{SPAN}-01-what-comes-later"),
        ] {
            assert!(text.parse::<TraceContext>().is_ok_and(|read| read.sampled), "{text}");
        }
    }

    #[test]
    fn what_the_standard_does_not_allow_is_nothing() {
        let zeros = "0".repeat(32);
        for text in [
            String::new(),
            "00".into(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("00-{TRACE}-{SPAN}-01 "),
            format!(" 00-{TRACE}-{SPAN}-01"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("01-{TRACE}-{SPAN}-01more"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{zeros}-{SPAN}-01"),
            format!("00-{TRACE}-{}-01", &zeros[..16]),
            format!("00-{TRACE}+{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-0g"),
            format!("00-+{}-{SPAN}-01", &TRACE[1..]),
            format!("0-0{TRACE}-{SPAN}-01"),
            // Letters of several bytes, also across the place at which it is cut.
            format!("00-{TRACE}-{SPAN}-0é"),
            "é".repeat(40),
        ] {
            assert_eq!(text.parse::<TraceContext>(), Err(()), "{text}");
        }
    }
}
