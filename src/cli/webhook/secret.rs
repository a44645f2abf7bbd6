//! A webhook secret as somebody typed, copied or exported it.
use base64::{Engine, engine::general_purpose::STANDARD};

pub const PREFIX: &str = "whsec_";
/// 32 bytes in base64.
const DIGITS: usize = 44;

/// What is wrong with a secret. The words never show it.
pub struct Flaw {
    pub message: String,
    /// What it was probably meant to be.
    pub meant: String,
}

pub fn flaw(secret: &str) -> Option<Flaw> {
    let quotes = ['"', '\'', '`'];
    let bare = secret.trim().trim_matches(quotes).trim();
    let digits = bare.strip_prefix(PREFIX).unwrap_or(bare);
    let decoded = STANDARD.decode(digits).ok();
    let message = if bare.is_empty() {
        "is empty".to_owned()
    } else if secret != secret.trim() {
        "has a blank or a line break before or after it; every byte counts".to_owned()
    } else if bare != secret {
        "has quotes around it; every byte counts".to_owned()
    } else if !bare.starts_with(PREFIX) {
        format!("does not start with {PREFIX}; the prefix is part of it")
    } else if digits.len() == DIGITS - 1 && !digits.ends_with('=') {
        "has lost the `=` at its end".to_owned()
    } else if digits.len() != DIGITS {
        format!(
            "has {} characters after {PREFIX} instead of {DIGITS}",
            digits.chars().count()
        )
    } else if decoded.is_none_or(|bytes| bytes.len() != 32) {
        format!("is not the base64 of 32 bytes after {PREFIX}")
    } else {
        return None;
    };
    let padding = if digits.len() == DIGITS - 1 { "=" } else { "" };
    let meant = format!("{PREFIX}{digits}{padding}");
    Some(Flaw { message, meant })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flaw_is_named_and_mended() {
        let digits = format!("{}=", "A".repeat(43));
        let good = format!("whsec_{digits}");
        assert!(flaw(&good).is_none());
        assert!(flaw(&adapters::signature::new_secret()).is_none());
        for (secret, words) in [
            (format!("{good}\n"), "line break"),
            (format!(" {good}"), "blank"),
            (format!("\"{good}\""), "quotes"),
            (digits.clone(), "whsec_"),
            (good.trim_end_matches('=').to_owned(), "lost the `=`"),
        ] {
            let flaw = flaw(&secret).unwrap();
            assert!(flaw.message.contains(words), "{secret:?}: {}", flaw.message);
            assert_eq!(flaw.meant, good, "{secret:?}");
        }
        for (secret, words) in [
            (String::new(), "empty"),
            ("\"\"".into(), "empty"),
            (good[..20].to_owned(), "14 characters"),
            (good.replace("AAAA", "A_-A"), "base64"),
            (format!("whsec_{}==", "A".repeat(42)), "base64"),
        ] {
            let message = flaw(&secret).unwrap().message;
            assert!(message.contains(words), "{secret:?}: {message}");
        }
    }
}
