use super::{words::Patience, *};
use adapters::speech::{SpeechError, SpeechStream, Synthesizer, Utterance as Asked};
use entities::values::Moment;
use futures_util::{
    FutureExt,
    future::{BoxFuture, ready},
    stream,
};
use rules::session::command::Command;
use runtime::clock::Clock;
use std::{sync::Mutex, time::Duration};
use tokio::{sync::oneshot, time::Instant};

/// What a speaker does with some words.
#[derive(Clone, Copy)]
enum Does {
    /// So many samples, each the number of the speaker.
    Says(usize),
    Fails,
    /// Says so much, then fails.
    Breaks(usize),
    Hangs,
    /// The same, asked for behind other pieces of its turn.
    HangsInTurn,
}

struct Speaker {
    name: &'static str,
    rate: u32,
    sample: i16,
    does: Does,
}

impl Synthesizer for Speaker {
    fn name(&self) -> &'static str {
        self.name
    }

    fn speak(&self, _: Asked) -> SpeechStream {
        let said = |length: usize| Ok(vec![self.sample; length]);
        let sound = match self.does {
            Does::Says(length) => stream::iter(vec![said(length)]).boxed(),
            Does::Fails => stream::iter(vec![Err(SpeechError::Absent)]).boxed(),
            Does::Breaks(length) => stream::iter(vec![said(length), Err(SpeechError::Closed)]).boxed(),
            Does::Hangs | Does::HangsInTurn => stream::pending().boxed(),
        };
        let mut stream = SpeechStream::new(self.rate, sound);
        if matches!(self.does, Does::HangsInTurn) {
            stream.its_turn = Some(ready(Instant::now()).boxed().shared());
        }
        stream
    }

    fn warm(&self, _: &str, _: &str) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}

fn tongue(name: &'static str, rate: u32, sample: i16, does: Does) -> Tongue {
    Tongue::new(
        std::sync::Arc::new(Speaker {
            name,
            rate,
            sample,
            does,
        }),
        "voice",
        "en",
    )
}

struct Stand {
    voices: Voices,
    noted: Arc<Mutex<Vec<String>>>,
}

impl Stand {
    /// Numbers 1 and 2 speak at 24 kHz, this machine (3) at 8 kHz.
    fn new(first: Does, second: Option<Does>) -> Self {
        Stand::with_local(first, second, Does::Says(100))
    }

    fn with_local(first: Does, second: Option<Does>, local: Does) -> Self {
        let cast = Cast {
            first: tongue("first", 24_000, 1, first),
            second: second.map(|does| tongue("second", 24_000, 2, does)),
            local: tongue("local", 8_000, 3, local),
        };
        let noted: Arc<Mutex<Vec<String>>> = Arc::default();
        let its = noted.clone();
        let tell: Tell = Arc::new(move |command| {
            if let Command::Note { kind, detail } = command {
                its.lock().unwrap().push(format!("{kind} {detail}"));
            }
        });
        let patience = Patience {
            filler: Duration::from_millis(10),
            next: Duration::from_millis(20),
            end: Duration::from_secs(10),
        };
        let voices = Voices::new(cast, "en", tell).with_patience(patience);
        Stand { voices, noted }
    }

    /// Whose samples are heard, and how many of each run.
    async fn hear(&self) -> (u32, Vec<usize>) {
        self.hear_words(false).await
    }

    async fn hear_words(&self, must_be_heard: bool) -> (u32, Vec<usize>) {
        let (rate, pieces) = match self.voices.sound_of("Good morning.", must_be_heard, None).await {
            Sound::Whole(sound) => (sound.rate, vec![sound.samples.len()]),
            Sound::Stream(stream) => {
                let pieces: Vec<_> = stream.chunks.map(|piece| piece.len()).collect().await;
                (stream.rate, pieces)
            }
        };
        (rate, pieces)
    }

    fn noted(&self) -> Vec<String> {
        std::mem::take(&mut *self.noted.lock().unwrap())
    }
}

#[tokio::test]
async fn who_speaks_is_not_interfered_with() {
    let stand = Stand::new(Does::Says(480), Some(Does::Says(960)));
    assert_eq!(stand.hear().await, (24_000, vec![480]));
    assert_eq!(stand.noted(), Vec::<String>::new());
}

#[tokio::test]
async fn who_fails_is_followed_and_not_asked_again() {
    let stand = Stand::new(Does::Fails, Some(Does::Says(960)));
    assert_eq!(stand.hear().await, (24_000, vec![960]));
    assert_eq!(stand.noted(), ["voice_failed first: cannot be reached"]);
    assert_eq!(stand.hear().await, (24_000, vec![960]));
    assert_eq!(stand.noted(), Vec::<String>::new(), "the first was not asked");
}

#[tokio::test]
async fn who_says_nothing_is_bridged_and_then_followed() {
    let stand = Stand::new(Does::Hangs, Some(Does::Says(960)));
    // The filler has 100 samples of 8 kHz.
    let Sound::Stream(mut stream) = stand.voices.sound_of("Good morning.", false, None).await else {
        panic!("a provider's sound is played as it comes");
    };
    assert_eq!(stream.chunks.next().await.map(|piece| piece.len()), Some(300));
    assert_eq!(stream.lead.load(Ordering::Relaxed), 300, "it is none of the words");
    assert_eq!(stream.chunks.next().await, Some(vec![2; 960]));
    assert_eq!(
        (stream.chunks.next().await, stream.lead.load(Ordering::Relaxed)),
        (None, 300)
    );
    assert_eq!(stand.noted(), ["voice_failed first: did not answer in time"]);
}

#[tokio::test]
async fn when_nobody_else_speaks_this_machine_does() {
    let stand = Stand::new(Does::Fails, Some(Does::Fails));
    let (rate, pieces) = stand.hear().await;
    assert_eq!((rate, pieces), (24_000, vec![300]));
    assert_eq!(stand.noted().len(), 2);
    assert_eq!(stand.hear().await, (8_000, vec![100]), "at its own rate from now on");
    let alone = Stand::new(Does::Hangs, None);
    assert_eq!(alone.hear().await, (24_000, vec![300, 300]), "a filler and the words");
    assert_eq!(alone.hear().await, (8_000, vec![100]));
}

/// How many samples come, and whether they broke off.
async fn all(stand: &Stand, due: Option<Due>) -> (usize, bool) {
    let Sound::Stream(stream) = stand.voices.sound_of("Good morning.", false, due).await else {
        panic!("a provider's sound is played as it comes");
    };
    let broke_off = stream.broke_off.clone();
    let lengths: Vec<usize> = stream.chunks.map(|piece| piece.len()).collect().await;
    (lengths.iter().sum(), broke_off.load(Ordering::Relaxed))
}

/// Something else is heard meanwhile, for longer than anybody would wait: nobody asks for a moment.
#[tokio::test]
async fn words_that_are_asked_for_ahead_keep_nobody_waiting() {
    let stand = Stand::new(Does::Hangs, Some(Does::Says(960)));
    let (_needed, due) = oneshot::channel();
    assert_eq!(all(&stand, Some(due)).await, (960, false), "the next one says them");
    // From then on nothing is heard.
    let alone = Stand::new(Does::Hangs, None);
    let (needed, due) = oneshot::channel();
    needed.send(Instant::now()).unwrap();
    assert_eq!(all(&alone, Some(due)).await, (600, false), "a filler and the words");
}

/// Of a provider that is slow for a whole talk a person hears once in a while, not with each sentence.
#[tokio::test]
async fn a_moment_is_not_asked_for_over_and_over() {
    let stand = Stand::new(Does::Hangs, Some(Does::Hangs));
    // The first one's silence is bridged, the second one's is not: nobody asks twice for the same words.
    assert_eq!(all(&stand, None).await.0, 600);
    for (quiet_ms, samples) in [(7_999, 300), (8_000, 600)] {
        let clock = Clock::manual(Moment::from_millis(1_000_000));
        let moments = Moments::new(Some(clock.clone()));
        let Stand { voices, noted } = Stand::new(Does::Hangs, None);
        let voices = voices.in_step_with(moments.clone());
        let stand = Stand { voices, noted };
        // By the talk, with words that this voice is to say: it adds none of its own.
        assert!(moments.ask());
        clock.advance(Duration::from_millis(quiet_ms)).await;
        assert_eq!(all(&stand, None).await.0, samples, "after {quiet_ms} ms");
        assert!(!moments.ask(), "nor does the talk");
    }
}

#[tokio::test]
async fn words_that_nobody_says_end() {
    let mut stand = Stand::with_local(Does::Hangs, Some(Does::Fails), Does::Hangs);
    // Longer than anybody waits for a filler.
    stand.voices.common.patience.end = Duration::from_millis(1_200);
    assert_eq!(all(&stand, None).await, (0, true));
    assert_eq!(
        stand.noted(),
        [
            "voice_failed first: did not answer in time",
            "voice_failed second: cannot be reached",
            "voice_failed local: did not answer in time",
        ]
    );
    // From now on it is this machine's turn at once.
    assert!(!Voice::is_streamed(&stand.voices));
    assert_eq!(all(&stand, None).await, (0, true));
}

/// What is asked for ahead fails with the words before it: that is one provider that has failed, and not two.
#[tokio::test]
async fn who_fails_twice_at_once_has_failed_once() {
    let stand = Stand::new(Does::Fails, Some(Does::Says(960)));
    let (one, other) = futures_util::future::join(
        stand.voices.sound_of("Good morning.", false, None),
        stand.voices.sound_of("How are you?", false, None),
    )
    .await;
    for sound in [one, other] {
        let Sound::Stream(mut stream) = sound else {
            panic!("a provider's sound is played as it comes");
        };
        assert_eq!(stream.chunks.next().await, Some(vec![2; 960]));
    }
    assert_eq!(stand.noted(), ["voice_failed first: cannot be reached"]);
    assert_eq!(stand.hear().await, (24_000, vec![960]), "the second still speaks");
}

/// The words before them were waited for, in vain: these are not waited for as long again.
#[tokio::test]
async fn who_has_failed_when_it_is_their_turn_is_not_waited_for() {
    let stand = Stand::new(Does::HangsInTurn, Some(Does::Says(960)));
    let Sound::Stream(mut stream) = stand.voices.sound_of("Good morning.", false, None).await else {
        panic!("a provider's sound is played as it comes");
    };
    stand.voices.common.failed.store(1, Ordering::Relaxed);
    assert_eq!(
        stream.chunks.next().await,
        Some(vec![2; 960]),
        "and nobody asks for a moment"
    );
    assert_eq!(stand.noted(), Vec::<String>::new(), "that it has failed is known");
}

#[tokio::test]
async fn what_breaks_off_later_was_not_said_to_its_end() {
    for (breaks_at, broke_off) in [(240, false), (24_000, true)] {
        let stand = Stand::new(Does::Breaks(breaks_at), Some(Does::Says(960)));
        assert_eq!(all(&stand, None).await.1, broke_off, "{breaks_at}");
    }
}

#[tokio::test]
async fn what_breaks_off_is_said_again_if_hardly_any_was_heard_or_all_must_be() {
    // A second is 24,000 samples.
    for (breaks_at, must_be_heard, heard) in [
        (240, false, vec![240, 960]),
        (24_000, false, vec![24_000]),
        (24_000, true, vec![24_000, 960]),
    ] {
        let stand = Stand::new(Does::Breaks(breaks_at), Some(Does::Says(960)));
        assert_eq!(stand.hear_words(must_be_heard).await, (24_000, heard), "{breaks_at}");
        assert_eq!(stand.noted(), ["voice_failed first: broke the connection off"]);
        assert_eq!(stand.hear().await, (24_000, vec![960]));
    }
}
