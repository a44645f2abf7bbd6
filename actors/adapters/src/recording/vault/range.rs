//! Which bytes an HTTP request asks for.
use std::ops::Range;

/// What to answer to a `Range` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeAsked {
    /// 200 with everything.
    Whole,
    /// 206 with this; never empty.
    Part(Range<u64>),
    /// 416 with `Content-Range: bytes */<size>`.
    Unsatisfiable,
}

/// Reads the header's one range: `bytes=a-b`, `bytes=a-` or `bytes=-n`. What is malformed, in another unit or several
/// ranges at once is ignored, as a server may. Source: RFC 9110, 14.1.2 and 14.2.
pub fn range(header: &str, size: u64) -> RangeAsked {
    let Some((first, last)) = header
        .split_once('=')
        .filter(|(unit, _)| unit.trim_start().eq_ignore_ascii_case("bytes"))
        .and_then(|(_, asked)| asked.trim().split_once('-'))
    else {
        return RangeAsked::Whole;
    };
    match (first, last) {
        ("", last) => match number(last) {
            None => RangeAsked::Whole,
            Some(0) => RangeAsked::Unsatisfiable,
            // Of nothing, the last bytes are nothing, which no 206 can say.
            Some(_) if size == 0 => RangeAsked::Whole,
            Some(length) => RangeAsked::Part(size.saturating_sub(length)..size),
        },
        (first, last) => {
            let (first, last) = match (number(first), last, number(last)) {
                (Some(first), "", _) => (first, u64::MAX),
                (Some(first), _, Some(last)) if first <= last => (first, last),
                _ => return RangeAsked::Whole,
            };
            if first >= size {
                return RangeAsked::Unsatisfiable;
            }
            RangeAsked::Part(first..last.saturating_add(1).min(size))
        }
    }
}

/// Digits only; what is too large is the largest.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{RangeAsked::*, *};

    #[test]
    fn every_form_of_the_header() {
        const HUGE: &str = "bytes=99999999999999999999999-";
        for (header, size, expected) in [
            ("bytes=0-", 100, Part(0..100)),
            ("bytes=0-0", 100, Part(0..1)),
            ("bytes=0-1", 100, Part(0..2)),
            ("bytes=10-19", 100, Part(10..20)),
            ("bytes=10-99", 100, Part(10..100)),
            ("bytes=10-100", 100, Part(10..100)),
            ("bytes=99-", 100, Part(99..100)),
            ("bytes=5-99999999999999999999999", 100, Part(5..100)),
            ("bytes=-1", 100, Part(99..100)),
            ("bytes=-100", 100, Part(0..100)),
            ("bytes=-101", 100, Part(0..100)),
            ("Bytes= 3-4 ", 100, Part(3..5)),
            ("bytes=100-", 100, Unsatisfiable),
            ("bytes=100-200", 100, Unsatisfiable),
            (HUGE, 100, Unsatisfiable),
            (HUGE, u64::MAX, Unsatisfiable),
            ("bytes=-0", 100, Unsatisfiable),
            ("bytes=0-", 0, Unsatisfiable),
            ("bytes=-5", 0, Whole),
            ("bytes=20-10", 100, Whole),
            ("bytes=0-1,5-6", 100, Whole),
            ("bytes=0-1, -6", 100, Whole),
            ("items=0-1", 100, Whole),
            ("bytes =0-1", 100, Whole),
            ("bytes=", 100, Whole),
            ("bytes=-", 100, Whole),
            ("bytes=a-b", 100, Whole),
            ("bytes=+1-2", 100, Whole),
            ("bytes=1 - 2", 100, Whole),
            ("bytes=--2", 100, Whole),
            ("0-1", 100, Whole),
            ("", 100, Whole),
        ] {
            assert_eq!(range(header, size), expected, "{header} of {size}");
        }
    }
}
