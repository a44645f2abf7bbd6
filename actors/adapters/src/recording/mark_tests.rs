//! A marked file is a WAV file like any other, and whatever is changed in it shows.
use super::*;
use crate::recording::{
    mix::{Channels, Piece, wav},
    voice::Speaker,
};
use bytes::Bytes;
use entities::recording::{Sound, SyntheticVoice, VoiceKind};
use runtime::link_keys::LinkKeys;
use std::collections::BTreeMap;
use uuid::Uuid;

fn synthetic() -> Synthetic {
    Synthetic {
        synthetic: true,
        channels: BTreeMap::from([("left".into(), Sound::Agent), ("right".into(), Sound::Person)]),
        voice: SyntheticVoice {
            id: "Ann {\"}".into(),
            kind: VoiceKind::Provider,
            provider: "piper".into(),
            model: None,
            watermark: false,
        },
        service_voice: None,
    }
}

fn plain(samples: usize) -> Vec<u8> {
    let piece = Piece {
        speaker: Speaker::Agent,
        start_ms: 0,
        sound: (0..samples).map(|n| (n % 1_000) as i16).collect(),
        cut_ms: None,
    };
    wav(&[piece], Channels::Dual)
}

fn marked(plain: Vec<u8>, keys: &LinkKeys) -> Vec<u8> {
    let (recording, session) = (RecordingId(Uuid::from_u128(1)), SessionId(Uuid::from_u128(2)));
    let mark = Mark::new(recording, session, &synthetic(), SigningKey::of(keys).unwrap()).unwrap();
    let marked = mark.put_on(Plain::from(Bytes::from(plain)));
    let size = marked.bytes();
    let mut file = Vec::new();
    marked.into_source().read_to_end(&mut file).unwrap();
    assert_eq!(file.len() as u64, size, "as long as it was said to be");
    file
}

#[test]
fn a_marked_recording_is_a_sound_file_that_says_what_it_is() {
    let keys = LinkKeys::generate();
    for samples in [0, 1, 8_000, 200_000] {
        let plain = plain(samples);
        let file = marked(plain.clone(), &keys);
        assert_eq!(
            u32::from_le_bytes(file[4..8].try_into().unwrap()) as usize,
            file.len() - 8
        );
        assert_eq!(file[8..plain.len()], plain[8..], "the sound is the same");
        let mut reader = hound::WavReader::new(&file[..]).unwrap();
        assert_eq!(reader.samples::<i16>().count(), samples.div_ceil(8) * 8 * 2);
        let checked = check(&file[..]).unwrap();
        assert_eq!(checked.public_key, SigningKey::of(&keys).unwrap().public_key());
        assert_eq!(checked.said["synthetic"], true);
        assert_eq!(checked.said["channels"]["left"], "agent");
        assert_eq!(checked.said["voice"]["id"], "Ann {\"}");
        assert_eq!(checked.said["recording_id"], Uuid::from_u128(1).to_string());
    }
}

#[test]
fn what_was_changed_is_found() {
    let keys = LinkKeys::generate();
    let (plain, file) = (plain(8_000), marked(plain(8_000), &keys));
    let after = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut file = file.clone();
        change(&mut file);
        check(&file[..]).unwrap_err().to_string()
    };
    let place = |text: &str| {
        let text = text.as_bytes();
        file.windows(text.len()).position(|window| window == text).unwrap()
    };
    let (synthetic, session) = (place("true"), place("session_id"));
    assert!(after(&|file| file[1_000] ^= 1).contains("sound is not the one"));
    assert!(after(&|file| file[plain.len() - 1] ^= 1).contains("sound is not the one"));
    assert!(after(&|file| file[synthetic..synthetic + 4].copy_from_slice(b"null")).contains("not what was signed"));
    assert!(after(&|file| file[session] = b'S').contains("not what was signed"));
    assert!(after(&|file| file.truncate(plain.len())).contains("has no mark"));
    assert!(after(&|file| file.truncate(plain.len() + 100)).contains("cut off"));
    assert!(after(&|file| file[0] = b'?').contains("not a WAV file"));
    // With another key it is somebody else's.
    let others = check(&marked(plain.clone(), &LinkKeys::generate())[..]).unwrap();
    assert_ne!(others.public_key, SigningKey::of(&keys).unwrap().public_key());
}

/// Whatever is in a file, it is told, and read once.
#[test]
fn garbage_is_refused() {
    let riff = b"RIFF\0\0\0\0WAVE";
    let file = |chunks: &[u8]| [riff, chunks].concat();
    for bytes in [
        Vec::new(),
        b"RIFF".to_vec(),
        file(b""),
        file(b"data\xff\xff\xff\xffabc"),
        file(b"data\x02\0\0\0abcbai\xff\xff\xff\xff"),
        file(b"data\x02\0\0\0abcbai\x02\0\0\0{}"),
        file(b"data\x02\0\0\0abcbai\x04\0\0\0\xff\xff\xff\xff"),
    ] {
        assert!(check(&bytes[..]).is_err(), "{bytes:?}");
    }
}
