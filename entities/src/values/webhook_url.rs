use super::BadValue;
use schemars::JsonSchema;
use sea_orm::DeriveValueType;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::{borrow::Cow, fmt, str::FromStr};
use url::Url;

/// The address of somebody's receiver: absolute, `https` or `http`, with a host, without user information or fragment,
/// at most 2,000 characters. Whether its target may be reached is decided by `actors::outbound`, at every connect.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema, DeriveValueType)]
#[sea_orm(value_type = "String")]
#[serde(transparent)]
#[schemars(description = "An absolute URL of at most 2,000 characters, without user information or fragment.")]
pub struct WebhookUrl(String);

impl WebhookUrl {
    pub fn parse(text: &str) -> Result<Self, String> {
        check_written(text)?;
        let url = Url::parse(text).map_err(|_| "is not a URL; write https://host/path".to_owned())?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(format!("scheme `{}` is not allowed; use https", url.scheme()));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err("has no host; write https://host/path".into());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("must not carry a user name or password; use `headers` for a credential".into());
        }
        if url.fragment().is_some() {
            return Err("must not carry a #fragment: it would never be sent".into());
        }
        if url.port() == Some(0) {
            return Err("port 0 cannot be reached".into());
        }
        let text = String::from(url);
        // As it will be sent: what is percent-encoded counts as such.
        if text.len() > 2000 {
            Err("is longer than 2000 characters".into())
        } else {
            Ok(WebhookUrl(text))
        }
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
    pub fn is_https(&self) -> bool {
        self.0.starts_with("https:")
    }
}
/// What browsers forgive and mend is refused here: the address would lead elsewhere than it says.
fn check_written(text: &str) -> Result<(), String> {
    if text.contains(|letter: char| letter.is_control() || letter.is_whitespace()) {
        return Err("must not contain blanks, tabs or line breaks; percent-encode them".into());
    }
    if text.contains('\\') {
        return Err("must not contain a backslash; write https://host/path".into());
    }
    let Some((_, rest)) = text.split_once("://") else {
        return Err("is not a URL; write https://host/path".into());
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Err("has no host; write https://host/path".into());
    }
    if authority.contains('@') {
        return Err("must not carry a user name or password; use `headers` for a credential".into());
    }
    Ok(())
}

impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl FromStr for WebhookUrl {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        // What the database holds was checked when it came in.
        Ok(WebhookUrl(text.to_owned()))
    }
}
impl<'de> Deserialize<'de> for WebhookUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&Cow::<'de, str>::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn refuses_what_is_no_receiver() {
        for text in [
            "",
            "hooks",
            "/hooks",
            "ftp://a.example/",
            "https://",
            "https://u:p@a.example/",
            "https://a.example/#x",
            "https://a.example:0/",
            "https:///a.example/",
            "https:////a.example/",
            "https:a.example/",
            "https:/a.example/",
            "https://@a.example/",
            "https://u@a.example/",
            "https://a.example\\@b.example/",
            "https:\\\\a.example/",
            "https://a.exa\nmple/",
            "https://a.example/\r\nX: y",
            "https://a.example/\tx",
            " https://a.example/",
            "https://a.example/ ",
            "https://a.example/a b",
            "https://a.example/\u{2028}",
        ] {
            assert!(WebhookUrl::parse(text).is_err(), "{text}");
        }
        assert_eq!(
            WebhookUrl::parse("HTTPS://A.example/Hook?x=1").unwrap().as_str(),
            "https://a.example/Hook?x=1"
        );
    }
}
