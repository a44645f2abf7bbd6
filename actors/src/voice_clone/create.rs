//! A clone is made of samples that have been uploaded.
use super::samples::whole;
use crate::{
    birth::{self, Birth},
    deps::Deps,
};
use entities::{
    Result, boxed,
    ids::{TenantId, VoiceId},
    values::Env,
    voice::{
        Consent, Maker, Model, Status,
        sample::{EVIDENCE, Model as Sample},
    },
};
use rules::voice_clone::machine::Voice;

/// A clone that is asked for.
#[derive(Clone, Debug)]
pub struct New {
    pub id: VoiceId,
    pub provider: Maker,
    pub name: String,
    /// BCP 47.
    pub language: Option<String>,
    /// What shows that the person has agreed; its file is among the samples.
    pub consent: Option<Consent>,
}

/// Its samples count from now on; its actor has it trained.
#[boxed]
pub async fn create(deps: &Deps, (tenant_id, env): (TenantId, Env), new: New, samples: &[Sample]) -> Result<Model> {
    let now = deps.clock.now();
    let spoken = samples.iter().filter(|sample| sample.place != EVIDENCE);
    let row = Model {
        id: new.id,
        tenant_id,
        env,
        name: new.name,
        language: new.language,
        provider: new.provider,
        provider_voice_id: None,
        status: Status::Pending,
        samples: i32::try_from(spoken.count()).unwrap_or(i32::MAX),
        run: 0,
        deadline: None,
        submitted_at: None,
        leftovers: false,
        wake_at: Some(now),
        tries: 0,
        error_code: None,
        error_message: None,
        consent_attested_at: now,
        consent: new.consent,
        ready_at: None,
        version: 1,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    let voice = Voice {
        row,
        training_seconds: deps.cloning.training_seconds,
    };
    let mut birth = Birth::of(voice, Vec::new());
    birth.commit.changes.voice_samples.extend(whole(samples));
    Ok(birth::create(deps, birth).await?.row)
}
