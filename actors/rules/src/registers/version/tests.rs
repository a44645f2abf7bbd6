use super::*;
use uuid::Uuid;

fn day(n: i64) -> Moment {
    Moment::from_millis(n * 86_400_000)
}

fn upload(fetched: i64) -> Upload {
    Upload {
        id: Uuid::from_u128(1).into(),
        owner: (Uuid::from_u128(2).into(), Env::Live),
        name: "us_dnc".into(),
        country: Country::US,
        fetched_at: day(fetched),
        area_codes: None,
        by: Some("ann@example.com".into()),
        may_shrink: false,
    }
}

fn file(content: &str, numbers: i64) -> File {
    File {
        id: Uuid::from_u128(content.len() as u128).into(),
        content: Content {
            sha256: content.into(),
            key_check: "key".into(),
            has_dates: false,
            area_codes: codes("212"),
        },
        numbers,
    }
}

fn codes(text: &str) -> AreaCodes {
    AreaCodes::parse(text).unwrap()
}

#[test]
fn a_file_takes_the_place_of_an_older_one_alone() {
    let (first, change) = upload(10).next(None, &file("a", 100), day(11)).unwrap();
    assert_eq!(
        (first.version, first.fetched_at, change),
        (1, day(10), Change::Replaced)
    );
    assert_eq!(first.area_codes, Some(codes("212")), "those of its numbers");
    for (what, upload, file, expected) in [
        (
            "the same again",
            upload(10),
            file("a", 100),
            Some((1, 10, Change::Nothing)),
        ),
        (
            "the same of an earlier day",
            upload(9),
            file("a", 100),
            Some((1, 10, Change::Nothing)),
        ),
        (
            "the same of a later day",
            upload(12),
            file("a", 100),
            Some((1, 12, Change::Refreshed)),
        ),
        (
            "another of that day",
            upload(10),
            file("bb", 90),
            Some((2, 10, Change::Replaced)),
        ),
        (
            "a later one",
            upload(12),
            file("bb", 50),
            Some((2, 12, Change::Replaced)),
        ),
        ("an older one", upload(9), file("bb", 100), None),
        ("one that was cut off", upload(12), file("bb", 49), None),
        (
            "the same with another key",
            upload(12),
            File {
                content: Content {
                    key_check: "other".into(),
                    ..file("a", 100).content
                },
                ..file("a", 100)
            },
            Some((2, 12, Change::Replaced)),
        ),
        (
            "the same, which covers another area code",
            Upload {
                area_codes: Some(codes("646")),
                ..upload(10)
            },
            file("a", 100),
            Some((2, 10, Change::Replaced)),
        ),
        (
            "a small one that is whole",
            Upload {
                may_shrink: true,
                ..upload(12)
            },
            file("bb", 1),
            Some((2, 12, Change::Replaced)),
        ),
        (
            "the same, read as another country's",
            Upload {
                country: "CA".parse().unwrap(),
                ..upload(12)
            },
            file("a", 100),
            Some((2, 12, Change::Replaced)),
        ),
    ] {
        let found = upload.next(Some(&first), &file, day(13)).ok();
        let found = found.map(|(row, change)| (row.version, row.fetched_at, change));
        let expected = expected.map(|(version, fetched, change)| (version, day(fetched), change));
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn whoever_was_warned_is_warned_anew_of_the_next_file() {
    let (first, _) = upload(10).next(None, &file("a", 100), day(11)).unwrap();
    let warned = Model { warned: 2, ..first };
    let (again, _) = upload(12).next(Some(&warned), &file("a", 100), day(13)).unwrap();
    assert_eq!(again.warned, 0);
    let (same, _) = upload(10).next(Some(&warned), &file("a", 100), day(13)).unwrap();
    assert_eq!(same.warned, 2, "nothing has changed");
}
