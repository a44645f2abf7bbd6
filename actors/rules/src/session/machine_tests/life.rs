//! What holds for every session, whatever happens to it, in whatever order.
use super::*;
use crate::event::Event;
use entities::ledger::{Movement, What};
use proptest::prelude::*;

/// One command that was not refused: the state before and after, and what it caused.
struct Step {
    command: Command,
    at: Moment,
    before: Session,
    after: Session,
    effects: Vec<Effect>,
}

/// A session's life, from its birth on.
struct Life {
    born: Session,
    told_at_birth: Vec<Effect>,
    steps: Vec<Step>,
    now: Moment,
}

impl Life {
    /// Each step is a command, some seconds after the one before. A refused command leaves the session as it was.
    fn of((born, told_at_birth): (Session, Vec<Effect>), steps: &[(Command, i64)]) -> Life {
        let mut life = Life {
            born,
            told_at_birth,
            steps: Vec::new(),
            now: at(0),
        };
        for (command, pause) in steps {
            life.now = life.now.plus_seconds(*pause);
            // A call is placed at that moment.
            life.step(match command {
                Command::Dispatch { .. } => Command::Dispatch {
                    at: life.now,
                    hold: Cents(100),
                },
                // By whoever has just looked.
                Command::Extend { by, .. } => Command::Extend {
                    held: life.last().call.hold_cents,
                    by: *by,
                },
                command => command.clone(),
            });
        }
        life
    }
    fn step(&mut self, command: Command) {
        let (before, at) = (self.last().clone(), self.now);
        if let Ok((after, effects)) = transition(before.clone(), command.clone(), at) {
            self.steps.push(Step {
                command,
                at,
                before,
                after,
                effects,
            });
        }
    }
    /// On, by nothing but its alarms.
    fn until_the_end(mut self) -> Life {
        // What is set aside for it is looked at again and again.
        for _ in 0..40 {
            if let Some(due) = next_deadline(self.last()) {
                self.now = self.now.max(due);
                self.step(Command::Tick);
            }
        }
        self
    }
    fn last(&self) -> &Session {
        self.steps.last().map_or(&self.born, |step| &step.after)
    }
    fn states(&self) -> impl Iterator<Item = &Session> {
        std::iter::once(&self.born).chain(self.steps.iter().map(|step| &step.after))
    }
    fn effects(&self) -> impl Iterator<Item = &Effect> {
        self.told_at_birth
            .iter()
            .chain(self.steps.iter().flat_map(|step| &step.effects))
    }
    fn kinds(&self) -> Vec<String> {
        kinds(&self.effects().cloned().collect::<Vec<_>>())
    }
    fn count(&self, kind: &str) -> usize {
        self.kinds().iter().filter(|known| *known == kind).count()
    }
    fn end(&self) -> &End {
        let Phase::Ended(end) = &self.last().phase else {
            panic!("it has no alarm left")
        };
        end
    }
    /// How often it went from one such state to the other.
    fn moves(&self, from: fn(&Session) -> bool, to: fn(&Session) -> bool) -> usize {
        self.steps
            .iter()
            .filter(|step| from(&step.before) && to(&step.after))
            .count()
    }
    fn recordings(&self) -> Vec<&recording::Model> {
        let started = self.effects().filter_map(|effect| match effect {
            Effect::Fact(Fact::SaveRecording(row)) => Some(row),
            _ => None,
        });
        started.collect()
    }
    fn last_event(&self) -> SessionFailed {
        let told = self.effects().find_map(|effect| match effect {
            Effect::Fact(Fact::Emit(Event::SessionEnded(told))) => Some(told.clone().into()),
            Effect::Fact(Fact::Emit(Event::SessionFailed(told))) => Some(told.clone()),
            _ => None,
        });
        told.unwrap()
    }
}

fn is_queued(session: &Session) -> bool {
    matches!(session.phase, Phase::Queued { .. })
}
fn is_over(session: &Session) -> bool {
    matches!(session.phase, Phase::Ended(_))
}

/// Of a campaign, of the API, or from outside; with any settings.
fn rows() -> impl Strategy<Value = Row> {
    let row = prop::sample::select(vec![call(), api_call(), call_at(100), incoming()]);
    let mode = prop::sample::select(vec![ConsentMode::None, ConsentMode::Notice, ConsentMode::Verbal]);
    let kept = (mode, prop::option::of(1..30_i32)).prop_map(|(consent, retention_days)| Recorded {
        channels: Channels::Dual,
        consent,
        retention_days,
        transfers: false,
    });
    let action = prop::sample::select(vec![
        VoicemailAction::Hangup,
        VoicemailAction::LeaveMessage,
        VoicemailAction::Continue,
    ]);
    let settings = (
        prop::option::of(kept),
        action,
        any::<[bool; 3]>(),
        prop::sample::select(vec![0, 5, 30, 600]),
    );
    (row, settings, -5..40_i32).prop_map(|(mut row, (recording, action, flags, silence_seconds), price)| {
        row.price_cents_per_minute = price;
        row.options.recording = recording;
        row.options.voicemail.action = action;
        row.options.silence_seconds = silence_seconds;
        [
            row.options.has_dispositions,
            row.options.has_questions,
            row.options.voicemail.counts_as_reached,
        ] = flags;
        row
    })
}

fn born() -> impl Strategy<Value = (Session, Vec<Effect>)> {
    (rows(), any::<bool>(), 0..60_i64).prop_map(|(row, waits, hold)| {
        let holding = || Row {
            hold_cents: Cents(hold),
            ..row.clone()
        };
        match (row.direction, waits) {
            (Direction::Inbound, _) => Session::received(holding(), url(), at(0)),
            (Direction::Outbound, true) => Session::queued(row, url(), at(0)),
            (Direction::Outbound, false) => Session::dialed(holding(), url(), at(0)),
        }
    })
}

/// Any command, those of a talk more often.
fn steps() -> impl Strategy<Value = Vec<(Command, i64)>> {
    use AnsweredBy::{Fax, Human, Ivr, Unknown, Voicemail};
    let usual = prop::sample::select(vec![
        Command::Tick,
        dispatch_at(15),
        Command::Ring,
        Command::PickUp,
        answer_by(Human),
        answer_by(Unknown),
    ]);
    let talked = prop_oneof![
        (prop::sample::select(vec![Speaker::Agent, Speaker::User]), 0..20_000_u64).prop_map(|(role, ms)| utter(
            role,
            "Well, well.",
            ms
        )),
        (0..900_i64).prop_map(look_up),
        prop::sample::select(vec![
            said(),
            found(false),
            found(true),
            Command::Consent(true),
            transfer_to_sales(),
            nobody_there(),
            bridge_to_sales(),
            Command::Hold(true),
            Command::Hold(false),
            heard_well(),
            answer_by(Voicemail),
            answer_by(Ivr),
            answer_by(Fax),
        ]),
        (0..30_i64).prop_map(extend_by),
    ];
    let of_the_queue = prop_oneof![Just(dispatch_at(0)), (0..900_i64).prop_map(postpone_to)];
    let found_out = prop::sample::select(vec![Evaluator::Human, Evaluator::Llm, Evaluator::Rules]);
    let command = prop_oneof![
        6 => usual,
        8 => talked,
        2 => of_the_queue,
        1 => prop::sample::select(vec![refuse(Refusal::Congested), refuse(Refusal::NotPlaced)]),
        1 => prop::sample::select(vec![Command::Consent(false), opt_out(), Command::HangUp(EndedBy::Caller)]),
        1 => found_out.prop_map(|by| evaluated("sold", by)),
        2 => prop::sample::select(commands()),
    ];
    prop::collection::vec((command, prop_oneof![6 => 0..10_i64, 1 => 0..700_i64]), 0..40)
}

proptest! {
    #[test]
    fn after_the_end_only_what_is_found_out_what_was_wished_and_what_is_forgotten_has_effects(born in born(), steps in steps()) {
        for step in Life::of(born, &steps).steps.iter().filter(|step| is_over(&step.before)) {
            prop_assert_eq!(&step.before.phase, &step.after.phase);
            let wishes = matches!(step.command, Command::OptOut { .. } | Command::Consent(false));
            let may = wishes || matches!(step.command, Command::Evaluate(_) | Command::Delete);
            prop_assert!(may || step.effects.is_empty(), "{:?}", step.command);
            let labels = matches!(step.command, Command::Label(_));
            prop_assert!(may || labels || step.before == step.after, "{:?}", step.command);
        }
    }

    #[test]
    fn what_a_call_is_born_with_stays_until_it_is_deleted(born in born(), steps in steps()) {
        let rows: Vec<Row> = Life::of(born, &steps).states().map(Session::row).collect();
        let deleted = rows.iter().position(|row| row.deleted_at.is_some()).unwrap_or(rows.len());
        for row in &rows[..deleted] {
            prop_assert_eq!(row.born_with(), rows[0].born_with());
        }
    }

    #[test]
    fn two_ticks_equal_one(born in born(), steps in steps(), now in 0..2_000_i64) {
        for session in Life::of(born, &steps).states() {
            let once = after(session.clone(), Command::Tick, now);
            prop_assert_eq!(transition(once.clone(), Command::Tick, at(now)).unwrap(), (once, Vec::new()));
        }
    }

    #[test]
    fn a_tick_at_next_deadline_always_changes_something_and_none_before(born in born(), steps in steps()) {
        for session in Life::of(born, &steps).states() {
            let Some(due) = next_deadline(session) else {
                prop_assert!(is_over(session));
                continue;
            };
            let (on_time, effects) = transition(session.clone(), Command::Tick, due).unwrap();
            prop_assert!(on_time != *session && !effects.is_empty());
            let early = transition(session.clone(), Command::Tick, due.plus_millis(-1)).unwrap();
            prop_assert_eq!(early, (session.clone(), Vec::new()));
        }
    }

    #[test]
    fn created_once_started_at_most_once_and_ended_exactly_once(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        prop_assert_eq!(life.count("session.created"), 1);
        prop_assert_eq!(life.count("session.started"), usize::from(life.end().started_at.is_some()));
        prop_assert_eq!(life.count("session.ended") + life.count("session.failed"), 1);
        let kinds = life.kinds();
        prop_assert_eq!(&kinds[0], "session.created");
        // These may be found out after the end.
        let late = ["session.disposition_set", "session.opt_out_detected", "session.consent_refused"];
        let mut of_the_talk = kinds.iter().filter(|kind| kind.starts_with("session.") && !late.contains(&kind.as_str()));
        let last = of_the_talk.next_back().unwrap();
        prop_assert!(["session.ended", "session.failed"].contains(&last.as_str()), "{}", last);
    }

    #[test]
    fn its_status_goes_only_where_the_contract_lets_it(born in born(), steps in steps()) {
        use Status::*;
        let life = Life::of(born, &steps).until_the_end();
        for step in &life.steps {
            let way = (step.before.status(), step.after.status());
            let is_known = way.0 == way.1
                || matches!(way, (Queued, InProgress | Busy | NoAnswer | Voicemail | Failed))
                || matches!(way, (InProgress, Completed | Failed | Voicemail));
            prop_assert!(is_known, "{way:?} by {:?}", step.command);
        }
    }

    #[test]
    fn nobody_opts_out_or_refuses_twice_and_who_does_is_talked_with_no_more(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        let (outs, noes) = (life.count("session.opt_out_detected"), life.count("session.consent_refused"));
        prop_assert!(outs <= 1 && noes <= 1);
        // Who refuses to be recorded is talked with no more, and may have said something else that is understood after the end.
        prop_assert!(outs + noes <= 1 || life.end().started_at.is_some());
        prop_assert_eq!(life.count("AddToDnc"), outs);
        let row = life.last().row();
        prop_assert_eq!(row.opted_out_at.is_some(), outs == 1);
        prop_assert_eq!(row.consent == Consent::Refused, noes == 1);
        let left = life.steps.iter().position(|step| matches!(step.command, Command::OptOut { .. } | Command::Consent(false)) && step.before != step.after);
        for step in life.steps.iter().skip(left.unwrap_or(usize::MAX)) {
            let mode = match &step.after.phase { Phase::Conversing(talk) => Some(&talk.mode), _ => None };
            // Or with somebody else, and the agent was gone already.
            let is_left = mode.is_none_or(|mode| matches!(mode, CallMode::Leaving { .. } | CallMode::Bridged { .. }));
            prop_assert!(is_left, "{:?}", step.command);
        }
    }

    #[test]
    fn recorded_is_only_what_may_be_and_a_purge_is_announced_only_of_that(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        let recordings = life.recordings();
        let row = life.last().row();
        let begun = life.states().any(|session| matches!(&session.phase, Phase::Conversing(talk) if talk.recorded_from.is_some()));
        prop_assert!(recordings.len() <= usize::from(begun));
        let may_be = row.options.recording.as_ref().is_some_and(|wanted| {
            let was_granted = life.states().any(|session| session.call.consent == Consent::Granted);
            wanted.consent != ConsentMode::Verbal || was_granted
        });
        prop_assert!(!begun || (may_be && row.answered_by.is_some_and(AnsweredBy::is_talked_to)));
        let announced = life.effects().find_map(|effect| match effect {
            Effect::Fact(Fact::Emit(Event::SessionOptOutRecordingPendingPurge(told))) => Some((told.recording_id, told.purge_after)),
            _ => None,
        });
        prop_assert!(announced.is_none() || recordings.len() == 1);
        for recording in recordings {
            prop_assert_eq!(Some(recording.id), row.recording_id);
            let doomed = recording.purge_after.filter(|_| recording.purge_reason == Some(PurgeReason::OptOut));
            prop_assert_eq!(doomed.map(|at| (recording.id, at)), announced);
            let from = row.started_at.unwrap().plus_millis(recording.from_ms);
            prop_assert!(from <= row.ended_at.unwrap());
        }
    }

    #[test]
    fn every_placed_call_is_hung_up_and_every_slot_freed_once(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        let sent_back = life.moves(Session::is_live, is_queued);
        prop_assert_eq!(life.count("HangUp"), life.moves(Session::is_live, |session| !session.is_live()));
        prop_assert_eq!(life.count("SlotFreed"), sent_back + 1);
        let requeued = life.steps.iter().filter(|step| matches!(step.command, Command::Requeue { .. }) && step.before != step.after).count();
        prop_assert_eq!(life.count("TrunkCongested") + life.count("NoRoom") + requeued, sent_back);
        prop_assert_eq!(life.count("OverheardEnd"), 1);
    }

    #[test]
    fn who_is_called_to_take_over_takes_over_or_is_called_off(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        let is_transferring = |session: &Session| matches!(&session.phase, Phase::Conversing(ActiveCall { mode: CallMode::Transferring { .. }, .. }));
        prop_assert_eq!(life.count("session.transfer_initiated"), life.count("Transfer"));
        prop_assert_eq!(life.count("Transfer"), life.moves(|_| true, is_transferring) - life.moves(is_transferring, is_transferring));
        let is_talking = |session: &Session| matches!(&session.phase, Phase::Conversing(talk) if talk.mode == CallMode::Talking);
        for step in &life.steps {
            let is_leaving = |session: &Session| matches!(&session.phase, Phase::Conversing(ActiveCall { mode: CallMode::Leaving { .. }, .. }));
            // Whoever wants no more calls, or no recording, is not handed over either.
            let is_left = is_transferring(&step.before) && is_leaving(&step.after);
            let is_back = is_transferring(&step.before) && is_talking(&step.after);
            let by_the_line = matches!(step.command, Command::TransferFailed { .. });
            // The line is told of what it does not know itself.
            let wanted: &[&str] = if is_left || is_back && !by_the_line { &["TransferEnded"] } else { &[] };
            let told: Vec<_> = kinds(&step.effects).into_iter().filter(|kind| kind == "TransferEnded").collect();
            prop_assert_eq!(told, wanted, "{:?}", step.command);
            prop_assert!(!is_back || by_the_line || matches!(step.command, Command::Tick), "{:?}", step.command);
        }
        prop_assert!(life.end().reason != EndReason::Transferred || life.count("Transfer") > 0);
    }

    #[test]
    fn whoever_waits_for_a_slot_has_said_so(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        // A birth says it too, even to one that waits for its time yet.
        let born_waiting = usize::from(!life.born.is_live());
        prop_assert_eq!(life.count("SessionQueued"), born_waiting + life.moves(|session| !is_queued(session), is_queued));
    }

    #[test]
    fn whom_it_calls_and_for_which_attempt_never_changes(born in born(), steps in steps()) {
        let call = born.0.call.clone();
        let life = Life::of(born, &steps).until_the_end();
        let said = |row: &Row| (row.id, row.to_number.clone(), row.from_number.clone(), row.contact_id, row.attempt);
        prop_assert!(life.states().all(|session| said(&session.call) == said(&call) && said(&session.row()) == said(&call)));
        prop_assert_eq!(life.count("FinishAttempt"), usize::from(call.contact_id.is_some()));
        // A call that came in is counted once, in the end.
        let ended = life.last().row();
        let is_one = match ended.room_id {
            Some(_) => ended.answered_by.is_some(),
            None => ended.dialed_at.is_some() || ended.direction == Direction::Inbound,
        };
        prop_assert_eq!(life.count("CountCall"), usize::from(is_one));
        prop_assert_eq!(life.count("CountInbound"), usize::from(call.options.number_id.is_some()));
    }

    #[test]
    fn a_call_that_was_answered_is_counted_once_as_served_or_as_abandoned(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        let placed: Vec<_> = life.effects().filter_map(|effect| match effect {
            Effect::Fact(Fact::CountCall(counted)) => counted.placed.clone(),
            _ => None,
        }).collect();
        let row = life.last().row();
        prop_assert_eq!(placed.len(), usize::from(row.direction == Direction::Outbound && row.room_id.is_none() && row.dialed_at.is_some()));
        for placed in placed {
            prop_assert_eq!(placed.abandoned, row.abandoned);
            prop_assert!(placed.abandoned.is_none() || placed.is_live);
            prop_assert!(!placed.is_live || row.picked_up_at.or(row.started_at).is_some());
            prop_assert!(!(placed.is_blocked && placed.is_live));
        }
    }

    #[test]
    fn session_ended_is_told_if_and_only_if_a_person_was_talked_with_to_the_end(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        let end = life.end();
        prop_assert_eq!(life.count("session.ended") == 1, end.status == Status::Completed);
        let cut_off = matches!(end.reason, EndReason::NodeLost | EndReason::ProviderError | EndReason::AgentError);
        let talked = end.started_at.is_some() && end.answered_by.is_some_and(AnsweredBy::is_talked_to) && !cut_off;
        prop_assert_eq!(end.status == Status::Completed, talked);
    }

    #[test]
    fn what_is_set_aside_is_in_its_row_and_settled_once_for_what_it_cost(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        let row = life.last().row();
        let holds: Vec<_> = life.effects().filter_map(|effect| match effect {
            Effect::Fact(Fact::Move(Movement { what: What::Hold { cents, .. }, .. })) => Some(*cents),
            _ => None,
        }).collect();
        let settled: Vec<_> = life.effects().filter_map(|effect| match effect {
            Effect::Fact(Fact::Move(Movement { what: What::Settle { held, cost, .. }, .. })) => Some((*held, *cost)),
            _ => None,
        }).collect();
        let extended = life.steps.iter().filter(|step| matches!(step.command, Command::Extend { .. }) && step.before != step.after);
        prop_assert!(holds.len() <= 1 + extended.count());
        prop_assert_eq!(holds.iter().map(|cents| cents.0).sum::<i64>(), row.hold_cents.0);
        let due = (row.hold_cents, row.actual_cost_cents);
        prop_assert_eq!(settled, if due == (Cents(0), Cents(0)) { Vec::new() } else { vec![due] });
        prop_assert!(row.actual_cost_cents == Cents(0) || row.dialed_at.is_some());
    }

    #[test]
    fn a_call_asks_for_more_when_its_hold_is_used_up_and_never_ends_by_that(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        for step in &life.steps {
            let asked = step.effects.iter().any(|effect| matches!(effect, Effect::Work(Work::ExtendHold { .. })));
            let Phase::Conversing(talk) = &step.before.phase else {
                prop_assert!(!asked);
                continue;
            };
            let (held, price) = (step.before.call.hold_cents.0, i64::from(step.before.call.price_cents_per_minute));
            let twice = step.before.call.bridged_at.map_or(0, |since| step.at.since(since).as_millis());
            let lasted = step.at.since(talk.started_at).as_millis() + twice;
            prop_assert!(!asked || (held > 0 && price > 0 && lasted >= u128::try_from(held * 60_000 / price).unwrap()));
            prop_assert!(!asked || !is_over(&step.after));
        }
        prop_assert_ne!(life.end().reason, EndReason::CreditsDepleted);
    }

    #[test]
    fn event_contact_and_row_tell_the_same_end_and_nobody_pays_for_no_answer(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        let (told, row) = (life.last_event(), life.last().row());
        let how = (told.status, Some(told.end_reason), told.started_at, Some(told.ended_at));
        prop_assert_eq!(how, (row.status, row.end_reason, row.started_at, row.ended_at));
        prop_assert_eq!((told.duration_seconds, told.actual_cost_cents), (row.duration_seconds, row.actual_cost_cents));
        for effect in life.effects() {
            if let Effect::Fact(Fact::FinishAttempt { attempt, .. }) = effect {
                let same = (attempt.ending, attempt.duration_seconds, attempt.actual_cost_cents);
                let ending = if life.end().is_given_back() {
                    Ending::GivenBack
                } else {
                    Ending::Call(row.status, row.end_reason.unwrap())
                };
                prop_assert_eq!(same, (ending, row.duration_seconds, row.actual_cost_cents));
                let how = (attempt.dialed_at, attempt.answered);
                prop_assert_eq!(how, (row.dialed_at, row.answered_by.is_some()));
                prop_assert!(attempt.reached || !attempt.ending.is_completed());
            }
        }
        prop_assert!(row.actual_cost_cents >= Cents(0));
        prop_assert!(row.started_at.is_some() || row.actual_cost_cents == Cents(0));
    }

    #[test]
    fn what_is_told_is_what_was_said_in_the_order_of_time(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        let (told, end) = (life.last_event(), life.end());
        let overheard = life.effects().filter_map(|effect| match effect {
            Effect::Hint(Hint::Overheard { turn, .. }) => Some((turn.role, turn.t)),
            _ => None,
        });
        let turns: Vec<_> = told.transcript.iter().map(|turn| (turn.role, turn.t)).collect();
        prop_assert_eq!(overheard.collect::<Vec<_>>(), turns.clone());
        prop_assert!(turns.is_sorted_by(|one, next| one.1 <= next.1));
        prop_assert_eq!(told.transcript_url.is_some(), !turns.is_empty());
        let length = end.started_at.map_or(0.0, |started_at| seconds(started_at, end.at));
        for turn in &told.transcript {
            // After a leap of the clock something may have been said when the call had lasted longer than it may.
            let longest = f64::from(life.last().call.max_duration_seconds);
            let is_at_its_longest = length >= longest || life.last().call.bridged_at.is_some();
            prop_assert!(turn.t >= 0.0 && (turn.t <= length || is_at_its_longest));
            prop_assert!(turn.end_t.is_none_or(|ends| ends >= turn.t));
        }
        let stored = life.effects().find_map(|effect| match effect { Effect::Fact(Fact::SaveTranscript(stored)) => Some(stored), _ => None });
        let entries = stored.map(|stored| stored.timeline.0.clone()).unwrap_or_default();
        prop_assert!(entries.is_sorted_by_key(|entry| entry.at));
        let times = [end.dialed_at, end.started_at, Some(end.at)];
        prop_assert!(times.iter().flatten().is_sorted());
    }

    #[test]
    fn silence_ends_only_who_was_silent_for_so_long(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        let Some(last) = life.steps.iter().find(|step| is_over(&step.after) && !is_over(&step.before)) else { return Ok(()) };
        if life.end().reason != EndReason::SilenceTimeout { return Ok(()) }
        let silence = life.born.call.options.silence_seconds;
        prop_assert!(silence > 0);
        // Who is cut in on has stopped speaking.
        let spoke = life.steps.iter().take_while(|step| !is_over(&step.after)).filter_map(|step| match (&step.command, &step.before.phase) {
            (Command::Utter(_), Phase::Conversing(_)) => Some(step.at),
            (Command::Interrupt { .. }, Phase::Conversing(_)) => Some(step.at),
            _ => None,
        });
        let quiet_from = spoke.chain(life.end().started_at).max().unwrap();
        prop_assert!(last.at >= quiet_from.plus_seconds(silence.into()));
    }

    #[test]
    fn a_disposition_is_told_once_and_no_machine_overrules_anybody(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        prop_assert!(life.count("session.disposition_set") <= 1);
        for Step { command, before, effects, .. } in &life.steps {
            let is_found = matches!(command, Command::Evaluate(_)) && before.call.deleted_at.is_none();
            let is_first = before.call.disposition_by.is_none();
            let has_event = before.call.campaign_id.is_some() && before.call.options.has_dispositions;
            let is_told = kinds(effects).iter().any(|kind| kind == "session.disposition_set");
            prop_assert_eq!(is_told, is_found && is_first && has_event, "{:?}", command);
        }
        for step in life.steps.iter().filter(|step| matches!(&step.command, Command::Evaluate(found) if found.by != Evaluator::Human)) {
            let decided = |session: &Session| (session.call.disposition_by, session.call.disposition_code.clone());
            prop_assert!(step.before.call.disposition_by.is_none() || decided(&step.before) == decided(&step.after));
        }
        let row = life.last().row();
        prop_assert_eq!(row.disposition_by.is_some(), row.disposition_code.is_some());
        prop_assert!(life.count("Evaluate") == 0 || life.end().status == Status::Completed);
    }

    #[test]
    fn a_call_that_was_picked_up_is_never_placed_again_and_costs_no_more_than_its_longest(born in born(), steps in steps()) {
        let life = Life::of(born, &steps).until_the_end();
        for step in &life.steps {
            prop_assert!(step.before.call.picked_up_at.is_none() || !is_queued(&step.after), "{:?}", step.command);
            prop_assert!(step.before.call.picked_up_at.is_none() || step.before.call.picked_up_at == step.after.call.picked_up_at);
        }
        let (row, end) = (life.last().row(), life.end());
        prop_assert!(end.started_at.is_none() || end.started_at == row.picked_up_at);
        prop_assert!(row.actual_cost_cents <= cost(row.price_cents_per_minute, row.max_duration_seconds));
        prop_assert!(!end.is_given_back() || row.picked_up_at.is_none());
    }

    #[test]
    fn the_cost_is_the_least_number_of_cents_that_covers_the_talk(price in any::<i32>(), seconds in any::<i32>()) {
        let Cents(cents) = cost(price, seconds);
        let sixtieths = i128::from(price.max(0)) * i128::from(seconds.max(0));
        prop_assert!(cents >= 0 && i128::from(cents) * 60 >= sixtieths && (i128::from(cents) - 1) * 60 < sixtieths);
    }

    #[test]
    fn its_row_says_every_state_but_what_is_said_in_a_talk(born in born(), steps in steps()) {
        for session in Life::of(born, &steps).until_the_end().states() {
            let row = session.row();
            let read = Session::from_row(row.clone(), url()).unwrap();
            prop_assert_eq!(row.queued_until.is_some(), is_queued(session));
            prop_assert_eq!((row.status, row.version), (session.status(), session.version));
            match (&session.phase, &read.phase) {
                (Phase::Conversing(talk), Phase::Conversing(known)) => {
                    let times = |talk: &ActiveCall| (talk.dialed_at, talk.started_at, talk.end_by, talk.answered_by);
                    prop_assert_eq!(times(talk), times(known));
                }
                (phase, known) => {
                    prop_assert_eq!(phase, known);
                    prop_assert_eq!(read.row(), row);
                }
            }
        }
    }

    #[test]
    fn cut_off_by_a_crash_at_any_moment_it_ends_once_as_lost_or_waits_on(born in born(), steps in steps()) {
        let life = Life::of(born, &steps);
        for session in life.states().filter(|session| !is_over(session)) {
            let read = Session::from_row(session.row(), url()).unwrap();
            let (lost, effects) = transition(read.clone(), Command::Lose { last_seen: life.now }, life.now).unwrap();
            if !session.is_live() {
                prop_assert_eq!((lost, effects), (read, Vec::new()));
                continue;
            }
            let row = lost.row();
            prop_assert_eq!((row.status, row.end_reason), (Status::Failed, Some(EndReason::NodeLost)));
            let kinds = kinds(&effects);
            prop_assert_eq!(kinds.iter().filter(|kind| *kind == "session.failed").count(), 1);
            let was_recorded = matches!(&session.phase, Phase::Conversing(talk) if talk.recorded_from.is_some());
            prop_assert!(!was_recorded || kinds.contains(&"SaveRecording".to_owned()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn a_talk_never_has_more_turns_than_it_may(room in 0..6_usize, steps in steps()) {
        let mut session = state("talking");
        session.log.turns = vec![session.log.turns[0].clone(); 2_000 - room];
        let life = Life::of((session, Vec::new()), &steps);
        let longest = life.states().map(|session| session.log.turns.len()).max().unwrap();
        prop_assert!(longest <= 2_000);
        prop_assert_eq!(life.count("Overheard"), longest - (2_000 - room));
    }
}
