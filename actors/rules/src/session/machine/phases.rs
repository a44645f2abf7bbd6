//! What each command does in each phase: every pair stands here. A new command makes the compiler ask in all four lists.
use super::*;

/// Before it is dialled: it waits for its time, for somebody to join its room, or for a slot.
pub(super) fn while_waiting(session: Session, command: Command, now: Moment) -> Result<(Session, Vec<Effect>)> {
    use Command::*;
    let is_queued = matches!(session.phase, Phase::Queued { .. });
    let is_awaiting = matches!(session.phase, Phase::Awaiting);
    match command {
        Tick => look_while_waiting(session, now),
        Release if !is_queued && !is_awaiting && session.call.campaign_id.is_some() => enqueue(session, now),
        Dispatch { at, hold } if is_queued || is_awaiting => dispatch(session, at, hold),
        Postpone { until } if is_queued && until > now => postpone(session, until),
        Reject(reason) if is_queued || reason == RejectReason::MayHaveRun && !is_awaiting => {
            canceled(session, EndedBy::System, Some(why_rejected(reason)), now)
        }
        Abandon(abandoned) if is_awaiting => abandon(session, abandoned, now),
        // As if the room had been ended.
        End if is_awaiting && session.call.room_id.is_some() => expire(session, now),
        End => canceled(session, EndedBy::Api, None, now),
        Label(metadata) => label(session, metadata),
        Ring
        | NoteAttestation(_)
        | Refuse {
            refusal: Refusal::Congested | Refusal::NotPlaced,
            ..
        } if is_queued => Ok((session, Vec::new())),
        // Its room is on its way to its end; or it was extended already, or the trunk has sent it back; or it was never placed.
        Dispatch { .. }
        | Postpone { .. }
        | Reject(_)
        | Release
        | Abandon(_)
        | Extend { .. }
        | Requeue { .. }
        | Shutdown
        | Lose { .. } => Ok((session, Vec::new())),
        Evaluate(_) | Delete => Err(refused("live", "be evaluated or deleted", "wait until it has ended")),
        Ring
        | PickUp
        | Answer { .. }
        | Refuse { .. }
        | Utter(_)
        | Saying { .. }
        | Spoken { .. }
        | Interrupt { .. }
        | Understood { .. }
        | UserSpeaking { .. }
        | Consent(_)
        | OptOut { .. }
        | Call { .. }
        | Return(_)
        | Transfer { .. }
        | Transferred
        | Bridge { .. }
        | BridgeEnded
        | TransferFailed { .. }
        | Dispose { .. }
        | NoteAnswer(_)
        | Disclosed(_)
        | ConsentAsked { .. }
        | Note { .. }
        | NoteAttestation(_)
        | Hold(_)
        | Measure(_)
        | FirstSound { .. }
        | KeptWaiting
        | LeftAlone { .. }
        | Doubt
        | Quality(_)
        | MessageLeft
        | Break { .. }
        | HangUp(_) => Err(refused("queued", "talk", "it has not been dialled")),
    }
}

fn look_while_waiting(session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    match session.phase {
        Phase::Scheduled { at } if now >= at => enqueue(session, now),
        Phase::Queued { until } if now >= until => slot_never_came(session, now),
        _ => Ok((session, Vec::new())),
    }
}

/// The call is on its way, and nobody has answered; or it was picked up, and it is not known yet by whom.
pub(super) fn while_dialing(session: Session, command: Command, now: Moment) -> Result<(Session, Vec<Effect>)> {
    use Command::*;
    let Phase::Dialing {
        dialed_at,
        give_up_at,
        ringing,
    } = session.phase
    else {
        return Ok((session, Vec::new()));
    };
    let is_picked_up = session.call.picked_up_at.is_some();
    match command {
        Ring => ring(session),
        PickUp if !is_picked_up => pick_up(session, now),
        Answer { by, recording_id } => answer(session, by, recording_id, now),
        // A call that was picked up is never placed again.
        Refuse { refusal, sip } if !is_picked_up && refusal == Refusal::Congested => send_back(session, sip, now),
        Refuse { refusal, .. } if !is_picked_up && refusal == Refusal::NotPlaced => not_placed(session),
        // Only what was never placed goes back.
        Requeue { dialed_at: of } if of == dialed_at && !ringing => requeue(session, now),
        Refuse { refusal, sip } => refuse(session, refusal, sip, now),
        Tick if now >= give_up_at => give_up(session, now),
        Abandon(abandoned) => abandon(session, abandoned, now),
        // As if the room had been ended.
        End if session.call.room_id.is_some() => expire(session, now),
        End => canceled(session, EndedBy::Api, None, now),
        Shutdown => canceled(session, EndedBy::System, Some(STOPPED), now),
        HangUp(by) => hang_up_early(session, by, now),
        Break { reason, why } if is_picked_up => {
            finish(session, (Status::Failed, reason), EndedBy::System, Some(why), now)
        }
        Quality(quality) => heard_so_well(session, quality),
        KeptWaiting if is_picked_up => kept_waiting(session),
        Doubt if is_picked_up => doubt(session),
        Note { kind, detail } => note(session, kind, detail, now),
        NoteAttestation(attestation) => note_attestation(session, attestation),
        Lose { last_seen } => lose(session, last_seen, now),
        Label(metadata) => label(session, metadata),

        // On hold nobody's silence counts, and nobody's does here; nobody waits, or is doubted, who has not picked up.
        Hold(_) | KeptWaiting | Doubt => Ok((session, Vec::new())),
        Tick | Dispatch { .. } | Postpone { .. } | Reject(_) | Release | Extend { .. } | Requeue { .. } | PickUp => {
            Ok((session, Vec::new()))
        }
        Evaluate(_) | Delete => Err(refused("live", "be evaluated or deleted", "wait until it has ended")),
        Utter(_)
        | Saying { .. }
        | Spoken { .. }
        | Interrupt { .. }
        | Understood { .. }
        | UserSpeaking { .. }
        | Consent(_)
        | OptOut { .. }
        | Call { .. }
        | Return(_)
        | Transfer { .. }
        | Transferred
        | Bridge { .. }
        | BridgeEnded
        | TransferFailed { .. }
        | Dispose { .. }
        | NoteAnswer(_)
        | Disclosed(_)
        | ConsentAsked { .. }
        | Measure(_)
        | FirstSound { .. }
        | LeftAlone { .. }
        | MessageLeft
        | Break { .. } => Err(refused("dialing", "talk", "nobody has answered")),
    }
}

/// Somebody, or something, has picked up.
pub(super) fn while_conversing(session: Session, command: Command, now: Moment) -> Result<(Session, Vec<Effect>)> {
    use Command::*;
    let Phase::Conversing(talk) = &session.phase else {
        return Ok((session, Vec::new()));
    };
    let is_transferring = matches!(talk.mode, CallMode::Transferring { .. });
    let is_bridged = matches!(talk.mode, CallMode::Bridged { .. });
    // Said to the agent and understood when somebody else had taken over, or pressed since: obeyed as after the end, once.
    let is_late_wish = is_bridged && session.call.opted_out_at.is_none();
    match command {
        Extend { held, by } if held == session.call.hold_cents && by.0 > 0 => extend(session, by, now),
        Utter(utterance) => utter(session, utterance, now),
        Saying { place, content } => saying(session, place, content),
        Spoken {
            place,
            ms,
            audio,
            content,
        } => spoken(session, place, (ms, audio, content), now),
        Interrupt { said, played_ms } => interrupt(session, said, played_ms, now),
        Understood { place, words } => understood(session, place, words),
        UserSpeaking { until } => user_speaking(session, until, now),
        Consent(granted) if talk.is_heard() => consent(session, granted, now),
        OptOut { purge_after } if talk.is_heard() || is_late_wish => opt_out(session, purge_after, now),
        Consent(false) if is_late_wish && session.call.consent != super::Consent::Refused => {
            consent(session, false, now)
        }
        Call { call, own, until } => call_tool(session, (call, own), until, now),
        Return(answer) => take_answer(session, answer, now),
        Transfer { to } => hand_over(session, to, now),
        Transferred if is_transferring => end_talk(session, EndReason::Transferred, EndedBy::Agent, None, now),
        Bridge { to } if is_transferring => bridge(session, to, now),
        // By whoever has taken over, as the agent would.
        BridgeEnded if is_bridged => hang_up(session, EndedBy::Agent, now),
        TransferFailed { why } if is_transferring => take_back(session, &why, now),
        Dispose { code, note } => dispose(session, code, note, now),
        NoteAnswer(answered) => note_answer(session, answered, now),
        Disclosed(said) => disclosed(session, said, now),
        ConsentAsked { basis } => consent_asked(session, basis, now),
        Note { kind, detail } => note(session, kind, detail, now),
        NoteAttestation(attestation) => note_attestation(session, attestation),
        Hold(is_held) => put_on_hold(session, is_held, now),
        Measure(marks) => measure(session, &marks, now),
        FirstSound { ms, greeted } => first_sound(session, (ms, greeted), now),
        KeptWaiting => kept_waiting(session),
        LeftAlone { played } => left_alone(session, played, now),
        Quality(quality) => heard_so_well(session, quality),
        MessageLeft if talk.mode == CallMode::LeavingMessage => {
            end_talk(session, EndReason::VoicemailLeft, EndedBy::Agent, None, now)
        }
        Break { .. } | Shutdown if talk.farewell().is_some() => hang_up(session, EndedBy::System, now),
        Break { reason, why } => finish(session, (Status::Failed, reason), EndedBy::System, Some(why), now),
        Shutdown => end_talk(session, EndReason::Canceled, EndedBy::System, Some(STOPPED), now),
        HangUp(by) => hang_up(session, by, now),
        End => hang_up(session, EndedBy::Api, now),
        Tick => look_at_the_time(session, now),
        Lose { last_seen } => lose(session, last_seen, now),
        Label(metadata) => label(session, metadata),

        // What is on its way while the call takes another course comes too late.
        Consent(_)
        | OptOut { .. }
        | Transferred
        | Bridge { .. }
        | BridgeEnded
        | TransferFailed { .. }
        | MessageLeft => Ok((session, Vec::new())),
        Abandon(_)
        | Dispatch { .. }
        | Postpone { .. }
        | Reject(_)
        | Release
        | Extend { .. }
        | Requeue { .. }
        | Ring
        | PickUp
        | Doubt
        | Answer { .. } => Ok((session, Vec::new())),

        Refuse { .. } => Err(refused("conversing", "be refused", "it was answered")),
        Evaluate(_) | Delete => Err(refused("live", "be evaluated or deleted", "wait until it has ended")),
    }
}

/// It is over: what is found out about it may still be added, a wish that was said is still obeyed, and what was said may be forgotten.
pub(super) fn when_ended(session: Session, command: Command, now: Moment) -> Result<(Session, Vec<Effect>)> {
    use Command::*;
    let is_forgotten = session.call.deleted_at.is_some();
    match command {
        // What is forgotten stays forgotten; only its job is told to be done.
        Evaluate(found) if is_forgotten => {
            let told = found.job.map(|job| Fact::SaveEvaluation(job).into());
            Ok((session, told.into_iter().collect()))
        }
        Label(_) | Delete if is_forgotten => Ok((session, Vec::new())),

        Label(metadata) => label(session, metadata),
        Evaluate(evaluated) => evaluate(session, evaluated, now),
        Delete => delete(session, now),

        // Said before the end and understood after it: that counts.
        OptOut { purge_after } => opt_out_late(session, purge_after, now),
        Consent(false) => objection_late(session, now),

        // Ticks come early and carriers repeat themselves: a second time is no change, not an error.
        Tick
        | Dispatch { .. }
        | Extend { .. }
        | Postpone { .. }
        | Release
        | Reject(_)
        | Ring
        | PickUp
        | Answer { .. }
        | Refuse { .. }
        | Utter(_)
        | Saying { .. }
        | Spoken { .. }
        | Interrupt { .. }
        | Understood { .. }
        | UserSpeaking { .. }
        | Consent(true)
        | Call { .. }
        | Return(_)
        | Transferred
        | Bridge { .. }
        | BridgeEnded
        | TransferFailed { .. }
        | Dispose { .. }
        | NoteAnswer(_)
        | Disclosed(_)
        | ConsentAsked { .. }
        | Requeue { .. }
        | Note { .. }
        | NoteAttestation(_)
        | Hold(_)
        | Measure(_)
        | FirstSound { .. }
        | KeptWaiting
        | LeftAlone { .. }
        | Doubt
        | Quality(_)
        | MessageLeft
        | Break { .. }
        | HangUp(_)
        | Shutdown
        | Abandon(_)
        | Lose { .. } => Ok((session, Vec::new())),

        End => Err(refused("ended", "end", "it has ended already")),
        Transfer { .. } => Err(refused("ended", "be transferred", "it has ended already")),
    }
}

/// Nobody talked in its room.
fn expire(session: Session, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let end = (Status::NoAnswer, EndReason::RoomExpired);
    finish(session, end, EndedBy::Api, None, now)
}

/// Somebody else is called to take over, if there is a line for that and the agent is not doing something else.
fn hand_over(session: Session, to: E164, now: Moment) -> Result<(Session, Vec<Effect>)> {
    let why_not = match &session.phase {
        _ if session.call.room_id.is_some() => "it is held in a room, which has no telephone line",
        Phase::Conversing(talk) if talk.mode == CallMode::Talking => return transfer(session, to, now),
        _ => "it is being handed over or ended already",
    };
    Err(refused("conversing", "be transferred", why_not))
}

fn label(mut session: Session, metadata: Metadata) -> Result<(Session, Vec<Effect>)> {
    Arc::make_mut(&mut session.call).metadata = metadata;
    Ok((session, Vec::new()))
}
