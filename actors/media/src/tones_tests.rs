//! Keys at the edges of what Q.24 wants, voices and noise that are none, and cadences of several countries.
use super::*;
use adapters::sound::Pcm;
use audio_codec::resample;

const SENTENCE: &[u8] = include_bytes!("speech/sentence.ulaw");

/// Tones of 16 kHz, each with its amplitude.
fn tones(parts: &[(f64, f64)], ms: usize) -> Vec<i16> {
    let wave = |at: usize| {
        let turns = at as f64 / RATE;
        let sum: f64 = parts
            .iter()
            .map(|(hertz, loud)| loud * (TAU * hertz * turns).sin())
            .sum();
        sum as i16
    };
    (0..ms * 16).map(wave).collect()
}

fn noise(loudness: f64, ms: usize) -> Vec<i16> {
    let mut seed = 1_u32;
    let mut next = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (f64::from((seed >> 16) as i16) / 32_768.0 * loudness) as i16
    };
    (0..ms * 16).map(|_| next()).collect()
}

fn silence(ms: usize) -> Vec<i16> {
    vec![0; ms * 16]
}

/// In packets of 20 ms.
fn keys(sound: &[i16]) -> String {
    let (mut tones, mut keys) = (KeyTones::default(), String::new());
    for packet in sound.chunks(320) {
        tones.hear(packet, |key| keys.push(key));
    }
    keys
}

#[test]
fn what_we_press_in_the_voice_is_heard() {
    let all = "1234567890*#1122";
    let sound: Vec<i16> = all.chars().flat_map(|pressed| key(pressed).unwrap()).collect();
    assert_eq!(sound.len(), 16 * 160 * 8);
    // Through a telephone's codec, wherever the blocks begin.
    let through = Pcm::of_mu_law(&Pcm::new(TELEPHONE, sound).to_mu_law());
    let wide = resample(&through.samples, 8_000, 16_000);
    for shift in [0, 50, 100, 150, 203] {
        assert_eq!(keys(&[vec![0; shift], wide.clone()].concat()), all, "{shift}");
    }
    assert_eq!((key('A'), key(' ')), (None, None));
}

#[test]
fn a_key_is_what_the_standard_calls_one() {
    let five =
        |row: f64, column: f64, ms| [silence(100), tones(&[(770.0, row), (1_336.0, column)], ms), silence(60)].concat();
    for (what, sound, wanted) in [
        ("as usual", five(7_000.0, 7_000.0, 100), "5"),
        ("the shortest", five(7_000.0, 7_000.0, 40), "5"),
        ("a click", five(7_000.0, 7_000.0, 15), ""),
        ("soft", five(700.0, 700.0, 100), "5"),
        ("too soft", five(200.0, 200.0, 100), ""),
        ("the column louder by 3 dB", five(5_000.0, 7_070.0, 100), "5"),
        ("the column louder by 6 dB", five(3_500.0, 7_000.0, 100), ""),
        ("the row louder by 6 dB", five(7_000.0, 3_500.0, 100), "5"),
        ("the row louder by 10 dB", five(7_000.0, 2_200.0, 100), ""),
        ("one tone alone", five(7_000.0, 0.0, 100), ""),
        ("1 % beside", tones(&[(777.0, 7_000.0), (1_323.0, 7_000.0)], 100), "5"),
        ("8 % beside", tones(&[(832.0, 7_000.0), (1_443.0, 7_000.0)], 100), ""),
        ("a letter", tones(&[(697.0, 7_000.0), (1_633.0, 7_000.0)], 100), ""),
        (
            "twice",
            [five(7_000.0, 7_000.0, 60), five(7_000.0, 7_000.0, 60)].concat(),
            "55",
        ),
        ("long", five(7_000.0, 7_000.0, 5_000), "5"),
    ] {
        assert_eq!(keys(&sound), wanted, "{what}");
    }
}

/// Whoever talks presses nothing.
#[test]
fn voices_and_noise_are_no_keys() {
    let sentence = resample(&Pcm::of_mu_law(SENTENCE).samples, 8_000, 16_000);
    assert_eq!(keys(&sentence), "");
    assert_eq!(keys(&noise(8_000.0, 10_000)), "");
    assert_eq!(keys(&silence(1_000)), "");
    // A key in a little noise is one still.
    let mut sound = tones(&[(941.0, 5_000.0), (1_477.0, 5_000.0)], 100);
    sound
        .iter_mut()
        .zip(noise(500.0, 100))
        .for_each(|(sample, noise)| *sample += noise);
    assert_eq!(keys(&sound), "#");
}

fn told(sound: &[i16]) -> Vec<Tone> {
    let mut progress = ProgressTones::default();
    sound.chunks(320).filter_map(|packet| progress.hear(packet)).collect()
}

fn cycles(hertz: &[f64], on_ms: usize, off_ms: usize, count: usize) -> Vec<i16> {
    let parts: Vec<(f64, f64)> = hertz.iter().map(|hertz| (*hertz, 3_000.0)).collect();
    let cycle = [tones(&parts, on_ms), silence(off_ms)].concat();
    // Begins in the middle of a step.
    [silence(513), cycle.repeat(count), tones(&parts, on_ms)].concat()
}

#[test]
fn what_the_network_says_is_told_once() {
    for (what, sound, wanted) in [
        (
            "busy, North America",
            cycles(&[480.0, 620.0], 500, 500, 4),
            vec![Tone::Busy],
        ),
        ("busy, Germany", cycles(&[425.0], 480, 480, 4), vec![Tone::Busy]),
        ("busy, United Kingdom", cycles(&[400.0], 375, 375, 4), vec![Tone::Busy]),
        (
            "congestion, North America",
            cycles(&[480.0, 620.0], 250, 250, 6),
            vec![Tone::Congestion],
        ),
        (
            "congestion, Germany",
            cycles(&[425.0], 240, 240, 6),
            vec![Tone::Congestion],
        ),
        (
            "ringing, North America",
            cycles(&[440.0, 480.0], 2_000, 4_000, 2),
            vec![Tone::Ringback],
        ),
        (
            "ringing, Germany",
            cycles(&[425.0], 1_000, 4_000, 2),
            vec![Tone::Ringback],
        ),
        ("one cycle is none", cycles(&[425.0], 480, 480, 0), vec![]),
        ("another tone", cycles(&[1_000.0], 500, 500, 4), vec![]),
        ("noise", noise(8_000.0, 5_000), vec![]),
    ] {
        assert_eq!(told(&sound), wanted, "{what}");
    }
}

#[test]
fn three_tones_that_rise_say_that_the_number_is_wrong() {
    let sit = |hertz: [f64; 3], ms: usize| {
        let parts = hertz.map(|hertz| tones(&[(hertz, 4_000.0)], ms));
        [silence(300), parts.concat(), silence(300)].concat()
    };
    for (what, sound, wanted) in [
        (
            "short ones",
            sit([985.2, 1_428.5, 1_776.7], 274),
            vec![Tone::SpecialInformation],
        ),
        (
            "long ones",
            sit([913.8, 1_370.6, 1_776.7], 380),
            vec![Tone::SpecialInformation],
        ),
        ("falling", sit([1_776.7, 1_428.5, 985.2], 274), vec![]),
        ("too long", sit([985.2, 1_428.5, 1_776.7], 1_000), vec![]),
        ("one is missing", sit([985.2, 985.2, 1_776.7], 274), vec![]),
    ] {
        assert_eq!(told(&sound), wanted, "{what}");
    }
    let sentence = resample(&Pcm::of_mu_law(SENTENCE).samples, 8_000, 16_000);
    assert_eq!(told(&sentence), []);
}
