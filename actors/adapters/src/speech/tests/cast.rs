//! Who speaks with which `voice_id`.
use super::*;
use crate::recording::voice::Voice;

fn provider(kind: Kind, url: &str, voices: &[&str]) -> Provider {
    key();
    let provider = Provider::new(kind, url, Some(KEY), "").unwrap();
    provider.with_voices(voices.iter().map(|voice| HostedVoice::parse(voice)).collect())
}

const NOBODY: &str = "http://127.0.0.1:1";
const CLONE: &str = "0197c5c1-0d5e-7cc0-9d3c-0a1b2c3d4e5f";

#[tokio::test]
async fn a_voice_is_spoken_by_who_has_it() {
    let speech = Speech {
        provider: Some(provider(Kind::Openai, NOBODY, &["bella=af_bella", "sky"])),
        second: Some(Second {
            provider: provider(Kind::Piper, NOBODY, &[]),
            voice: "thorsten".into(),
        }),
        clones: Some(provider(Kind::Elevenlabs, NOBODY, &[])),
        local: Voice::tones(),
    };
    for (voice_id, clone, expected) in [
        ("bella", None, r#"Tongue(openai "af_bella" "de")"#),
        ("sky", None, r#"Tongue(openai "sky" "de")"#),
        // The realtime provider's, and one that the operator has taken away.
        ("marin", None, r#"Tongue(openai "af_bella" "de")"#),
        (CLONE, Some("there"), r#"Tongue(elevenlabs "there" "de")"#),
        (CLONE, None, r#"Tongue(openai "af_bella" "de")"#),
        ("builtin:tones", None, r#"Tongue(tones "builtin:tones" "de")"#),
    ] {
        let cast = speech.cast(voice_id, clone, "de");
        assert_eq!(format!("{:?}", cast.first), expected, "{voice_id}");
        assert_eq!(cast.local.name(), "tones");
        let second = cast.second.map(|second| format!("{second:?}"));
        let has_second = !voice_id.starts_with("builtin");
        assert_eq!(
            second,
            has_second.then(|| r#"Tongue(piper "thorsten" "de")"#.to_owned()),
            "{voice_id}"
        );
    }
    let bare = Speech::default().cast("marin", Some("there"), "de");
    assert_eq!((bare.first.name(), bare.second.is_none()), ("tones", true));
}

#[tokio::test]
async fn what_needs_nothing_speaks_always() {
    let cast = Speech::default().cast("builtin:espeak-ng-de", None, "de");
    cast.first.warm().await;
    let stream = cast.first.speak("**Guten** Morgen! 🎉");
    assert_eq!(stream.rate, 8_000);
    assert_eq!(heard(stream).await.unwrap().len(), "Guten Morgen!".len() * 440);
    assert!(cast.first.speak("🎉 ---").next().await.is_none());
}

#[tokio::test]
async fn a_provider_is_told_only_what_can_be_spoken() {
    let server = SpeechServer::answering(Answer::samples(&[1, 2], 4)).await;
    let speech = Speech {
        provider: Some(provider(Kind::Openai, &server.url(), &["ann"])),
        ..Speech::default()
    };
    let tongue = speech.hosted("ann", "en").unwrap();
    assert_eq!(
        heard(tongue.speak("See [our **page**](https://example.com) 🎉")).await,
        Ok(vec![1, 2])
    );
    assert_eq!(heard(tongue.speak(&"a".repeat(9_000))).await, Ok(vec![1, 2]));
    for nothing in ["", " \n", "🎉", "https://example.com", "---"] {
        assert_eq!(heard(tongue.speak(nothing)).await, Ok(vec![]), "{nothing}");
    }
    let texts: Vec<_> = server
        .asked()
        .into_iter()
        .map(|asked| asked.body["input"].clone())
        .collect();
    assert_eq!(texts, ["See our page".to_owned(), "a".repeat(4_000)]);
    let wav = tongue.speak("Hello").wav().await.unwrap();
    assert_eq!(crate::recording::voice::wave::parse(&wav, 24_000), Ok(vec![1, 2]));
    assert!(speech.hosted("bob", "en").is_none());
}
