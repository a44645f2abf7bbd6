//! Voices that need no training: those of this machine's speech program, tones, and the realtime provider's by name.
//!
//! Their ids stay as they are. Which of this machine's there are depends on what the operator has installed.
use crate::{brain::Providers, deps::Deps, recording::voice::Speaker};

/// A voice that is simply there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// As `builtin:espeak-ng-de`, or the realtime provider's name for it, as `marin`.
    pub id: &'static str,
    pub name: &'static str,
    pub provider: &'static str,
    /// BCP 47; none: any.
    pub language: Option<&'static str>,
    speaker: Speaker,
}

const fn voice(
    provider: &'static str,
    id: &'static str,
    name: &'static str,
    language: Option<&'static str>,
    speaker: Speaker,
) -> Builtin {
    Builtin {
        id,
        name,
        provider,
        language,
        speaker,
    }
}

macro_rules! espeak { ($($language:literal $name:literal),* $(,)?) => {
    [$(voice("espeak-ng", concat!("builtin:espeak-ng-", $language), concat!("eSpeak NG, ", $name), Some($language), Speaker::Agent)),*]
} }

const TONES: Builtin = voice("tones", "builtin:tones", "Tones, no words", None, Speaker::Agent);

const FLITE: [Builtin; 2] = [
    voice("flite", "builtin:flite-rms", "Flite, rms", Some("en-US"), Speaker::User),
    voice(
        "flite",
        "builtin:flite-slt",
        "Flite, slt",
        Some("en-US"),
        Speaker::Agent,
    ),
];

const ESPEAK: [Builtin; 26] = espeak![
    "ar" "Arabic",
    "cs" "Czech",
    "da" "Danish",
    "de" "German",
    "el" "Greek",
    "en-GB" "English (Great Britain)",
    "en-US" "English (America)",
    "es-ES" "Spanish (Spain)",
    "es-MX" "Spanish (Latin America)",
    "fi" "Finnish",
    "fr" "French",
    "hi" "Hindi",
    "hu" "Hungarian",
    "it" "Italian",
    "ja" "Japanese",
    "ko" "Korean",
    "nb" "Norwegian",
    "nl" "Dutch",
    "pl" "Polish",
    "pt-BR" "Portuguese (Brazil)",
    "pt-PT" "Portuguese (Portugal)",
    "ru" "Russian",
    "sv" "Swedish",
    "tr" "Turkish",
    "uk" "Ukrainian",
    "zh" "Chinese",
];

macro_rules! realtime { ($($id:literal $name:literal),* $(,)?) => {
    [$(voice("realtime", $id, $name, None, Speaker::Agent)),*]
} }

/// Of the OpenAI Realtime API. Source: platform.openai.com, "Voice options".
const REALTIME: [Builtin; 10] = realtime![
    "alloy" "Alloy", "ash" "Ash", "ballad" "Ballad", "cedar" "Cedar", "coral" "Coral", "echo" "Echo", "marin" "Marin",
    "sage" "Sage", "shimmer" "Shimmer", "verse" "Verse",
];

impl Builtin {
    pub fn is_provided(&self) -> bool {
        self.provider == "realtime"
    }

    /// A WAV file; none for a provider's voice, which speaks in calls only.
    pub async fn say(&self, deps: &Deps, text: &str) -> Option<Vec<u8>> {
        if self.is_provided() {
            return None;
        }
        let tones = crate::recording::voice::Voice::tones();
        let voice = if self.provider == TONES.provider {
            &tones
        } else {
            &deps.studio.voice
        };
        let language = self.language.unwrap_or("en-US");
        Some(super::provider::say(voice, text, language, self.speaker).await)
    }
}

/// All that there are here, in the order of their lists.
pub fn all(program: &str, providers: &Providers) -> Vec<Builtin> {
    let mut all = vec![TONES];
    all.extend(ESPEAK.iter().chain(&FLITE).filter(|voice| voice.provider == program));
    if providers.realtime.is_some() {
        all.extend(REALTIME);
    }
    all
}

/// May it be told to a provider by that name? What is ours, it does not know.
pub fn is_foreign(voice_id: &str) -> bool {
    !voice_id.starts_with("builtin:") && uuid::Uuid::parse_str(voice_id).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_this_machine_and_none_is_there_twice() {
        let ids = |program: &str| -> Vec<_> {
            let voices = all(program, &Providers::default());
            voices.iter().map(|voice| voice.id).collect()
        };
        assert_eq!(ids("tones"), ["builtin:tones"]);
        assert_eq!(
            ids("flite"),
            ["builtin:tones", "builtin:flite-rms", "builtin:flite-slt"]
        );
        let mut espeak = ids("espeak-ng");
        assert!(espeak.contains(&"builtin:espeak-ng-en-US"));
        espeak.sort();
        espeak.dedup();
        assert_eq!(espeak.len(), 1 + ESPEAK.len());
    }

    #[test]
    fn a_provider_is_told_its_own_names_only() {
        assert!(is_foreign("marin"));
        for ours in ["builtin:tones", "0197c5c1-0d5e-7cc0-9d3c-0a1b2c3d4e5f"] {
            assert!(!is_foreign(ours), "{ours}");
        }
    }
}
