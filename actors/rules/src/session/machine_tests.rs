//! What a session does, line by line. Beside it: what its ends tell, what happens in a talk, what its row says, and what holds
//! for every session, whatever happens to it.
#[path = "machine_tests/abandoned.rs"]
mod abandoned;
#[path = "machine_tests/closings.rs"]
mod closings;
#[path = "machine_tests/disclosed.rs"]
mod disclosed;
#[path = "machine_tests/ends.rs"]
mod ends;
#[path = "machine_tests/life.rs"]
mod life;
#[path = "machine_tests/mended.rs"]
mod mended;
#[path = "machine_tests/rows.rs"]
mod rows;
#[path = "machine_tests/talks.rs"]
mod talks;

use super::*;
use entities::{
    agent::Channels,
    ids::{AgentId, CampaignId, ContactId, FunctionId, NumberId, RoomId, TenantId},
    law::DisclosureKind,
    session::{Direction, Options, Phase as StoredPhase, Recorded},
    transcript::{Invocation, InvocationStatus, Speaker},
    values::{Env, Metadata, Variables},
};
use serde_json::json;
use uuid::Uuid;

fn at(seconds: i64) -> Moment {
    Moment::from_millis(seconds * 1000)
}

/// A campaign's call: waits for 300 s, rings for 30 s, talks for at most 600 s and hangs up after 30 s of silence; a minute
/// costs 10 cents. It is not recorded, has nothing to classify, and hangs up on machines.
#[rustfmt::skip]
fn call() -> Row {
    Row {
        id: SessionId(Uuid::from_u128(1)), tenant_id: TenantId(Uuid::from_u128(2)), env: Env::Test,
        version: 1, created_at: at(0), status: Status::Queued, phase: StoredPhase::Queued, direction: Direction::Outbound,
        end_reason: None, ended_by: None, answered_by: None,
        agent_id: AgentId(Uuid::from_u128(3)), agent_version: 1, voice_id: None,
        from_number: None, to_number: Some(number("+15002345670")), email: None, first_name: Some("Ada".into()), last_name: None,
        campaign_id: Some(CampaignId(Uuid::from_u128(4))), contact_id: Some(ContactId(Uuid::from_u128(5))), room_id: None, trunk_id: None, api_key_id: None, attempt: 2,
        client_reference_id: None, variables: Variables::default(), metadata: Metadata::default(),
        ring_timeout_seconds: 30, max_duration_seconds: 600, scheduled_at: None, queue_ttl_seconds: 300,
        timezone: None, price_cents_per_minute: 10, hold_cents: Cents(0), queued_until: None, dialed_at: None, picked_up_at: None, started_at: None, bridged_at: None,
        ended_at: None, duration_seconds: 0, latency: None, quality: None, first_sound_ms: None, abandoned: None, actual_cost_cents: Cents(0), error_code: None, error_message: None, sip_code: None, q850: None,
        consent: Consent::NotRequired, options: Options { silence_seconds: 30, ..Options::default() },
        disposition_code: None, disposition_note: None, disposition_by: None, recording_id: None, opted_out_at: None,
        purge_after: None, deleted_at: None,
    }
}

/// The sample call, handled differently.
fn call_with(change: impl FnOnce(&mut Options)) -> Row {
    let mut row = call();
    change(&mut row.options);
    row
}

fn recorded(consent: ConsentMode) -> Row {
    call_with(|options| {
        options.recording = Some(Recorded {
            channels: Channels::Dual,
            consent,
            retention_days: None,
            transfers: false,
        });
    })
}

fn for_machines(action: VoicemailAction) -> Row {
    call_with(|options| options.voicemail.action = action)
}

/// A campaign's call whose agent has dispositions to choose from.
fn to_classify() -> Row {
    call_with(|options| options.has_dispositions = true)
}

fn api_call() -> Row {
    Row {
        campaign_id: None,
        contact_id: None,
        attempt: 1,
        ..call()
    }
}

fn call_at(seconds: i64) -> Row {
    Row {
        scheduled_at: Some(at(seconds)),
        ..api_call()
    }
}

/// To one of the tenant's numbers.
fn incoming() -> Row {
    let mut row = api_call();
    row.direction = Direction::Inbound;
    row.from_number = Some(number("+14155550123"));
    row.options.number_id = Some(NumberId(Uuid::from_u128(6)));
    row
}

/// Held in a room.
fn in_a_room() -> Row {
    Row {
        to_number: None,
        first_name: None,
        direction: Direction::Inbound,
        room_id: Some(RoomId(Uuid::from_u128(9))),
        ..api_call()
    }
}

fn number(text: &str) -> E164 {
    text.parse().unwrap()
}

fn url() -> Arc<str> {
    "https://callboard.test".into()
}

fn recording_id() -> RecordingId {
    RecordingId(Uuid::from_u128(7))
}

fn after(session: Session, command: Command, seconds: i64) -> Session {
    transition(session, command, at(seconds)).unwrap().0
}

/// Dialled at 0, and answered at 10.
fn answered(row: Row, by: AnsweredBy) -> Session {
    after(Session::dialed(row, url(), at(0)).0, answer_by(by), 10)
}

fn talk_of(row: Row) -> Session {
    answered(row, AnsweredBy::Human)
}

/// Waits for its time until 200; waits for a slot until 300; or is dialled at 0, given up at 30, answered at 10 and ended by
/// 610. Who is silent is hung up on 30 s after the last word, which in most samples is the answer itself. How the ended one
/// went is still to be found out.
#[rustfmt::skip]
const STATES: [&str; 26] = [
    "scheduled", "put off", "awaiting", "joining", "in a room", "queued", "dialing", "ringing", "picked up", "to leave a message", "to talk to a machine", "incoming",
    "answered", "talking", "asked", "granted", "recorded", "with a machine", "taken in",
    "leaving a message", "transferring", "bridged", "opting out", "opting out, recorded", "refusing",
    "ended",
];

fn state(name: &str) -> Session {
    match name {
        "scheduled" => Session::queued(call_at(200), url(), at(0)).0,
        "put off" => after(state("queued"), postpone_to(400), 20),
        "awaiting" => Session::awaiting(in_a_room(), url()).0,
        "joining" => after(state("awaiting"), dispatch_at(0), 0),
        "in a room" => after(state("joining"), answer_by(AnsweredBy::Human), 10),
        "queued" => Session::queued(call(), url(), at(0)).0,
        "dialing" => Session::dialed(call(), url(), at(0)).0,
        "ringing" => after(state("dialing"), Command::Ring, 5),
        "picked up" => after(state("dialing"), Command::PickUp, 6),
        "to leave a message" => Session::dialed(for_machines(VoicemailAction::LeaveMessage), url(), at(0)).0,
        "to talk to a machine" => Session::dialed(for_machines(VoicemailAction::Continue), url(), at(0)).0,
        "incoming" => Session::received(incoming(), url(), at(0)).0,
        "answered" => talk_of(call()),
        "talking" => after(state("answered"), said(), 12),
        "asked" => talk_of(recorded(ConsentMode::Verbal)),
        "granted" => after(state("asked"), Command::Consent(true), 15),
        "recorded" => talk_of(recorded(ConsentMode::Notice)),
        "with a machine" => answered(for_machines(VoicemailAction::Continue), AnsweredBy::Voicemail),
        "taken in" => after(state("incoming"), answer_by(AnsweredBy::Human), 10),
        "leaving a message" => answered(for_machines(VoicemailAction::LeaveMessage), AnsweredBy::Voicemail),
        "transferring" => after(state("answered"), transfer_to_sales(), 15),
        "bridged" => after(state("transferring"), bridge_to_sales(), 15),
        "opting out" => after(state("answered"), opt_out(), 15),
        "opting out, recorded" => after(state("recorded"), opt_out(), 15),
        "refusing" => after(state("asked"), Command::Consent(false), 15),
        "ended" => after(
            after(talk_of(to_classify()), said(), 12),
            Command::HangUp(EndedBy::Agent),
            20,
        ),
        _ => panic!("no sample of {name}"),
    }
}

fn requeue_of(seconds: i64) -> Command {
    Command::Requeue { dialed_at: at(seconds) }
}
fn dispatch_at(seconds: i64) -> Command {
    Command::Dispatch {
        at: at(seconds),
        hold: Cents(100),
    }
}
/// Nothing is set aside for the samples.
fn extend_by(cents: i64) -> Command {
    let (held, by) = (Cents(0), Cents(cents));
    Command::Extend { held, by }
}
/// Its room has expired.
fn expire() -> Command {
    Command::Abandon(Abandoned {
        status: Status::NoAnswer,
        reason: EndReason::RoomExpired,
        by: EndedBy::Api,
        why: None,
    })
}
fn postpone_to(seconds: i64) -> Command {
    Command::Postpone { until: at(seconds) }
}
fn answer_by(by: AnsweredBy) -> Command {
    let recording_id = recording_id();
    Command::Answer { by, recording_id }
}
/// The other side says something that takes a second.
fn said() -> Command {
    utter(Speaker::User, "Hello?", 1_000)
}
fn utter(role: Speaker, content: &str, ms: u64) -> Command {
    let (content, audio) = (content.to_owned(), None);
    Command::Utter(Utterance {
        role,
        is_own: false,
        content,
        ms,
        ago_ms: None,
        is_open: false,
        audio,
    })
}
/// Words whose sound was still being made when they began.
fn spoken(place: usize, ms: u64, audio: Option<bytes::Bytes>) -> Command {
    Command::Spoken {
        place,
        ms,
        audio,
        content: None,
    }
}
/// More of them is known.
fn saying(place: usize) -> Command {
    let content = "Hello, this is Mia.".to_owned();
    Command::Saying { place, content }
}
fn interrupt() -> Command {
    Command::Interrupt {
        said: "Hel".into(),
        played_ms: 300,
    }
}
/// What was said first is known now.
fn understood() -> Command {
    let words = "Hello, who is there?".to_owned();
    Command::Understood { place: 0, words }
}
/// The other side speaks, for so long at most.
fn user_speaking(until: i64) -> Command {
    let until = at(until);
    Command::UserSpeaking { until }
}
/// The recording goes at 700 000.
fn opt_out() -> Command {
    let purge_after = at(700_000);
    Command::OptOut { purge_after }
}
/// One of the user's functions, awaited until then.
fn look_up(until: i64) -> Command {
    let (id, name, arguments) = ("call_1".to_owned(), "look_up".to_owned(), json!({}));
    let call = ToolCall { id, name, arguments };
    let until = at(until);
    Command::Call { call, own: true, until }
}
fn found(timed_out: bool) -> Command {
    let status = if timed_out {
        InvocationStatus::TimedOut
    } else {
        InvocationStatus::Succeeded
    };
    Command::Return(Return {
        call_id: "call_1".into(),
        output: "null".into(),
        invocation: Some(Invocation {
            name: "look_up".into(),
            status,
            duration_ms: 5_000,
        }),
        timed_out: timed_out.then(|| TimedOut {
            function_id: FunctionId(Uuid::from_u128(8)),
            name: "look_up".into(),
            timeout_ms: 5_000,
        }),
    })
}
fn transfer_to_sales() -> Command {
    let to = number("+14155550199");
    Command::Transfer { to }
}
/// Sales has picked up.
fn bridge_to_sales() -> Command {
    let to = number("+14155550199");
    Command::Bridge { to }
}
/// By the sandbox, behind which no carrier's answer stands.
fn refuse(refusal: Refusal) -> Command {
    Command::Refuse { refusal, sip: None }
}
/// By a carrier.
fn refuse_with(refusal: Refusal, (code, reason, q850): (u16, &str, Option<u8>)) -> Command {
    let reason = reason.to_owned();
    let sip = Some(SipAnswer {
        code,
        reason,
        q850,
        ..SipAnswer::default()
    });
    Command::Refuse { refusal, sip }
}
fn signed() -> Command {
    Command::NoteAttestation(Attestation::A)
}
/// The service has said what it is, from second 11 on.
fn disclosed_until(seconds: i64) -> Command {
    Command::Disclosed(super::Disclosed {
        kinds: vec![DisclosureKind::Ai, DisclosureKind::Name],
        language: "en-US".into(),
        text_sha256: "ab".repeat(32),
        began: at(11),
        ended: at(seconds),
        is_cut_off: false,
    })
}
fn consent_asked() -> Command {
    let basis = ConsentMode::Verbal;
    Command::ConsentAsked { basis }
}
fn first_sound() -> Command {
    Command::FirstSound { ms: 740, greeted: true }
}
fn left_alone() -> Command {
    Command::LeftAlone { played: true }
}
fn heard_well() -> Command {
    Command::Quality(Quality::of((1, 400), 12, Some(80)))
}
fn nobody_there() -> Command {
    Command::TransferFailed { why: "busy".into() }
}
fn dispose(code: &str) -> Command {
    let (code, note) = (code.to_owned(), "so they said".to_owned());
    Command::Dispose { code, note }
}
fn note_answer(key: &str) -> Command {
    Command::NoteAnswer(answer_to(key, 3))
}
fn answer_to(key: &str, value: i64) -> Answered {
    let (key, question) = (key.to_owned(), "How many?".to_owned());
    let (value, evidence_turn) = (value.into(), Some(0));
    Answered {
        key,
        question,
        value,
        evidence_turn,
    }
}
fn press() -> Command {
    let (kind, detail) = ("keys_pressed", "1#".to_owned());
    Command::Note { kind, detail }
}
/// The first of an answer was sent so many milliseconds after the other side had ended.
fn answered_after(packet: i64) -> Command {
    let marks = [Some(600), None, None, None, None, Some(packet)];
    Command::Measure(TurnMarks::of(marks).unwrap())
}
fn fault() -> Command {
    let (reason, why) = (EndReason::ProviderError, "the model did not answer".to_owned());
    Command::Break { reason, why }
}
fn label() -> Command {
    Command::Label(Metadata([("crm".to_owned(), "42".to_owned())].into()))
}
/// Lost, and carried until then.
fn lose_at(seconds: i64) -> Command {
    let last_seen = at(seconds);
    Command::Lose { last_seen }
}
fn evaluated(code: &str, by: Evaluator) -> Command {
    let (code, note) = (code.to_owned(), String::new());
    let disposition = Some(Disposition { code, note });
    Command::Evaluate(Evaluated {
        disposition,
        by,
        ..nothing_found()
    })
}
fn nothing_found() -> Evaluated {
    Evaluated {
        disposition: None,
        answers: Vec::new(),
        by: Evaluator::Llm,
        model: None,
        job: None,
    }
}

/// Every command; a new one makes the compiler ask for its place here.
#[rustfmt::skip]
fn commands() -> Vec<Command> {
    use AnsweredBy::*;
    use Command::*;
    use Refusal::*;
    use crate::session::command::RejectReason::*;
    let next = |command: &Command| Some(match command {
        Tick => dispatch_at(15), Dispatch { .. } => extend_by(5), Extend { .. } => postpone_to(400), Postpone { .. } => Release, Release => Reject(OnDnc),
        Reject(OnDnc) => Reject(AgainstTheLaw), Reject(AgainstTheLaw) => Reject(NotVerified), Reject(NotVerified) => Reject(CapReached), Reject(CapReached) => Reject(OutsideHours), Reject(OutsideHours) => Reject(CampaignOver),
        Reject(CampaignOver) => Reject(OutOfReach), Reject(OutOfReach) => Reject(NoTrunk), Reject(NoTrunk) => Reject(MayHaveRun), Reject(MayHaveRun) => Ring, Ring => PickUp, PickUp => answer_by(Human), Answer { by: Human, .. } => answer_by(Voicemail),
        Answer { by: Voicemail, .. } => answer_by(Ivr), Answer { by: Ivr, .. } => answer_by(Fax), Answer { by: Fax, .. } => answer_by(Unknown),
        Answer { by: Unknown, .. } => refuse(Busy),
        Refuse { refusal, .. } => match refusal {
            Busy => refuse(NoAnswer), NoAnswer => refuse(Declined), Declined => refuse(Blocked("blocked".into())),
            Blocked(_) => refuse(InvalidNumber("not assigned".into())), InvalidNumber(_) => refuse(Rejected("trunk refused".into())),
            Rejected(_) => refuse(Unreachable("no carrier".into())), Unreachable(_) => refuse(Congested), Congested => refuse(NotPlaced), NotPlaced => requeue_of(0),
        }, Requeue { .. } => said(), Utter(_) => saying(0), Saying { .. } => spoken(0, 900, None), Spoken { .. } => interrupt(), Interrupt { .. } => understood(),
        Understood { .. } => user_speaking(61), UserSpeaking { .. } => Consent(true),
        Consent(true) => Consent(false),
        Consent(false) => opt_out(), OptOut { .. } => look_up(25), Call { .. } => found(false),
        Return(super::Return { timed_out: None, .. }) => found(true), Return(_) => transfer_to_sales(),
        Transfer { .. } => Transferred, Transferred => bridge_to_sales(), Bridge { .. } => BridgeEnded, BridgeEnded => nobody_there(), TransferFailed { .. } => dispose("sold"),
        Dispose { .. } => note_answer("seats"), NoteAnswer(_) => disclosed_until(14), Disclosed(_) => consent_asked(), ConsentAsked { .. } => press(), Note { .. } => signed(), NoteAttestation(_) => Hold(true), Hold(true) => Hold(false), Hold(false) => answered_after(700),
        Measure(_) => first_sound(), FirstSound { .. } => KeptWaiting, KeptWaiting => left_alone(), LeftAlone { .. } => Doubt, Doubt => heard_well(), Quality(_) => MessageLeft, MessageLeft => fault(),
        Break { .. } => HangUp(EndedBy::Caller), HangUp(_) => End, End => Shutdown, Shutdown => expire(),
        Abandon(_) => lose_at(20), Lose { .. } => evaluated("sold", Evaluator::Llm), Evaluate(_) => label(), Label(_) => Delete, Delete => return None,
    });
    std::iter::successors(Some(Tick), next).collect()
}

#[derive(Clone, Copy, Debug)]
enum Expected {
    /// Another state, described, and the effects in their order.
    To(&'static str, &'static str),
    /// Changed, and described as before, with these effects.
    Same(&'static str),
    /// It is over; how it ends, a test of its own tells.
    Over,
    Unchanged,
    Refused,
}
use Expected::{Over, Refused, Same, To, Unchanged};

/// Of each state its samples.
const DIALED: &[&str] = &[
    "dialing",
    "ringing",
    "picked up",
    "to leave a message",
    "to talk to a machine",
    "incoming",
];
#[rustfmt::skip]
const TALKED: &[&str] = &["answered", "talking", "asked", "granted", "recorded", "with a machine", "taken in"];
const LEAVING: &[&str] = &["opting out", "opting out, recorded", "refusing"];
#[rustfmt::skip]
const CONVERSING: &[&str] = &[
    "answered", "talking", "asked", "granted", "recorded", "with a machine", "taken in",
    "leaving a message", "transferring", "bridged", "opting out", "opting out, recorded", "refusing",
];
/// In a talk, and nobody has said anything.
#[rustfmt::skip]
const SPEECHLESS: &[&str] = &[
    "answered", "asked", "granted", "recorded", "with a machine", "taken in", "in a room",
    "leaving a message", "transferring", "bridged", "opting out", "opting out, recorded", "refusing",
];
/// In a talk, but its course is another.
#[rustfmt::skip]
const NO_MORE_TALKED: &[&str] =
    &["leaving a message", "transferring", "bridged", "opting out", "opting out, recorded", "refusing"];
/// What the other side wants is not listened to any more.
#[rustfmt::skip]
const NOT_HEARD: &[&str] = &["leaving a message", "bridged", "opting out", "opting out, recorded", "refusing"];
/// Not even what was said before.
#[rustfmt::skip]
const DEAF: &[&str] = &["leaving a message", "opting out", "opting out, recorded", "refusing"];
#[rustfmt::skip]
const NOT_TRANSFERRING: &[&str] = &[
    "answered", "talking", "asked", "granted", "recorded", "with a machine", "taken in",
    "leaving a message", "bridged", "opting out", "opting out, recorded", "refusing",
];
#[rustfmt::skip]
const NOT_BRIDGED: &[&str] = &[
    "answered", "talking", "asked", "granted", "recorded", "with a machine", "taken in",
    "leaving a message", "transferring", "opting out", "opting out, recorded", "refusing",
];
#[rustfmt::skip]
const NOT_LEAVING_A_MESSAGE: &[&str] = &[
    "answered", "talking", "asked", "granted", "recorded", "with a machine", "taken in",
    "transferring", "bridged", "opting out", "opting out, recorded", "refusing",
];

/// An end's effects in the documented order: facts (the call's count, what was said, how it ended, what it cost, the contact's
/// move, what was recorded), then work, then hints. The slot's hint comes from the queue too: the dispatcher may have given it one at
/// that very moment.
const UNDIALLED: &str = "session.failed, CloseAttempt, FinishAttempt, SlotFreed, ContactWaits, OverheardEnd";
const UNANSWERED: &str =
    "session.failed, CountCall, CloseAttempt, FinishAttempt, HangUp, SlotFreed, ContactWaits, OverheardEnd";
const NOTED_UNANSWERED: &str = "SaveTranscript, session.failed, CountCall, CloseAttempt, FinishAttempt, HangUp, SlotFreed, ContactWaits, OverheardEnd";
const SILENT: &str = "session.ended, Settle, CountCall, CloseAttempt, FinishAttempt, HangUp, SlotFreed, OverheardEnd";
const SPOKEN: &str =
    "SaveTranscript, session.ended, Settle, CountCall, CloseAttempt, FinishAttempt, HangUp, SlotFreed, OverheardEnd";
const RECORDED: &str = "session.ended, Settle, CountCall, CloseAttempt, FinishAttempt, SaveRecording, KeepSounds, HangUp, SlotFreed, OverheardEnd";
const NOTED_AND_RECORDED: &str = "SaveTranscript, session.ended, Settle, CountCall, CloseAttempt, FinishAttempt, SaveRecording, KeepSounds, HangUp, SlotFreed, OverheardEnd";
const UNHEARD: &str =
    "session.failed, Settle, CountCall, CloseAttempt, FinishAttempt, HangUp, SlotFreed, ContactWaits, OverheardEnd";
const CUT_OFF: &str = "SaveTranscript, session.failed, Settle, CountCall, CloseAttempt, FinishAttempt, HangUp, SlotFreed, ContactWaits, OverheardEnd";
/// A call that no contact asked for.
const FORGOTTEN: &str = "session.failed, CloseAttempt, SlotFreed, OverheardEnd";
const INCOMING_MISSED: &str =
    "CountInbound, InboundCounted, session.failed, CountCall, HangUp, SlotFreed, OverheardEnd";
/// Whoever places calls hears that there is no room before it hears of a free slot and a waiting call.
const SENT_BACK: &str = "HangUp, TrunkCongested, SlotFreed, SessionQueued";
const NOT_PLACED: &str = "HangUp, NoRoom, SlotFreed, SessionQueued";
const REQUEUED: &str = "HangUp, SlotFreed, SessionQueued";
const ROOM_MISSED: &str = "session.failed, Settle, RoomEnded, HangUp, SlotFreed, OverheardEnd";
const OPTED_OUT: &str = "AddToDnc, session.opt_out_detected";
const OPTED_OUT_AND_CALLED_OFF: &str = "AddToDnc, session.opt_out_detected, TransferEnded";
const OPTED_OUT_RECORDED: &str = "AddToDnc, session.opt_out_detected, session.opt_out_recording_pending_purge";

/// (states, command, at which second, expected)
type Line = (&'static [&'static str], Command, i64, Expected);

#[rustfmt::skip]
fn table() -> Vec<Line> {
    let mut lines = before_the_talk();
    lines.extend(in_the_talk());
    lines.extend(out_of_the_talk());
    lines.extend(after_the_end());
    // What it is to its user may change at any time.
    lines.push((&STATES, label(), 16, Same("")));
    lines
}

#[rustfmt::skip]
fn before_the_talk() -> Vec<Line> {
    use AnsweredBy::*;
    use Command::*;
    use Refusal::*;
    use crate::session::command::RejectReason::*;
    vec![
        // waits for its time
        (&["scheduled"], Tick, 199, Unchanged),
        (&["scheduled"], Tick, 200, To("queued", "SessionQueued")),
        (&["scheduled"], End, 20, To("Failed, Canceled by Api", FORGOTTEN)),
        (&["scheduled"], dispatch_at(15), 15, Unchanged),
        (&["scheduled"], postpone_to(400), 20, Unchanged),
        (&["scheduled"], Reject(OnDnc), 20, Unchanged),
        (&["scheduled"], Release, 20, Unchanged), // it waits for its own time
        (&["put off"], Release, 30, To("queued", "SessionQueued")),
        (&["awaiting", "queued", "dialing", "ringing", "incoming"], Release, 20, Unchanged),
        (CONVERSING, Release, 16, Unchanged),
        (&["scheduled"], Shutdown, 20, Unchanged),
        (&["scheduled"], lose_at(20), 20, Unchanged),

        // waits for somebody to join its room, and then for the browser
        (&["awaiting"], Tick, 9_999, Unchanged),
        (&["awaiting"], dispatch_at(15), 15, To("dialing", "Hold")),
        (&["awaiting"], expire(), 15, To("NoAnswer, RoomExpired by Api", "session.failed, RoomEnded, SlotFreed, OverheardEnd")),
        (&["awaiting"], End, 15, To("NoAnswer, RoomExpired by Api", "session.failed, RoomEnded, SlotFreed, OverheardEnd")),
        (&["awaiting"], postpone_to(400), 20, Unchanged),
        (&["awaiting"], Reject(OnDnc), 20, Unchanged),
        (&["awaiting"], Shutdown, 20, Unchanged),
        (&["awaiting"], lose_at(20), 20, Unchanged),
        (&["joining"], answer_by(Human), 10, To("talking", "session.started")),
        (&["joining"], expire(), 10, To("NoAnswer, RoomExpired by Api", ROOM_MISSED)),
        (&["joining"], lose_at(2), 2, To("Failed, NodeLost by System", ROOM_MISSED)),
        (&["joining"], End, 2, To("NoAnswer, RoomExpired by Api", ROOM_MISSED)),
        (&["dialing"], expire(), 2, To("NoAnswer, RoomExpired by Api", UNANSWERED)),
        (&["scheduled", "queued", "in a room"], expire(), 20, Unchanged),
        (CONVERSING, expire(), 16, Unchanged),

        // queued -> dialled, put off, or given up
        (&["queued"], Tick, 299, Unchanged),
        (&["queued"], Tick, 300, To("Failed, CarrierRejected by System", UNDIALLED)), // a campaign's: sent back by a full trunk
        (&["queued"], dispatch_at(21), 20, To("dialing", "Hold")),
        (&["queued"], postpone_to(400), 20, To("scheduled", "")),
        (&["queued"], postpone_to(20), 20, Unchanged), // the hours are open by now
        (&["queued"], Reject(OnDnc), 20, To("Failed, Canceled by System", UNDIALLED)),
        (&["queued"], Reject(NotVerified), 20, To("Failed, Canceled by System", UNDIALLED)),
        (&["queued"], Reject(CapReached), 20, To("Failed, Canceled by System", UNDIALLED)),
        (&["queued"], Reject(OutsideHours), 20, To("Failed, Canceled by System", UNDIALLED)),
        (&["queued"], Reject(CampaignOver), 20, To("Failed, Canceled by System", UNDIALLED)),
        (&["queued"], Reject(OutOfReach), 20, To("Failed, Canceled by System", UNDIALLED)),
        (&["queued"], Reject(NoTrunk), 20, To("Failed, Canceled by System", UNDIALLED)),
        (&["queued"], Reject(MayHaveRun), 20, To("Failed, Canceled by System", UNDIALLED)),
        (&["scheduled"], Reject(MayHaveRun), 20, To("Failed, Canceled by System", FORGOTTEN)),
        (&["awaiting"], Reject(MayHaveRun), 20, Unchanged),
        (&["queued"], End, 20, To("Failed, Canceled by Api", UNDIALLED)),
        (&["queued"], Shutdown, 20, Unchanged),
        (&["queued"], lose_at(20), 20, Unchanged),
        (&["queued"], Ring, 20, Unchanged), // of a call that the trunk has sent back since
        (&["queued"], signed(), 20, Unchanged),
        (&["queued"], refuse(Congested), 20, Unchanged),
        (&["queued"], refuse(NotPlaced), 20, Unchanged),
        (&["queued"], refuse(Busy), 20, Refused),

        // dialled -> answered by a person
        (&["dialing"], Ring, 5, To("ringing", "")),
        (&["ringing", "incoming"], Ring, 6, Unchanged),
        (&["dialing", "ringing", "to leave a message"], answer_by(Human), 10, To("talking", "session.started")),
        (&["incoming"], answer_by(Human), 10, To("talking", "session.started, CountInbound, InboundCounted")),
        (&["dialing", "ringing"], press(), 5, Same("")),
        (DIALED, signed(), 5, Same("")),

        // dialled -> answered by a machine: what then happens is up to the call
        (&["dialing", "ringing"], answer_by(Voicemail), 10, To("Voicemail, Voicemail by System", UNANSWERED)),
        (&["to leave a message"], answer_by(Voicemail), 10, To("leaving a message", "session.started")),
        (&["to talk to a machine"], answer_by(Voicemail), 10, To("talking", "session.started")),

        // a menu is talked to, a fax is not, whatever the call's settings; in doubt it is a person
        (&["dialing", "ringing", "to leave a message"], answer_by(Ivr), 10, To("talking", "session.started")),
        (&["dialing", "ringing", "to leave a message"], answer_by(Unknown), 10, To("talking", "session.started")),
        (&["dialing", "to leave a message", "to talk to a machine"], answer_by(Fax), 10, To("Voicemail, Voicemail by System", UNANSWERED)),

        // dialled -> picked up, and it is not known yet by whom
        (&["dialing", "ringing", "to leave a message", "incoming"], PickUp, 6, To("picked up", "")),
        (&["picked up"], PickUp, 7, Unchanged), // a carrier repeats itself
        (&["picked up"], Ring, 7, Unchanged),
        (&["picked up"], press(), 7, Same("")),
        (&["picked up"], KeptWaiting, 9, Same("")),
        (&["picked up"], Doubt, 9, Same("")),
        (&["dialing", "ringing", "to leave a message", "to talk to a machine", "incoming"], KeptWaiting, 9, Unchanged),
        (&["dialing", "ringing", "to leave a message", "to talk to a machine", "incoming"], Doubt, 9, Unchanged),
        (DIALED, heard_well(), 16, Same("")),
        (DIALED, Hold(true), 16, Unchanged),
        (DIALED, Hold(false), 16, Unchanged),
        (&["picked up"], answer_by(Human), 10, To("talking", "session.started")),
        (&["picked up"], answer_by(Unknown), 10, To("talking", "session.started")),
        (&["picked up"], answer_by(Voicemail), 10, To("Voicemail, Voicemail by System", UNANSWERED)),
        (&["picked up"], answer_by(Fax), 10, To("Voicemail, Voicemail by System", UNANSWERED)),
        // nobody was talked with: whoever hung up, and whatever broke; and it is never placed again
        (&["picked up"], HangUp(EndedBy::Caller), 8, To("NoAnswer, NoAnswer by Caller", UNANSWERED)),
        (&["picked up"], Tick, 35, Unchanged),
        (&["picked up"], Tick, 36, To("Failed, MediaTimeout by System", UNANSWERED)),
        (&["picked up"], fault(), 8, To("Failed, ProviderError by System", UNANSWERED)),
        (&["dialing", "ringing", "incoming"], fault(), 8, Refused),
        (&["picked up"], refuse(Congested), 8, To("Failed, CarrierRejected by System", UNANSWERED)),
        (&["picked up"], refuse(NotPlaced), 8, To("Failed, CarrierRejected by System", UNANSWERED)),
        (&["picked up"], refuse(Rejected("no common codec".into())), 8, To("Failed, CarrierRejected by System", UNANSWERED)),
        (&["picked up"], requeue_of(0), 20, Unchanged),
        (&["picked up"], End, 8, To("Failed, Canceled by Api", UNANSWERED)),
        (&["picked up"], Shutdown, 8, To("Failed, Canceled by System", UNANSWERED)),
        (&["picked up"], lose_at(8), 8, To("Failed, NodeLost by System", UNANSWERED)),

        // dialled -> queued: the trunk never took the call
        (&["dialing", "ringing"], refuse(Congested), 2, To("queued", SENT_BACK)),

        // dialled -> queued: nothing was sent, for want of something of ours
        (&["dialing", "ringing"], refuse(NotPlaced), 2, To("queued", NOT_PLACED)),

        // dialled -> queued: it was committed, and too late to be placed
        (&["dialing"], requeue_of(0), 20, To("queued", REQUEUED)),
        (&["dialing"], requeue_of(-5), 20, Unchanged), // of a dial before, which went back already
        (&["ringing", "incoming", "scheduled", "awaiting", "queued"], requeue_of(0), 20, Unchanged),
        (CONVERSING, requeue_of(0), 20, Unchanged),

        // dialled -> ended without a conversation
        (&["dialing"], refuse(Busy), 2, To("Busy, Busy by System", UNANSWERED)),
        (&["dialing"], refuse(NoAnswer), 2, To("NoAnswer, NoAnswer by System", UNANSWERED)),
        (&["ringing"], refuse(Declined), 6, To("NoAnswer, Declined by System", UNANSWERED)),
        (&["ringing"], refuse(Blocked("blocked".into())), 6, To("NoAnswer, Declined by System", NOTED_UNANSWERED)),
        (&["dialing"], refuse(Unreachable("no carrier".into())), 2, To("Failed, Unreachable by System", UNANSWERED)),
        (&["dialing"], refuse_with(Busy, (486, "Busy Here", Some(17))), 2, To("Busy, Busy by System", NOTED_UNANSWERED)),
        (&["dialing"], refuse_with(Congested, (503, "CPS limit", None)), 2, To("queued", SENT_BACK)),
        (&["dialing"], refuse(InvalidNumber("not assigned".into())), 2, To("Failed, InvalidNumber by System", UNANSWERED)),
        (&["dialing"], refuse(Rejected("trunk refused".into())), 2, To("Failed, CarrierRejected by System", UNANSWERED)),
        (DIALED, Tick, 29, Unchanged),
        (&["dialing", "ringing"], Tick, 30, To("NoAnswer, NoAnswer by System", UNANSWERED)),
        (&["dialing"], End, 2, To("Failed, Canceled by Api", UNANSWERED)),
        (&["dialing"], Shutdown, 2, To("Failed, Canceled by System", UNANSWERED)),
        (&["dialing"], lose_at(2), 2, To("Failed, NodeLost by System", UNANSWERED)),
        // a call that came in and that nobody took
        (&["incoming"], HangUp(EndedBy::Caller), 2, To("Failed, Canceled by Caller", INCOMING_MISSED)),
        (&["incoming"], Tick, 30, To("NoAnswer, NoAnswer by System", INCOMING_MISSED)),
        (&["incoming"], lose_at(2), 2, To("Failed, NodeLost by System", INCOMING_MISSED)),

        // what was decided for a call in the queue comes too late for one that is on its way
        (DIALED, dispatch_at(1), 1, Unchanged),
        (DIALED, postpone_to(400), 1, Unchanged),
        (DIALED, Reject(OnDnc), 1, Unchanged),
        (CONVERSING, dispatch_at(16), 16, Unchanged),
        (&["scheduled", "awaiting", "queued"], extend_by(5), 16, Unchanged),
        (DIALED, extend_by(5), 1, Unchanged),
        (CONVERSING, postpone_to(400), 16, Unchanged),
        (CONVERSING, Reject(CapReached), 16, Unchanged),
        // a carrier repeats itself
        (CONVERSING, Ring, 16, Unchanged),
        (CONVERSING, PickUp, 16, Unchanged),
        (CONVERSING, answer_by(Fax), 16, Unchanged),
        (CONVERSING, answer_by(Human), 16, Unchanged),
        (CONVERSING, answer_by(Voicemail), 16, Unchanged),
    ]
}

#[rustfmt::skip]
fn in_the_talk() -> Vec<Line> {
    use Command::*;
    vec![
        // what is said and done, whatever course the talk takes
        (CONVERSING, said(), 16, Same("Overheard")),
        // the first words are nobody's, or the other side's
        (CONVERSING, spoken(0, 900, None), 16, Unchanged),
        (CONVERSING, saying(0), 16, Unchanged),
        (CONVERSING, interrupt(), 16, Same("")),
        // of what was said without its words; nothing was said in the others
        (&["talking"], understood(), 16, Same("Understood")),
        (SPEECHLESS, understood(), 16, Unchanged),
        (CONVERSING, user_speaking(61), 16, Same("")),
        (CONVERSING, look_up(25), 16, Same("Overheard")),
        (CONVERSING, found(false), 16, Same("Overheard")),
        (CONVERSING, found(true), 16, Same("function.timeout, Overheard")),
        (CONVERSING, dispose("sold"), 16, Same("")),
        (CONVERSING, note_answer("seats"), 16, Same("")),
        (CONVERSING, press(), 16, Same("")),
        (CONVERSING, signed(), 16, Same("")),
        (CONVERSING, disclosed_until(14), 16, Same("")),
        // kept of a call whose law is known, and of no other
        (CONVERSING, consent_asked(), 16, Unchanged),
        (CONVERSING, answered_after(700), 16, Same("")),
        (CONVERSING, first_sound(), 16, Same("")),
        (CONVERSING, KeptWaiting, 16, Same("")),
        (CONVERSING, left_alone(), 16, Same("")),
        (CONVERSING, Doubt, 16, Unchanged), // it is known by now who it is
        (CONVERSING, heard_well(), 16, Same("")),
        (CONVERSING, Hold(true), 16, Same("")),
        (CONVERSING, Hold(false), 16, Unchanged),

        // more is set aside while it lasts; once for each time that it was asked for
        (CONVERSING, extend_by(5), 16, Same("Hold")),
        (CONVERSING, extend_by(0), 16, Unchanged),
        (CONVERSING, Extend { held: Cents(7), by: Cents(5) }, 16, Unchanged),

        // yes or no to being recorded; a yes that nobody asked for, and a second one, is none
        (&["asked"], Consent(true), 16, Same("BeginRecording")),
        (&["answered", "talking", "granted", "recorded", "with a machine", "taken in"], Consent(true), 16, Unchanged),
        (&["answered", "talking", "asked", "with a machine", "taken in"], Consent(false), 16, To("leaving for ConsentRefused", "session.consent_refused")),
        (&["granted", "recorded"], Consent(false), 16, To("leaving for ConsentRefused", "session.consent_refused, EraseSpool")),
        (&["transferring"], Consent(true), 16, Unchanged),
        (&["transferring"], Consent(false), 16, To("leaving for ConsentRefused", "session.consent_refused, TransferEnded")),
        (NOT_HEARD, Consent(true), 16, Unchanged),
        (DEAF, Consent(false), 16, Unchanged),
        // said to the agent, and understood when somebody else had taken over: obeyed, and the call goes on
        (&["bridged"], Consent(false), 16, Same("session.consent_refused")),

        // no more calls; the purge is announced only of what was recorded
        (&["answered", "talking", "asked", "taken in"], opt_out(), 16, To("leaving for OptOut", OPTED_OUT)),
        (&["granted", "recorded"], opt_out(), 16, To("leaving for OptOut", OPTED_OUT_RECORDED)),
        // also while somebody else is called to take over: nobody does then
        (&["transferring"], opt_out(), 16, To("leaving for OptOut", OPTED_OUT_AND_CALLED_OFF)),
        (DEAF, opt_out(), 16, Unchanged),
        (&["bridged"], opt_out(), 16, Same(OPTED_OUT)),

        // handed over, and taken back
        (TALKED, transfer_to_sales(), 16, To("transferring", "session.transfer_initiated, Transfer")),
        (NO_MORE_TALKED, transfer_to_sales(), 16, Refused),
        (&["in a room"], transfer_to_sales(), 16, Refused),
        (&["transferring"], nobody_there(), 20, To("talking", "")), // the line says so: it knows
        (&["transferring"], Tick, 59, Unchanged),
        (&["transferring"], Tick, 60, To("talking", "TransferEnded")), // nobody answered in time
        (NOT_TRANSFERRING, nobody_there(), 16, Unchanged),
        (NOT_TRANSFERRING, Transferred, 16, Unchanged),
        // taken over, while we carry both
        (&["transferring"], bridge_to_sales(), 20, To("bridged", "")),
        (NOT_TRANSFERRING, bridge_to_sales(), 16, Unchanged),
        (NOT_BRIDGED, BridgeEnded, 16, Unchanged),

        (NOT_LEAVING_A_MESSAGE, MessageLeft, 16, Unchanged),
    ]
}

#[rustfmt::skip]
fn out_of_the_talk() -> Vec<Line> {
    use {Command::*, EndedBy::*};
    vec![
        // a side hangs up
        (&["talking"], HangUp(Caller), 20, To("Completed, Completed by Caller", SPOKEN)),
        (&["talking"], HangUp(Agent), 20, To("Completed, Completed by Agent", SPOKEN)),
        (&["answered", "asked"], HangUp(Caller), 20, To("Completed, Completed by Caller", SILENT)),
        (&["recorded"], HangUp(Caller), 20, To("Completed, Completed by Caller", RECORDED)),
        (&["granted"], HangUp(Caller), 20, To("Completed, Completed by Caller", NOTED_AND_RECORDED)),
        (&["taken in"], HangUp(Caller), 20, To("Completed, Completed by Caller", "session.ended, Settle, CountCall, HangUp, SlotFreed, OverheardEnd")),
        (&["with a machine", "leaving a message"], HangUp(Caller), 20, To("Voicemail, Voicemail by Caller", UNHEARD)),
        (&["transferring"], HangUp(Caller), 20, To("Completed, Completed by Caller", SPOKEN)),
        (&["opting out"], HangUp(Agent), 20, To("Completed, OptOut by Agent", SPOKEN)),
        (&["opting out, recorded"], HangUp(Caller), 20, To("Completed, OptOut by Caller", NOTED_AND_RECORDED)),
        (&["refusing"], HangUp(Agent), 20, To("Completed, ConsentRefused by Agent", SPOKEN)),

        // somebody else has taken over; the message has been said
        (&["transferring"], Transferred, 20, To("Completed, Transferred by Agent", SPOKEN)),
        // whoever ends a call that was taken over, it was transferred; both legs cost, so what is left is halved
        (&["bridged"], BridgeEnded, 20, To("Completed, Transferred by Agent", SPOKEN)),
        (&["bridged"], HangUp(Caller), 20, To("Completed, Transferred by Caller", SPOKEN)),
        (&["bridged"], End, 20, To("Completed, Transferred by Api", SPOKEN)),
        (&["bridged"], Shutdown, 20, To("Completed, Transferred by System", SPOKEN)),
        (&["bridged"], fault(), 20, To("Completed, Transferred by System", SPOKEN)),
        (&["bridged"], Tick, 312, Unchanged),
        (&["bridged"], Tick, 313, To("Completed, Transferred by System", SPOKEN)),
        (&["bridged"], lose_at(20), 20, To("Failed, NodeLost by System", CUT_OFF)),
        (&["leaving a message"], MessageLeft, 20, To("Voicemail, VoicemailLeft by Agent", UNHEARD)),

        // the API ends it
        (&["talking", "transferring"], End, 20, To("Completed, Completed by Api", SPOKEN)),
        (&["leaving a message"], End, 20, To("Voicemail, Voicemail by Api", UNHEARD)),
        (&["opting out"], End, 20, To("Completed, OptOut by Api", SPOKEN)),

        // nobody says anything any more: 30 s after the answer, or after the last word
        (&["answered", "asked", "recorded", "with a machine", "taken in"], Tick, 39, Unchanged),
        (&["answered", "asked"], Tick, 40, To("Completed, SilenceTimeout by System", SILENT)),
        (&["recorded"], Tick, 40, To("Completed, SilenceTimeout by System", RECORDED)),
        (&["with a machine"], Tick, 40, To("Voicemail, SilenceTimeout by System", UNHEARD)),
        (&["talking"], Tick, 42, Unchanged),
        (&["talking"], Tick, 43, To("Completed, SilenceTimeout by System", SPOKEN)),

        // a goodbye takes 15 s at most; a message, as long as any call
        (LEAVING, Tick, 29, Unchanged),
        (&["opting out"], Tick, 30, To("Completed, OptOut by System", SPOKEN)),
        (&["refusing"], Tick, 30, To("Completed, ConsentRefused by System", SPOKEN)),
        (&["leaving a message"], Tick, 609, Unchanged),
        (&["leaving a message"], Tick, 610, To("Voicemail, MaxDuration by System", UNHEARD)),

        // a room follows its session
        (&["in a room"], HangUp(Caller), 20, To("Completed, Completed by Caller", "session.ended, Settle, CountCall, RoomEnded, HangUp, SlotFreed, OverheardEnd")),
        (&["in a room"], fault(), 20, To("Failed, ProviderError by System", "session.failed, Settle, CountCall, RoomEnded, HangUp, SlotFreed, OverheardEnd")),

        // what it thinks with has failed; the service stops; nobody knows what became of it
        (&["talking", "transferring"], fault(), 20, To("Failed, ProviderError by System", CUT_OFF)),
        (&["leaving a message"], fault(), 20, To("Failed, ProviderError by System", UNHEARD)),
        (&["talking", "transferring"], Shutdown, 20, To("Completed, Canceled by System", SPOKEN)),
        (&["leaving a message", "with a machine"], Shutdown, 20, To("Voicemail, Canceled by System", UNHEARD)),
        (&["talking", "transferring", "opting out", "refusing"], lose_at(20), 20, To("Failed, NodeLost by System", CUT_OFF)),
        (&["leaving a message"], lose_at(20), 20, To("Failed, NodeLost by System", UNHEARD)),
        (LEAVING, fault(), 20, Over),
        (LEAVING, Shutdown, 20, Over),
    ]
}

/// Carriers repeat themselves and are late: what comes after the end changes nothing, but for what the other side wished.
#[rustfmt::skip]
fn after_the_end() -> Vec<Line> {
    use Command::*;
    use crate::session::command::RejectReason::*;
    let late = [
        PickUp, bridge_to_sales(), BridgeEnded, Hold(true), first_sound(), KeptWaiting, left_alone(), Doubt, heard_well(),
        dispatch_at(50), extend_by(5), postpone_to(400), Release, Reject(OutsideHours), Ring, answer_by(AnsweredBy::Human),
        answer_by(AnsweredBy::Voicemail), refuse(Refusal::Busy), refuse(Refusal::Congested), refuse(Refusal::NotPlaced), requeue_of(0), said(), saying(0), spoken(0, 900, None), interrupt(), understood(), user_speaking(61),
        Consent(true), look_up(60), found(false), found(true), Transferred, nobody_there(),
        dispose("sold"), note_answer("seats"), disclosed_until(60), consent_asked(), press(), signed(), answered_after(700), MessageLeft, fault(), HangUp(EndedBy::Caller), Shutdown, lose_at(20), expire(),
    ];
    let mut lines: Vec<Line> = late.map(|command| (&["ended"] as &[&str], command, 50, Unchanged)).into();
    lines.extend([
        (&["ended"] as &[&str], Tick, 9_999, Unchanged),
        // but who asks for something is told that it is over
        (&["ended"], End, 50, Refused),
        (&["ended"], transfer_to_sales(), 50, Refused),
        // what was said before the end and understood after it counts
        (&["ended"], opt_out(), 50, Same(OPTED_OUT)),
        (&["ended"], Consent(false), 50, Same("session.consent_refused")),
        // what is found out later, and what is to be forgotten
        (&["ended"], evaluated("sold", Evaluator::Llm), 50, Same("DisposeContact, session.disposition_set, CloseAttempt")),
        (&["ended"], Delete, 50, Same("Forget")),
    ]);
    lines
}

fn describe(session: &Session) -> String {
    match &session.phase {
        Phase::Scheduled { .. } => "scheduled".into(),
        Phase::Awaiting => "awaiting".into(),
        Phase::Queued { .. } => "queued".into(),
        Phase::Dialing { .. } if session.call.picked_up_at.is_some() => "picked up".into(),
        Phase::Dialing { ringing: false, .. } => "dialing".into(),
        Phase::Dialing { ringing: true, .. } => "ringing".into(),
        Phase::Conversing(talk) => match &talk.mode {
            CallMode::Talking => "talking".into(),
            CallMode::LeavingMessage => "leaving a message".into(),
            CallMode::Transferring { .. } => "transferring".into(),
            CallMode::Bridged { .. } => "bridged".into(),
            CallMode::Leaving { reason, .. } => format!("leaving for {reason:?}"),
        },
        Phase::Ended(End { status, reason, by, .. }) => format!("{status:?}, {reason:?} by {by:?}"),
    }
}

fn kinds(effects: &[Effect]) -> Vec<String> {
    let kind = |effect: &Effect| match effect {
        Effect::Fact(Fact::Emit(event)) => event.event_type().to_owned(),
        Effect::Fact(Fact::Move(movement)) => format!("{:?}", movement.what).split(' ').next().unwrap().to_owned(),
        other => format!("{other:?}").split([' ', '(']).next().unwrap().to_owned(),
    };
    effects.iter().map(kind).collect()
}

fn check(session: Session, command: Command, now: Moment, expected: Expected) {
    let line = format!("{} + {command:?} at {now}", describe(&session));
    let before = describe(&session);
    match (transition(session.clone(), command, now), expected) {
        (Ok((after, effects)), To(state, wanted)) => {
            let came = (describe(&after), kinds(&effects).join(", "));
            assert_eq!(came, (state.to_owned(), wanted.to_owned()), "{line}");
            assert_ne!(after, session, "{line}");
        }
        (Ok((after, effects)), Same(wanted)) => {
            let came = (describe(&after), kinds(&effects).join(", "));
            assert_eq!(came, (before, wanted.to_owned()), "{line}");
            assert_ne!(after, session, "{line}");
        }
        (Ok((after, _)), Over) => assert!(matches!(after.phase, Phase::Ended(_)), "{line}"),
        (Ok(unchanged), Unchanged) => assert_eq!(unchanged, (session, Vec::new()), "{line}"),
        (Err(Error::InvalidState { kind: "session", .. }), Refused) => {}
        (outcome, expected) => panic!("{line}: {outcome:?} instead of {expected:?}"),
    }
}

#[test]
fn every_transition_of_the_specification() {
    for (names, command, seconds, expected) in table() {
        for name in names {
            check(state(name), command.clone(), at(seconds), expected);
        }
    }
}

/// Phase, course and command; of two samples of one state it is enough that the table has one.
#[test]
fn every_pair_that_is_not_in_the_table_is_refused() {
    use std::mem::discriminant as of;
    let mut known = Vec::new();
    for (names, command, ..) in table() {
        known.extend(names.iter().map(|name| (state(name).mode(), of(&command))));
    }
    let mut refused = 0;
    for session in STATES.map(state) {
        for command in commands() {
            if !known.contains(&(session.mode(), of(&command))) {
                check(session.clone(), command, at(16), Refused);
                refused += 1;
            }
        }
    }
    assert!(refused > 100, "{refused} pairs were looked at");
}
