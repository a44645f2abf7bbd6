//! When the contacts of a campaign may be reached.
use crate::values::{Day, Moment, TimeOfDay, Zone};
use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When contacts may be called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// `start` before this time arms the campaign; it then starts by itself.
    #[serde(default)]
    pub starts_at: Option<Moment>,
    /// Nothing is dialled from this time on: the campaign completes with the reason `ended`.
    #[serde(default)]
    pub ends_at: Option<Moment>,
    /// Are the windows wall time where the contact is, or in `timezone`?
    #[serde(default)]
    pub timezone_mode: TimezoneMode,
    /// For contacts whose zone is unknown, and for `fixed`; null: the workspace's.
    #[serde(default)]
    pub timezone: Option<Zone>,
    /// Null: daily 09:00 to 20:00 in live, all day in test. At most 50.
    #[serde(default)]
    pub windows: Option<Vec<Window>>,
    /// Local dates on which nobody is called, such as `2027-12-25`; at most 366.
    #[serde(default)]
    pub blackout_dates: Vec<NaiveDate>,
    /// What happens to a contact whose number does not tell its time zone.
    #[serde(default)]
    pub on_unknown_timezone: OnUnknownTimezone,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimezoneMode {
    /// The contact's `timezone`, else every zone that its number's prefix may lie in.
    #[default]
    Contact,
    /// `timezone`, for everybody.
    Fixed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknownTimezone {
    /// The campaign's `timezone` counts.
    #[default]
    Fallback,
    /// Every zone of the number's country must be open.
    Strictest,
    /// It is skipped as `invalid`.
    Skip,
}

/// Open from `start` until before `end`, wall time, on some days of the week.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "GivenWindow")]
pub struct Window {
    pub days: Vec<Day>,
    pub start: TimeOfDay,
    pub end: TimeOfDay,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GivenWindow {
    #[serde(default = "Day::all")]
    days: Vec<Day>,
    start: TimeOfDay,
    end: TimeOfDay,
}
impl TryFrom<GivenWindow> for Window {
    type Error = String;
    fn try_from(GivenWindow { mut days, start, end }: GivenWindow) -> Result<Self, String> {
        if start >= end {
            return Err(format!(
                "`start` {start} must be before `end` {end}: split a window that spans midnight into two"
            ));
        }
        days.sort();
        days.dedup();
        if days.is_empty() {
            return Err("`days` is empty: list some, or leave it out for all".into());
        }
        Ok(Window { days, start, end })
    }
}
