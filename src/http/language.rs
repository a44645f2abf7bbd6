//! Languages, as agents speak them and voices are made for them.
use entities::{Error, Result};

/// BCP 47: letters first, then letters and digits, with hyphens between.
pub fn check_language(tag: &str) -> Result<()> {
    let mut parts = tag.split('-');
    let primary = parts.next().unwrap_or_default();
    let fits = (2..=3).contains(&primary.len())
        && primary.bytes().all(|byte| byte.is_ascii_alphabetic())
        && parts.all(|part| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    if fits {
        Ok(())
    } else {
        Err(Error::invalid(
            "language",
            format!("`{tag}` is not a language tag: write en-US or de"),
        ))
    }
}
