//! Voices that need no training: those of this machine's speech program, tones, and the realtime and the speech provider's by name.
//!
//! Their ids stay as they are. Which of this machine's there are depends on what the operator has installed.
use crate::{
    brain::Providers,
    recording::voice::{Speaker, Voice},
};
use entities::boxed;
use rules::voice_clone::machine::ALWAYS_THERE;
use std::borrow::Cow;

/// A voice that is simply there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// As `builtin:espeak-ng-de`, or the name of a provider's, as `marin`.
    pub id: Cow<'static, str>,
    pub name: Cow<'static, str>,
    pub provider: &'static str,
    /// BCP 47; none: any.
    pub language: Option<&'static str>,
    /// The operator says that its provider puts a watermark into its sound.
    pub watermark: bool,
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
        id: Cow::Borrowed(id),
        name: Cow::Borrowed(name),
        provider,
        language,
        watermark: false,
        speaker,
    }
}

macro_rules! espeak { ($($language:literal $name:literal),* $(,)?) => {
    [$(voice("espeak-ng", concat!("builtin:espeak-ng-", $language), concat!("eSpeak NG, ", $name), Some($language), Speaker::Agent)),*]
} }

static TONES: Builtin = voice("tones", ALWAYS_THERE, "Tones, no words", None, Speaker::Agent);

static FLITE: [Builtin; 2] = [
    voice("flite", "builtin:flite-rms", "Flite, rms", Some("en-US"), Speaker::User),
    voice(
        "flite",
        "builtin:flite-slt",
        "Flite, slt",
        Some("en-US"),
        Speaker::Agent,
    ),
];

static ESPEAK: [Builtin; 26] = espeak![
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

/// One of a provider's, by its name.
fn provided(provider: &'static str, name: &str) -> Builtin {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string());
    Builtin {
        id: Cow::Owned(name.to_owned()),
        name: Cow::Owned(first.unwrap_or_default() + letters.as_str()),
        provider,
        language: None,
        watermark: false,
        speaker: Speaker::Agent,
    }
}

impl Builtin {
    pub fn is_provided(&self) -> bool {
        is_foreign(&self.id)
    }

    /// A WAV file; none for a provider's voice, which speaks in calls only.
    #[boxed]
    pub async fn say(&self, of_service: &Voice, text: &str) -> Option<Vec<u8>> {
        if self.is_provided() {
            return None;
        }
        let tones = crate::recording::voice::Voice::tones();
        let voice = if self.provider == TONES.provider {
            &tones
        } else {
            of_service
        };
        let language = self.language.unwrap_or("en-US");
        Some(super::provider::say(voice, text, language, self.speaker).await)
    }
}

/// All that there are here, in the order of their lists.
pub fn all(program: &str, providers: &Providers) -> Vec<Builtin> {
    let mut all = vec![TONES.clone()];
    let own = ESPEAK.iter().chain(&FLITE).filter(|voice| voice.provider == program);
    all.extend(own.cloned());
    if let Some(realtime) = &providers.realtime {
        all.extend(realtime.voices().iter().map(|name| provided("realtime", name)));
    }
    if let Some(speech) = &providers.speech.provider {
        let name = speech.kind().name();
        // One name may be known to both.
        let is_new = |all: &[Builtin], id: &str| all.iter().all(|known| known.id != id);
        let others = speech.voices().iter().filter(|voice| is_new(&all, &voice.id));
        let others = others.map(|voice| Builtin {
            watermark: speech.says_it_marks(),
            ..provided(name, &voice.id)
        });
        let others: Vec<Builtin> = others.collect();
        all.extend(others);
    }
    all
}

/// The service's own voice for that language (BCP 47): the country's where there is one, else the language's, else English.
pub fn default_of(program: &str, language: &str) -> &'static str {
    let primary = |tag: &str| tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
    let is_tag = |voice: &&Builtin, tag: &str| voice.language.is_some_and(|own| own.eq_ignore_ascii_case(tag));
    let wanted = primary(language);
    let speaks_it = |voice: &&Builtin| voice.language.is_some_and(|own| primary(own) == wanted);
    let own: Vec<&'static Builtin> = ESPEAK.iter().filter(|voice| voice.provider == program).collect();
    let own = || own.iter().copied();
    let found = own()
        .find(|voice| is_tag(voice, language))
        .or_else(|| own().find(|voice| is_tag(voice, &wanted)))
        // Of English there are several: plain `en` is America's.
        .or_else(|| own().find(|voice| wanted != "en" && speaks_it(voice)))
        .or_else(|| own().find(|voice| is_tag(voice, "en-US")))
        .or_else(|| FLITE.iter().find(|voice| voice.provider == program && voice.speaker == Speaker::Agent));
    match found.map(|voice| &voice.id) {
        Some(Cow::Borrowed(id)) => id,
        Some(Cow::Owned(_)) | None => ALWAYS_THERE,
    }
}

/// Who speaks in a call, by the first of these that there is; a name that the operator has since taken away is passed over. If
/// there is none: the speech provider's first, or this machine's for the language.
pub fn of_call<'a>(
    program: &str,
    providers: &Providers,
    chosen: impl IntoIterator<Item = Option<&'a str>>,
    language: &str,
) -> String {
    let is_builtin = |id: &str| all(program, providers).iter().any(|voice| voice.id == id);
    // A clone that is spoken with is not deleted.
    let is_there = |id: &&str| uuid::Uuid::parse_str(id).is_ok() || is_builtin(id);
    if let Some(chosen) = chosen.into_iter().flatten().find(is_there) {
        return chosen.to_owned();
    }
    let provided = providers.speech.default_voice();
    provided.unwrap_or_else(|| default_of(program, language)).to_owned()
}

/// May it be told to a provider by that name? What is ours, it does not know.
pub fn is_foreign(voice_id: &str) -> bool {
    !voice_id.starts_with("builtin:") && uuid::Uuid::parse_str(voice_id).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speech::{HostedVoice, Kind, Provider, Speech};

    #[test]
    fn ids_are_those_of_this_machine_and_none_is_there_twice() {
        let ids = |program: &str| -> Vec<_> {
            let voices = all(program, &Providers::default());
            voices.into_iter().map(|voice| voice.id).collect()
        };
        assert_eq!(ids("tones"), ["builtin:tones"]);
        assert_eq!(
            ids("flite"),
            ["builtin:tones", "builtin:flite-rms", "builtin:flite-slt"]
        );
        let mut espeak = ids("espeak-ng");
        assert!(espeak.iter().any(|voice| voice == "builtin:espeak-ng-en-US"));
        espeak.sort();
        espeak.dedup();
        assert_eq!(espeak.len(), 1 + ESPEAK.len());
    }

    #[test]
    fn a_language_has_its_default_voice() {
        for (program, language, id) in [
            ("espeak-ng", "de", "builtin:espeak-ng-de"),
            ("espeak-ng", "de-AT", "builtin:espeak-ng-de"),
            ("espeak-ng", "EN-gb", "builtin:espeak-ng-en-GB"),
            ("espeak-ng", "en", "builtin:espeak-ng-en-US"),
            ("espeak-ng", "en-AU", "builtin:espeak-ng-en-US"),
            ("espeak-ng", "es", "builtin:espeak-ng-es-ES"),
            ("espeak-ng", "pt", "builtin:espeak-ng-pt-BR"),
            ("espeak-ng", "vi", "builtin:espeak-ng-en-US"),
            ("flite", "de", "builtin:flite-slt"),
            ("tones", "de", ALWAYS_THERE),
        ] {
            assert_eq!(default_of(program, language), id, "{program} {language}");
        }
    }

    #[test]
    fn the_realtime_providers_voices_are_those_that_the_operator_names() {
        let provider = crate::brain::realtime::Provider::new("ws://127.0.0.1:9", "", "m").unwrap();
        let providers = Providers {
            realtime: Some(provider.with_voices(vec!["eve".into()])),
            ..Providers::default()
        };
        let voices = all("tones", &providers);
        let told: Vec<_> = voices
            .iter()
            .map(|voice| (&*voice.id, &*voice.name, voice.is_provided()))
            .collect();
        assert_eq!(told, [(ALWAYS_THERE, "Tones, no words", false), ("eve", "Eve", true)]);
    }

    #[test]
    fn the_speech_providers_voices_stand_beside_them() {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let realtime = crate::brain::realtime::Provider::new("ws://127.0.0.1:9", "", "m").unwrap();
        let speech = Provider::new(Kind::Openai, "http://127.0.0.1:9/v1", None, "kokoro").unwrap();
        let voices = ["bella=af_bella", "eve"].map(HostedVoice::parse);
        let providers = Providers {
            realtime: Some(realtime.with_voices(vec!["eve".into()])),
            speech: Speech {
                provider: Some(speech.with_voices(voices.into())),
                ..Speech::default()
            },
            ..Providers::default()
        };
        let voices = all("tones", &providers);
        let told: Vec<_> = voices.iter().map(|voice| (&*voice.id, voice.provider)).collect();
        assert_eq!(
            told,
            [(ALWAYS_THERE, "tones"), ("eve", "realtime"), ("bella", "openai")]
        );
        assert!(voices[2].is_provided());
        for (chosen, spoken) in [
            (None, "bella"),
            (Some("af_bella"), "bella"),
            (Some("eve"), "eve"),
            (Some(ALWAYS_THERE), ALWAYS_THERE),
        ] {
            assert_eq!(of_call("tones", &providers, [chosen], "en"), spoken);
        }
    }

    #[test]
    fn a_provider_is_told_its_own_names_only() {
        assert!(is_foreign("marin"));
        for ours in ["builtin:tones", "0197c5c1-0d5e-7cc0-9d3c-0a1b2c3d4e5f"] {
            assert!(!is_foreign(ours), "{ours}");
        }
    }
}
