//! What an endpoint subscribes to: `*`, `group.*` or an exact type.
use super::CATALOGUE;

/// Checks a subscription: `*`, `group.*` or an exact type. The error names the nearest types.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    let known = match pattern.strip_suffix('*') {
        Some("") => true,
        Some(prefix) => prefix.ends_with('.') && CATALOGUE.iter().any(|known| known.name.starts_with(prefix)),
        None => CATALOGUE.iter().any(|known| known.name == pattern),
    };
    if known {
        return Ok(());
    }
    let mut nearest: Vec<_> = CATALOGUE
        .iter()
        .map(|known| (distance(pattern, known.name), known.name))
        .collect();
    nearest.sort();
    let nearest: Vec<_> = nearest.iter().take(3).map(|(_, name)| *name).collect();
    Err(format!(
        "`{pattern}` is not an event type; did you mean {}? `*` and groups such as `session.*` work too",
        nearest.join(", ")
    ))
}

/// Levenshtein's distance, in bytes: good enough to find a slip.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate().take(64) {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_in_a_pattern_is_answered_with_the_nearest_types() {
        for pattern in ["*", "session.*", "session.ended", "credits.*"] {
            assert_eq!(check_pattern(pattern), Ok(()), "{pattern}");
        }
        assert!(check_pattern("session.end").unwrap_err().contains("session.ended"));
        for pattern in ["", "sess*", "**", "session", "session.*.x", "foo.*", "*.ended"] {
            assert!(check_pattern(pattern).is_err(), "{pattern}");
        }
    }
}
