//! Recordings at rest, on both grounds: a folder, and a store that speaks S3.
use crate::world::s3_server::{ACCESS_KEY_ID, BUCKET, S3Server, SECRET_ACCESS_KEY};
use adapters::recording::vault::{Failure, S3Options, Vault};
use std::{fs, path::PathBuf};
use tempfile::TempDir;

const TENANT: &str = "0197c5c1-0d5e-7cc0-9d3c-0a1b2c3d4e5f";
const KEY: [u8; 32] = [7; 32];

enum Ground {
    Folder(TempDir),
    S3(S3Server),
}

impl Ground {
    async fn both() -> [Ground; 2] {
        [
            Ground::Folder(tempfile::tempdir().unwrap()),
            Ground::S3(S3Server::start().await),
        ]
    }

    fn vault(&self, key: [u8; 32], previous: Vec<[u8; 32]>) -> Vault {
        match self {
            Ground::Folder(folder) => {
                let url = format!("file://{}/deep/er", folder.path().display());
                Vault::open(&url, S3Options::default(), key, previous).unwrap()
            }
            Ground::S3(server) => {
                Vault::open(&format!("s3://{BUCKET}/deep/er"), options(server), key, previous).unwrap()
            }
        }
    }

    /// An object as it is stored.
    fn object(&self, name: &str) -> Option<Vec<u8>> {
        match self {
            Ground::Folder(folder) => fs::read(folder.path().join("deep/er").join(name)).ok(),
            Ground::S3(server) => server.object(&format!("deep/er/{name}")),
        }
    }

    fn set(&self, name: &str, object: Vec<u8>) {
        match self {
            Ground::Folder(folder) => fs::write(folder.path().join("deep/er").join(name), object).unwrap(),
            Ground::S3(server) => server.set(&format!("deep/er/{name}"), object),
        }
    }

    /// Everything that is stored, unfinished things too.
    fn names(&self) -> Vec<String> {
        match self {
            Ground::Folder(folder) => files(folder.path().to_owned()),
            Ground::S3(server) => {
                assert_eq!(server.open_uploads(), 0);
                server.keys()
            }
        }
    }
}

fn files(folder: PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| {
        if path.is_dir() {
            files(path)
        } else {
            vec![path.display().to_string()]
        }
    });
    files.collect()
}

fn options(server: &S3Server) -> S3Options {
    S3Options {
        endpoint: Some(server.endpoint.clone()),
        region: Some("eu-central-1".to_owned()),
        access_key_id: Some(ACCESS_KEY_ID.to_owned()),
        secret_access_key: Some(SECRET_ACCESS_KEY.to_owned()),
        allow_http: true,
    }
}

fn name(number: u8) -> String {
    format!("{TENANT}/11111111-2222-4333-8444-5555555555{number:02}.wav")
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect()
}

fn is_damaged<T>(outcome: Result<T, Failure>) -> bool {
    matches!(outcome, Err(Failure::Damaged(_)))
}

#[tokio::test]
async fn a_recording_is_put_read_by_the_range_and_erased() {
    for ground in Ground::both().await {
        let vault = ground.vault(KEY, Vec::new());
        vault.check().await.unwrap();
        assert!(ground.names().is_empty(), "the check leaves nothing");

        assert_eq!(vault.size(&name(1)).await.unwrap(), None);
        let plain = bytes(200_000);
        let stored = vault.put(&name(1), plain.clone()).await.unwrap();
        assert_eq!(stored.bytes, 200_000);
        assert_eq!(stored.sha256, sha256(&plain));
        assert_eq!(vault.size(&name(1)).await.unwrap(), Some(200_000));

        let border = 65_536;
        for range in [
            0..1,
            0..44,
            border - 1..border + 1,
            border..2 * border,
            100..199_999,
            199_999..200_000,
            0..200_000,
            5..5,
        ] {
            let read = vault.read(&name(1), range.clone()).await.unwrap();
            assert_eq!(read, plain[range.start as usize..range.end as usize], "{range:?}");
        }
        for beyond in [0..200_001, 200_001..200_002] {
            assert!(matches!(vault.read(&name(1), beyond).await, Err(Failure::Store(_))));
        }
        let object = ground.object(&name(1)).unwrap();
        assert!(
            !object.windows(16).any(|window| window == &plain[..16]),
            "the plain bytes are nowhere"
        );

        vault.put(&name(1), Vec::new()).await.unwrap();
        assert_eq!(
            vault.size(&name(1)).await.unwrap(),
            Some(0),
            "a second put takes the first one's place"
        );
        assert!(vault.read(&name(1), 0..0).await.unwrap().is_empty());

        vault.erase(&name(1)).await.unwrap();
        assert_eq!(vault.size(&name(1)).await.unwrap(), None);
        assert!(matches!(vault.read(&name(1), 0..1).await, Err(Failure::Store(_))));
        vault.erase(&name(1)).await.unwrap();
        assert!(ground.names().is_empty());
    }
}

/// By a program of this machine.
fn sha256(plain: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), plain).unwrap();
    let said = std::process::Command::new("sha256sum")
        .arg(file.path())
        .output()
        .unwrap();
    String::from_utf8(said.stdout).unwrap()[..64].to_owned()
}

#[tokio::test]
async fn a_long_recording_goes_in_parts() {
    for ground in Ground::both().await {
        let vault = ground.vault(KEY, Vec::new());
        // Two parts and a bit; exactly one.
        let whole = 8 * 1024 * 1024 - 28 - 128 * 16;
        for length in [17_000_000, whole] {
            let plain = bytes(length);
            assert_eq!(vault.put(&name(1), plain.clone()).await.unwrap().sha256, sha256(&plain));
            assert_eq!(vault.size(&name(1)).await.unwrap(), Some(length as u64));
            // The beginning, the borders of the parts and the end.
            for near in [0, 8 * 1024 * 1024, 16 * 1024 * 1024, length] {
                let range = near.saturating_sub(100_000).min(length)..(near + 100_000).min(length);
                let read = vault
                    .read(&name(1), range.start as u64..range.end as u64)
                    .await
                    .unwrap();
                assert!(read == plain[range.clone()], "{range:?} of {length} came back changed");
            }
            assert_eq!(ground.names().len(), 1);
        }
    }
}

#[tokio::test]
async fn only_the_segments_that_are_asked_for_are_fetched() {
    let server = S3Server::start().await;
    let vault = Vault::open(&format!("s3://{BUCKET}"), options(&server), KEY, Vec::new()).unwrap();
    vault.put(&name(1), bytes(1_000_000)).await.unwrap();
    server.take_requests();
    vault.read(&name(1), 65_536..65_537).await.unwrap();
    let name = name(1);
    let expected = [
        format!("HEAD {name}"),
        format!("GET {name} bytes=0-27"),
        format!("GET {name} bytes=65580-131131"),
    ];
    assert_eq!(server.take_requests(), expected);
}

#[tokio::test]
async fn what_was_changed_cut_off_or_moved_is_noticed() {
    for ground in Ground::both().await {
        let vault = ground.vault(KEY, Vec::new());
        for number in [1, 2] {
            vault
                .put(&name(number), bytes(150_000 + usize::from(number)))
                .await
                .unwrap();
        }
        vault.put(&name(3), bytes(150_001)).await.unwrap();
        let (first, third) = (ground.object(&name(1)).unwrap(), ground.object(&name(3)).unwrap());

        let mut changed = first.clone();
        changed[70_000] ^= 1;
        ground.set(&name(1), changed);
        assert!(is_damaged(vault.read(&name(1), 65_536..65_540).await));
        assert_eq!(
            vault.read(&name(1), 0..4).await.unwrap(),
            bytes(4),
            "the segment before is whole"
        );

        for length in [0, 20, 28, 44, 65_580, 131_132, first.len() - 1] {
            ground.set(&name(1), first[..length].to_vec());
            let size = vault.size(&name(1)).await;
            let read = vault.read(&name(1), 0..1).await;
            assert!(is_damaged(read) || size == Ok(Some(0)), "cut to {length}");
        }

        ground.set(&name(1), third);
        ground.set(&name(3), first);
        for number in [1, 3] {
            assert!(
                is_damaged(vault.read(&name(number), 0..1).await),
                "swapped with one of the same length"
            );
        }
        assert_eq!(vault.read(&name(2), 0..4).await.unwrap(), bytes(4));
    }
}

#[tokio::test]
async fn a_replaced_key_still_opens_and_a_strange_one_does_not() {
    for ground in Ground::both().await {
        ground.vault(KEY, Vec::new()).put(&name(1), bytes(1_000)).await.unwrap();
        let replaced = ground.vault([8; 32], vec![[9; 32], KEY]);
        assert_eq!(replaced.read(&name(1), 0..1_000).await.unwrap(), bytes(1_000));
        assert!(is_damaged(
            ground.vault([8; 32], Vec::new()).read(&name(1), 0..1_000).await
        ));

        replaced.put(&name(1), bytes(10)).await.unwrap();
        assert!(
            is_damaged(ground.vault(KEY, Vec::new()).read(&name(1), 0..10).await),
            "new ones have the new key"
        );
    }
}

#[tokio::test]
async fn names_lead_nowhere_else() {
    for ground in Ground::both().await {
        let vault = ground.vault(KEY, Vec::new());
        for bad in ["../../x.wav", "/etc/passwd", "a/b.wav", ""] {
            assert!(vault.put(bad, vec![1]).await.is_err());
            assert!(vault.size(bad).await.is_err());
            assert!(vault.read(bad, 0..1).await.is_err());
            assert!(vault.erase(bad).await.is_err());
        }
        assert!(ground.names().is_empty());
    }
}

#[tokio::test]
async fn erasing_takes_what_an_interrupted_put_left() {
    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::open(folder.path().to_str().unwrap(), S3Options::default(), KEY, Vec::new()).unwrap();
    vault.put(&name(1), bytes(10)).await.unwrap();
    vault.put(&name(2), bytes(10)).await.unwrap();
    for left in ["#1", "#2"] {
        fs::write(folder.path().join(format!("{}{left}", name(1))), b"half").unwrap();
    }
    vault.erase(&name(1)).await.unwrap();
    assert_eq!(
        files(folder.path().to_owned()),
        [folder.path().join(name(2)).display().to_string()]
    );
}

#[tokio::test]
async fn putting_again_takes_what_an_interrupted_put_left() {
    let ground = Ground::Folder(tempfile::tempdir().unwrap());
    let vault = ground.vault(KEY, Vec::new());
    for (recording, sound) in [(1, 3), (2, 4)] {
        vault.put(&name(recording), vec![sound; 10]).await.unwrap();
        ground.set(&format!("{}#1", name(recording)), b"half".to_vec());
    }
    ground.set(&format!("{}#2", name(1)), b"half".to_vec());
    vault.put(&name(1), vec![5; 10]).await.unwrap();
    let mut left = ground.names();
    left.sort();
    let ends = [name(1), name(2), format!("{}#1", name(2))];
    assert!(
        left.len() == 3 && left.iter().zip(&ends).all(|(path, end)| path.ends_with(&**end)),
        "its own go, those of others stay: {left:?}"
    );
    assert_eq!(vault.read(&name(1), 0..10).await.unwrap(), vec![5; 10]);
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_fails_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("recordings");
    let vault = Vault::open(place.to_str().unwrap(), S3Options::default(), KEY, Vec::new()).unwrap();
    vault.check().await.unwrap();
    fs::remove_dir(&place).unwrap();
    fs::write(&place, b"a file now").unwrap();
    assert!(matches!(vault.check().await, Err(Failure::Store(_))));
}

#[tokio::test]
async fn a_store_that_refuses_is_told_without_our_keys() {
    let server = S3Server::start().await;
    let vault = Vault::open(&format!("s3://{BUCKET}"), options(&server), KEY, Vec::new()).unwrap();
    let chatty = format!("<Error><Code>SignatureDoesNotMatch</Code>{{authorization}} {SECRET_ACCESS_KEY}</Error>");
    server.answer_next(vec![(403, chatty.as_str())]);
    let refusal = vault.put(&name(1), bytes(10)).await.unwrap_err().to_string();
    assert!(refusal.contains("***"), "{refusal}");
    assert!(
        !refusal.contains(ACCESS_KEY_ID) && !refusal.contains(SECRET_ACCESS_KEY),
        "{refusal}"
    );
    assert!(refusal.len() < 900, "{refusal}");

    let strange = S3Options {
        access_key_id: Some("AKIDSTRANGER".to_owned()),
        ..options(&server)
    };
    let strange = Vault::open(&format!("s3://{BUCKET}"), strange, KEY, Vec::new()).unwrap();
    assert!(matches!(strange.check().await, Err(Failure::Store(_))));
    let shown = format!("{vault:?} {:?}", options(&server));
    assert!(
        !shown.contains(ACCESS_KEY_ID) && !shown.contains(SECRET_ACCESS_KEY),
        "{shown}"
    );
}

#[tokio::test]
async fn a_passing_fault_of_the_store_is_tried_again_and_a_lasting_one_leaves_nothing() {
    let server = S3Server::start().await;
    let vault = Vault::open(&format!("s3://{BUCKET}"), options(&server), KEY, Vec::new()).unwrap();
    server.answer_next(vec![(503, "slow down"), (500, "")]);
    vault.put(&name(1), bytes(10)).await.unwrap();
    assert_eq!(vault.read(&name(1), 0..10).await.unwrap(), bytes(10));

    // The upload is begun, its first part refused for good.
    let begun = "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>u</UploadId></InitiateMultipartUploadResult>";
    server.answer_next(vec![(200, begun), (403, "no")]);
    server.take_requests();
    assert!(matches!(
        vault.put(&name(2), bytes(8_500_000)).await,
        Err(Failure::Store(_))
    ));
    assert_eq!(vault.size(&name(2)).await.unwrap(), None);
    let asked = server.take_requests();
    assert!(
        asked.contains(&format!("DELETE {}", name(2))),
        "the upload is given up: {asked:?}"
    );
}
