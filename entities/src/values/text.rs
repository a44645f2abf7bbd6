//! Texts and numbers with limits, and the free-form maps of the API.
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::{borrow::Cow, collections::BTreeMap, fmt, ops::Deref};

/// A text of `MIN` to `MAX` characters, without blanks around it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Text<const MIN: usize, const MAX: usize>(String);

impl<const MIN: usize, const MAX: usize> Text<MIN, MAX> {
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let length = text.chars().count();
        if length < MIN {
            return Err(if MIN == 1 {
                "must not be empty".into()
            } else {
                format!("needs at least {MIN} characters")
            });
        }
        if length > MAX {
            return Err(format!("has {length} characters, at most {MAX} are allowed"));
        }
        Ok(Text(text.to_owned()))
    }
    pub fn into_string(self) -> String {
        self.0
    }
}
impl<const MIN: usize, const MAX: usize> Deref for Text<MIN, MAX> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}
impl<const MIN: usize, const MAX: usize> fmt::Debug for Text<MIN, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
impl<const MIN: usize, const MAX: usize> From<Text<MIN, MAX>> for String {
    fn from(text: Text<MIN, MAX>) -> String {
        text.0
    }
}
impl<'de, const MIN: usize, const MAX: usize> Deserialize<'de> for Text<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&Cow::<'de, str>::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
impl<const MIN: usize, const MAX: usize> JsonSchema for Text<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Text{MIN}To{MAX}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": MIN, "maxLength": MAX })
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Bounded<const MIN: i32, const MAX: i32>(i32);

impl<const MIN: i32, const MAX: i32> Bounded<MIN, MAX> {
    pub fn new(value: i64) -> Result<Self, String> {
        match i32::try_from(value) {
            Ok(value) if (MIN..=MAX).contains(&value) => Ok(Bounded(value)),
            _ => Err(format!("must be from {MIN} to {MAX}, not {value}")),
        }
    }
    pub fn get(self) -> i32 {
        self.0
    }
}
impl<'de, const MIN: i32, const MAX: i32> Deserialize<'de> for Bounded<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(i64::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}
impl<const MIN: i32, const MAX: i32> JsonSchema for Bounded<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Bounded{MIN}To{MAX}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

/// The user's own labels: at most 50 keys of 1 to 40 characters, values of at most 500.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(transparent)]
pub struct Metadata(pub BTreeMap<String, String>);

impl Metadata {
    /// For fields of requests: `#[serde(deserialize_with = "Metadata::limited")]`.
    pub fn limited<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = BTreeMap::<String, String>::deserialize(deserializer)?;
        check_map(
            map.iter().map(|(key, value)| (key.as_str(), value.chars().count())),
            500,
        )
        .map_err(de::Error::custom)?;
        Ok(Metadata(map))
    }
}

/// What a conversation can mention: at most 50 names of 1 to 40 characters; texts, numbers, true or false.
/// A session's are its campaign's and its contact's together, so that the limit holds for what comes in, not for what is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[serde(transparent)]
#[schemars(description = "At most 50 names of 1 to 40 characters; texts, numbers, true or false.")]
pub struct Variables(pub BTreeMap<String, serde_json::Value>);

impl Variables {
    pub const MAX: usize = 50;
    /// Characters of a name.
    pub const LONGEST_NAME: usize = 40;

    /// For fields of requests: `#[serde(deserialize_with = "Variables::limited")]`.
    pub fn limited<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = BTreeMap::<String, serde_json::Value>::deserialize(deserializer)?;
        if let Some((key, _)) = map.iter().find(|(_, value)| value.is_array() || value.is_object()) {
            return Err(de::Error::custom(format!(
                "`{key}` must be a string, a number, true, false or null"
            )));
        }
        let lengths = map
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str().map_or(0, |text| text.chars().count())));
        check_map(lengths, 2000).map_err(de::Error::custom)?;
        Ok(Variables(map))
    }

    /// Somebody's names too, so that a text may mention them; variables of these names go before them.
    pub fn naming(mut self, names: [(&str, &Option<String>); 3]) -> Self {
        for (name, value) in names {
            if let Some(value) = value
                && self.text(name).is_none()
            {
                self.0.insert(name.into(), value.as_str().into());
            }
        }
        self
    }

    /// In words; nothing and blanks are no value.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            serde_json::Value::Null => None,
            serde_json::Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
            other => Some(other.to_string()),
        }
    }
}

fn check_map<'a>(entries: impl ExactSizeIterator<Item = (&'a str, usize)>, longest: usize) -> Result<(), String> {
    if entries.len() > Variables::MAX {
        return Err(format!("has {} keys, at most 50 are allowed", entries.len()));
    }
    for (key, length) in entries {
        if key.is_empty() || key.chars().count() > Variables::LONGEST_NAME {
            return Err(format!("key `{key}` must have 1 to 40 characters"));
        }
        if length > longest {
            return Err(format!(
                "the value of `{key}` has {length} characters, at most {longest} are allowed"
            ));
        }
    }
    Ok(())
}
