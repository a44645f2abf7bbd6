use super::{program::espeak_voice, *};
use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};
use tempfile::TempDir;

/// A folder with a speech program of our own: a shell script.
fn machine(name: &str, script: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("script");
    fs::write(
        &source,
        format!("#!/bin/sh\ncd '{}'\n{script}\n", folder.path().display()),
    )
    .unwrap();
    // A process that another test starts may inherit a file that we have open for writing, and such a file does not run.
    let mut install = std::process::Command::new("install");
    let status = install
        .args(["-m", "755"])
        .arg(source)
        .arg(folder.path().join(name))
        .status();
    assert!(status.unwrap().success());
    folder
}

fn voice_in(folder: &TempDir, wanted: &str) -> Voice {
    Voice::find_in(wanted, folder.path().as_os_str()).unwrap()
}

fn read(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap()
}

/// A WAV of a tenth of a second at 8 kHz, loud throughout, into `speech.wav`.
fn put_speech(folder: &TempDir) {
    let piece = crate::recording::mix::Piece {
        speaker: Speaker::Agent,
        start_ms: 0,
        sound: vec![500; 800],
        cut_ms: None,
    };
    fs::write(
        folder.path().join("speech.wav"),
        crate::recording::mix::wav(&[piece], crate::recording::mix::Channels::Mono),
    )
    .unwrap();
}

#[test]
fn a_voice_is_found_in_path_or_named_as_missing() {
    let none = tempfile::tempdir().unwrap();
    assert_eq!(voice_in(&none, "auto").name(), "tones");
    assert_eq!(voice_in(&none, "tones").name(), "tones");
    for name in ["espeak-ng", "flite"] {
        let refusal = Voice::find_in(name, none.path().as_os_str()).unwrap_err();
        assert!(refusal.contains(&format!("apt-get install {name}")), "{refusal}");
    }
    assert!(
        Voice::find_in("festival", none.path().as_os_str())
            .unwrap_err()
            .contains("auto")
    );

    let flite = machine("flite", "");
    assert_eq!(voice_in(&flite, "auto").name(), "flite");
    let espeak = machine("espeak-ng", "");
    let both = env::join_paths([flite.path(), espeak.path()]).unwrap();
    assert_eq!(Voice::find_in("auto", &both).unwrap().name(), "espeak-ng");
    fs::set_permissions(espeak.path().join("espeak-ng"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(
        Voice::find_in("auto", &both).unwrap().name(),
        "flite",
        "what cannot be run is not a program"
    );
}

#[test]
fn languages_have_voices() {
    for (language, voice) in [
        ("de-DE", "de"),
        ("de", "de"),
        ("DE_at", "de"),
        ("en", "en"),
        ("en-US", "en-us"),
        ("en-GB", "en-gb"),
        ("en-AU", "en"),
        ("pt-BR", "pt-br"),
        ("pt-PT", "pt"),
        ("fr", "fr-fr"),
        ("fr-CH", "fr-ch"),
        ("es-MX", "es-419"),
        ("es-ES", "es"),
        ("es-419", "es-419"),
        ("zh-Hans-CN", "cmn"),
        ("zh-HK", "yue"),
        ("no-NO", "nb"),
        ("xx-YY", "en"),
        ("", "en"),
        ("--voices", "en"),
        ("de; rm", "en"),
    ] {
        assert_eq!(espeak_voice(language), voice, "{language}");
    }
}

#[tokio::test]
async fn the_text_goes_to_standard_input_and_the_arguments_are_ours() {
    let folder = machine(
        "espeak-ng",
        "cat > heard; echo \"$@\" > arguments; env > environment; cat speech.wav",
    );
    put_speech(&folder);
    let voice = voice_in(&folder, "espeak-ng");
    for text in [
        "--help",
        "-f /etc/passwd",
        "$(touch here); `touch here` | touch here",
        "Grüße \u{1F44B}\nzwei",
    ] {
        let sound = voice.speak(text, "de-DE", Speaker::Agent).await;
        assert_eq!(sound.len(), 800, "{text}");
        assert_eq!(read(folder.path(), "heard"), format!("{text}\n"));
        assert_eq!(
            read(folder.path(), "arguments"),
            "--stdin --stdout -b 1 -v de -p 35 -s 165\n"
        );
    }
    assert!(!folder.path().join("here").exists());
    let inherited = read(folder.path(), "environment");
    assert!(
        !inherited.contains("CARGO"),
        "what we know is not for the program: {inherited}"
    );
    voice.speak("x", "en", Speaker::User).await;
    assert_eq!(
        read(folder.path(), "arguments"),
        "--stdin --stdout -b 1 -v en -p 75 -s 175\n"
    );
}

#[tokio::test]
async fn what_fails_becomes_tones() {
    for (why, script) in [
        ("an exit status", "cat > /dev/null; cat speech.wav; exit 3"),
        ("no output", "cat > /dev/null"),
        ("no WAV", "cat > /dev/null; echo sorry"),
        ("a text that is not read, and no output", "exit 0"),
        (
            "too long",
            "cat > /dev/null; cat speech.wav; head -c 11000000 /dev/zero",
        ),
        ("never ending", "cat > /dev/null; cat speech.wav; exec cat /dev/zero"),
    ] {
        let folder = machine("espeak-ng", script);
        put_speech(&folder);
        let sound = voice_in(&folder, "auto")
            .speak("good morning", "en", Speaker::Agent)
            .await;
        assert_eq!(sound, tones::tones("good morning", Speaker::Agent, RATE), "{why}");
    }
    let gone = machine("espeak-ng", "");
    let voice = voice_in(&gone, "auto");
    drop(gone);
    assert_eq!(
        voice.speak("hi", "en", Speaker::User).await,
        tones::tones("hi", Speaker::User, RATE),
        "uninstalled meanwhile"
    );
}

#[tokio::test]
async fn a_process_that_hangs_is_killed() {
    let folder = machine("espeak-ng", "echo $$ > pid; exec sleep 1000");
    let mut program = Program::new(Kind::EspeakNg, folder.path().join("espeak-ng"));
    program.patience = Duration::from_secs(2);
    let refusal = program
        .speak("hello", "en", Speaker::Agent, false, RATE)
        .await
        .unwrap_err();
    assert_eq!(refusal, "it took longer than 2 s");
    let pid = read(folder.path(), "pid");
    assert!(
        !Path::new("/proc").join(pid.trim()).exists(),
        "process {pid} still runs"
    );
}

#[tokio::test]
async fn two_processes_at_once_and_no_more() {
    let script = "touch at.$$; ls at.* | wc -l >> counts; sleep 0.1; cat > /dev/null; rm at.$$; cat speech.wav";
    let folder = machine("espeak-ng", script);
    put_speech(&folder);
    let voice = voice_in(&folder, "auto");
    let words = (0..8).map(|_| voice.speak("hello", "en", Speaker::Agent));
    for sound in futures_util::future::join_all(words).await {
        assert_eq!(sound.len(), 800);
    }
    let counts: Vec<u32> = read(folder.path(), "counts")
        .lines()
        .map(|line| line.trim().parse().unwrap())
        .collect();
    assert_eq!(counts.len(), 8);
    assert!(counts.iter().all(|&count| count <= 2), "{counts:?}");
}

#[tokio::test]
async fn only_the_beginning_of_an_endless_text_is_spoken() {
    let endless = "ä".repeat(LONGEST_TEXT * 2);
    let sound = voice_in(&tempfile::tempdir().unwrap(), "tones")
        .speak(&endless, "de", Speaker::Agent)
        .await;
    assert_eq!(sound.len(), LONGEST_TEXT * 440);
}

/// As it comes from the program: nothing above 4 kHz is lost on the way to a browser.
#[tokio::test]
async fn a_talk_hears_the_voice_at_its_own_rate() {
    let folder = machine("espeak-ng", "cat > /dev/null; cat speech.wav");
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: 22_050,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let sound: Vec<i16> = (0..2_205).map(|at| if at % 4 < 2 { 9_000 } else { -9_000 }).collect();
    let mut wav = hound::WavWriter::create(folder.path().join("speech.wav"), spec).unwrap();
    sound.iter().for_each(|sample| wav.write_sample(*sample).unwrap());
    wav.finalize().unwrap();
    let voice = voice_in(&folder, "auto");
    assert_eq!(voice.rate(), 22_050);
    assert_eq!(voice.speak_live("hello", "en", Speaker::Agent).await, sound);
    assert_eq!(voice.speak("hello", "en", Speaker::Agent).await.len(), 800);
    // Without a program, and without its good will, tones have the rate that was promised.
    assert_eq!(Voice::tones().rate(), RATE);
    let folder = machine("flite", "exit 1");
    let broken = voice_in(&folder, "auto");
    assert_eq!(broken.speak_live("I", "en", Speaker::Agent).await.len(), 9_600);
}

/// The real programs, where they are installed.
#[tokio::test]
async fn the_programs_of_this_machine_speak() {
    for name in ["espeak-ng", "flite"] {
        let Ok(voice) = Voice::find(name) else { continue };
        let text = "- I would like to move my appointment to Tuesday.";
        let agent = voice.speak(text, "en-US", Speaker::Agent).await;
        let user = voice.speak(text, "en-US", Speaker::User).await;
        for sound in [&agent, &user] {
            assert!(
                (12_000..48_000).contains(&sound.len()),
                "{name}: {} samples",
                sound.len()
            );
            assert!(
                sound.iter().any(|sample| sample.unsigned_abs() > 3_000),
                "{name} is silent"
            );
            assert_ne!(sound, &tones::tones(text, Speaker::Agent, RATE));
            assert_ne!(sound, &tones::tones(text, Speaker::User, RATE));
        }
        assert_ne!(agent, user, "{name}");
        assert!(voice.speak(" \n", "en", Speaker::Agent).await.is_empty());
    }
}

#[test]
fn tones_have_a_length_pauses_and_soft_edges() {
    let sound = tones::tones("good morning everyone", Speaker::Agent, RATE);
    assert_eq!(sound.len(), 21 * 440, "55 ms a character");
    for (word, pause) in [(0..4, 4..5), (5..12, 12..13)] {
        assert!(
            sound[word.start * 440..word.end * 440]
                .iter()
                .any(|s| s.unsigned_abs() > 4_000)
        );
        assert!(sound[pause.start * 440..pause.end * 440].iter().all(|&s| s == 0));
        for edge in [word.start * 440, word.end * 440 - 1] {
            assert!(sound[edge].unsigned_abs() < 100, "a click at {edge}");
        }
    }
    assert_eq!(tones::tones("I", Speaker::User, RATE).len(), 4_800, "600 ms at least");
    assert_eq!(
        sound,
        tones::tones("good morning everyone", Speaker::Agent, RATE),
        "the same text, the same sound"
    );
    assert!(tones::tones("  ", Speaker::Agent, RATE).is_empty());
    assert!(
        sound.iter().all(|s| s.unsigned_abs() <= 8_192),
        "two at once do not distort"
    );
}

#[test]
fn speakers_and_words_have_pitches_of_their_own() {
    let words = [
        "yes",
        "no",
        "morning",
        "Tuesday",
        "ten",
        "appointment",
        "Grüße",
        "7",
        "…",
    ];
    for word in words {
        assert!((300.0..=450.0).contains(&tones::pitch(word, Speaker::Agent)), "{word}");
        assert!((540.0..=810.0).contains(&tones::pitch(word, Speaker::User)), "{word}");
        // The sound has that pitch: it crosses zero twice a wave.
        let sound = tones::tones(word, Speaker::User, RATE);
        let crossings = sound.windows(2).filter(|pair| (pair[0] < 0) != (pair[1] < 0)).count() as f64;
        let hz = crossings / 2.0 / (sound.len() as f64 / f64::from(RATE));
        assert!(
            (hz / tones::pitch(word, Speaker::User) - 1.0).abs() < 0.05,
            "{word}: {hz} Hz"
        );
    }
    assert_eq!(
        tones::pitch("Yes,", Speaker::Agent),
        tones::pitch("yes", Speaker::Agent)
    );
    let different: std::collections::BTreeSet<u64> = words
        .iter()
        .map(|word| tones::pitch(word, Speaker::Agent) as u64)
        .collect();
    assert!(different.len() > 4, "{different:?}");
}
