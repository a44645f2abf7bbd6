use chrono_tz::Tz;
use schemars::JsonSchema;
use sea_orm::DeriveValueType;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{borrow::Cow, fmt, str::FromStr};

use super::BadValue;

/// A time zone by its name in the IANA database, as `Europe/Berlin`. Offsets are never stored: they change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, DeriveValueType)]
#[sea_orm(value_type = "String")]
pub struct Zone(Tz);

impl Zone {
    pub const NEW_YORK: Zone = Zone(Tz::America__New_York);

    pub fn tz(self) -> Tz {
        self.0
    }
    pub fn name(self) -> &'static str {
        self.0.name()
    }
}
impl From<Tz> for Zone {
    fn from(zone: Tz) -> Self {
        Zone(zone)
    }
}
impl FromStr for Zone {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let unknown = |_| {
            BadValue(format!(
                "`{text}` is not a time zone: use a name of the IANA database, as America/New_York"
            ))
        };
        text.trim().parse().map(Zone).map_err(unknown)
    }
}
impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
impl JsonSchema for Zone {
    fn schema_name() -> Cow<'static, str> {
        "TimeZone".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "A time zone of the IANA database.", "examples": ["America/New_York"] })
    }
}
