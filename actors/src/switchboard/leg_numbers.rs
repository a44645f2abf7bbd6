//! The numbers of a session's legs. With the session, Call-IDs, tags and branches follow from them: a call that a trunk has sent back
//! is placed again while its peer still remembers the first time, and has to be another call on the wire.
use uuid::Uuid;

/// Numbers of one placing: of the tries at its targets, then, from the middle on, of those who are called to take over.
const OF_ONE: u32 = 32;
const SECOND: u32 = OF_ONE / 2;
/// They are stored in 31 bits.
const PLACINGS: u32 = 1 << 26;

/// Before the first number of a placing. `chance`: another for each.
pub fn placing(chance: Uuid) -> u32 {
    (chance.as_u128() as u32 % PLACINGS) * OF_ONE
}

/// Of a placing's next try, after so many others.
pub fn of_try(placing: u32, tried: usize) -> u32 {
    let tried = u32::try_from(tried).unwrap_or(SECOND);
    placing + 1 + tried.min(SECOND - 1)
}

/// Of whoever is called to take over, in the call of that leg; `count`: from 1 on.
pub fn of_second(leg: i32, count: u32) -> u32 {
    let leg = u32::try_from(leg).unwrap_or_default();
    (leg / OF_ONE * OF_ONE + SECOND).saturating_add(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_legs_of_a_session_have_the_same_number() {
        let placings = [0, 1, 0x0190_0000_0000_7000_8000_0000_0000_0002, u128::MAX].map(Uuid::from_u128);
        let mut seen = HashSet::new();
        for chance in placings {
            let placing = placing(chance);
            for tried in 0..4 {
                assert!(seen.insert(of_try(placing, tried)), "{chance} {tried}");
            }
            let leg = i32::try_from(of_try(placing, 3)).unwrap();
            for count in 1..=8 {
                assert!(seen.insert(of_second(leg, count)), "{chance} {count}");
            }
        }
        assert!(
            seen.iter()
                .all(|number| i32::try_from(*number).is_ok_and(|number| number > 0))
        );
        // That of a call that has come in.
        assert_eq!(of_second(1, 1), 17);
    }
}
