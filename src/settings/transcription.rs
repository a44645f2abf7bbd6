//! Who understands what is said in talks.
use super::{
    Settings,
    check::{BadSetting, choice, unused},
};
use adapters::transcription::{Kind, Provider};

impl Settings {
    pub(super) fn transcription(&self) -> Result<Option<Provider>, BadSetting> {
        let fallback = self.fallback_transcription()?;
        match (self.first_transcription()?, fallback) {
            (Some(first), Some(fallback)) => Ok(Some(first.with_fallback(fallback))),
            (None, Some(_)) => Err(BadSetting(
                "transcription_fallback_provider: also set `transcription_provider`, or it is never used".into(),
            )),
            (first, None) => Ok(first),
        }
    }

    fn first_transcription(&self) -> Result<Option<Provider>, BadSetting> {
        let name = &self.transcription_provider;
        let kind = match choice("transcription_provider", name, Kind::ALL, Kind::name)? {
            Some(kind) => kind,
            None if !self.transcription_url.trim().is_empty() => Kind::Openai,
            None => {
                // An address alone would do as well.
                let others = [
                    ("transcription_api_key", self.transcription_api_key.expose()),
                    ("transcription_model", self.transcription_model.as_str()),
                ];
                unused(&["transcription_provider", "transcription_url"], others)?;
                return Ok(None);
            }
        };
        let key = self.transcription_api_key.given();
        let provider = Provider::new(kind, &self.transcription_url, key, &self.transcription_model);
        provider
            .map(Some)
            .map_err(|why| BadSetting(format!("transcription_url: {why}")))
    }

    /// Who is asked where the first does not understand.
    fn fallback_transcription(&self) -> Result<Option<Provider>, BadSetting> {
        let (setting, name) = ("transcription_fallback_provider", &self.transcription_fallback_provider);
        let (url, model) = (&self.transcription_fallback_url, &self.transcription_fallback_model);
        let Some(kind) = choice(setting, name, Kind::ALL, Kind::name)? else {
            let key = self.transcription_fallback_api_key.expose();
            let others = [
                ("transcription_fallback_url", url.as_str()),
                ("transcription_fallback_api_key", key),
                ("transcription_fallback_model", model.as_str()),
            ];
            unused(&[setting], others)?;
            return Ok(None);
        };
        let provider = Provider::new(kind, url, self.transcription_fallback_api_key.given(), model);
        provider
            .map(Some)
            .map_err(|why| BadSetting(format!("transcription_fallback_url: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(settings: &[(&str, &str)]) -> Result<Option<Provider>, BadSetting> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let flags: Vec<_> = settings
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        Settings::load(None, &flags)?.transcription()
    }

    #[test]
    fn an_address_alone_is_openais_protocol_and_a_provider_alone_its_own_address() {
        assert!(with(&[]).unwrap().is_none());
        let url = ("transcription_url", "http://127.0.0.1:8000/v1");
        assert_eq!(with(&[url]).unwrap().unwrap().name(), "openai");
        for kind in Kind::ALL {
            let named = ("transcription_provider", kind.name());
            let settings = [named, ("transcription_api_key", "sk-1")];
            let provider = with(&settings).unwrap().unwrap();
            assert_eq!(provider.name(), kind.name());
            assert_eq!(provider.detects_turns(), kind == Kind::DeepgramFlux);
            assert!(with(&[named, url]).is_ok());
        }
    }

    #[test]
    fn another_may_be_asked_where_it_does_not_understand() {
        let settings = [
            ("transcription_provider", "deepgram_flux"),
            ("transcription_api_key", "sk-1"),
            ("transcription_fallback_provider", "openai"),
            ("transcription_fallback_url", "http://127.0.0.1:8000/v1"),
            ("transcription_fallback_model", "small"),
        ];
        let provider = with(&settings).unwrap().unwrap();
        assert_eq!((provider.name(), provider.detects_turns()), ("deepgram_flux", true));
    }

    #[test]
    fn what_cannot_be_meant_is_told_with_its_setting() {
        let table: [(&[(&str, &str)], &str); 10] = [
            (
                &[("transcription_fallback_provider", "deepgram")],
                "transcription_fallback_provider: also set",
            ),
            (
                &[("transcription_fallback_url", "http://x")],
                "transcription_fallback_url: also set",
            ),
            (
                &[("transcription_fallback_provider", "whisper")],
                "transcription_fallback_provider: `whisper` is not one of",
            ),
            (
                &[
                    ("transcription_provider", "deepgram"),
                    ("transcription_fallback_provider", "openai"),
                    ("transcription_fallback_url", "ftp://host"),
                ],
                "transcription_fallback_url: is not of the form https://host/v1",
            ),
            (
                &[("transcription_provider", "whisper")],
                "transcription_provider: `whisper` is not one of openai, openai_realtime, deepgram, deepgram_flux",
            ),
            (
                &[("transcription_api_key", "sk-1")],
                "transcription_api_key: also set `transcription_provider` or `transcription_url`, or it has no effect",
            ),
            (
                &[("transcription_model", "whisper-1")],
                "transcription_model: also set `transcription_provider` or `transcription_url`, or it has no effect",
            ),
            (
                &[
                    ("transcription_provider", "deepgram"),
                    ("transcription_url", "ftp://host"),
                ],
                "transcription_url: starts with `ftp`",
            ),
            (
                &[
                    ("transcription_provider", "openai_realtime"),
                    ("transcription_url", "wss://host/v1/realtime?model=m"),
                ],
                "transcription_url: is not of the form wss://host/v1/realtime",
            ),
            (
                &[("transcription_provider", "openai"), ("transcription_api_key", "a b")],
                "transcription_url: the API key",
            ),
        ];
        for (settings, expected) in table {
            let said = with(settings).unwrap_err().to_string();
            assert!(said.starts_with(expected), "{settings:?}: {said}");
        }
    }
}
