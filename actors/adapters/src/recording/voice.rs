//! Words to sound, for calls without a speech service: the sandbox and offline agents.
//!
//! A speech program of the machine does it (`espeak-ng`, or `flite`, which knows English only), one short process per
//! utterance. Without one, or when it fails, the utterance becomes tones: sound in the right place and of about the right
//! length, but no speech; nobody can make out a word of it.
mod program;
mod tones;
pub(crate) mod wave;

use entities::boxed;
use program::{Kind, Program};
use std::{env, ffi::OsStr, path::PathBuf, sync::Arc};

/// Samples per second of all sound here that is not asked for at another rate: 16 bits, one channel.
pub const RATE: u32 = 8_000;

/// Characters of an utterance that are spoken, about four minutes; what follows is left out.
pub const LONGEST_TEXT: usize = 4_000;

/// Whose words they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Speaker {
    Agent,
    /// The other party.
    User,
}

/// Cloning is cheap, and clones share the limit on processes.
#[derive(Clone, Debug)]
pub struct Voice {
    /// None speaks in tones.
    program: Option<Arc<Program>>,
}

impl Voice {
    /// `espeak-ng`, `flite`, `tones`, or `auto`: the first of these three that is here. Fails when a named program is not
    /// in PATH, and on any other word.
    pub fn find(wanted: &str) -> Result<Self, String> {
        program::sweep();
        Self::find_in(wanted, &env::var_os("PATH").unwrap_or_default())
    }

    /// Or only sound.
    pub fn has_words(&self) -> bool {
        self.program.is_some()
    }

    /// Sound without words; always there.
    pub fn tones() -> Self {
        Voice { program: None }
    }

    fn find_in(wanted: &str, path: &OsStr) -> Result<Self, String> {
        let program = match wanted {
            "tones" => None,
            "auto" => [Kind::EspeakNg, Kind::Flite]
                .into_iter()
                .find_map(|kind| Some(Program::new(kind, look_up(kind.name(), path)?))),
            name => {
                let kind = [Kind::EspeakNg, Kind::Flite]
                    .into_iter()
                    .find(|kind| kind.name() == name);
                let kind =
                    kind.ok_or_else(|| format!("`{name}` is not a voice; write auto, espeak-ng, flite or tones"))?;
                let found = look_up(name, path).ok_or_else(|| {
                    format!("`{name}` is not in PATH; install it (Debian: apt-get install {name}) or write auto")
                })?;
                Some(Program::new(kind, found))
            }
        };
        Ok(Voice {
            program: program.map(Arc::new),
        })
    }

    /// `espeak-ng`, `flite` or `tones`: what was found.
    pub fn name(&self) -> &'static str {
        self.program.as_ref().map_or("tones", |program| program.kind.name())
    }

    /// Samples per second that it has by nature.
    pub fn rate(&self) -> u32 {
        self.program.as_ref().map_or(RATE, |program| program.kind.rate())
    }

    /// The sound of a text, at 8 kHz; `language` is a BCP 47 tag such as `de-DE`. Nothing for a text without a word.
    #[boxed]
    pub async fn speak(&self, text: &str, language: &str, who: Speaker) -> Vec<i16> {
        self.sound(text, language, who, false, RATE).await
    }

    /// The same at its own [`rate`](Voice::rate), for somebody who waits for the words: recordings that are made meanwhile do not
    /// hold them up.
    #[boxed]
    pub async fn speak_live(&self, text: &str, language: &str, who: Speaker) -> Vec<i16> {
        self.sound(text, language, who, true, self.rate()).await
    }

    async fn sound(&self, text: &str, language: &str, who: Speaker, live: bool, rate: u32) -> Vec<i16> {
        let text = beginning(text);
        if text.trim().is_empty() {
            return Vec::new();
        }
        let Some(program) = &self.program else {
            return tones::tones(text, who, rate);
        };
        match program.speak(text, language, who, live, rate).await {
            Ok(sound) => sound,
            Err(reason) => {
                tracing::warn!(program = program.kind.name(), %reason, "an utterance became tones: the speech program failed");
                tones::tones(text, who, rate)
            }
        }
    }
}

/// The text as far as it is spoken.
fn beginning(text: &str) -> &str {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

fn look_up(name: &str, path: &OsStr) -> Option<PathBuf> {
    env::split_paths(path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_absolute() && is_executable(file))
}

#[cfg(unix)]
fn is_executable(file: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &std::path::Path) -> bool {
    file.is_file()
}

#[cfg(test)]
mod tests;
