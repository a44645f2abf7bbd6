use super::*;
use proptest::prelude::*;
use uuid::Uuid;

fn new(at: u128) -> New {
    let content = (!at.is_multiple_of(3)).then(|| format!(r#"{{"phone_number":"+1500234{at:04}"}}"#));
    New {
        tenant_id: TenantId(Uuid::from_u128(1)),
        env: Env::Live,
        kind: if at.is_multiple_of(2) {
            RecordKind::Attempt
        } else {
            RecordKind::Outcome
        },
        attempt_id: AttemptId(Uuid::from_u128(100 + at / 2)),
        dial_n: 1,
        campaign_id: at.is_multiple_of(5).then(|| CampaignId(Uuid::from_u128(7))),
        number_hash: at.is_multiple_of(2).then(|| format!("{at:032x}")),
        email_hash: at.is_multiple_of(4).then(|| format!("{:032x}", at + 1)),
        consent_id: None,
        body: format!(r#"{{"law":"2026-11-30","attempt_no":{at}}}"#),
        content_sha256: content.as_deref().map(digest),
        content,
    }
}

/// So many rows behind a place, a second apart.
fn chain(before: (i64, &str), rows: usize) -> Vec<Model> {
    let (mut n, mut hash) = (before.0, before.1.to_owned());
    let mut chain = Vec::new();
    for at in 0..rows {
        let millis = i64::try_from(at).unwrap() * 1_000;
        let row = placed(new(at as u128), (n, &hash), Moment::from_millis(millis));
        (n, hash) = (row.n, row.hash.clone());
        chain.push(row);
    }
    chain
}

/// One way to change a row that somebody might hope is not seen.
type Edit = fn(&mut Model);

const EDITS: &[(&str, Edit)] = &[
    ("its workspace", |row| row.tenant_id = TenantId(Uuid::from_u128(2))),
    ("its environment", |row| row.env = Env::Test),
    ("its kind", |row| row.kind = RecordKind::Erasure),
    ("its attempt", |row| row.attempt_id = AttemptId(Uuid::from_u128(9))),
    ("its intent", |row| row.dial_n += 1),
    ("its campaign", |row| {
        row.campaign_id = Some(CampaignId(Uuid::from_u128(8)))
    }),
    ("whom it is about", |row| row.number_hash = Some("f".repeat(32))),
    ("whose address it has", |row| row.email_hash = Some("e".repeat(32))),
    ("its consent", |row| {
        row.consent_id = Some(ConsentId(Uuid::from_u128(3)))
    }),
    ("its time", |row| row.at = row.at.plus_millis(1)),
    ("its body", |row| row.body.push(' ')),
    ("its content", |row| row.content = Some("{}".into())),
    ("its content with its digest", |row| {
        row.content = Some("{}".into());
        row.content_sha256 = Some(digest("{}"));
    }),
    ("that it had a content", |row| {
        row.content = None;
        row.content_sha256 = match row.content_sha256 {
            Some(_) => None,
            None => Some(digest("")),
        };
    }),
    ("its hash", |row| row.hash = "0".repeat(64)),
    ("the hash before it", |row| row.prev_hash = "0".repeat(64)),
    ("all of it, hashed anew", |row| {
        row.body.push(' ');
        row.hash = expected(row);
    }),
];

#[test]
fn a_row_is_hashed_over_each_of_its_parts_with_its_length() {
    let row = &chain((0, ""), 1)[0];
    // As the form says, by hand: another program comes to the same.
    let parts = [
        FORM.to_owned(),
        String::new(),
        "00000000-0000-0000-0000-000000000001".into(),
        "live".into(),
        "1".into(),
        "attempt".into(),
        "00000000-0000-0000-0000-000000000064".into(),
        "1".into(),
        "00000000-0000-0000-0000-000000000007".into(),
        "0".repeat(32),
        format!("{:032x}", 1),
        "0".into(),
        NO_CONTENT.into(),
        hex(&Sha256::digest(row.body.as_bytes())),
    ];
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend(u32::try_from(part.len()).unwrap().to_be_bytes());
        bytes.extend(part.as_bytes());
    }
    assert_eq!(row.hash, hex(&Sha256::digest(&bytes)));
}

#[test]
fn an_opening_stands_under_the_consent_that_it_rests_on() {
    let id = ConsentId(Uuid::from_u128(3));
    let body =
        format!(r#"{{"law":"2026-11-30","facts":{{"channel":"phone","consent":{{"id":"{id}","tier":"written"}}}}}}"#);
    for (kind, body, expected) in [
        (RecordKind::Attempt, body.as_str(), Some(id)),
        (RecordKind::Attempt, r#"{"facts":{"consent":null}}"#, None),
        (RecordKind::Attempt, r#"{"facts":{}}"#, None),
        (RecordKind::Attempt, r#"{"law":"2026-11-30"}"#, None),
        (RecordKind::Outcome, body.as_str(), None),
    ] {
        assert_eq!(consent_in(kind, body), expected, "{body}");
    }
    let mut row = placed(
        New {
            kind: RecordKind::Attempt,
            consent_id: Some(id),
            body,
            ..new(0)
        },
        (0, ""),
        Moment::from_millis(0),
    );
    assert_eq!(check(&row), Ok(()));
    row.consent_id = None;
    assert_eq!(check(&row), Err(Broken::Consent));
}

#[test]
fn a_chain_begins_empty_or_at_its_anchor() {
    let whole = chain((0, ""), 6);
    assert_eq!(first_broken((0, ""), &whole), None);
    let anchor = &whole[2];
    assert_eq!(first_broken((anchor.n, &anchor.hash), &whole[3..]), None);
    assert_eq!(first_broken((0, ""), &whole[3..]), Some((4, Broken::Place)));
    assert_eq!(first_broken((anchor.n, ""), &whole[3..]), Some((4, Broken::Before)));
}

#[test]
fn what_names_a_person_can_be_blanked() {
    let mut rows = chain((0, ""), 8);
    for row in &mut rows {
        row.content = None;
    }
    assert_eq!(first_broken((0, ""), &rows), None);
    assert_eq!(rows.iter().filter(|row| row.is_blanked()).count(), 5);
}

#[test]
fn of_rows_that_were_picked_each_must_be_right_and_behind_the_one_before() {
    let whole = chain((0, ""), 9);
    let picked = |places: &[usize]| {
        let mut followed = Followed::default();
        places.iter().find_map(|at| followed.follow_picked(&whole[*at]).err())
    };
    assert_eq!(picked(&[0, 1, 4, 5, 8]), None);
    assert_eq!(picked(&[2, 6]), None);
    assert_eq!(picked(&[4, 3]), Some(Broken::Place));
    assert_eq!(picked(&[4, 4]), Some(Broken::Place));
}

proptest! {
    #[test]
    fn any_edit_of_any_row_is_found(rows in 1_usize..12, at in 0_usize..12, edit in 0..EDITS.len()) {
        let mut chain = chain((0, ""), rows);
        let at = at % rows;
        let (name, edit) = EDITS[edit];
        edit(&mut chain[at]);
        let broken = first_broken((0, ""), &chain);
        // The last row has nobody behind it who would know: the head does.
        let is_seen_behind = name == "all of it, hashed anew";
        if is_seen_behind && at + 1 == rows {
            prop_assert_eq!(broken, None);
        } else {
            let place = if is_seen_behind { at + 2 } else { at + 1 };
            prop_assert_eq!(broken.map(|(n, _)| n), Some(i64::try_from(place).unwrap()), "{}", name);
        }
    }

    #[test]
    fn a_row_that_is_missing_is_found(rows in 2_usize..12, at in 0_usize..12) {
        let mut chain = chain((0, ""), rows);
        let at = at % (rows - 1);
        chain.remove(at);
        let next = i64::try_from(at + 2).unwrap();
        prop_assert_eq!(first_broken((0, ""), &chain), Some((next, Broken::Place)));
    }

    #[test]
    fn a_row_that_is_repeated_is_found(rows in 1_usize..12, at in 0_usize..12) {
        let mut chain = chain((0, ""), rows);
        let again = chain[at % rows].clone();
        let place = again.n;
        chain.insert(at % rows, again);
        prop_assert_eq!(first_broken((0, ""), &chain), Some((place, Broken::Place)));
    }

    #[test]
    fn rows_that_were_swapped_are_found(rows in 2_usize..12, one in 0_usize..12, other in 0_usize..12) {
        let mut chain = chain((0, ""), rows);
        let (one, other) = (one % rows, other % rows);
        chain.swap(one, other);
        prop_assert_eq!(first_broken((0, ""), &chain).is_some(), one != other);
        // With their places swapped, too.
        let (first, second) = (chain[one].n, chain[other].n);
        (chain[one].n, chain[other].n) = (second, first);
        prop_assert_eq!(first_broken((0, ""), &chain).is_some(), one != other);
    }
}
