//! The do-not-call list: adding to it and taking off it, each in one transaction with its place among all commits.
use crate::{deps::Deps, writer::Commit};
use entities::{
    Error, Result,
    dnc::{self, Channels, DncChannel, Model, Source},
    ids::{DncId, Owned, SessionId, TenantId},
    values::{E164, Env},
};
use sea_orm::ConnectionTrait;

/// Whom not to reach.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Whom {
    Number(E164),
    /// In lower case.
    Email(String),
}

/// An entry that is asked for.
#[derive(Clone, Debug)]
pub struct Entry {
    pub id: DncId,
    pub whom: Whom,
    /// Empty: all that the number, or the address, can be reached by.
    pub channels: Vec<DncChannel>,
    pub reason: Option<String>,
    pub source: Source,
    pub session_id: Option<SessionId>,
}

/// Adds one; a second entry of one number or address adds its channels to the first. Answers the entry and whether it is new.
pub async fn add(deps: &Deps, owner: (TenantId, Env), entry: Entry) -> Result<(Model, bool)> {
    let now = deps.clock.now();
    deps.writer
        .run(move |db| {
            let entry = entry.clone();
            Box::pin(async move {
                let (row, outcome) = place(db, owner, entry, now).await?;
                let mut commit = Commit::default();
                if outcome != Outcome::Known {
                    commit.changes.dnc.push(row.clone());
                }
                Ok(((row, outcome == Outcome::New), commit))
            })
        })
        .await
}

/// What an entry is to the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    New,
    /// Known, and bars more than before, or for longer.
    Wider,
    Known,
}

/// The row of an entry. One that was added meanwhile makes its commit fail.
pub async fn place(
    db: &impl ConnectionTrait,
    (tenant_id, env): (TenantId, Env),
    entry: Entry,
    now: entities::values::Moment,
) -> Result<(Model, Outcome)> {
    let owner = (tenant_id, env);
    let known = match &entry.whom {
        Whom::Number(number) => dnc::of_number(db, owner, number).await?,
        Whom::Email(email) => dnc::of_email(db, owner, email).await?,
    };
    let channels = if entry.channels.is_empty() {
        match entry.whom {
            Whom::Number(_) => vec![DncChannel::Phone, DncChannel::Sms],
            Whom::Email(_) => vec![DncChannel::Email],
        }
    } else {
        entry.channels
    };
    if let Some(known) = known {
        return Ok(joined(
            known,
            Channels::of(channels),
            entry.source,
            entry.reason,
            entry.session_id,
        ));
    }
    let (phone_number, email) = match entry.whom {
        Whom::Number(number) => (Some(number), None),
        Whom::Email(email) => (None, Some(email)),
    };
    let row = Model {
        id: entry.id,
        tenant_id,
        env,
        phone_number,
        email,
        channels: Channels::of(channels),
        reason: entry.reason,
        source: entry.source,
        session_id: entry.session_id,
        added_seq: 0,
        removed_at: None,
        removed_reason: None,
        removed_seq: None,
        version: 1,
        created_at: now,
    };
    Ok((row, Outcome::New))
}

/// An entry that is there, with what another adds to it. A START lifts what a STOP has barred, and nothing else: so whoever
/// else bars that person makes the entry their own.
fn joined(
    known: Model,
    channels: Channels,
    source: Source,
    reason: Option<String>,
    session_id: Option<SessionId>,
) -> (Model, Outcome) {
    let all = Channels::of(known.channels.0.iter().copied().chain(channels.0).collect());
    let is_taken_over = known.source == Source::SmsStop && source != Source::SmsStop;
    if all == known.channels && !is_taken_over {
        return (known, Outcome::Known);
    }
    let mut wider = Model {
        channels: all,
        version: known.version + 1,
        ..known
    };
    if is_taken_over {
        (wider.source, wider.reason, wider.session_id) = (source, reason, session_id);
    }
    (wider, Outcome::Wider)
}

/// Takes one off the list; the row stays, with the reason.
pub async fn remove(deps: &Deps, key: Owned<DncId>, reason: String) -> Result<()> {
    let now = deps.clock.now();
    deps.writer
        .run(move |db| {
            let reason = reason.clone();
            Box::pin(async move {
                let row = dnc::load(db, key).await?;
                let mut commit = Commit::default();
                commit.changes.dnc.push(Model {
                    removed_at: Some(now),
                    removed_reason: Some(reason),
                    version: row.version + 1,
                    ..row
                });
                Ok(((), commit))
            })
        })
        .await
}

/// An address as it is compared, stored and written to: bare (`local@domain`), in lower case, its domain in ASCII (an
/// international one as punycode). Whoever is meant has one spelling, so that no other one passes the do-not-call list; what
/// has more (names, `<>`, quotes, comments, lists) is refused. Source: RFC 5321, 4.1.2 (`Dot-string`), and RFC 5890.
pub fn email(text: &str) -> Result<String> {
    bare(&text.trim().to_lowercase()).ok_or_else(|| Error::invalid("email", "is not an e-mail address"))
}

fn bare(text: &str) -> Option<String> {
    let (local, host) = text.split_once('@')?;
    let fits = local.len() <= 64
        && local
            .split('.')
            .all(|atom| !atom.is_empty() && atom.chars().all(is_of_atom));
    // What is not ASCII is judged, and made one spelling, below.
    let plain = |char: char| !char.is_ascii() || char.is_ascii_alphanumeric() || matches!(char, '-' | '.');
    if !fits || !host.chars().all(plain) {
        return None;
    }
    let url::Host::Domain(host) = url::Host::parse(host).ok()? else {
        return None;
    };
    let address = format!("{local}@{host}");
    let fits = address.len() <= 254 && host.contains('.') && host.split('.').all(is_label);
    let written: lettre::Address = address.parse().ok()?;
    (fits && written.to_string() == address).then_some(address)
}

fn is_of_atom(char: char) -> bool {
    char.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(char)
}

fn is_label(label: &str) -> bool {
    let plain = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    plain && (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use DncChannel::{Phone, Sms};

    #[test]
    fn who_bars_somebody_again_owns_the_entry_of_a_stop() {
        let known = |source, channels: &[DncChannel]| Model {
            id: DncId(uuid::Uuid::from_u128(1)),
            tenant_id: TenantId(uuid::Uuid::from_u128(2)),
            env: Env::Live,
            phone_number: Some("+12025550123".parse().unwrap()),
            email: None,
            channels: Channels::of(channels.to_vec()),
            reason: Some("first".into()),
            source,
            session_id: None,
            added_seq: 7,
            removed_at: None,
            removed_reason: None,
            removed_seq: None,
            version: 3,
            created_at: entities::values::Moment::from_millis(0),
        };
        let both = [Phone, Sms];
        let others = [Source::Manual, Source::Import, Source::OptOutVoice, Source::Unsubscribe];
        for source in others {
            let second = |known: Model, channels: &[DncChannel], source| {
                joined(
                    known,
                    Channels::of(channels.to_vec()),
                    source,
                    Some("second".into()),
                    None,
                )
            };
            // Whatever it bars, the entry is theirs: no START lifts it.
            for channels in [&both[..], &[Sms]] {
                let (row, outcome) = second(known(Source::SmsStop, &both), channels, source);
                assert_eq!((outcome, row.source, row.version), (Outcome::Wider, source, 4));
                assert_eq!(
                    (row.reason.as_deref(), row.channels),
                    (Some("second"), Channels::of(both.to_vec()))
                );
            }
            // A STOP takes nothing over, but bars more; and nobody takes over from anybody else.
            let (row, outcome) = second(known(source, &both), &both, Source::SmsStop);
            assert_eq!((outcome, row), (Outcome::Known, known(source, &both)));
            let (row, outcome) = second(known(source, &[Phone]), &both, Source::SmsStop);
            assert_eq!((outcome, row.source, row.version), (Outcome::Wider, source, 4));
            assert_eq!(
                (row.reason.as_deref(), row.channels),
                (Some("first"), Channels::of(both.to_vec()))
            );
            for other in others {
                assert_eq!(second(known(source, &both), &both, other).1, Outcome::Known);
            }
        }
        let again = joined(
            known(Source::SmsStop, &both),
            Channels::of(both.to_vec()),
            Source::SmsStop,
            None,
            None,
        );
        assert_eq!(again, (known(Source::SmsStop, &both), Outcome::Known));
    }

    #[test]
    fn one_spelling_of_one_address() {
        for (given, kept) in [
            ("ann@example.com", "ann@example.com"),
            (" Ann@Example.COM\n", "ann@example.com"),
            ("a.b+c_d-e@sub.example.co.uk", "a.b+c_d-e@sub.example.co.uk"),
            ("o'neil/x=1@example.com", "o'neil/x=1@example.com"),
            ("ann@BÜCHER.example", "ann@xn--bcher-kva.example"),
            ("ann@bu\u{308}cher.example", "ann@xn--bcher-kva.example"),
            ("ann@xn--bcher-kva.example", "ann@xn--bcher-kva.example"),
            ("ann@ｅxample。com", "ann@example.com"),
            ("ann@exam\u{ad}ple.com", "ann@example.com"),
        ] {
            let found = email(given).unwrap_or_else(|error| panic!("{given}: {error:?}"));
            assert_eq!(found, kept, "{given}");
            assert_eq!(email(&found).unwrap(), found, "and stays: {given}");
            assert_eq!(found.parse::<lettre::Address>().unwrap().to_string(), found);
            let mailbox: lettre::message::Mailbox = found.parse().unwrap();
            assert_eq!((mailbox.name, mailbox.email.to_string()), (None, found));
        }
    }

    #[test]
    fn what_is_more_than_a_bare_address_is_refused() {
        let long_local = format!("{}@example.com", "a".repeat(65));
        let long_label = format!("a@{}.com", "b".repeat(64));
        let long = format!("a@{}com", "bcdefgh.".repeat(32));
        for text in [
            "",
            "ann",
            "@example.com",
            "ann@",
            "ann@localhost",
            "<ann@example.com>",
            "x<ann@example.com>",
            "Ann <ann@example.com>",
            "\"ann\"@example.com",
            "\"a b\"@example.com",
            "ann(x)@example.com",
            "ann@example.com(x)",
            "ann@example.com,bob@example.com",
            "ann@example.com;bob@example.com",
            "ann@example.com, bob",
            "mailto:ann@example.com",
            "ann\\@example.com",
            "a nn@example.com",
            "ann @example.com",
            "ann@ example.com",
            "ann@exam\tple.com",
            "a\0nn@example.com",
            "a\u{7f}nn@example.com",
            "a\u{200b}nn@example.com",
            "ann@bob@example.com",
            ".ann@example.com",
            "ann.@example.com",
            "a..nn@example.com",
            "ann@.example.com",
            "ann@example..com",
            "ann@example.com.",
            "ann@-example.com",
            "ann@example-.com",
            "ann@exa_mple.com",
            "ann@ex%61mple.com",
            "ann@[127.0.0.1]",
            "ann@127.0.0.1",
            "ann@0x7f.1",
            "ann@xn--a.example",
            &long_local,
            &long_label,
            &long,
        ] {
            assert!(email(text).is_err(), "{text:?}");
        }
    }
}
