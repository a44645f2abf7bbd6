//! Whom the service works with: mail, SMS, brains, voices, the store of recordings.
use super::{
    Settings,
    check::{BadSetting, list, within},
    speech,
};
use actors::{email::door::Emails, voice_clone::cloning::Cloning};
use adapters::{
    brain::{Providers, chat, realtime},
    mail::post::Post,
    recording::{
        spool::Spools,
        vault::{S3Options, Vault},
        voice::Voice,
    },
    sms::{doors::Sms, twilio::Twilio},
    voice_clone::{elevenlabs::Elevenlabs, provider::Sandbox},
};
use runtime::keyring::{Keyring, purpose};

pub(super) fn validate(settings: &Settings) -> Result<(), BadSetting> {
    settings.post()?;
    settings.sms()?;
    settings.providers()?;
    settings.voice()?;
    settings.cloning()?;
    if settings.recordings.is_empty() {
        return Err(BadSetting(
            "recordings: is empty; name a folder or s3://BUCKET/PREFIX".into(),
        ));
    }
    if settings.recordings_spool.is_empty() {
        return Err(BadSetting("recordings_spool: is empty; name a folder".into()));
    }
    within(
        "recordings_spool_max_mb",
        settings.recordings_spool_max_mb,
        1..=1_000_000_000,
    )?;
    within("sandbox_speed", settings.sandbox_speed, 0.0..=1e9)?;
    if settings.sandbox_speed == 0.0 {
        return Err(BadSetting("sandbox_speed: must be more than 0".into()));
    }
    within(
        "sandbox_calls_per_second",
        settings.sandbox_calls_per_second,
        0.0..=100_000.0,
    )
    .map(drop)
}

impl Settings {
    /// Where e-mails go. In `--dev`, without a server, into files.
    pub fn post(&self) -> Result<Post, BadSetting> {
        let from = |why| BadSetting(format!("mail_from: {why}"));
        if let Some(url) = self.smtp_url.given() {
            return Post::smtp(url, &self.mail_from).map_err(|why| BadSetting(format!("smtp_url: {why}")));
        }
        if self.dev {
            return Post::folder(self.mail_folder.clone().into(), &self.mail_from).map_err(from);
        }
        Ok(Post::Unconfigured)
    }

    /// Who hands SMS over.
    pub fn sms(&self) -> Result<Sms, BadSetting> {
        let help = &self.sms_help_text;
        if help.chars().count() > 320 || help.chars().any(char::is_control) {
            return Err(BadSetting(
                "sms_help_text: must be one line of at most 320 characters".into(),
            ));
        }
        let twilio = (!self.sms_account_sid.is_empty()).then(|| {
            Twilio::new(
                &self.sms_url,
                &self.sms_account_sid,
                self.sms_auth_token.expose(),
                &self.sms_from,
            )
            .map_err(BadSetting)
        });
        Ok(Sms::new(twilio.transpose()?, help.clone()))
    }

    /// How e-mails to people outside are handed over. In `--dev` test keys' messages become files.
    pub fn emails(&self) -> Emails {
        Emails::new(self.dev.then(|| self.mail_folder.clone().into()))
    }

    /// What agents think with.
    pub fn providers(&self) -> Result<Providers, BadSetting> {
        let chat = (!self.chat_url.is_empty()).then(|| {
            chat::Provider::new(&self.chat_url, self.chat_api_key.given(), &self.chat_model)
                .map_err(|why| BadSetting(format!("chat_url: {why}")))
        });
        let chat = chat.transpose()?;
        let opt_out = match (self.opt_out_model.trim(), &chat) {
            ("", _) => None,
            (_, None) => {
                return Err(BadSetting(
                    "opt_out_model: also set `chat_url`, the provider that serves it".into(),
                ));
            }
            (model, Some(provider)) => Some(provider.clone().for_model(model)),
        };
        let realtime = (!self.realtime_url.is_empty()).then(|| {
            realtime::Provider::new(&self.realtime_url, self.realtime_api_key.expose(), &self.realtime_model)
                .map_err(|why| BadSetting(format!("realtime_url: {why}")))
        });
        let own_words = self.realtime_transcription_model.trim();
        if realtime.is_none() && !own_words.is_empty() {
            return Err(BadSetting(
                "realtime_transcription_model: also set `realtime_url`, or it has no effect".into(),
            ));
        }
        let voices: Vec<String> = list(&self.realtime_voices).map(str::to_owned).collect();
        speech::check_names("realtime_voices", voices.iter().map(String::as_str))?;
        Ok(Providers {
            chat,
            realtime: realtime
                .transpose()?
                .map(|realtime| realtime.with_voices(voices).with_transcription(own_words)),
            transcription: self.transcription()?,
            opt_out,
            speech: self.speech()?,
        })
    }

    /// Who speaks in recordings.
    pub fn voice(&self) -> Result<Voice, BadSetting> {
        Voice::find(&self.voice).map_err(|why| BadSetting(format!("voice: {why}")))
    }

    /// Who makes clones of voices.
    pub fn cloning(&self) -> Result<Cloning, BadSetting> {
        let seconds = self.voice_training_timeout_seconds;
        within("voice_training_timeout_seconds", seconds, 1..=86_400)?;
        let live = (!self.voice_provider_url.is_empty()).then(|| {
            Elevenlabs::new(&self.voice_provider_url, self.voice_provider_api_key.expose())
                .map_err(|why| BadSetting(format!("voice_provider_url: {why}")))
        });
        Ok(Cloning::new(Sandbox(self.voice()?), live.transpose()?, seconds))
    }

    /// Where recordings lie.
    pub fn vault(&self, keyring: &Keyring) -> Result<Vault, BadSetting> {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let s3 = S3Options {
            endpoint: some(&self.recordings_s3_endpoint),
            region: some(&self.recordings_s3_region),
            access_key_id: some(&self.recordings_s3_access_key_id),
            secret_access_key: some(self.recordings_s3_secret_access_key.expose()),
            allow_http: self.recordings_s3_endpoint.starts_with("http://"),
        };
        let (key, previous) = keyring.derived(purpose::RECORDINGS);
        Vault::open(&self.recordings, s3, key, previous).map_err(|why| BadSetting(format!("recordings: {why}")))
    }

    /// Where the sound of lines waits to be stored there.
    pub fn spools(&self, vault: &Vault) -> Result<Spools, BadSetting> {
        let most_bytes = self.recordings_spool_max_mb.saturating_mul(1_000_000);
        Spools::start(self.recordings_spool.as_ref(), most_bytes, vault)
            .map_err(|why| BadSetting(format!("recordings_spool: {why}")))
    }
}
