//! Messages that stand ready as sound: made ahead, so that whoever must hear one needs neither a model nor a provider. A file each, by
//! what is said in it, in which language and by which voice. They are the operator's and the workspaces' own words, and are not sealed.
use crate::sound::Pcm;
use runtime::supervise::join_text;
use sha2::{Digest, Sha256};
use std::{
    fmt,
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// What is said, by whom and in which language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageKey([u8; 32]);

impl MessageKey {
    /// `language`: BCP 47.
    pub fn of(voice: &str, language: &str, text: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [voice, language, text] {
            // Its length comes first, so that no two of them are one.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        MessageKey(hash.finalize().into())
    }
}

impl fmt::Display for MessageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The folder of them. Made with the first one.
#[derive(Clone, Debug)]
pub struct Messages(PathBuf);

/// Bytes of one, at most: more than a minute at the highest rate. What is longer is none of ours.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// One that is read is as good as new: this is noted so often, by the machine's clock.
const RENEWED_AFTER: Duration = Duration::from_secs(24 * 3600);
/// Samples per second that a voice may have.
const RATES: std::ops::RangeInclusive<u32> = 8_000..=48_000;

impl Messages {
    /// Beside the folder of spools, with its name.
    pub fn beside(spools: &Path) -> Self {
        let mut name = spools.file_name().unwrap_or_default().to_owned();
        name.push("-messages");
        Messages(spools.with_file_name(name))
    }

    fn file(&self, key: MessageKey) -> PathBuf {
        self.0.join(format!("{key}.pcm"))
    }

    /// `None`: it is not there, or cannot be read.
    pub async fn read(&self, key: MessageKey) -> Option<Pcm> {
        let file = self.file(key);
        let read = tokio::task::spawn_blocking(move || {
            let bytes = fs::read(&file)?;
            renew(&file);
            Ok::<_, io::Error>(bytes)
        });
        parse(&read.await.ok()?.ok()?)
    }

    /// Removes those that nobody has read for so long.
    pub async fn sweep(&self, unread_for: Duration) -> io::Result<()> {
        let folder = self.0.clone();
        let swept = tokio::task::spawn_blocking(move || sweep(&folder, unread_for)).await;
        swept.map_err(|error| io::Error::other(join_text(error)))?
    }

    /// Whole or not at all. An empty one is not kept.
    pub async fn write(&self, key: MessageKey, sound: &Pcm) -> io::Result<()> {
        let (folder, file) = (self.0.clone(), self.file(key));
        let mut bytes = sound.rate.to_le_bytes().to_vec();
        bytes.extend(sound.samples.iter().flat_map(|sample| sample.to_le_bytes()));
        if parse(&bytes).is_none() {
            return Err(io::Error::other("a message is empty, or longer than one may be"));
        }
        let written = tokio::task::spawn_blocking(move || write(&folder, &file, &bytes)).await;
        written.map_err(|error| io::Error::other(join_text(error)))?
    }
}

fn write(folder: &Path, file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    let new = file.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut opened = options.open(&new)?;
    opened.write_all(bytes)?;
    opened.sync_all()?;
    fs::rename(&new, file)
}

/// Since it was written, or renewed; zero where that is not known.
fn age(file: &Path) -> Duration {
    let written = fs::metadata(file).and_then(|known| known.modified()).ok();
    written.and_then(|at| at.elapsed().ok()).unwrap_or_default()
}

/// One that cannot be is made again some day.
fn renew(file: &Path) {
    if age(file) > RENEWED_AFTER
        && let Ok(opened) = OpenOptions::new().append(true).open(file)
        && let Err(error) = opened.set_modified(SystemTime::now())
    {
        tracing::debug!(%error, "a message that stands ready could not be marked as read");
    }
}

fn sweep(folder: &Path, unread_for: Duration) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let file = entry?.path();
        let is_ours = matches!(file.extension().and_then(|ending| ending.to_str()), Some("pcm" | "new"));
        if is_ours && age(&file) > unread_for {
            fs::remove_file(&file)?;
        }
    }
    Ok(())
}

/// The rate, then the samples, 16 bits each, little endian.
fn parse(bytes: &[u8]) -> Option<Pcm> {
    if bytes.len() > MOST_BYTES {
        return None;
    }
    let (rate, samples) = bytes.split_first_chunk::<4>()?;
    let rate = Some(u32::from_le_bytes(*rate)).filter(|rate| RATES.contains(rate))?;
    let samples: Vec<i16> = samples
        .chunks_exact(2)
        .map(|pair| i16::from_le_bytes([pair[0], pair[1]]))
        .collect();
    (!samples.is_empty()).then(|| Pcm::new(rate, samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_nobody_has_read_for_long_is_removed_and_nothing_else() {
        const DAY: Duration = Duration::from_secs(24 * 3600);
        let folder = tempfile::tempdir().unwrap();
        let messages = Messages::beside(&folder.path().join("spool"));
        messages.sweep(30 * DAY).await.unwrap();
        let sound = Pcm::new(8_000, vec![1, 2]);
        let [read, unread, fresh] = ["read", "unread", "fresh"].map(|text| MessageKey::of("alloy", "en", text));
        for key in [read, unread, fresh] {
            messages.write(key, &sound).await.unwrap();
        }
        let foreign = messages.0.join("somebody.elses");
        fs::write(&foreign, "x").unwrap();
        for file in [messages.file(read), messages.file(unread), foreign.clone()] {
            let opened = OpenOptions::new().append(true).open(file).unwrap();
            opened.set_modified(SystemTime::now() - 31 * DAY).unwrap();
        }
        assert!(messages.read(read).await.is_some());
        messages.sweep(30 * DAY).await.unwrap();
        assert!(messages.read(read).await.is_some() && messages.read(fresh).await.is_some());
        assert_eq!(messages.read(unread).await, None);
        assert!(foreign.exists());
    }

    #[tokio::test]
    async fn a_message_is_read_as_it_was_written_and_damage_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let messages = Messages::beside(&folder.path().join("spool"));
        let key = MessageKey::of("builtin:tones", "en-US", "This is Acme.");
        assert_eq!(messages.read(key).await, None);
        let sound = Pcm::new(22_050, vec![1, -2, 300, i16::MIN]);
        messages.write(key, &sound).await.unwrap();
        assert_eq!(messages.read(key).await, Some(sound.clone()));
        assert!(folder.path().join("spool-messages").is_dir());
        // Another word, voice or language is another message.
        for other in [
            MessageKey::of("builtin:tones", "en-US", "This is Acme!"),
            MessageKey::of("alloy", "en-US", "This is Acme."),
            MessageKey::of("builtin:tones", "en-GB", "This is Acme."),
            MessageKey::of("builtin:tonese", "n-US", "This is Acme."),
        ] {
            assert_eq!(messages.read(other).await, None);
        }
        assert!(messages.write(key, &Pcm::new(22_050, vec![])).await.is_err());
        assert_eq!(messages.read(key).await, Some(sound), "what is refused changes nothing");
        let no_samples = 8_000_u32.to_le_bytes();
        for damaged in [vec![], vec![0, 0], no_samples.to_vec(), vec![1, 0, 0, 0, 7, 7]] {
            fs::write(messages.file(key), &damaged).unwrap();
            assert_eq!(messages.read(key).await, None, "{damaged:?}");
        }
    }
}
