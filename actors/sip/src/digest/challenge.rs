//! `Digest name=value, name="value"`: challenges and answers as they stand in a header.
use crate::message::{
    Headers, Name,
    address::{split_list, unquoted},
};

/// Challenges of one response that are looked at.
const MAX_CHALLENGES: usize = 16;

/// The parameters of one Digest header, names in lower case, values without their quotes and escapes as they are.
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    /// `None` for another scheme.
    pub(super) fn read(value: &str) -> Option<Params> {
        let (scheme, rest) = value.trim().split_once(|c: char| c.is_ascii_whitespace())?;
        if !scheme.eq_ignore_ascii_case("Digest") {
            return None;
        }
        let params = split_list(rest).into_iter().filter_map(|param| {
            let (name, value) = param.split_once('=')?;
            Some((name.trim().to_ascii_lowercase(), unquoted(value.trim()).to_owned()))
        });
        Some(Params(params.collect()))
    }

    /// All of a header's lines.
    pub(super) fn all(headers: &Headers, name: &Name) -> Vec<Params> {
        let values = headers.get_raw(name).take(MAX_CHALLENGES);
        values.filter_map(|value| Params::read(value.as_str())).collect()
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn is(&self, name: &str, value: &str) -> bool {
        self.get(name).is_some_and(|found| found.eq_ignore_ascii_case(value))
    }
}

/// In quotes, so that nothing in it ends them.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
