//! Speech, tones, noise and silence; the speech was made once with
//! `flite -voice rms -t "I would like to move my appointment to Wednesday." a.wav && sox a.wav -r 8000 -c 1 -t ul sentence.ulaw`,
//! and `yes.ulaw` likewise of "Yes.", so that no speech program is needed here.
use super::*;
use crate::mic::Gathered;
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

/// Each utterance, whole; fails unless each has a beginning, sound and an end.
fn said(heard: &[MicEvent]) -> Vec<Gathered> {
    let mut all = Vec::new();
    let mut current: Option<Gathered> = None;
    for event in heard {
        match (event, &mut current) {
            (MicEvent::SpeechStarted { .. }, None) => current = Some(Gathered::default()),
            (MicEvent::Sound(piece), Some(said)) => said.push(&piece.sound, piece.voice_db.is_some()),
            (MicEvent::SpeechEnded(rest), Some(_)) if rest.is_empty() => all.extend(current.take()),
            (other, _) => panic!("not in its place: {other:?}"),
        }
    }
    assert_eq!(current, None, "one has no end");
    all
}

/// How long each is, in ms.
fn utterances(heard: &[MicEvent]) -> Vec<usize> {
    said(heard).iter().map(|said| said.sound().ms() as usize).collect()
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
    let said = said(&heard)[0].sound();
    let energy = |samples: &[i16]| -> f64 { samples.iter().map(|sample| f64::from(*sample).powi(2)).sum() };
    let share = energy(&said.samples) / energy(&sentence);
    assert!((0.9..1.1).contains(&share), "{share}");
}

/// What is told of its beginning is where its voice begins: neither when that was noticed, nor where the sound begins that is
/// kept from before.
#[test]
fn an_utterance_began_where_its_voice_begins() {
    for silent_ms in [0, 1_000] {
        let sound = [silence(silent_ms), wide(SENTENCE), silence(1_000)].concat();
        let (mut detector, mut heard_ms) = (SpeechDetector::default(), 0);
        let (mut began_ms, mut voice_ms, mut sound_ms, mut ended_ms) = (0, None, 0, 0);
        let mut said = Gathered::default();
        for step in sound.chunks_exact(STEP) {
            heard_ms += STEP_MS;
            for event in detector.hear(step) {
                match event {
                    MicEvent::SpeechStarted { ago_ms, .. } => {
                        began_ms = heard_ms - usize::try_from(ago_ms).unwrap();
                        let steps = ago_ms as usize / STEP_MS;
                        assert!((BEGINS_AFTER..=BEFORE).contains(&steps), "{ago_ms}");
                        sound_ms = heard_ms - detector.before.len() * STEP_MS;
                    }
                    MicEvent::Sound(piece) => {
                        said.push(&piece.sound, piece.voice_db.is_some());
                        if piece.voice_db.is_some() {
                            voice_ms.get_or_insert(sound_ms);
                        }
                        sound_ms += STEP_MS;
                    }
                    MicEvent::SpeechEnded(_) => ended_ms = heard_ms,
                    MicEvent::Dtmf(_) => unreachable!(),
                }
            }
        }
        assert_eq!(Some(began_ms), voice_ms, "after {silent_ms} ms");
        assert!(
            (silent_ms.saturating_sub(STEP_MS)..=silent_ms + 300).contains(&began_ms),
            "{began_ms} after {silent_ms} ms"
        );
        // It ends 96 ms behind its last voice, whose pause has lasted for 592 ms when it is over.
        assert_eq!(
            began_ms + said.ms() as usize,
            ended_ms - (592 - 96),
            "after {silent_ms} ms"
        );
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
    let all = said(&heard);
    assert_eq!(all.len(), 1);
    let said = all[0].sound();
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
    let ended = detector.end();
    let all = said(&[begun, ended.into_iter().collect()].concat());
    assert!(all.len() == 1 && all[0].sound().ms() > 1_000, "{all:?}");
    assert_eq!(detector.end(), None);
    assert_eq!(hear(&mut detector, &silence(2_000)), []);
    // And it listens on.
    let again = hear(&mut detector, &[wide(SENTENCE), silence(1_000)].concat());
    assert_eq!(utterances(&again).len(), 1);
}

/// Whose turn it is is decided elsewhere: a pause is none until somebody says so, and the next voice begins anew.
#[test]
fn an_utterance_is_over_when_that_is_said() {
    let pause = [wide(SENTENCE), silence(2_000)].concat();
    let mut detector = SpeechDetector::default();
    detector.wait(3_000);
    let begun = hear(&mut detector, &pause);
    assert!(matches!(begun[0], MicEvent::SpeechStarted { number: 1, .. }));
    assert!(begun[1..].iter().all(|event| matches!(event, MicEvent::Sound(_))));
    assert!(matches!(detector.end_turn(1), Some(MicEvent::SpeechEnded(_))));
    assert_eq!(detector.end_turn(1), None);
    let again = hear(&mut detector, &[silence(1_000), pause].concat());
    let begun: Vec<_> = again
        .iter()
        .filter(|event| !matches!(event, MicEvent::Sound(_)))
        .collect();
    assert!(
        matches!(begun[..], [MicEvent::SpeechStarted { number: 2, .. }]),
        "{begun:?}"
    );
    // Whoever lags behind ends nothing that he has not heard of.
    assert_eq!(detector.end_turn(1), None);
    assert!(detector.end_turn(2).is_some());
}

/// The net hears both; the loudness of the first says that the second is somebody else.
#[test]
fn a_voice_far_behind_the_one_that_speaks_is_a_pause() {
    let far: Vec<i16> = wide(SENTENCE).iter().map(|sample| sample / 64).collect();
    let sound = [silence(500), wide(SENTENCE), far, silence(1_000)].concat();
    let lengths = utterances(&hear(&mut SpeechDetector::default(), &sound));
    let spoken = wide(SENTENCE).len() / 16;
    assert!(lengths[0] < spoken + 400, "{lengths:?} of {spoken} ms");
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
