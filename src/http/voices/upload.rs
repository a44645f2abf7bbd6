//! Files on their way into the store, and the texts beside them.
use super::{
    super::{
        error::{ApiError, ApiResult, Code},
        language::check_language,
    },
    form::{Form, Part},
    given::ConsentGiven,
};
use crate::{http::caller::Caller, state::State};
use actors::voice_clone::samples::{self, MAX_TOTAL};
use entities::{
    ids::{VoiceId, VoiceSampleId},
    values::{Env, Moment, Text},
    voice::{
        Consent,
        sample::{EVIDENCE, Model as Sample},
    },
};
use rules::voice_clone::machine::MAX_SAMPLES;

/// The texts of a form.
#[derive(Default)]
pub(super) struct Asked {
    name: Option<String>,
    language: Option<String>,
    consent_attested: Option<String>,
    consent: Option<String>,
}

/// What a clone is to be.
pub(super) struct Settings {
    pub name: String,
    pub language: Option<String>,
    pub consent: Option<Consent>,
}

impl Asked {
    fn put(&mut self, name: &str, value: String) -> ApiResult<()> {
        let field = match name {
            "name" => &mut self.name,
            "language" => &mut self.language,
            "consent" => &mut self.consent,
            _ => &mut self.consent_attested,
        };
        if field.replace(value).is_some() {
            return Err(ApiError::validation(name, "is given twice"));
        }
        Ok(())
    }

    /// `evidence`: the file that shows that the person has agreed. Who clones for calls to real people has to have one.
    pub fn settings(self, env: Env, evidence: Option<&Sample>, now: Moment) -> ApiResult<Settings> {
        let name = self
            .name
            .as_deref()
            .ok_or_else(|| ApiError::validation("name", "is required"))?;
        let name = Text::<1, 100>::parse(name).map_err(|why| ApiError::validation("name", why))?;
        let language = self.language.as_deref().filter(|language| !language.is_empty());
        let language = language.map(Text::<2, 35>::parse).transpose();
        let language = language.map_err(|why| ApiError::validation("language", why))?;
        language.as_deref().map_or(Ok(()), check_language)?;
        let consent = self.proof(evidence, now)?;
        if consent.is_none() {
            self.check_tick(env)?;
        }
        Ok(Settings {
            name: name.into_string(),
            language: language.map(Text::into_string),
            consent,
        })
    }

    /// What shows that the person has agreed, if something was given.
    pub fn proof(&self, evidence: Option<&Sample>, now: Moment) -> ApiResult<Option<Consent>> {
        let missing = |field: &str, why: &str| Err(ApiError::validation(field, why));
        match (&self.consent, evidence) {
            (Some(consent), Some(file)) => ConsentGiven::read(consent)?.with(file, now).map(Some),
            (Some(_), None) => missing("consent_evidence", "is required with `consent`: the file that shows it"),
            (None, Some(_)) => missing(
                "consent",
                "is required with `consent_evidence`: who has agreed, when and to which words",
            ),
            (None, None) => Ok(None),
        }
    }

    fn check_tick(&self, env: Env) -> ApiResult<()> {
        if env == Env::Live {
            let why =
                "is required with a live key, and `consent_evidence` with it: who has agreed, when and to which words";
            return Err(ApiError::validation("consent", why));
        }
        // Some clients write it as their own language does.
        let said = self.consent_attested.as_deref().unwrap_or_default();
        if said.eq_ignore_ascii_case("true") {
            return Ok(());
        }
        let why = "must be `true`: you need the consent of the person who speaks";
        Err(ApiError::validation("consent_attested", why))
    }
}

/// Samples on their way into the store.
pub(super) struct Upload<'a> {
    state: &'a State,
    caller: &'a Caller,
    voice: VoiceId,
    /// Samples and bytes that the voice has already.
    known: (usize, u64),
    /// And the file that shows that the person has agreed.
    pub samples: Vec<Sample>,
}

impl<'a> Upload<'a> {
    pub fn new(state: &'a State, caller: &'a Caller, voice: VoiceId, known: &[Sample]) -> Self {
        Upload {
            state,
            caller,
            voice,
            known: (known.len(), bytes(known)),
            samples: Vec::new(),
        }
    }

    pub fn evidence(&self) -> Option<&Sample> {
        self.samples.iter().find(|sample| sample.place == EVIDENCE)
    }

    /// Stores the files and answers the texts, of those names. A refused form leaves nothing.
    pub async fn receive(
        mut self,
        mut form: Form,
        texts: &[&str],
        files: &[&str],
        first: Option<VoiceSampleId>,
    ) -> ApiResult<(Self, Asked)> {
        let Ok(_permit) = self.state.deps.cloning.uploads.enter(self.caller.tenant_id()) else {
            form.drain().await;
            let why = "too many uploads are under way; try again shortly".into();
            return Err(ApiError::TooMany(Code::RateLimited, why, 10));
        };
        let mut asked = Asked::default();
        match self.read(&mut form, (texts, files), first, &mut asked).await {
            Ok(()) => Ok((self, asked)),
            Err(error) => {
                samples::drop_all(&self.state.deps, &self.samples).await?;
                form.drain().await;
                Err(error)
            }
        }
    }

    async fn read(
        &mut self,
        form: &mut Form,
        (texts, files): (&[&str], &[&str]),
        first: Option<VoiceSampleId>,
        asked: &mut Asked,
    ) -> ApiResult<()> {
        while let Some(part) = form.next().await? {
            match part {
                Part::File { name, file_name, file } if files.contains(&name.as_str()) => {
                    let place = self.place(&name)?;
                    self.take(place, file_name, file, first).await?;
                }
                Part::Text { name, value } if texts.contains(&name.as_str()) => asked.put(&name, value)?,
                Part::Text { name, .. } | Part::File { name, .. } => {
                    let known = [texts, files].concat().join("`, `");
                    return Err(ApiError::validation(
                        name,
                        format!("is not a field of this form; its fields are `{known}`"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Where the next file of that field stands.
    fn place(&self, name: &str) -> ApiResult<i32> {
        if name == "consent_evidence" {
            return match self.evidence() {
                Some(_) => Err(ApiError::validation(name, "is given twice")),
                None => Ok(EVIDENCE),
            };
        }
        let spoken = self.samples.iter().filter(|sample| sample.place != EVIDENCE);
        let place = i32::try_from(self.known.0 + spoken.count()).unwrap_or(i32::MAX);
        if place >= MAX_SAMPLES {
            let why = format!("a voice has at most {MAX_SAMPLES} samples");
            return Err(ApiError::validation("samples", why));
        }
        Ok(place)
    }

    async fn take(
        &mut self,
        place: i32,
        file_name: String,
        file: Vec<u8>,
        first: Option<VoiceSampleId>,
    ) -> ApiResult<()> {
        if self.known.1 + bytes(&self.samples) + file.len() as u64 > MAX_TOTAL {
            let message = format!("the samples of a voice have more than {MAX_TOTAL} bytes together");
            return Err(ApiError::Frame(Code::PayloadTooLarge, message, Some("samples".into())));
        }
        let deps = &self.state.deps;
        let id = first
            .filter(|_| self.samples.is_empty())
            .unwrap_or_else(|| deps.ids.next());
        let owner = (self.caller.tenant_id(), self.voice);
        self.samples
            .push(samples::put(deps, owner, (id, place), file_name, file).await?);
        Ok(())
    }
}

fn bytes(samples: &[Sample]) -> u64 {
    samples
        .iter()
        .map(|sample| u64::try_from(sample.bytes).unwrap_or(0))
        .sum()
}
