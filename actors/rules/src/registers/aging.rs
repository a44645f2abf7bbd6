//! How a copy of a register ages, as its owners are told of it.
use super::known::max_age_days;
use entities::{register::Model, values::Moment};

/// Owners are told so long before.
const SOON_DAYS: i64 = 3;
const DAY_SECONDS: i64 = 24 * 3600;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Fresh,
    EndsSoon,
    Stale,
}

impl Stage {
    /// As it is noted of a register that its owners were told.
    pub fn number(self) -> i32 {
        match self {
            Stage::Fresh => 0,
            Stage::EndsSoon => 1,
            Stage::Stale => 2,
        }
    }
}

/// From then on the copy is too old.
pub fn stale_at(register: &Model) -> Moment {
    let days = i64::from(max_age_days(&register.name));
    register.fetched_at.plus_seconds(days * DAY_SECONDS)
}

pub fn stage(register: &Model, now: Moment) -> Stage {
    let end = stale_at(register);
    if now >= end {
        Stage::Stale
    } else if now >= end.plus_seconds(-SOON_DAYS * DAY_SECONDS) {
        Stage::EndsSoon
    } else {
        Stage::Fresh
    }
}

/// What its owners are to be told now and were not told yet.
pub fn news(register: &Model, now: Moment) -> Option<Stage> {
    let stage = stage(register, now);
    (stage.number() > register.warned).then_some(stage)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use entities::{ids::TenantId, values::Env};
    use uuid::Uuid;

    pub(in crate::registers) fn register(name: &str, warned: i32) -> Model {
        let at = Moment::parse("2026-11-01T00:00:00Z").unwrap();
        Model {
            id: Uuid::from_u128(1).into(),
            tenant_id: TenantId(Uuid::from_u128(2)),
            env: Env::Live,
            name: name.into(),
            country: "US".into(),
            version: 7,
            file_id: Uuid::from_u128(3).into(),
            key_check: "0".repeat(16),
            has_dates: false,
            area_codes: None,
            numbers: 5,
            sha256: "0".repeat(64),
            fetched_at: at,
            uploaded_at: at,
            uploaded_by: None,
            warned,
            created_at: at,
        }
    }

    #[test]
    fn owners_are_told_three_days_before_and_when_it_is_too_old_and_of_each_once() {
        use Stage::{EndsSoon, Stale};
        for (name, warned, now, expected) in [
            ("us_dnc", 0, "2026-11-28T23:59:59Z", None),
            ("us_dnc", 0, "2026-11-29T00:00:00Z", Some(EndsSoon)),
            ("us_dnc", 1, "2026-12-01T23:59:59Z", None),
            ("us_dnc", 1, "2026-12-02T00:00:00Z", Some(Stale)),
            // Of what comes too late nothing is told but that it is too late.
            ("us_dnc", 0, "2026-12-05T00:00:00Z", Some(Stale)),
            ("us_dnc", 2, "2027-12-05T00:00:00Z", None),
            ("uk_tps", 1, "2026-11-28T23:59:59Z", None),
            ("uk_tps", 1, "2026-11-29T00:00:00Z", Some(Stale)),
            ("it_rpo", 1, "2026-11-15T23:59:59Z", None),
            ("it_rpo", 1, "2026-11-16T00:00:00Z", Some(Stale)),
            ("au_dncr", 1, "2026-11-30T23:59:59Z", None),
            ("au_dncr", 1, "2026-12-01T00:00:00Z", Some(Stale)),
            ("ours", 1, "2026-12-02T00:00:00Z", Some(Stale)),
        ] {
            let now = Moment::parse(now).unwrap();
            assert_eq!(news(&register(name, warned), now), expected, "{name} {now}");
        }
    }
}
