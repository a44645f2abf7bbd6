//! How long the certificate is good that the base URL has shown.
use super::Findings;
use chrono::{DateTime, Utc};
use std::time::{Duration, SystemTime};
use x509_cert::{Certificate, der::Decode};

const DAY: u64 = 24 * 3600;
/// Whoever renews it by itself has done so by then.
const SOON: u64 = 14 * DAY;

/// When it ends; `None`: there was no TLS, or what was shown cannot be read.
pub(super) fn ends(answer: &reqwest::Response) -> Option<SystemTime> {
    let shown = answer.extensions().get::<reqwest::tls::TlsInfo>()?;
    ends_of(shown.peer_certificate()?)
}

fn ends_of(der: &[u8]) -> Option<SystemTime> {
    let certificate = Certificate::from_der(der).ok()?;
    let ends = certificate.tbs_certificate().validity().not_after.to_unix_duration();
    SystemTime::UNIX_EPOCH.checked_add(ends)
}

/// One that has ended already is refused with the connection.
pub(super) fn say(ends: SystemTime, now: SystemTime, found: &mut Findings) {
    let left = ends.duration_since(now).unwrap_or(Duration::ZERO).as_secs();
    let when = match left / DAY {
        0 => "in less than a day".to_owned(),
        1 => "in a day".to_owned(),
        days => format!("in {days} days"),
    };
    let day = DateTime::<Utc>::from(ends).date_naive();
    let said = format!("its certificate expires on {day} ({when})");
    match left < SOON {
        true => found.warning(
            "base URL",
            said,
            "renew it, and see why the proxy has not done so by itself",
        ),
        false => found.ok("base URL", said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::Verdict;

    #[test]
    fn a_certificate_that_ends_soon_is_told() {
        let mut params = rcgen::CertificateParams::new(vec!["calls.example.com".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2031, 3, 15);
        let key = rcgen::KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        let ends = ends_of(made.der()).unwrap();
        // 2031-03-15T00:00:00Z.
        assert_eq!(ends, SystemTime::UNIX_EPOCH + Duration::from_secs(1_931_299_200));
        let told = |days: u64| {
            let mut found = Findings::default();
            say(ends, ends - Duration::from_secs(days * DAY), &mut found);
            let told = found.0.remove(0);
            (told.verdict, told.said)
        };
        let expires = |when: &str| format!("its certificate expires on 2031-03-15 ({when})");
        assert_eq!(told(14), (Verdict::Ok, expires("in 14 days")));
        assert_eq!(told(13), (Verdict::Warning, expires("in 13 days")));
        assert_eq!(told(1), (Verdict::Warning, expires("in a day")));
        assert_eq!(told(0), (Verdict::Warning, expires("in less than a day")));
        assert_eq!(ends_of(b"no certificate"), None);
    }
}
