//! Who understands what is said in talks.
use super::{
    Settings,
    check::{BadSetting, choice},
};
use adapters::transcription::{Kind, Provider};

impl Settings {
    pub(super) fn transcription(&self) -> Result<Option<Provider>, BadSetting> {
        let name = &self.transcription_provider;
        let kind = match choice("transcription_provider", name, Kind::ALL, Kind::name)? {
            Some(kind) => kind,
            None if !self.transcription_url.trim().is_empty() => Kind::Openai,
            None if self.transcription_api_key.given().is_some() => {
                return Err(BadSetting(
                    "transcription_api_key: also set `transcription_provider` or `transcription_url`, else nobody is asked"
                        .into(),
                ));
            }
            None => return Ok(None),
        };
        let key = self.transcription_api_key.given();
        let provider = Provider::new(kind, &self.transcription_url, key, &self.transcription_model);
        provider
            .map(Some)
            .map_err(|why| BadSetting(format!("transcription_url: {why}")))
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
    fn what_cannot_be_meant_is_told_with_its_setting() {
        let table: [(&[(&str, &str)], &str); 5] = [
            (
                &[("transcription_provider", "whisper")],
                "transcription_provider: `whisper` is not one of openai, openai_realtime, deepgram, deepgram_flux",
            ),
            (&[("transcription_api_key", "sk-1")], "transcription_api_key: also set"),
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
