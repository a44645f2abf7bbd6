//! Which part of a received webhook is wrong. Pure.
use super::{
    cause,
    check::{Check, Verdict},
    excerpt,
    request::Request,
    secret,
};
use adapters::signature;
use base64::{Engine, engine::general_purpose::STANDARD};

const ID: &str = "X-Webhook-Id";
const EVENT: &str = "X-Webhook-Event";
const TIMESTAMP: &str = "X-Webhook-Timestamp";
const SIGNATURE: &str = "X-Webhook-Signature";
/// Said when nothing is wrong with the signature's form; the next line says why.
pub const MISMATCH: &str = "does not match";

/// Why a request is refused: the first fault that explains something. `None`: it verifies.
pub fn reason(checks: &[Check]) -> Option<&Check> {
    let mut faults = checks.iter().filter(|check| check.verdict == Verdict::Wrong);
    faults.find(|check| check.message != MISMATCH)
}

/// Every part in order. `now` in Unix seconds, `tolerance` in seconds.
pub fn diagnose(request: &Request, secret: &str, now: i64, tolerance: u64) -> Vec<Check> {
    let mut checks = vec![headers(request)];
    let flaw = secret::flaw(secret);
    checks.push(match &flaw {
        Some(flaw) => Check::wrong("secret", flaw.message.clone()),
        None => Check::fine("secret", ""),
    });
    // With what was meant, so that one fault does not hide the next.
    let meant = flaw.as_ref().map_or(secret, |flaw| flaw.meant.as_str());
    let mut times = Vec::new();
    if let Some(text) = request.header(TIMESTAMP) {
        let (check, signed) = timestamp(text, now, tolerance);
        checks.push(check);
        times = signed;
    }
    if let Some(given) = request.header(SIGNATURE) {
        let mended = "with the secret mended: the fault is on this side";
        let matching = Check::fine("signature", if flaw.is_some() { mended } else { "" });
        checks.extend(signed(request, given, meant, &times, matching));
    }
    checks.extend(labels(request));
    checks
}

fn headers(request: &Request) -> Check {
    let missing = |names: [&'static str; 2]| {
        let absent = names.into_iter().filter(|name| request.header(name).is_none());
        absent.collect::<Vec<_>>().join(" and ")
    };
    let (needed, others) = (missing([TIMESTAMP, SIGNATURE]), missing([ID, EVENT]));
    if !needed.is_empty() {
        let standard = match request.header("webhook-signature") {
            Some(_) => "; webhook-signature is there, but it is for Standard Webhooks libraries",
            None => "",
        };
        Check::wrong("headers", format!("lack {needed}{standard}"))
    } else if !others.is_empty() {
        Check::warning(
            "headers",
            format!("without {others}, which the signature does not need"),
        )
    } else {
        Check::fine("headers", "")
    }
}

/// Also answers the numbers that the signature may be over.
fn timestamp(text: &str, now: i64, tolerance: u64) -> (Check, Vec<i64>) {
    let wrong = |message: String| Check::wrong("timestamp", message);
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(time) = text.parse::<i64>().ok().filter(|_| digits) else {
        let message = format!("is {}, which is not a number of Unix seconds", excerpt(text));
        return (wrong(message), Vec::new());
    };
    // Seconds have ten digits until the year 2286.
    let (unit, divisor) = match text.len() {
        0..12 => ("seconds", 1),
        12..15 => ("milliseconds", 1_000),
        15..18 => ("microseconds", 1_000_000),
        _ => ("nanoseconds", 1_000_000_000),
    };
    if divisor > 1 {
        return (
            wrong(format!("is in {unit}; Unix seconds are sent")),
            vec![time, time / divisor],
        );
    }
    let (apart, way) = (
        now.abs_diff(time),
        if time > now { "ahead of this clock" } else { "old" },
    );
    let check = if apart > tolerance {
        wrong(format!(
            "is {} {way}, {} more than the tolerance of {tolerance}: a clock is wrong, or it is an old recording",
            span(apart),
            apart - tolerance
        ))
    } else {
        Check::fine("timestamp", format!("{} {way}", span(apart)))
    };
    (check, vec![time])
}

fn span(seconds: u64) -> String {
    match seconds {
        1 => "1 second".into(),
        0..120 => format!("{seconds} seconds"),
        120..7_200 => format!("{seconds} seconds ({} minutes)", seconds / 60),
        7_200..172_800 => format!("{seconds} seconds ({} hours)", seconds / 3_600),
        _ => format!("{seconds} seconds ({} days)", seconds / 86_400),
    }
}

/// The signature and, where it does not match, what may have caused it.
fn signed(request: &Request, given: &str, secret: &str, times: &[i64], matching: Check) -> Vec<Check> {
    let wrong = |message: String| Check::wrong("signature", message);
    let (flaw, canonical) = form(given);
    let Some(canonical) = canonical else {
        return vec![wrong(flaw.unwrap_or_default())];
    };
    if times.is_empty() {
        let unknown = Check::warning(
            "signature",
            "cannot be checked without the timestamp, which is signed too",
        );
        return vec![flaw.map_or(unknown, wrong)];
    }
    let matches = times
        .iter()
        .any(|time| signature::sign(secret, *time, &request.body) == canonical);
    match (matches, flaw) {
        (true, None) => vec![matching, body(request)],
        (true, Some(flaw)) => vec![wrong(format!("{flaw}; its value is right")), body(request)],
        (false, flaw) => {
            let cause = cause::find(request, &canonical, secret, times);
            vec![wrong(flaw.unwrap_or_else(|| MISMATCH.into())), cause]
        }
    }
}

/// What is wrong with the form, and the form it should have where the value can be read.
fn form(given: &str) -> (Option<String>, Option<String>) {
    let lower = given.to_ascii_lowercase();
    let value = match lower.strip_prefix("sha256=") {
        Some(value) => &given[given.len() - value.len()..],
        None => given.strip_prefix("v1,").unwrap_or(given),
    };
    let is_hex = value.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex && value.len() == 64 {
        let canonical = format!("sha256={}", value.to_ascii_lowercase());
        let flaw = if canonical == given {
            None
        } else if !lower.starts_with("sha256=") {
            Some("does not start with `sha256=`".to_owned())
        } else {
            Some("has upper-case letters; `sha256=` and lower-case hex are sent".to_owned())
        };
        return (flaw, Some(canonical));
    }
    let is_base64 = |value: &str| STANDARD.decode(value).ok().filter(|bytes| bytes.len() == 32);
    if let Some(bytes) = is_base64(value) {
        let flaw = "is base64; X-Webhook-Signature is `sha256=` and hex; only webhook-signature is base64";
        let canonical = format!("sha256={}", runtime::keyring::hex(&bytes));
        return (Some(flaw.into()), Some(canonical));
    }
    let flaw = match value.len() {
        0 => "is empty".to_owned(),
        length if is_hex => format!("has {length} hex digits instead of 64"),
        _ => format!("is {}, which is not `sha256=` and 64 hex digits", excerpt(given)),
    };
    (Some(flaw), None)
}

/// The body of a request whose signature matches.
fn body(request: &Request) -> Check {
    match cause::length(request) {
        Some(odd) => Check::warning("body", format!("{odd}; the signature matches all the same")),
        None => Check::fine("body", format!("{} bytes", request.body.len())),
    }
}

/// Id and type stand in the headers too, where nothing protects them.
fn labels(request: &Request) -> Vec<Check> {
    let Ok(body) = serde_json::from_slice::<serde_json::Value>(&request.body) else {
        return Vec::new();
    };
    let differs = |(part, header, field): (&'static str, &str, &str)| {
        let (outside, inside) = (request.header(header)?, body[field].as_str()?);
        let message = format!(
            "{header} is {}, the body has {}; headers are not signed: trust the body",
            excerpt(outside),
            excerpt(inside)
        );
        (outside != inside).then(|| Check::warning(part, message))
    };
    [("id", ID, "id"), ("type", EVENT, "type")]
        .into_iter()
        .filter_map(differs)
        .collect()
}
