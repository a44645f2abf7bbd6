//! Turn by turn: OpenAI's `/v1/audio/transcriptions`.
use super::{
    transcription_server::{Answer, TranscriptionServer},
    *,
};
use crate::transcription::batch::MAX_BODY;
use rules::conversation::guard;
use tokio::sync::watch;

fn provider(url: &str) -> Provider {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Provider::new(Kind::Openai, url, Some(KEY), "small-ear").unwrap()
}

/// 100 ms.
fn silence() -> Pcm {
    Pcm::new(16_000, vec![0; 1_600])
}

#[tokio::test]
async fn speech_becomes_words() {
    let server = TranscriptionServer::understanding(&["  Yes, of course. \u{7}\n"]).await;
    // A second of a square wave.
    let wave = (0..16_000).map(|at| if at / 20 % 2 == 0 { 32_124 } else { -32_124 });
    let speech = Pcm::new(16_000, wave.collect::<Vec<_>>());
    let heard = transcribe(&provider(&server.url()), &speech, "de-DE").await;
    assert_eq!(heard, Ok("Yes, of course.".into()));
    let asked = server.asked().remove(0);
    assert_eq!(asked.path, "POST /v1/audio/transcriptions");
    assert_eq!(asked.authorization, Some(format!("Bearer {KEY}")));
    let field = |name: &str| {
        asked
            .fields
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    };
    assert_eq!(
        (field("model"), field("language"), field("response_format")),
        (Some("small-ear"), Some("de"), Some("json"))
    );
    let (name, kind, file) = &asked.file;
    assert_eq!((name.as_str(), kind.as_str()), ("speech.wav", "audio/wav"));
    let mut wav = hound::WavReader::new(std::io::Cursor::new(file)).unwrap();
    assert_eq!(
        (wav.spec().sample_rate, wav.spec().channels, wav.spec().bits_per_sample),
        (16_000, 1, 16)
    );
    let samples: Vec<i16> = wav.samples().map(Result::unwrap).collect();
    assert_eq!((samples.len(), samples[0], samples[20]), (16_000, 32_124, -32_124));
}

#[tokio::test]
async fn the_address_may_end_with_the_host() {
    let server = TranscriptionServer::understanding(&["One.", "Two.", "Three."]).await;
    let host = server.url().replace("/v1", "");
    for (url, words) in [
        (host.clone(), "One."),
        (format!("{host}/"), "Two."),
        (format!("{host}/v1/"), "Three."),
    ] {
        assert_eq!(
            transcribe(&provider(&url), &silence(), "x-unknown").await,
            Ok(words.into())
        );
    }
    for asked in server.asked() {
        assert_eq!(asked.path, "POST /v1/audio/transcriptions");
        assert!(
            asked.fields.iter().all(|(name, _)| name != "language"),
            "no language of ISO 639"
        );
    }
}

#[tokio::test]
async fn bad_luck_is_tried_once_more() {
    for luck in [Answer::Status(503, "busy".into()), Answer::Status(429, "slowly".into())] {
        let server = TranscriptionServer::start_with(move |_, before| match before {
            0 => luck.clone(),
            _ => Answer::Words("Well.".into()),
        })
        .await;
        let heard = transcribe(&provider(&server.url()), &silence(), "en").await;
        assert_eq!((heard, server.asked().len()), (Ok("Well.".into()), 2));
    }
}

#[tokio::test]
async fn a_failure_says_what_to_do_and_nothing_of_what_was_said() {
    let large = format!(r#"{{"text":"{}"}}"#, "a".repeat(MAX_BODY));
    for (answer, why) in [
        (
            Answer::Status(401, format!("no {KEY}, I heard a secret")),
            "it answered 401",
        ),
        (Answer::Status(400, "I heard a secret".into()), "it answered 400"),
        (Answer::Status(500, "I heard a secret".into()), "it answered 500"),
        (Answer::Garbage, "did not send what was asked for"),
        (
            Answer::Raw(r#"{"words":"a secret"}"#.into()),
            "did not send what was asked for",
        ),
        (Answer::Raw(large), "sent too much"),
        (Answer::Reset, "broke the connection off"),
        (Answer::Hang, "did not answer in time"),
    ] {
        let server = TranscriptionServer::start_with({
            let answer = answer.clone();
            move |_, _| answer.clone()
        })
        .await;
        let patience = match answer {
            Answer::Hang => short(),
            _ => Patience::default(),
        };
        let provider = provider_with(Kind::Openai, &server.url(), patience);
        let failure = transcribe(&provider, &silence(), "en").await.unwrap_err().to_string();
        assert!(failure.contains(why), "{answer:?}: {failure}");
        assert!(!failure.contains("secret"), "{failure}");
    }
}

#[tokio::test]
async fn words_without_end_are_cut() {
    let server = TranscriptionServer::understanding(&[&"a".repeat(3_000)]).await;
    let heard = transcribe(&provider(&server.url()), &silence(), "en").await;
    assert_eq!(heard.map(|words| words.len()), Ok(guard::MAX_WORDS));
}

/// Waits until the server was asked so often.
pub(super) async fn asked(server: &TranscriptionServer, count: usize) {
    while server.asked().len() < count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn more_of_the_same_turn_is_posted_anew_with_all_of_it() {
    let (_never, gate) = watch::channel(false);
    let server = TranscriptionServer::start_with(move |asked, before| match before {
        0 => Answer::Gated(gate.clone(), "I would like".into()),
        _ => Answer::Words(format!("{} samples", asked.samples())),
    })
    .await;
    let mut talk = Talk::open(&provider(&server.url()));
    talk.turn(200).await;
    asked(&server, 1).await;
    talk.speak(100).await;
    talk.tell(Hear::Finalize).await;
    for _ in 0..2 {
        assert_eq!(
            talk.words().await,
            Ok("4800 samples".into()),
            "each question has its answer"
        );
    }
    talk.tell(Hear::Finalize).await;
    assert_eq!(talk.words().await, Ok("4800 samples".into()));
    assert_eq!(server.asked().len(), 2, "nothing more was said");
    let prompt = |asked: &transcription_server::Asked| {
        asked
            .fields
            .iter()
            .find(|(name, _)| name == "prompt")
            .map(|(_, words)| words.clone())
    };
    assert_eq!(prompt(&server.asked()[0]), Some("Callboard, Ann Lee".into()));
}

#[tokio::test]
async fn answers_keep_their_order_and_what_is_forgotten_has_no_words() {
    let (open, gate) = watch::channel(false);
    let server = TranscriptionServer::start_with(move |_, before| match before {
        0 => Answer::Gated(gate.clone(), "One.".into()),
        1 => Answer::Words("Two.".into()),
        _ => Answer::Hang,
    })
    .await;
    let mut talk = Talk::open(&provider(&server.url()));
    for count in 1..=3 {
        talk.turn(200).await;
        asked(&server, count).await;
    }
    talk.tell(Hear::Discard).await;
    talk.tell(Hear::Finalize).await;
    talk.begin().await;
    talk.tell(Hear::Finalize).await;
    open.send_replace(true);
    for expected in ["One.", "Two.", "", "", ""] {
        assert_eq!(talk.words().await, Ok(expected.into()));
    }
}
