//! Names, ranges and places of recordings.
use super::*;

#[test]
fn names_are_two_ids() {
    let (a, b) = (
        "0197c5c1-0d5e-7cc0-9d3c-0a1b2c3d4e5f",
        "11111111-2222-4333-8444-555555555555",
    );
    assert!(checked(&format!("{a}/{b}.wav")).is_ok());
    assert!(checked(&format!("{a}/{b}.sample")).is_ok());
    assert!(checked(&format!("{a}/{b}.evidence")).is_ok());
    for name in [
        format!("{a}/{b}"),
        format!("{a}/{b}.wav.wav"),
        format!("{a}/{b}.sample.wav"),
        format!("{a}/../{b}.wav"),
        format!("/{a}/{b}.wav"),
        format!("{a}//{b}.wav"),
        format!("{a}/{}.wav", b.replace('-', "")),
        format!("{}/{b}.wav", a.to_uppercase()),
        format!("{{{a}}}/{b}.wav"),
        "../../etc/passwd".to_owned(),
        "../x.wav".to_owned(),
        String::new(),
    ] {
        assert!(matches!(checked(&name), Err(Failure::Store(_))), "{name}");
    }
}

#[test]
fn pieces_make_up_the_range() {
    const M: u64 = 1024 * 1024;
    for (range, expected) in [
        (0..0, vec![]),
        (5..10, vec![(5, 10)]),
        (0..M, vec![(0, M)]),
        (M - 1..2 * M + 1, vec![(M - 1, M), (M, 2 * M), (2 * M, 2 * M + 1)]),
    ] {
        let made: Vec<_> = pieces(range.clone()).map(|piece| (piece.start, piece.end)).collect();
        assert_eq!(made, expected, "{range:?}");
    }
}

#[test]
fn a_wrong_place_is_refused_in_words() {
    for (url, word) in [
        ("", "empty"),
        ("ftp://x/y", "`ftp`"),
        ("s3://", "s3://bucket"),
        ("s3://id:hunter2@bucket/x", "settings of their own"),
        ("s3://bucket?secret=hunter2", "settings of their own"),
        ("/dev/null/recordings", "cannot be used"),
    ] {
        let refusal = Vault::open(url, S3Options::default(), [0; 32], Vec::new()).unwrap_err();
        assert!(
            refusal.contains(word) && !refusal.contains("hunter2"),
            "{url}: {refusal}"
        );
    }
    let half = S3Options {
        secret_access_key: Some("hunter2".to_owned()),
        ..S3Options::default()
    };
    assert!(!format!("{half:?}").contains("hunter2"));
    let refusal = Vault::open("s3://bucket", half, [0; 32], Vec::new()).unwrap_err();
    assert!(
        refusal.contains("given together") && !refusal.contains("hunter2"),
        "{refusal}"
    );
    let plain = S3Options {
        endpoint: Some("http://127.0.0.1:1".to_owned()),
        ..S3Options::default()
    };
    assert!(
        Vault::open("s3://bucket", plain, [0; 32], Vec::new())
            .unwrap_err()
            .contains("plain HTTP")
    );
}
