//! How a text travels: in the GSM 7-bit alphabet, or, if one character does not fit into it, in UCS-2; and in how many segments.
//! Source: 3GPP TS 23.038 §6.2.1 (alphabet and extension table), TS 23.040 §9.2.3.24 (concatenation takes six octets).
use entities::sms_message::Encoding;

/// The default alphabet: one septet each. (The escape itself is no character.)
const BASIC: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
/// The extension table: an escape and one septet.
const EXTENDED: &str = "\u{c}^{}\\[~]|€";

/// Units in a message of one segment, and in each segment of a longer one.
const SEPTETS: (usize, usize) = (160, 153);
const UNITS: (usize, usize) = (70, 67);

/// The encoding and the number of segments. A character is never cut in two: one that does not fit goes to the next segment.
pub fn of(text: &str) -> (Encoding, i32) {
    let septets: Option<Vec<usize>> = text.chars().map(septets).collect();
    let (encoding, widths, (alone, each)) = match septets {
        Some(widths) => (Encoding::Gsm7, widths, SEPTETS),
        None => (Encoding::Ucs2, text.chars().map(char::len_utf16).collect(), UNITS),
    };
    if widths.iter().sum::<usize>() <= alone {
        return (encoding, 1);
    }
    let (mut segments, mut used) = (1, 0);
    for width in widths {
        if used + width > each {
            segments += 1;
            used = 0;
        }
        used += width;
    }
    (encoding, segments)
}

fn septets(char: char) -> Option<usize> {
    if BASIC.contains(char) {
        Some(1)
    } else if EXTENDED.contains(char) {
        Some(2)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Encoding::{Gsm7, Ucs2};

    #[test]
    fn the_tables_have_their_size() {
        // 128 places, less the escape.
        assert_eq!(BASIC.chars().count(), 127);
        assert_eq!(EXTENDED.chars().count(), 10);
        let mut all: Vec<char> = BASIC.chars().chain(EXTENDED.chars()).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 137, "no character twice");
    }

    #[test]
    fn segments_of_exact_lengths() {
        let table: [(String, (Encoding, i32)); 22] = [
            (String::new(), (Gsm7, 1)),
            ("a".into(), (Gsm7, 1)),
            ("a".repeat(160), (Gsm7, 1)),
            ("a".repeat(161), (Gsm7, 2)),
            ("a".repeat(306), (Gsm7, 2)),
            ("a".repeat(307), (Gsm7, 3)),
            ("€".repeat(80), (Gsm7, 1)),
            ("€".repeat(81), (Gsm7, 2)),
            // 153 is odd: an escaped character does not begin in a segment's last septet.
            ("€".repeat(152), (Gsm7, 2)),
            ("€".repeat(153), (Gsm7, 3)),
            (format!("{}€{}", "a".repeat(152), "a".repeat(152)), (Gsm7, 3)),
            (format!("{}€{}", "a".repeat(151), "a".repeat(153)), (Gsm7, 2)),
            ("é\n\r@£Ω{}[]~|\\^\u{c}".into(), (Gsm7, 1)),
            ("ê".into(), (Ucs2, 1)),
            ("’".into(), (Ucs2, 1)),
            (format!("{}ê", "a".repeat(69)), (Ucs2, 1)),
            (format!("{}ê", "a".repeat(70)), (Ucs2, 2)),
            (format!("{}ê", "a".repeat(133)), (Ucs2, 2)),
            (format!("{}ê", "a".repeat(134)), (Ucs2, 3)),
            ("😀".repeat(35), (Ucs2, 1)),
            // 67 is odd: a pair is not cut.
            ("😀".repeat(66), (Ucs2, 2)),
            ("😀".repeat(67), (Ucs2, 3)),
        ];
        for (text, expected) in table {
            assert_eq!(
                of(&text),
                expected,
                "{} characters of {:?}",
                text.chars().count(),
                text.chars().next()
            );
        }
    }
}
