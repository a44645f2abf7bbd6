//! Speech, tones, noise and silence; the speech was made once with
//! `flite -voice rms -t "I would like to move my appointment to Wednesday." a.wav && sox a.wav -r 8000 -c 1 -t ul sentence.ulaw`,
//! and `yes.ulaw` likewise of "Yes.", so that no speech program is needed here.
use super::*;
use adapters::recording::voice::{Speaker, Voice};
use audio_codec::{Decoder, pcmu::PcmuDecoder, resample};
use std::f64::consts::TAU;

const SENTENCE: &[u8] = include_bytes!("speech/sentence.ulaw");
const YES: &[u8] = include_bytes!("speech/yes.ulaw");

fn wide(mu_law: &[u8]) -> Vec<i16> {
    resample(&PcmuDecoder::new().decode(mu_law), 8_000, 16_000)
}

fn silence(ms: usize) -> Vec<i16> {
    vec![0; ms * 16]
}

fn tone(hertz: f64, ms: usize) -> Vec<i16> {
    (0..ms * 16)
        .map(|at| ((at as f64 / 16_000.0 * hertz * TAU).sin() * 8_000.0) as i16)
        .collect()
}

fn noise(loudness: i16, ms: usize) -> Vec<i16> {
    let mut seed = 1_u32;
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((seed >> 16) as i16) / (i16::MAX / loudness)
    };
    (0..ms * 16).map(|_| next()).collect()
}

/// In packets of 20 ms, as a connection brings them.
fn hear(detector: &mut SpeechDetector, sound: &[i16]) -> Vec<MicEvent> {
    sound.chunks(320).flat_map(|packet| detector.hear(packet)).collect()
}

/// How long each utterance is, in ms; fails unless each has its beginning right before it.
fn utterances(heard: &[MicEvent]) -> Vec<usize> {
    let pairs = heard.chunks(2).map(|pair| match pair {
        [MicEvent::SpeechStarted { .. }, MicEvent::SpeechEnded { sound, .. }] => sound.ms() as usize,
        other => panic!("not a beginning and its utterance: {other:?}"),
    });
    pairs.collect()
}

#[test]
fn a_sentence_is_one_utterance_without_the_pause_after_it() {
    let sentence = wide(SENTENCE);
    let sound = [silence(1_000), sentence.clone(), silence(1_500)].concat();
    let heard = hear(&mut SpeechDetector::default(), &sound);
    let lengths = utterances(&heard);
    let spoken = sentence.len() / 16;
    assert_eq!(lengths.len(), 1, "{lengths:?}");
    assert!(
        (spoken - 500..spoken + 400).contains(&lengths[0]),
        "{lengths:?} of {spoken} ms"
    );
    // It is what was said, at the microphone's rate: as loud as the original.
    let MicEvent::SpeechEnded { sound: said, quiet_ms } = &heard[1] else {
        unreachable!()
    };
    assert_eq!(*quiet_ms, Some((ENDS_AFTER * STEP_MS) as u64));
    let energy = |samples: &[i16]| -> f64 { samples.iter().map(|sample| f64::from(*sample).powi(2)).sum() };
    let share = energy(&said.samples) / energy(&sentence);
    assert!((0.9..1.1).contains(&share), "{share}");
}

/// What is told of its beginning is where its sound begins: shortly before the first word, not when it was noticed.
#[test]
fn an_utterance_began_where_its_sound_begins() {
    for silent_ms in [0, 1_000] {
        let sound = [silence(silent_ms), wide(SENTENCE), silence(1_000)].concat();
        let (mut detector, mut heard_ms) = (SpeechDetector::default(), 0);
        let (mut began_ms, mut ended_ms, mut length_ms) = (0, 0, 0);
        for step in sound.chunks(STEP) {
            heard_ms += STEP_MS;
            for event in detector.hear(step) {
                match event {
                    MicEvent::SpeechStarted { ago_ms } => {
                        began_ms = heard_ms - usize::try_from(ago_ms).unwrap();
                        assert!(
                            (BEGINS_AFTER..=BEFORE).contains(&(ago_ms as usize / STEP_MS)),
                            "{ago_ms}"
                        );
                    }
                    MicEvent::SpeechEnded { sound, .. } => (ended_ms, length_ms) = (heard_ms, sound.ms() as usize),
                    MicEvent::Dtmf(_) => unreachable!(),
                }
            }
        }
        let pause_ms = (ENDS_AFTER - ENDING) * STEP_MS;
        assert_eq!(began_ms + length_ms, ended_ms - pause_ms, "after {silent_ms} ms");
        assert!(began_ms <= silent_ms + 300, "{began_ms} after {silent_ms} ms");
        assert!(began_ms + 250 >= silent_ms, "{began_ms} after {silent_ms} ms");
    }
}

/// It is the microphone's own sound, sample by sample: what tells an f from an s is above 4 kHz.
#[test]
fn nothing_is_taken_away_from_what_is_said() {
    let sentence: Vec<i16> = wide(SENTENCE)
        .iter()
        .zip(tone(6_000.0, 10_000))
        .map(|(voice, hiss)| voice.saturating_add(hiss / 8))
        .collect();
    let sound = [silence(1_000), sentence, silence(1_500)].concat();
    let heard = hear(&mut SpeechDetector::default(), &sound);
    let [
        MicEvent::SpeechStarted { .. },
        MicEvent::SpeechEnded { sound: said, .. },
    ] = &heard[..]
    else {
        panic!("{heard:?}")
    };
    assert_eq!(said.rate, 16_000);
    assert!(
        sound
            .windows(said.samples.len())
            .step_by(STEP)
            .any(|part| part == &said.samples[..]),
        "a piece of what came in"
    );
}

#[test]
fn one_word_is_enough_and_a_long_pause_makes_two_utterances() {
    let sound = [silence(500), wide(YES), silence(900), wide(SENTENCE), silence(900)].concat();
    assert_eq!(utterances(&hear(&mut SpeechDetector::default(), &sound)).len(), 2);
}

#[test]
fn neither_silence_noise_tones_nor_blips_are_speech() {
    // From the middle of a word, where it is loudest.
    let blip = wide(&SENTENCE[4_000..4_640]);
    let blips = [silence(700), blip.clone(), silence(700), blip, silence(700)].concat();
    let beep = [silence(300), tone(1_000.0, 100), silence(300)].concat();
    let quiet = [
        ("silence", silence(5_000)),
        ("soft noise", noise(300, 5_000)),
        ("loud noise", noise(6_000, 5_000)),
        ("a tone", tone(1_000.0, 3_000)),
        ("a beep", beep),
        ("blips of 80 ms", blips),
    ];
    for (what, sound) in quiet {
        assert_eq!(hear(&mut SpeechDetector::default(), &sound), [], "{what}");
    }
}

#[test]
fn who_does_not_stop_is_heard_in_pieces_of_thirty_seconds() {
    let sound = wide(&SENTENCE[1_000..SENTENCE.len() - 3_000].repeat(26));
    let seconds = sound.len() / 16_000;
    let mut detector = SpeechDetector::default();
    let mut heard = hear(&mut detector, &sound);
    heard.extend(detector.end());
    let MicEvent::SpeechEnded { quiet_ms, .. } = heard[1] else {
        unreachable!()
    };
    assert_eq!(quiet_ms, None, "that is no end of speech");
    let lengths = utterances(&heard);
    assert!(lengths.iter().all(|ms| *ms <= 30_000), "{lengths:?}");
    assert!(
        lengths[0] > 29_000 && lengths.len() == 1 + seconds / 30,
        "{lengths:?} of {seconds} s"
    );
    let all: usize = lengths.iter().sum();
    assert!(
        (seconds * 1_000 - 1_000..=seconds * 1_000 + 1_000).contains(&all),
        "nothing is lost: {lengths:?} of {seconds} s"
    );
}

#[test]
fn the_end_of_the_microphone_ends_what_was_being_said() {
    let mut detector = SpeechDetector::default();
    assert_eq!(detector.end(), None);
    let begun = hear(&mut detector, &wide(&SENTENCE[..16_000]));
    assert!(matches!(begun[..], [MicEvent::SpeechStarted { .. }]), "{begun:?}");
    let ended = detector.end();
    assert!(
        matches!(&ended, Some(MicEvent::SpeechEnded { sound, quiet_ms: None }) if sound.ms() > 1_000),
        "{ended:?}"
    );
    assert_eq!(detector.end(), None);
    assert_eq!(hear(&mut detector, &silence(2_000)), []);
    // And it listens on.
    let again = hear(&mut detector, &[wide(SENTENCE), silence(1_000)].concat());
    assert_eq!(utterances(&again).len(), 1);
}

#[test]
fn packets_of_any_size_are_heard_alike() {
    let sound = [wide(SENTENCE), silence(1_000)].concat();
    let whole = SpeechDetector::default().hear(&sound);
    for size in [1, 160, 255, 257, 960] {
        let mut detector = SpeechDetector::default();
        let pieces: Vec<_> = sound.chunks(size).flat_map(|piece| detector.hear(piece)).collect();
        assert_eq!(pieces, whole, "{size}");
    }
}

#[tokio::test]
async fn hears_the_voice_of_this_machine() {
    let voice = Voice::find("auto").unwrap();
    if voice.name() == "tones" {
        // No speech program is here; the sentences above were made by one.
        return;
    }
    let spoken = voice
        .speak("Good morning, who is speaking please?", "en-US", Speaker::User)
        .await;
    let sound = [silence(300), resample(&spoken, 8_000, 16_000), silence(1_000)].concat();
    let lengths = utterances(&hear(&mut SpeechDetector::default(), &sound));
    assert!(!lengths.is_empty());
    assert!(
        lengths.iter().sum::<usize>() * 8 > spoken.len() / 2,
        "{lengths:?} of {} ms",
        spoken.len() / 8
    );
}
