//! The service's heartbeat: a row that says until when its calls were carried for certain. One that a crash has cut off ends
//! there and is charged to there: nobody pays for the time in which the service was down.
use crate::leases::Since;
use entities::{
    Result, boxed,
    db::Db,
    meta::{self, HEARTBEAT},
    values::Moment,
};
use runtime::clock::Clock;

/// What is known of the process before. At a start, before the first beat of this process.
#[boxed]
pub async fn begin(db: &Db, clock: &Clock) -> Result<Since> {
    let last = meta::get(&db.read, HEARTBEAT).await?;
    Ok(Since {
        last_seen: last.and_then(|text| Moment::parse(&text).ok()),
        taken_at: clock.now(),
    })
}

/// When a call that began then, and that nobody carries, was last known to be carried.
pub fn last_seen(since: Since, call_began: Moment, now: Moment) -> Moment {
    if call_began >= since.taken_at {
        now
    } else {
        // One that began after the last beat has lasted for some seconds at most.
        since.last_seen.unwrap_or(call_began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_the_process_before_was_carried_until_its_last_beat() {
        let at = |seconds| Moment::from_millis(0).plus_seconds(seconds);
        let beat = |last: Option<i64>| Since {
            last_seen: last.map(at),
            taken_at: at(100),
        };
        for (last, call_began, seen) in [
            (Some(60), 20, 60),
            // It began after the last beat: the call's end is never before its beginning.
            (Some(60), 61, 60),
            (None, 61, 61),
            // This process's own.
            (Some(60), 100, 140),
            (None, 110, 140),
        ] {
            assert_eq!(
                last_seen(beat(last), at(call_began), at(140)),
                at(seen),
                "{last:?}, {call_began}"
            );
        }
    }
}
