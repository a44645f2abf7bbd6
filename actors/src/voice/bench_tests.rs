//! What the tests of these parts have in common.
use adapters::transcription::{Hear, Transcribed, Transcript};
use rules::turn::{settings::Settings, vocabulary};
use tokio::sync::mpsc;

/// Of an agent that nobody has changed.
pub fn settings(language: &str) -> Settings {
    Settings {
        by_provider: false,
        silence_ms: 500,
        unfinished_ms: 1_400,
        eager: true,
        min_voice_ms: 200,
        min_words: 0,
        margin_db: 20.0,
        resumes: true,
        vocabulary: vocabulary::of(language),
    }
}

/// Who tells words, by hand.
pub fn teller() -> (Transcript, mpsc::Receiver<Hear>, mpsc::Sender<Transcribed>) {
    let (input, asked) = mpsc::channel(1_024);
    let (tell, events) = mpsc::channel(16);
    let provider = "teller";
    let transcript = Transcript {
        provider,
        input,
        events,
    };
    (transcript, asked, tell)
}
