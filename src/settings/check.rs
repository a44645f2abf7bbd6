//! What a setting that cannot be used is answered with.
use std::{fmt::Display, ops::RangeInclusive};

/// A setting that cannot be used: which, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadSetting(pub String);

/// The value, if it lies in the range.
pub(super) fn within<T: Copy + Display + PartialOrd>(
    name: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<T, BadSetting> {
    if range.contains(&value) {
        return Ok(value);
    }
    let (least, most) = (range.start(), range.end());
    Err(BadSetting(format!(
        "`{name}` must be between {least} and {most}, not {value}"
    )))
}

/// The one of that name among all; none if nothing is set.
pub(super) fn choice<K: Copy, const N: usize>(
    setting: &str,
    name: &str,
    all: [K; N],
    called: fn(K) -> &'static str,
) -> Result<Option<K>, BadSetting> {
    match name.trim() {
        "" => Ok(None),
        name => match all.into_iter().find(|kind| called(*kind) == name) {
            Some(kind) => Ok(Some(kind)),
            None => Err(BadSetting(format!(
                "{setting}: `{name}` is not one of {}",
                all.map(called).join(", ")
            ))),
        },
    }
}

/// What is set for a provider that is not: a slip that would go unseen. `any`: the settings of which one names the provider.
pub(super) fn unused<const N: usize>(any: &[&str], settings: [(&str, &str); N]) -> Result<(), BadSetting> {
    match settings.iter().find(|(_, value)| !value.trim().is_empty()) {
        Some((name, _)) => Err(BadSetting(format!(
            "{name}: also set `{}`, or it has no effect",
            any.join("` or `")
        ))),
        None => Ok(()),
    }
}

/// What stands in a text with commas between.
pub(super) fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_out_of_its_range_is_told_with_both() {
        assert_eq!(within("x", 5, 1..=5).unwrap(), 5);
        for (bad, said) in [
            (0, "`x` must be between 1 and 5, not 0"),
            (9, "`x` must be between 1 and 5, not 9"),
        ] {
            assert_eq!(within("x", bad, 1..=5).unwrap_err().to_string(), said);
        }
        assert!(within("x", f64::NAN, 0.0..=1.0).is_err());
    }
}
