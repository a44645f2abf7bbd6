//! How well the other side of a telephone call could be heard.
use schemars::JsonSchema;
use sea_orm::FromJsonQueryResult;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Of the sound that came from the other side, by RTP and RTCP. Source: RFC 3550, sections 6.4.1 and 6.4.3.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, FromJsonQueryResult)]
#[schemars(description = "How well the other side could be heard.")]
pub struct Quality {
    /// Packets that did not come, in percent of those that were sent: 0 to 100, to two decimals.
    pub loss_percent: f64,
    /// How unevenly they came, in milliseconds.
    pub jitter_ms: i32,
    /// To the other side and back, in milliseconds; null: it sends no reports.
    pub round_trip_ms: Option<i32>,
}

impl Quality {
    /// `lost` of `expected` packets did not come.
    pub fn of((lost, expected): (u64, u64), jitter_ms: u32, round_trip_ms: Option<u32>) -> Self {
        let hundredths = match expected {
            0 => 0,
            expected => (u128::from(lost.min(expected)) * 10_000 + u128::from(expected) / 2) / u128::from(expected),
        };
        let whole = |ms: u32| i32::try_from(ms).unwrap_or(i32::MAX);
        Quality {
            loss_percent: u32::try_from(hundredths).map_or(100.0, f64::from) / 100.0,
            jitter_ms: whole(jitter_ms),
            round_trip_ms: round_trip_ms.map(whole),
        }
    }
}

impl fmt::Display for Quality {
    /// As the timeline has it: `loss 0.25 %, jitter 12 ms, round trip 80 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "loss {} %, jitter {} ms", self.loss_percent, self.jitter_ms)?;
        match self.round_trip_ms {
            Some(ms) => write!(f, ", round trip {ms} ms"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_told_in_percent_to_two_decimals_whatever_is_counted() {
        for (lost, expected, told) in [
            (0, 0, 0.0),
            (0, 50, 0.0),
            (1, 400, 0.25),
            (1, 3, 33.33),
            (2, 3, 66.67),
            (1, 1_000_000, 0.0),
            (7, 7, 100.0),
            (9, 7, 100.0),
            (u64::MAX, u64::MAX, 100.0),
        ] {
            assert_eq!(
                Quality::of((lost, expected), 0, None).loss_percent,
                told,
                "{lost} of {expected}"
            );
        }
    }

    #[test]
    fn the_timeline_says_what_is_known() {
        let known = Quality::of((1, 400), 12, Some(80));
        assert_eq!(known.to_string(), "loss 0.25 %, jitter 12 ms, round trip 80 ms");
        let one_way = Quality::of((0, 400), 3, None);
        assert_eq!(one_way.to_string(), "loss 0 %, jitter 3 ms");
    }
}
