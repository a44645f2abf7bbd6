//! What an endpoint does, line by line; then what holds for every endpoint, whatever is changed.
use super::*;
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
        sealed_headers: "headers".into(), sealed_secret: "secret".into(), secret_hint: "abcd".into(),
        status: Status::Active, version: 1, created_at: at(0), updated_at: at(0), deleted_at: None,
    }
}

const STATES: [&str; 4] = ["active", "disabled", "deleted", "disabled and deleted"];

fn state(name: &str) -> Endpoint {
    let after = |endpoint, command| transition(endpoint, command, at(10)).unwrap().0;
    match name {
        "active" => active(),
        "disabled" => after(active(), set(Status::Disabled)),
        "deleted" => after(active(), Command::Delete),
        "disabled and deleted" => after(state("disabled"), Command::Delete),
        _ => panic!("no sample of {name}"),
    }
}

fn set(status: Status) -> Command {
    Command::Change(Change {
        status: Some(status),
        ..Change::default()
    })
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
    ];
    changes.map(Command::Change).to_vec()
}

#[derive(Clone, Copy, Debug)]
enum Expected {
    /// Another state, and the effects in their order.
    To(&'static str, &'static str),
    Unchanged,
    /// It is not there.
    NotFound,
}
use Expected::{NotFound, To, Unchanged};

/// (state, command, expected)
#[rustfmt::skip]
fn table() -> Vec<(&'static str, Command, Expected)> {
    vec![
        // active <-> disabled by its user; what was under way is cancelled before the lane hears of it
        ("active", set(Status::Disabled), To("disabled", "CancelDeliveries, EndpointChanged")),
        ("disabled", set(Status::Active), To("active", "EndpointChanged")),
        ("active", set(Status::Active), Unchanged),
        ("disabled", set(Status::Disabled), Unchanged),
        ("active", Command::Change(Change::default()), Unchanged),
        ("disabled", Command::Change(Change::default()), Unchanged),

        // deleted from either, for good
        ("active", Command::Delete, To("deleted", "CancelDeliveries, EndpointChanged")),
        ("disabled", Command::Delete, To("deleted", "CancelDeliveries, EndpointChanged")),
        ("deleted", Command::Delete, Unchanged),
        ("disabled and deleted", Command::Delete, Unchanged),
        ("deleted", set(Status::Active), NotFound),
        ("disabled and deleted", set(Status::Active), NotFound),

        // nothing waits for the time
        ("active", Command::Tick, Unchanged),
        ("disabled", Command::Tick, Unchanged),
        ("deleted", Command::Tick, Unchanged),
        ("disabled and deleted", Command::Tick, Unchanged),
    ]
}

fn describe(endpoint: &Endpoint) -> &'static str {
    match (endpoint.deleted_at, endpoint.status) {
        (Some(_), _) => "deleted",
        (None, Status::Active) => "active",
        (None, Status::Disabled) => "disabled",
    }
}

fn kinds(effects: &[Effect]) -> String {
    let kind = |effect: &Effect| format!("{effect:?}").split([' ', '(']).next().unwrap().to_owned();
    effects.iter().map(kind).collect::<Vec<_>>().join(", ")
}

fn check(endpoint: Endpoint, command: Command, expected: Expected) {
    let line = format!("{} + {command:?}", describe(&endpoint));
    match (transition(endpoint.clone(), command, at(50)), expected) {
        (Ok((after, effects)), To(state, wanted)) => {
            assert_ne!(after, endpoint, "{line}");
            assert_eq!((describe(&after), kinds(&effects).as_str()), (state, wanted), "{line}");
            assert_eq!(after.updated_at, at(50), "{line}");
        }
        (Ok(unchanged), Unchanged) => assert_eq!(unchanged, (endpoint, Vec::new()), "{line}"),
        (Err(Error::NotFound("webhook endpoint")), NotFound) => {}
        (outcome, expected) => panic!("{line}: {outcome:?} instead of {expected:?}"),
    }
}

#[test]
fn every_transition_of_the_specification() {
    for (name, command, expected) in table() {
        check(state(name), command, expected);
    }
    // The pairs that are left: each setting, in each state.
    for name in STATES {
        let expected = if state(name).deleted_at.is_none() {
            To(name, "EndpointChanged")
        } else {
            NotFound
        };
        for command in settings() {
            check(state(name), command, expected);
        }
    }
}

#[test]
fn a_description_can_be_taken_away() {
    let describe = |description| {
        Command::Change(Change {
            description: Some(description),
            ..Change::default()
        })
    };
    let (named, _) = transition(active(), describe(Some("billing".into())), at(1)).unwrap();
    assert_eq!(named.description.as_deref(), Some("billing"));
    let (unnamed, _) = transition(named, describe(None), at(2)).unwrap();
    assert_eq!(unnamed.description, None);
}

/// A change of any fields, each to what the sample has or to something else.
#[rustfmt::skip]
fn change([address, types, description, timeout, headers, most, status]: [Option<bool>; 7]) -> Change {
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
        status: of_two(status, [Status::Active, Status::Disabled]),
    }
}

fn commands() -> impl Strategy<Value = Vec<Command>> {
    let change = any::<[Option<bool>; 7]>().prop_map(|fields| Command::Change(change(fields)));
    let command = prop_oneof![8 => change, 1 => Just(Command::Delete), 1 => Just(Command::Tick)];
    prop::collection::vec(command, 1..15)
}

struct Move {
    before: Endpoint,
    command: Command,
    after: Endpoint,
    effects: Vec<Effect>,
}

/// All that happened to an endpoint; what is refused does not happen. A second lies between two commands.
fn life(commands: Vec<Command>) -> Vec<Move> {
    let (mut endpoint, mut moves) = (active(), Vec::new());
    for (seconds, command) in (1..).zip(commands) {
        if let Ok((after, effects)) = transition(endpoint.clone(), command.clone(), at(seconds)) {
            let before = std::mem::replace(&mut endpoint, after.clone());
            moves.push(Move {
                before,
                command,
                after,
                effects,
            });
        }
    }
    moves
}

fn receives(endpoint: &Endpoint) -> bool {
    describe(endpoint) == "active"
}

proptest! {
    #[test]
    fn deleted_is_final(commands in commands()) {
        for Move { before, after, .. } in life(commands) {
            prop_assert!(before.deleted_at.is_none() || before == after);
        }
    }

    #[test]
    fn a_second_time_is_no_change(commands in commands()) {
        for Move { command, after, .. } in life(commands) {
            prop_assert_eq!(transition(after.clone(), command, at(99)).unwrap(), (after, Vec::new()));
        }
    }

    #[test]
    fn a_tick_changes_nothing(commands in commands()) {
        for Move { after, .. } in life(commands) {
            prop_assert_eq!(next_deadline(&after), None);
            prop_assert_eq!(transition(after.clone(), Command::Tick, at(99)).unwrap(), (after, Vec::new()));
        }
    }

    #[test]
    fn its_lane_hears_of_every_change_and_of_nothing_else(commands in commands()) {
        for Move { before, after, effects, .. } in life(commands) {
            let heard = effects.last() == Some(&Effect::EndpointChanged(after.key()));
            prop_assert_eq!(heard, before != after);
            prop_assert_eq!(effects.is_empty(), before == after);
        }
    }

    #[test]
    fn open_deliveries_are_cancelled_when_it_stops_to_receive_or_is_deleted(commands in commands()) {
        for Move { before, after, effects, .. } in life(commands) {
            let cancels = effects.contains(&Effect::CancelDeliveries { endpoint: after.key() });
            let deleted = before.deleted_at != after.deleted_at;
            prop_assert_eq!(cancels, deleted || (receives(&before) && !receives(&after)));
        }
    }

    #[test]
    fn a_change_touches_what_it_names_and_nothing_else(before in commands(), fields in any::<[Option<bool>; 7]>()) {
        let mut befores = life(before).into_iter().map(|one| one.before);
        let before = befores.rfind(|endpoint| endpoint.deleted_at.is_none()).unwrap();
        let named = change(fields);
        let (after, _) = transition(before.clone(), Command::Change(named.clone()), at(99)).unwrap();
        let wanted = Endpoint {
            url: named.url.unwrap_or(before.url.clone()),
            event_types: named.event_types.unwrap_or(before.event_types.clone()),
            description: named.description.unwrap_or(before.description.clone()),
            timeout_ms: named.timeout_ms.unwrap_or(before.timeout_ms),
            sealed_headers: named.sealed_headers.unwrap_or(before.sealed_headers.clone()),
            max_concurrency: named.max_concurrency.unwrap_or(before.max_concurrency),
            status: named.status.unwrap_or(before.status),
            updated_at: after.updated_at,
            ..before.clone()
        };
        prop_assert_eq!(&after, &wanted);
        prop_assert_eq!(after.updated_at == at(99), after != before);
    }
}
