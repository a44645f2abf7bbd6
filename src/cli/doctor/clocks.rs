//! The clocks of those who answer, beside this machine's.
use super::Findings;
use reqwest::header::HeaderMap;
use std::time::{Duration, SystemTime};

/// Two clocks may differ by so much.
const CLOCKS: Duration = Duration::from_secs(2);

/// What somebody's clock says of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Agrees,
    /// By so much.
    Differs(Duration),
}

/// To be asked as soon as the answer is there. `None`: it names no time, or that of an earlier answer.
pub(super) fn told(asked: SystemTime, headers: &HeaderMap) -> Option<Told> {
    // A cache's.
    if headers.contains_key("age") {
        return None;
    }
    let date = headers.get("date")?.to_str().ok()?;
    let date = chrono::DateTime::parse_from_rfc2822(date).ok()?;
    Some(match apart(asked, date.into()) {
        None => Told::Agrees,
        Some(apart) => Told::Differs(apart),
    })
}

/// By more than two seconds. An answer took its time, and its date has no fractions.
fn apart(asked: SystemTime, date: SystemTime) -> Option<Duration> {
    let now = SystemTime::now();
    let apart = match date.duration_since(now) {
        Ok(ahead) => ahead,
        Err(_) => asked
            .duration_since(date)
            .unwrap_or_default()
            .saturating_sub(Duration::from_secs(1)),
    };
    (apart > CLOCKS).then_some(apart)
}

/// One of them may be wrong; that most of them are, and this machine is right, is unlikely.
pub(super) fn say_of_providers(told: &[Told], found: &mut Findings) {
    let differing = told.iter().filter_map(|told| match told {
        Told::Agrees => None,
        Told::Differs(apart) => Some(*apart),
    });
    let differing: Vec<Duration> = differing.collect();
    let (all, wrong) = (told.len(), differing.len());
    match differing.iter().min() {
        Some(least) if wrong * 2 > all => found.warning(
            "clock",
            format!(
                "this machine's differs from those of providers ({wrong} of {all} that answered) by {} s or more",
                least.as_secs()
            ),
            "let NTP keep it: hours, signatures and links go by it",
        ),
        _ if all == 0 => {}
        _ => found.ok(
            "clock",
            format!("agrees with those of providers ({} of {all})", all - wrong),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::Verdict;

    #[test]
    fn clocks_that_agree_to_two_seconds_agree() {
        let now = SystemTime::now();
        let by = |seconds: u64| Duration::from_secs(seconds);
        assert_eq!(apart(now, now), None);
        assert_eq!(apart(now, now - by(2)), None);
        assert!(apart(now, now - by(60)).is_some_and(|apart| apart > by(55)));
        assert!(apart(now, now + by(60)).is_some_and(|apart| apart > by(55)));
    }

    #[test]
    fn only_an_answer_of_now_tells_the_time() {
        let mut headers = HeaderMap::new();
        let now = SystemTime::now();
        assert_eq!(told(now, &headers), None);
        headers.insert("date", "Tue, 15 Nov 1994 08:12:31 GMT".parse().unwrap());
        assert!(matches!(told(now, &headers), Some(Told::Differs(apart)) if apart.as_secs() > 900_000_000));
        headers.insert("age", "5".parse().unwrap());
        assert_eq!(told(now, &headers), None);
    }

    #[test]
    fn one_wrong_clock_among_several_is_not_ours() {
        let verdicts = |told: &[Told]| {
            let mut found = Findings::default();
            say_of_providers(told, &mut found);
            found.0.iter().map(|finding| finding.verdict).collect::<Vec<_>>()
        };
        let wrong = Told::Differs(Duration::from_secs(90));
        assert!(verdicts(&[]).is_empty());
        assert_eq!(verdicts(&[wrong]), [Verdict::Warning]);
        assert_eq!(verdicts(&[wrong, Told::Agrees]), [Verdict::Ok]);
        assert_eq!(verdicts(&[wrong, Told::Agrees, wrong]), [Verdict::Warning]);
        assert_eq!(verdicts(&[Told::Agrees]), [Verdict::Ok]);
    }
}
