//! Providers that speak the protocol in a way of their own.
use super::*;

#[tokio::test]
async fn a_provider_without_mu_law_gets_pcm() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let seen = heard.clone();
    let server = RealtimeServer::start_with(move |turn, _| {
        seen.lock().unwrap().extend(turn.audio.clone());
        Reply::Say("A long enough tone.".into())
    })
    .refuse_pcmu();
    // Found out, and told by the settings.
    for settings in [
        RealtimeSettings::default(),
        RealtimeSettings {
            pcm: true,
            model: Some("other".into()),
        },
    ] {
        let acts = turn(&mut brain_at(&server.url, settings), spoken(speech(200)))
            .await
            .unwrap();
        let [Did::Spoke(text, audio)] = &acts[..] else {
            panic!("{acts:?}")
        };
        assert_eq!(
            (text.as_str(), audio.rate, audio.ms()),
            ("A long enough tone.", 24_000, 60 * 19)
        );
        assert!(tone_in(audio) > 0.95, "{}", tone_in(audio));
        let heard = std::mem::take(&mut *heard.lock().unwrap());
        assert_eq!(heard.len(), 200 * 48);
        assert!(tone_in(&Format::Pcm.decode(&heard)) > 0.95);
    }
    let asked = server.events_of("session.update").into_iter();
    let asked: Vec<_> = asked
        .map(|event| event["session"]["audio"]["output"]["format"]["type"].clone())
        .collect();
    assert_eq!(asked, ["audio/pcmu", "audio/pcm", "audio/pcm"]);
    assert_eq!(server.events_of("connected")[1]["uri"], "/v1/realtime?model=other");
    assert!(
        server
            .events_of("input_audio_buffer.append")
            .iter()
            .all(|event| event["audio"].as_str().unwrap().len() == 1280)
    );
}

/// A room's sound is wanted wide; a provider that knows the telephone's only is spoken with all the same.
#[tokio::test]
async fn a_provider_without_pcm_gets_mu_law() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let seen = heard.clone();
    let server = RealtimeServer::start_with(move |turn, _| {
        seen.lock().unwrap().extend(turn.audio.clone());
        Reply::Say("Fine.".into())
    })
    .refuse_pcm();
    let settings = RealtimeSettings { pcm: true, model: None };
    let said = turn(&mut brain_at(&server.url, settings), spoken(speech(200))).await;
    assert_eq!(said.unwrap(), [say("Fine.")]);
    assert_eq!(*heard.lock().unwrap(), speech(200));
    let asked = server.events_of("session.update").into_iter();
    let asked: Vec<_> = asked
        .map(|event| event["session"]["audio"]["input"]["format"]["type"].clone())
        .collect();
    assert_eq!(asked, ["audio/pcm", "audio/pcmu"]);
}

/// How much of the sound is the tone of 440 Hz, 0 to 1.
fn tone_in(sound: &Pcm) -> f32 {
    let samples: Vec<f32> = sound.samples.iter().map(|sample| f32::from(*sample)).collect();
    let angle = |n: usize| 2.0 * std::f32::consts::PI * 440.0 * n as f32 / sound.rate as f32;
    let part = |wave: fn(f32) -> f32| samples.iter().enumerate().map(|(n, x)| x * wave(angle(n))).sum::<f32>();
    let energy: f32 = samples.iter().map(|x| x * x).sum();
    2.0 * (part(f32::sin).powi(2) + part(f32::cos).powi(2)) / (samples.len() as f32 * energy)
}

#[tokio::test]
async fn unknown_events_and_fields_are_let_pass() {
    let server = RealtimeServer::start_with(|_, _| Reply::UnknownEvents("Hello there.".into()));
    assert_eq!(
        turn(&mut brain(&server), Heard::Opening).await.unwrap(),
        [say("Hello there.")]
    );
}

#[tokio::test]
async fn the_names_of_the_beta_and_answers_without_sound_are_understood() {
    let event = |kind: &str, item: &str, key: &str, value: &str| json!({"type": kind, "item_id": item, key: value});
    let server = RealtimeServer::start_with(move |_, nth| {
        Reply::Raw(match nth {
            0 => vec![
                event("response.audio_transcript.delta", "a", "delta", "Good "),
                event("response.audio.delta", "a", "delta", "//8="),
                event("response.audio_transcript.done", "a", "transcript", "Good day."),
                json!({"type": "response.function_call_arguments.done", "item_id": "b", "call_id": "c", "arguments": "{}"}),
                json!({"type": "response.output_item.done", "item": {"id": "b", "type": "function_call", "call_id": "c", "name": "book", "arguments": "{}"}}),
            ],
            1 => vec![
                event("response.text.delta", "a", "delta", "By "),
                event("response.text.done", "a", "text", "By text."),
            ],
            _ => vec![
                event("response.output_text.delta", "a", "delta", "The "),
                event("response.output_text.done", "a", "text", "The last."),
            ],
        })
    });
    let mut brain = brain(&server);
    let silent = |text: &str| Did::Wrote(text.into());
    let acts = turn(&mut brain, Heard::Opening).await.unwrap();
    let call = Did::Called("c".into(), "book".into(), "{}".into());
    let spoke = Did::Spoke("Good day.".into(), Pcm::of_mu_law(&[255, 255]));
    assert_eq!(acts, [spoke, call]);
    brain.answer.calls.clear(); // the server made that one up: it takes no output for it
    assert_eq!(turn(&mut brain, words("more")).await.unwrap(), [silent("By text.")]);
    assert_eq!(turn(&mut brain, words("more")).await.unwrap(), [silent("The last.")]);
}
