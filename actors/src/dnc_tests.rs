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
        requested_at: None,
        opted_out_at: None,
        created_by: None,
        added_seq: 7,
        removed_at: None,
        removed_reason: None,
        removed_by: None,
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
                None,
            )
        };
        // Whatever it bars, the entry is theirs: no START lifts it.
        for channels in [&both[..], &[Sms]] {
            let (row, outcome) = second(known(Source::SmsStop, &both), channels, source);
            assert_eq!((outcome, row.source, row.version), (DncOutcome::Wider, source, 4));
            assert_eq!(
                (row.reason.as_deref(), row.channels),
                (Some("second"), Channels::of(both.to_vec()))
            );
            // An old entry: the wish of the person is from when it was made.
            assert_eq!(row.opted_out_at, Some(Moment::from_millis(0)));
        }
        // A STOP takes nothing over, but bars more; and nobody takes over from anybody else.
        let (row, outcome) = second(known(source, &both), &both, Source::SmsStop);
        assert_eq!((outcome, row), (DncOutcome::Known, known(source, &both)));
        let (row, outcome) = second(known(source, &[Phone]), &both, Source::SmsStop);
        assert_eq!((outcome, row.source, row.version), (DncOutcome::Wider, source, 4));
        assert_eq!(
            (row.reason.as_deref(), row.channels),
            (Some("first"), Channels::of(both.to_vec()))
        );
        for other in others {
            assert_eq!(second(known(source, &both), &both, other).1, DncOutcome::Known);
        }
    }
    let again = joined(
        known(Source::SmsStop, &both),
        Channels::of(both.to_vec()),
        Source::SmsStop,
        None,
        None,
        None,
    );
    assert_eq!(again, (known(Source::SmsStop, &both), DncOutcome::Known));
}

/// By somebody else.
fn known() -> Model {
    Model {
        id: DncId(uuid::Uuid::from_u128(1)),
        tenant_id: TenantId(uuid::Uuid::from_u128(2)),
        env: Env::Live,
        phone_number: Some("+12025550123".parse().unwrap()),
        email: None,
        channels: Channels::of(vec![Phone, Sms]),
        reason: None,
        source: Source::Manual,
        session_id: None,
        requested_at: None,
        opted_out_at: None,
        created_by: None,
        added_seq: 7,
        removed_at: None,
        removed_reason: None,
        removed_by: None,
        removed_seq: None,
        version: 3,
        created_at: Moment::from_millis(0),
    }
}

#[test]
fn that_somebody_says_it_again_is_kept_and_bars_no_more() {
    let at = |millis| Some(Moment::from_millis(millis));
    let known = known();
    let said = |outcome, opted_out_at, requested_at| said_again((known.clone(), outcome), opted_out_at, requested_at);
    assert_eq!(said(DncOutcome::Known, None, None), (known.clone(), DncOutcome::Known));
    let (row, outcome) = said(DncOutcome::Known, at(5), None);
    assert_eq!((row.opted_out_at, row.version, outcome), (at(5), 3, DncOutcome::Again));
    assert_eq!((row.own_wish_at(), known.own_wish_at()), (at(5), None));
    let (row, outcome) = said(DncOutcome::Known, None, at(4));
    assert_eq!((row.requested_at, row.version, outcome), (at(4), 3, DncOutcome::Again));
    // What is written anyway has its version already.
    let (row, outcome) = said(DncOutcome::Wider, at(6), None);
    assert_eq!((row.opted_out_at, row.version, outcome), (at(6), 3, DncOutcome::Wider));
    // The last wish counts, and none is forgotten.
    let before = Model {
        opted_out_at: at(9),
        ..known.clone()
    };
    assert_eq!(
        said_again((before.clone(), DncOutcome::Known), at(8), None),
        (before, DncOutcome::Known)
    );
}

#[test]
fn what_is_said_later_than_now_was_dated_ahead() {
    let (at, ahead) = (Moment::from_millis(1_000_000), SAME.as_secs() as i64);
    let entry = |source, opted_out_at| Model {
        source,
        opted_out_at,
        created_at: at,
        ..known()
    };
    for (source, opted_out_at, seconds, expected) in [
        (Source::Manual, None, -2 * ahead, false),
        (Source::Manual, Some(at), 0, false),
        (Source::Manual, Some(at), 60, false),
        (Source::Manual, Some(at), -ahead, false),
        (Source::Manual, Some(at), -ahead - 1, true),
        // Of an old entry only its source tells.
        (Source::SmsStop, None, -ahead - 1, true),
    ] {
        let found = is_dated_ahead(&entry(source, opted_out_at), Some(at.plus_seconds(seconds)));
        assert_eq!(found, expected, "{source:?} {opted_out_at:?}, said {seconds} s later");
        // Somebody else puts them on the list.
        assert!(!is_dated_ahead(&entry(source, opted_out_at), None));
    }
}

#[test]
fn a_repeat_is_on_record_where_it_takes_something_back_or_a_day_later() {
    let (at, hour) = (Moment::from_millis(1_000_000), 3600);
    for (said_before, seconds, agreed_since, expected) in [
        (None, 0, false, DncOutcome::Again),
        (Some(at), 0, false, DncOutcome::Known),
        (Some(at), 59, false, DncOutcome::Known),
        (Some(at), 60, false, DncOutcome::Noted),
        (Some(at), 24 * hour - 1, false, DncOutcome::Noted),
        (Some(at), 24 * hour, false, DncOutcome::Again),
        (Some(at), 0, true, DncOutcome::Again),
        (Some(at), hour, true, DncOutcome::Again),
    ] {
        let found = repeated(said_before, at.plus_seconds(seconds), agreed_since);
        assert_eq!(found, expected, "{seconds} s later, {agreed_since}");
    }
}
