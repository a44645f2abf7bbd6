use chrono::{DateTime, Duration, SecondsFormat, Utc};
use schemars::JsonSchema;
use sea_orm::DeriveValueType;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{borrow::Cow, fmt};

/// A point in time, UTC, to the millisecond: `2027-03-02T13:00:00.000Z` in JSON, an integer in the database.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, DeriveValueType)]
pub struct Moment(i64);

impl Moment {
    /// Years 0001 to 9999, what ISO 8601 can write with four digits.
    const RANGE: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;

    /// Milliseconds since 1970, clamped to what can be written.
    pub fn from_millis(millis: i64) -> Self {
        Moment(millis.clamp(*Self::RANGE.start(), *Self::RANGE.end()))
    }
    pub fn millis(self) -> i64 {
        self.0
    }
    pub fn datetime(self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.0).unwrap_or_default()
    }
    pub fn plus_millis(self, millis: i64) -> Self {
        Self::from_millis(self.0.saturating_add(millis))
    }
    pub fn plus_seconds(self, seconds: i64) -> Self {
        self.plus_millis(seconds.saturating_mul(1000))
    }
    pub fn minus(self, duration: std::time::Duration) -> Self {
        self.plus_millis(-i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
    }
    pub fn plus(self, duration: std::time::Duration) -> Self {
        self.plus_millis(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
    }
    /// Time from `earlier` to here; zero when it lies ahead.
    pub fn since(self, earlier: Moment) -> std::time::Duration {
        std::time::Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
    /// RFC 3339 with an offset, any precision; kept to the millisecond.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parsed = DateTime::parse_from_rfc3339(text).map_err(|_| {
            format!("`{text}` is not a time: write ISO 8601 with an offset, as 2027-03-02T13:00:00.000Z")
        })?;
        let millis = parsed.timestamp_millis();
        if Self::RANGE.contains(&millis) {
            Ok(Moment(millis))
        } else {
            Err(format!("`{text}` lies outside years 1 to 9999"))
        }
    }
}
impl From<DateTime<Utc>> for Moment {
    fn from(time: DateTime<Utc>) -> Self {
        Self::from_millis(time.timestamp_millis())
    }
}
impl std::ops::Add<Duration> for Moment {
    type Output = Moment;
    fn add(self, duration: Duration) -> Moment {
        self.plus_millis(duration.num_milliseconds())
    }
}
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.datetime().to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}
impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Moment::parse(&text).map_err(de::Error::custom)
    }
}
impl JsonSchema for Moment {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time", "description": "ISO 8601 UTC with milliseconds." })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn is_written_with_three_digits_and_z() {
        assert_eq!(
            Moment::parse("2027-03-02T14:00:00.1239+01:00").unwrap().to_string(),
            "2027-03-02T13:00:00.123Z"
        );
        assert_eq!(Moment::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
    }
    #[test]
    fn refuses_what_is_no_time() {
        for text in [
            "",
            "2027-03-02",
            "2027-03-02T13:00:00",
            "1700000000",
            "2027-02-30T00:00:00Z",
        ] {
            assert!(Moment::parse(text).is_err(), "{text}");
        }
    }
}
