//! Turns, signs that one listens, far voices, clicks and tones, as a microphone picks them up: counted, for each of two voices. The
//! first is that of the detector's tests, the other one was made once with `espeak-ng -v en-us -s 150 -w a.wav "…"`, brought to 8 kHz, and
//! put between silence as the first has it. Sound is fed by the frame, 20 ms in and 20 ms out; who tells words has heard as much as he was
//! given.
use super::*;

struct Speaker {
    name: &'static str,
    sentence: &'static [u8],
    yes: &'static [u8],
    /// Where both become loud.
    onset_ms: usize,
    /// Where the sentence has room for a pause, behind "my".
    parted_ms: usize,
}

const SPEAKERS: [Speaker; 2] = [
    Speaker {
        name: "flite",
        sentence: include_bytes!("../../media/src/speech/sentence.ulaw"),
        yes: include_bytes!("../../media/src/speech/yes.ulaw"),
        onset_ms: 160,
        parted_ms: 1_780,
    },
    Speaker {
        name: "espeak-ng",
        sentence: include_bytes!("../../media/src/speech/sentence-espeak.ulaw"),
        yes: include_bytes!("../../media/src/speech/yes-espeak.ulaw"),
        onset_ms: 180,
        parted_ms: 1_755,
    },
];
const MOVE_IT: &str = "I would like to move my appointment to Wednesday.";

fn wide(mu_law: &[u8], softer: i16) -> Vec<i16> {
    let sound = Pcm::of_mu_law(mu_law).at(16_000);
    sound.samples.iter().map(|sample| sample / softer).collect()
}

fn silence(ms: usize) -> Vec<i16> {
    vec![0; ms * 16]
}

fn tone(hertz: f64, ms: usize) -> Vec<i16> {
    let angle = |at: usize| at as f64 / 16_000.0 * hertz * std::f64::consts::TAU;
    (0..ms * 16).map(|at| (angle(at).sin() * 8_000.0) as i16).collect()
}

fn clicks() -> Vec<i16> {
    let click = |at: usize| if at % 6_400 < 16 { 20_000 } else { 0 };
    (0..32_000).map(click).collect()
}

/// The words of a turn of which so many milliseconds were given: the last ones that fit.
type Script = Vec<(u64, &'static str)>;

async fn tell(mut asked: mpsc::Receiver<Hear>, tell: mpsc::Sender<Transcribed>, script: Script) {
    let mut ms = 0;
    while let Some(hear) = asked.recv().await {
        match hear {
            Hear::Begin(_) | Hear::Discard => ms = 0,
            Hear::Sound(sound) => ms += sound.ms(),
            Hear::Finalize => {
                let words = script
                    .iter()
                    .rev()
                    .find(|(from, _)| *from <= ms)
                    .map_or("", |(_, words)| *words);
                if tell.send(Transcribed::Final(words.to_owned())).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// A talk whose microphone is the test.
fn stand(script: Option<Script>) -> (VoiceTransport, Arc<MediaBridge>) {
    let clock = Clock::manual(start());
    let (bridge, heard) = MediaBridge::new();
    let (_, inbox) = mpsc::channel(16);
    let silent: Tell = Arc::new(|_| {});
    let transcript = script.map(|script| {
        let (transcript, asked, teller) = teller();
        tokio::spawn(tell(asked, teller, script));
        transcript
    });
    let source = Source {
        heard,
        bridge: bridge.clone(),
        transcript,
    };
    let (speech_input, user) = SpeechInput::new(clock.clone(), settings("en"), source, silent.clone());
    tokio::spawn(speech_input.run());
    let cast = Speech::default().cast("builtin:tones", None, "en-US");
    let agent = Sounds {
        voices: Voices::new(cast, "en-US", silent),
        has_ears: true,
    };
    let transport = VoiceTransport::new(clock, agent, bridge.clone(), user, inbox);
    (transport, bridge)
}

/// A packet, and all that follows from it.
async fn hear(bridge: &MediaBridge, packet: &[i16]) {
    bridge.hear(packet);
    for _ in 0..16 {
        tokio::task::yield_now().await;
    }
}

/// What was said to an agent that listens: the turns that stand, and how often one seemed to be over and was not.
async fn turns(script: Option<Script>, sound: &[i16]) -> (Vec<String>, usize) {
    let (mut transport, bridge) = stand(script);
    transport.user.listens.store(true, Ordering::Relaxed);
    let (mut said, mut void) = (Vec::new(), 0);
    for packet in sound.chunks(320) {
        hear(&bridge, packet).await;
    }
    while let Ok(input) = transport.user.inputs.try_recv() {
        let UserInput::Speech {
            said: spoken,
            unsettled,
            ..
        } = input
        else {
            panic!("{input:?}")
        };
        let is_over = match unsettled {
            None => true,
            Some(unsettled) => unsettled.is_over().now_or_never().expect("the pause is long enough"),
        };
        match is_over {
            true => said.push(spoken.speech.text),
            false => void += 1,
        }
    }
    (said, void)
}

/// How far the agent came with 8 s of words, and milliseconds until it was silent first.
async fn over_the_agent(script: Option<Script>, sound: &[i16]) -> (Said, Option<usize>) {
    let (mut transport, bridge) = stand(script);
    let (said, silent) = both(transport.say(say(8_000, false)), async {
        let mut silent = None;
        let mut packets = sound.chunks(320);
        for frame in 0..500 {
            hear(&bridge, packets.next().unwrap_or(&[0; 320])).await;
            if bridge.next_frame().is_none() && silent.is_none() && bridge.is_playing() {
                silent = Some((frame + 1) * 20);
            }
        }
        silent
    })
    .await;
    (said, silent)
}

#[tokio::test]
async fn of_sixty_turns_nearly_all_end_once_and_rightly() {
    for speaker in &SPEAKERS {
        let (right, wrong) = sixty_turns(speaker).await;
        assert!(right >= 57, "{}, {right} of 60: {wrong:?}", speaker.name);
    }
}

/// What it was, how much softer, and how long after the beginning; and what was taken for said.
type Wrong = (&'static str, i16, usize, Vec<String>);

async fn sixty_turns(speaker: &Speaker) -> (usize, Vec<Wrong>) {
    let (mut right, mut wrong) = (0, Vec::new());
    for softer in [1, 2, 4] {
        for lead_ms in [20, 137, 480, 911, 1_500] {
            let (yes, sentence) = (wide(speaker.yes, softer), wide(speaker.sentence, softer));
            let (first, second) = sentence.split_at(speaker.parted_ms * 16);
            let whole = sentence.len() as u64 / 16;
            let unfinished = vec![(0, "I would like to move my"), (2_600, MOVE_IT)];
            let cases: [(&str, Vec<Vec<i16>>, Script, &str); 4] = [
                ("a word", vec![yes.clone()], vec![(0, "Yes.")], "Yes."),
                (
                    "a sentence",
                    vec![sentence.clone()],
                    vec![(0, "I would"), (whole - 800, MOVE_IT)],
                    MOVE_IT,
                ),
                (
                    "a pause in a sentence",
                    vec![first.to_vec(), silence(700), second.to_vec()],
                    unfinished.clone(),
                    MOVE_IT,
                ),
                (
                    "a breath in a sentence",
                    vec![first.to_vec(), silence(250), second.to_vec()],
                    unfinished,
                    MOVE_IT,
                ),
            ];
            for (what, parts, script, expected) in cases {
                let sound = [silence(lead_ms), parts.concat(), silence(1_800)].concat();
                match turns(Some(script), &sound).await {
                    (said, _) if said == [expected] => right += 1,
                    (said, _) => wrong.push((what, softer, lead_ms, said)),
                }
            }
        }
    }
    (right, wrong)
}

#[tokio::test]
async fn what_is_no_speech_is_no_turn() {
    for (what, sound) in [
        ("silence", silence(3_000)),
        ("clicks", clicks()),
        ("a beep", tone(1_000.0, 100)),
    ] {
        let sound = [silence(300), sound, silence(1_500)].concat();
        assert_eq!(turns(None, &sound).await, (Vec::new(), 0), "{what}");
    }
}

#[tokio::test]
async fn no_sign_that_one_listens_stops_the_agent() {
    let mut stopped = Vec::new();
    for speaker in &SPEAKERS {
        let yes = |softer| wide(speaker.yes, softer);
        for lead_ms in [100, 333, 1_001, 2_000, 3_777] {
            for (what, sound, words) in [
                ("a sign", yes(1), "Yeah."),
                ("a soft sign", yes(4), "Uh-huh."),
                ("two signs", [yes(2), yes(2)].concat(), "Mm-hmm, okay."),
                ("a far voice", wide(speaker.sentence, 100), "The news at ten."),
            ] {
                let sound = [silence(lead_ms), sound, silence(1_500)].concat();
                let (said, _) = over_the_agent(Some(vec![(0, words)]), &sound).await;
                if said != Said::Whole {
                    stopped.push((speaker.name, what, lead_ms, said));
                }
            }
        }
    }
    assert!(stopped.is_empty(), "{stopped:?}");
    for (what, sound) in [("clicks", clicks()), ("a beep", tone(1_000.0, 900))] {
        let (said, silent) = over_the_agent(None, &sound).await;
        assert_eq!((said, silent), (Said::Whole, None), "{what}");
    }
}

#[tokio::test]
async fn every_interruption_silences_the_agent_in_time() {
    let mut late = Vec::new();
    for speaker in &SPEAKERS {
        for lead_ms in [100, 333, 1_001, 2_000, 3_777] {
            for (softer, words) in [(1, Some(MOVE_IT)), (2, Some(MOVE_IT)), (4, Some(MOVE_IT)), (1, None)] {
                let sound = [silence(lead_ms), wide(speaker.sentence, softer), silence(1_500)].concat();
                let script = words.map(|words| vec![(0, words)]);
                let (said, silent) = over_the_agent(script, &sound).await;
                let onset_ms = lead_ms + speaker.onset_ms;
                let is_right = matches!(said, Said::CutInAfter(_)) && silent.is_some_and(|at| at <= onset_ms + 300);
                if !is_right {
                    late.push((speaker.name, lead_ms, softer, words, said, silent));
                }
            }
        }
    }
    assert!(late.is_empty(), "{late:?}");
}
