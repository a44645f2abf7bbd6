//! Whether a file is as it was marked: it is read once, from its beginning to its end.
use super::{CHUNK, CONTEXT, SIGNATURE};
use runtime::{keyring::hex, signing::is_signed};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::io::{self, Read};

/// A file whose sound is the one that was marked, by whoever has this key.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// In base64. Whether it is the service's is another question: whoever has it can make such a file.
    pub public_key: String,
    /// All that it says of itself.
    pub said: Map<String, Value>,
}

#[derive(Debug, thiserror::Error)]
pub enum Unproved {
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it is not a WAV file, or it was cut off")]
    NotWav,
    #[error(
        "it has no mark: it is not a recording of Callboard's, or of an older version, or somebody has taken the mark off"
    )]
    Unmarked,
    #[error("its mark is damaged")]
    Damaged,
    #[error("its sound is not the one that was signed: somebody has changed it")]
    Changed,
    #[error("what it says of itself is not what was signed: somebody has changed it")]
    Forged,
}

/// A mark is shorter; what is longer is none.
const LONGEST: u32 = 64 * 1024;
/// Bytes that are read at once.
const BUFFER: usize = 64 * 1024;

/// Reads a WAV file, of any length.
pub fn check(mut file: impl Read) -> Result<Checked, Unproved> {
    let mut riff = [0; 12];
    whole(&mut file, &mut riff)?;
    if &riff[..4] != b"RIFF" || &riff[8..] != b"WAVE" {
        return Err(Unproved::NotWav);
    }
    let (mut sound, mut mark) = (None, None);
    while let Some((name, size)) = head(&mut file)? {
        match &name {
            b"data" if sound.is_none() => sound = Some(hash(&mut file, size)?),
            name if name == CHUNK && mark.is_none() && size <= LONGEST => mark = Some(text(&mut file, size)?),
            _ => drop(hash(&mut file, size)?),
        }
        if size % 2 == 1 {
            // Some leave it out at the end.
            io::copy(&mut file.by_ref().take(1), &mut io::sink())?;
        }
    }
    let sound = sound.ok_or(Unproved::NotWav)?;
    prove(&mark.ok_or(Unproved::Unmarked)?, &sound)
}

fn prove(mark: &str, sound: &str) -> Result<Checked, Unproved> {
    let (signed, rest) = mark.rsplit_once(SIGNATURE).ok_or(Unproved::Damaged)?;
    let signature = rest.strip_suffix("\"}").ok_or(Unproved::Damaged)?;
    let said: Map<String, Value> = serde_json::from_str(mark).map_err(|_| Unproved::Damaged)?;
    let member = |name: &str| said.get(name).and_then(Value::as_str).unwrap_or_default();
    let public_key = member("public_key").to_owned();
    if !is_signed(&public_key, format!("{CONTEXT}{signed}").as_bytes(), signature) {
        return Err(Unproved::Forged);
    }
    if member("sha256") != sound {
        return Err(Unproved::Changed);
    }
    Ok(Checked { public_key, said })
}

/// The next chunk's name and size; none: the end.
fn head(file: &mut impl Read) -> Result<Option<([u8; 4], u32)>, Unproved> {
    let mut head = [0; 8];
    // One byte first: whether there is another chunk is told by whether there is anything.
    if file.read(&mut head[..1])? == 0 {
        return Ok(None);
    }
    whole(file, &mut head[1..])?;
    let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    Ok(Some(([head[0], head[1], head[2], head[3]], size)))
}

fn text(file: &mut impl Read, size: u32) -> Result<String, Unproved> {
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
    whole(file, &mut bytes)?;
    String::from_utf8(bytes).map_err(|_| Unproved::Damaged)
}

/// SHA-256 of the next bytes, in hex.
fn hash(file: &mut impl Read, size: u32) -> Result<String, Unproved> {
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; BUFFER]);
    let mut left = usize::try_from(size).unwrap_or(usize::MAX);
    while left > 0 {
        let part = &mut buffer[..left.min(BUFFER)];
        whole(file, part)?;
        hash.update(&*part);
        left -= part.len();
    }
    Ok(hex(&hash.finalize()))
}

fn whole(file: &mut impl Read, bytes: &mut [u8]) -> Result<(), Unproved> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Unproved::NotWav,
        _ => Unproved::Unreadable(error),
    })
}
