//! What is set aside for a call that lasts: when it is used up, and how more is asked for.
use super::*;

/// Nothing more could be set aside for a call: it goes on, and this is how long until it is tried again.
const HOLD_AGAIN_SECONDS: i64 = 30;

/// When a call ends that somebody else takes over at `now` and that could have lasted until `end_by`: for as much money, for both
/// legs cost.
pub fn bridged_until(now: Moment, end_by: Moment) -> Moment {
    half_way(now, end_by).unwrap_or(end_by)
}

/// Between these, if the first comes first.
fn half_way(from: Moment, to: Moment) -> Option<Moment> {
    let between = to.millis().saturating_sub(from.millis());
    // Rounded up: what is set aside is not used up before.
    (between > 0).then(|| from.plus_millis(between / 2 + between % 2))
}

/// When a call that began then has used up what is set aside for it, if it can last so long. What is free holds nothing.
pub fn hold_ends_at(call: &Row, started_at: Moment) -> Option<Moment> {
    let (held, price) = (call.hold_cents.0, i64::from(call.price_cents_per_minute));
    if held <= 0 || price <= 0 || call.hold_cents >= cost(call.price_cents_per_minute, call.max_duration_seconds) {
        return None;
    }
    let at = started_at.plus_millis(held.saturating_mul(60_000) / price);
    // Twice as fast from then on.
    let bridged = call.bridged_at.and_then(|since| half_way(since, at));
    Some(bridged.unwrap_or(at))
}

/// The same of a call that lasts: it may have gone on without for a while, and owe more than that.
pub(super) fn hold_ends_again(call: &Row, started_at: Moment, now: Moment) -> Option<Moment> {
    let again = now.plus_seconds(HOLD_AGAIN_SECONDS);
    hold_ends_at(call, started_at).map(|at| if at > now { at } else { again })
}

/// What is set aside for it is used up: more is asked for. Whatever comes of that, the call goes on.
fn ask_for_more(mut session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let call = session.call.clone();
    let Phase::Conversing(talk) = &mut session.phase else {
        return Ok((session, Vec::new()));
    };
    talk.hold_ends_at = Some(now.plus_seconds(HOLD_AGAIN_SECONDS));
    let started_at = talk.started_at;
    Ok((session, vec![Work::ExtendHold { call, started_at }.into()]))
}

/// More is set aside for it.
pub(super) fn extend(mut session: Session, by: Cents, now: Moment) -> Result<(Session, Vec<Effect>)> {
    Arc::make_mut(&mut session.call).hold_cents.0 += by.0;
    let call = session.call.clone();
    if let Phase::Conversing(talk) = &mut session.phase {
        talk.hold_ends_at = hold_ends_again(&call, talk.started_at, now);
    }
    let effects = session.set_aside(by).into_iter().collect();
    Ok((session, effects))
}

/// What was set aside may be used up.
pub(super) fn look_at_the_hold(session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    match &session.phase {
        Phase::Conversing(talk) if talk.hold_ends_at.is_some_and(|at| now >= at) => ask_for_more(session, now),
        _ => Ok((session, Vec::new())),
    }
}
