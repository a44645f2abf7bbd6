//! What goes over the wire when all is well.
use super::*;
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn openai_is_asked_for_pcm_and_heard_as_it_comes() {
    let sound: Vec<i16> = (0..500).map(|at| at * 60 - 15_000).collect();
    let server = SpeechServer::answering(Answer::samples(&sound, 333)).await;
    let stream = openai(&server, LIMITS).speak(asked("Good morning."));
    assert_eq!(stream.rate, 24_000);
    assert_eq!(heard(stream).await, Ok(sound));
    let asked = server.asked().remove(0);
    assert_eq!(asked.line, "POST /v1/audio/speech");
    assert_eq!(asked.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(
        asked.body,
        json!({ "model": "kokoro", "input": "Good morning.", "voice": "ann", "response_format": "pcm" })
    );
}

#[tokio::test]
async fn a_server_of_ones_own_needs_no_key_and_its_address_no_version() {
    key();
    let server = SpeechServer::answering(Answer::samples(&[1], 2)).await;
    let openai = openai::Openai::new(&server.url(), None, "tts-1", LIMITS).unwrap();
    let own_voice = Utterance {
        voice: "voice_123".into(),
        ..asked("Hello")
    };
    assert_eq!(heard(openai.speak(own_voice)).await, Ok(vec![1]));
    let asked = server.asked().remove(0);
    assert_eq!(
        (&*asked.line, asked.header("authorization")),
        ("POST /v1/audio/speech", None)
    );
    assert_eq!(asked.body["voice"], json!({ "id": "voice_123" }));
}

#[tokio::test]
async fn the_first_words_go_over_the_connection_that_was_warmed() {
    let server = SpeechServer::answering(Answer::samples(&[1, 2], 4)).await;
    let openai = openai(&server, LIMITS);
    openai.warm("ann", "de").await;
    for _ in 0..2 {
        assert_eq!(heard(openai.speak(asked("Hello"))).await, Ok(vec![1, 2]));
    }
    let lines: Vec<_> = server
        .asked()
        .iter()
        .map(|asked| (asked.line.clone(), asked.connection))
        .collect();
    let speech = ("POST /v1/audio/speech".to_owned(), 0);
    assert_eq!(lines, [("GET /v1/models".to_owned(), 0), speech.clone(), speech]);
}

#[tokio::test]
async fn elevenlabs_speaks_with_a_clone_where_it_has_no_websocket() {
    let server = SpeechServer::start_with(|asked, _| match asked.line.starts_with("POST") {
        true => Answer::samples(&[5, 6, 7], 3),
        false => Answer::status(404, "no"),
    })
    .await;
    let model = |model: &str| {
        let endpoint = elevenlabs::Endpoint::new(&server.url(), key(), model, LIMITS).unwrap();
        elevenlabs::Elevenlabs::new(Arc::new(endpoint))
    };
    assert_eq!(
        heard(model("eleven_flash_v2_5").speak(asked("Servus"))).await,
        Ok(vec![5, 6, 7])
    );
    let klingon = Utterance {
        language: "xx".into(),
        ..asked("Servus")
    };
    heard(model("eleven_flash_v2_5").speak(klingon)).await.unwrap();
    heard(model("eleven_multilingual_v2").speak(asked("Servus")))
        .await
        .unwrap();
    let all: Vec<_> = server
        .asked()
        .into_iter()
        .filter(|asked| asked.line.starts_with("POST"))
        .collect();
    assert_eq!(
        all[0].line,
        "POST /v1/text-to-speech/ann/stream?output_format=pcm_24000"
    );
    assert_eq!(
        (all[0].header("xi-api-key"), all[0].header("authorization")),
        (Some(KEY), None)
    );
    assert_eq!(
        all[0].body,
        json!({ "text": "Servus", "model_id": "eleven_flash_v2_5", "language_code": "de" })
    );
    assert_eq!(
        all[1].body,
        json!({ "text": "Servus", "model_id": "eleven_flash_v2_5" })
    );
    assert_eq!(
        all[2].body,
        json!({ "text": "Servus", "model_id": "eleven_multilingual_v2" })
    );
}

/// A WAV of a streaming server: its lengths are not true.
fn wav(rate: u32, samples: &[i16]) -> Vec<u8> {
    let mut wav = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
    wav.extend(rate.to_le_bytes());
    wav.extend((rate * 2).to_le_bytes());
    wav.extend(b"\x02\0\x10\0data\0\0\0\0");
    wav.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    wav
}

fn piper(url: &str) -> piper::Piper {
    piper::Piper::new(url, key(), LIMITS).unwrap()
}

#[tokio::test]
async fn piper_sends_a_wav_for_each_text() {
    let sound = [9, -9, 100];
    let server = SpeechServer::answering(Answer::sound(vec![Step::Bytes(wav(22_050, &sound))])).await;
    let stream = piper(&server.url()).speak(asked("Hallo"));
    assert_eq!(stream.rate, 22_050);
    assert_eq!(heard(stream).await, Ok(sound.to_vec()));
    let unnamed = Utterance {
        voice: String::new(),
        ..asked("Hallo")
    };
    heard(piper(&format!("{}/tts", server.url())).speak(unnamed))
        .await
        .unwrap();
    let all = server.asked();
    assert_eq!(
        (&*all[0].line, &all[0].body),
        ("POST /synthesize", &json!({ "text": "Hallo", "voice": "ann" }))
    );
    assert_eq!(
        (&*all[1].line, &all[1].body),
        ("POST /tts", &json!({ "text": "Hallo" }))
    );
}

#[tokio::test]
async fn an_older_piper_is_asked_at_the_root_from_then_on() {
    let server = SpeechServer::start_with(|asked, _| match asked.line.as_str() {
        "POST /" => Answer::sound(vec![Step::Bytes(wav(16_000, &[1_000; 1_600]))]),
        _ => Answer::status(405, "no"),
    })
    .await;
    let piper = piper(&server.url());
    for _ in 0..2 {
        // A tenth of a second, at the rate that was promised.
        assert_eq!(
            heard(piper.speak(asked("Hallo"))).await.map(|sound| sound.len()),
            Ok(2_205)
        );
    }
    let lines: Vec<_> = server.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(lines, ["POST /synthesize", "POST /", "POST /"]);
}
