//! What is found out about a talk when it is over.
use super::*;

/// The specification's event comes once, and not for what the agent itself has said.
pub(super) fn evaluate(mut session: Session, found: Evaluated, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let mut effects = Vec::new();
    if let Some(Disposition { code, note }) = found.disposition {
        let by_now = session.call.disposition_by;
        // What a person has decided is not overruled by a machine, and what is known is not found out twice.
        if found.by == Evaluator::Human || by_now.is_none() {
            let is_news = session.call.disposition_code.as_deref() != Some(&code);
            let recorded = closing::disposition(&session, &code, found.by, now).filter(|_| is_news);
            let call = Arc::make_mut(&mut session.call);
            call.disposition_code = Some(code.clone());
            call.disposition_note = Some(note.clone()).filter(|note| !note.is_empty());
            call.disposition_by = Some(found.by);
            effects.extend(classified(
                call,
                (code.clone(), note),
                &found.by,
                found.model,
                by_now,
                now,
            ));
            effects.extend(recorded);
            effects.extend(declined_late(&session, &code));
        }
    }
    if !found.answers.is_empty() {
        effects.push(
            Fact::SaveAnswers {
                call: session.call.clone(),
                answers: found.answers,
                source: match found.by {
                    Evaluator::Agent => answer::Source::Agent,
                    Evaluator::Human => answer::Source::Human,
                    Evaluator::Llm => answer::Source::Llm,
                    Evaluator::Rules => answer::Source::Rules,
                },
            }
            .into(),
        );
    }
    if let Some(job) = found.job {
        effects.push(Fact::SaveEvaluation(job).into());
    }
    Ok((session, effects))
}

pub(super) fn classified(
    call: &Row,
    (disposition_code, disposition_note): (String, String),
    by: &Evaluator,
    model: Option<String>,
    before: Option<Evaluator>,
    now: Moment,
) -> Vec<Effect> {
    let (Some(campaign_id), Some(contact_id)) = (call.campaign_id, call.contact_id) else {
        return Vec::new();
    };
    let mut effects = vec![
        Fact::DisposeContact {
            contact_id,
            session_id: call.id,
            code: disposition_code.clone(),
        }
        .into(),
    ];
    // Source: specification, "session.disposition_set": not without dispositions to choose from, not for what the agent said.
    if before.is_none() && call.options.has_dispositions {
        let set = SessionDispositionSet {
            session_id: call.id,
            campaign_id,
            contact_id,
            disposition_code,
            disposition_note,
            evaluated_at: now,
            evaluator: *by,
            model,
        };
        effects.push(Effect::emit(set));
    }
    effects
}
