//! Who speaks in talks.
use super::{
    Settings,
    check::{BadSetting, choice, list, unused},
};
use adapters::{
    speech::{HostedVoice, Kind, Provider, Second, Speech},
    voice_clone::builtin,
};
use std::collections::HashSet;

impl Settings {
    pub(super) fn speech(&self) -> Result<Speech, BadSetting> {
        let speech = Speech {
            provider: self.speech_provider()?,
            second: self.second_speech_provider()?,
            clones: self.clones_speech_provider()?,
            local: self.voice()?,
        };
        if speech.second.is_some() && speech.provider.is_none() && speech.clones.is_none() {
            return Err(BadSetting(
                "speech_fallback_provider: also set `speech_provider`, or it is never used".into(),
            ));
        }
        Ok(speech)
    }

    fn speech_provider(&self) -> Result<Option<Provider>, BadSetting> {
        let kind = choice("speech_provider", &self.speech_provider, Kind::ALL, Kind::name)?;
        let Some(kind) = kind else {
            unused(
                &["speech_provider"],
                [
                    ("speech_url", self.speech_url.as_str()),
                    ("speech_api_key", self.speech_api_key.expose()),
                    ("speech_model", &self.speech_model),
                    ("speech_voices", &self.speech_voices),
                ],
            )?;
            return Ok(None);
        };
        let key = self.speech_api_key.given();
        let provider = Provider::new(kind, &self.speech_url, key, &self.speech_model)
            .map_err(|why| BadSetting(format!("speech_url: {why}")))?;
        let voices: Vec<HostedVoice> = list(&self.speech_voices).map(HostedVoice::parse).collect();
        check_names("speech_voices", voices.iter().map(|voice| voice.id.as_str()))?;
        if voices
            .iter()
            .any(|voice| voice.at_provider.is_empty() || voice.at_provider.chars().count() > 200)
        {
            return Err(BadSetting(
                "speech_voices: write each voice as the provider's name for it, or as Name=id; the provider's has 1 to 200 characters"
                    .into(),
            ));
        }
        let provider = provider.that_marks(self.speech_watermark);
        let provider = match voices.is_empty() {
            true => provider,
            false => provider.with_voices(voices),
        };
        if provider.voices().is_empty() {
            return Err(BadSetting(format!(
                "speech_voices: name at least one voice of your account at {}, as Name=id",
                kind.name()
            )));
        }
        Ok(Some(provider))
    }

    fn second_speech_provider(&self) -> Result<Option<Second>, BadSetting> {
        let voice = self.speech_fallback_voice.trim();
        let kind = choice(
            "speech_fallback_provider",
            &self.speech_fallback_provider,
            Kind::ALL,
            Kind::name,
        )?;
        let Some(kind) = kind else {
            unused(
                &["speech_fallback_provider"],
                [
                    ("speech_fallback_url", self.speech_fallback_url.as_str()),
                    ("speech_fallback_api_key", self.speech_fallback_api_key.expose()),
                    ("speech_fallback_model", &self.speech_fallback_model),
                    ("speech_fallback_voice", voice),
                ],
            )?;
            return Ok(None);
        };
        let key = self.speech_fallback_api_key.given();
        let provider = Provider::new(kind, &self.speech_fallback_url, key, &self.speech_fallback_model)
            .map_err(|why| BadSetting(format!("speech_fallback_url: {why}")))?;
        let voice = match (voice, provider.voices().first()) {
            ("", Some(usual)) => usual.at_provider.clone(),
            ("", None) => {
                return Err(BadSetting(format!(
                    "speech_fallback_voice: name a voice of your account at {}",
                    kind.name()
                )));
            }
            (voice, _) => voice.to_owned(),
        };
        Ok(Some(Second { provider, voice }))
    }

    /// The clones' own provider, with the model that its other voices speak with.
    fn clones_speech_provider(&self) -> Result<Option<Provider>, BadSetting> {
        if self.voice_provider_url.is_empty() {
            return Ok(None);
        }
        let is_same = self.speech_provider.trim() == Kind::Elevenlabs.name();
        let model = if is_same { self.speech_model.as_str() } else { "" };
        let key = self.voice_provider_api_key.given();
        let provider = Provider::new(Kind::Elevenlabs, &self.voice_provider_url, key, model);
        provider
            .map(|provider| Some(provider.that_marks(self.voice_provider_watermark)))
            .map_err(|why| BadSetting(format!("voice_provider_url: {why}")))
    }
}

/// A provider's voices, as they are called here. Names that are the service's own, or look like a clone's, would never be told to
/// it.
pub(super) fn check_names<'a>(setting: &str, names: impl Iterator<Item = &'a str>) -> Result<(), BadSetting> {
    let names: Vec<&str> = names.collect();
    let is_good = |name: &&str| (1..=100).contains(&name.chars().count()) && builtin::is_foreign(name);
    if let Some(bad) = names.iter().find(|name| !is_good(name)) {
        return Err(BadSetting(format!(
            "{setting}: `{bad}` cannot be the name of a provider's voice; one that the provider knows by a UUID needs a name here"
        )));
    }
    let distinct: HashSet<&str> = names.iter().copied().collect();
    if distinct.len() < names.len() || names.len() > 200 {
        return Err(BadSetting(format!(
            "{setting}: takes at most 200 names, each only once"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(settings: &[(&str, &str)]) -> Result<Speech, BadSetting> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let flags: Vec<_> = settings
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        Settings::load(None, &flags)?.speech()
    }

    #[test]
    fn voices_have_names_here_and_at_their_provider() {
        let speech = with(&[
            ("speech_provider", "cartesia"),
            ("speech_voices", "Katie = f786b574-daa5-4673-aa0c-cbe3e8534c02, plain"),
        ]);
        let provider = speech.unwrap().provider.unwrap();
        let voices: Vec<_> = provider
            .voices()
            .iter()
            .map(|voice| (&*voice.id, &*voice.at_provider))
            .collect();
        assert_eq!(
            voices,
            [("Katie", "f786b574-daa5-4673-aa0c-cbe3e8534c02"), ("plain", "plain")]
        );
        for (kind, usual) in [("openai", "alloy"), ("piper", "piper")] {
            let speech = with(&[("speech_provider", kind)]).unwrap();
            assert_eq!(speech.default_voice(), Some(usual));
            assert!(!speech.provider.unwrap().says_it_marks());
        }
        let marking = [("speech_provider", "piper"), ("speech_watermark", "true")];
        assert!(with(&marking).unwrap().provider.unwrap().says_it_marks());
        assert!(with(&[]).unwrap().provider.is_none());
    }

    #[test]
    fn the_fallback_is_a_provider_and_a_voice() {
        let speech = with(&[
            ("speech_provider", "piper"),
            ("speech_fallback_provider", "elevenlabs"),
            ("speech_fallback_voice", "21m00Tcm4TlvDq8ikWAM"),
        ]);
        let second = speech.unwrap().second.unwrap();
        assert_eq!(
            (second.provider.kind(), &*second.voice),
            (Kind::Elevenlabs, "21m00Tcm4TlvDq8ikWAM")
        );
        let settings = [("speech_provider", "piper"), ("speech_fallback_provider", "openai")];
        let usual = with(&settings).unwrap().second.unwrap();
        assert_eq!(usual.voice, "alloy");
    }

    #[test]
    fn what_cannot_be_meant_is_told_with_its_setting() {
        let table: [(&[(&str, &str)], &str); 11] = [
            (
                &[("speech_provider", "openai"), ("speech_url", "api.example.com")],
                "speech_url: is not a URL",
            ),
            (
                &[("speech_provider", "cartesia"), ("speech_url", "ftp://x")],
                "speech_url: starts with",
            ),
            (
                &[("speech_provider", "openai"), ("speech_api_key", "a b")],
                "speech_url: the API key",
            ),
            (&[("speech_provider", "elevenlabs")], "speech_voices: name at least one"),
            (
                &[
                    ("speech_provider", "cartesia"),
                    ("speech_voices", "f786b574-daa5-4673-aa0c-cbe3e8534c02"),
                ],
                "speech_voices: `f786b574",
            ),
            (
                &[("speech_provider", "piper"), ("speech_voices", "a,a=b")],
                "speech_voices: takes at most",
            ),
            (
                &[("speech_provider", "piper"), ("speech_voices", "a=")],
                "speech_voices: write each voice",
            ),
            (
                &[("speech_provider", "piper"), ("speech_voices", "builtin:tones")],
                "speech_voices: `builtin",
            ),
            (
                &[("speech_fallback_provider", "cartesia")],
                "speech_fallback_voice: name a voice",
            ),
            (&[("speech_fallback_url", "http://x")], "speech_fallback_url: also set"),
            (
                &[("speech_fallback_provider", "openai")],
                "speech_fallback_provider: also set",
            ),
        ];
        for (settings, expected) in table {
            let said = with(settings).unwrap_err().to_string();
            assert!(said.starts_with(expected), "{settings:?}: {said}");
        }
    }
}
