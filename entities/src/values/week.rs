use super::BadValue;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{borrow::Cow, fmt, str::FromStr};

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl Day {
    pub fn all() -> Vec<Day> {
        use Day::*;
        vec![Mon, Tue, Wed, Thu, Fri, Sat, Sun]
    }
}
impl From<Day> for chrono::Weekday {
    fn from(day: Day) -> Self {
        match day {
            Day::Mon => chrono::Weekday::Mon,
            Day::Tue => chrono::Weekday::Tue,
            Day::Wed => chrono::Weekday::Wed,
            Day::Thu => chrono::Weekday::Thu,
            Day::Fri => chrono::Weekday::Fri,
            Day::Sat => chrono::Weekday::Sat,
            Day::Sun => chrono::Weekday::Sun,
        }
    }
}

/// Wall time to the minute, `00:00` to `24:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(u16);

impl TimeOfDay {
    /// Minutes since midnight, 0 to 1440.
    pub fn minutes(self) -> u16 {
        self.0
    }
}
impl FromStr for TimeOfDay {
    type Err = BadValue;
    fn from_str(text: &str) -> Result<Self, BadValue> {
        let bad = || BadValue(format!("`{text}` is not a time of day: write HH:MM, 00:00 to 24:00"));
        let two = |text: &str| {
            text.parse::<u16>()
                .ok()
                .filter(|_| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let (hours, minutes) = text.split_once(':').ok_or_else(bad)?;
        let (hours, minutes) = two(hours).zip(two(minutes)).ok_or_else(bad)?;
        let all = hours * 60 + minutes;
        if minutes < 60 && all <= 24 * 60 {
            Ok(TimeOfDay(all))
        } else {
            Err(bad())
        }
    }
}
impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}
impl Serialize for TimeOfDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for TimeOfDay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
impl JsonSchema for TimeOfDay {
    fn schema_name() -> Cow<'static, str> {
        "TimeOfDay".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$", "description": "Wall time HH:MM, 00:00 to 24:00." })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_time_of_day_is_read_strictly() {
        for text in ["00:00", "09:30", "23:59", "24:00"] {
            assert_eq!(text.parse::<TimeOfDay>().unwrap().to_string(), text);
        }
        for text in [
            "", "9:30", "24:01", "12:60", "-1:00", "+1:00", "12.00", "12:00:00", "99999:00",
        ] {
            assert!(text.parse::<TimeOfDay>().is_err(), "{text}");
        }
    }
}
