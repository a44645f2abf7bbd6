//! How a call is handled: its agent's settings, under what its campaign or its request says instead.
use entities::{
    Error, Result,
    agent::{Channels, ConsentMode, Definition, Disposition},
    session::{Options, Recorded, Sandbox, SandboxOutcome, Step, Voicemail, VoicemailAction},
    values::{Bounded, Env},
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;

/// What one call's recording is to be, instead of the agent's.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordingOverride {
    #[serde(default)]
    pub enabled: Option<bool>,
    #[serde(default)]
    pub channels: Option<Channels>,
    #[serde(default)]
    pub consent: Option<ConsentMode>,
    #[serde(default)]
    pub retention_days: Option<Bounded<1, 3650>>,
    #[serde(default)]
    pub transfers: Option<bool>,
}

/// What is asked for instead of the agent's own settings.
#[derive(Clone, Debug, Default)]
pub struct CallOverrides<'a> {
    pub recording: RecordingOverride,
    pub voicemail: Voicemail,
    pub dispositions: &'a [Disposition],
    pub sandbox: Option<Sandbox>,
}

pub fn options(agent: &Definition, asked: CallOverrides<'_>) -> Options {
    let own = &agent.recording;
    let recording = asked.recording.enabled.unwrap_or(own.enabled).then(|| Recorded {
        channels: asked.recording.channels.unwrap_or(own.channels),
        consent: asked.recording.consent.unwrap_or(own.consent),
        retention_days: asked
            .recording
            .retention_days
            .or(own.retention_days)
            .map(|days| days.get()),
        transfers: asked.recording.transfers.unwrap_or(own.transfers),
    });
    let dispositions = match asked.dispositions {
        [] => agent.dispositions.as_slice(),
        own => own,
    };
    let declined = dispositions.iter().filter(|one| one.declined);
    Options {
        recording,
        silence_seconds: agent.silence.hangup_after_seconds.get(),
        voicemail: asked.voicemail,
        has_dispositions: !(agent.dispositions.is_empty() && asked.dispositions.is_empty()),
        has_questions: !agent.questions.is_empty(),
        declined_codes: declined.map(|one| one.code.to_string()).collect(),
        safe_harbour: None,
        dispositions: asked.dispositions.to_vec(),
        sandbox: asked.sandbox,
        number_id: None,
        trace: None,
        legal: None,
    }
}

pub fn check_voicemail(voicemail: &Voicemail) -> Result<()> {
    if voicemail.action == VoicemailAction::LeaveMessage && voicemail.message.is_none() {
        return Err(Error::invalid("voicemail.message", "is needed for `leave_message`"));
    }
    Ok(())
}

/// How the sandbox plays the other side of a call that is placed.
pub fn check_sandbox(env: Env, sandbox: Option<&Sandbox>) -> Result<()> {
    let Some(sandbox) = sandbox else { return Ok(()) };
    if env == Env::Live {
        let why = "is for test keys: a live call has a real person";
        return Err(Error::invalid("sandbox", why));
    }
    if sandbox.outcome == Some(SandboxOutcome::Abandoned) {
        let why = "`abandoned` is for incoming calls only";
        return Err(Error::invalid("sandbox.outcome", why));
    }
    check_script("sandbox.script", &sandbox.script)
}

pub fn check_script(field: &str, script: &[Step]) -> Result<()> {
    if script.len() > 100 {
        return Err(Error::invalid(field, "has more than 100 entries"));
    }
    Ok(())
}

pub fn check_dispositions(field: &str, dispositions: &[Disposition]) -> Result<()> {
    unique(field, "code", dispositions.iter().map(|one| &*one.code))
}

/// The `key`s of the entries of `field`: at most 50, each once.
pub fn unique<'a>(field: &str, key: &str, words: impl ExactSizeIterator<Item = &'a str>) -> Result<()> {
    if words.len() > 50 {
        return Err(Error::invalid(field, "has more than 50 entries"));
    }
    let mut seen = BTreeSet::new();
    for (at, word) in words.enumerate() {
        if !seen.insert(word) {
            let why = format!("`{word}` is listed twice");
            return Err(Error::invalid(format!("{field}[{at}].{key}"), why));
        }
    }
    Ok(())
}
