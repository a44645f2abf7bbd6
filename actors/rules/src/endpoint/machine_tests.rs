//! What an endpoint does, line by line; then what holds for every endpoint, whatever happens to it.
use super::*;
use crate::event::Event;
use entities::{
    ids::{EndpointId, TenantId},
    values::Env,
};
use proptest::prelude::*;
use uuid::Uuid;

fn at(seconds: i64) -> Moment {
    Moment::from_millis(seconds * 1000)
}

fn url(path: &str) -> WebhookUrl {
    WebhookUrl::parse(&format!("https://receiver.test/{path}")).unwrap()
}

fn patterns(pattern: &str) -> Patterns {
    Patterns(vec![pattern.into()])
}

#[rustfmt::skip]
fn active() -> Endpoint {
    Endpoint {
        id: EndpointId(Uuid::from_u128(1)), tenant_id: TenantId(Uuid::from_u128(2)), env: Env::Test,
        url: url(""), event_types: patterns("*"), description: None, timeout_ms: 15_000, max_concurrency: 8,
        ordering: Ordering::Session, sealed_headers: "headers".into(),
        status: Status::Active, failure_streak: 0, suspended_at: None,
        sealed_secret: "secret".into(), secret_hint: "abcd".into(),
        sealed_previous_secret: None, previous_secret_expires_at: None,
        version: 1, created_at: at(0), updated_at: at(0), deleted_at: None,
    }
}

fn after(endpoint: Endpoint, command: Command, seconds: i64) -> Endpoint {
    transition(endpoint, command, at(seconds)).unwrap().0
}

#[rustfmt::skip]
const STATES: [&str; 8] = [
    "active", "failing", "suspended", "disabled", "overlapping", "suspended and overlapping",
    "deleted", "suspended and deleted",
];

/// One that is failing has failed nine times; an overlap lasts until 50.
fn state(name: &str) -> Endpoint {
    match name {
        "active" => active(),
        "failing" => (1..=9).fold(active(), |endpoint, second| after(endpoint, fail(500), second)),
        "suspended" => after(state("failing"), fail(500), 10),
        "disabled" => after(active(), set(Switch::Disabled), 10),
        "overlapping" => after(active(), rotate_for(40), 10),
        "suspended and overlapping" => after(state("suspended"), rotate_for(40), 10),
        "deleted" => after(active(), Command::Delete, 10),
        "suspended and deleted" => after(state("suspended"), Command::Delete, 10),
        _ => panic!("no sample of {name}"),
    }
}

fn set(status: Switch) -> Command {
    Command::Change(Change {
        status: Some(status),
        ..Change::default()
    })
}

/// To the secret "new".
fn rotate_for(overlap_seconds: u64) -> Command {
    rotate_to("new", overlap_seconds)
}

fn rotate_to(secret: &str, overlap_seconds: u64) -> Command {
    Command::RotateSecret {
        sealed_secret: secret.into(),
        secret_hint: secret.into(),
        overlap: Duration::from_secs(overlap_seconds),
    }
}

/// A live delivery has ended failed; the tenth in a row suspends.
fn fail(last_status: u16) -> Command {
    Command::CountFailure {
        last_status,
        suspend_after: 10,
    }
}

/// One change of every field but the status.
#[rustfmt::skip]
fn settings() -> Vec<Command> {
    let none = Change::default;
    let changes = [
        Change { url: Some(url("new")), ..none() },
        Change { event_types: Some(patterns("session.*")), ..none() },
        Change { description: Some(Some("billing".into())), ..none() },
        Change { timeout_ms: Some(1_000), ..none() },
        Change { sealed_headers: Some("others".into()), ..none() },
        Change { max_concurrency: Some(1), ..none() },
        Change { ordering: Some(Ordering::None), ..none() },
    ];
    changes.map(Command::Change).to_vec()
}

/// Every command; a new one makes the compiler ask for its place here.
#[rustfmt::skip]
fn commands() -> Vec<Command> {
    use Command::*;
    let next = |command: &Command| Some(match command {
        Tick => Change(Default::default()), Change(_) => Enable, Enable => rotate_for(40),
        RotateSecret { .. } => RevokePreviousSecret, RevokePreviousSecret => CountSuccess, CountSuccess => fail(500),
        CountFailure { .. } => Delete, Delete => return None,
    });
    std::iter::successors(Some(Tick), next).collect()
}

#[derive(Clone, Copy, Debug)]
enum Expected {
    /// Another state, or other settings of the same; and the effects in their order.
    To(&'static str, &'static str),
    /// Nothing but another streak, which nobody is told.
    Counts(i32),
    Unchanged,
    /// It is not there.
    NotFound,
}
use Expected::{Counts, NotFound, To, Unchanged};

/// `suspend`'s effects in the documented order: facts (what is open is held, the e-mail, the event), the hint.
const SUSPENDED: &str = "Hold, MailOwners, webhook.endpoint_disabled_notice, MailQueued, EndpointChanged";
const CHANGED: &str = "EndpointChanged";

/// (states, command, expected), at 50
type Line = (&'static [&'static str], Command, Expected);

#[rustfmt::skip]
fn table() -> Vec<Line> {
    use Command::{CountSuccess, Delete, Enable, RevokePreviousSecret, Tick};
    const DISABLED: &str = "CancelOpen, EndpointChanged";
    const DELETED: &str = "CancelAll, EndpointChanged";
    let nothing = || Command::Change(Change::default());
    vec![
        // active -> suspended: the tenth failure in a row, or a 410
        (&["active", "overlapping"], fail(500), Counts(1)),
        (&["active", "overlapping"], fail(0), Counts(1)),
        (&["failing"], fail(500), To("suspended", SUSPENDED)),
        (&["failing"], fail(0), To("suspended", SUSPENDED)),
        (&["active", "failing", "overlapping"], fail(410), To("suspended", SUSPENDED)),

        // what was under way when it stopped still counts, and tells nobody
        (&["suspended", "suspended and overlapping"], fail(500), Counts(11)),
        (&["suspended", "suspended and overlapping"], fail(410), Counts(11)),
        (&["disabled"], fail(500), Counts(1)),
        (&["disabled"], fail(410), Counts(1)),

        // a success resets the count and enables nothing
        (&["failing", "suspended", "suspended and overlapping"], CountSuccess, Counts(0)),
        (&["active", "disabled", "overlapping"], CountSuccess, Unchanged),

        // suspended, disabled -> active by its user
        (&["suspended", "suspended and overlapping", "disabled", "failing"], Enable, To("active", CHANGED)),
        (&["suspended", "suspended and overlapping", "disabled"], set(Switch::Active), To("active", CHANGED)),
        (&["active", "overlapping"], Enable, Unchanged),
        (&["active", "failing", "overlapping"], set(Switch::Active), Unchanged),

        // active, suspended -> disabled by its user; what is open is cancelled before the lane hears of it
        (&["active", "failing", "overlapping"], set(Switch::Disabled), To("disabled", DISABLED)),
        (&["suspended", "suspended and overlapping"], set(Switch::Disabled), To("disabled", DISABLED)),
        (&["disabled"], set(Switch::Disabled), Unchanged),
        (&["active", "failing", "overlapping", "disabled"], nothing(), Unchanged),
        (&["suspended", "suspended and overlapping"], nothing(), Unchanged),

        // a new secret, in any state
        (&["active", "failing", "overlapping"], rotate_for(40), To("active", CHANGED)),
        (&["active", "failing", "overlapping"], rotate_for(0), To("active", CHANGED)),
        (&["suspended", "suspended and overlapping"], rotate_for(40), To("suspended", CHANGED)),
        (&["disabled"], rotate_for(40), To("disabled", CHANGED)),

        // the overlap's end: by hand, or by the time; nothing else waits for the time
        (&["overlapping"], RevokePreviousSecret, To("active", CHANGED)),
        (&["overlapping"], Tick, To("active", CHANGED)),
        (&["suspended and overlapping"], RevokePreviousSecret, To("suspended", CHANGED)),
        (&["suspended and overlapping"], Tick, To("suspended", CHANGED)),
        (&["active", "failing", "suspended", "disabled"], RevokePreviousSecret, Unchanged),
        (&["active", "failing", "suspended", "disabled"], Tick, Unchanged),

        // deleted from any, for good; attempts under way outlive it
        (&["active", "failing", "overlapping"], Delete, To("deleted", DELETED)),
        (&["suspended", "suspended and overlapping", "disabled"], Delete, To("deleted", DELETED)),
        (&["deleted", "suspended and deleted"], Delete, Unchanged),
        (&["deleted", "suspended and deleted"], Tick, Unchanged),
        (&["deleted", "suspended and deleted"], CountSuccess, Unchanged),
        (&["deleted", "suspended and deleted"], fail(410), Unchanged),
    ]
}

fn describe(endpoint: &Endpoint) -> &'static str {
    match (endpoint.deleted_at, endpoint.status) {
        (Some(_), _) => "deleted",
        (None, Status::Active) => "active",
        (None, Status::Suspended) => "suspended",
        (None, Status::Disabled) => "disabled",
    }
}

fn kind(effect: &Effect) -> String {
    match effect {
        Effect::Fact(Fact::Emit(event)) => event.event_type().to_owned(),
        Effect::Fact(Fact::Deliveries { queue, .. }) => format!("{queue:?}"),
        other => format!("{other:?}").split([' ', '(']).next().unwrap().to_owned(),
    }
}

fn kinds(effects: &[Effect]) -> String {
    effects.iter().map(kind).collect::<Vec<_>>().join(", ")
}

fn check(endpoint: Endpoint, command: Command, expected: Expected) {
    let line = format!(
        "{}, streak {} + {command:?}",
        describe(&endpoint),
        endpoint.failure_streak
    );
    match (transition(endpoint.clone(), command, at(50)), expected) {
        (Ok((after, effects)), To(state, wanted)) => {
            assert_ne!(after, endpoint, "{line}");
            assert_eq!((describe(&after), kinds(&effects).as_str()), (state, wanted), "{line}");
            assert_eq!(after.updated_at, at(50), "{line}");
        }
        (Ok(counted), Counts(failure_streak)) => {
            assert_ne!(endpoint.failure_streak, failure_streak, "{line}");
            let wanted = Endpoint {
                failure_streak,
                ..endpoint
            };
            assert_eq!(counted, (wanted, Vec::new()), "{line}");
        }
        (Ok(unchanged), Unchanged) => assert_eq!(unchanged, (endpoint, Vec::new()), "{line}"),
        (Err(Error::NotFound("webhook endpoint")), NotFound) => {}
        (outcome, expected) => panic!("{line}: {outcome:?} instead of {expected:?}"),
    }
}

#[test]
fn every_transition_of_the_specification() {
    use std::mem::discriminant as of;
    for (names, command, expected) in table() {
        for name in names {
            check(state(name), command.clone(), expected);
        }
    }
    let in_table = |name: &str, command: &Command| {
        let mut lines = table().into_iter();
        lines.any(|(names, known, _)| names.contains(&name) && of(&known) == of(command))
    };
    for name in STATES {
        for command in commands().into_iter().filter(|command| !in_table(name, command)) {
            check(state(name), command, NotFound);
        }
    }
    // Each setting, in each state.
    for endpoint in STATES.map(state) {
        let expected = match describe(&endpoint) {
            "deleted" => NotFound,
            same => To(same, CHANGED),
        };
        for command in settings() {
            check(endpoint.clone(), command, expected);
        }
    }
}

fn notice(failure_streak: i32, last_status: i32, seconds: i64) -> WebhookEndpointDisabledNotice {
    WebhookEndpointDisabledNotice {
        endpoint_id: active().id,
        url: "https://receiver.test/".into(),
        disabled_at: at(seconds),
        failure_streak,
        last_status,
    }
}

/// What a suspension causes: this list, in this order.
fn suspension(notice: WebhookEndpointDisabledNotice) -> Vec<Effect> {
    vec![
        Effect::Fact(Fact::Deliveries {
            endpoint: active().key(),
            queue: Queue::Hold,
        }),
        Effect::Fact(Fact::MailOwners(notice::mail(&active(), &notice))),
        Effect::Fact(Fact::Emit(Event::WebhookEndpointDisabledNotice(notice))),
        Effect::Hint(Hint::MailQueued),
        Effect::Hint(Hint::EndpointChanged(active().key())),
    ]
}

#[test]
fn the_tenth_failure_in_a_row_suspends_and_says_so() {
    let mut endpoint = active();
    for nth in 1..=9 {
        let (counted, effects) = transition(endpoint, fail(500), at(nth)).unwrap();
        assert_eq!((counted.status, effects), (Status::Active, vec![]), "{nth}");
        endpoint = counted;
    }
    let (suspended, effects) = transition(endpoint, fail(503), at(10)).unwrap();
    assert_eq!(
        suspended,
        Endpoint {
            status: Status::Suspended,
            failure_streak: 10,
            suspended_at: Some(at(10)),
            updated_at: at(10),
            ..active()
        }
    );
    assert_eq!(effects, suspension(notice(10, 503, 10)));
}

#[test]
fn a_receiver_that_is_gone_is_suspended_at_once() {
    let (suspended, effects) = transition(active(), fail(410), at(7)).unwrap();
    assert_eq!((suspended.status, suspended.failure_streak), (Status::Suspended, 1));
    assert_eq!(effects, suspension(notice(1, 410, 7)));
}

#[test]
fn its_owners_read_which_one_since_when_and_why() {
    for (last_status, why) in [(0, "no HTTP answer came"), (410, "it is gone"), (503, "HTTP 503")] {
        let (_, effects) = transition(state("failing"), fail(last_status), at(60)).unwrap();
        let mail = effects.iter().find_map(|effect| match effect {
            Effect::Fact(Fact::MailOwners(mail)) => Some(mail),
            _ => None,
        });
        let mail = mail.unwrap();
        assert_eq!(mail.kind, "webhook.endpoint_disabled_notice");
        assert!(mail.subject.contains("receiver.test"), "{}", mail.subject);
        let id = active().id.to_string();
        for fact in [
            &id,
            "https://receiver.test/",
            "test",
            "1970-01-01T00:01:00.000Z",
            "10 deliveries",
            why,
        ] {
            assert!(mail.body.contains(fact), "{fact}: {}", mail.body);
        }
    }
}

#[test]
fn the_operator_says_how_many_failures_suspend() {
    let fail_of = |suspend_after| Command::CountFailure {
        last_status: 500,
        suspend_after,
    };
    for (name, suspend_after, expected) in [
        ("active", 1, "suspended"),
        ("active", 2, "active"),
        ("failing", 11, "active"),
        ("failing", 3, "suspended"), // it was more before
    ] {
        let counted = after(state(name), fail_of(suspend_after), 50);
        assert_eq!(describe(&counted), expected, "{name}, {suspend_after}");
    }
}

#[test]
fn a_success_resets_the_count_and_never_enables() {
    let counted = after(state("failing"), Command::CountSuccess, 10);
    let nine_more = (11..=19).fold(counted, |endpoint, second| after(endpoint, fail(500), second));
    assert_eq!((nine_more.status, nine_more.failure_streak), (Status::Active, 9));

    let suspended = after(state("suspended"), Command::CountSuccess, 20);
    assert_eq!((suspended.status, suspended.failure_streak), (Status::Suspended, 0));
    assert_eq!(suspended.suspended_at, Some(at(10)));
}

#[test]
fn an_enabled_endpoint_starts_with_a_clean_record() {
    for enable in [Command::Enable, set(Switch::Active)] {
        let enabled = after(state("suspended"), enable.clone(), 20);
        assert_eq!(
            enabled,
            Endpoint {
                updated_at: at(20),
                ..active()
            }
        );
        let nine = (21..=29).fold(enabled, |endpoint, second| after(endpoint, fail(500), second));
        assert_eq!(nine.status, Status::Active);
        let (_, effects) = transition(nine, fail(500), at(30)).unwrap();
        assert_eq!(
            effects,
            suspension(notice(10, 500, 30)),
            "a second suspension is told like the first"
        );

        let disabled = after(after(state("failing"), set(Switch::Disabled), 10), enable, 20);
        assert_eq!((disabled.status, disabled.failure_streak), (Status::Active, 0));
    }
}

#[test]
fn settings_and_status_change_together_and_are_told_once() {
    let change = |status| {
        Command::Change(Change {
            url: Some(url("new")),
            status: Some(status),
            ..Change::default()
        })
    };
    let (enabled, effects) = transition(state("suspended"), change(Switch::Active), at(20)).unwrap();
    assert_eq!((describe(&enabled), enabled.url), ("active", url("new")));
    assert_eq!(kinds(&effects), CHANGED);
    let (disabled, effects) = transition(active(), change(Switch::Disabled), at(20)).unwrap();
    assert_eq!((describe(&disabled), disabled.url), ("disabled", url("new")));
    assert_eq!(kinds(&effects), "CancelOpen, EndpointChanged");
}

#[test]
fn a_description_can_be_taken_away() {
    let describe = |description| {
        Command::Change(Change {
            description: Some(description),
            ..Change::default()
        })
    };
    let named = after(active(), describe(Some("billing".into())), 1);
    assert_eq!(named.description.as_deref(), Some("billing"));
    assert_eq!(after(named, describe(None), 2).description, None);
}

/// Its secret, the one that signs along, and until when.
fn secrets(endpoint: &Endpoint) -> (&str, Option<&str>, Option<Moment>) {
    let previous = endpoint.sealed_previous_secret.as_deref();
    (&endpoint.sealed_secret, previous, endpoint.previous_secret_expires_at)
}

#[test]
fn a_rotation_lets_the_secret_before_sign_along_for_the_overlap() {
    let rotated = after(active(), rotate_to("2nd", 86_400), 10);
    assert_eq!(secrets(&rotated), ("2nd", Some("secret"), Some(at(86_410))));
    assert_eq!(rotated.secret_hint, "2nd");
    assert_eq!(next_deadline(&rotated), Some(at(86_410)));

    let at_once = after(active(), rotate_to("2nd", 0), 10);
    assert_eq!(secrets(&at_once), ("2nd", None, None));
    assert_eq!(next_deadline(&at_once), None);
}

#[test]
fn a_rotation_during_an_overlap_drops_the_oldest_secret() {
    let rotated = after(active(), rotate_to("2nd", 100), 10);
    let longer = after(rotated.clone(), rotate_to("3rd", 200), 20);
    assert_eq!(secrets(&longer), ("3rd", Some("2nd"), Some(at(220))));
    let shorter = after(rotated.clone(), rotate_to("3rd", 5), 20);
    assert_eq!(secrets(&shorter), ("3rd", Some("2nd"), Some(at(25))));
    let at_once = after(rotated, rotate_to("3rd", 0), 20);
    assert_eq!(secrets(&at_once), ("3rd", None, None));
}

#[test]
fn the_previous_secret_is_forgotten_at_its_time_and_not_before() {
    let rotated = after(active(), rotate_to("2nd", 40), 10);
    for early in [at(10), at(49), at(50).plus_millis(-1)] {
        let ticked = transition(rotated.clone(), Command::Tick, early).unwrap();
        assert_eq!(ticked, (rotated.clone(), vec![]), "{early}");
    }
    for late in [at(50), at(50_000)] {
        let (forgotten, effects) = transition(rotated.clone(), Command::Tick, late).unwrap();
        assert_eq!(secrets(&forgotten), ("2nd", None, None), "{late}");
        assert_eq!(effects, [Effect::Hint(Hint::EndpointChanged(active().key()))], "{late}");
        assert_eq!(next_deadline(&forgotten), None, "{late}");
    }
}

#[test]
fn the_previous_secret_can_be_revoked_before_its_time() {
    let revoked = after(state("overlapping"), Command::RevokePreviousSecret, 11);
    assert_eq!(secrets(&revoked), ("new", None, None));
    assert_eq!(next_deadline(&revoked), None);
}

#[test]
fn nothing_waits_for_a_deleted_endpoint() {
    let deleted = after(state("overlapping"), Command::Delete, 20);
    assert_eq!(next_deadline(&deleted), None);
}

/// A change of any fields, each to what the sample has or to something else.
#[rustfmt::skip]
fn change([address, types, description, timeout, headers, most, ordering, status]: [Option<bool>; 8]) -> Change {
    fn of_two<T>(which: Option<bool>, [first, second]: [T; 2]) -> Option<T> {
        which.map(|is_first| if is_first { first } else { second })
    }
    Change {
        url: of_two(address, [url(""), url("new")]),
        event_types: of_two(types, [patterns("*"), patterns("session.*")]),
        description: of_two(description, [None, Some("billing".into())]),
        timeout_ms: of_two(timeout, [15_000, 1_000]),
        sealed_headers: of_two(headers, ["headers".into(), "others".into()]),
        max_concurrency: of_two(most, [8, 1]),
        ordering: of_two(ordering, [Ordering::Session, Ordering::None]),
        status: of_two(status, [Switch::Active, Switch::Disabled]),
    }
}

/// Some of each, failures and successes the most; three failures or so suspend.
fn history() -> impl Strategy<Value = Vec<Command>> {
    let last_status = prop_oneof![8 => Just(500_u16), 2 => Just(0), 1 => Just(410)];
    let failed = (last_status, 2..5_i32).prop_map(|(last_status, suspend_after)| Command::CountFailure {
        last_status,
        suspend_after,
    });
    let secret = prop::sample::select(vec!["a", "b", "c"]);
    let rotated = (secret, 0..6_u64).prop_map(|(secret, overlap_seconds)| rotate_to(secret, overlap_seconds));
    let command = prop_oneof![
        12 => failed,
        4 => Just(Command::CountSuccess),
        3 => any::<[Option<bool>; 8]>().prop_map(|fields| Command::Change(change(fields))),
        2 => prop::sample::select(vec![set(Switch::Active), set(Switch::Disabled)]),
        3 => Just(Command::Enable),
        3 => rotated,
        1 => Just(Command::RevokePreviousSecret),
        3 => Just(Command::Tick),
    ];
    // Most are never deleted.
    let deleted = prop::option::weighted(0.3, (any::<prop::sample::Index>(), Just(Command::Delete)));
    (prop::collection::vec(command, 1..40), deleted).prop_map(|(mut commands, deleted)| {
        if let Some((place, delete)) = deleted {
            commands.insert(place.index(commands.len()), delete);
        }
        commands
    })
}

#[derive(Debug)]
struct Move {
    before: Endpoint,
    command: Command,
    now: Moment,
    after: Endpoint,
    effects: Vec<Effect>,
}

impl Move {
    fn enters(&self, status: Status) -> bool {
        self.before.status != status && self.after.status == status
    }
    fn causes(&self, wanted: &str) -> usize {
        self.effects.iter().filter(|effect| kind(effect) == wanted).count()
    }
}

/// All that happened to an endpoint; what is refused does not happen. A second lies between two commands.
fn life(commands: Vec<Command>) -> Vec<Move> {
    let (mut endpoint, mut moves) = (active(), Vec::new());
    for (seconds, command) in (1..).zip(commands) {
        let now = at(seconds);
        if let Ok((after, effects)) = transition(endpoint.clone(), command.clone(), now) {
            let before = std::mem::replace(&mut endpoint, after.clone());
            moves.push(Move {
                before,
                command,
                now,
                after,
                effects,
            });
        }
    }
    moves
}

fn lives() -> impl Strategy<Value = Vec<Move>> {
    history().prop_map(life)
}

proptest! {
    #[test]
    fn deleted_is_final(commands in history(), more in history()) {
        let deleted = after(life(commands).pop().map_or(active(), |last| last.after), Command::Delete, 50);
        for command in more {
            match transition(deleted.clone(), command, at(99)) {
                Ok(unchanged) => prop_assert_eq!(unchanged, (deleted.clone(), vec![])),
                Err(error) => prop_assert!(matches!(error, Error::NotFound("webhook endpoint"))),
            }
        }
    }

    #[test]
    fn suspended_if_and_only_if_suspended_at(moves in lives()) {
        for one in moves {
            prop_assert_eq!(one.after.status == Status::Suspended, one.after.suspended_at.is_some());
            if one.enters(Status::Suspended) {
                prop_assert_eq!(one.after.suspended_at, Some(one.now));
            }
        }
    }

    #[test]
    fn one_notice_and_one_mail_per_suspension(moves in lives()) {
        let suspensions = moves.iter().filter(|one| one.enters(Status::Suspended)).count();
        let told: usize = moves.iter().map(|one| one.causes("webhook.endpoint_disabled_notice")).sum();
        prop_assert_eq!(told, suspensions);
        for one in &moves {
            let [told, mailed] = ["webhook.endpoint_disabled_notice", "MailOwners"].map(|wanted| one.causes(wanted));
            prop_assert_eq!([told, mailed], [usize::from(one.enters(Status::Suspended)); 2]);
        }
    }

    #[test]
    fn only_a_failure_suspends_and_only_its_user_ends_it(moves in lives()) {
        for one in moves {
            if one.enters(Status::Suspended) {
                let failed = matches!(one.command, Command::CountFailure { .. });
                prop_assert!(failed && one.before.status == Status::Active);
            }
            if one.enters(Status::Active) || one.enters(Status::Disabled) {
                prop_assert!(matches!(one.command, Command::Enable | Command::Change(_)));
            }
        }
    }

    #[test]
    fn the_streak_is_the_failures_since_the_last_success_or_enabling(moves in lives()) {
        let mut streak = 0;
        for one in moves.iter().filter(|one| one.before.deleted_at.is_none()) {
            match one.command {
                Command::CountFailure { .. } => streak += 1,
                Command::CountSuccess | Command::Enable => streak = 0,
                _ if one.enters(Status::Active) => streak = 0,
                _ => {}
            }
            prop_assert_eq!(one.after.failure_streak, streak);
        }
    }

    #[test]
    fn an_active_endpoint_has_fewer_failures_than_suspend_it(moves in lives()) {
        for one in moves {
            let Command::CountFailure { suspend_after, last_status } = one.command else { continue };
            if describe(&one.after) == "active" {
                prop_assert!(one.after.failure_streak < suspend_after && last_status != 410);
            }
        }
    }

    #[test]
    fn a_previous_secret_if_and_only_if_its_expiry(moves in lives()) {
        for Move { after, .. } in moves {
            let (_, previous, expiry) = secrets(&after);
            prop_assert_eq!(previous.is_some(), expiry.is_some());
        }
    }

    #[test]
    fn the_previous_secret_is_the_one_before_the_last_rotation(moves in lives()) {
        let mut previous: Option<(String, Moment)> = None;
        for one in moves.iter().filter(|one| one.before.deleted_at.is_none()) {
            match &one.command {
                Command::RotateSecret { overlap, .. } => {
                    let until = one.now.plus(*overlap);
                    previous = (until > one.now).then(|| (one.before.sealed_secret.clone(), until));
                }
                Command::RevokePreviousSecret => previous = None,
                Command::Tick => previous = previous.filter(|(_, until)| one.now < *until),
                _ => {}
            }
            let stored = one.after.sealed_previous_secret.clone().zip(one.after.previous_secret_expires_at);
            prop_assert_eq!(stored, previous.clone());
        }
    }

    #[test]
    fn two_ticks_equal_one(moves in lives(), seconds in 0..99_i64) {
        for Move { after, .. } in moves {
            let (once, _) = transition(after, Command::Tick, at(seconds)).unwrap();
            prop_assert_eq!(transition(once.clone(), Command::Tick, at(seconds)).unwrap(), (once, vec![]));
        }
    }

    #[test]
    fn a_tick_at_the_next_deadline_always_changes_something_and_one_before_nothing(moves in lives()) {
        for Move { after, .. } in moves {
            let until = next_deadline(&after);
            let early = until.map_or(at(999), |until| until.plus_millis(-1));
            prop_assert_eq!(transition(after.clone(), Command::Tick, early).unwrap(), (after.clone(), vec![]));
            if let Some(until) = until {
                prop_assert_ne!(transition(after.clone(), Command::Tick, until).unwrap().0, after);
            }
        }
    }

    #[test]
    fn a_second_time_is_no_change(moves in lives()) {
        for Move { command, now, after, .. } in moves {
            // Each failure counts, and each rotation makes another secret.
            if !matches!(command, Command::CountFailure { .. } | Command::RotateSecret { .. }) {
                prop_assert_eq!(transition(after.clone(), command, now).unwrap(), (after, vec![]));
            }
        }
    }

    #[test]
    fn its_lane_hears_of_every_change_but_the_streak_and_of_nothing_else(moves in lives()) {
        for Move { before, after, now, effects, .. } in moves {
            let counted = Endpoint { failure_streak: after.failure_streak, ..before };
            let heard = effects.last() == Some(&Effect::Hint(Hint::EndpointChanged(after.key())));
            prop_assert_eq!(heard, counted != after);
            prop_assert_eq!(effects.is_empty(), counted == after);
            prop_assert!(counted == after || after.updated_at == now);
        }
    }

    #[test]
    fn what_it_has_not_received_follows_its_state(moves in lives()) {
        for one in moves {
            let deleted = one.before.deleted_at != one.after.deleted_at;
            prop_assert_eq!(one.causes("Hold"), usize::from(one.enters(Status::Suspended)));
            prop_assert_eq!(one.causes("CancelOpen"), usize::from(one.enters(Status::Disabled)));
            prop_assert_eq!(one.causes("CancelAll"), usize::from(deleted));
        }
    }

    #[test]
    fn a_change_touches_what_it_names_and_nothing_else(moves in lives(), fields in any::<[Option<bool>; 8]>()) {
        let named = change(fields);
        for Move { before, .. } in moves.into_iter().filter(|one| one.before.deleted_at.is_none()) {
            let (after, _) = transition(before.clone(), Command::Change(named.clone()), at(99)).unwrap();
            let status = match named.status {
                Some(Switch::Active) => Status::Active,
                Some(Switch::Disabled) => Status::Disabled,
                None => before.status,
            };
            let enabled = before.status != Status::Active && status == Status::Active;
            let wanted = Endpoint {
                url: named.url.clone().unwrap_or(before.url.clone()),
                event_types: named.event_types.clone().unwrap_or(before.event_types.clone()),
                description: named.description.clone().unwrap_or(before.description.clone()),
                timeout_ms: named.timeout_ms.unwrap_or(before.timeout_ms),
                sealed_headers: named.sealed_headers.clone().unwrap_or(before.sealed_headers.clone()),
                max_concurrency: named.max_concurrency.unwrap_or(before.max_concurrency),
                ordering: named.ordering.unwrap_or(before.ordering),
                status,
                failure_streak: if enabled { 0 } else { before.failure_streak },
                suspended_at: before.suspended_at.filter(|_| status == Status::Suspended),
                updated_at: after.updated_at,
                ..before.clone()
            };
            prop_assert_eq!(&after, &wanted);
            prop_assert_eq!(after.updated_at == at(99), after != before);
        }
    }
}
