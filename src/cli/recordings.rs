//! `callboard recordings verify`: whether a recording is as it was made, without the service and without its database.
use super::commands::print;
use crate::error::CannotStart;
use adapters::recording::mark::{self, Checked};
use clap::{Args, Subcommand};
use serde_json::json;
use std::{fs::File, io::BufReader, path::PathBuf};

#[derive(Subcommand)]
pub enum Recordings {
    /// Say whether a recording's sound is the one that was signed, and what it says of the machine that speaks in it
    ///
    /// Reads a WAV file as GET /v1/recordings/{id}/audio has sent it. One that does not verify ends with exit code 1. Whoever
    /// has a key can sign with it: name the service's own with --public-key to know that it was the service.
    Verify(Verify),
}

#[derive(Args)]
pub struct Verify {
    /// The WAV file
    file: PathBuf,
    /// The service's public key, in base64, as GET /v1/compliance/heads shows it
    #[arg(long, value_name = "KEY")]
    public_key: Option<String>,
}

impl Recordings {
    pub fn run(self, json: bool) -> Result<(), CannotStart> {
        match self {
            Recordings::Verify(verify) => verify.run(json),
        }
    }
}

impl Verify {
    fn run(self, json: bool) -> Result<(), CannotStart> {
        let shown = self.file.display();
        let file = File::open(&self.file).map_err(|error| CannotStart(format!("{shown}: {error}")))?;
        let checked = match mark::check(BufReader::new(file)) {
            Ok(checked) => checked,
            Err(why) => {
                if json {
                    print(&json!({ "verified": false, "reason": why.to_string() }));
                }
                return Err(CannotStart(format!("{shown}: {why}")));
            }
        };
        if let Some(key) = self.public_key.filter(|key| *key != checked.public_key) {
            let why = format!("it was signed with the key {}, not with {key}", checked.public_key);
            if json {
                print(&json!({ "verified": false, "reason": why }));
            }
            return Err(CannotStart(format!("{shown}: {why}")));
        }
        tell(&checked, json);
        Ok(())
    }
}

fn tell(checked: &Checked, json: bool) {
    if json {
        print(&json!({ "verified": true, "said": checked.said }));
        return;
    }
    let said = |name: &str| checked.said.get(name).map(ToString::to_string).unwrap_or_default();
    println!("The sound is the one that was signed, and so is what the file says of it.");
    for (what, name) in [
        ("Recording", "recording_id"),
        ("Call", "session_id"),
        ("Channels", "channels"),
        ("Voice", "voice"),
        ("Signed with", "public_key"),
    ] {
        println!("{what}: {}", said(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use adapters::recording::{
        mark::Mark,
        mix::{Channels, wav},
        vault::Plain,
    };
    use bytes::Bytes;
    use entities::{
        ids::{RecordingId, SessionId},
        recording::{Synthetic, SyntheticVoice, VoiceKind},
    };
    use runtime::{link_keys::LinkKeys, signing::SigningKey};
    use std::{collections::BTreeMap, io::Read};
    use uuid::Uuid;

    #[test]
    fn a_file_verifies_with_its_own_key_and_with_no_other() {
        let (keys, id) = (LinkKeys::generate(), Uuid::from_u128(7));
        let voice = SyntheticVoice {
            id: "builtin:tones".into(),
            kind: VoiceKind::Builtin,
            provider: "tones".into(),
            model: None,
            watermark: false,
        };
        let synthetic = Synthetic {
            synthetic: true,
            channels: BTreeMap::new(),
            voice,
            service_voice: None,
        };
        let key = SigningKey::of(&keys).unwrap();
        let ours = key.public_key();
        let mark = Mark::new(RecordingId(id), SessionId(id), &synthetic, key).unwrap();
        let mut bytes = Vec::new();
        let marked = mark.put_on(Plain::from(Bytes::from(wav(&[], Channels::Mono))));
        marked.into_source().read_to_end(&mut bytes).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("call.wav");
        std::fs::write(&file, &bytes).unwrap();
        let verify = |file: &PathBuf, public_key: Option<String>| {
            let file = file.clone();
            Verify { file, public_key }.run(true)
        };
        assert!(verify(&file, None).is_ok());
        assert!(verify(&file, Some(ours)).is_ok());
        let others = SigningKey::of(&LinkKeys::generate()).unwrap().public_key();
        assert!(
            verify(&file, Some(others))
                .unwrap_err()
                .to_string()
                .contains("not with")
        );
        let at = bytes.windows(5).position(|window| window == b"tones").unwrap();
        bytes[at] = b'T';
        std::fs::write(&file, &bytes).unwrap();
        assert!(verify(&file, None).is_err());
        assert!(verify(&folder.path().join("none.wav"), None).is_err());
    }
}
