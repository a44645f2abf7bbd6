//! What a revocation takes, and that it is taken for good.
use super::*;
use crate::{
    consent::{Purposes, Withdrawals, seller_key},
    dnc::DncChannel::{self, Email, Phone, Sms},
    law::{ConsentTier, Purpose},
};

const NUMBER: &str = "+12025550123";
const EMAIL: &str = "ann@example.com";

fn consent(channels: &[DncChannel]) -> Model {
    Model {
        id: ConsentId(uuid::Uuid::from_u128(1)),
        tenant_id: TenantId(uuid::Uuid::from_u128(2)),
        env: Env::Live,
        phone_number: Some(NUMBER.parse().unwrap()),
        email: Some(EMAIL.into()),
        name: None,
        seller: "Acme".into(),
        seller_key: seller_key("Acme"),
        channels: Channels::of(channels.to_vec()),
        purposes: Purposes(vec![Purpose::Marketing]),
        tier: ConsentTier::ExpressWritten,
        covers_automated_voice: true,
        method: "web form".into(),
        source_url: None,
        source_ip: None,
        recording_id: None,
        request_sha256: None,
        consent_sha256: None,
        not_a_condition_of_purchase: true,
        contract_ref: None,
        given_at: Moment::from_millis(1_000),
        expires_at: Some(Moment::from_millis(9_000)),
        evidence: None,
        withdrawals: Withdrawals::default(),
        revoked_at: None,
        revoked_by: None,
        revoked_reason: None,
        given_seq: 3,
        revoked_seq: None,
        fingerprint: String::new(),
        version: 1,
        created_at: Moment::from_millis(1_000),
        created_by: None,
    }
}

fn of_number(channels: &[DncChannel], at: i64) -> Revocation {
    Revocation {
        tenant_id: TenantId(uuid::Uuid::from_u128(2)),
        env: Env::Live,
        what: Revoked::Of(Address::Number(NUMBER.parse().unwrap())),
        channels: Channels::of(channels.to_vec()),
        given_by: None,
        at: Moment::from_millis(at),
        by: None,
        reason: "said so in a call".into(),
        seq: at,
    }
}

#[test]
fn each_channel_is_taken_once_and_the_last_one_ends_it() {
    let mut row = consent(&[Phone, Sms, Email]);
    assert!(of_number(&[Sms], 10).take_from(&mut row));
    assert_eq!(
        (row.standing(), row.revoked_at, row.revoked_seq),
        (Channels(vec![Phone, Email]), None, Some(10))
    );
    assert!(!of_number(&[Sms], 11).take_from(&mut row), "it is gone already");
    assert_eq!(row.revoked_seq, Some(10));
    assert!(of_number(&[Phone, Sms], 12).take_from(&mut row));
    assert_eq!((row.standing(), row.revoked_at), (Channels(vec![Email]), None));
    assert!(of_number(&[], 13).take_from(&mut row), "none named: all");
    assert_eq!(
        (row.standing(), row.revoked_at),
        (Channels(vec![]), Some(Moment::from_millis(13)))
    );
    assert_eq!(row.revoked_reason.as_deref(), Some("said so in a call"));
    let seqs: Vec<i64> = row.withdrawals.0.iter().map(|one| one.seq).collect();
    assert_eq!(seqs, [10, 12, 13]);
    assert!(!of_number(&[], 14).take_from(&mut row), "nothing is left");
    assert_eq!(row.revoked_seq, Some(13));
}

#[test]
fn nobody_elses_and_nothing_newer_is_taken() {
    let all = || of_number(&[], 20);
    let spared = [
        Revocation {
            tenant_id: TenantId(uuid::Uuid::from_u128(9)),
            ..all()
        },
        Revocation {
            env: Env::Test,
            ..all()
        },
        Revocation {
            what: Revoked::Of(Address::Number("+12025550124".parse().unwrap())),
            ..all()
        },
        Revocation {
            what: Revoked::Of(Address::Email("bob@example.com".into())),
            ..all()
        },
        Revocation {
            what: Revoked::One(ConsentId(uuid::Uuid::from_u128(7))),
            ..all()
        },
        Revocation {
            given_by: Some(Moment::from_millis(999)),
            ..all()
        },
    ];
    for revocation in spared {
        let mut row = consent(&[Phone]);
        assert!(!revocation.take_from(&mut row), "{revocation:?}");
        assert_eq!(row, consent(&[Phone]));
    }
    let taken = [
        Revocation {
            what: Revoked::Of(Address::Email(EMAIL.into())),
            ..all()
        },
        Revocation {
            what: Revoked::One(ConsentId(uuid::Uuid::from_u128(1))),
            ..all()
        },
        Revocation {
            given_by: Some(Moment::from_millis(1_000)),
            ..all()
        },
    ];
    for revocation in taken {
        assert!(revocation.take_from(&mut consent(&[Phone])), "{revocation:?}");
    }
}

/// Every order of revocations, of every set of channels: what was taken never stands again, and what has expired never stands.
#[test]
fn what_is_revoked_or_expired_never_stands_at_a_moment_after() {
    let sets: [&[DncChannel]; 8] = [
        &[],
        &[Phone],
        &[Sms],
        &[Email],
        &[Phone, Sms],
        &[Phone, Email],
        &[Sms, Email],
        &[Phone, Sms, Email],
    ];
    for first in sets {
        for second in sets {
            let mut row = consent(&[Phone, Sms, Email]);
            let mut gone: Vec<DncChannel> = Vec::new();
            for (at, set) in [(2_000, first), (3_000, second)] {
                of_number(set, at).take_from(&mut row);
                gone.extend(if set.is_empty() { &[Phone, Sms, Email][..] } else { set });
                for later in [at, at + 1, 8_999, 9_000, i64::MAX] {
                    for channel in [Phone, Sms, Email] {
                        let expected = !gone.contains(&channel) && later < 9_000;
                        let stands = row.stands(channel, Moment::from_millis(later));
                        assert_eq!(stands, expected, "{first:?} {second:?} {channel:?} at {later}");
                    }
                }
                assert_eq!(row.revoked_at.is_some(), row.standing().0.is_empty());
            }
        }
    }
}
