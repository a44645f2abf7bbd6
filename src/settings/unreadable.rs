//! Why settings cannot be read, in our words: which setting, and what is wanted of it.
use config::ConfigError;

/// The name of the setting comes first, where one is to blame.
pub(super) fn why(error: &ConfigError) -> String {
    const SEE: &str = "see `callboard config --defaults`";
    match error {
        ConfigError::Type { expected, key, .. } => {
            let key = key.as_deref().unwrap_or("settings");
            format!("{key}: must be {}; {SEE}", wanted(expected))
        }
        ConfigError::At {
            error, key: Some(key), ..
        } => match &**error {
            ConfigError::Message(text) => format!("{key}: {}; {SEE}", said(text)),
            other => why(other),
        },
        ConfigError::Message(text) => match text
            .strip_prefix("unknown field `")
            .and_then(|rest| rest.split_once('`'))
        {
            Some((name, _)) => format!("settings: `{name}` is not a setting; {SEE}"),
            None => format!("settings: {}; {SEE}", said(text)),
        },
        ConfigError::NotFound(key) => format!("{key}: is required; {SEE}"),
        ConfigError::FileParse { uri, cause } => {
            let file = uri.as_deref().unwrap_or("the settings file");
            // The first line of what the parser says ends in the place.
            let text = cause.to_string();
            let place = text.lines().next().and_then(|line| line.split_once(" at line "));
            match place {
                Some((_, place)) => format!("settings: {file} is not valid TOML (line {place}); {SEE}"),
                None => {
                    format!("settings: {file} has a number that is too large, or a value that cannot be read; {SEE}")
                }
            }
        }
        // A file that is not there, or may not be read: the system's own words say which.
        other => format!("settings: {other}; {SEE}"),
    }
}

/// `config` has words of its own for a word that is not one of a few.
fn said(text: &str) -> String {
    if text.starts_with("enum ") || text.starts_with("value of enum ") {
        return "must be one of the words that are listed there".into();
    }
    rules::shape::in_our_words(text)
}

fn wanted(expected: &str) -> &'static str {
    if expected.contains("boolean") {
        "`true` or `false`"
    } else if expected.contains("unsigned") {
        "a whole number of 0 or more that is not too large"
    } else if expected.contains("integer") {
        "a whole number that is not too large"
    } else if expected.contains("float") {
        "a number"
    } else {
        "a text in quotes"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::{Config, File, FileFormat};

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its errors are looked at")]
    struct Few {
        dev: bool,
        size: u8,
        #[serde(default)]
        format: Format,
    }

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Format {
        #[default]
        Text,
    }

    #[test]
    fn a_setting_that_cannot_be_read_is_told_in_our_words() {
        for (text, expected) in [
            ("dev = \"perhaps\"\nsize = 1", "dev: must be `true` or `false`; see"),
            (
                "dev = true\nsize = \"big\"",
                "size: must be a whole number that is not too large; see",
            ),
            (
                "dev = true\nsize = 1\nformat = \"xml\"",
                "format: must be one of the words that are listed there; see",
            ),
            (
                "dev = true\nsize = 99999999999999999999",
                "has a number that is too large, or a value that cannot be read; see",
            ),
            ("dev = true\nsize = 1\nsiez = 2", "`siez` is not a setting; see"),
            ("dev = true", "size: is required; see"),
            ("dev = ", "is not valid TOML (line 1, column "),
        ] {
            let read = Config::builder()
                .add_source(File::from_str(text, FileFormat::Toml))
                .build()
                .and_then(Config::try_deserialize::<Few>);
            let said = why(&read.unwrap_err());
            assert!(said.contains(expected), "{text}: {said}");
            for foreign in [
                "invalid type",
                "expected",
                "unknown field",
                "missing",
                "TOML parse error",
                "Format",
            ] {
                assert!(!said.contains(foreign), "{text}: {said}");
            }
        }
    }
}
