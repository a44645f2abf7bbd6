//! How a call is handled: its agent's settings, under what its campaign or its request says instead.
use entities::{
    agent::{Channels, ConsentMode, Definition, Disposition},
    session::{Options, Recorded, Sandbox, Voicemail},
    values::Bounded,
};
use schemars::JsonSchema;
use serde::Deserialize;

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
}

/// What is asked for instead of the agent's own settings.
#[derive(Clone, Debug, Default)]
pub struct Asked<'a> {
    pub recording: RecordingOverride,
    pub voicemail: Voicemail,
    pub dispositions: &'a [Disposition],
    pub sandbox: Option<Sandbox>,
}

pub fn options(agent: &Definition, asked: Asked<'_>) -> Options {
    let own = &agent.recording;
    let recording = asked.recording.enabled.unwrap_or(own.enabled).then(|| Recorded {
        channels: asked.recording.channels.unwrap_or(own.channels),
        consent: asked.recording.consent.unwrap_or(own.consent),
        retention_days: asked
            .recording
            .retention_days
            .or(own.retention_days)
            .map(|days| days.get()),
    });
    Options {
        recording,
        silence_seconds: agent.silence.hangup_after_seconds.get(),
        voicemail: asked.voicemail,
        has_dispositions: !(agent.dispositions.is_empty() && asked.dispositions.is_empty()),
        has_questions: !agent.questions.is_empty(),
        dispositions: asked.dispositions.to_vec(),
        sandbox: asked.sandbox,
        number_id: None,
    }
}
