//! Which names are asked for, and what is said of what came of it.
use super::*;
use futures_util::future::BoxFuture;
use std::io;

fn settings(flags: &[(&str, &str)]) -> Settings {
    let flags: Vec<_> = flags.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Settings::load(None, &flags).unwrap()
}

#[test]
fn only_names_of_settings_are_asked_for_and_each_once() {
    // Providers are made with their clients.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    assert!(named(&settings(&[])).is_empty());
    let settings = settings(&[
        ("base_url", "https://Calls.example.com"),
        ("smtp_url", "smtp://user:password@Mail.example.com"),
        ("mail_from", "a@example.com"),
        ("chat_url", "https://api.example.com/v1"),
        ("transcription_url", "https://api.example.com/v1"),
        ("reassigned_url", "http://[::1]:9000/query"),
        (
            "register_urls",
            "uk_tps=https://registers.example.com/tps, uk_ctps=https://registers.example.com/ctps, au_dncr=http://127.0.0.1:9001",
        ),
        ("otlp_endpoint", "http://127.0.0.1:4318"),
        ("recordings", "s3://calls/test"),
        ("recordings_s3_region", "eu-central-1"),
        ("sip_bind", "127.0.0.1:5060"),
        ("sip_address", "calls.example.com"),
    ]);
    let expected = [
        ("calls.example.com", vec!["base_url", "sip_address"]),
        ("mail.example.com", vec!["smtp_url"]),
        ("api.example.com", vec!["chat_url", "transcription_url"]),
        ("registers.example.com", vec!["register_urls"]),
        ("s3.eu-central-1.amazonaws.com", vec!["recordings"]),
    ];
    let expected = expected.map(|(host, settings)| Named {
        host: host.to_owned(),
        settings,
    });
    assert_eq!(named(&settings), expected);
}

#[test]
fn an_address_is_no_name() {
    for address in ["", "127.0.0.1", "::1", "[2001:db8::1]"] {
        assert_eq!(name(address), None, "{address}");
    }
    assert_eq!(name("Localhost").as_deref(), Some("localhost"));
}

fn looked(answer: Answer, took_ms: u64, settings: &'static str) -> Looked {
    Looked {
        what: format!("DNS, {settings}"),
        host: "calls.example.com".into(),
        took: Duration::from_millis(took_ms),
        answer,
        without: match settings {
            "otlp_endpoint" => Verdict::Warning,
            _ => Verdict::Failure,
        },
        for_everybody: settings == "base_url",
    }
}

fn at(addresses: &[&str]) -> Answer {
    Answer::At(addresses.iter().map(|address| address.parse().unwrap()).collect())
}

/// Verdicts, and of what.
fn said(looked: &[Looked]) -> Vec<(Verdict, String)> {
    let mut found = Findings::default();
    say("DNS", ADVICE, looked, &mut found);
    for finding in &found.0 {
        assert_eq!(finding.advice.is_none(), finding.verdict == Verdict::Ok, "{finding:?}");
    }
    found
        .0
        .into_iter()
        .map(|finding| (finding.verdict, finding.what))
        .collect()
}

#[test]
fn a_name_of_ours_that_leads_to_no_public_address_is_doubtful() {
    use Verdict::{Ok, Warning};
    let ok = || (Ok, "DNS".to_owned());
    for (addresses, setting, is_doubtful) in [
        (&["10.0.0.5"][..], "base_url", true),
        (&["127.0.1.1", "::1"], "base_url", true),
        (&["::ffff:10.0.0.5"], "base_url", true),
        (&["169.254.169.254"], "base_url", true),
        (&["10.0.0.5", "8.8.8.8"], "base_url", false),
        (&["2606:4700::1111"], "base_url", false),
        // The operator's own model, or mail server.
        (&["10.0.0.5"], "chat_url", false),
    ] {
        let mut expected = vec![ok()];
        expected.extend(is_doubtful.then(|| (Warning, format!("DNS, {setting}"))));
        assert_eq!(said(&[looked(at(addresses), 5, setting)]), expected, "{addresses:?}");
    }
}

#[test]
fn what_is_slow_unknown_or_unanswered_is_told_of_each_name() {
    use Verdict::{Failure, Ok, Warning};
    let named = |verdict, setting: &str| (verdict, format!("DNS, {setting}"));
    let nobody = || Answer::Nobody("x".into());
    let nowhere = || Answer::Nowhere("x".into(), "y");
    assert!(said(&[]).is_empty());
    let mixed = [
        looked(at(&["8.8.8.8"]), 5, "chat_url"),
        looked(at(&["8.8.8.8"]), 5_004, "speech_url"),
        looked(nowhere(), 5, "smtp_url"),
        looked(nowhere(), 5, "otlp_endpoint"),
        looked(nobody(), 8_000, "stripe_url"),
    ];
    let expected = [
        (Ok, "DNS".to_owned()),
        named(Warning, "speech_url"),
        named(Failure, "smtp_url"),
        named(Warning, "otlp_endpoint"),
        named(Failure, "stripe_url"),
    ];
    assert_eq!(said(&mixed), expected);
    // One thing is wrong, not as many as there are names.
    let silent = |setting| looked(nobody(), 8_000, setting);
    let all = [silent("otlp_endpoint"), silent("smtp_url"), silent("chat_url")];
    assert_eq!(said(&all), [(Failure, "DNS".to_owned())]);
    assert_eq!(said(&all[..1]), [(Warning, "DNS".to_owned())]);
}

/// As resolvers fail.
struct Failing(&'static str);
impl Lookup for Failing {
    fn lookup(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let said = format!("failed to lookup address information: {}", self.0);
        Box::pin(future::ready(Err(io::Error::other(said))))
    }
}

#[actix_web::test]
async fn no_answer_is_told_from_an_answer_that_there_is_no_such_name() {
    let ask = async |lookup: &dyn Lookup, setting: &'static str| {
        let host = "localhost".to_owned();
        let settings = vec![setting];
        ask(lookup, Named { host, settings }, false).await
    };
    let known = ask(&SystemLookup, "base_url").await;
    assert!(matches!(&known.answer, Answer::At(addresses) if addresses.iter().all(IpAddr::is_loopback)));
    assert!(known.for_everybody && known.without == Verdict::Failure);
    let unknown = ask(&Failing("Name or service not known"), "otlp_endpoint").await;
    assert!(matches!(&unknown.answer, Answer::Nowhere(why, _) if why == "no name server knows localhost"));
    assert!(!unknown.for_everybody && unknown.without == Verdict::Warning);
    let unanswered = ask(&Failing("Temporary failure in name resolution"), "chat_url").await;
    assert!(matches!(unanswered.answer, Answer::Nobody(_)));
}
