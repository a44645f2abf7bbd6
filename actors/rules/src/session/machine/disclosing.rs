//! What the service has said for the law, kept with the call: its record is made of it.
use super::*;
use entities::session::{CallLegal, ConsentAsked, Disclosure, Said};

/// Of a call whose law is not known it stands in the timeline only.
pub(super) fn disclosed(mut session: Session, disclosed: Disclosed, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let Phase::Conversing(talk) = &session.phase else {
        return Ok((session, Vec::new()));
    };
    let started_at = talk.started_at;
    let kinds: Vec<&str> = disclosed.kinds.iter().map(|kind| kind.name()).collect();
    let outcome = if disclosed.is_cut_off { "cut off" } else { "heard whole" };
    let detail = format!("{} ({}): {outcome}", kinds.join(", "), disclosed.language);
    session.log.note("disclosed", Some(detail), now);
    if session.call.options.legal.is_some()
        && let Some(legal) = &mut Arc::make_mut(&mut session.call).options.legal
    {
        legal.said.add(Disclosure {
            kinds: disclosed.kinds,
            language: disclosed.language,
            text_sha256: disclosed.text_sha256,
            started_ms: ms_between(started_at, disclosed.began),
            completed_ms: ms_between(started_at, disclosed.ended),
            is_cut_off: disclosed.is_cut_off,
        });
    }
    Ok((session, Vec::new()))
}

/// The last question counts: one that was not understood is asked again.
pub(super) fn consent_asked(mut session: Session, basis: ConsentMode, now: Moment) -> Result<(Session, Vec<Effect>)> {
    if let Phase::Conversing(talk) = &session.phase
        && session.call.options.legal.is_some()
    {
        let asked_ms = ms_between(talk.started_at, now);
        if let Some(legal) = &mut Arc::make_mut(&mut session.call).options.legal {
            legal.said.consent = Some(ConsentAsked {
                basis,
                asked_ms,
                answer: None,
                answered_ms: None,
            });
        }
    }
    Ok((session, Vec::new()))
}

/// Whoever objects later has answered then.
pub(super) fn note_consent(call: &mut Row, granted: bool, (started_at, now): (Moment, Moment)) {
    let legal = call.options.legal.as_mut();
    if let Some(asked) = legal.and_then(|legal| legal.said.consent.as_mut()) {
        asked.answer = Some(granted);
        asked.answered_ms = Some(ms_between(started_at, now));
    }
}

/// Disclosures of a call that is only played are not stored before its next step.
pub(super) fn carry_over(session: &mut Session, before: &Session) {
    let Some(known) = &before.call.options.legal else {
        return;
    };
    let reach = |said: &Said| {
        let asked_ms = said.consent.as_ref().map(|asked| asked.asked_ms);
        (said.disclosures.len(), said.more, asked_ms)
    };
    let is_behind = |stored: &CallLegal| reach(&stored.said) < reach(&known.said);
    if session.call.options.legal.as_ref().is_some_and(is_behind)
        && let Some(stored) = &mut Arc::make_mut(&mut session.call).options.legal
    {
        stored.said.clone_from(&known.said);
    }
}

impl Session {
    /// Nothing of the call's row is new but what was said for the law.
    pub(super) fn has_only_disclosed(&self, before: &Self) -> bool {
        let (Some(now), Some(then)) = (&self.call.options.legal, &before.call.options.legal) else {
            return false;
        };
        if now.said == then.said {
            return false;
        }
        let mut same = Row::clone(&self.call);
        same.options.legal = Some(CallLegal {
            said: then.said.clone(),
            ..now.clone()
        });
        same == *before.call
    }
}

fn ms_between(since: Moment, at: Moment) -> i64 {
    i64::try_from(at.since(since).as_millis()).unwrap_or(i64::MAX)
}
