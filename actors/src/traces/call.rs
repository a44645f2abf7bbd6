//! What a call's trace says of it: the call, its wait for a slot, its dial and its talk, all of which its row knows at its end; and
//! each answer in a talk, with those whom it waited for.
use entities::{
    session::{AnsweredBy, Direction, Model, Status},
    values::Moment,
};
use rules::session::{
    latency::{Stage, TurnMarks},
    machine::code,
};
use runtime::tracer::{Attribute, Place, Span, span_id};
use std::time::Duration;
use uuid::Uuid;

/// The span of a call: any part that knows the session knows it.
pub fn of_call(call: &Model) -> u64 {
    span_id(call.id.0)
}

/// The span of its talk.
pub fn of_talk(call: &Model) -> u64 {
    of_call(call).rotate_left(8)
}

/// The spans of a call that has ended. `place`: where the call itself stands.
pub fn spans(call: &Model, place: Place, mut new_id: impl FnMut() -> Uuid) -> Vec<Span> {
    let Some(ended_at) = call.ended_at else {
        return Vec::new();
    };
    let between = |from: Moment, to: Moment| (from, to.since(from));
    let (began, took) = between(call.created_at, ended_at);
    let mut whole = place.span(of_call(call), "call", began, took);
    whole.attributes = attributes(call);
    whole.error = (call.status == Status::Failed).then(|| call.end_reason.map_or("failed", code).into());
    let inside = Place::under(whole.context);
    let mut spans = vec![whole];
    let mut add = |id: u64, name: &'static str, (began, took): (Moment, Duration)| {
        spans.push(inside.span(id, name, began, took));
    };
    // Nobody waits for a room's slot, nor for that of a call which has come in.
    if call.direction == Direction::Outbound {
        let ready = call.scheduled_at.map_or(call.created_at, |at| at.max(call.created_at));
        let left = call.dialed_at.unwrap_or(ended_at);
        add(span_id(new_id()), "queue", between(ready.min(left), left));
        if let Some(dialed_at) = call.dialed_at {
            let answered = call.picked_up_at.or(call.started_at).unwrap_or(ended_at);
            add(span_id(new_id()), "dial", between(dialed_at, answered));
        }
    }
    if let Some(started_at) = call.started_at {
        add(of_talk(call), "talk", between(started_at, ended_at));
    }
    spans
}

fn attributes(call: &Model) -> Vec<(&'static str, Attribute)> {
    let text = |id: Uuid| Attribute::from(id.to_string());
    let mut known: Vec<(&'static str, Attribute)> = vec![
        ("callboard.session_id", text(call.id.0)),
        ("callboard.tenant_id", text(call.tenant_id.0)),
        ("callboard.env", call.env.as_str().into()),
        ("callboard.agent_id", text(call.agent_id.0)),
        ("callboard.attempt", call.attempt.into()),
        (
            "callboard.direction",
            match call.direction {
                Direction::Outbound => "outbound",
                Direction::Inbound => "inbound",
            }
            .into(),
        ),
        (
            "callboard.session_type",
            if call.room_id.is_some() { "webrtc" } else { "phone" }.into(),
        ),
    ];
    known.extend(call.campaign_id.map(|id| ("callboard.campaign_id", text(id.0))));
    known.extend(
        call.end_reason
            .map(|reason| ("callboard.end_reason", code(reason).into())),
    );
    known.extend(
        call.answered_by
            .map(|by| ("callboard.answered_by", answered_by(by).into())),
    );
    known.extend(call.sip_code.map(|code| ("callboard.sip_code", code.into())));
    known
}

fn answered_by(by: AnsweredBy) -> &'static str {
    match by {
        AnsweredBy::Human => "human",
        AnsweredBy::Voicemail => "voicemail",
        AnsweredBy::Ivr => "ivr",
        AnsweredBy::Fax => "fax",
        AnsweredBy::Unknown => "unknown",
    }
}

/// An answer that has just begun to be heard, and whom it waited for. `talk`: where the talk stands; who listens and thinks in it.
pub fn answer(
    marks: &TurnMarks,
    talk: Place,
    (transcription, brain): (Option<&'static str>, &'static str),
    now: Moment,
    mut new_id: impl FnMut() -> Uuid,
) -> Vec<Span> {
    let ms = |ms: u32| Duration::from_millis(ms.into());
    let whole = ms(marks.packet_ms());
    let spoken = now.minus(whole);
    let answer = talk.span(span_id(new_id()), "answer", spoken, whole);
    let inside = Place::under(answer.context);
    let mut spans = vec![answer];
    let shares = marks.shares();
    // Each ended with its stage.
    let parts = [
        ("transcription", Stage::Text, shares.transcription, transcription),
        ("model", Stage::Token, shares.brain, Some(brain)),
        ("voice", Stage::Sound, shares.voice, None),
    ];
    for (name, stage, took, provider) in parts {
        let (Some(until), Some(took)) = (marks.at(stage), took) else {
            continue;
        };
        let began = spoken.plus(ms(until.saturating_sub(took)));
        let mut span = inside.span(span_id(new_id()), name, began, ms(took));
        span.attributes
            .extend(provider.map(|provider| ("callboard.provider", provider.into())));
        spans.push(span);
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use entities::{
        ids::{AgentId, SessionId, TenantId},
        session::{EndReason, EndedBy, Phase},
        values::Env,
    };

    fn at(seconds: i64) -> Moment {
        Moment::from_millis(1_700_000_000_000).plus_seconds(seconds)
    }

    fn ids() -> impl FnMut() -> Uuid {
        let mut next = 1_000_u128;
        move || {
            next += 1;
            Uuid::from_u128(next)
        }
    }

    fn ended() -> Model {
        let owner = (TenantId(Uuid::from_u128(1)), Env::Test);
        let id = SessionId(Uuid::from_u128(0x0198_c2f4_7d3a_7c1e_9b2a_5f0c_6d1e_8a47));
        let call = Model::new(
            owner,
            id,
            (AgentId(Uuid::from_u128(3)), 1),
            "+15002340000".parse().unwrap(),
            at(0),
        );
        Model {
            phase: Phase::Ended,
            status: Status::Completed,
            end_reason: Some(EndReason::Completed),
            ended_by: Some(EndedBy::Caller),
            dialed_at: Some(at(5)),
            picked_up_at: Some(at(8)),
            started_at: Some(at(9)),
            ended_at: Some(at(60)),
            first_name: Some("Grace".into()),
            email: Some("grace@example.com".into()),
            ..call
        }
    }

    fn place() -> Place {
        Place {
            trace_id: 7,
            parent: Some(8),
            sampled: true,
        }
    }

    #[test]
    fn a_call_that_has_ended_is_a_tree() {
        let call = ended();
        let spans = spans(&call, place(), ids());
        let told: Vec<_> = spans
            .iter()
            .map(|span| (&*span.name, span.parent, span.began, span.took.as_secs()))
            .collect();
        let inside = Some(of_call(&call));
        assert_eq!(
            told,
            [
                ("call", Some(8), at(0), 60),
                ("queue", inside, at(0), 5),
                ("dial", inside, at(5), 3),
                ("talk", inside, at(9), 51),
            ]
        );
        assert!(
            spans
                .iter()
                .all(|span| span.context.trace_id == 7 && span.error.is_none())
        );
        let all = format!("{spans:?}");
        for person in ["+1500", "Grace", "grace"] {
            assert!(!all.contains(person), "{all}");
        }
    }

    #[test]
    fn one_that_was_never_dialed_has_only_waited() {
        let call = Model {
            status: Status::Failed,
            end_reason: Some(EndReason::Canceled),
            scheduled_at: Some(at(3600)),
            dialed_at: None,
            picked_up_at: None,
            started_at: None,
            ..ended()
        };
        let spans = spans(&call, place(), ids());
        let told: Vec<_> = spans.iter().map(|span| (&*span.name, span.took.as_secs())).collect();
        assert_eq!(told, [("call", 60), ("queue", 0)]);
        assert_eq!(spans[0].error.as_deref(), Some("canceled"));
        assert!(super::spans(&Model { ended_at: None, ..call }, place(), ids()).is_empty());
    }

    #[test]
    fn an_answer_has_those_whom_it_waited_for() {
        let marks = [Some(500), Some(700), Some(1_000), Some(1_100), Some(1_300), Some(1_400)];
        let marks = TurnMarks::of(marks).unwrap();
        let spans = answer(&marks, place(), (Some("deepgram"), "chat"), at(10), ids());
        let spoken = at(10).plus_millis(-1_400);
        let told: Vec<_> = spans
            .iter()
            .map(|span| (&*span.name, span.began.since(spoken).as_millis(), span.took.as_millis()))
            .collect();
        assert_eq!(
            told,
            [
                ("answer", 0, 1_400),
                ("transcription", 500, 200),
                ("model", 700, 300),
                ("voice", 1_100, 200)
            ]
        );
        let (parent, whole) = (spans[0].parent, spans[0].context.span_id);
        assert_eq!(parent, Some(8));
        assert!(spans[1..].iter().all(|span| span.parent == Some(whole)));
    }
}
